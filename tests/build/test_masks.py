"""From a COCO store to masks and to instructions: rows, resumption, photos that are none, what is pointed at."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saywhere.build.coco import FIELDS, KIND
from saywhere.build.mask_instructions import POINTING, pointed_at, write_mask_instructions
from saywhere.build.masks import MaskSettings, build_masks
from saywhere.core import Mask
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.run_lengths import mask_of_runs
from saywhere.models.tracevlm.examples import Instruction, InstructionFile, SegmentTarget
from saywhere.store import Store, StoreWriter
from saywhere.vision.segmenter import CutOut, Segmenter, SegmenterView
from tests.vision.small_sam import small_segmenter

CAT, DOG = 15, 16
LEFT, RIGHT, TINY = (0.0, 0.0, 0.5, 1.0), (0.5, 0.25, 1.0, 1.0), (0.0, 0.0, 0.05, 0.05)


def jpeg(seed: int) -> bytes:
    file = BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def _row(number: int) -> dict[str, Any]:
    said = {"split": "val", "class": CAT, "box_xyxy": [0.002, 0, 0.5, 1], "expression": "left one"}
    other = {"split": "val", "class": DOG, "box_xyxy": [0.1, 0.1, 0.9, 0.9], "expression": "the dog"}
    return {
        **{"jpeg": b"no picture" if number == 2 else jpeg(number), "width": 40, "height": 30},
        "boxes_xyxy": np.array([TINY, RIGHT, LEFT], np.float32) if number != 4 else np.empty((0, 4), np.float32),
        "classes": [DOG, CAT, CAT] if number != 4 else [],
        "referring": [said, other] if number == 1 else None,
        "split": "validation" if number == 3 else "train",
    }


@pytest.fixture
def coco(tmp_path: Path) -> Store:
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as writer:
        for number in range(6):
            row = dict.fromkeys(FIELDS) | _row(number)
            writer.add(f"{number:012}", **row)
    return Store(tmp_path / "coco")


class _Filled(Segmenter):
    """Fills the box, or finds nothing in the right half; and counts its looks."""

    looks = 0

    def look(self, photo: Any) -> SegmenterView:
        self.looks += 1
        seen = super().look(photo)
        seen.cut_outs = lambda regions: [self._filled(region) for region in regions]  # type: ignore[method-assign]
        return seen

    def _filled(self, region: Any) -> CutOut:
        inside = np.zeros((30, 40), dtype=bool)
        x1, y1, x2, y2 = np.multiply(region.xyxy, (40, 30, 40, 30)).round().astype(int)
        if x1 < 20:
            inside[y1:y2, x1:x2] = True
        return CutOut(inside, 0.25 + region.x2 / 2, ())


@pytest.fixture
def filled() -> _Filled:
    small = small_segmenter()
    return _Filled(small.run, small.sam, small.input_px, "filled")


def quiet(stage: str, done: int, total: int) -> None:
    assert 0 <= done <= total


def test_a_photo_becomes_its_masks_named_boxes_first_then_the_largest(
    coco: Store, filled: _Filled, tmp_path: Path
) -> None:
    made = build_masks(coco, tmp_path / "masks", filled, MaskSettings(), quiet)
    assert (made.photos, made.masks, made.empty, made.bad) == (4, 4 + 1, 4, 1)
    store = Store(tmp_path / "masks", "masks")
    assert [row.key for row in store] == [f"{number:012}" for number in (0, 1, 3, 5)]
    row = store[1]
    np.testing.assert_allclose(row["boxes_xyxy"], [(0.1, 0.1, 0.9, 0.9), LEFT, RIGHT], atol=1e-6)
    assert row["classes"].tolist() == [DOG, CAT, CAT]
    assert row["expressions"] == [["the dog"], ["left one"], []]
    assert row["masks"][2] is None
    inside = mask_of_runs(row["masks"][1]["counts"], *row["masks"][1]["size"])
    assert inside[:, :20].all()
    assert not inside[:, 20:].any()
    assert row["scores"].tolist() == pytest.approx([0.7, 0.5, 0.75])
    assert (row["file"], store[2]["split"]) == ("000000000001.jpg", "validation")


def test_a_run_goes_on_where_it_was_stopped_with_the_same_bytes_in_the_end(
    coco: Store, filled: _Filled, tmp_path: Path
) -> None:
    build_masks(coco, tmp_path / "whole", filled, MaskSettings(), quiet)
    looked, filled.looks = filled.looks, 0
    build_masks(coco, tmp_path / "parts", filled, MaskSettings(), quiet, limit=2)
    assert filled.looks == 2

    def stopped(stage: str, done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_masks(coco, tmp_path / "parts", filled, MaskSettings(), stopped)
    build_masks(coco, tmp_path / "parts", filled, MaskSettings(), quiet)
    # The bad photo is tried each time; every other one is looked at once.
    assert filled.looks == looked + 1
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert all((tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes() for name in names)


def test_only_photos_with_expressions_and_few_boxes_if_so_asked(coco: Store, filled: _Filled, tmp_path: Path) -> None:
    made = build_masks(coco, tmp_path / "masks", filled, MaskSettings(most=1, expressions=True), quiet)
    assert (made.photos, made.masks) == (1, 1)
    with pytest.raises(InvalidFile, match="no photo with a box to cut out"):
        build_masks(coco, tmp_path / "none", filled, MaskSettings(least_area=0.9), quiet)
    with pytest.raises(InvalidValue, match="at least one box"):
        MaskSettings(most=0)
    masks = Store(tmp_path / "masks")
    with pytest.raises(InvalidFile, match="holds masks, not coco"):
        build_masks(masks, tmp_path / "other", filled, MaskSettings(), quiet)


def test_instructions_point_and_name_and_keep_the_split(coco: Store, filled: _Filled, tmp_path: Path) -> None:
    build_masks(coco, tmp_path / "masks", filled, MaskSettings(), quiet)
    store = Store(tmp_path / "masks")
    counts = write_mask_instructions(store, tmp_path / "out", quiet)
    # Of two cats neither is "the cat".
    assert counts == {"segment, train": 4, "mask, train": 2, "segment, validation": 1}
    train: list[Instruction] = list(InstructionFile(tmp_path / "out" / "train.jsonl"))
    [named] = [one for one in train if one.task == "mask" and one.turns[0].parts[1] == "left one"]
    [target] = named.turns[1].parts
    assert isinstance(target, SegmentTarget)
    assert isinstance(target.mask, Mask)
    assert target.mask.values[:, :20].all()
    assert named.images == ("000000000001.jpg",)
    assert len(InstructionFile(tmp_path / "out" / "validation.jsonl")) == 1
    again = tmp_path / "again"
    write_mask_instructions(store, again, quiet)
    assert (again / "train.jsonl").read_bytes() == (tmp_path / "out" / "train.jsonl").read_bytes()
    surer = write_mask_instructions(store, again, quiet, least_score=0.6)
    assert surer == {"segment, train": 1, "mask, train": 1}
    assert (again / "train.jsonl").read_text() in (tmp_path / "out" / "train.jsonl").read_text()


@pytest.mark.parametrize("kind", POINTING)
@pytest.mark.parametrize("seed", range(5))
def test_simulated_pointing_is_on_or_around_the_thing(kind: str, seed: int) -> None:
    inside = np.zeros((20, 40), dtype=bool)
    inside[5:15, 10:30] = True
    trace = pointed_at(inside, (0.25, 0.25, 0.75, 0.75), kind, np.random.default_rng(seed)).trace
    assert len(trace) == {"point": 1, "stroke": 5, "circle": 24}.get(kind, len(trace))
    away = np.abs(trace.xy - 0.5) / 0.25
    if kind in ("point", "stroke"):
        assert (away < 1).all()
        assert (np.diff(trace.xy[:, 0]) >= 0).all() or (np.diff(trace.xy[:, 1]) >= 0).all()
    elif kind == "circle":
        assert np.hypot(*away.T) == pytest.approx(np.hypot(*away[0]))
        assert 0.85 <= np.hypot(*away[0]) <= 1.1
    else:
        np.testing.assert_allclose(away.max(axis=1), 1)
