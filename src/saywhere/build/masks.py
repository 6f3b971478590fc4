"""Masks to learn from: MobileSAM, told the true boxes of a store of COCO's photos, as a store of its own.

A row for each photo, by the same key:

file          JSON, the photo's name
boxes_xyxy    float32 (n, 4), fractions of the photo: what SAM was told
classes       int16 (n,), places in COCO_CLASSES
masks         JSON [{size: [rows, columns], counts}], COCO's plain run lengths; null where SAM found nothing
scores        float32 (n,), the IoU that SAM expects of its masks
expressions   JSON [[text]], what people call each thing, where they were asked
split         JSON "train" or "validation", of the photo

`write_mask_instructions` makes of it what TraceVLM's recipes read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.build.coco import KIND as COCO
from saywhere.core import Box, InvalidFile, InvalidValue
from saywhere.core.run_lengths import runs_of
from saywhere.core.types import Floats32, Progress
from saywhere.store import Row, Store, StoreWriter
from saywhere.vision.segmenter import CutOut, Segmenter

KIND = "masks"
FIELDS = {
    **{"file": "json", "boxes_xyxy": "float32", "classes": "int16", "masks": "json", "scores": "float32"},
    **{"expressions": "json", "split": "json"},
}
# What a run that is killed loses at most: some fifty photos, about a minute.
_SHARD_BYTES = 1 << 18
_SAME = 0.01
"""Corners of an expression's box and of the thing's differ by less, in fractions of the photo."""


@dataclass(frozen=True, slots=True)
class MaskSettings:
    """Which boxes. most: of a photo, those with expressions first, then the largest. least_area: of a box, as a share
    of the photo. expressions: only photos of which people were asked for expressions."""

    most: int = 8
    least_area: float = 0.005
    expressions: bool = False

    def __post_init__(self) -> None:
        if self.most < 1 or not 0 <= self.least_area < 1:
            raise InvalidValue("MaskSettings", f"needs at least one box and an area within [0, 1), not {self}")


@dataclass(frozen=True, slots=True)
class BuiltMasks:
    """photos, masks: in the store. empty: boxes in which SAM found nothing. bad: photos that cannot be read."""

    photos: int
    masks: int
    empty: int
    bad: int


def build_masks(
    photos: Store, out: Path, segmenter: Segmenter, settings: MaskSettings, progress: Progress, limit: int | None = None
) -> BuiltMasks:
    """Write the store, or go on with it. limit: the first so many photos that have such boxes."""
    if photos.kind != COCO:
        raise InvalidFile(photos.folder, f"holds {photos.kind}, not {COCO}", "saywhere build coco makes one")
    about = {"photos": photos.fingerprint, **segmenter.fingerprint, **asdict(settings)}
    counts: Counter[str] = Counter()
    with StoreWriter(out, KIND, FIELDS, about, shard_bytes=_SHARD_BYTES) as writer:
        for number, (row, boxes) in enumerate(_wanted(photos, settings, limit), 1):
            if row.key not in writer:
                try:
                    seen = segmenter.look(row["jpeg"])
                except InvalidValue:
                    counts["bad"] += 1
                    continue
                found = seen.cut_outs([Box(*box) for box in boxes.boxes_xyxy.tolist()])
                writer.add(row.key, **_values(row, boxes, found))
            progress("cutting out", number, limit or len(photos))
    made = Store(out, KIND)
    for row in made:
        counts.update("empty" if mask is None else "masks" for mask in row["masks"])
    if not counts["masks"]:
        raise InvalidFile(photos.folder, "has no photo with a box to cut out", "set a smaller least area")
    return BuiltMasks(len(made), counts["masks"], counts["empty"], counts["bad"])


@dataclass(frozen=True, slots=True, eq=False)
class _Boxes:
    """Of one photo. boxes_xyxy: (n, 4). expressions: of each box."""

    boxes_xyxy: Floats32
    classes: list[int]
    expressions: list[list[str]]


def _wanted(photos: Store, settings: MaskSettings, limit: int | None) -> Iterator[tuple[Row, _Boxes]]:
    """Photos with the boxes that are to be cut out of them."""
    taken = 0
    for row in photos:
        if taken == limit:
            return
        boxes = _boxes(row, settings)
        if len(boxes.classes) and (any(boxes.expressions) or not settings.expressions):
            taken += 1
            yield row, boxes


def _boxes(row: Mapping[str, Any], settings: MaskSettings) -> _Boxes:
    given = row["boxes_xyxy"]
    corners: list[list[float]] = [] if given is None else np.clip(given, 0, 1).tolist()
    classes: list[int] = [] if given is None else row["classes"].tolist()
    said: list[list[str]] = [[] for _ in corners]
    for one in row["referring"] or ():
        near = [np.abs(np.subtract(one["box_xyxy"], box)).max() for box in corners]
        if near and min(near) < _SAME:
            said[int(np.argmin(near))].append(one["expression"])
        else:
            corners.append(np.clip(one["box_xyxy"], 0, 1).tolist())
            classes.append(one["class"])
            said.append([one["expression"]])
    areas = [(right - left) * (bottom - top) for left, top, right, bottom in corners]
    large = [number for number, area in enumerate(areas) if area >= max(settings.least_area, 1e-9)]
    chosen = sorted(large, key=lambda number: (not said[number], -areas[number]))[: settings.most]
    return _Boxes(
        np.array([corners[n] for n in chosen], dtype=np.float32).reshape(-1, 4),
        [classes[n] for n in chosen],
        [said[n] for n in chosen],
    )


def _values(row: Row, boxes: _Boxes, found: list[CutOut]) -> dict[str, Any]:
    masks = [{"size": one.inside.shape, "counts": runs_of(one.inside)} if one.inside.any() else None for one in found]
    return {
        "file": f"{row.key}.jpg",
        "boxes_xyxy": boxes.boxes_xyxy,
        "classes": boxes.classes,
        "masks": masks,
        "scores": [one.score for one in found],
        "expressions": boxes.expressions,
        "split": row["split"],
    }
