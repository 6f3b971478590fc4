"""A trust study: what is written is what is read, whose side is whose, and nothing said is lost or counted twice."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.studio.participants import participant_code
from saywhere.studio.study import MOST_SIDE, Item, Study, StudyPhoto, read_study, turns, write_study
from saywhere.studio.study_ratings import Rating, RatingLog, read_ratings
from tests.studio.conftest import encoded, picture, png
from tests.studio.logs import add_raw, log_bodies
from tests.studio.studies import A_MAP, B_MAP, MODELS, change_study, item, make_study

SCALE = (-2, -1, 0, 1, 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_study(tmp_path / "study")


# The study on disk.


def test_a_study_that_is_written_is_read_as_it_was(folder: Path) -> None:
    study = read_study(folder)
    assert (study.title, study.models, list(study.items)) == ("Where do they look?", MODELS, ["q0", "q1", "q2", "q3"])
    first, second = study.items["q0"], study.items["q1"]
    assert (first.prompt, first.word, first.answer) == ("a red wall beside a blue one", "wall", "")
    assert (second.word, second.answer, second.photo.width, second.photo.height) == ("", "blue", 65, 48)
    assert np.array_equal(first.levels["a"], 255 * A_MAP)
    assert np.array_equal(first.levels["b"], 255 * (B_MAP / 2))


def test_maps_may_be_rows_of_numbers_and_photos_any_kind_that_browsers_show(folder: Path) -> None:
    (folder / "mine.webp").write_bytes(encoded(picture(), "WEBP"))
    change_study(folder, maps={"a": [[0, 0.5], [1, 0]], "b": [[0, 0], [0, 0]]}, photo="mine.webp")
    first = read_study(folder).items["q0"]
    assert first.levels["a"].tolist() == [[0, 128], [255, 0]]
    assert not first.levels["b"].any()
    assert first.photo.media_type == "image/webp"


def test_a_large_map_is_made_smaller_by_area_and_keeps_its_place_and_shape(tmp_path: Path) -> None:
    large = np.zeros((2 * MOST_SIDE, 4 * MOST_SIDE))
    large[: MOST_SIDE // 2, : 2 * MOST_SIDE] = 1
    write_study(tmp_path, "large", MODELS, [item(maps={"a": large, "b": 1e300 * large + 1e299})])
    levels = read_study(tmp_path).items["q0"].levels
    wanted = np.zeros((MOST_SIDE // 2, MOST_SIDE))
    wanted[: MOST_SIDE // 8, : MOST_SIDE // 2] = 255
    assert np.array_equal(levels["a"], wanted)
    assert set(np.unique(levels["b"])) == {23, 255}


def test_a_photo_of_many_items_is_kept_once_and_without_its_metadata(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    photo = encoded(picture(), "JPEG", exif=exif.tobytes())
    write_study(tmp_path, "one photo", MODELS, [item(i, photo=photo) for i in range(3)])
    [kept] = (tmp_path / "photos").iterdir()
    assert b"taken at home" in photo
    assert b"taken at home" not in kept.read_bytes()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"photo": "photos/none.jpg"}, "item q0: photo photos/none.jpg was not found"),
        ({"photo": "../outside.png"}, "item q0: photo ../outside.png is not inside"),
        ({"photo": "\0"}, "item q0: photo"),
        ({"photo": "broken.png"}, "item q0: photo broken.png"),
        ({"photo": "moving.gif"}, "item q0: photo moving.gif is GIF, not PNG"),
        ({"maps": {"a": [[1, float("nan")]], "b": [[1, 1]]}}, "item q0: map a holds NaN"),
        ({"maps": {"a": [[1, 1]], "b": [[1, float("inf")]]}}, "item q0: map b holds NaN or infinity"),
        ({"maps": {"a": [[1, -1]], "b": [[1, 1]]}}, "item q0: map a holds negative"),
        ({"maps": {"a": [[1, 1], [1]], "b": [[1, 1]]}}, "item q0: map a is not rows of as many numbers"),
        ({"maps": {"a": [], "b": [[1, 1]]}}, r"item q0: map a has the shape \(0,\)"),
        ({"maps": {"a": [[1, 1]], "b": [[1], [1]]}}, "item q0: maps have different shapes: 1 × 2 and 2 × 1"),
        ({"maps": {"a": [[1] * 129], "b": [[1] * 129]}}, "item q0: map a is 1 × 129, more than"),
        ({"maps": {"a": "maps/none.png", "b": [[1]]}}, "item q0: map a maps/none.png was not found"),
        ({"maps": {"a": "broken.png", "b": [[1]]}}, "item q0: map a broken.png is not a PNG"),
        ({"maps": {"a": "colour.png", "b": [[1]]}}, "item q0: map a colour.png is not a small 8-bit grey"),
        ({"maps": {"a": [[1]]}}, "missing required field `b`"),
        ({"word": ""}, "item q0: needs a word or an answer"),
        ({"answer": "yes"}, "item q0: needs a word or an answer, and not both"),
        ({"prompt": " "}, "item q0: prompt: is empty"),
        ({"prompt": "x" * 2001}, "item q0: prompt: has 2,001 characters"),
        ({"id": "q1"}, "item q1: comes twice"),
        ({"id": "../q"}, r"item number 1: has the id '../q'"),
        ({"items": []}, "items: are 0"),
        ({"models": {"a": "x", "b": "x"}}, "models: are both called x"),
        ({"title": 7}, r"Expected `str`, got `int` - at `\$.title`"),
        ({"colour": "red"}, "unknown field `colour`"),
    ],
)
def test_what_is_wrong_with_a_study_is_said_with_its_item(folder: Path, changes: dict[str, Any], reason: str) -> None:
    (folder.parent / "outside.png").write_bytes(png())
    (folder / "broken.png").write_bytes(b"no photo")
    (folder / "colour.png").write_bytes(png())
    (folder / "moving.gif").write_bytes(encoded(picture(), "GIF"))
    change_study(folder, **changes)
    with pytest.raises(InvalidFile, match=reason) as refused:
        read_study(folder)
    assert refused.value.path.endswith("study.json")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"title": "x"}', "null", "[" * 100_000, "\udcff"])
def test_a_broken_study_is_refused(folder: Path, text: str) -> None:
    (folder / "study.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidFile, match="is not a study"):
        read_study(folder)


def test_a_folder_without_a_study_is_refused_and_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="write_study makes one"):
        read_study(tmp_path)


def test_several_wrong_items_are_all_counted(folder: Path) -> None:
    for photo in (folder / "photos").iterdir():
        photo.unlink()
    with pytest.raises(InvalidFile, match=r"item q0: .*item q1: .*item q2: .*and 1 more items"):
        read_study(folder)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"maps": {"a": A_MAP}}, "item q0: maps: are of a, not of a and b"),
        ({"maps": {"a": A_MAP, "b": B_MAP[None]}}, r"item q0: map b: has the shape \(1, 2, 3\)"),
        ({"maps": {"a": A_MAP, "b": B_MAP[:, :1]}}, "item q0: maps: have different shapes"),
        ({"maps": {"a": np.full((2, 3), np.nan), "b": B_MAP}}, "item q0: map a: holds NaN"),
        ({"maps": {"a": "?", "b": B_MAP}}, "item q0: map a: is not rows"),
        ({"photo": "no-such-photo.jpg"}, "item q0: no-such-photo.jpg: was not found"),
        ({"photo": np.zeros((2, 2, 7), np.uint8)}, "item q0: photo: "),
        ({"id": "with space"}, "item number 1: has the id"),
    ],
)
def test_a_wrong_item_is_named_when_it_is_written_and_no_study_is_left(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason):
        write_study(tmp_path, "wrong", MODELS, [item(**changes)])
    assert not (tmp_path / "study.json").exists()


def test_a_study_that_people_have_rated_is_not_written_over(folder: Path) -> None:
    (folder / "ratings.jsonl").touch()
    with pytest.raises(InvalidFile, match="people have rated"):
        make_study(folder)


# Order and sides.


def study_of(count: int) -> Study:
    photo = StudyPhoto("0" * 32, Path("x.png"), "image/png", 1, 1)
    level = np.zeros((1, 1), np.uint8)
    items = {f"q{i}": Item(f"q{i}", photo, "?", "", "yes", {"a": level, "b": level}) for i in range(count)}
    return Study(Path(), "t", "?", {"a": "x", "b": "y"}, items)


@given(st.integers(1, 41), st.text("AB12", min_size=1, max_size=4))
def test_every_participant_sees_every_item_once_with_each_model_left_as_often(count: int, code: str) -> None:
    plan = turns(study_of(count), code)
    left = Counter(turn.left for turn in plan)
    assert sorted(turn.item for turn in plan) == sorted(study_of(count).items)
    assert abs(left["a"] - left["b"]) == count % 2
    assert all({turn.left, turn.right} == {"a", "b"} for turn in plan)
    assert plan == turns(study_of(count), code)


def test_order_and_sides_differ_between_people_and_do_not_hang_together() -> None:
    study = study_of(9)
    plans = [turns(study, f"P{i}") for i in range(400)]
    assert len({tuple(turn.item for turn in plan) for plan in plans}) > 395
    for place, name in product((0, 8), ("q0", "q8")):
        share = np.mean([plan[place].item == name for plan in plans])
        assert abs(share - 1 / 9) < 0.06
    for left in ([plan[0].left == "a" for plan in plans], [turn.left == "a" for p in plans for turn in p[-1:]]):
        assert abs(np.mean(left) - 0.5) < 0.1
    sides = [{turn.item: turn.left for turn in plan} for plan in plans]
    for one, other in (("q0", "q1"), ("q0", "q2")):
        assert abs(np.mean([left[one] == left[other] for left in sides]) - 4 / 9) < 0.1
    of_one = [turn.left == "a" for plan in plans for turn in plan if turn.item == "q0"]
    assert abs(np.mean(of_one) - 0.5) < 0.1


# The ratings.


def rating(item: str = "q0", value: int = 1, **more: Any) -> Rating:
    return Rating(**{"participant": "P1", "item": item, "left": "a", "rating": value, "at": "2020-01-01", **more})


def test_a_line_that_an_earlier_version_tore_swallows_nothing_and_is_named(tmp_path: Path) -> None:
    RatingLog(tmp_path).add(rating("q0"))
    [whole] = log_bodies(tmp_path, "ratings")
    add_raw(tmp_path, "ratings", whole[:25])
    RatingLog(tmp_path).add(rating("q1"))
    again = read_ratings(tmp_path)
    assert [one.item for one in again] == ["q0", "q1"]
    assert [line.number for line in again.bad_lines] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "[]",
        '{"participant":"P1"}',
        '{"participant":"P1","item":"q9","left":"c","rating":0,"at":""}',
        '{"participant":"P1","item":"q9","left":"a","rating":3,"at":""}',
        '{"participant":"P 1","item":"q9","left":"a","rating":0,"at":""}',
        '{"participant":"P1","item":"q9","left":"a","rating":0,"at":"","seconds":-1}',
        '{"participant":"P1","item":"q9","left":"a","rating":0,"at":"","undone":true}',
        '{"participant":"P1","item":"q0","left":"a","rating":0,"at":""}',
    ],
)
def test_a_bad_line_does_not_count_and_is_named(tmp_path: Path, line: str) -> None:
    log = RatingLog(tmp_path)
    log.add(rating("q0"))
    add_raw(tmp_path, "ratings", line.encode())
    log.add(rating("q1"))
    assert [one.item for one in log.given] == ["q0", "q1"]
    assert [bad.number for bad in log.given.bad_lines] == [2]
    assert [json.loads(kept)["item"] for kept in log_bodies(tmp_path, "ratings")[::2]] == ["q0", "q1"]


def test_what_does_not_go_with_what_holds_is_not_written(tmp_path: Path) -> None:
    log = RatingLog(tmp_path)
    log.add(rating("q0"))
    for wrong in (rating("q0", 2), rating("q1", undone=True), rating("q1", 3)):
        with pytest.raises(InvalidValue):
            log.add(wrong)
    assert len(log_bodies(tmp_path, "ratings")) == 1
    assert [one.item for one in log.given] == ["q0"]


def test_a_folder_that_is_not_there_is_said_and_nothing_counts(tmp_path: Path) -> None:
    log = RatingLog(tmp_path / "missing")
    with pytest.raises(InvalidFile, match="is not a folder"):
        log.add(rating())
    assert list(log.given) == []


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(["P1", "P2"]), st.integers(0, 3), st.sampled_from(SCALE)), max_size=25))
def test_reading_the_ratings_anew_gives_what_held(
    tmp_path_factory: pytest.TempPathFactory, done: list[tuple[str, int, int]]
) -> None:
    log = RatingLog(tmp_path_factory.mktemp("log"))
    held: dict[tuple[str, str], int] = {}
    for who, number, value in done:
        key = (who, f"q{number}")
        log.add(rating(key[1], value, participant=who, undone=key in held))
        if held.pop(key, None) is None:
            held[key] = value
    again = {(one.participant, one.item): one.rating for one in read_ratings(log.folder)}
    assert again == held == {(one.participant, one.item): one.rating for one in log.given}


@pytest.mark.parametrize(("typed", "code"), [("p07", "P07"), ("  Ab_1-2 ", "AB_1-2"), ("7", "7")])
def test_a_code_is_kept_in_one_form(typed: str, code: str) -> None:
    assert participant_code(typed) == code


@pytest.mark.parametrize(
    "typed", ["", "  ", "a b", "ß", "ı", "../x", "a/b", "-a", "é", "x" * 41, "a\n b", "<b>", "P,1", "\0"]
)
def test_a_code_with_odd_characters_is_refused(typed: str) -> None:
    with pytest.raises(InvalidValue, match="participant code"):
        participant_code(typed)
