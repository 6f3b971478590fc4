"""Where annotators' answers are taken: who is to see which photo next, and what was written.

Each question about each photo has so many places (three people by default). A photo that is shown takes a place for
the one who sees it until it is answered, or for `hold_s` after it was last shown; so two people are not given the last
place together. Who answers later than that, when others have filled the places, has still worked: the answer is kept
as a further one. Places are held in memory: after a restart everybody gets one anew.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.studio.collect import PHOTOS, CollectedPhoto, Collection, read_collection
from saywhere.studio.collect_answers import AnnotatorAnswer, AnswerLog, Task, plain_text
from saywhere.studio.errors import Refused
from saywhere.studio.line_log import now
from saywhere.studio.participants import participant_code
from saywhere.studio.photos import PhotoInfo, PhotoStore, import_file, photo_files, plain_name
from saywhere.studio.settings import Limits

MOST_PHOTOS = 100_000


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """Where an annotator is. done: answered; open: questions that he or she may still be asked.

    waiting: those of them whose last places others hold. last: the answer given last, which can be corrected.
    task: what is asked now; nothing if all are answered or waiting.
    """

    annotator: str
    done: int
    open: int
    waiting: int
    last: AnnotatorAnswer | None
    task: Task | None


class CollectDesk:
    """One collection that is under way. Threads may share it; clock: seconds that only grow."""

    def __init__(self, folder: Path, hold_s: float = 900.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.collection = read_collection(folder)
        self.store = photo_store(folder)
        self.log = AnswerLog(folder)
        self.hold_s, self._clock = hold_s, clock
        self._photos = {photo.id: photo for photo in self.collection.photos}
        self._held: dict[Task, dict[str, float]] = {}  # Until when each annotator has a place.
        self._skipped: set[tuple[str, Task]] = set()

    def turn(self, typed: str) -> AnnotatorProgress:
        """What an annotator is asked next, and a place for it: what he or she holds already, else fewest answers first.

        Of equals the next level of the same photo, then an own order that looks random and is always the same.
        """
        annotator = participant_code(typed)
        with self.log.lock:
            known = self._known(annotator)
            taken = self._open(annotator)
            free = {task: places for task, places in taken.items() if places < self.collection.annotators}
            task = self._chosen(annotator, free, known[-1].photo if known else "")
            if task is not None:
                self._held.setdefault(task, {})[annotator] = self._clock() + self.hold_s
            last = known[-1] if known and self._there(known[-1].task) else None
            return AnnotatorProgress(annotator, len(known), len(taken), len(taken) - len(free), last, task)

    def answer(
        self, typed: str, task: Task, text: str, confidence: int, seconds: float | None = None, correcting: bool = False
    ) -> AnnotatorProgress:
        """Keep an answer. One that is sent again because the reply was lost is kept once.

        correcting: it takes the place of the annotator's last answer.
        """
        annotator, photo = participant_code(typed), self.photo(task[0])
        self._level(task[1])
        said = plain_text(text)
        with self.log.lock:
            before = self.log.given.by(annotator).get(task)
            if before is None or (before.text, before.confidence) != (said, confidence):
                self._may_write(annotator, before, correcting)
                self.log.add(
                    AnnotatorAnswer(
                        annotator=annotator,
                        photo=photo.id,
                        file_name=photo.file_name,
                        level=task[1],
                        text=said,
                        confidence=confidence,
                        at=now(),
                        seconds=seconds,
                        corrects=before is not None,
                    )
                )
            self._let_go(annotator, task)
            return self.turn(annotator)

    def skip(self, typed: str, task: Task) -> AnnotatorProgress:
        """Do not ask this annotator about a photo that cannot be shown, until the server starts anew."""
        annotator = participant_code(typed)
        self.photo(task[0])
        self._level(task[1])
        with self.log.lock:
            self._let_go(annotator, task)
            self._skipped.add((annotator, task))
            return self.turn(annotator)

    def photo(self, photo_id: str) -> CollectedPhoto:
        photo = self._photos.get(photo_id)
        if photo is None:
            raise UnknownName("photo", photo_id, ())
        return photo

    def picture(self, photo_id: str) -> PhotoInfo:
        """What the store knows of a photo."""
        return self.store.get(self.photo(photo_id).id)

    def _level(self, level: str) -> None:
        if level not in self.collection.levels:
            raise UnknownName("level", level, tuple(self.collection.levels))

    def _may_write(self, annotator: str, before: AnnotatorAnswer | None, correcting: bool) -> None:
        if before is None:
            return
        if not correcting:
            hint = "go back to the last answer to correct it"
            raise Refused(409, "answered_already", "you have answered this already, otherwise", hint)
        if self._known(annotator)[-1] is not before:
            raise Refused(409, "not_last", "this was not your last answer", "only the last can be corrected")

    def _known(self, annotator: str) -> list[AnnotatorAnswer]:
        """The annotator's answers to what this collection asks, in their order."""
        asked = self.collection.levels
        mine = self.log.given.by(annotator).values()
        return [answer for answer in mine if answer.photo in self._photos and answer.level in asked]

    def _open(self, annotator: str) -> dict[Task, int]:
        """What the annotator has not answered and too few others have: how many places others have taken or hold."""
        given, time_s = self.log.given, self._clock()
        mine = given.by(annotator)
        tasks: dict[Task, int] = {}
        for task in ((photo, level) for photo in self._photos for level in self.collection.levels):
            answered = len(given.tasks.get(task, ()))
            if task in mine or answered >= self.collection.annotators or (annotator, task) in self._skipped:
                continue
            holders = self._held.get(task, {})
            tasks[task] = answered + sum(who != annotator and until > time_s for who, until in holders.items())
        return tasks

    def _chosen(self, annotator: str, free: Mapping[Task, int], near: str) -> Task | None:
        """Which of the free tasks an annotator gets. near: the photo that he or she saw last."""
        time_s = self._clock()
        held = [task for task, people in self._held.items() if people.get(annotator, time_s) > time_s and task in free]
        groups = [held, *([task for task in free if free[task] == fewest] for fewest in sorted(set(free.values())))]
        for group in groups:
            # Levels stand in their order; sorting keeps it.
            group.sort(key=lambda task: (task[0] != near, zlib.crc32(f"{annotator} {task[0]}".encode())))
            if found := next((task for task in group if self._there(task)), None):
                return found
        return None

    def _let_go(self, annotator: str, task: Task) -> None:
        holders = self._held.get(task, {})
        holders.pop(annotator, None)
        if not holders:
            self._held.pop(task, None)

    def _there(self, task: Task) -> bool:
        """Whether the photo's file is still there; one that somebody deleted is not asked about."""
        try:
            return self.store.path(task[0]).is_file()
        except UnknownName:
            return False


def photo_store(folder: Path) -> PhotoStore:
    """The photos of a collection."""
    return PhotoStore(folder / PHOTOS, Limits(photos=MOST_PHOTOS))


def take_photos(collection: Collection, folder: Path) -> Iterator[CollectedPhoto | InvalidFile]:
    """The photos of a folder, and those below it, taken into the store of a collection; the originals are only read.

    What cannot be taken comes back as an InvalidFile: broken files, a photo that is there under another name, another
    photo of the same name.
    """
    names = {photo.file_name: photo.id for photo in collection.photos}
    ids = {photo.id: photo.file_name for photo in collection.photos}
    store = photo_store(collection.folder)
    for path in photo_files(folder):
        name, taken = plain_name(path.name), import_file(store, path)
        if isinstance(taken, InvalidFile):
            yield taken
        elif ids.get(taken.id, name) != name:
            yield InvalidFile(path, f"is the same photo as {ids[taken.id]}")
        elif names.get(name, taken.id) != taken.id:
            yield InvalidFile(path, "another photo of this name is in the collection", "names tell photos apart in HL")
        else:
            names[name], ids[taken.id] = taken.id, name
            yield CollectedPhoto(taken.id, name)
