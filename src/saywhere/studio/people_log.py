"""Who takes part in telling photos, who tells which, and what reviewers said: lines of the log `people`.

Nobody's name is kept, only codes that a lab hands out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.studio.line_log import BadLine, LineLog
from saywhere.studio.participants import check_participant

Role = Literal["annotator", "reviewer"]
Verdict = Literal["accept", "return", "reject"]
MOST_NOTE, MOST_REASON = 1_000, 200
_PHOTO, _NARRATIVE = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16,32}")


class _PeopleLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """at: when, ISO 8601."""

    at: str


class PersonLine(_PeopleLine, frozen=True, kw_only=True, tag="person"):
    """Somebody takes part from now on, or no more (left)."""

    code: str
    role: Role
    left: bool = False


class AssignmentLine(_PeopleLine, frozen=True, kw_only=True, tag="assignment"):
    """An annotator is to tell a photo."""

    photo: str
    annotator: str


class SkipLine(_PeopleLine, frozen=True, kw_only=True, tag="skip"):
    """An annotator passes over a photo, and why; without a reason, not any more."""

    photo: str
    annotator: str
    reason: str = ""


class ReviewLine(_PeopleLine, frozen=True, kw_only=True, tag="review"):
    """What a reviewer said of a narrative. digest: of its content, so that what was changed since is seen."""

    narrative: str
    photo: str
    annotator: str
    digest: str
    reviewer: str
    verdict: Verdict
    note: str = ""


PeopleLine = PersonLine | AssignmentLine | SkipLine | ReviewLine


@dataclass(slots=True)
class PeopleState:
    """What holds. people: by code. assigned: annotator → photos, in their order. skips: (photo, annotator) → reason.

    reviews: (photo, annotator) → what reviewers said, oldest first.
    """

    people: dict[str, PersonLine] = field(default_factory=dict)
    assigned: dict[str, dict[str, None]] = field(default_factory=dict)
    skips: dict[tuple[str, str], str] = field(default_factory=dict)
    reviews: dict[tuple[str, str], list[ReviewLine]] = field(default_factory=dict)
    bad_lines: list[BadLine] = field(default_factory=list)

    def person(self, code: str, role: Role | None = None) -> PersonLine:
        """Somebody who takes part. UnknownName if nobody of this code, or of this role, does."""
        found = self.people.get(code)
        if found is None or found.left or role not in (None, found.role):
            # The other codes are not told: they are what people come in with.
            raise UnknownName(role or "code", code, ())
        return found

    def annotators(self) -> list[str]:
        """Those who take part, in the order they came."""
        return [code for code, one in self.people.items() if one.role == "annotator" and not one.left]

    def check(self, line: PeopleLine) -> None:
        """InvalidValue unless the line is right and goes with what holds."""
        try:
            _CHECKS[type(line)](self, line)
        except UnknownName as error:
            raise InvalidValue(error.kind, f"{error.name} does not take part") from error

    def take(self, line: PeopleLine) -> None:
        """Let a line count that was checked."""
        if isinstance(line, PersonLine):
            self.people[line.code] = line
        elif isinstance(line, AssignmentLine):
            self.assigned.setdefault(line.annotator, {})[line.photo] = None
        elif isinstance(line, ReviewLine):
            self.reviews.setdefault((line.photo, line.annotator), []).append(line)
        elif line.reason:
            self.skips[line.photo, line.annotator] = line.reason
        else:
            self.skips.pop((line.photo, line.annotator), None)


class PeopleLog(LineLog[PeopleLine, PeopleState]):
    """The people of one Studio's folder. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "people", PeopleLine, PeopleState, "a line about people")


def _check_person(state: PeopleState, line: PersonLine) -> None:
    check_participant(line.code, None)
    before = state.people.get(line.code)
    if before is None and line.left:
        raise InvalidValue("code", f"{line.code} does not take part")
    if before is not None and (before.role, before.left) == (line.role, line.left):
        raise InvalidValue("code", f"{line.code} {'has left' if line.left else 'takes part'} already")
    if before is not None and before.role != line.role:
        raise InvalidValue("code", f"{line.code} belongs to one {before.role}", "give out another code")


def _check_assignment(state: PeopleState, line: AssignmentLine) -> None:
    state.person(line.annotator, "annotator")
    if not _PHOTO.fullmatch(line.photo):
        raise InvalidValue("photo", f"{line.photo!r} is none")
    if line.photo in state.assigned.get(line.annotator, {}):
        raise InvalidValue("assignment", f"{line.annotator} has this photo already")


def _check_skip(state: PeopleState, line: SkipLine) -> None:
    state.person(line.annotator, "annotator")
    if line.photo not in state.assigned.get(line.annotator, {}):
        raise InvalidValue("photo", f"{line.annotator} is not to tell it")
    if len(line.reason) > MOST_REASON or line.reason != line.reason.strip():
        raise InvalidValue("reason", f"must have 1 to {MOST_REASON} characters, without spaces around them")


def _check_review(state: PeopleState, line: ReviewLine) -> None:
    state.person(line.reviewer, "reviewer")
    if not _NARRATIVE.fullmatch(line.narrative):
        raise InvalidValue("narrative", f"{line.narrative!r} is none")
    if len(line.note) > MOST_NOTE:
        raise InvalidValue("note", f"has {len(line.note):,} characters, more than {MOST_NOTE:,}")
    if line.verdict != "accept" and not line.note.strip():
        raise InvalidValue("note", "is empty", "say what is to be done otherwise, or why it is rejected")


_CHECKS: dict[type[_PeopleLine], Callable[[PeopleState, Any], None]] = {
    PersonLine: _check_person,
    AssignmentLine: _check_assignment,
    SkipLine: _check_skip,
    ReviewLine: _check_review,
}
