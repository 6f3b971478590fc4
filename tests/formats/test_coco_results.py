from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats import coco_results
from saywhere.formats.coco_results import CaptionResult, DetectionResult, RunLengths
from saywhere.formats.record import InvalidRecord

ids = st.integers(0, 10**12) | st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
captions = st.builds(CaptionResult, ids, st.text(st.characters(codec="utf-8"), max_size=30))
sides = st.floats(0.01, 500)
boxes = st.tuples(st.floats(-5, 500), st.floats(-5, 500), sides, sides)
masks = st.integers(0, 12).map(lambda n: RunLengths((3, 4), (n, 12 - n)))
detections = st.builds(DetectionResult, ids, ids, st.floats(0, 1), boxes, st.none() | masks) | st.builds(
    DetectionResult, ids, ids, st.floats(-9, 9), st.none(), masks
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(captions | detections, max_size=5))
def test_what_is_written_is_read(values: list[CaptionResult | DetectionResult], tmp_path: Path) -> None:
    assert coco_results.write(tmp_path / "r.json", values) == len(values)
    assert list(coco_results.read(tmp_path / "r.json")) == values


def test_the_reference_reads_what_is_written(tmp_path: Path) -> None:
    coco_results.write(tmp_path / "r.json", [CaptionResult(7, "a cat"), DetectionResult(7, 17, 0.5, (1, 2, 3, 4))])
    assert json.loads((tmp_path / "r.json").read_text()) == [
        {"image_id": 7, "caption": "a cat"},
        {"image_id": 7, "category_id": 17, "bbox": [1, 2, 3, 4], "score": 0.5},
    ]


GOOD = {"image_id": 1, "category_id": 2, "score": 0.5, "bbox": [1, 2, 3, 4]}
BAD = [
    ({"image_id": 1}, "neither a caption nor"),
    ({**GOOD, "caption": "a"}, "at once"),
    ({**GOOD, "score": None}, "both category_id and score"),
    ({**GOOD, "score": "high"}, "score"),
    ({**GOOD, "bbox": [1, 2, 3]}, "3 numbers"),
    ({**GOOD, "bbox": [1, 2, 0, 4]}, "no area"),
    ({**GOOD, "bbox": []}, "neither a box nor a mask"),
    ({**GOOD, "segmentation": {"size": [2, 2], "counts": [3]}}, "runs of 3 pixels"),
    ({"caption": "a"}, "image_id"),
    ({"image_id": "", "caption": "a"}, "image_id"),
]


@pytest.mark.parametrize(("item", "words"), BAD)
def test_a_bad_result_is_a_bad_record_with_its_reason(item: dict[str, object], words: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps([GOOD, item, GOOD]))
    first, bad, last = coco_results.read(tmp_path / "r.json")
    assert first == last == DetectionResult(1, 2, 0.5, (1, 2, 3, 4))
    assert isinstance(bad, InvalidRecord)
    assert bad.where.startswith("[1]")
    assert words in f"{bad.where} {bad.reason}"


def test_an_object_is_not_a_list_of_results(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("{}")
    with pytest.raises(InvalidFile, match="a list of results"):
        list(coco_results.read(tmp_path / "r.json"))


def test_a_detection_says_what_it_has() -> None:
    assert DetectionResult(1, 2, 0.5, (1, 2, 3, 4)).box_xyxy_px == (1, 2, 4, 6)
    with pytest.raises(InvalidValue, match="no box"):
        _ = DetectionResult(1, 2, 0.5, None, RunLengths((2, 2), (4,))).box_xyxy_px
    with pytest.raises(InvalidValue, match="score"):
        DetectionResult(1, 2, float("nan"), (1, 2, 3, 4))
