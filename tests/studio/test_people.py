"""People with codes: who tells which photo, what waits for whom, reviews and their history, agreement."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from saywhere.cli.people import app
from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.metrics.lbm import lbm
from saywhere.studio.errors import Refused
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.people_agreement import AnnotatorTelling, agreement, agreement_of
from saywhere.studio.people_desk import PeopleDesk
from saywhere.studio.people_log import PeopleLog
from saywhere.studio.people_plan import planned
from saywhere.studio.photos import PhotoStore
from saywhere.studio.settings import Limits

from .conftest import narrative, png
from .logs import add_raw, log_lines

WORDS = [{"text": "red", "start_s": 0.0, "end_s": 0.6}, {"text": "wall", "start_s": 0.6, "end_s": 1.2}]


def desk_of(folder: Path, photos: int = 0) -> PeopleDesk:
    store = PhotoStore(folder / "photos", Limits())
    for number in range(photos):
        store.add(png(32 + number), f"{number}.png")
    return PeopleDesk(folder, NarrativeStore(folder / "narratives"), store)


@pytest.fixture
def desk(tmp_path: Path) -> PeopleDesk:
    """Four photos, three annotators, one reviewer; every photo is told by two."""
    desk = desk_of(tmp_path, 4)
    desk.add("annotator", ["a1", "a2", "a3"])
    desk.add("reviewer", ["r1"])
    desk.assign(2)
    return desk


def tell(desk: PeopleDesk, code: str, photo: str = "", **changes: Any) -> dict[str, Any]:
    """An annotator tells a photo, the next that is open unless another is named."""
    photo = photo or next(task.photo for task in desk.tasks(code) if task.state in ("open", "returned"))
    return desk.narratives.create(narrative(photo, annotator=code, words=WORDS, **changes))


def states(desk: PeopleDesk, code: str) -> Counter[str]:
    return Counter(task.state for task in desk.tasks(code))


def review(desk: PeopleDesk, told: dict[str, Any], verdict: Any, note: str = "") -> str:
    digest = next(
        one.telling.digest for one in desk.submissions() if one.telling is not None and one.telling.id == told["id"]
    )
    return desk.review("r1", told["id"], digest, verdict, note).state


# The plan.


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 7), st.data())
def test_every_photo_gets_its_annotators_and_everybody_as_many_photos(photos: int, people: int, data: Any) -> None:
    each, seed = data.draw(st.integers(1, people)), data.draw(st.integers(0, 99))
    names, codes = [f"p{n}" for n in range(photos)], [f"A{n}" for n in range(people)]
    plan = planned(names, codes, each, seed, {}, {})
    assert plan == planned(list(reversed(names)), codes, each, seed, {}, {})
    assert Counter(photo for photo, _ in plan) == dict.fromkeys(names, each)
    assert len(set(plan)) == len(plan)
    loads = Counter(dict.fromkeys(codes, 0)) + Counter(code for _, code in plan)
    assert max(loads.values()) - min(loads.get(code, 0) for code in codes) <= 1


def test_every_two_people_share_about_as_many_photos() -> None:
    plan = planned([f"p{n:02}" for n in range(60)], list("ABCDE"), 2, 0, {}, {})
    by_photo: dict[str, list[str]] = {}
    for photo, code in plan:
        by_photo.setdefault(photo, []).append(code)
    shared = Counter(frozenset(codes) for codes in by_photo.values())
    assert len(shared) == 10
    assert max(shared.values()) - min(shared.values()) <= 4


def test_photos_and_people_that_come_later_fill_up_what_is_there(desk: PeopleDesk, tmp_path: Path) -> None:
    before = {code: set(photos) for code, photos in desk.log.given.assigned.items()}
    assert desk.assign(2) == 0
    desk.photos.add(png(99), "late.png")
    desk.add("annotator", ["a4"])
    assert desk.assign(2) == 2
    assert desk.assign(3) == 5
    after = desk.log.given.assigned
    assert all(before[code] <= set(after[code]) for code in before)
    assert Counter(photo for photos in after.values() for photo in photos) == {
        info.id: 3 for info in desk.photos.list()
    }
    assert max(map(len, after.values())) - min(map(len, after.values())) <= 1


def test_more_annotators_than_there_are_cannot_be_asked_for(desk: PeopleDesk) -> None:
    with pytest.raises(InvalidValue, match="4 for each photo, of 3 who take part"):
        desk.assign(4)


def test_who_leaves_keeps_what_was_told_and_the_rest_goes_to_others(desk: PeopleDesk) -> None:
    told = tell(desk, "A1")
    left = len(desk.tasks("A1")) - 1
    desk.retire("a1")
    with pytest.raises(UnknownName):
        desk.tasks("A1")
    assert desk.assign(2) == left
    people = {code: photos for code, photos in desk.log.given.assigned.items() if code != "A1"}
    counts = Counter(photo for photos in people.values() for photo in photos)
    assert counts[told["photo"]] == 1
    assert sorted(counts.values()) == [1, 2, 2, 2]
    desk.add("annotator", ["A1"])
    assert states(desk, "A1")["waiting"] == 1


def test_who_is_to_leave_by_a_wrong_code_is_told_the_right_ones(desk: PeopleDesk) -> None:
    with pytest.raises(UnknownName, match=r"unknown code 'A9'\. Known: A1, A2, A3, R1\."):
        desk.retire("A9")


# Codes.


def test_codes_are_kept_in_one_form_and_new_ones_are_random(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    made = desk.add("annotator", [" p07 "], count=50)
    assert made[0] == "P07"
    assert len(set(made)) == 51
    assert {len(code) for code in made[1:]} == {8}
    assert not set("01OIL") & set("".join(made[1:]))
    assert set(log_lines(tmp_path, "people")[0]) == {"kind", "code", "role", "at"}


@pytest.mark.parametrize(
    ("role", "codes"),
    [("annotator", ["a1"]), ("reviewer", ["a1"]), ("annotator", ["B", "b"]), ("annotator", ["Ada L"])],
)
def test_a_code_that_is_taken_or_cannot_be_adds_nobody(desk: PeopleDesk, role: Any, codes: list[str]) -> None:
    before = dict(desk.log.given.people)
    with pytest.raises(InvalidValue):
        desk.add(role, ["NEW1", *codes])
    assert desk.log.given.people == before


def test_an_unknown_code_does_not_tell_the_others(desk: PeopleDesk) -> None:
    with pytest.raises(UnknownName) as said:
        desk.person("A9")
    assert "A1" not in str(said.value)


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"kind":"person","code":"a b","role":"annotator","at":""}',
        b'{"kind":"person","code":"B","role":"boss","at":""}',
        b'{"kind":"assignment","photo":"../x","annotator":"A1","at":""}',
        b'{"kind":"assignment","photo":"' + b"0" * 32 + b'","annotator":"R1","at":""}',
        b'{"kind":"skip","photo":"' + b"0" * 32 + b'","annotator":"A1","reason":"x","at":""}',
        b'{"kind":"review","narrative":"' + b"0" * 32 + b'","photo":"p","annotator":"A1","digest":"","reviewer":"A1",'
        b'"verdict":"accept","at":""}',
    ],
)
def test_a_bad_line_about_people_does_not_count_and_is_named(desk: PeopleDesk, tmp_path: Path, line: bytes) -> None:
    held = len(log_lines(tmp_path, "people"))
    add_raw(tmp_path, "people", line)
    again = PeopleLog(tmp_path).given
    assert [bad.number for bad in again.bad_lines] == [held + 1]
    assert list(again.people) == ["A1", "A2", "A3", "R1"]


# Telling and reviewing.


def test_a_narrative_goes_to_the_reviewer_back_with_a_note_and_is_accepted(desk: PeopleDesk, tmp_path: Path) -> None:
    first = tell(desk, "A1")
    assert states(desk, "A1")["waiting"] == 1
    assert review(desk, first, "return", "  name the colour  ") == "returned"
    [task] = [task for task in desk.tasks("A1") if task.state == "returned"]
    assert (task.photo, task.note) == (first["photo"], "name the colour")
    desk.narratives.replace(first["id"], {**first, "text": "a red wall, dark red"})
    assert states(desk, "A1")["returned"] == 0
    assert review(desk, first, "accept") == "accepted"
    again = desk_of(tmp_path)
    [done] = [task for task in again.tasks("A1") if task.state == "accepted"]
    assert [(one.verdict, one.note) for one in done.reviews] == [("return", "name the colour"), ("accept", "")]


def test_a_returned_photo_may_be_told_anew_and_the_newest_counts(desk: PeopleDesk) -> None:
    first = tell(desk, "A1", created="2026-01-01T10:00:00Z")
    review(desk, first, "return", "too short")
    second = tell(desk, "A1", first["photo"], created="2026-01-01T11:00:00Z")
    [one] = desk.submissions()
    assert one.telling is not None
    assert (one.telling.id, one.state, len(one.reviews)) == (second["id"], "waiting", 1)


def test_what_is_changed_after_it_was_accepted_waits_again(desk: PeopleDesk) -> None:
    told = tell(desk, "A1")
    review(desk, told, "accept")
    desk.narratives.replace(told["id"], {**told, "text": "something else"})
    assert desk.submissions()[0].state == "waiting"


def test_a_review_of_what_was_changed_meanwhile_is_refused(desk: PeopleDesk) -> None:
    told = tell(desk, "A1")
    [one] = desk.submissions()
    assert one.telling is not None
    desk.narratives.replace(told["id"], {**told, "text": "something else"})
    with pytest.raises(Refused, match="changed since"):
        desk.review("R1", told["id"], one.telling.digest, "accept", "")
    assert desk.submissions()[0].reviews == []


def test_a_review_that_is_sent_twice_is_kept_once(desk: PeopleDesk, tmp_path: Path) -> None:
    told = tell(desk, "A1")
    assert review(desk, told, "reject", "another photo") == review(desk, told, "reject", "another photo")
    assert sum(line["kind"] == "review" for line in log_lines(tmp_path, "people")) == 1


def test_what_was_rejected_is_asked_of_somebody_else(desk: PeopleDesk) -> None:
    told = tell(desk, "A1")
    review(desk, told, "reject", "nonsense")
    assert states(desk, "A1")["rejected"] == 1
    assert desk.assign(2) == 1
    people = [code for code, photos in desk.log.given.assigned.items() if told["photo"] in photos]
    assert sorted(people) == ["A1", "A2", "A3"]


@pytest.mark.parametrize(("verdict", "note"), [("return", " "), ("reject", ""), ("accept", "x" * 1001)])
def test_a_review_without_its_note_is_refused(desk: PeopleDesk, verdict: Any, note: str) -> None:
    told = tell(desk, "A1")
    with pytest.raises(InvalidValue, match="note"):
        review(desk, told, verdict, note)


def test_nobody_but_a_reviewer_reviews_and_only_what_was_asked_for(desk: PeopleDesk) -> None:
    told = tell(desk, "A1")
    with pytest.raises(UnknownName):
        desk.review("A2", told["id"], "0" * 32, "accept", "")
    uninvited = desk.narratives.create(narrative(told["photo"], annotator="somebody"))
    with pytest.raises(UnknownName):
        desk.review("R1", uninvited["id"], "0" * 32, "accept", "")
    assert len(desk.submissions()) == 1


def test_skipping_has_a_reason_and_is_taken_back(desk: PeopleDesk) -> None:
    photo = desk.tasks("A1")[0].photo
    desk.skip("A1", photo, " too dark ")
    assert (desk.tasks("A1")[0].state, desk.tasks("A1")[0].note) == ("skipped", "too dark")
    desk.skip("A1", photo, "")
    assert desk.tasks("A1")[0].state == "open"


def test_everybody_has_an_own_order_that_stays(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, 8)
    desk.add("annotator", ["a1", "a2"])
    desk.assign(2)
    orders = [[task.photo for task in desk.tasks(code)] for code in ("A1", "A2")]
    assert orders[0] != orders[1]
    assert orders == [[task.photo for task in desk_of(tmp_path).tasks(code)] for code in ("A1", "A2")]


def test_the_status_says_how_far_everybody_is(desk: PeopleDesk) -> None:
    first, _ = tell(desk, "A1"), tell(desk, "A1")
    review(desk, first, "return", "more")
    one, *_, last = desk.status()
    assert (one.code, one.done, one.assigned) == ("A1", 1, len(desk.tasks("A1")))
    assert one.counts["returned"] == 1
    assert (last.code, last.reviews) == ("R1", 1)


# Agreement.


def boxes(*corners: tuple[float, float]) -> np.ndarray:
    return np.array([(x, y, x + 0.2, y + 0.2) for x, y in corners])


def world(photos: int, noise: float, seed: int = 0) -> dict[str, list[AnnotatorTelling]]:
    """Photos with their own places and words, told by three people who differ by some noise."""
    rng = np.random.default_rng(seed)
    told: dict[str, list[AnnotatorTelling]] = {}
    for number in range(photos):
        places = rng.uniform(0, 0.8, (6, 2))
        words = [f"thing{number}{letter}" for letter in "abcdef"]
        told[f"p{number}"] = [
            AnnotatorTelling(code, " ".join(words[at : at + 5]), boxes(*(places + rng.normal(0, noise, places.shape))))
            for at, code in enumerate(("A", "B"))
        ]
    return told


def test_people_who_see_the_same_agree_more_than_chance() -> None:
    found = agreement(world(12, 0.02))
    assert (found.photos, found.narratives, found.unplaced) == (12, 24, 0)
    for one in found.measures:
        assert one.people is not None
        assert one.chance is not None
        assert one.people.low <= one.people.mean <= one.people.high
        if one.lower_is_better:
            assert one.people.high < one.chance.low
        else:
            assert one.people.low > one.chance.high
    assert [one.name for one in found.measures] == ["LBM, k = 0", "LBM, k = 1", "ROUGE-L", "CIDEr"]


def test_lbm_between_people_is_the_mean_over_pairs_and_then_over_photos() -> None:
    p = [
        AnnotatorTelling("A", "x", boxes((0, 0))),
        AnnotatorTelling("B", "x", boxes((0.1, 0))),
        AnnotatorTelling("C", "x", boxes((0.4, 0))),
    ]
    q = [AnnotatorTelling("A", "y", boxes((0, 0))), AnnotatorTelling("B", "y", boxes((0, 0.2)))]
    found = agreement({"p": p, "q": q}).measures[0].people
    of_p = np.mean([lbm(a.boxes_xyxy, b.boxes_xyxy) for a, b in combinations(p, 2)])
    assert found is not None
    assert found.mean == pytest.approx((of_p + lbm(q[0].boxes_xyxy, q[1].boxes_xyxy)) / 2)


def test_who_points_anywhere_stands_out() -> None:
    told = world(10, 0.01)
    rng = np.random.default_rng(1)
    for people in told.values():
        people.append(AnnotatorTelling("Z", people[0].text, boxes(*rng.uniform(0, 0.8, (6, 2)))))
    by_code = {one.code: one.lbm for one in agreement(told).annotators}
    assert by_code["Z"] > 1.5 * max(by_code["A"], by_code["B"])


def test_what_cannot_be_compared_is_counted_and_left_out() -> None:
    nothing = np.empty((0, 4))
    assert agreement({}).measures[0].people is None
    assert agreement({"p": [AnnotatorTelling("A", "a cup", boxes((0, 0)))]}).photos == 0
    found = agreement({"p": [AnnotatorTelling("A", "a cup", nothing), AnnotatorTelling("B", "", boxes((0, 0)))]})
    assert (found.photos, found.unplaced) == (1, 1)
    assert all(one.people is None and one.chance is None for one in found.measures)
    assert found.annotators[0].lbm is None


def test_agreement_is_of_what_was_told_and_not_rejected(desk: PeopleDesk) -> None:
    photo, people = next(
        (photo, codes)
        for photo in (info.id for info in desk.photos.list())
        if len(codes := [code for code, photos in desk.log.given.assigned.items() if photo in photos]) == 2
    )
    told = [tell(desk, code, photo) for code in people]
    found = agreement_of(desk)
    assert (found.photos, found.narratives) == (1, 2)
    assert found.measures[0].people is not None
    assert found.measures[0].people.mean == 0
    assert found.measures[2].people.mean == pytest.approx(1)
    review(desk, told[0], "reject", "no")
    assert agreement_of(desk).photos == 0


# The command line.


def said(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_commands_add_assign_and_show(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, 3)
    assert said("add", tmp_path, "p1", "p2").split() == ["P1", "P2"]
    [reviewer] = said("add", tmp_path, "--reviewer", "--count", 1).split()
    assert "6 places given: 3 photos, 2 annotators each" in said("assign", tmp_path, "--each", 2)
    for code in ("P1", "P2"):
        tell(desk, code, desk.photos.list()[0].id)
    status = said("status", tmp_path)
    assert "1 of 3" in status
    assert reviewer in status
    shown = said("agreement", tmp_path, "--json", tmp_path / "agreement.json")
    assert "1 photos that several people told, 2 narratives" in shown
    assert "LBM, k = 0" in shown
    assert '"measures"' in (tmp_path / "agreement.json").read_text()
    said("retire", tmp_path, "p1")
    assert "annotator, left" in said("status", tmp_path)


def test_who_adds_nobody_is_told_how_to_and_nothing_is_made(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["add", str(tmp_path / "new")])
    assert isinstance(result.exception, InvalidValue)
    assert "--count" in str(result.exception)
    assert not (tmp_path / "new").exists()
