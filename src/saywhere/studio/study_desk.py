"""Where a participant's answers are taken: who is next to see what, on which side, and what was said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from saywhere.core.errors import UnknownName
from saywhere.studio.errors import Refused
from saywhere.studio.line_log import now
from saywhere.studio.participants import participant_code
from saywhere.studio.study import Item, StudyPhoto, Turn, read_study, turns
from saywhere.studio.study_ratings import Rating, RatingLog


@dataclass(frozen=True, slots=True)
class ParticipantProgress:
    """How far a participant is. last: the item rated last, which can be undone. turn: what comes next, if anything."""

    participant: str
    done: int
    last: str | None
    turn: Turn | None


class StudyDesk:
    """One study that is under way. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        self.study = read_study(folder)
        self.key = self.study.key
        self.log = RatingLog(self.study.folder)
        self._photos = {item.photo.id: item.photo for item in self.study.items.values()}

    def progress(self, typed: str) -> ParticipantProgress:
        """Where a participant is: the first item in his or her own order that is not rated."""
        participant = participant_code(typed)
        with self.log.lock:
            rated = dict(self.log.given.of(participant))
        known = [item for item in rated if item in self.study.items]
        left = (turn for turn in turns(self.study, participant) if turn.item not in rated)
        return ParticipantProgress(participant, len(known), known[-1] if known else None, next(left, None))

    def rate(self, typed: str, item_id: str, rating: int, seconds: float | None, key: str) -> ParticipantProgress:
        """Keep an answer. One that is sent again because the reply was lost is kept once.

        key: of the study that the page shows; another one may have other sides.
        """
        participant, item = participant_code(typed), self.item(item_id)
        if key != self.key:
            hint = "load the page again; answers given so far are kept"
            raise Refused(409, "study_changed", "the study was changed since this page was opened", hint)
        [turn] = (turn for turn in turns(self.study, participant) if turn.item == item.id)
        with self.log.lock:
            before = self.log.given.of(participant).get(item.id)
            if before is None:
                self.log.add(_rating(participant, turn, rating, seconds))
            elif before.rating != rating:
                raise Refused(409, "rated_already", f"{item.id} was rated already, otherwise", "undo that first")
            return self.progress(participant)

    def undo(self, typed: str, item_id: str) -> ParticipantProgress:
        """Take the last answer back. item_id: of which item, so that what is sent twice undoes one."""
        participant, item = participant_code(typed), self.item(item_id)
        with self.log.lock:
            progress = self.progress(participant)
            before = self.log.given.of(participant).get(item.id)
            if before is None:
                raise Refused(409, "not_rated", f"{item.id} is not rated")
            if progress.last != item.id:
                raise Refused(409, "not_last", f"{item.id} was not the last answer", "only the last can be undone")
            self.log.add(
                Rating(
                    participant=participant,
                    item=item.id,
                    left=before.left,
                    rating=before.rating,
                    at=now(),
                    undone=True,
                )
            )
            return self.progress(participant)

    def item(self, item_id: str) -> Item:
        item = self.study.items.get(item_id)
        if item is None:
            raise UnknownName("item", item_id, ())
        return item

    def photo(self, photo_id: str) -> StudyPhoto:
        photo = self._photos.get(photo_id)
        if photo is None or not photo.path.is_file():
            raise UnknownName("photo", photo_id, ())
        return photo


def _rating(participant: str, turn: Turn, rating: int, seconds: float | None) -> Rating:
    return Rating(participant=participant, item=turn.item, left=turn.left, rating=rating, at=now(), seconds=seconds)
