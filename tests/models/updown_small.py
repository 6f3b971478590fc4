"""Small networks, made-up images, questions and captions for the tests of UpDn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saywhere.models.updown import (
    PreparedCaption,
    PreparedQuestion,
    RegionFeatures,
    UpDnCaptionConfig,
    UpDnCaptioner,
    UpDnConfig,
    UpDnVqa,
    save_captions,
    save_questions,
)
from tests.models.small import boxes_xyxy

WORDS, ANSWERS, REGION = 12, 7, 6
COLOURS = ("red", "blue", "green")
THINGS = ("cup", "dog", "tree")


def vqa(seed: int = 0, **changes: float | bool) -> UpDnVqa:
    """A network at rest whose attention and answers are far from even."""
    sizes = {"region_size": REGION, "embedding": 5, "width": 8, "dropout": 0.0, "answer_dropout": 0.0} | changes
    model = UpDnVqa.fresh(UpDnConfig(WORDS, ANSWERS, **sizes), seed).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        model.attend.weight.mul_(8)
    return model


def captioner(seed: int = 0, **changes: float | bool) -> UpDnCaptioner:
    """A network at rest whose words differ enough in likelihood for decoders to have something to choose."""
    sizes = {"region_size": REGION, "embedding": 5, "width": 8, "attention": 7, "dropout": 0.0, "max_words": 6}
    model = UpDnCaptioner.fresh(UpDnCaptionConfig(WORDS, **(sizes | changes)), seed).eval()  # type: ignore[arg-type]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model.attend.weight.mul_(8)
        model.say.weight.normal_()
    return model


def scene(seed: int = 0, counts: tuple[int, ...] = (4, 2, 5)) -> tuple[Tensor, Tensor, Tensor]:
    """regions (b, r, REGION), present (b, r), boxes (b, r, 4) of images with so many regions."""
    rng = np.random.default_rng(seed)
    present = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
    regions = torch.from_numpy(rng.normal(size=(*present.shape, REGION)).astype(np.float32))
    boxes = torch.from_numpy(np.stack([boxes_xyxy(rng, max(counts)) for _ in counts]).astype(np.float32))
    return regions * present[:, :, None], present, boxes * present[:, :, None]


def questions(lengths: tuple[int, ...] = (3, 5, 1), seed: int = 0) -> Tensor:
    """(b, t) ids, padded."""
    ids = torch.from_numpy(np.random.default_rng(seed).integers(3, 3 + WORDS, (len(lengths), max(lengths))))
    return ids * (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])


def coloured(rng: np.random.Generator, count: int = 3) -> tuple[RegionFeatures, tuple[int, ...], tuple[int, ...]]:
    """An image whose regions each show a thing in a colour; the things differ. With which thing, which colour."""
    things = rng.permutation(len(THINGS))[:count]
    colours = rng.integers(len(COLOURS), size=count)
    features = np.concatenate([np.eye(len(THINGS))[things], np.eye(len(COLOURS))[colours]], axis=1)
    return RegionFeatures(features, boxes_xyxy(rng, count)), tuple(things.tolist()), tuple(colours.tolist())


def save_coloured_questions(folder: Path, splits: tuple[str, ...], seed: int = 0) -> list[PreparedQuestion]:
    """One question about an image for each entry of splits: what colour is its first thing?"""
    rng = np.random.default_rng(seed)
    images: dict[str, RegionFeatures] = {}
    asked = []
    for i, split in enumerate(splits):
        image, things, colours = coloured(rng)
        images[f"photo {i}"] = image
        hinted = np.array([1.0, 0.25, 0.0], dtype=np.float32) if i % 2 else None
        text, answer = f"What color is the {THINGS[things[0]]}?", COLOURS[colours[0]]
        asked.append(PreparedQuestion(f"q{i}", f"photo {i}", split, text, "what color", "other", (answer,), hinted))
    save_questions(folder, images, asked, {"made": "here"}, least_count=1)
    return asked


def save_coloured_captions(folder: Path, splits: tuple[str, ...], seed: int = 0) -> list[PreparedCaption]:
    """One caption about an image for each entry of splits; its noun, the fourth word, is visual in every second."""
    rng = np.random.default_rng(seed)
    images: dict[str, RegionFeatures] = {}
    said = []
    for i, split in enumerate(splits):
        image, things, colours = coloured(rng, 1 + i % 2)
        images[f"photo {i}"] = image
        shares = np.linspace(1, 0.5, len(image)).astype(np.float32)
        text = f"Here: a {COLOURS[colours[0]]} {THINGS[things[0]]}{' all alone' * (len(image) == 1)}."
        said.append(PreparedCaption(f"c{i}", f"photo {i}", split, text, ((3, shares),) if i % 2 else ()))
    save_captions(folder, images, said, {"made": "here"}, least_word_count=1)
    return said
