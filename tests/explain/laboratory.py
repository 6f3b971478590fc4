"""Images and attention small enough to work out by hand, and models that only pretend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike

from saywhere.models.attended import Attended, TokenKind
from saywhere.models.search import BEAM, GenerationConfig, Written
from saywhere.models.tagged_regions import TaggedRegions

P, S, C, T, R = TokenKind.PAD, TokenKind.SPECIAL, TokenKind.CAPTION, TokenKind.TAG, TokenKind.REGION
SIZE = 6


def image(tags: Sequence[str], regions: Sequence[int] = (), *, seed: int = 0, size: int = SIZE) -> TaggedRegions:
    """Tag i has the i-th of ten columns of the image as its box; regions: of which tag each has the box."""
    columns = np.array([[0.1 * i, 0.0, 0.1 * (i + 1), 1.0] for i in range(10)])
    features = np.random.default_rng(seed).standard_normal((len(regions), size))
    boxes = columns[list(regions)] if regions else np.zeros((0, 4))
    return TaggedRegions(features, boxes, tags, columns[: len(tags)])


def attended(
    matrices: ArrayLike,
    parts: Sequence[Sequence[TokenKind]],
    index: ArrayLike | None = None,
    states: ArrayLike | None = None,
) -> Attended:
    """matrices: (layers, b, heads, n, n). index: by default tags and regions are numbered as they come."""
    layers = torch.tensor(np.asarray(matrices, np.float32))
    numbered = [[row[:i].count(part) if part in (T, R) else -1 for i, part in enumerate(row)] for row in parts]
    kinds = torch.tensor([[int(part) for part in row] for row in parts])
    numbers = torch.tensor(numbered if index is None else np.asarray(index))
    made = torch.zeros(*kinds.shape, 2) if states is None else torch.tensor(np.asarray(states, np.float32))
    return Attended(tuple(layers), made, kinds, numbers)


class Even:
    """Attends evenly to everything present; its states are the number of tags and of regions, everywhere."""

    def __init__(self) -> None:
        self.most = 0

    def attend(self, images: Sequence[TaggedRegions]) -> Attended:
        self.most = max(self.most, len(images))
        n = 1 + max(len(one.tags) + len(one) for one in images)
        parts = torch.zeros(len(images), n, dtype=torch.int64)
        index = torch.full_like(parts, -1)
        states = torch.zeros(len(images), n, 2)
        for row, one in enumerate(images):
            t, r = len(one.tags), len(one)
            parts[row, 0] = int(S)
            parts[row, 1 : 1 + t] = torch.from_numpy(one.tag_present * int(T))
            parts[row, 1 + t : 1 + t + r] = torch.from_numpy(one.region_present * int(R))
            index[row, 1 : 1 + t], index[row, 1 + t : 1 + t + r] = torch.arange(t), torch.arange(r)
            states[row] = torch.tensor([float(one.tag_present.sum()), float(one.region_present.sum())])
        here = (parts != P).float()
        layer = (here[:, :, None] * here[:, None, :] / here.sum(dim=1)[:, None, None])[:, None]
        return Attended((layer, layer), states * here[:, :, None], parts, index.masked_fill(here == 0, -1))


class Says:
    """Writes what a function makes of the tags that are present; less sure the fewer regions there are."""

    def __init__(self, text_of: Callable[[list[str]], str]) -> None:
        self.text_of, self.most, self.levels = text_of, 0, set[str | None]()

    def write(
        self, images: Sequence[TaggedRegions], level: str | None = None, how: GenerationConfig = BEAM
    ) -> list[Written]:
        self.most = max(self.most, len(images))
        self.levels.add(level)
        texts = []
        for one in images:
            tags = [tag for tag, here in zip(one.tags, one.tag_present, strict=True) if here]
            score = -1.0 / (1 + int(one.region_present.sum()))
            texts.append(Written(self.text_of(tags), score, (score,)))
        return texts
