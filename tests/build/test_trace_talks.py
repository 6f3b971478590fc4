"""Talks about photos for the small body of TraceVLM: what they hold, and what may not be in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from saywhere.build.trace_photos import as_detected
from saywhere.build.trace_talks import ToldPhoto, mentions, pointed_out, talks_of, through
from saywhere.core import Box
from saywhere.language.coco_aliases import classes_named
from saywhere.models.eye.features import FoundThings
from saywhere.models.tracevlm.examples import USER

DOG, COUCH, CUP = (0.1, 0.2, 0.5, 0.9), (0.0, 0.1, 1.0, 1.0), (0.7, 0.1, 0.9, 0.4)
PHOTO = ToldPhoto(
    "1",
    {"dog": [DOG], "couch": [COUCH], "cup": [CUP]},
    ("A dog on a couch", "A cup beside a dog"),
    (("the dog on the left", DOG), ("white cup", CUP)),
    (("What is on the couch?", "dog"),),
)


def test_a_caption_names_things_in_its_order_each_once_and_only_what_is_marked() -> None:
    named = mentions("A cup and a dog near a dog and a horse", PHOTO.boxes)
    assert [(one.stop, one.box_xyxy) for one in named] == [(2, CUP), (5, DOG)]
    assert mentions("Nothing at all", PHOTO.boxes) == []


def test_a_pseudo_trajectory_passes_boxes_in_their_order() -> None:
    drawn = through([DOG, CUP], np.random.default_rng(0)).trace
    inside = [[box[0] < x < box[2] and box[1] < y < box[3] for box in (DOG, CUP)] for x, y in drawn.xy.tolist()]
    changes = [one.index(True) for one in inside]
    assert changes == sorted(changes)
    assert set(changes) == {0, 1}
    assert (np.diff(drawn.times_s) > 0).all()


@pytest.mark.parametrize("seed", range(30))
def test_what_points_a_thing_out_stays_on_it(seed: int) -> None:
    xy = pointed_out(DOG, np.random.default_rng(seed)).trace.xy
    assert (xy >= np.array(DOG[:2])).all()
    assert (xy <= np.array(DOG[2:])).all()


def test_only_the_first_question_points_and_nothing_is_said_twice() -> None:
    talks = list(talks_of(PHOTO, 200, np.random.default_rng(0)))
    assert len(talks) == 200
    for talk in talks:
        drawn = [number for number, turn in enumerate(talk.turns) if turn.role == USER and turn.trajectories]
        assert drawn in ([], [0])
        asked = [turn.parts for turn in talk.turns if turn.role == USER]
        texts = [tuple(part for part in parts if isinstance(part, str)) for parts in asked if len(parts) > 1]
        about = [words[-1] for words in texts if words[-1] in dict(PHOTO.expressions)]
        assert len(about) == len(set(about))
    tasks = {turn.parts[0] for talk in talks for turn in talk.turns if turn.role == USER}
    assert len({task for task in tasks if isinstance(task, str)}) >= 8


def test_a_box_that_is_asked_for_is_the_true_one() -> None:
    for talk in talks_of(PHOTO, 100, np.random.default_rng(1)):
        for question, answer in zip(talk.turns[::2], talk.turns[1::2], strict=True):
            if question.parts[0] == "Put a box around this: " and question.parts[1] == "white cup":
                assert answer.parts == (Box(*CUP),)
                return
    pytest.fail("a hundred talks never asked for the cup")


def test_what_is_asked_for_is_there_as_often_as_not_and_never_what_people_named() -> None:
    photo = replace(PHOTO, elsewhere=("horse", "dog", "bed", "bicycle"), captions=("A dog and a bed",))
    assert photo.absent() == ["horse", "bicycle"]
    answers: dict[str, list[str]] = {"yes": [], "no": []}
    for talk in talks_of(photo, 400, np.random.default_rng(4)):
        for question, answer in zip(talk.turns[::2], talk.turns[1::2], strict=True):
            if answer.parts in (("yes",), ("no",)):
                answers[str(answer.parts[0])].append(str(question.parts[-1]))
    for answer, kinds in (("yes", {"dog", "couch", "cup"}), ("no", {"horse", "bicycle"})):
        asked_for = {name for text in answers[answer] for name in classes_named(text)}
        assert asked_for == kinds
    assert 0.8 < len(answers["yes"]) / len(answers["no"]) < 1.25


def test_presence_is_not_asked_where_only_one_answer_could_be_given() -> None:
    everything_there = replace(PHOTO, elsewhere=("dog", "cup"))
    for talk in talks_of(everything_there, 200, np.random.default_rng(4)):
        assert not [turn for turn in talk.turns if turn.parts in (("yes",), ("no",))]


def test_the_same_seed_gives_the_same_talks() -> None:
    first, again = (list(talks_of(PHOTO, 5, np.random.default_rng(3))) for _ in range(2))
    assert [talk.turns[1].parts for talk in first] == [talk.turns[1].parts for talk in again]


def test_a_photo_of_which_nothing_is_known_gives_no_talk() -> None:
    assert list(talks_of(ToldPhoto("2", {}), 5, np.random.default_rng(0))) == []


def test_photos_show_what_the_detector_found_surest_first_without_doubtful_things_and_lines() -> None:
    line, windows = (0.3, 0.3, 0.3, 0.8), np.zeros((101, 4), np.float32)
    boxes = np.array([COUCH, DOG, CUP, line], np.float32)
    found = FoundThings(boxes, np.array([57, 16, 41, 0]), np.array([0.6, 0.9, 0.2, 0.8], np.float32))
    shown = as_detected(windows, found)
    assert shown.classes.tolist() == [16, 57]
    assert np.allclose(shown.boxes, [DOG, COUCH])
    assert not shown.is_marked
    assert not as_detected(windows, FoundThings.none()).is_marked
