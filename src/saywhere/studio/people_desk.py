"""What annotators are to tell, how far they are, and what reviewers make of it.

Narratives are the Studio's, on the disk; here is who was asked for them and what was said of them. The newest
narrative of an annotator about a photo is the one that counts. A review counts for the content that the reviewer saw:
what is changed afterwards waits for another.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from saywhere.core.errors import UnknownName
from saywhere.core.narrative import HUMAN
from saywhere.studio.errors import Refused
from saywhere.studio.line_log import now
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.participants import participant_code
from saywhere.studio.people_log import (
    AssignmentLine,
    PeopleLog,
    PeopleState,
    PersonLine,
    ReviewLine,
    Role,
    SkipLine,
    Verdict,
)
from saywhere.studio.people_plan import planned
from saywhere.studio.photos import PhotoStore
from saywhere.studio.read_once import ReadOnce

TaskState = Literal["open", "returned", "waiting", "accepted", "rejected", "skipped"]
TO_TELL = frozenset({"open", "returned"})
DONE = frozenset({"waiting", "accepted", "rejected"})
_STATE_OF: dict[Verdict, TaskState] = {"accept": "accepted", "return": "returned", "reject": "rejected"}
# Without 0 O 1 I L, which people mix up.
_LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"


class Telling(msgspec.Struct):
    """What is decoded of a kept narrative. digest: of the whole."""

    id: str
    photo: str
    annotator: str
    origin: str
    created: str
    text: str
    language: str | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class AnnotatorTask:
    """A photo that an annotator is to tell. note: the reviewer's, or why it was skipped. reviews: all, oldest first."""

    photo: str
    annotator: str
    state: TaskState
    note: str
    telling: Telling | None
    reviews: Sequence[ReviewLine]


@dataclass(frozen=True, slots=True)
class PersonStatus:
    """How far somebody is. counts: photos in each state; reviews: how many a reviewer has given."""

    code: str
    role: Role
    left: bool
    counts: dict[TaskState, int]
    reviews: int

    @property
    def done(self) -> int:
        return sum(count for state, count in self.counts.items() if state in DONE)

    @property
    def assigned(self) -> int:
        return sum(self.counts.values())


class PeopleDesk:
    """The people of one Studio. Threads may share it."""

    def __init__(self, folder: Path, narratives: NarrativeStore, photos: PhotoStore) -> None:
        self.log, self.narratives, self.photos = PeopleLog(folder), narratives, photos
        self._tellings = ReadOnce(_telling)

    # Who.

    def add(self, role: Role, codes: Sequence[str] = (), count: int = 0) -> list[str]:
        """Let people take part: under codes of the lab's, and `count` more under new ones. Who left may come back."""
        chosen = [participant_code(code) for code in codes]
        with self.log.lock:
            taken = {*self.log.given.people, *chosen}
            for _ in range(count):
                chosen.append(_new_code(role, taken))
                taken.add(chosen[-1])
            self.log.add(*(PersonLine(code=code, role=role, at=now()) for code in chosen))
        return chosen

    def retire(self, typed: str) -> None:
        """Let somebody take part no more. What was told stays; what was not goes to others at the next `assign`.
        UnknownName, with the codes there are, if nobody has this one."""
        with self.log.lock:
            code, people = participant_code(typed), self.log.given.people
            if code not in people or people[code].left:
                raise UnknownName("code", code, [one.code for one in people.values() if not one.left])
            person = people[code]
            self.log.add(PersonLine(code=person.code, role=person.role, at=now(), left=True))

    def person(self, typed: str, role: Role | None = None) -> PersonLine:
        """Who has this code. UnknownName if nobody has."""
        return self.log.given.person(participant_code(typed), role)

    # What.

    def assign(self, each: int, seed: int = 0) -> int:
        """Give out every photo to `each` annotators; how many places were given. Again later for new photos."""
        with self.log.lock:
            state, told = self.log.given, self.tellings()
            held: dict[str, list[str]] = {}
            barred: dict[str, list[str]] = {}
            for annotator, photos in state.assigned.items():
                for photo in photos:
                    task = _task(state, told, photo, annotator)
                    gone = state.people[annotator].left and task.state not in DONE
                    counts = not gone and task.state not in ("rejected", "skipped")
                    (held if counts else barred).setdefault(photo, []).append(annotator)
            ids = [info.id for info in self.photos.list()]
            plan = planned(ids, state.annotators(), each, seed, held, barred)
            self.log.add(*(AssignmentLine(photo=photo, annotator=who, at=now()) for photo, who in plan))
        return len(plan)

    def tasks(self, typed: str) -> list[AnnotatorTask]:
        """What an annotator is to tell, in an own order that looks random and is always the same."""
        annotator = self.person(typed, "annotator").code
        state, told = self.log.given, self.tellings()
        there = {info.id for info in self.photos.list()}
        mine = [photo for photo in state.assigned.get(annotator, {}) if photo in there]
        mine.sort(key=lambda photo: (zlib.crc32(f"{annotator} {photo}".encode()), photo))
        return [_task(state, told, photo, annotator) for photo in mine]

    def check_may_tell(self, typed: str, photo: str) -> None:
        """Refused unless this annotator was asked to tell this photo."""
        person = self.person(typed, "annotator")
        if photo not in self.log.given.assigned.get(person.code, {}):
            raise Refused(403, "not_assigned", "this photo was not given to you", "load the page again")

    def skip(self, typed: str, photo: str, reason: str) -> None:
        """Pass over a photo, and why; an empty reason takes that back."""
        annotator = self.person(typed, "annotator").code
        self.log.add(SkipLine(photo=photo, annotator=annotator, reason=reason.strip(), at=now()))

    # What was told.

    def tellings(self) -> dict[tuple[str, str], Telling]:
        """(photo, annotator) → the newest narrative that a person told."""
        newest: dict[tuple[str, str], Telling] = {}
        for one in self._tellings.each(self.narratives.files()):
            if one.origin != HUMAN:
                continue
            before = newest.get((one.photo, one.annotator))
            if before is None or (before.created, before.id) < (one.created, one.id):
                newest[one.photo, one.annotator] = one
        return newest

    # Reviews.

    def submissions(self) -> list[AnnotatorTask]:
        """Everything that annotators told: what waits for a review first, then the newest first."""
        state, told = self.log.given, self.tellings()
        found = [
            _task(state, told, photo, annotator)
            for photo, annotator in told
            if photo in state.assigned.get(annotator, {})
        ]
        found.sort(key=lambda one: one.telling.created if one.telling else "", reverse=True)
        return sorted(found, key=lambda one: one.state != "waiting")

    def review(self, typed: str, narrative: str, digest: str, verdict: Verdict, note: str) -> AnnotatorTask:
        """Accept a narrative, return it with a note, or reject it. 409 if it is not as the reviewer saw it."""
        reviewer = self.person(typed, "reviewer").code
        with self.log.lock:
            state, told = self.log.given, self.tellings()
            telling = next((one for one in told.values() if one.id == narrative), None)
            if telling is None or telling.photo not in state.assigned.get(telling.annotator, {}):
                raise UnknownName("narrative", narrative, ())
            if telling.digest != digest:
                hint = "look at it again"
                raise Refused(409, "changed_meanwhile", "the narrative was changed since you saw it", hint)
            line = ReviewLine(
                narrative=telling.id,
                photo=telling.photo,
                annotator=telling.annotator,
                digest=digest,
                reviewer=reviewer,
                verdict=verdict,
                note=note.strip(),
                at=now(),
            )
            before = state.reviews.get((line.photo, line.annotator), [])
            if not before or _said(before[-1]) != _said(line):  # What is sent again is kept once.
                self.log.add(line)
            return _task(self.log.given, told, telling.photo, telling.annotator)

    def status(self) -> list[PersonStatus]:
        """How far everybody is."""
        state, told = self.log.given, self.tellings()
        given = Counter(review.reviewer for reviews in state.reviews.values() for review in reviews)
        found = []
        for code, person in state.people.items():
            counts = Counter(_task(state, told, photo, code).state for photo in state.assigned.get(code, {}))
            found.append(PersonStatus(code, person.role, person.left, dict(counts), given[code]))
        return found


def _telling(data: bytes) -> Telling:
    one = msgspec.json.decode(data, type=Telling)
    one.digest = hashlib.sha256(data).hexdigest()[:32]
    return one


def _said(review: ReviewLine) -> tuple[str, ...]:
    return (review.narrative, review.digest, review.reviewer, review.verdict, review.note)


def _task(state: PeopleState, told: dict[tuple[str, str], Telling], photo: str, annotator: str) -> AnnotatorTask:
    telling, reviews = told.get((photo, annotator)), state.reviews.get((photo, annotator), [])
    skipped = state.skips.get((photo, annotator), "")
    last = reviews[-1] if reviews else None
    if telling is None:
        return AnnotatorTask(photo, annotator, "skipped" if skipped else "open", skipped, None, reviews)
    if last is None or (last.narrative, last.digest) != (telling.id, telling.digest):
        return AnnotatorTask(photo, annotator, "waiting", "", telling, reviews)
    reached = _STATE_OF[last.verdict]
    if reached == "returned" and skipped:
        return AnnotatorTask(photo, annotator, "skipped", skipped, telling, reviews)
    return AnnotatorTask(photo, annotator, reached, last.note, telling, reviews)


def _new_code(role: Role, taken: set[str]) -> str:
    """Random, so that nobody guesses another's."""
    while True:
        code = role[0].upper() + "".join(secrets.choice(_LETTERS) for _ in range(7))
        if code not in taken:
            return code
