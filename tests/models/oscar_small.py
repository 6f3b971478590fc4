"""Small networks, made-up images and captions for the tests of Oscar."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saywhere.language.vocabulary import Vocabulary
from saywhere.models.oscar import MARKERS, LevelCaption, Oscar, OscarConfig, TaggedRegions, save_level_captions
from tests.models.small import boxes_xyxy

REGION = 6
THINGS = ("cup", "dog", "palm tree", "oven", "bed", "boat")
PLACES = {"cup": "kitchen", "oven": "kitchen", "bed": "bedroom", "dog": "garden", "palm tree": "beach", "boat": "beach"}
VOCABULARY = Vocabulary.of_words(["the picture is taken in a kitchen bedroom garden beach and", *THINGS])
SIZES: dict[str, Any] = {"region_size": REGION, "width": 16, "layers": 3, "heads": 2, "feed_forward": 24}
SIZES |= {"dropout": 0.0, "attention_dropout": 0.0}


def network(seed: int = 0, **changes: Any) -> Oscar:
    """A network at rest whose words differ in likelihood, so that there is something to choose, and an end."""
    model = Oscar.fresh(OscarConfig(len(VOCABULARY) + MARKERS, **(SIZES | changes)), VOCABULARY, seed).eval()
    with torch.no_grad():
        model.word_bias[model.coding.sep_id] = 1.0
    return shaken(model, seed)


def shaken(model: Oscar, seed: int = 0, spread: float = 0.25) -> Oscar:
    """The same network with matrices drawn anew and all else moved, so that no part of it is idle."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = spread * torch.randn(parameter.shape, generator=generator)
            parameter.copy_(drawn if parameter.dim() > 1 else parameter + drawn)
    return model


def image(seed: int = 0, regions: int = 4, tags: int | Sequence[str] = 3, size: int = REGION) -> TaggedRegions:
    rng = np.random.default_rng(seed)
    names = list(rng.choice(THINGS, tags)) if isinstance(tags, int) else list(tags)
    boxes = boxes_xyxy(rng, regions)
    return TaggedRegions(rng.normal(size=(regions, size)), boxes, names, boxes_xyxy(rng, len(names)))


def images() -> list[TaggedRegions]:
    """Of all kinds: some of each, no tag, no region, neither, everything out of sight, some of it."""
    full = image(4, 5, 4)
    return [
        image(0, 4, 3),
        image(1, 2, 0),
        image(2, 0, 2),
        image(3, 0, 0),
        full.without(range(4), range(5)),
        full.without([1], [0, 3]),
    ]


def scene_of(things: Sequence[str]) -> str:
    return PLACES[things[0]]


def save_captions(folder: Path, splits: Sequence[str], seed: int = 0) -> list[LevelCaption]:
    """An object and a scene caption about an image for each entry of splits; a region shows its thing."""
    rng = np.random.default_rng(seed)
    seen: dict[str, TaggedRegions] = {}
    said = []
    for i, split in enumerate(splits):
        things = [THINGS[j] for j in rng.permutation(len(THINGS))[: 1 + i % 3]]
        features = np.eye(len(THINGS))[[THINGS.index(thing) for thing in things]]
        boxes = boxes_xyxy(rng, len(things))
        seen[f"photo {i}"] = TaggedRegions(features, boxes, things, boxes if i % 2 else None)
        said.append(LevelCaption(f"o{i}", f"photo {i}", split, "object", "a " + " and a ".join(things)))
        text = f"The picture is taken in a {scene_of(things)}"
        said.append(LevelCaption(f"s{i}", f"photo {i}", split, "scene", text))
    save_level_captions(folder, seen, said, {"made": "here"})
    return said
