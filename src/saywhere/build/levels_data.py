"""Whom the writer of levels learns from: HL's rows, and captions and photos whose place people agree on.

HL comes without photos here. What a photo would look like is the mean vector of what people said of it, because that is
what photos' vectors are fitted to, moved across the gap (`GapModel`). One to all of its captions stand for a photo.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from saywhere.build.base import plain
from saywhere.build.levels_places import agreed_words
from saywhere.build.levels_texts import LEVELS, level_sentence, place_sentence
from saywhere.core import InvalidFile
from saywhere.core.types import Floats32
from saywhere.formats import hl
from saywhere.formats.hl import HLRow
from saywhere.formats.record import InvalidRecord
from saywhere.language.vocabulary import UNKNOWN, Vocabulary
from saywhere.models.patchioner.gap_model import GapModel

OBJECT = "object"
_SUREST = 5.0
_TRAINING, _VALIDATION = 7, 8
_STRENGTH = (0.6, 1.2)
"""How loud the gap's noise is, as in the training of the base's own decoder."""


@dataclass(frozen=True, slots=True)
class Saying:
    """A text to learn. group: whose it is. weight: how often it comes beside others of its source."""

    group: int
    level: str
    text: str
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """vectors: (g, k, d) of the k captions of each group, or (g, d) of photos themselves. share: of all texts."""

    name: str
    share: float
    vectors: Floats32
    sayings: tuple[Saying, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Texts to learn, one after another. vectors: (n, d) of length 1. prompts: the levels' names."""

    vectors: Floats32
    sentences: list[str]
    prompts: list[str]


def hl_split(file_name: str) -> str:
    """ "train" (seven of ten rows), "validation" (one) or "test" (two), by the file's name alone."""
    tenth = int(hashlib.sha256(file_name.encode()).hexdigest(), 16) % 10
    return "train" if tenth < _TRAINING else "validation" if tenth < _VALIDATION else "test"


def read_hl(path: Path) -> tuple[dict[str, list[HLRow]], list[InvalidRecord]]:
    """Rows by split that have object captions, which stand for their photos, and the records that are bad."""
    rows: dict[str, list[HLRow]] = {"train": [], "validation": [], "test": []}
    bad: list[InvalidRecord] = []
    for line, record in enumerate(hl.read(path), 1):
        if isinstance(record, InvalidRecord):
            bad.append(record)
        elif OBJECT not in record.captions:
            bad.append(InvalidRecord(str(path), line, "has no object captions"))
        else:
            rows[hl_split(record.file_name)].append(record)
    if not rows["train"]:
        raise InvalidFile(path, f"has no row to learn from; {len(bad)} are bad")
    return rows, bad


def hl_sayings(rows: Sequence[HLRow]) -> tuple[Saying, ...]:
    """What annotators said at each level, weighted by the square of how sure they were."""
    said = []
    for group, row in enumerate(rows):
        for level in LEVELS:
            texts = row.captions.get(level, ())
            sure = row.confidence.get(level, (_SUREST,) * len(texts))
            for text, confidence in zip(texts, sure, strict=True):
                sentence = level_sentence(level, text)
                if sentence is not None:
                    said.append(Saying(group, level, sentence, (confidence / _SUREST) ** 2))
    return tuple(said)


def place_sayings(words: Sequence[Sequence[Sequence[str]]]) -> tuple[Saying, ...]:
    """Scenes of photos out of the place words of each of their captions (`place_words`), where two captions agree.

    A photo counts once, whatever the number of words for its place.
    """
    said = []
    for group, captions in enumerate(words):
        agreed = agreed_words(captions)
        for word, count in agreed.items():
            said.append(Saying(group, "scene", place_sentence(word), count / agreed.total()))
    return tuple(said)


def level_vocabulary(sources: Sequence[Source], min_count: int = 2) -> Vocabulary:
    """The levels' names, which are prompts, and words said at least so often: some rarer ones are misspelt."""
    counts: dict[str, int] = {}
    for source in sources:
        for saying in source.sayings:
            for word in saying.text.split():
                counts[word] = counts.get(word, 0) + 1
    frequent = sorted((word for word, n in counts.items() if n >= min_count), key=lambda word: (-counts[word], word))
    return Vocabulary("words", (UNKNOWN, *LEVELS, *(word for word in frequent if word not in LEVELS)))


def draw(
    sources: Sequence[Source], count: int, vocabulary: Vocabulary, gap: GapModel, most_words: int, seed: int
) -> Drawn:
    """`count` texts from the sources, as their shares and the texts' weights say.

    Texts with a word that the vocabulary lacks, or more than `most_words`, are not drawn.
    """
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    usable = [[one for one in source.sayings if _fits(one.text, vocabulary, most_words)] for source in sources]
    shares = np.array([source.share if one else 0.0 for source, one in zip(sources, usable, strict=True)])
    whose = rng.choice(len(sources), count, p=shares / shares.sum())
    size = sources[0].vectors.shape[-1]
    drawn = Drawn(np.zeros((count, size), dtype=np.float32), [""] * count, [""] * count)
    for number, (source, sayings) in enumerate(zip(sources, usable, strict=True)):
        rows = np.flatnonzero(whose == number)
        if not len(rows):
            continue
        weights = np.array([one.weight for one in sayings])
        chosen = [sayings[i] for i in rng.choice(len(sayings), len(rows), p=weights / weights.sum())]
        drawn.vectors[rows] = _seen(source, [one.group for one in chosen], gap, rng, generator)
        for row, one in zip(rows.tolist(), chosen, strict=True):
            drawn.sentences[row], drawn.prompts[row] = one.text, one.level
    return drawn


def row_vectors(vectors: Floats32) -> Floats32:
    """(g, d) where a photo with these (g, k, d) captions would lie: their mean, of length 1."""
    return _unit(vectors.mean(axis=1))


def references(rows: Sequence[HLRow], level: str) -> dict[int, list[str]]:
    """What annotators said at a level, by the row's number: words in lower case."""
    return {
        number: [plain(text) for text in row.captions[level]]
        for number, row in enumerate(rows)
        if level in row.captions
    }


def _seen(
    source: Source, groups: list[int], gap: GapModel, rng: np.random.Generator, generator: torch.Generator
) -> Floats32:
    vectors = source.vectors[groups]
    if vectors.ndim == 2:
        return _unit(vectors)
    captions = vectors.shape[1]
    order = rng.random(vectors.shape[:2]).argsort(axis=1)
    kept = order < rng.integers(1, captions + 1, size=(len(groups), 1))
    mean = torch.from_numpy(_unit((vectors * kept[..., None]).sum(axis=1)))
    return np.asarray(gap.imagine(mean, _STRENGTH, generator).numpy())


def _fits(text: str, vocabulary: Vocabulary, most_words: int) -> bool:
    ids = vocabulary.encode(text.split()).ids
    return len(ids) <= most_words and vocabulary.unknown_id not in ids


def _unit(vectors: Floats32) -> Floats32:
    scaled: Floats32 = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)
    return scaled
