"""Masks from boxes, points, traces and phrases, against the polygons that people drew of COCO's things."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from rich.progress import track
from scipy.ndimage import distance_transform_edt

import saywhere
from saywhere.core import Box, Point, Region, Trace
from saywhere.core.types import Bools, Floats
from saywhere.formats import coco_instances
from saywhere.formats.coco_instances import Instance
from saywhere.metrics import mask_iou
from saywhere.metrics.referring import CIoU, GIoU
from saywhere.models.patchioner.look import SeerLook
from saywhere.vision import read_photo
from saywhere.vision.segmenter import open_segmenter

Row = tuple[str, str, str, bool]
Made = TypeVar("Made")
SHARED = Path(os.environ.get("SAYWHERE_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data" / "coco_val"
_STEP_S = 0.05
_LARGE = 0.01
"""Of the photo's area."""


class Scored:
    """Pairs of masks, and what they come to."""

    def __init__(self) -> None:
        self.large, self.ious, self.cumulative, self.mean = list[bool](), list[float](), CIoU(), GIoU()

    def add(self, guess: Bools, truth: Bools) -> None:
        self.ious.append(mask_iou(guess, truth))
        self.large.append(bool(truth.mean() >= _LARGE))
        self.cumulative.update([guess], [truth])
        self.mean.update([guess], [truth])

    def __str__(self) -> str:
        ious = np.array(self.ious)
        large = f"{ious[self.large].mean():.3f} of things above {_LARGE:.0%} of the photo"
        return (
            f"gIoU {self.mean.compute():.3f} ({large}), cIoU {self.cumulative.compute():.3f}, "
            f"P@0.5 {(ious >= 0.5).mean():.3f}, {len(ious)} masks"
        )


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    torch.set_num_threads(1)
    segmenter, seer = open_segmenter(), saywhere.load()
    scores: dict[str, Scored] = defaultdict(Scored)
    seconds: dict[str, list[float]] = defaultdict(list)
    photos = _photos()
    for image_id, instances in track(photos.items(), "cutting out"):
        image = read_photo(SHARED / "photos" / f"{int(image_id):012d}.webp")
        truths = [one.mask(image.height, image.width) for one in instances]
        seen, took_s = _timed(partial(segmenter.look, image))
        seconds["look"].append(took_s)
        for kind, regions in _regions(instances, truths).items():
            found, took_s = _timed(partial(seen.cut_outs, regions))
            seconds[kind].append(took_s / len(regions))
            for cut, truth in zip(found, truths, strict=True):
                scores[kind].add(cut.inside, truth)
        for one, truth in zip(instances, truths, strict=True):
            scores["the box itself"].add(_filled(one.box_xyxy, truth.shape), truth)
        _phrases(scores, seer.look(image), instances, truths)
    return _rows(scores, seconds, _torch_s())


def _rows(scores: dict[str, Scored], seconds: dict[str, list[float]], torch_s: float) -> list[Row]:
    box, phrase = (scores[name].mean.compute() for name in ("the box itself", "the phrase's box itself"))
    held = {
        "true box": ("gIoU above the box itself", scores["true box"].mean.compute() > box),
        "phrase": ("gIoU above the phrase's box itself", scores["phrase"].mean.compute() > phrase),
    }
    rows = [(f"mask from: {kind}", str(one), *held.get(kind, ("none", True))) for kind, one in scores.items()]
    look_s = float(np.median(seconds["look"]))
    rows.append(("a look, one thread", f"{look_s:.2f} s by OpenVINO, {torch_s:.2f} s by torch", "none", True))
    each_ms = 1000 * float(np.median(seconds["true box"]))
    return [*rows, ("a mask from a box after it", f"{each_ms:.0f} ms", "none", True)]


def _photos() -> dict[int | str, list[Instance]]:
    """Things with outlines, by photo; groups marked as one are left out."""
    found: dict[int | str, list[Instance]] = defaultdict(list)
    for one in coco_instances.read(SHARED / "instances_subset.json"):
        if isinstance(one, Instance) and isinstance(one.segmentation, tuple) and not one.iscrowd:
            found[one.image_id].append(one)
    return found


def _regions(instances: Sequence[Instance], truths: Sequence[Bools]) -> dict[str, list[Region]]:
    return {
        "true box": [Box(*one.box_xyxy) for one in instances],
        "point deepest inside": [Point(*_deepest(truth)) for truth in truths],
        "trace along the true outline": [_around(one) for one in instances],
        "trace across, at half its breadth": [_across(truth) for truth in truths],
    }


def _deepest(truth: Bools) -> tuple[float, float]:
    row, col = np.unravel_index(distance_transform_edt(np.pad(truth, 1)).argmax(), np.add(truth.shape, 2))
    return (col - 0.5) / truth.shape[1], (row - 0.5) / truth.shape[0]


def _around(instance: Instance) -> Trace:
    polygon = max(instance.segmentation or (), key=len)
    points = np.reshape(polygon, (-1, 2)) / (instance.width, instance.height)
    return _drawn(np.clip(np.concatenate([points, points[:1]]), 0, 1))


def _across(truth: Bools) -> Trace:
    """From side to side, at each column half way between the thing's upper and lower edge there."""
    cols = np.flatnonzero(truth.any(axis=0))
    if not len(cols):
        return _drawn(np.array([[0.5, 0.5]]))
    rows = [np.flatnonzero(truth[:, col]) for col in cols]
    middle = [(some[0] + some[-1] + 1) / 2 for some in rows]
    return _drawn(np.column_stack([(cols + 0.5) / truth.shape[1], np.array(middle) / truth.shape[0]]))


def _drawn(points_xy: Floats) -> Trace:
    return Trace(np.column_stack([points_xy, _STEP_S * np.arange(len(points_xy))]))


def _filled(box_xyxy: Sequence[float], shape: tuple[int, ...]) -> Bools:
    height, width = shape
    left, top, right, bottom = np.round(np.multiply(box_xyxy, (width, height, width, height))).astype(int)
    filled = np.zeros(shape, dtype=bool)
    filled[max(top, 0) : bottom, max(left, 0) : right] = True
    return filled


def _phrases(scores: dict[str, Scored], look: object, instances: Sequence[Instance], truths: Sequence[Bools]) -> None:
    """The names of classes that a photo has one thing of: found, then cut out. What is not found is an empty mask."""
    if not isinstance(look, SeerLook):
        raise TypeError("the embedded model is a seer")
    count = Counter(one.category for one in instances)
    for one, truth in zip(instances, truths, strict=True):
        if count[one.category] > 1:
            continue
        place = look.find(one.category)
        empty = np.zeros_like(truth)
        box = empty if place is None else _filled(place.box_xyxy, truth.shape)
        scores["the phrase's box itself"].add(box, truth)
        scores["phrase"].add(empty if place is None else look.segment(Box(*place.box_xyxy)).values > 0, truth)


def _timed(work: Callable[[], Made]) -> tuple[Made, float]:
    began = time.process_time()
    made = work()
    return made, time.process_time() - began


def _torch_s() -> float:
    image = read_photo(saywhere.assets.fetch("sample-photos") / "coffee.png")
    by_torch = open_segmenter("torch")
    return min(_timed(lambda: by_torch.look(image))[1] for _ in range(3))
