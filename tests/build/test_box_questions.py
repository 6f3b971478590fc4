"""Questions out of boxes: hand-made photos, and the real ones where they are here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saywhere.build.box_colours import colours_in
from saywhere.build.box_questions import MOST, TYPES, AskSettings, BoxQuestion, ask, from_pope
from saywhere.build.photo_boxes import PhotoBoxes, Usual, by_photo, read_photo_boxes
from saywhere.build.region_texts import BoxXyxy, ClassBox
from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.formats import pope
from saywhere.formats.pope import PopeQuestion
from saywhere.formats.record import InvalidRecord

LEFT, MIDDLE, RIGHT = (0.0, 0.2, 0.25, 0.8), (0.4, 0.3, 0.6, 0.7), (0.7, 0.2, 1.0, 0.8)
TINY = (0.5, 0.5, 0.52, 0.52)
TABLE, ON_TABLE, BEFORE_TABLE = (0.1, 0.5, 0.9, 1.0), (0.4, 0.3, 0.5, 0.7), (0.4, 0.5, 0.5, 0.99)


def photo(boxes: Mapping[str, tuple[BoxXyxy, ...]], *crowds: str) -> PhotoBoxes:
    return PhotoBoxes("000000000007", boxes, frozenset(crowds))


def asked(
    boxes: Mapping[str, tuple[BoxXyxy, ...]], question_type: str, *captions: str, crowds: tuple[str, ...] = ()
) -> dict[str, BoxQuestion]:
    """Everything of a type that one photo can be asked, by its text, whatever the chance."""
    wanted = AskSettings(most={question_type: 99})
    found: dict[str, BoxQuestion] = {}
    for seed in range(16):
        made = ask([photo(boxes, *crowds)], np.random.default_rng(seed), {"000000000007": captions}, wanted)
        found |= {question.text: question for question in made}
    return found


def test_a_thing_that_is_there_is_asked_for_with_its_boxes_and_one_that_is_not_without() -> None:
    found = asked({"dog": (LEFT, RIGHT)}, "is there a")
    there = found["Is there a dog in the photo?"]
    assert (there.answer, there.answer_type, there.answers) == ("yes", "yes/no", ("yes",) * 10)
    np.testing.assert_allclose(there.boxes_xyxy, [LEFT, RIGHT])
    missing = [question for question in found.values() if question.answer == "no"]
    assert missing
    assert all(len(question.boxes_xyxy) == 0 and question.classes != ("dog",) for question in missing)


def test_half_of_the_questions_for_presence_are_answered_no() -> None:
    photos = [PhotoBoxes(str(i), {"dog": (LEFT,), "cup": (RIGHT,), "chair": (MIDDLE,)}) for i in range(20)]
    made = ask(photos, np.random.default_rng(0), None, AskSettings(most={"is there a": 4}))
    assert Counter(question.answer for question in made) == {"yes": 40, "no": 40}


@pytest.mark.parametrize("likely", [0.0, 1.0])
def test_absent_things_are_the_usual_ones_as_often_as_wanted(likely: float) -> None:
    # A cat is usual beside a couch; nothing else ever is.
    photos = [PhotoBoxes(f"{i:03}", {"couch": (LEFT,)} | ({"cat": (RIGHT,)} if i % 2 else {})) for i in range(40)]
    made = list(ask(photos, np.random.default_rng(0), None, AskSettings(most={"is there a": 4}, likely=likely)))
    cats = [question for question in made if question.answer == "no" and question.classes == ("cat",)]
    assert bool(cats) == (likely == 1.0)


def test_what_looks_alike_or_is_named_by_a_caption_is_never_said_to_be_absent() -> None:
    one = photo({"truck": (LEFT,), "cup": (RIGHT,)}, "sheep")
    likely, others = Usual.of([one]).absent(one, {"zebra"})
    absent = {*likely, *others}
    assert not absent & {"truck", "cup", "car", "bus", "bowl", "dining table", "zebra", "sheep", "cow"}
    assert {"toothbrush", "dog"} <= absent


def test_things_are_counted_up_to_five_and_only_where_all_can_be_seen() -> None:
    row = tuple((i / 10, 0.1, i / 10 + 0.08, 0.4) for i in range(6))
    found = asked({"car": row[:3], "person": row[:5], "kite": row, "bird": (LEFT, TINY), "skis": (LEFT,)}, "how many")
    counts = {text: question.answer for text, question in found.items() if question.answer != "0"}
    assert counts == {"How many cars are there?": "3", "How many people are there?": "5"}
    assert len(found["How many cars are there?"].boxes_xyxy) == 3


def test_nothing_is_counted_in_a_crowd() -> None:
    assert "How many dogs are there?" not in asked({"dog": (LEFT,)}, "how many", crowds=("dog",))


def test_of_two_single_things_the_clearly_larger_one_is_the_answer() -> None:
    found = asked({"dog": (LEFT,), "cat": (MIDDLE,)}, "which is larger")
    assert {question.answer for question in found.values()} == {"dog"}
    assert set(found) == {
        "Which is larger in the photo, the dog or the cat?",
        "Which is larger in the photo, the cat or the dog?",
    }


@pytest.mark.parametrize(
    "boxes", [{"dog": (LEFT,), "cat": (RIGHT,)}, {"dog": (LEFT, RIGHT), "cat": (MIDDLE,)}, {"dog": (LEFT,)}]
)
def test_which_is_larger_is_not_asked_where_it_is_close_or_not_between_two(boxes: dict[str, tuple[BoxXyxy]]) -> None:
    assert asked(boxes, "which is larger") == {}


def test_sides_are_asked_both_ways_and_answered_by_where_the_boxes_are() -> None:
    found = asked({"dog": (LEFT,), "cat": (RIGHT,)}, "is the")
    assert {text: question.answer for text, question in found.items()} == {
        "Is the dog to the left of the cat?": "yes",
        "Is the dog to the right of the cat?": "no",
        "Is the cat to the left of the dog?": "no",
        "Is the cat to the right of the dog?": "yes",
    }
    assert asked({"dog": ((0.0, 0.0, 0.5, 0.5),), "cat": ((0.4, 0.0, 1.0, 0.5),)}, "is the") == {}


def test_what_is_beside_a_thing_is_asked_where_one_class_only_can_be_meant() -> None:
    found = asked({"dog": (MIDDLE,), "cat": (RIGHT,)}, "what is to the")
    assert {text: question.answer for text, question in found.items()} == {
        "What is to the right of the dog?": "cat",
        "What is to the left of the cat?": "dog",
    }
    np.testing.assert_allclose(found["What is to the right of the dog?"].boxes_xyxy, [RIGHT, MIDDLE])
    # A tiny bird on that side spoils it, one that is above does not.
    assert "What is to the right of the dog?" not in asked(
        {"dog": (MIDDLE,), "cat": (RIGHT,), "bird": ((0.65, 0.5, 0.66, 0.51),)}, "what is to the"
    )
    assert "What is to the right of the dog?" in asked(
        {"dog": (MIDDLE,), "cat": (RIGHT,), "bird": ((0.65, 0.1, 0.66, 0.11),)}, "what is to the"
    )


@pytest.mark.parametrize(
    ("others", "answer"),
    [
        ({"cup": (ON_TABLE,)}, "cup"),
        ({"cup": (ON_TABLE,), "person": (ON_TABLE,)}, "cup"),  # who stands behind the table
        ({"cup": (ON_TABLE,), "bowl": (ON_TABLE,)}, None),
        ({"cup": (ON_TABLE,), "bowl": (BEFORE_TABLE,)}, None),  # may be on it, too
        ({"cup": (BEFORE_TABLE,)}, None),
        ({"cup": ((0.0, 0.3, 0.3, 0.7),)}, None),  # laps over the side
        ({"person": (ON_TABLE,)}, None),
        ({"cup": ((0.4, 0.3, 0.5, 0.52),)}, None),  # behind its edge
    ],
)
def test_what_is_on_a_table_is_asked_only_beyond_doubt(others: dict[str, tuple[BoxXyxy]], answer: str | None) -> None:
    found = asked({"dining table": (TABLE,), **others}, "what is on the")
    assert [question.answer for question in found.values()] == ([answer] if answer else [])


@pytest.mark.parametrize(
    ("caption", "colours"),
    [
        ("A red bus on the street", [("bus", "red")]),
        ("a red and white double decker bus", [("bus", "red and white")]),
        ("a small grey kitten near an orange", [("cat", "gray")]),
        ("a white man on a black horse", [("horse", "black")]),
        ("the bus passes a red wall", []),
        ("a large dog", []),
    ],
)
def test_captions_say_the_colours_of_things(caption: str, colours: list[tuple[str, str]]) -> None:
    assert colours_in(caption) == colours


def test_a_colour_is_asked_for_where_captions_agree_about_a_single_thing() -> None:
    boxes = {"bus": (LEFT,), "dog": (MIDDLE, RIGHT)}
    agree = asked(boxes, "what color is the", "a red bus", "the bus is late", "red bus and a brown dog")
    assert {text: question.answer for text, question in agree.items()} == {"What color is the bus?": "red"}
    np.testing.assert_allclose(agree["What color is the bus?"].boxes_xyxy, [LEFT])
    assert asked(boxes, "what color is the", "a red bus", "a yellow bus") == {}


BOXES = st.dictionaries(
    st.sampled_from(COCO_CLASSES),
    st.lists(
        st.tuples(*(st.floats(0, 0.5) for _ in range(2)), *(st.floats(0.01, 0.5) for _ in range(2))).map(
            lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
        ),
        min_size=1,
        max_size=7,
    ).map(tuple),
    max_size=6,
)


@settings(max_examples=30)
@given(st.lists(BOXES, max_size=4), st.integers(0, 9))
def test_whatever_the_boxes_questions_keep_to_their_limits_and_repeat_with_the_seed(
    listed: list[dict[str, tuple[BoxXyxy, ...]]], seed: int
) -> None:
    photos = [PhotoBoxes(str(i), boxes) for i, boxes in enumerate(listed)]
    made = list(ask(photos, np.random.default_rng(seed)))
    again = list(ask(photos, np.random.default_rng(seed)))
    assert [(q.image, q.text, q.answer) for q in made] == [(q.image, q.text, q.answer) for q in again]
    counts = Counter((question.image, question.question_type) for question in made)
    assert all(count <= MOST[question_type] for (_, question_type), count in counts.items())
    for question in made:
        own = {box for boxes in photos[int(question.image)].boxes.values() for box in boxes}
        assert {tuple(box) for box in question.boxes_xyxy.tolist()} <= own
        assert (len(question.boxes_xyxy) == 0) == (
            question.answer in ("0", "no") and question.question_type != "is the"
        )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"most": {"what colour": 1}}, "what color is the"),
        ({"most": {"is the": -1}}, "not at least 0"),
        ({"likely": 1.5}, "share from 0 to 1"),
        ({"smallest": 1.0}, "share of the photo"),
        ({"ratio": 1.0}, "not above 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, object], words: str) -> None:
    with pytest.raises((InvalidValue, UnknownName), match=words):
        AskSettings(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question_type", "boxes", "answers", "error"),
    [
        ("is there a", [[0.5, 0.5, 0.5, 0.6]], ("no",), InvalidValue),
        ("is there a", [[0.5, 0.5, np.nan, 0.6]], ("no",), InvalidValue),
        ("is there a", [], (), InvalidValue),
        ("why", [], ("no",), UnknownName),
    ],
)
def test_a_question_that_cannot_be_is_refused(
    question_type: str, boxes: list[list[float]], answers: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        BoxQuestion("1", "Is it?", question_type, "yes/no", "no", answers, np.array(boxes).reshape(-1, 4), ())


def test_pope_becomes_the_same_value_and_every_line_is_accounted_for() -> None:
    def line(text: str, label: str, name: str = "COCO_val2014_000000000007.jpg") -> PopeQuestion:
        return PopeQuestion(1, name, text, label)  # type: ignore[arg-type]

    lines = [
        line("Is there a dog in the image?", "yes"),
        line("Is there an umbrella in the image?", "no"),
        line("Is there a dog in the image?", "no"),
        line("Is there a cat in the image?", "yes"),
        line("Is there a unicorn in the image?", "no"),
        line("What is it?", "no"),
        line("Is there a dog in the image?", "yes", "COCO_val2014_000000000008.jpg"),
        InvalidRecord("pope.json", 8, "is cut off"),
    ]
    made = list(from_pope(lines, {"000000000007": photo({"dog": (LEFT,)})}))
    good = [one for one in made if isinstance(one, BoxQuestion)]
    assert [(one.answer, one.classes, len(one.boxes_xyxy)) for one in good] == [
        ("yes", ("dog",), 1),
        ("no", ("umbrella",), 0),
    ]
    reasons = [one.reason for one in made if isinstance(one, InvalidRecord)]
    assert [reason.split()[0] for reason in reasons] == ["says", "says", "'unicorn'", "is", "the", "is"]


def test_boxes_are_read_with_the_bad_ones_named(tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    rows = [
        [16, 0.5, 0.5, 0.2, 0.2],
        [80, 0.5, 0.5, 0.2, 0.2],
        [16, 0.5, 0.5, 0.0, 0.2],
        [16, 0.5],
        [16, 2, 2, 0.1, 0.1],
    ]
    path.write_text(json.dumps({"7": rows}))
    photos, bad = read_photo_boxes(path)
    assert photos[0].image == "000000000007"
    np.testing.assert_allclose(photos[0].boxes["dog"], [(0.4, 0.4, 0.6, 0.6)])
    assert [record.where for record in bad] == ["7[1]", "7[2]", "7[3]", "7[4]"]
    for record, words in zip(bad, ("no class 80", "no area", "is not [class", "no area"), strict=True):
        assert words in record.reason
    path.write_text("[]")
    with pytest.raises(InvalidFile, match="is not boxes of images"):
        read_photo_boxes(path)


def test_coco_s_own_file_is_read_with_its_crowds(tmp_path: Path) -> None:
    path = tmp_path / "instances.json"
    box = {"id": 1, "image_id": 7, "category_id": 1, "bbox": [10, 10, 20, 20], "area": 400, "iscrowd": 0}
    content = {
        "images": [{"id": 7, "file_name": "a.jpg", "width": 100, "height": 100}],
        "annotations": [box, {**box, "id": 2, "category_id": 2, "iscrowd": 1}, {**box, "id": 3, "category_id": 3}],
        "categories": [{"id": i, "name": name} for i, name in ((1, "dog"), (2, "person"), (3, "unicorn"))],
    }
    path.write_text(json.dumps(content))
    photos, bad = read_photo_boxes(path)
    assert [(one.image, list(one.boxes), one.crowds) for one in photos] == [
        ("000000000007", ["dog"], frozenset({"person"}))
    ]
    np.testing.assert_allclose(photos[0].boxes["dog"], [(0.1, 0.1, 0.3, 0.3)])
    assert [(record.where, record.reason) for record in bad] == [("annotation 3", "'unicorn' is no class of COCO")]


def test_the_real_photos_give_questions_of_every_type_and_pope_finds_its_boxes(shared: Callable[[str], Path]) -> None:
    photos, bad = read_photo_boxes(shared("data/coco_val/boxes.json"))
    assert (len(photos), bad) == (2344, [])
    made = list(ask(photos[:800], np.random.default_rng(0)))
    counts = Counter(question.question_type for question in made)
    assert set(counts) == TYPES.keys() - {"what color is the"}  # captions bring the colours
    assert counts["is there a"] > 2400
    items = list(pope.read(shared("data/pope/coco_pope_random.json")))
    found = [one for one in from_pope(items, {one.image: one for one in photos}) if isinstance(one, BoxQuestion)]
    assert len(found) == 261
    assert all((one.answer == "yes") == (len(one.boxes_xyxy) > 0) for one in found)


def test_boxes_of_one_photo_are_gathered_by_class() -> None:
    boxes = [ClassBox("b", "dog", LEFT), ClassBox("a", "cat", LEFT), ClassBox("b", "dog", RIGHT)]
    assert by_photo(boxes, [ClassBox("c", "cow", LEFT)]) == [
        PhotoBoxes("a", {"cat": (LEFT,)}),
        PhotoBoxes("b", {"dog": (LEFT, RIGHT)}),
        PhotoBoxes("c", {}, frozenset({"cow"})),
    ]
