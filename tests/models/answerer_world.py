"""A planted world for the answering network: photos of coloured things, questions about them, random word vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from saywhere.core.types import Floats32
from saywhere.language.vocabulary import plain_words
from saywhere.models.answerer import data
from saywhere.models.answerer.batch import AskedItem, PhotoItem, collate
from saywhere.models.answerer.config import AnswererConfig
from saywhere.models.answerer.data import TRAIN, TUNE, StoredQuestion
from saywhere.models.answerer.network import AnswerNet
from saywhere.models.answerer.task import answer_loss
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.region_features import REGIONS
from saywhere.store import StoreWriter

THINGS, COLOURS = ("cup", "dog", "car"), ("red", "green", "blue")
ANSWERS = AnswerVocabulary((*COLOURS, "1", "2", "3", "yes", "no"))
SIZE, TEXT = len(THINGS) + len(COLOURS), 16
REGION_SIZE = SIZE + 1 + 3
CONFIG = AnswererConfig(
    *(len(ANSWERS), REGION_SIZE), text_size=TEXT, width=32, heads=2, layers=2, inner=64, dropout=0.0, answer_dropout=0.0
)


class WordVectors:
    """Reads texts word by word; every word has a random vector of its own."""

    size = TEXT

    def states(self, texts: Sequence[str], *, most: int = 24) -> list[Floats32]:
        return [np.stack([_vector(word) for word in plain_words(text)[:most]]) for text in texts]


def _vector(word: str) -> Floats32:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).normal(size=TEXT).astype(np.float32)


def photo_of(things: Sequence[tuple[str, str]], rng: np.random.Generator) -> tuple[Floats32, Floats32]:
    """Features and boxes of a photo with (thing, colour) in it, side by side: the whole first."""
    rows, boxes = [np.zeros(SIZE)], [(0.0, 0.0, 1.0, 1.0)]
    for number, (thing, colour) in enumerate(things):
        shown = np.zeros(SIZE)
        shown[THINGS.index(thing)] = shown[len(THINGS) + COLOURS.index(colour)] = 1
        rows.append(shown + 0.05 * rng.normal(size=SIZE))
        boxes.append((number / 4, 0.2, (number + 1) / 4, 0.8))
    kinds = np.array([[1, 0, 0], *([[0, 1, 0]] * len(things))])
    scores = np.array([0.0, *([0.9] * len(things))])
    features = np.concatenate([np.stack(rows), scores[:, None], kinds], axis=1).astype(np.float32)
    return features, np.array(boxes, np.float32)


def question_of(things: Sequence[tuple[str, str]], rng: np.random.Generator) -> tuple[str, str]:
    """A question about such a photo, and its answer."""
    thing, colour = things[int(rng.integers(len(things)))]
    if rng.random() < 0.5:
        return f"How many {thing}s are there?", str(sum(one == thing for one, _ in things))
    return f"What color is the {thing}?", colour


def drawn_things(rng: np.random.Generator) -> list[tuple[str, str]]:
    """One to three things; those of a kind have one colour."""
    colours = {thing: COLOURS[int(rng.integers(3))] for thing in THINGS}
    return [(thing, colours[thing]) for thing in rng.choice(THINGS, int(rng.integers(1, 4))).tolist()]


def drawn_items(count: int, seed: int) -> list[PhotoItem]:
    rng, encoder = np.random.default_rng(seed), WordVectors()
    items = []
    for _ in range(count):
        things = drawn_things(rng)
        text, answer = question_of(things, rng)
        target = int(ANSWERS.targets([answer]).argmax())
        asked = AskedItem(encoder.states([text])[0], np.array([target]), np.ones(1, np.float32))
        items.append(PhotoItem(*photo_of(things, rng), (asked,)))
    return items


def taught(steps: int = 260) -> AnswerNet:
    """A network that learnt the world."""
    network = AnswerNet.fresh(CONFIG, 0).attach(ANSWERS)
    moving = torch.optim.AdamW(network.parameters(), lr=4e-3)
    for step in range(steps):
        logits, targets = answers_to(network, drawn_items(48, step + 1))
        moving.zero_grad()
        answer_loss(logits, targets).backward()
        moving.step()
    return network.eval()


def answers_to(network: AnswerNet, items: Sequence[PhotoItem]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and targets of one question for each item."""
    batch = collate(items, len(ANSWERS))
    out = network(batch.regions, batch.boxes, batch.present, batch.tokens, batch.read, batch.pointed)
    return out.logits[:, 0], batch.targets[:, 0]


def save_data(folder: Path, splits: Sequence[str] = (TRAIN,) * 16 + (TUNE,) * 4) -> None:
    """A folder as `saywhere build answers` writes it, with a photo and a question for each of `splits`."""
    rng, encoder = np.random.default_rng(0), WordVectors()
    texts: set[str] = set()
    with (
        StoreWriter(folder / data.PLACES, REGIONS, data.PLACES_FIELDS, {}) as places,
        StoreWriter(folder / data.QUESTIONS, data.QUESTIONS_KIND, data.QUESTIONS_FIELDS, {}) as questions,
    ):
        for number, split in enumerate(splits):
            things = drawn_things(rng)
            text, answer = question_of(things, rng)
            texts.add(text)
            features, boxes = photo_of(things, rng)
            places.add(f"{number:012}", regions=features, boxes=boxes)
            target = ((int(ANSWERS.targets([answer]).argmax()), 1.0),)
            asked = StoredQuestion(text, data.HUMAN, "what", "other", (answer,), target)
            questions.add(f"{number:012}", split=split, asked=[asked], held=False)
    with StoreWriter(folder / data.TEXTS, data.TEXTS_KIND, data.TEXTS_FIELDS, {}) as stored:
        for text in sorted(texts):
            stored.add(text, states=encoder.states([text])[0])
    ANSWERS.save(folder / data.ANSWERS)
    (folder / data.WORDS).write_text('["cup"]', encoding="utf-8")
