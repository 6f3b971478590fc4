"""Whether the embedded model still says the same: what it says of 50 photos, written down and compared.

    python -m bench.same_captions PHOTOS before.json
    python -m bench.same_captions PHOTOS after.json --compare before.json

PHOTOS: a folder with COCO's validation photos, by their twelve digits. The photos are the first 50 of the build's
validation list that are there. Numbers are compared within 0.001, everything else exactly.
"""

from __future__ import annotations

import argparse
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch

import saywhere as sw

PHOTOS = 50
BOXES = ((0.0, 0.0, 0.5, 0.5), (0.5, 0.0, 1.0, 0.5), (0.25, 0.25, 0.75, 0.75), (0.1, 0.5, 0.9, 1.0))
SENTENCE = "a person stands beside a table with a cup on the left"
QUESTIONS = ("How many people are there?", "Is there a dog?")
MIDDLE = sw.Point(0.5, 0.5)
CLOSE = 0.001


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("photos", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--most", type=int, default=PHOTOS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    said = {name: _said(path) for name, path in _photos(chosen.photos)[: chosen.most]}
    chosen.out.write_text(json.dumps(said, indent=1))
    if chosen.compare:
        before = json.loads(chosen.compare.read_text())
        changes = [line for name in said for line in _changes(before[name], said[name], name)]
        print("\n".join(changes))
        print(f"{len(said)} photos, {len(changes)} differences")


def _photos(folder: Path) -> list[tuple[str, Path]]:
    names = (files("saywhere.build") / "validation_photos.txt").read_text().split()
    there = {path.stem: path for path in folder.iterdir()}
    return [(name, there[name]) for name in names if name in there][:PHOTOS]


_SEER = sw.load()


def _said(path: Path) -> dict[str, Any]:
    look = _SEER.look(path)
    captions = look.captions([sw.WholeImage(), *(sw.Box(*box) for box in BOXES)])
    grounded = look.grounded(SENTENCE)
    answers = [look.answer(question) for question in QUESTIONS] + [look.answer("What is this?", MIDDLE)]
    return {
        "captions": [_caption(one) for one in captions],
        "levels": [_caption(look.caption(level=level)) for level in look.levels[1:]],
        "ground": np.round(np.nan_to_num(grounded.boxes.boxes_xyxy, nan=-1), 4).tolist(),
        "trace": look.ground(SENTENCE).trace.points.round(3).tolist()[:20],
        "answers": [[one.text, round(one.probability, 4)] for one in answers],
        "scene": _caption(look.scene()),
        "narrate": look.narrate().caption,
    }


def _caption(one: Any) -> list[Any]:
    nearest = [near.sentence for near in one.nearest]
    return [str(one), round(one.score, 4), round(one.similarity, 4), one.sure, nearest]


def _changes(before: Any, after: Any, where: str) -> list[str]:
    if isinstance(before, dict):
        return [line for key in before for line in _changes(before[key], after[key], f"{where} {key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [line for n, (one, other) in enumerate(pairs) for line in _changes(one, other, f"{where} {n}")]
    if isinstance(before, float) and isinstance(after, float) and abs(before - after) <= CLOSE:
        return []
    return [] if before == after else [f"{where}: {before!r} → {after!r}"]


if __name__ == "__main__":
    main()
