"""Many images, some at a time: what every analysis of attention, captions and states runs on, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Progress
from saywhere.models.attended import Attended, Attending
from saywhere.models.tagged_regions import TaggedRegions

ImageOf = Callable[[str], TaggedRegions]
"""Gives an image by its name, when it is needed. Of a dict: `images.__getitem__`."""

"""Told after each round how many images are done, and of how many."""

ROUND = 16
"""Images that are held at once, unless told otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """Some images by name, and what a model attended to in them, in the same order."""

    ids: tuple[str, ...]
    images: tuple[TaggedRegions, ...]
    attended: Attended


def rounds(ids: Sequence[str], size: int = ROUND) -> Iterator[tuple[str, ...]]:
    """The names, at most so many at a time, in their order."""
    if size < 1:
        raise InvalidValue("images at once", f"{size} is not at least 1")
    for first in range(0, len(ids), size):
        yield tuple(ids[first : first + size])


def attend_rounds(
    model: Attending,
    ids: Sequence[str],
    image_of: ImageOf,
    *,
    batch: int = ROUND,
    progress: Progress | None = None,
) -> Iterator[Round]:
    """What a model attends to in each image, `batch` of them at a time and without gradients."""
    done = 0
    for some in rounds(ids, batch):
        images = tuple(image_of(name) for name in some)
        with torch.no_grad():
            attended = model.attend(images)
        if len(attended.parts) != len(images):
            raise InvalidValue("attention", f"is of {len(attended.parts)} images, but {len(images)} were asked about")
        yield Round(some, images, attended)
        done += len(some)
        if progress is not None:
            progress("reading attention", done, len(ids))
