"""COCO results, what a model hands in for scoring: one JSON list.

    captions    [{"image_id", "caption"}]
    detections  [{"image_id", "category_id", "score", "bbox": [x, y, width, height],
                "segmentation": {"size": [height, width], "counts"}}], with a box, a mask or both, in pixels

One value for each item, in the file's order; captions and detections may stand in one list. Results do not carry the
image's size, so their boxes stay in pixels. A caption may be empty: a model may have nothing to say. A "bbox" of no
numbers, as some tools write beside a mask, counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats._boxes import BoxXywh, BoxXyxy, check_box, xyxy
from saywhere.formats._documents import Id, built, decoded, document, encoded, item_keys
from saywhere.formats._masks import RunLengths, RunLengthsEntry
from saywhere.formats.record import InvalidRecord

__all__ = ["CaptionResult", "DetectionResult", "RunLengths", "read", "sniff", "write"]


@dataclass(frozen=True, slots=True)
class CaptionResult:
    """What a model said about one image."""

    image_id: int | str
    caption: str


@dataclass(frozen=True, slots=True)
class DetectionResult:
    """What a model found in one image. box_xywh_px: left, top, width, height in pixels. score: larger is surer."""

    image_id: int | str
    category_id: int | str
    score: float
    box_xywh_px: BoxXywh | None = None
    segmentation: RunLengths | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise InvalidValue("the score", f"is {self.score}")
        if self.box_xywh_px is None and self.segmentation is None:
            raise InvalidValue("the detection", "has neither a box nor a mask")
        if self.box_xywh_px is not None:
            check_box(xyxy(self.box_xywh_px))

    @property
    def box_xyxy_px(self) -> BoxXyxy:
        """Left, top, right, bottom in pixels."""
        if self.box_xywh_px is None:
            raise InvalidValue("the detection", "has no box", "use its segmentation")
        return xyxy(self.box_xywh_px)


class _Result(msgspec.Struct, frozen=True, gc=False):
    image_id: Id
    caption: str | None = None
    category_id: Id | None = None
    score: float | None = None
    bbox: list[float] | None = None
    segmentation: RunLengthsEntry | None = None


_RESULT = msgspec.json.Decoder(_Result)


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the file is a list of captions or scored detections."""
    keys = item_keys(head)
    return "image_id" in keys and ("caption" in keys or keys >= {"category_id", "score"}) and "question_id" not in keys


def read(path: str | Path) -> Iterator[CaptionResult | DetectionResult | InvalidRecord]:
    """One value for each item of the list."""
    root = document(path)
    if root.kind != "list":
        raise InvalidFile(path, "should be a list of results, not an object")
    yield from built(decoded(root.items(), _RESULT), _result)


def write(path: str | Path, values: Iterable[CaptionResult | DetectionResult]) -> int:
    """Write the list, atomically; how many results there were."""
    results = list(values)
    with write_atomic(path) as file:
        file.write(encoded([_entry(value) for value in results]))
    return len(results)


def _result(entry: _Result) -> CaptionResult | DetectionResult:
    if entry.caption is not None:
        if entry.score is not None or entry.bbox is not None or entry.segmentation is not None:
            raise InvalidValue("the result", "is a caption and a detection at once")
        return CaptionResult(entry.image_id, entry.caption)
    if entry.category_id is None or entry.score is None:
        raise InvalidValue("the result", "has neither a caption nor both category_id and score")
    if entry.bbox and len(entry.bbox) != 4:
        raise InvalidValue("the box", f"has {len(entry.bbox)} numbers, not 4")
    box = (entry.bbox[0], entry.bbox[1], entry.bbox[2], entry.bbox[3]) if entry.bbox else None
    mask = entry.segmentation.value() if entry.segmentation else None
    return DetectionResult(entry.image_id, entry.category_id, entry.score, box, mask)


def _entry(value: CaptionResult | DetectionResult) -> dict[str, Any]:
    if isinstance(value, CaptionResult):
        return {"image_id": value.image_id, "caption": value.caption}
    entry: dict[str, Any] = {"image_id": value.image_id, "category_id": value.category_id}
    if value.box_xywh_px is not None:
        entry["bbox"] = value.box_xywh_px
    if value.segmentation is not None:
        entry["segmentation"] = {"size": value.segmentation.size_hw, "counts": value.segmentation.counts}
    return entry | {"score": value.score}
