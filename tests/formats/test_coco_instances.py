from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saywhere.core import Frame, Mask, Polygon
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats import coco_instances
from saywhere.formats.coco_instances import Instance, RunLengths
from saywhere.formats.record import InvalidRecord

BASE = Instance(1, 2, "cat", 17, 40, 30, (4.0, 6.0, 20.0, 12.0), 100.0, ((4.0, 6.0, 24.0, 6.0, 24.0, 18.0),))


def official(path: Path) -> Any:
    """The file in the reference implementation, which prints."""
    from pycocotools.coco import COCO

    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(str(path))


def document(path: Path, annotation: dict[str, object]) -> Path:
    good = {"id": 2, "image_id": 1, "category_id": 17, "bbox": [4, 6, 20, 12], "area": 100}
    content = {
        "images": [{"id": 1, "width": 40, "height": 30}],
        "categories": [{"id": 17, "name": "cat"}],
        "annotations": [good, {k: v for k, v in (good | annotation).items() if v is not None}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools' decoder
def test_real_instances_have_the_masks_boxes_and_areas_of_the_reference(shared: Callable[[str], Path]) -> None:
    path = shared("data/coco_val/instances_subset.json")
    values = list(coco_instances.read(path))
    assert len(values) == 814
    reference = official(path)
    for value in values:
        assert isinstance(value, Instance)
        entry = reference.anns[value.annotation_id]
        np.testing.assert_array_equal(value.mask(), reference.annToMask(entry).astype(bool))
        x, y, width, height = entry["bbox"]
        np.testing.assert_allclose(
            value.box_xyxy,
            [x / value.width, y / value.height, (x + width) / value.width, (y + height) / value.height],
            atol=1e-12,
        )
        assert value.area_share == entry["area"] / (value.width * value.height)
        assert value.category == reference.cats[entry["category_id"]]["name"]
    assert sum(value.iscrowd for value in values if isinstance(value, Instance)) == 8


def test_real_instances_survive_being_written(shared: Callable[[str], Path], tmp_path: Path) -> None:
    path = shared("data/coco_val/instances_subset.json")
    values = [value for value in coco_instances.read(path) if isinstance(value, Instance)]
    assert coco_instances.write(tmp_path / "again.json", values) == 814
    assert list(coco_instances.read(tmp_path / "again.json")) == values
    before, after = official(path), official(tmp_path / "again.json")
    for number, entry in before.anns.items():
        assert {key: after.anns[number][key] for key in entry} == entry


numbers = st.floats(-10, 50, allow_nan=False)
polygons = st.lists(st.tuples(numbers, numbers), min_size=3, max_size=6).map(lambda p: tuple(c for xy in p for c in xy))
runs = st.lists(st.integers(0, 400), max_size=3).map(lambda r: RunLengths((30, 40), (*r, 1200 - sum(r))))
outlines = st.none() | st.lists(polygons, min_size=1, max_size=3).map(tuple) | runs


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(
        st.builds(
            Instance,
            image_id=st.just(1),
            annotation_id=st.integers(0, 99) | st.just("a"),
            category=st.just("cat"),
            category_id=st.just(17),
            width=st.just(40),
            height=st.just(30),
            box_xywh_px=st.tuples(st.floats(0, 39), st.floats(0, 29), st.floats(0.01, 50), st.floats(0.01, 50)),
            area_px=st.floats(0, 1e4),
            segmentation=outlines,
            iscrowd=st.booleans(),
            file_name=st.just("é.jpg"),
            supercategory=st.just("animal"),
        ),
        max_size=4,
    )
)
def test_what_is_written_is_read(values: list[Instance], tmp_path: Path) -> None:
    assert coco_instances.write(tmp_path / "a.json", values) == len(values)
    assert list(coco_instances.read(tmp_path / "a.json")) == values


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_packed_and_plain_run_lengths_are_the_mask_they_were_made_from(
    rows: int, cols: int, data: st.DataObject
) -> None:
    from pycocotools import mask as coco

    flat = data.draw(st.lists(st.booleans(), min_size=rows * cols, max_size=rows * cols))
    mask = np.array(flat).reshape(rows, cols)
    packed = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    down = mask.ravel(order="F").astype(int)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], down]))).tolist()
    counts = np.diff([0, *edges, rows * cols]).tolist()
    for value in (RunLengths((rows, cols), packed["counts"].decode()), RunLengths((rows, cols), tuple(counts))):
        np.testing.assert_array_equal(value.mask(), mask)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=130), max_size=12))
def test_no_text_passes_for_run_lengths_unless_it_fills_the_image(text: str) -> None:
    try:
        value = RunLengths((3, 4), text)
    except InvalidValue:
        return
    assert value.mask().shape == (3, 4)


BAD = [
    ({"bbox": [4, 6, 0, 12]}, "no area"),
    ({"bbox": [4, 6, -3, 12]}, "no area"),
    ({"bbox": [4, 6, 12]}, "bbox"),
    ({"bbox": [50, 6, 12, 3]}, "outside the image"),
    ({"bbox": [1e300, 6, 12, 3]}, "not a place"),
    ({"area": -1}, "area"),
    ({"area": None}, "area"),
    ({"iscrowd": 2}, "iscrowd"),
    ({"image_id": 5}, "image 5 is not listed"),
    ({"category_id": 5}, "category 5 is not listed"),
    ({"segmentation": [[1, 2, 3, 4, 5]]}, "5 numbers"),
    ({"segmentation": [[1, 2, 3, 4]]}, "4 numbers"),
    ({"segmentation": [[1, 2, 3, 4, 5, 6], []]}, "0 numbers"),
    ({"segmentation": [[1, 2, 3, 4, 5, 1e9]]}, "far outside"),
    ({"segmentation": {"size": [30, 41], "counts": [1230]}}, "41 × 30 pixels, the image 40 × 30"),
    ({"segmentation": {"size": [30, 40], "counts": [1, 2]}}, "runs of 3 pixels"),
    ({"segmentation": {"size": [30, 40], "counts": [-5, 1205]}}, "negative"),
    ({"segmentation": {"size": [30, 40], "counts": "\u00e9"}}, "not packed run lengths"),
    ({"segmentation": {"size": [30, 40], "counts": "ooooooooooo"}}, "not packed run lengths"),
    ({"segmentation": {"size": [30, 40], "counts": "o"}}, "ends inside a number"),
    ({"segmentation": {"counts": [1200]}}, "size"),
]


@pytest.mark.parametrize(("annotation", "words"), BAD)
def test_a_bad_annotation_is_a_bad_record_with_its_reason(
    annotation: dict[str, object], words: str, tmp_path: Path
) -> None:
    good, bad = coco_instances.read(document(tmp_path / "i.json", annotation))
    assert isinstance(good, Instance)
    assert isinstance(bad, InvalidRecord)
    assert bad.where.startswith("annotations[1]")
    assert words in f"{bad.where} {bad.reason}"


def test_bad_categories_are_reported_and_come_before_what_they_spoil(tmp_path: Path) -> None:
    content = {
        "images": [{"id": 1, "width": 40, "height": 30}],
        "categories": [{"id": 17}, {"id": 18, "name": "a"}, {"id": 18, "name": "b"}],
        "annotations": [{"id": 2, "image_id": 1, "category_id": 17, "bbox": [4, 6, 20, 12], "area": 100}],
    }
    (tmp_path / "i.json").write_text(json.dumps(content))
    values = list(coco_instances.read(tmp_path / "i.json"))
    assert all(isinstance(value, InvalidRecord) for value in values)
    assert [str(value).split(": ")[1].split(".")[0] for value in values] == [
        "categories[0]",
        "categories[2]",
        "annotations[0]",
    ]
    del content["categories"]
    (tmp_path / "i.json").write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match="categories"):
        list(coco_instances.read(tmp_path / "i.json"))


def test_a_mask_of_another_size_keeps_its_place() -> None:
    box = replace(BASE, segmentation=((10.0, 6.0, 30.0, 6.0, 30.0, 21.0, 10.0, 21.0),))
    runs = RunLengths((30, 40), _packed(box.mask()))
    for value in (box, replace(BASE, segmentation=runs)):
        mask = value.mask(height=60, width=120)
        assert mask.shape == (60, 120)
        ys, xs = np.nonzero(mask)
        np.testing.assert_allclose([xs.min() / 120, (xs.max() + 1) / 120], [10 / 40, 30 / 40], atol=0.02)
        np.testing.assert_allclose([ys.min() / 60, (ys.max() + 1) / 60], [6 / 30, 21 / 30], atol=0.03)
    with pytest.raises(InvalidValue, match="both height and width"):
        box.mask(height=60)


def _packed(mask: np.ndarray[Any, Any]) -> str:
    from pycocotools import mask as coco

    packed: str = coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode()
    return packed


def test_one_outline_is_a_polygon_and_anything_else_a_mask() -> None:
    region = BASE.region()
    assert isinstance(region, Polygon)
    np.testing.assert_allclose(region.points_xy, [[0.1, 0.2], [0.6, 0.2], [0.6, 0.6]])
    twice = replace(BASE, segmentation=(BASE.segmentation[0],) * 2).region()  # type: ignore[index]
    assert isinstance(twice, Mask)
    frame = Frame.of_grid(3, 4)
    np.testing.assert_allclose(twice.weights(frame), region.weights(frame), atol=0.02)


def test_without_an_outline_there_is_no_mask() -> None:
    with pytest.raises(InvalidValue, match="no segmentation"):
        replace(BASE, segmentation=None).region()
    with pytest.raises(InvalidValue, match="no polygon"):
        replace(BASE, segmentation=())


def test_two_names_for_one_category_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="two names"):
        coco_instances.write(tmp_path / "i.json", [BASE, replace(BASE, category="dog")])
    assert not (tmp_path / "i.json").exists()
