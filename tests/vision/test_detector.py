"""Things found: the surest first, inside the photo, by COCO's names, and what was weighed on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from saywhere.assets import folder_of, is_cached
from saywhere.core import InvalidValue
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.vision import DetectingEncoder, Detector, Found, open_detector
from saywhere.vision.detector import INPUT_PX, NAME, _things, anchors
from saywhere.vision.look import LiteEncoder
from saywhere.vision.things import suppressed
from saywhere.vision.view import Proposals

SQUARE = Image.new("RGB", (50, 50), (255, 127, 0))
PERSON, CAR, NOTHING, TOOTHBRUSH = 0, 2, 11, 89
"""Columns of the network's scores; nobody ever drew the kind of the third."""
Say = tuple[int, int, float]


class Told:
    """A network that is sure of what it is told, (anchor, column, score), and remembers what it was shown."""

    def __init__(self, *says: Say, shifts: NDArray[np.float32] | None = None) -> None:
        count = len(anchors())
        self.scores, self.shifts = np.zeros((1, count, 90), np.float32), np.zeros((1, count, 4), np.float32)
        for number, (anchor, column, score) in enumerate(says):
            self.scores[0, anchor, column] = score
            if shifts is not None:
                self.shifts[0, anchor] = shifts[number]
        self.shown = np.zeros(0, np.uint8)

    def __call__(self, inputs: NDArray[np.uint8]) -> tuple[NDArray[np.float32], ...]:
        self.shown = inputs
        return self.shifts, self.scores


def _detector(*says: Say, shifts: NDArray[np.float32] | None = None) -> Detector:
    return Detector(Told(*says, shifts=shifts), COCO_CLASSES, "told", "0" * 64)


def _anchor(y: float, x: float, side: float) -> int:
    """The anchor that is nearest to a square there."""
    return int(np.abs(anchors() - np.array([y, x, side, side])).sum(axis=1).argmin())


MIDDLE, CORNER = _anchor(0.5, 0.5, 0.4), _anchor(0.15, 0.15, 0.2)


def test_the_surest_comes_first_and_the_unsure_are_left_out() -> None:
    detector = _detector((MIDDLE, PERSON, 0.3), (CORNER, CAR, 0.9), (MIDDLE, TOOTHBRUSH, 0.1))
    assert [one.name for one in detector.find(SQUARE).found] == ["car", "person", "toothbrush"]
    assert [one.name for one in detector.find(SQUARE, 0.3 - 1e-6).found] == ["car", "person"]
    assert detector.find(SQUARE, 1).found == ()


def test_anchors_are_moved_and_grown_as_the_network_says() -> None:
    y, x, height, width = anchors()[MIDDLE].tolist()
    shifts = np.array([[0.5, -0.25, np.log(2), 0]], np.float32)
    (one,) = _detector((MIDDLE, CAR, 0.9), shifts=shifts).find(SQUARE).found
    middle_y, middle_x = y + 0.5 * height, x - 0.25 * width
    wanted = (middle_x - width / 2, middle_y - height, middle_x + width / 2, middle_y + height)
    np.testing.assert_allclose(one.box_xyxy, np.clip(wanted, 0, 1), atol=1e-6)


@pytest.mark.parametrize("overlapping", [False, True])
def test_the_hundred_surest_are_found_however_many_were_weighed(overlapping: bool) -> None:
    """Whether the first look among the surest tells them all, or overlaps leave too few of those."""
    drawn = np.random.default_rng(0)
    count, kinds = 300, len(COCO_CLASSES)
    corners = drawn.uniform(0, 0.02 if overlapping else 0.7, (count, 2))
    boxes = np.concatenate([corners, corners + 0.3], axis=1).astype(np.float32)
    scores = drawn.uniform(0, 1, (count, kinds)).astype(np.float32)
    found = _things(Proposals(boxes, scores, COCO_CLASSES), 0.02)
    expected = []
    for kind, name in enumerate(COCO_CLASSES):
        stay = suppressed(boxes, scores[:, kind], 0.5)
        expected += [(name, *boxes[one].tolist(), float(scores[one, kind])) for one in stay]
    expected.sort(key=lambda one: -one[-1])
    assert [(one.name, *one.box_xyxy, one.score) for one in found] == [one for one in expected[:100] if one[-1] >= 0.02]


def test_of_two_of_a_kind_that_overlap_the_surer_stays_and_both_were_weighed() -> None:
    seen = _detector((MIDDLE, CAR, 0.9), (MIDDLE + 1, CAR, 0.5), (MIDDLE + 2, PERSON, 0.4)).find(SQUARE)
    overlapping = [one for one in seen.found if one.name == "car"]
    assert len(seen.proposals.boxes_xyxy) == 3
    assert overlapping[0].score == pytest.approx(0.9)
    assert "person" in {one.name for one in seen.found}


@pytest.mark.parametrize(("size", "axis"), [((100, 50), 1), ((50, 100), 0)])
def test_a_photo_that_is_no_square_keeps_its_form_and_boxes_are_fractions_of_it(
    size: tuple[int, int], axis: int
) -> None:
    detector = _detector((CORNER, CAR, 0.9))
    (one,) = detector.find(Image.new("RGB", size, (255, 0, 0))).found
    shown = detector.network.shown  # type: ignore[attr-defined]
    assert shown.shape == (1, INPUT_PX, INPUT_PX, 3)
    assert shown[0, 10, 10].tolist() == [255, 0, 0]
    assert shown[0, -1, -1].tolist() == [127, 127, 127]
    in_square = _detector((CORNER, CAR, 0.9)).find(SQUARE).found[0].box_xyxy
    wanted = [side * (2 if number % 2 == axis else 1) for number, side in enumerate(in_square)]
    np.testing.assert_allclose(one.box_xyxy, np.clip(wanted, 0, 1), atol=1e-6)


def test_what_lies_in_the_padding_is_not_found() -> None:
    below = _anchor(0.9, 0.5, 0.1)
    assert _detector((below, CAR, 0.9)).find(Image.new("RGB", (100, 50))).found == ()


def test_a_kind_that_nobody_ever_drew_is_not_found() -> None:
    assert _detector((MIDDLE, NOTHING, 0.9)).find(SQUARE).found == ()


SAYS = st.tuples(st.integers(0, len(anchors()) - 1), st.integers(0, 89), st.floats(0, 1, width=32))


@given(st.lists(SAYS, max_size=8), st.floats(-30, 30, width=32))
def test_whatever_the_network_says_every_finding_is_valid(says: list[Say], shift: float) -> None:
    seen = _detector(*says, shifts=np.full((len(says), 4), shift, np.float32)).find(SQUARE)
    assert len(seen.found) <= len(says)
    assert [one.score for one in seen.found] == sorted((one.score for one in seen.found), reverse=True)
    assert {one.name for one in seen.found} <= set(COCO_CLASSES)


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_least_score_that_cannot_be_is_refused(score: float) -> None:
    with pytest.raises(InvalidValue, match="least_score"):
        _detector().find(SQUARE, score)


def test_a_box_is_claimed_by_the_places_that_fit_it() -> None:
    boxes = np.array([(0, 0, 0.5, 0.5), (0, 0, 1, 1), (0.5, 0.5, 1, 1)], np.float32)
    scores = np.array([(0.5, 0.1), (0.9, 0.2), (0, 1)], np.float32)
    claims = Proposals(boxes, scores, ("cat", "dog")).claims((0, 0, 0.5, 0.5), 2)
    np.testing.assert_allclose(claims, (0.5, 0.1), rtol=1e-6)
    np.testing.assert_allclose(
        Proposals(boxes, scores, ("cat", "dog")).claims((0, 0, 1, 0.5), 1), (0.45, 0.1), rtol=1e-6
    )
    none = Proposals(np.zeros((0, 4), np.float32), np.zeros((0, 2), np.float32), ("cat", "dog"))
    assert none.claims((0, 0, 1, 1), 2).tolist() == [0, 0]


def test_a_detector_needs_a_name_for_each_kind() -> None:
    with pytest.raises(InvalidValue, match="2, not one for each of COCO's 80"):
        Detector(Told(), ("cat", "dog"), "told", "0" * 64)


def test_proposals_that_do_not_fit_their_kinds_are_refused() -> None:
    with pytest.raises(InvalidValue, match="do not fit each other"):
        Proposals(np.zeros((2, 4), np.float32), np.zeros((2, 3), np.float32), ("cat", "dog"))


def test_an_encoder_with_a_detector_sees_the_same_and_finds_more(encoder: LiteEncoder) -> None:
    both = DetectingEncoder(encoder, _detector((MIDDLE, CAR, 0.9), (CORNER, PERSON, 0.2)), least_score=0.5)
    view = both.look(SQUARE)
    np.testing.assert_array_equal(view.patches, encoder.look(SQUARE).patches)
    assert [one.name for one in view.found] == ["car"]
    assert view.proposals is not None
    assert len(view.proposals.boxes_xyxy) == 2
    assert both.size == encoder.size
    assert both.frame((5, 6)) == encoder.frame((5, 6))
    other = DetectingEncoder(encoder, _detector(), least_score=0.4)
    assert both.fingerprint.items() > encoder.fingerprint.items()
    assert both.fingerprint != other.fingerprint


@pytest.fixture(scope="module")
def weights() -> Path:
    if not is_cached(NAME):
        pytest.skip(f"{NAME} is not in the cache")
    return folder_of(NAME) / "model.tflite"


def test_anchors_are_those_of_the_file(weights: Path) -> None:
    pytest.importorskip("tflite")
    from saywhere.vision.tflite_graph import read_graph

    graph = read_graph(weights)
    np.testing.assert_allclose(graph.constants[graph.outputs[-1]], anchors(), atol=1e-6)


def test_the_real_detector_finds_the_pizza_and_torch_sees_what_openvino_does(
    weights: Path, shared: Callable[[str], Path]
) -> None:
    photo = shared("data/coco_val/photos/000000032038.webp")
    pytest.importorskip("openvino")
    fast, slow = (open_detector(runtime=runtime).find(photo) for runtime in ("openvino", "torch"))
    for seen in (fast, slow):
        assert seen.found[0].name == "pizza"
        assert len(seen.found) > 10
    surest = [one.found[0] for one in (fast, slow)]
    np.testing.assert_allclose(surest[0].box_xyxy, surest[1].box_xyxy, atol=0.03)
    # One computes in bytes, the other in floats.
    assert surest[0].score == pytest.approx(surest[1].score, abs=0.05)
    assert isinstance(surest[0], Found)
