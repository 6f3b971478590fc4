"""What a collection gives: rows in the form of the HL data set, without a word on who wrote what."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from saywhere.formats import coco_captions, hl
from saywhere.formats.hl import HLRow
from saywhere.formats.record import InvalidRecord
from saywhere.studio.collect import OBJECT, CollectedPhoto, Collection, read_collection
from saywhere.studio.collect_answers import AnnotatorAnswer, AnswerState, read_answers

_NUMBER = re.compile(r"(?:^|[^0-9])([0-9]+)$")


@dataclass(frozen=True, slots=True)
class Exported:
    """rows: written. unfinished: photos left out because answers are missing. further: answers above the number that
    was asked for, left out. without_objects: photos that the file of captions says nothing about; None without one.
    passed_over: lines and records that do not count, with the reason.
    """

    rows: int
    unfinished: int
    further: int
    without_objects: int | None
    passed_over: list[str]


class ObjectCaptions:
    """Captions of a COCO file, found by a photo's file name, or else by the number in it, which is COCO's id."""

    def __init__(self, records: Iterable[coco_captions.CaptionRecord]) -> None:
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        self._by_id: defaultdict[str, list[str]] = defaultdict(list)
        for record in records:
            caption = " ".join(record.caption.split())
            self._by_name[record.file_name].append(caption)
            self._by_id[str(record.image_id)].append(caption)

    def of(self, file_name: str) -> tuple[str, ...]:
        """ "COCO_train2014_000000138878.jpg" and "000000138878.jpg" are both number 138878."""
        if found := self._by_name.get(file_name):
            return tuple(found)
        stem = Path(file_name).stem
        number = _NUMBER.search(stem)
        return tuple(self._by_id.get(stem, ()) or self._by_id.get(number[1].lstrip("0") if number else "", ()))


def export(
    folder: str | Path, target: str | Path, *, captions: str | Path | None = None, partial: bool = False
) -> Exported:
    """Write the answers of a collection as HL rows, by file name, atomically.

    captions: a COCO captions file whose captions become the level "object". partial: also photos that lack answers,
    with the levels that have any.
    """
    collection = read_collection(folder)
    given = read_answers(collection.folder)
    passed_over = [str(line) for line in given.bad_lines]
    passed_over += [f"{task[0]}: is not in the collection" for task in _unknown(collection, given)]
    objects = None if captions is None else _objects(captions, passed_over)
    rows = hl_rows(collection, given, objects, partial)
    bare = None if objects is None else sum(OBJECT not in row.captions for row in rows)
    further = sum(max(0, len(answers) - collection.annotators) for answers in given.tasks.values())
    hl.write(target, rows)
    return Exported(len(rows), len(collection.photos) - len(rows), further, bare, passed_over)


def hl_rows(
    collection: Collection, given: AnswerState, objects: ObjectCaptions | None = None, partial: bool = False
) -> list[HLRow]:
    """A row for each photo with all its answers, by file name; with `partial`, for each with any."""
    rows = []
    for photo in sorted(collection.photos, key=lambda one: one.file_name):
        answers = {level: given.of((photo.id, level))[: collection.annotators] for level in collection.levels}
        whole = all(len(said) == collection.annotators for said in answers.values())
        if whole or (partial and any(answers.values())):
            rows.append(_row(photo, answers, () if objects is None else objects.of(photo.file_name)))
    return rows


def _row(photo: CollectedPhoto, answers: Mapping[str, Sequence[AnnotatorAnswer]], objects: tuple[str, ...]) -> HLRow:
    captions = {level: tuple(one.text for one in said) for level, said in answers.items() if said}
    sure = {level: tuple(float(one.confidence) for one in said) for level, said in answers.items() if said}
    return HLRow(photo.file_name, {**captions, **({OBJECT: objects} if objects else {})}, sure)


def _objects(path: str | Path, passed_over: list[str]) -> ObjectCaptions:
    good = []
    for record in coco_captions.read(path):
        if isinstance(record, InvalidRecord):
            passed_over.append(str(record))
        else:
            good.append(record)
    return ObjectCaptions(good)


def _unknown(collection: Collection, given: AnswerState) -> list[tuple[str, str]]:
    known = {photo.id for photo in collection.photos}
    return [task for task in given.tasks if task[0] not in known]
