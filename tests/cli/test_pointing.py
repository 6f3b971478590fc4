"""Regions as people type them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from saywhere.cli.pointing import Pointing
from saywhere.core import Box, Frame, InvalidFile, InvalidValue, Narrative, Point, Polygon, Trace, WholeImage
from saywhere.formats import localized_narratives

PHOTO = Path("000000000139.jpg")
NARRATIVE = Narrative("139", trace=Trace([(0.1, 0.2, 0.0), (0.3, 0.4, 1.0)]))


def test_every_kind_is_read_in_order() -> None:
    box, point, polygon, trace = Pointing(PHOTO).regions(
        ["0.1,0.2,0.4,0.6"], ["0.5, 0.5"], ["0,0;1,0;1,1"], ["0.1,0.1;0.9,0.1"]
    )
    assert box == Box(0.1, 0.2, 0.4, 0.6)
    assert point == Point(0.5, 0.5)
    assert isinstance(polygon, Polygon)
    assert polygon.points_xy.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert isinstance(trace, Trace)
    assert trace.bounds_xyxy == pytest.approx((0.1, 0.1, 0.9, 0.1))


def test_a_mask_is_an_image_laid_over_the_photo(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 255]], dtype=np.uint8)).save(tmp_path / "right.png")
    (mask,) = Pointing(PHOTO, (200, 100)).regions([], [], [], [], [tmp_path / "right.png"])
    assert mask.weights(Frame.of_grid(1, 2)).tolist() == [[0, 1]]
    assert mask.to_json() == {"mask_shape": [1, 2]}


def test_a_mask_that_marks_nothing_or_is_no_image_is_refused(tmp_path: Path) -> None:
    Image.new("L", (4, 4)).save(tmp_path / "black.png")
    (tmp_path / "text.png").write_text("white")
    for name, reason in (("black.png", "black everywhere"), ("text.png", "not an image"), ("gone.png", "gone")):
        with pytest.raises(InvalidFile, match=reason):
            Pointing(PHOTO).regions([], [], [], [], [tmp_path / name])


def test_pixels_become_fractions() -> None:
    box, point, trace = Pointing(PHOTO, (200, 100)).regions(["20,10,100,50"], ["100,100"], [], ["0,0,0;200,100,2"])
    assert box == Box(0.1, 0.1, 0.5, 0.5)
    assert point == Point(0.5, 1.0)
    assert isinstance(trace, Trace)
    assert trace.points[-1].tolist() == [1, 1, 2]


def test_a_typed_line_is_pointed_along_evenly_whatever_the_distance_of_its_points() -> None:
    [trace] = Pointing(PHOTO).regions([], [], [], ["0,0.5;0.1,0.5;1,0.5"])
    assert isinstance(trace, Trace)
    assert np.ptp(np.diff(trace.xy[:, 0])) < 0.002
    assert trace.duration_s == pytest.approx(2)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("boxes", "1,2,3", "--box: '1,2,3' holds 3 numbers, not 4"),
        ("boxes", "a,b,c,d", "not numbers between commas"),
        ("boxes", "0.5,0.5,0.5,0.9", "has no area"),
        ("boxes", "1.2,1.2,1.9,1.9", "covers nothing"),
        ("boxes", "nan,0,1,1", "NaN"),
        ("points", "1.5,0.5", "covers nothing"),
        ("points", "", "not numbers"),
        ("polygons", "0,0;1,1", "an outline needs three"),
        ("polygons", "5,5;6,5;6,6", "--pixels"),
        ("traces", "3,3;4,4", "none of its"),
        ("traces", "0,0,1;1,1,0", "go back in time"),
        ("traces", "0,0;1,1,1", "holds 3 numbers, not 2"),
        ("traces", "absent.jsonl", "absent.jsonl"),
    ],
)
def test_what_is_no_region_of_the_photo_is_a_clear_error(kind: str, text: str, reason: str) -> None:
    given_texts = {"boxes": [], "points": [], "polygons": [], "traces": []} | {kind: [text]}
    with pytest.raises((InvalidValue, InvalidFile), match=reason):
        Pointing(PHOTO).regions(**given_texts)


def test_a_file_gives_the_traces_of_this_photo(tmp_path: Path) -> None:
    file = tmp_path / "several.jsonl"
    other = Narrative("7", trace=Trace([(0.9, 0.9, 0.0)]))
    localized_narratives.write(file, [other, NARRATIVE, NARRATIVE])
    traces = Pointing(PHOTO).regions([], [], [], [str(file)])
    assert len(traces) == 2
    assert all(isinstance(one, Trace) and len(one) == 2 for one in traces)
    with pytest.raises(InvalidFile, match="none of its 3 narratives is of the image 'kitchen'"):
        Pointing(Path("kitchen.jpg")).regions([], [], [], [str(file)])


def test_a_file_with_one_narrative_needs_no_name(tmp_path: Path) -> None:
    localized_narratives.write(tmp_path / "one.jsonl", [NARRATIVE])
    assert len(Pointing(Path("kitchen.jpg")).regions([], [], [], [str(tmp_path / "one.jsonl")])) == 1


def test_a_narrative_without_a_trace_points_nowhere(tmp_path: Path) -> None:
    localized_narratives.write(tmp_path / "one.jsonl", [Narrative("139", "a cat")])
    with pytest.raises(InvalidValue, match="trace: is empty"):
        Pointing(PHOTO).regions([], [], [], [str(tmp_path / "one.jsonl")])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
@example([(0.12345678901234567, 0.98765432109876543)] * 200)
def test_any_line_on_the_photo_can_be_typed(points: list[tuple[float, float]]) -> None:
    [trace] = Pointing(PHOTO).regions([], [], [], [";".join(f"{x!r},{y!r}" for x, y in points)])
    assert isinstance(trace, Trace)
    assert trace.xy[0] == pytest.approx(points[0])
    assert trace.xy[-1] == pytest.approx(points[-1])


def test_regions_become_json() -> None:
    regions = [WholeImage(), Box(0, 0, 1, 1), Point(0, 1), Polygon([(0, 0), (1, 0), (1, 1)]), NARRATIVE.trace]
    values = [region.to_json() for region in regions]
    assert [next(iter(value)) for value in values] == ["whole", "box_xyxy", "point_xy", "polygon_xy", "trace_xyt"]
    assert json.loads(json.dumps(values))[4]["trace_xyt"] == [[0.1, 0.2, 0.0], [0.3, 0.4, 1.0]]
