"""Small networks and made-up narratives for the tests of MITR."""

from __future__ import annotations

import numpy as np
import torch

from saywhere.models.mitr import MITR, Batch, Example, MitrConfig, RegionFeatures, collate

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


def narrative(rng: np.random.Generator, words: int, count: int) -> Example:
    located = rng.random(words) > 0.2
    boxes = encoded(boxes_xyxy(rng, words))
    boxes[~located] = (0, 0, 1, 1, 1)
    return Example(regions(rng, count), rng.integers(3, 3 + WORDS, words), boxes, located)


def narratives(seed: int = 0, sizes: tuple[tuple[int, int], ...] = ((5, 4), (9, 7), (3, 5))) -> list[Example]:
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
