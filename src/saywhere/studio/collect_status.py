"""How far a collection is: answers by photo and by annotator, how sure people are, and how far they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from saywhere.studio.collect import Collection, read_collection
from saywhere.studio.collect_answers import AnnotatorAnswer, AnswerState, read_answers

AGREED_LEVEL = "scene"
"""The level whose answers name one thing, a place, so that they can agree."""
Namer = Callable[[Iterable[str]], list[list[str]]]
"""Labels of each of many texts, such as `saywhere.language.scene_labels.scene_nouns_of`."""


@dataclass(frozen=True, slots=True)
class LevelStatus:
    """One level. photos: how many photos have 0, 1, …, all answers; the last also counts those with more.

    confidence: the mean, 1 … 5; none without answers. further: answers above the number that was asked for.
    """

    level: str
    question: str
    photos: tuple[int, ...]
    answers: int
    further: int
    confidence: float | None


@dataclass(frozen=True, slots=True)
class AnnotatorStatus:
    """One person. confidence: the mean. words: the mean of an answer. seconds: the median of what one took."""

    code: str
    answers: int
    confidence: float
    words: float
    seconds: float | None


@dataclass(frozen=True, slots=True)
class SceneAgreement:
    """Of photos whose scene several people told: those where at least two name the same place."""

    agreed: int
    photos: int


@dataclass(frozen=True, slots=True)
class Status:
    """All of it. agreement: none if it was not asked for, or nobody was asked for scenes."""

    title: str
    photos: int
    annotators: int
    levels: list[LevelStatus]
    people: list[AnnotatorStatus]
    agreement: SceneAgreement | None
    passed_over: list[str]


def collection_status(folder: str | Path, namer: Namer | None = None) -> Status:
    """How far a collection is. namer: finds the labels in answers to the level scene."""
    collection = read_collection(folder)
    given = read_answers(collection.folder)
    people = [_person(code, list(answers.values())) for code, answers in sorted(given.people.items())]
    agreement = None
    if namer is not None and AGREED_LEVEL in collection.levels:
        agreement = scene_agreement(_texts(collection, given, AGREED_LEVEL), namer)
    return Status(
        collection.title,
        len(collection.photos),
        collection.annotators,
        [_level(collection, given, level) for level in collection.levels],
        people,
        agreement,
        [str(line) for line in given.bad_lines],
    )


def scene_agreement(texts: Mapping[str, Sequence[str]], namer: Namer) -> SceneAgreement:
    """Where people agree. texts: by photo, what each person wrote; photos with fewer than two count nowhere."""
    several = [said for said in texts.values() if len(said) > 1]
    labels = iter(namer([text for said in several for text in said]))
    agreed = 0
    for said in several:
        # Who says a word twice names it once.
        votes = Counter(label for _ in said for label in set(next(labels)))
        agreed += any(count > 1 for count in votes.values())
    return SceneAgreement(agreed, len(several))


def _texts(collection: Collection, given: AnswerState, level: str) -> dict[str, list[str]]:
    return {photo.id: [one.text for one in given.of((photo.id, level))] for photo in collection.photos}


def _level(collection: Collection, given: AnswerState, level: str) -> LevelStatus:
    answers = [given.of((photo.id, level)) for photo in collection.photos]
    full = collection.annotators
    counts = Counter(min(len(said), full) for said in answers)
    sure = [one.confidence for said in answers for one in said]
    return LevelStatus(
        level,
        collection.levels[level],
        tuple(counts[n] for n in range(full + 1)),
        len(sure),
        sum(max(0, len(said) - full) for said in answers),
        fmean(sure) if sure else None,
    )


def _person(code: str, answers: Sequence[AnnotatorAnswer]) -> AnnotatorStatus:
    timed = [one.seconds for one in answers if one.seconds is not None]
    return AnnotatorStatus(
        code,
        len(answers),
        fmean(one.confidence for one in answers),
        fmean(len(one.text.split()) for one in answers),
        median(timed) if timed else None,
    )
