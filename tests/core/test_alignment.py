from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import (
    InvalidValue,
    Narrative,
    Trace,
    Utterance,
    Word,
    WordBoxes,
    split_words,
    trace_through,
    word_boxes,
)
from tests.strategies import traces, utterances, words_with_boxes


def test_a_words_box_bounds_the_points_in_its_window() -> None:
    trace = Trace([(0.1, 0.2, 0.0), (0.3, 0.1, 0.5), (0.9, 0.9, 1.0), (0.8, 0.7, 2.0)])
    boxes = word_boxes([Word("a", 0, 1), Word("b", 1, 2)], trace)
    # The point at 1.0 s is on the border: it belongs to the later word. The last window is closed.
    np.testing.assert_allclose(boxes.boxes_xyxy, [[0.1, 0.1, 0.3, 0.2], [0.8, 0.7, 0.9, 0.9]])


def test_a_word_between_near_points_lies_on_the_line_between_them() -> None:
    trace = Trace([(0.0, 0.0, 1.0), (0.4, 0.8, 1.6)])
    near = word_boxes([Word("a", 1.2, 1.4), Word("b", 5, 6)], trace)
    np.testing.assert_allclose(near.boxes_xyxy[0], [0.2, 0.4, 0.2, 0.4])
    assert near.located.tolist() == [True, False]
    assert word_boxes([Word("a", 1.2, 1.4), Word("b", 5, 6)], trace, reach_s=0.2).located.tolist() == [False, False]


@pytest.mark.parametrize(
    ("start_s", "end_s", "why"),
    [(0.0, 0.2, "before the first point"), (3.0, 3.1, "after the last"), (1.15, 1.25, "while the pen was up")],
)
def test_a_word_without_a_pointing_hand_is_unlocated(start_s: float, end_s: float, why: str) -> None:
    trace = Trace.from_segments([[(0.1, 0.1, 0.9), (0.2, 0.2, 1.1)], [(0.8, 0.8, 1.3), (0.9, 0.9, 2.9)]])
    boxes = word_boxes([Word("x", start_s, end_s), Word("end", 9, 10)], trace)
    assert not boxes.located[0], why
    assert np.isnan(boxes.boxes_xyxy[0]).all()


def test_boxes_are_clipped_and_points_are_kept() -> None:
    trace = Trace([(-0.2, 0.5, 0), (1.4, 0.6, 1)])
    np.testing.assert_allclose(word_boxes([Word("all", 0, 1)], trace).boxes_xyxy, [[0, 0.5, 1, 0.6]])
    assert trace.points[1, 0] == 1.4


def test_no_words_or_no_points_give_no_places() -> None:
    assert len(word_boxes([], Trace([(0, 0, 0)]))) == 0
    assert word_boxes([Word("a", 0, 1)], Trace([])).located.tolist() == [False]


@given(utterances(), traces())
def test_boxes_agree_with_a_plain_loop_over_points(said: tuple[Utterance, ...], trace: Trace) -> None:
    words = split_words(said)
    boxes = word_boxes(words, trace)
    for i, word in enumerate(words):
        closed = i == len(words) - 1
        inside = [p for p in trace.points if word.start_s <= p[2] < word.end_s or (closed and p[2] == word.end_s)]
        if inside:
            bounds = np.concatenate([np.min(inside, axis=0)[:2], np.max(inside, axis=0)[:2]])
            np.testing.assert_array_equal(boxes.boxes_xyxy[i], np.clip(bounds, 0, 1))


def test_the_whole_image_appears_only_at_the_models_door() -> None:
    boxes = WordBoxes([[0.1, 0.2, 0.5, 0.4], [np.nan] * 4])
    np.testing.assert_allclose(boxes.encode(), [[0.1, 0.2, 0.5, 0.4, 0.08], [0, 0, 1, 1, 1]])
    assert WordBoxes.decode(boxes.encode()).located.tolist() == [True, False]


@given(words_with_boxes())
def test_encoding_and_decoding_give_the_same_boxes(pair: tuple[list[Word], WordBoxes]) -> None:
    boxes = pair[1]
    whole = (boxes.boxes_xyxy == [0, 0, 1, 1]).all(axis=1)
    back = WordBoxes.decode(boxes.encode())
    np.testing.assert_array_equal(back.located, boxes.located & ~whole)
    np.testing.assert_array_equal(back.boxes_xyxy[~whole], boxes.boxes_xyxy[~whole])


def test_a_models_boxes_are_put_in_order_and_clipped() -> None:
    back = WordBoxes.decode([[0.5, 0.4, 0.1, 1.2]])
    np.testing.assert_allclose(back.boxes_xyxy, [[0.1, 0.4, 0.5, 1.0]])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: WordBoxes([[0, 0, 2, 1]]), "leaves the image"),
        (lambda: WordBoxes([[0.5, 0, 0.2, 1]]), "beyond its right"),
        (lambda: WordBoxes([[0, 0, 1, 1]], [True, False]), "located flags"),
        (lambda: WordBoxes([[0, 0, np.nan, 1]], [True]), "not finite"),
        (lambda: WordBoxes.decode([[0, 0, 1]]), "shape"),
        (lambda: WordBoxes.decode([[0, 0, 1, np.nan]]), "NaN"),
        (lambda: trace_through([Word("a", 0, 1)], WordBoxes([])), "0 boxes for 1 words"),
        (lambda: trace_through([], WordBoxes([]), rate_hz=0), "rate"),
    ],
)
def test_boxes_that_cannot_be_are_refused(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        make()


@given(words_with_boxes(), st.sampled_from([20.0, 60.0]))
def test_the_trace_through_boxes_reads_back_as_boxes_that_cover_them(
    pair: tuple[list[Word], WordBoxes], rate_hz: float
) -> None:
    words, boxes = pair
    back = word_boxes(words, trace_through(words, boxes, rate_hz))
    known = boxes.located
    assert back.located[known].all()
    assert (back.boxes_xyxy[known, :2] <= boxes.boxes_xyxy[known, :2] + 1e-9).all()
    assert (back.boxes_xyxy[known, 2:] >= boxes.boxes_xyxy[known, 2:] - 1e-9).all()


def test_the_trace_through_boxes_moves_smoothly_and_rests_inside_a_lone_box() -> None:
    words = [Word("cup", 0, 1), Word("and", 1, 2), Word("spoon", 2, 3)]
    boxes = WordBoxes([[0.1, 0.1, 0.3, 0.3], [np.nan] * 4, [0.6, 0.6, 0.9, 0.8]])
    trace = trace_through(words, boxes)
    assert len(trace.starts) == 1
    assert np.nanmax(trace.speed()) < 3
    # The unlocated word leaves time to travel, so the boxes come back exactly.
    back = word_boxes(words, trace)
    np.testing.assert_allclose(back.boxes_xyxy[[0, 2]], boxes.boxes_xyxy[[0, 2]], atol=1e-9)
    assert len(trace_through(words, WordBoxes([[np.nan] * 4] * 3))) == 0


def test_arriving_at_a_box_never_overshoots_the_time_to_leave_it() -> None:
    words = [Word("w0", 0.0, 0.31586946386847303), Word("w1", 0.31586946386847303, 1.9721194638684731)]
    trace = trace_through(words, WordBoxes([[0.0] * 4, [0.0] * 4]), rate_hz=20)
    assert (np.diff(trace.times_s) >= 0).all()


def test_a_real_record_gets_a_box_for_each_of_its_words(shared: Callable[[str], Path]) -> None:
    record = json.loads(shared("data/localized_narratives/coco_val_212166_49.jsonl").read_text())
    narrative = Narrative(
        image_id=record["image_id"],
        caption=record["caption"],
        utterances=tuple(Utterance(u["utterance"], u["start_time"], u["end_time"]) for u in record["timed_caption"]),
        trace=Trace.from_segments([[(p["x"], p["y"], p["t"]) for p in segment] for segment in record["traces"]]),
    )
    assert [w.text for w in narrative.words] == record["caption"].split()
    boxes = narrative.word_boxes()
    assert boxes.located.all()
    plate = boxes.boxes_xyxy[[w.text for w in narrative.words].index("plate")]
    np.testing.assert_allclose(plate, [0.30, 0.79, 0.91, 1.0], atol=0.01)
