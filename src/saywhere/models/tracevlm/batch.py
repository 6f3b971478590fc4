"""Instructions as the network reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.common.batches import Movable, padded
from saywhere.models.tracevlm.examples import USER, Exchange, SegmentTarget
from saywhere.models.tracevlm.prompts import Prompt, PromptReader
from saywhere.models.tracevlm.trajectory import COLUMNS, point_rows


@dataclass(frozen=True, slots=True)
class PointBatch(Movable):
    """The points on each image. rows: (m, p, 5), see `trajectory.COLUMNS`; counts: (m,) how many are real."""

    rows: Tensor
    counts: Tensor


@dataclass(frozen=True, slots=True)
class TargetBatch(Movable):
    """Masks that are asked for. rows, starts: (k,) in which text, and where its six tokens begin. images: (k,) which
    of all images. truths: (k, H, W) 0 or 1, padded; sizes: (k, 2) height and width of each."""

    rows: Tensor
    starts: Tensor
    images: Tensor
    truths: Tensor
    sizes: Tensor

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class InstructionBatch(Movable):
    """ids, there, learnt: (b, n) texts, where they are no padding, and what of them the assistant says. pixels, grids:
    of all images, as the base reads them."""

    ids: Tensor
    there: Tensor
    learnt: Tensor
    pixels: Tensor
    grids: Tensor
    points: PointBatch
    targets: TargetBatch

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class ReadTalk:
    """One text with its images. points: of the user's trajectories. truths: of masks, in their order."""

    prompt: Prompt
    points: Floats32
    images: int
    truths: tuple[SegmentTarget, ...]


def read_talk(reader: PromptReader, turns: Sequence[Exchange], counts: Sequence[int]) -> ReadTalk:
    """counts: tokens of each image."""
    prompt = reader.read(turns, counts)
    kept = turns[prompt.forgotten :]
    targets = tuple(part for turn in kept for part in turn.parts if isinstance(part, SegmentTarget))
    return ReadTalk(prompt, pointed(kept), len(counts), targets)


def pointed(turns: Sequence[Exchange]) -> Floats32:
    """(n, 5) points of all that the user drew; what the assistant draws is for it to say."""
    return point_rows([one for turn in turns if turn.role == USER for one in turn.trajectories])


def collate(
    reader: PromptReader, talks: Sequence[Sequence[Exchange]], photos: Sequence[Sequence[Image.Image]]
) -> InstructionBatch:
    """Talks, each about some photos, as one batch."""
    pixels, grids = reader.inputs.prepare([photo for some in photos for photo in some])
    return collate_prepared(reader, talks, [len(some) for some in photos], pixels, grids)


def collate_prepared(
    reader: PromptReader, talks: Sequence[Sequence[Exchange]], images: Sequence[int], pixels: Tensor, grids: Tensor
) -> InstructionBatch:
    """The same with images that were prepared before. images: how many each talk is about."""
    counts = iter(reader.inputs.token_counts(grids))
    read = [
        read_talk(reader, turns, [next(counts) for _ in range(some)]) for turns, some in zip(talks, images, strict=True)
    ]
    ids, there = padded_ids([one.prompt.ids for one in read], reader.inputs.padding)
    learnt = padded([np.array(one.prompt.learnt) for one in read], padding=0).bool()
    return InstructionBatch(ids, there, learnt, pixels, grids, point_batch(read), target_batch(read))


def padded_ids(texts: Sequence[Sequence[int]], padding: int, *, left: bool = False) -> tuple[Tensor, Tensor]:
    """(b, n) ids, and where they are no padding. left: with the padding before each text, to go on writing it."""
    longest = max(map(len, texts))
    ids = torch.full((len(texts), longest), padding)
    there = torch.zeros(len(texts), longest, dtype=torch.bool)
    for row, text in enumerate(texts):
        place = slice(longest - len(text), longest) if left else slice(0, len(text))
        ids[row, place], there[row, place] = torch.tensor(text), True
    return ids, there


def point_batch(read: Sequence[ReadTalk]) -> PointBatch:
    """The points of each image of each text, in order."""
    each: list[NDArray[np.float32]] = []
    for one in read:
        frames = one.points[:, COLUMNS - 1]
        each += [one.points[frames == number] for number in range(one.images)]
    rows = padded(each, padding=0)
    return PointBatch(rows, torch.tensor([len(points) for points in each]))


def target_batch(read: Sequence[ReadTalk]) -> TargetBatch:
    rows, starts, images, truths = [], [], [], []
    first = 0
    for row, one in enumerate(read):
        for start, target in zip(one.prompt.targets, one.truths, strict=True):
            if target.mask is None:
                raise InvalidValue("mask", "is not known, so there is nothing to learn from it")
            rows.append(row)
            starts.append(start)
            images.append(first + target.image)
            truths.append((target.mask.values > 0).astype(np.uint8))
        first += one.images
    sizes = torch.tensor([truth.shape for truth in truths], dtype=torch.long).view(-1, 2)
    height, width = sizes.amax(dim=0).tolist() if truths else (0, 0)
    block = torch.zeros(len(truths), height, width, dtype=torch.uint8)
    for place, truth in zip(block, truths, strict=True):
        place[: truth.shape[0], : truth.shape[1]] = torch.from_numpy(truth)
    return TargetBatch(torch.tensor(rows), torch.tensor(starts), torch.tensor(images), block, sizes)
