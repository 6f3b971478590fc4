"""A world of three colours, small enough to know every answer: red is a cat, green a dog, blue a cup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from PIL import Image

from saywhere.core import Frame
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.patchioner.alignment import LinearAlignment
from saywhere.models.patchioner.config import DecoderConfig
from saywhere.models.patchioner.consensus import ConsensusConfig
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.eyes import EncoderEyes
from saywhere.models.patchioner.memory import Direct, Gap, MemoryBank, MemoryGap
from saywhere.models.patchioner.seer import (
    GroundingConfig,
    OptionalParts,
    Seer,
    open_eyes,
    open_seer,
    read_config,
)
from saywhere.models.patchioner.tags import Tags
from saywhere.models.patchioner.writers import MemoryWriter, VectorWriter
from saywhere.models.search import GenerationConfig, Written
from saywhere.vision import Found, PhotoLike, View, read_photo
from saywhere.vision.detector import Detected
from saywhere.vision.view import Proposals

THINGS = ("cat", "dog", "cup")
LEFT, TOP_RIGHT, BOTTOM_RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 0.5), (0.5, 0.5, 1.0, 1.0)
FOUND = (Found(LEFT, "cat", 0.9), Found(TOP_RIGHT, "dog", 0.8), Found(BOTTOM_RIGHT, "cup", 0.7))
SENTENCES = ("a red cat", "a green dog", "a blue cup")
LEVELS = ("scene", "action", "rationale")


def photo(side: int = 40) -> Image.Image:
    """Left half a cat, a dog at the top right, a cup below it."""
    pixels = np.zeros((side, side, 3), dtype=np.uint8)
    half = side // 2
    pixels[:, :half, 0] = pixels[:half, half:, 1] = pixels[half:, half:, 2] = 255
    return Image.fromarray(pixels)


class ColourEncoder:
    """Four by four patches whose features are their mean colour."""

    size = 3
    fingerprint: dict[str, str | int] = {"encoder": "colours"}  # noqa: RUF012 - as the protocol has it

    def __init__(self) -> None:
        self.looks = 0

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        return Frame.squash(photo_size, (4, 4), 1)

    def look(self, photo: PhotoLike) -> View:
        self.looks += 1
        image = read_photo(photo)
        patches = np.asarray(image.resize((4, 4), Image.Resampling.BOX)) / 255
        return View(self.frame(image.size), patches, patches.mean(axis=(0, 1)))

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        return [self.look(one) for one in photos]


class ThingReader:
    """A text's vector is the sum of the things it names; far from all of them if it names none."""

    name, size = "things", 3
    fingerprint: dict[str, str | int] = {"text_encoder": "things"}  # noqa: RUF012 - as the protocol has it

    def embed(self, texts: Sequence[str], *, batch: int = 64, progress: object = None) -> np.ndarray:
        rows = np.array([[float(thing in text) for thing in THINGS] for text in texts], dtype=np.float32)
        rows[rows.sum(axis=1) == 0] = -1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class ThingWriter:
    """Says the thing that a vector is most of, and keeps how it was asked."""

    def __init__(self) -> None:
        self.asked: list[GenerationConfig] = []

    def write(
        self, vectors: ArrayLike, how: GenerationConfig | None = None, prompts: Sequence[str] | None = None
    ) -> list[Written]:
        self.asked.append(how or GenerationConfig())
        return [Written(f"a {THINGS[i]}", -0.1, (-0.1,)) for i in np.asarray(vectors).argmax(axis=1)]


class ThingFinder:
    """A detector that finds the same things everywhere; by default the three that are there."""

    def __init__(self, found: Sequence[Found] = FOUND) -> None:
        self.found = tuple(found)

    def find(self, photo: PhotoLike) -> Detected:
        names = tuple(dict.fromkeys(one.name for one in self.found))
        boxes = np.array([one.box_xyxy for one in self.found], np.float32).reshape(-1, 4)
        scores = np.array([[one.score * (one.name == name) for name in names] for one in self.found], np.float32)
        return Detected(self.found, Proposals(boxes, scores.reshape(len(boxes), len(names)), names))


def alignment() -> LinearAlignment:
    """The identity."""
    aligned = LinearAlignment(np.zeros(3), np.ones(3), 3)
    with torch.no_grad():
        aligned.linear.weight.copy_(torch.eye(3))
        aligned.linear.bias.zero_()
    return aligned.eval()


def tags() -> Tags:
    """Names that are the things, and add nothing that was learnt."""
    zeros = np.zeros((9, 3), dtype=np.float32)
    return Tags(THINGS, np.zeros(3, dtype=np.float32), zeros, np.eye(3, dtype=np.float32))


def eyes(found: Sequence[Found] = FOUND) -> EncoderEyes:
    return EncoderEyes(ColourEncoder(), alignment(), ThingFinder(found), tags())


def bank() -> MemoryBank:
    return MemoryBank(np.eye(3), SENTENCES)


def seer(
    gap: Gap | None = None,
    least_similarity: float = 0.9,
    least_grounding: float = 0.7,
    least_missed: float = 0.7,
    found: Sequence[Found] = FOUND,
    writer: VectorWriter | None = None,
    level_writer: VectorWriter | None = None,
    answerer: Any = None,
) -> Seer:
    """Sure of a region that shows one thing; a text is found where it is at least 0.7 alike.

    level_writer: for one that also tells the levels of `LEVELS`.
    """
    own = writer or VectorWriter(ThingWriter(), gap or Direct())
    above = None if level_writer is None else lambda: level_writer
    return Seer(
        eyes(found),
        MemoryWriter(bank(), own, LEVELS if above else (), above, least_similarity),
        OptionalParts(
            ThingReader, None if answerer is None else lambda: answerer, ("is there a …?",) if answerer else ()
        ),
        GroundingConfig(least_grounding, least_missed),
        "tiny",
    )


def open_tiny(folder: Path, writer: str = "", encoder: Any = None) -> Seer:
    """A seer from its folder that looks with the encoder and the detector of this world."""
    seeing = open_eyes(folder, read_config(folder), encoder=encoder or ColourEncoder(), detector=ThingFinder())
    return open_seer(folder, writer, eyes=seeing)


def decoder(seed: int = 0) -> PrefixDecoder:
    words = Vocabulary.of_words([f"{sentence}." for sentence in SENTENCES])
    config = DecoderConfig(len(words), 3, width=8, layers=1, heads=2, feed_forward=8, max_words=5)
    return PrefixDecoder.fresh(config, words, seed).eval()


def attentive_decoder() -> PrefixDecoder:
    """One whose words depend on the vector, though it learnt nothing."""
    return _shaken(decoder())


def level_decoder() -> PrefixDecoder:
    """One whose words depend on the vector and on the prompt, for which it knows the names of three levels."""
    words = Vocabulary.of_words([*LEVELS, "in a garden", "playing with a cup", "they are thirsty"])
    config = DecoderConfig(len(words), 3, width=8, layers=1, heads=2, feed_forward=8, max_words=5, prompt_words=1)
    return _shaken(PrefixDecoder.fresh(config, words, 0).eval(), 12, 0.7)


def _shaken(model: PrefixDecoder, seed: int = 0, far: float = 0.3) -> PrefixDecoder:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * far)
    return model


def agreeing_seer() -> Seer:
    """Draws texts for scenes and keeps the one that agrees with the memory; regions it writes greedily."""
    careful = ConsensusConfig(draws=8, temperature=2.0, min_words=2)
    return seer(writer=VectorWriter(attentive_decoder(), MemoryGap(bank(), 0.1), scenes=careful), least_similarity=0.0)
