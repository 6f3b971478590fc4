"""Things found: the surest first, inside the photo, by COCO's names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from saywhere.assets import is_cached
from saywhere.core import InvalidFile, InvalidValue
from saywhere.formats.coco_classes import COCO_CLASSES
from saywhere.vision import DetectingEncoder, Detector, Found, open_detector
from saywhere.vision.detector import NAME, read_names
from saywhere.vision.look import LiteEncoder

pytest.importorskip("cv2")

GREY = Image.new("RGB", (50, 30), (255, 127, 0))
BOXES = st.tuples(*[st.floats(-0.5, 1.5, width=32)] * 4)


class Told:
    """A network that finds what it is told to and remembers what it was shown."""

    def __init__(self, *rows: tuple[float, ...]) -> None:
        self.table = np.array([(0, *row) for row in rows], np.float32).reshape(1, 1, -1, 7)
        self.shown = np.zeros(0)

    def setInput(self, blob: np.ndarray) -> None:  # noqa: N802
        self.shown = blob

    def forward(self) -> np.ndarray:
        return self.table


def _detector(*rows: tuple[float, ...]) -> Detector:
    return Detector(Told(*rows), {1: "person", 3: "car", 90: "toothbrush"}, "told", "0" * 64)


def test_the_surest_comes_first_and_the_unsure_are_left_out() -> None:
    detector = _detector((1, 0.3, 0, 0, 0.5, 0.5), (3, 0.9, 0, 0, 1, 1), (90, 0.1, 0.2, 0.2, 0.4, 0.4))
    assert [one.name for one in detector.find(GREY)] == ["car", "person", "toothbrush"]
    assert [one.name for one in detector.find(GREY, 0.3 - 1e-6)] == ["car", "person"]
    assert detector.find(GREY, 1) == ()


def test_boxes_are_cut_at_the_edges_and_those_without_an_area_left_out() -> None:
    detector = _detector((1, 0.5, -0.25, 0.5, 1.5, 2), (1, 0.4, 1.1, 0, 1.2, 1), (1, 0.3, 0.5, 0.5, 0.25, 0.75))
    assert detector.find(GREY) == (Found((0, 0.5, 1, 1), "person", 0.5),)


def test_a_kind_that_nobody_ever_drew_is_not_found() -> None:
    assert _detector((12, 0.9, 0, 0, 1, 1)).find(GREY) == ()


@given(st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.floats(0, 1, width=32), BOXES), max_size=8))
def test_whatever_the_network_says_every_finding_is_valid(rows: list[tuple[float, float, tuple[float, ...]]]) -> None:
    found = _detector(*((kind, score, *box) for kind, score, box in rows)).find(GREY)
    assert len(found) <= len(rows)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {one.name for one in found} <= {"person", "car"}


def test_the_network_sees_red_first_within_minus_one_and_one() -> None:
    detector = _detector()
    detector.find(GREY)
    shown = detector.network.shown  # type: ignore[attr-defined]
    assert shown.shape == (1, 3, 320, 320)
    np.testing.assert_allclose(shown[0, :, 7, 7], [1, 127 / 127.5 - 1, -1], atol=1e-6)


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_least_score_that_cannot_be_is_refused(score: float) -> None:
    with pytest.raises(InvalidValue, match="least_score"):
        _detector().find(GREY, score)


def test_an_encoder_with_a_detector_sees_the_same_and_finds_more(encoder: LiteEncoder) -> None:
    both = DetectingEncoder(encoder, _detector((3, 0.9, 0, 0, 1, 1), (1, 0.2, 0, 0, 1, 1)), least_score=0.5)
    view = both.look(GREY)
    np.testing.assert_array_equal(view.patches, encoder.look(GREY).patches)
    assert [one.name for one in view.found] == ["car"]
    assert both.size == encoder.size
    assert both.frame((5, 6)) == encoder.frame((5, 6))
    other = DetectingEncoder(encoder, _detector(), least_score=0.4)
    assert both.fingerprint.items() > encoder.fingerprint.items()
    assert both.fingerprint != other.fingerprint


def test_labels_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be read"):
        read_names(tmp_path / "labels.txt")


def test_the_real_detector_finds_the_pizza_under_cocos_names(shared: Callable[[str], Path]) -> None:
    photo = shared("data/coco_val/photos/000000032038.webp")
    if not is_cached(NAME):
        pytest.skip(f"{NAME} is not in the cache")
    detector = open_detector()
    assert detector.names == COCO_CLASSES
    found = detector.find(photo)
    assert found[0].name == "pizza"
    assert len(found) > 10
