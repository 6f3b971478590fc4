"""Human importance of regions or patches: E_in / (E_in + E_out), from whatever says where people look (HINT, Eq. 1).

Maps are made by `AttentionMap` (of a trace's dwell, fixations, boxes, masks) and by `saywhere.formats.hat`; here are
those of several people and of the words of a caption, and the step from maps to regions, one or many at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core._arrays import Bools, owned
from saywhere.core.attention import DEFAULT_SHAPE, AttentionMap
from saywhere.core.errors import InvalidValue
from saywhere.core.frame import Frame
from saywhere.core.types import Floats

_SHAPE_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that could not be used: whose it is, and what is wrong with it."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True, eq=False)
class HumanImportances:
    """The importances of many images' regions, and what was wrong.

    values: by name, (r,) in [0, 1], NaN for regions without area. refused: items whose map or regions are useless; each
    name given is in one of the two. without_area: regions that got NaN, one entry each.
    """

    values: dict[str, Floats]
    refused: tuple[Refused, ...]
    without_area: tuple[Refused, ...]

    @property
    def counts(self) -> dict[str, int]:
        """For reports."""
        return {
            "used": len(self.values),
            "refused": len(self.refused),
            "regions without area": len(self.without_area),
        }


def human_importance(
    attention: AttentionMap | ArrayLike, where: Frame | ArrayLike, photo_size: tuple[int, int] | None = None
) -> Floats:
    """(r,) in [0, 1] how much people look at each region; ½ is "as much as elsewhere".

    attention: a map over the whole image, (h, w) in any resolution. where: (r, 4) boxes xyxy, fractions of the image;
    or a Frame, then row by row its patches: those that show only padding get NaN. photo_size: width and height; a map
    of another shape than the photo's, by more than a twentieth, is refused. Not known: any shape will do.
    Refused with InvalidValue: a map that is empty, negative, zero everywhere or holds NaN, and a box without area.
    """
    seen = _map(attention, photo_size)
    if not isinstance(where, Frame):
        return seen.importance(where)
    return _where_area(seen, patch_boxes(where))[0]


def human_importances(
    maps: Mapping[str, AttentionMap | ArrayLike],
    where: Mapping[str, Frame | ArrayLike],
    photo_sizes: Mapping[str, tuple[int, int]] | None = None,
) -> HumanImportances:
    """`human_importance` of many images by name; what is wrong is named and counted, not the end of the run.

    A box without area gets NaN, which no hint is drawn from; the other boxes of its image keep theirs.
    """
    values: dict[str, Floats] = {}
    refused: list[Refused] = []
    without: list[Refused] = []
    for name, attention in maps.items():
        if name not in where:
            refused.append(Refused(name, "there are no regions of this name"))
            continue
        try:
            seen = _map(attention, None if photo_sizes is None else photo_sizes.get(name))
            regions = where[name]
            boxes = patch_boxes(regions) if isinstance(regions, Frame) else owned(regions, "regions", (None, 4))
            importance, has_area = _where_area(seen, boxes)
        except InvalidValue as error:
            refused.append(Refused(name, f"{error.what} {error.reason}"))
            continue
        if not has_area.any():
            refused.append(Refused(name, "no region has an area on the image"))
            continue
        values[name] = importance
        if not isinstance(regions, Frame):
            without += [Refused(name, f"region {i} has no area on the image") for i in np.flatnonzero(~has_area)]
    return HumanImportances(values, tuple(refused), tuple(without))


def patch_boxes(frame: Frame) -> Floats:
    """(rows · cols, 4) the patches of a frame, row by row, as boxes xyxy on the photo; padding has no area."""
    x, y = (np.clip(edges, 0, 1) for edges in frame.cell_edges())
    left, top = np.meshgrid(x[:-1], y[:-1])
    right, bottom = np.meshgrid(x[1:], y[1:])
    boxes: Floats = np.stack([left, top, right, bottom], axis=-1).reshape(-1, 4)
    return boxes


def mean_attention(maps: Sequence[AttentionMap], shape: tuple[int, int] = DEFAULT_SHAPE) -> AttentionMap:
    """Where several people look, each counting the same however bright their map is."""
    if not maps:
        raise InvalidValue("attention maps", "there is none to take the mean of")
    densities: list[Floats] = [one.resized(shape).density for one in maps]
    return AttentionMap(np.mean(densities, axis=0))


def word_attention(
    words: Sequence[str],
    class_of: Mapping[str, str],
    masks: Mapping[str, Sequence[ArrayLike]],
    shape: tuple[int, int] = DEFAULT_SHAPE,
) -> dict[int, AttentionMap]:
    """For each visual word, by its place in `words`: where the things it names are.

    class_of: the class of a visual word. masks: by class, (h, w) masks over the image. Words that name nothing, or
    nothing that is masked in this image, are left out; so is a class whose masks are all empty.
    """
    by_class = {name: AttentionMap.from_masks(found, shape) for name, found in masks.items() if _any_inside(found)}
    named = {place: class_of[word] for place, word in enumerate(words) if word in class_of}
    return {place: by_class[name] for place, name in named.items() if name in by_class}


def _any_inside(masks: Sequence[ArrayLike]) -> bool:
    return any(np.asarray(mask).any() for mask in masks)


def _map(attention: AttentionMap | ArrayLike, photo_size: tuple[int, int] | None) -> AttentionMap:
    seen = attention if isinstance(attention, AttentionMap) else AttentionMap(attention)
    if photo_size is not None:
        height, width = seen.values.shape
        ratio = (width / height) / (photo_size[0] / photo_size[1])
        if not 1 / (1 + _SHAPE_TOLERANCE) <= ratio <= 1 + _SHAPE_TOLERANCE:
            reason = f"is {width}×{height}, which is not the shape of a {photo_size[0]}×{photo_size[1]} photo"
            raise InvalidValue("attention map", reason)
    return seen


def _where_area(attention: AttentionMap, boxes_xyxy: Floats) -> tuple[Floats, Bools]:
    """(r,) importances, NaN for boxes without area on the image, and (r,) which boxes have some."""
    clipped = np.clip(boxes_xyxy, 0, 1)
    has_area: Bools = np.all(clipped[:, 2:] > clipped[:, :2], axis=1)
    importance = np.full(len(boxes_xyxy), np.nan)
    if has_area.any():
        importance[has_area] = attention.importance(clipped[has_area])
    return importance, has_area
