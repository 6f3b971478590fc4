"""What participants said: one line for each rating and each undo, added at the end and on the disk before it counts.

Nothing is ever taken out of the file. What holds is found by reading it from the start: a rating holds until it is
undone; a second rating of the same item by the same participant does not count.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.studio.study import Side

STRONGEST = 2
MOST_SECONDS = 86_400.0
_CODE = re.compile(r"[A-Z0-9][A-Z0-9_-]{0,39}")


class Rating(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One answer. rating: −2 the left is clearly more reasonable, 0 equal, 2 the right is.

    left: whose explanation was on the left. seconds: from showing to answering. at: when, ISO 8601. undone: this line
    takes the answer to that item back.
    """

    participant: str
    item: str
    left: Side
    rating: int
    at: str
    seconds: float | None = None
    undone: bool = False

    @property
    def towards_b(self) -> int:
        """The rating as a preference for model b: −2 … 2."""
        return self.rating if self.left == "a" else -self.rating


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that does not count, and why. number: from 1."""

    number: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}"


@dataclass(slots=True)
class Given:
    """What holds. ratings: by participant, then by item, in the order they were given."""

    ratings: dict[str, dict[str, Rating]] = field(default_factory=dict)
    bad_lines: list[BadLine] = field(default_factory=list)

    def __iter__(self) -> Iterator[Rating]:
        return (rating for ratings in self.ratings.values() for rating in ratings.values())

    def of(self, participant: str) -> dict[str, Rating]:
        return self.ratings.get(participant, {})

    def check(self, rating: Rating) -> None:
        """InvalidValue unless the line is right and goes with what holds."""
        check_rating(rating)
        held = rating.item in self.of(rating.participant)
        if rating.undone and not held:
            raise InvalidValue("undo", f"{rating.participant} has not rated {rating.item}")
        if held and not rating.undone:
            raise InvalidValue("rating", f"{rating.participant} has rated {rating.item} already")

    def take(self, rating: Rating) -> None:
        """Let a line count that was checked."""
        mine = self.ratings.setdefault(rating.participant, {})
        if rating.undone:
            del mine[rating.item]
        else:
            mine[rating.item] = rating


class RatingLog:
    """The file of ratings of one study. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._given, self._size = Given(), 0

    @property
    def given(self) -> Given:
        """What holds now. The file is read again if somebody else wrote it, such as the lab with an editor."""
        with self.lock:
            if self._file_size() != self._size:
                self._given, self._size = read_ratings(self.path), self._file_size()
            return self._given

    def add(self, rating: Rating) -> None:
        """Write a line and let it count. InvalidValue if it does not go with what holds; nothing is written then."""
        with self.lock:
            given = self.given
            given.check(rating)
            self._append(rating)
            given.take(rating)
            self._size = self._file_size()

    def _file_size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be read: {error.strerror or error}") from error

    def _append(self, rating: Rating) -> None:
        try:
            with self.path.open("a+b") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 1))
                # A line that was torn by a crash was never confirmed; it must not swallow this one.
                torn = size > 0 and file.read(1) != b"\n"
                file.write(b"\n" * torn + msgspec.json.encode(rating) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be written: {error.strerror or error}") from error


def read_ratings(path: Path) -> Given:
    """What holds of a file of ratings; nothing if there is no file. Lines that do not count are named with a reason."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Given()
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
    given = Given()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rating = msgspec.json.decode(line, type=Rating)
            given.check(rating)
            given.take(rating)
        except msgspec.DecodeError as error:
            given.bad_lines.append(BadLine(number, f"is not a rating: {error}"))
        except InvalidValue as error:
            given.bad_lines.append(BadLine(number, error.reason))
    return given


def check_rating(rating: Rating) -> None:
    """InvalidValue unless the rating is within the scale and by somebody who can be."""
    if not -STRONGEST <= rating.rating <= STRONGEST:
        raise InvalidValue("rating", f"is {rating.rating}, not one of −2, −1, 0, 1, 2")
    if rating.seconds is not None and not 0 <= rating.seconds <= MOST_SECONDS:
        raise InvalidValue("seconds", f"are {rating.seconds:g}, not within a day")
    if not _CODE.fullmatch(rating.participant):
        raise InvalidValue("participant code", f"{rating.participant!r} is none")


def participant_code(typed: str) -> str:
    """A participant's code in the one form it is kept in: capitals, nothing around it."""
    code = typed.strip()
    if not code:
        raise InvalidValue("participant code", "is empty", "it is what the lab gave you, such as P07")
    # ASCII first: some other letters become plain ones as capitals, and two people one.
    if not code.isascii() or not _CODE.fullmatch(code.upper()):
        hint = "letters A–Z, digits, - and _, at most 40, beginning with a letter or digit"
        raise InvalidValue("participant code", "has characters that a code cannot have", hint)
    return code.upper()
