"""Masks of a store as TraceVLM learns from them: somebody points at a thing or names it, and it is cut out.

Nobody pointed at these things: the trajectories are simulated, and drawn from the mask alone.

    point    one place, anywhere inside
    stroke   through five places inside, along the longer way
    circle   once round the thing, a little within or without
    box      along its box, as a box that somebody gives becomes a trajectory
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core import Box, Frame, Mask, Point, Trace
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.run_lengths import mask_of_runs
from saywhere.core.types import Bools, Floats, Progress
from saywhere.models.tracevlm.examples import Instruction, SegmentTarget, answered, asked, instruction_line
from saywhere.models.tracevlm.trajectory import Trajectory, of_region
from saywhere.store import Row, Store

FILES = {"train": "train.jsonl", "validation": "validation.jsonl"}
POINTING = ("point", "stroke", "circle", "box")
_STROKE_POINTS, _CIRCLE_POINTS = 5, 24
_RADII = (0.85, 1.1)
_STEP_S = 0.1


def write_mask_instructions(
    masks: Store, folder: Path, progress: Progress, *, seed: int = 0, least_score: float = 0.0
) -> dict[str, int]:
    """train.jsonl and validation.jsonl in `folder`, and how many instructions of each task and split there are.

    Each mask is pointed at once. It is named by each of its expressions; without any, by its class if it is the only
    one of that class among the photo's boxes. least_score: of a mask that is used.
    """
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        files = {split: stack.enter_context(write_atomic(folder / name)) for split, name in FILES.items()}
        for number, row in enumerate(masks, 1):
            rng = np.random.default_rng([seed, *row.key.encode()])
            for one in _instructions(row, rng, least_score):
                files[row["split"]].write(instruction_line(one))
                counts[f"{one.task}, {row['split']}"] += 1
            progress("instructions", number, len(masks))
    return dict(counts)


def _instructions(row: Row, rng: np.random.Generator, least_score: float) -> Iterator[Instruction]:
    classes = row["classes"].tolist()
    for number, mask in enumerate(row["masks"]):
        # Drawn for every mask, so that leaving one out changes no other.
        kind = POINTING[int(rng.integers(len(POINTING)))]
        own = np.random.default_rng(rng.integers(2**32))
        if mask is None or row["scores"][number] < least_score:
            continue
        inside = mask_of_runs(mask["counts"], *mask["size"])
        target = answered(SegmentTarget(Mask(inside)))
        where = pointed_at(inside, row["boxes_xyxy"][number].tolist(), kind, own)
        name = f"{row.key}#{number}"
        yield Instruction("segment", (row["file"],), (asked("segment", where), target), id=f"{name}-{kind}")
        only = classes.count(classes[number]) == 1
        texts = row["expressions"][number] or ([f"the {COCO_CLASSES[classes[number]]}"] if only else [])
        for place, text in enumerate(texts):
            yield Instruction("mask", (row["file"],), (asked("mask", text), target), id=f"{name}-said-{place}")


def pointed_at(inside: Bools, box_xyxy: Any, kind: str, rng: np.random.Generator) -> Trajectory:
    """A simulated trajectory to a mask (h, w). kind: one of POINTING."""
    height, width = inside.shape
    if kind == "box":
        return _trajectory(of_region(Box(*box_xyxy), Frame.squash((width, height), (width, height), 1)))
    if kind == "circle":
        return Trajectory(_drawn(_circle(inside, rng)))
    places = rng.integers(np.count_nonzero(inside), size=1 if kind == "point" else _STROKE_POINTS)
    rows, cols = (axis[places] for axis in np.nonzero(inside))
    points = np.column_stack([(cols + 0.5) / width, (rows + 0.5) / height])
    if kind == "point":
        return _trajectory(of_region(Point(*points[0]), Frame.of_grid(1, 1)))
    longer = int(np.ptp(points[:, 1]) > np.ptp(points[:, 0]))
    return Trajectory(_drawn(points[points[:, longer].argsort()]))


def _circle(inside: Bools, rng: np.random.Generator) -> Floats:
    [corners] = Mask(inside).outlines()
    middle, half = (corners[0] + corners[2]) / 2, (corners[2] - corners[0]) / 2
    turns = 2 * np.pi * (rng.random() + np.linspace(0, 1, _CIRCLE_POINTS))
    around = middle + half * rng.uniform(*_RADII) * np.column_stack([np.cos(turns), np.sin(turns)])
    on_photo: Floats = np.clip(around, 0, 1)
    return on_photo


def _drawn(points_xy: Floats) -> Trace:
    return Trace(np.column_stack([points_xy, _STEP_S * np.arange(len(points_xy))]))


def _trajectory(made: Trajectory | None) -> Trajectory:
    if made is None:
        raise TypeError("only the whole photo is no trajectory")
    return made
