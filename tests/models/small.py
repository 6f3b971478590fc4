"""Small networks and made-up narratives for the tests of MITR."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saywhere.core import Narrative, Trace, Utterance
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr import MITR, Batch, MitrConfig, NarrativeExample, RegionFeatures, collate, example_of
from saywhere.models.mitr.decode import BEAM
from saywhere.models.mitr.prepared import PreparedNarrative, save_prepared
from saywhere.models.search import GenerationConfig

WORDS, REGION = 30, 24
SMALL = MitrConfig(WORDS, region_size=REGION, width=32, heads=4, feed_forward=48)


def boxes_xyxy(rng: np.random.Generator, count: int) -> np.ndarray:
    corners = rng.random((count, 2, 2))
    return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)


def encoded(boxes: np.ndarray) -> np.ndarray:
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return np.column_stack([boxes, area]).astype(np.float32)


def regions(rng: np.random.Generator, count: int) -> RegionFeatures:
    return RegionFeatures(rng.random((count, REGION)), boxes_xyxy(rng, count))


def narrative(rng: np.random.Generator, words: int, count: int) -> NarrativeExample:
    located = rng.random(words) > 0.2
    boxes = encoded(boxes_xyxy(rng, words))
    boxes[~located] = (0, 0, 1, 1, 1)
    return NarrativeExample(regions(rng, count), rng.integers(3, 3 + WORDS, words), boxes, located)


def narratives(seed: int = 0, sizes: tuple[tuple[int, int], ...] = ((5, 4), (9, 7), (3, 5))) -> list[NarrativeExample]:
    """sizes: (words, regions) of each."""
    rng = np.random.default_rng(seed)
    return [narrative(rng, words, count) for words, count in sizes]


def batch(seed: int = 0, sizes: tuple[tuple[int, int], ...] = ((5, 4), (9, 7), (3, 5))) -> Batch:
    return collate(narratives(seed, sizes))


def network(seed: int = 0, **changes: float) -> MITR:
    """A network at rest whose words differ enough in likelihood for decoders to have something to choose."""
    model = MITR.fresh(MitrConfig(**(SMALL.to_dict() | changes)), seed).eval()  # type: ignore[arg-type]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model.words.table.weight.normal_()
        model.say.weight.mul_(4)
    return model


SAID = ["a red cup", "two dogs run on grass", "the blue sea", "a cup on a table"]


def save_narratives(folder: Path) -> None:
    """Prepared narratives of photos: 16 to learn from, 4 to validate on, 4 to test."""
    rng = np.random.default_rng(0)
    vocabulary = Vocabulary.of_words(SAID)
    images, kept = {}, []
    for i in range(24):
        corners = np.sort(rng.random((3, 2, 2)), axis=1).reshape(3, 4)
        images[f"photo {i}"] = RegionFeatures(rng.random((3, 6)), corners)
        text = SAID[i % len(SAID)]
        times = np.linspace(0, 3, 12)
        trace = Trace(np.column_stack([rng.random((12, 2)), times]))
        told = Narrative(f"photo {i}", text, (Utterance(text, 0, 3),), trace)
        one = example_of(images[f"photo {i}"], told, vocabulary)
        split = "train" if i < 16 else "validation" if i < 20 else "test"
        kept.append(PreparedNarrative(f"photo {i}", split, one.words, one.boxes, one.located, f"n{i}"))
    save_prepared(folder, images, kept, vocabulary, {"made": "here"})


def generation(method: str = "beam", **changes: Any) -> GenerationConfig:
    """As the authors write, but for some changes."""
    return replace(BEAM, method=method, **changes)
