"""A collection on disk: photos, questions, answers, whose turn it is, status and export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.formats import hl
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.coco_captions import write as write_captions
from saywhere.formats.hl import HLRow
from saywhere.studio.collect import (
    QUESTIONS,
    Collection,
    asked_levels,
    open_collection,
    read_collection,
    write_collection,
)
from saywhere.studio.collect_answers import MOST_TEXT, AnnotatorAnswer, AnswerLog, plain_text, read_answers
from saywhere.studio.collect_desk import CollectDesk, take_photos
from saywhere.studio.collect_export import ObjectCaptions, export
from saywhere.studio.collect_status import SceneAgreement, collection_status, scene_agreement
from saywhere.studio.errors import Refused
from saywhere.studio.participants import DATABASE

from .collecting import make_collection, with_photos
from .conftest import encoded, picture, png
from .logs import add_raw, log_lines

ALL_LEVELS = asked_levels(list(QUESTIONS))


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_collection(tmp_path / "collection")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines(folder: Path) -> list[dict[str, Any]]:
    return log_lines(folder, "answers")


def answer_next(desk: CollectDesk, who: str, text: str = "in a kitchen", sure: int = 4) -> tuple[str, str]:
    task = desk.turn(who).task
    assert task is not None
    desk.answer(who, task, text, sure)
    return task


def answer_all(desk: CollectDesk, who: str, text: str = "in a kitchen", sure: int = 4) -> int:
    done = 0
    # Asked once a round: another window of the same annotator may answer meanwhile.
    while (task := desk.turn(who).task) is not None:
        desk.answer(who, task, text, sure)
        done += 1
    return done


# The folder.


def test_a_collection_is_read_as_it_was_written(folder: Path) -> None:
    collection = read_collection(folder)
    assert collection.levels == {"scene": "Where is the picture taken?"}
    assert collection.annotators == 3
    assert [photo.file_name for photo in collection.photos] == ["0.png", "1.png", "2.png", "3.png"]
    assert len({photo.id for photo in collection.photos}) == 4


def test_photos_that_cannot_be_taken_are_named_and_the_others_are_there(folder: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    (more / "below").mkdir(parents=True)
    (more / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 and no more")
    (more / "notes.png").write_text("not a photo")
    (more / "again.png").write_bytes(png(64, 48))
    (more / "1.png").write_bytes(png(99, 48))
    (more / "below" / "new.webp").write_bytes(encoded(picture(70, 40), "WEBP"))
    refused = with_photos(read_collection(folder), more)
    assert {Path(one.path).name: one.reason for one in refused} | {"broken.jpg": ""} == {
        "1.png": "another photo of this name is in the collection",
        "again.png": "is the same photo as 0.png",
        "broken.jpg": "",
        "notes.png": "the file is not PNG, JPEG or WebP",
    }
    names = [photo.file_name for photo in read_collection(folder).photos]
    assert names == ["0.png", "1.png", "2.png", "3.png", "new.webp"]


def test_taking_the_same_photos_again_changes_nothing(folder: Path, tmp_path: Path) -> None:
    before = (folder / "collection.json").read_bytes()
    assert with_photos(read_collection(folder), tmp_path / "collection-originals") == []
    assert (folder / "collection.json").read_bytes() == before


def test_levels_are_added_and_other_settings_changed_but_a_question_that_was_answered_stays(folder: Path) -> None:
    write_collection(open_collection(folder, levels=asked_levels(["action"]), annotators=2, title="Again"))
    collection = read_collection(folder)
    assert list(collection.levels) == ["scene", "action"]
    assert (collection.annotators, collection.title, len(collection.photos)) == (2, "Again", 4)
    answer_next(CollectDesk(folder), "A")
    assert open_collection(folder, levels=asked_levels(["action"], ["action=What happens?"])).levels["action"]
    with pytest.raises(InvalidValue, match="people have answered another question"):
        open_collection(folder, levels=asked_levels([], ["scene=Where?"]))


@pytest.mark.parametrize(
    ("levels", "questions", "reason"),
    [
        (["mood"], [], "has no question"),
        (["Scene"], [], "'Scene' is none"),
        (["object"], [], "object is not asked for"),
        ([], ["Where is it?"], "names no level"),
        ([""], [], "is none"),
    ],
)
def test_a_level_that_cannot_be_asked_is_refused(levels: list[str], questions: list[str], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        asked_levels(levels, questions)


def test_questions_may_be_in_other_words_and_of_further_levels() -> None:
    assert asked_levels(["scene"], ["scene=Where  is it?", "mood = How does it feel?"]) == {
        "scene": "Where is it?",
        "mood": "How does it feel?",
    }


@pytest.mark.parametrize(
    "changes", [{"title": " "}, {"annotators": 0}, {"annotators": 101}, {"levels": {}}, {"levels": {"scene": ""}}]
)
def test_a_collection_that_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Collection(**{"folder": tmp_path, "title": "T", "annotators": 3, "levels": {"scene": "Where?"}, **changes})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"title":"x"}', "\x00", '{"title":"","annotators":1,"levels":{"scene":"?"},"photos":[]}']
)
def test_a_damaged_collection_is_refused(folder: Path, text: str) -> None:
    (folder / "collection.json").write_text(text)
    with pytest.raises(InvalidFile, match=r"collection\.json"):
        read_collection(folder)


def test_a_folder_without_a_collection_says_how_to_begin_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="saywhere collect serve DIR --photos"):
        read_collection(tmp_path)


# Answers.


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("in a kitchen", "in a kitchen"),
        ("  in \n a\tkitchen ", "in a kitchen"),
        ("at the cafe\u0301", "at the café"),
        ("台所で", "台所で"),
        ("x" * MOST_TEXT, "x" * MOST_TEXT),
    ],
)
def test_a_text_is_kept_in_one_form(typed: str, kept: str) -> None:
    assert plain_text(typed) == kept


@pytest.mark.parametrize(
    "typed", ["", "   ", "\n\t", "…", "123", "\u200b", "a\0b", "a\ud800", "\u2060 \ufeff", "x" * (MOST_TEXT + 1)]
)
def test_what_is_no_text_is_refused(typed: str) -> None:
    with pytest.raises(InvalidValue, match="text"):
        plain_text(typed)


def an_answer(**changes: Any) -> AnnotatorAnswer:
    values = {"annotator": "A", "photo": "p", "file_name": "p.png", "level": "scene", "text": "in a bar", "at": "now"}
    return AnnotatorAnswer(**{**values, "confidence": 3, **changes})


@pytest.mark.parametrize(
    "line",
    [
        "x",
        '{"annotator":"A"}',
        '{"annotator":"A","photo":"q","file_name":"q","level":"scene","text":"in a bar","confidence":6,"at":""}',
        '{"annotator":"A","photo":"q","file_name":"q","level":"scene","text":" ","confidence":3,"at":""}',
        '{"annotator":"a b","photo":"q","file_name":"q","level":"scene","text":"in a bar","confidence":3,"at":""}',
        '{"annotator":"A","photo":"p","file_name":"p","level":"scene","text":"in a pub","confidence":3,"at":""}',
        '{"annotator":"A","photo":"q","file_name":"q","level":"scene","text":"a","confidence":3,"at":"","corrects":true}',
    ],
)
def test_a_bad_line_does_not_count_and_is_named(tmp_path: Path, line: str) -> None:
    log = AnswerLog(tmp_path)
    log.add(an_answer())
    add_raw(tmp_path, "answers", line.encode())
    log.add(an_answer(annotator="B"))
    assert [(one.annotator, one.text) for one in log.given] == [("A", "in a bar"), ("B", "in a bar")]
    assert [bad.number for bad in read_answers(tmp_path).bad_lines] == [2]


def test_a_correction_takes_the_place_and_both_are_kept(tmp_path: Path) -> None:
    log = AnswerLog(tmp_path)
    log.add(an_answer())
    log.add(an_answer(annotator="B", text="in a hotel"))
    log.add(an_answer(text="in a pub", confidence=5, corrects=True))
    for held in (log.given, read_answers(tmp_path)):
        assert [(one.annotator, one.text) for one in held.of(("p", "scene"))] == [
            ("A", "in a pub"),
            ("B", "in a hotel"),
        ]
    assert len(lines(tmp_path)) == 3


# Turns.


def test_every_photo_gets_as_many_answers_as_asked_for_and_each_annotator_answers_once(folder: Path) -> None:
    desk = CollectDesk(folder)
    assert [answer_all(desk, who) for who in "ABCDE"] == [4, 4, 4, 0, 0]
    assert Counter(line["photo"] for line in lines(folder)) == {photo.id: 3 for photo in desk.collection.photos}
    assert len({(line["annotator"], line["photo"]) for line in lines(folder)}) == 12


def test_photos_with_fewest_answers_come_first(folder: Path) -> None:
    for people in ("ABCD", "EFGH"):
        # A desk of its own for each: nobody holds a second photo meanwhile.
        assert len({answer_next(CollectDesk(folder), who)[0] for who in people}) == 4


def test_a_photo_that_somebody_looks_at_counts_as_answered_for_the_order(folder: Path) -> None:
    desk = CollectDesk(folder)
    assert len({desk.turn(who).task for who in "ABCD"}) == 4


def test_annotators_have_orders_of_their_own_and_a_reload_shows_the_same_photo(tmp_path: Path) -> None:
    folder = make_collection(tmp_path / "many", 12)
    first = {who: CollectDesk(folder).turn(who).task for who in "ABCDEFGH"}
    assert len(set(first.values())) > 3
    desk = CollectDesk(folder)
    assert desk.turn("A").task == desk.turn(" a ").task == first["A"]


def test_all_levels_of_a_photo_are_asked_one_after_another(tmp_path: Path) -> None:
    desk = CollectDesk(make_collection(tmp_path / "c", 3, levels=ALL_LEVELS))
    tasks = [answer_next(desk, "A") for _ in range(9)]
    assert [level for _, level in tasks] == ["scene", "action", "rationale"] * 3
    assert [len({photo for photo, _ in tasks[i : i + 3]}) for i in (0, 3, 6)] == [1, 1, 1]


def test_the_last_place_of_a_photo_is_given_to_one_at_a_time(tmp_path: Path, clock: Clock) -> None:
    desk = CollectDesk(make_collection(tmp_path / "c", 1, annotators=1), hold_s=60, clock=clock)
    first, second = desk.turn("A"), desk.turn("B")
    assert first.task is not None
    assert (second.task, second.open, second.waiting) == (None, 1, 1)
    clock.now_s = 59
    assert desk.turn("B").task is None


def test_a_photo_that_is_left_open_is_given_out_again_after_a_while(tmp_path: Path, clock: Clock) -> None:
    desk = CollectDesk(make_collection(tmp_path / "c", 1, annotators=1), hold_s=60, clock=clock)
    task = desk.turn("A").task
    clock.now_s = 50
    desk.turn("A")  # A is still there: the time begins anew.
    clock.now_s = 109
    assert desk.turn("B").task is None
    clock.now_s = 111
    assert desk.turn("B").task == task
    assert desk.turn("A").task is None


def test_an_answer_that_comes_too_late_is_kept_as_a_further_one_and_the_first_is_exported(
    tmp_path: Path, clock: Clock
) -> None:
    folder = make_collection(tmp_path / "c", 1, annotators=1)
    desk = CollectDesk(folder, hold_s=60, clock=clock)
    task = desk.turn("A").task
    assert task is not None
    clock.now_s = 61
    answer_next(desk, "B", "in a bar")
    late = desk.answer("A", task, "in a pub", 2)
    assert (late.done, late.task) == (1, None)
    assert [line["annotator"] for line in lines(folder)] == ["B", "A"]
    done = export(folder, tmp_path / "out.jsonl")
    assert (done.rows, done.further) == (1, 1)
    assert [row.captions for row in rows(tmp_path / "out.jsonl")] == [{"scene": ("in a bar",)}]
    [level] = collection_status(folder).levels
    assert (level.photos, level.answers, level.further) == ((0, 1), 2, 1)


def test_after_a_restart_answers_are_there_and_places_are_given_anew(folder: Path) -> None:
    desk = CollectDesk(folder)
    task = answer_next(desk, "A")
    desk.turn("B")
    again = CollectDesk(folder).turn("A")
    assert (again.done, again.open) == (1, 3)
    assert again.last is not None
    assert again.last.task == task


def test_many_at_a_time_lose_nothing_double_nothing_and_overfill_nothing(tmp_path: Path) -> None:
    folder = make_collection(tmp_path / "c", 6)
    desk = CollectDesk(folder)
    codes = [f"P{i % 6}" for i in range(18)]  # Three windows for each.
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda who: answer_all(desk, who), codes))
    held = read_answers(folder)
    assert held.bad_lines == []
    assert {task: len(answers) for task, answers in held.tasks.items()} == {
        (photo.id, "scene"): 3 for photo in desk.collection.photos
    }
    assert len(lines(folder)) == 18


def test_the_last_answer_can_be_corrected_and_no_other(folder: Path) -> None:
    desk = CollectDesk(folder)
    first, second = answer_next(desk, "A"), answer_next(desk, "A")
    turn = desk.answer("A", second, "in a bar", 1, correcting=True)
    assert turn.last is not None
    assert (turn.last.task, turn.last.text, turn.last.confidence, turn.done) == (second, "in a bar", 1, 2)
    desk.answer("A", second, "in a bar", 1, correcting=True)  # Sent again: the reply was lost.
    assert len(lines(folder)) == 3
    with pytest.raises(Refused, match="not your last"):
        desk.answer("A", first, "in a bar", 1, correcting=True)
    with pytest.raises(Refused, match="answered this already"):
        desk.answer("A", second, "in a pub", 1)
    assert len(lines(folder)) == 3


def test_a_photo_whose_file_is_gone_is_not_asked_about_and_nothing_else_is_lost(folder: Path) -> None:
    desk = CollectDesk(folder)
    task = answer_next(desk, "A")
    for path in (folder / "photos").glob(f"{task[0]}.*"):
        path.unlink()
    assert task[0] not in {answer_next(desk, "B")[0] for _ in range(3)}
    turn = desk.turn("B")
    assert (turn.task, turn.done) == (None, 3)
    after = CollectDesk(folder).turn("A")
    assert (after.done, after.last) == (1, None)


def test_a_photo_that_was_skipped_is_for_others(folder: Path) -> None:
    desk = CollectDesk(folder)
    task = desk.turn("A").task
    assert task is not None
    turn = desk.skip("A", task)
    assert turn.task != task
    assert turn.open == 3
    assert answer_all(desk, "A") == 3
    assert answer_all(desk, "B") == 4


def test_what_is_not_in_the_collection_is_not_answered(folder: Path) -> None:
    desk = CollectDesk(folder)
    task = desk.turn("A").task
    assert task is not None
    with pytest.raises(UnknownName):
        desk.answer("A", ("0" * 32, "scene"), "in a bar", 3)
    with pytest.raises(UnknownName):
        desk.answer("A", (task[0], "mood"), "in a bar", 3)
    with pytest.raises(InvalidValue, match="confidence"):
        desk.answer("A", task, "in a bar", 6)
    assert lines(folder) == []
    assert desk.turn("A").task == task


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABCDE"), st.sampled_from(["turn", "answer", "wait", "skip"])), max_size=60))
def test_whatever_people_do_no_photo_gets_more_answers_than_asked_for(
    tmp_path_factory: pytest.TempPathFactory, done: list[tuple[str, str]]
) -> None:
    folder = make_collection(tmp_path_factory.mktemp("c") / "c", 2, annotators=2)
    clock = Clock()
    desk = CollectDesk(folder, hold_s=10, clock=clock)
    for who, what in done:
        task = desk.turn(who).task
        if what == "wait":
            clock.now_s += 4
        elif what == "skip" and task is not None:
            desk.skip(who, task)
        elif what == "answer" and task is not None:
            desk.answer(who, task, "in a bar", 3)
    held = read_answers(folder)
    assert all(len(answers) <= 2 for answers in held.tasks.values())
    assert held.bad_lines == []


# What comes out.


def rows(path: Path) -> list[HLRow]:
    found = list(hl.read(path))
    assert all(isinstance(row, HLRow) for row in found)
    return [row for row in found if isinstance(row, HLRow)]


def test_the_export_is_hl_without_a_word_on_who_wrote_it(tmp_path: Path) -> None:
    folder = make_collection(tmp_path / "c", 2, levels=ALL_LEVELS)
    desk = CollectDesk(folder)
    for i, who in enumerate(("ANNA", "BERT", "CLEO")):
        answer_all(desk, who, f"text {'xyz'[i]}", i + 2)
    done = export(folder, tmp_path / "out.jsonl")
    assert (done.rows, done.unfinished, done.further, done.without_objects, done.passed_over) == (2, 0, 0, None, [])
    content = (tmp_path / "out.jsonl").read_text("utf-8")
    assert not any(who in content for who in ("ANNA", "BERT", "CLEO"))
    first, second = rows(tmp_path / "out.jsonl")
    assert [first.file_name, second.file_name] == ["0.png", "1.png"]
    assert set(first.captions) == set(first.confidence) == set(ALL_LEVELS)
    assert first.captions["rationale"] == ("text x", "text y", "text z")
    assert first.confidence["rationale"] == (2.0, 3.0, 4.0)


def test_photos_that_lack_answers_are_left_out_or_taken_in_part(tmp_path: Path) -> None:
    folder = make_collection(tmp_path / "c", 3, annotators=2, levels=asked_levels(["scene", "action"]))
    desk = CollectDesk(folder)
    whole = answer_next(desk, "A")[0]
    answer_next(desk, "A")
    for level in ("scene", "action"):
        desk.answer("B", (whole, level), "in a bar", 5)
    part = answer_next(desk, "C")[0]
    done = export(folder, tmp_path / "out.jsonl")
    assert (done.rows, done.unfinished) == (1, 2)
    done = export(folder, tmp_path / "out.jsonl", partial=True)
    names = {photo.id: photo.file_name for photo in desk.collection.photos}
    assert {
        row.file_name: {level: len(said) for level, said in row.captions.items()}
        for row in rows(tmp_path / "out.jsonl")
    } == {
        names[whole]: {"scene": 2, "action": 2},
        names[part]: {"scene": 1},
    }
    assert (done.rows, done.unfinished) == (2, 1)


def test_a_collection_without_answers_gives_no_rows(folder: Path, tmp_path: Path) -> None:
    assert export(folder, tmp_path / "out.jsonl", partial=True).rows == 0
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_object_captions_are_joined_by_name_or_number(tmp_path: Path) -> None:
    folder = make_collection(tmp_path / "c", 3, annotators=1)
    answer_all(CollectDesk(folder), "A")
    write_captions(
        tmp_path / "captions.json",
        [
            CaptionRecord(7, 1, "a red  wall", "0.png", 64, 48),
            CaptionRecord(7, 2, "a blue wall\n", "0.png", 64, 48),
            CaptionRecord(1, 3, "two walls", "other.png", 64, 48),
        ],
    )
    done = export(folder, tmp_path / "out.jsonl", captions=tmp_path / "captions.json")
    assert done.without_objects == 1
    found = {row.file_name: row.captions.get("object") for row in rows(tmp_path / "out.jsonl")}
    assert found == {"0.png": ("a red wall", "a blue wall"), "1.png": ("two walls",), "2.png": None}
    assert all(set(row.confidence) == {"scene"} for row in rows(tmp_path / "out.jsonl"))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("COCO_train2014_000000138878.jpg", True),
        ("000000138878.jpg", True),
        ("138878.png", True),
        ("photo 138878.jpg", True),
        ("1388789.jpg", False),
        ("kitchen.jpg", False),
        ("138878 kitchen.jpg", False),
    ],
)
def test_the_number_in_a_name_is_cocos_id(name: str, found: bool) -> None:
    objects = ObjectCaptions([CaptionRecord(138878, 1, "a man in a car")])
    assert objects.of(name) == (("a man in a car",) if found else ())


def test_bad_lines_and_answers_to_photos_that_are_not_there_are_named(folder: Path, tmp_path: Path) -> None:
    answer_all(CollectDesk(folder), "A")
    AnswerLog(folder).add(an_answer(photo="f" * 32))
    add_raw(folder, "answers", b"torn")
    done = export(folder, tmp_path / "out.jsonl", partial=True)
    assert done.rows == 4
    assert len(done.passed_over) == 2
    assert done.passed_over[0].startswith("line 6")
    assert done.passed_over[1].startswith("f" * 32)


def test_the_status_counts_photos_people_and_confidence(folder: Path) -> None:
    desk = CollectDesk(folder)
    answer_all(desk, "A", "in a kitchen", 5)
    answer_next(desk, "B", "at home", 2)
    status = collection_status(folder, lambda texts: [text.split() for text in texts])
    [level] = status.levels
    assert level.photos == (0, 3, 1, 0)
    assert (level.answers, level.further, level.confidence) == (5, 0, pytest.approx(22 / 5))
    assert [(one.code, one.answers, one.confidence) for one in status.people] == [("A", 4, 5), ("B", 1, 2)]
    assert status.people[0].words == 3
    assert status.agreement == SceneAgreement(0, 1)


@pytest.mark.parametrize(
    ("texts", "agreement"),
    [
        ({}, SceneAgreement(0, 0)),
        ({"p": ["kitchen"]}, SceneAgreement(0, 0)),
        ({"p": ["kitchen", "kitchen"]}, SceneAgreement(1, 1)),
        ({"p": ["kitchen kitchen", "bar"]}, SceneAgreement(0, 1)),
        ({"p": ["kitchen", "bar", "bar street"], "q": ["beach", "sea", "sand"]}, SceneAgreement(1, 2)),
    ],
)
def test_people_agree_where_two_name_the_same(texts: dict[str, list[str]], agreement: SceneAgreement) -> None:
    def words(given: Iterable[str]) -> list[list[str]]:
        return [text.split() for text in given]

    assert scene_agreement(texts, words) == agreement


def test_a_collection_of_other_questions_has_no_agreement(tmp_path: Path) -> None:
    folder = make_collection(tmp_path / "c", 1, levels=asked_levels(["action"]))
    answer_next(CollectDesk(folder), "A")
    assert collection_status(folder, lambda texts: [[] for _ in texts]).agreement is None


def test_a_file_that_cannot_be_written_is_said_and_nothing_counts(folder: Path) -> None:
    desk = CollectDesk(folder)
    task = desk.turn("A").task
    (folder / DATABASE).mkdir()
    with pytest.raises(InvalidFile, match=r"saywhere\.sqlite: cannot be read: unable to open"):
        answer_next(desk, "A")
    (folder / DATABASE).rmdir()
    assert (desk.turn("A").done, desk.turn("A").task) == (0, task)


def test_an_empty_folder_of_photos_gives_none(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert list(take_photos(read_collection(folder), tmp_path / "empty")) == []
