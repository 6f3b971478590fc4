"""Descriptions with the embedded default model: whether what is told is there, whether it comes in the order in which
people look, and whether what is not there has no place.

    python -m bench describe

Needs the shared data folder (SAYWHERE_SHARED): photos and boxes of COCO's val2017, and OSIE. SAYWHERE_BENCH_PHOTOS: of
each, 150 by default.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import numpy as np

import saywhere
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.places import overlap
from saywhere.formats import osie
from saywhere.formats.record import InvalidRecord
from saywhere.language.describing import named
from saywhere.models.face import Model

SHARED = Path(os.environ.get("SAYWHERE_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
PHOTOS = int(os.environ.get("SAYWHERE_BENCH_PHOTOS", "150"))
ABSENT = ("dinosaur", "unicorn", "volcano", "submarine", "crocodile", "pyramid", "windmill")
"""None is in the photos asked about, nor in the referrer's vocabulary."""
Row = tuple[str, str, str, bool]
BoxXyxy = tuple[float, float, float, float]


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    if not SHARED.exists():
        return []
    model = saywhere.load()
    return [*there(model), *ordered(model)]


def there(model: Model) -> list[Row]:
    """Things told that are there, and places of things that are not."""
    boxes = json.loads((SHARED / "coco_val" / "boxes.json").read_text())
    told = fits = 0
    placed: list[bool] = []
    photos = sample(path for path in coco_test_photos() if path.stem in boxes)
    for photo in photos:
        look = model.look(photo)
        truth = [(named(COCO_CLASSES[int(kind)]), _corners(*place)) for kind, *place in boxes[photo.stem]]
        for thing in look.describe().things:
            told += 1
            fits += any(thing.name == name and overlap(thing.box_xyxy, box) >= 0.5 for name, box in truth)
        placed += [bool(look.grounded(f"a big {name}").boxes.located.any()) for name in ABSENT]
    share, wrong = fits / max(1, told), float(np.mean(placed))
    return [
        (
            f"things told that fit a true box, {told} in {len(photos)} test photos",
            f"{share:.1%}",
            "≥ 90 %",
            share >= 0.9,
        ),
        (f"names that are not there and have a place, of {len(placed)}", f"{wrong:.1%}", "≤ 2 %", wrong <= 0.02),
    ]


def ordered(model: Model) -> list[Row]:
    """Pairs of told things in the order in which people first look at them."""
    gazes = defaultdict(list)
    for gaze in osie.read(SHARED / "osie" / "eye" / "fixations.mat"):
        if not isinstance(gaze, InvalidRecord):
            gazes[str(gaze.image_id)].append(gaze.points_xy)
    right: list[bool] = []
    for photo in sample(sorted((SHARED / "osie" / "photos").iterdir())):
        things = [one.box_xyxy for one in model.look(photo).describe().things]
        visits = [float(np.mean([_first_visit(xy, box) for xy in gazes[photo.stem]])) for box in things]
        right += [one < other for one, other in combinations(visits, 2) if abs(one - other) >= 0.5]
    share = float(np.mean(right))
    return [
        (f"pairs of things told in the order of first fixations, {len(right)}", f"{share:.1%}", "> 80 %", share > 0.8)
    ]


def coco_test_photos() -> Iterable[Path]:
    names = files("saywhere.build").joinpath("test_photos.txt").read_text().split()
    paths = (SHARED / "coco_val" / "photos" / f"{name}.webp" for name in names)
    return (path for path in paths if path.exists())


def sample(paths: Iterable[Path]) -> list[Path]:
    found = list(paths)
    return [found[i] for i in np.random.default_rng(0).permutation(len(found))[:PHOTOS]]


def _corners(x: float, y: float, width: float, height: float) -> BoxXyxy:
    return (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _first_visit(xy: np.ndarray, box_xyxy: BoxXyxy) -> int:
    """At which fixation somebody looked at a box; after the last for who never did. The first is where all began."""
    inside = ((xy[1:] >= box_xyxy[:2]) & (xy[1:] <= box_xyxy[2:])).all(axis=1)
    return int(inside.argmax()) if inside.any() else len(xy)
