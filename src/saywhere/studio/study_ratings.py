"""What participants said: one line for each rating and each undo (see line_log).

A rating holds until it is undone; a second rating of the same item by the same participant does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from saywhere.core.errors import InvalidValue
from saywhere.studio.line_log import BadLine, LineLog
from saywhere.studio.participants import check_participant
from saywhere.studio.study import Side

STRONGEST = 2


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


@dataclass(slots=True)
class RatingState:
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


class RatingLog(LineLog[Rating, RatingState]):
    """The ratings of one study. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "ratings", Rating, RatingState, "a rating")


def read_ratings(folder: Path) -> RatingState:
    """What holds of a study's ratings; nothing if nobody has rated. Lines that do not count are named with a reason."""
    with closing(RatingLog(folder)) as log:
        return log.given


def check_rating(rating: Rating) -> None:
    """InvalidValue unless the rating is within the scale and by somebody who can be."""
    if not -STRONGEST <= rating.rating <= STRONGEST:
        raise InvalidValue("rating", f"is {rating.rating}, not one of −2, −1, 0, 1, 2")
    check_participant(rating.participant, rating.seconds)
