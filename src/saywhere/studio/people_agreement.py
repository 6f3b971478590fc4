"""How far annotators agree about the same photos: where they point and what they say, beside what chance would give.

Of pairs of people, LBM tells how far apart the boxes of their words are (0 is equal; the paper's protocol; words that
have no place are left out). ROUGE-L and CIDEr tell how much one text shares with those of the others. The row of chance
compares each photo with other photos' narratives. Intervals are 95 %, from a bootstrap over photos, because the pairs
of one photo are not independent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from statistics import fmean

import numpy as np

from saywhere.core.types import Floats
from saywhere.metrics.captions import DocumentFrequency, ScoreTable, cider, rouge_l
from saywhere.metrics.lbm import lbm_many
from saywhere.studio.exports import narrative_of
from saywhere.studio.people_desk import PeopleDesk

SHIFTS = 5
"""With how many other photos each one is compared for the row of chance."""
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class AnnotatorTelling:
    """What one annotator told of a photo. boxes_xyxy: (n, 4), of the words that have a place."""

    annotator: str
    text: str
    boxes_xyxy: Floats


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over photos, with its interval; no interval of fewer than two photos."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class AgreementMeasure:
    """photos: that it could be taken of. people, chance: none if there is nothing to compare."""

    name: str
    lower_is_better: bool
    photos: int
    people: Estimate | None
    chance: Estimate | None


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """One annotator against all others: the mean of LBM with k = 0 and of ROUGE-L over his or her photos."""

    code: str
    photos: int
    lbm: float | None
    rouge_l: float | None


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """photos: that several people told; narratives: of them. unplaced: those whose words have no place."""

    photos: int
    narratives: int
    unplaced: int
    measures: list[AgreementMeasure]
    annotators: list[AnnotatorAgreement]


Scores = list[float]
"""One for each pair of people, or for each text."""


def agreement_of(desk: PeopleDesk) -> AgreementReport:
    """How far the annotators of a Studio agree. What was rejected does not count."""
    photos: defaultdict[str, list[AnnotatorTelling]] = defaultdict(list)
    for task in desk.submissions():
        if task.telling is None or task.state == "rejected":
            continue
        narrative = narrative_of(desk.narratives.get(task.telling.id), desk.photos.get(task.photo).values())
        boxes = narrative.word_boxes()
        photos[task.photo].append(AnnotatorTelling(task.annotator, task.telling.text, boxes.boxes_xyxy[boxes.located]))
    return agreement(photos)


def agreement(photos: Mapping[str, Sequence[AnnotatorTelling]], seed: int = 0) -> AgreementReport:
    """The same of narratives by photo; those of one person alone count nowhere."""
    several = [list(told) for _, told in sorted(photos.items()) if len({one.annotator for one in told}) > 1]
    rng = np.random.default_rng(seed)
    others = _others(len(several), rng)
    texts = [[one.text for one in told] for told in several]

    scores: dict[str, Score] = {f"LBM, k = {k}": partial(_placed, k=k) for k in (0, 1)}
    scores["ROUGE-L"] = partial(_worded, metric=rouge_l)
    if len(several) > 1:  # Of one photo alone, no word is rarer than another, and CIDEr is 0 whatever was said.
        scores["CIDEr"] = partial(_worded, metric=partial(cider, df=DocumentFrequency.of(texts)))
    measures = [_measure(name, several, others, rng, score) for name, score in scores.items()]
    unplaced = sum(not len(one.boxes_xyxy) for told in several for one in told)
    return AgreementReport(len(several), sum(map(len, several)), unplaced, measures, _annotators(several))


def _others(photos: int, rng: np.random.Generator) -> list[list[int]]:
    """For each photo, some other ones: its followers in a circle of random order."""
    order = rng.permutation(photos)
    followers: list[list[int]] = [[] for _ in range(photos)]
    for shift in range(1, min(SHIFTS, photos - 1) + 1):
        for at, photo in enumerate(order):
            followers[photo].append(int(order[(at + shift) % photos]))
    return followers


Score = Callable[[Sequence[AnnotatorTelling], Sequence[AnnotatorTelling]], Scores]


def _measure(
    name: str,
    photos: Sequence[Sequence[AnnotatorTelling]],
    others: Sequence[Sequence[int]],
    rng: np.random.Generator,
    score: Score,
) -> AgreementMeasure:
    people = [scores for told in photos if (scores := score(told, told))]
    chance = [
        scores
        for told, near in zip(photos, others, strict=True)
        if (scores := [one for other in near for one in score(told, photos[other])])
    ]
    return AgreementMeasure(name, name.startswith("LBM"), len(people), _estimate(people, rng), _estimate(chance, rng))


def _placed(mine: Sequence[AnnotatorTelling], theirs: Sequence[AnnotatorTelling], k: int) -> Scores:
    """Each pair of people."""
    every = combinations(mine, 2) if mine is theirs else ((a, b) for a in mine for b in theirs)
    pairs = [(a, b) for a, b in every if a.annotator != b.annotator and len(a.boxes_xyxy) and len(b.boxes_xyxy)]
    return lbm_many([a.boxes_xyxy for a, _ in pairs], [b.boxes_xyxy for _, b in pairs], k).tolist() if pairs else []


def _worded(
    mine: Sequence[AnnotatorTelling], theirs: Sequence[AnnotatorTelling], metric: Callable[..., ScoreTable[int]]
) -> Scores:
    """Each text against those of the others."""
    candidates, references = {}, {}
    for number, one in enumerate(mine):
        said = [other.text for other in theirs if other.annotator != one.annotator and other.text.strip()]
        if one.text.strip() and said:
            candidates[number], references[number] = one.text, said
    if not candidates:
        return []
    return [next(iter(scores.values())) for scores in metric(candidates, references)["per_item"].values()]


def _estimate(scores: Sequence[Scores], rng: np.random.Generator) -> Estimate | None:
    """scores: by photo. Every photo weighs the same."""
    if not scores:
        return None
    means = np.array([fmean(one) for one in scores])
    if len(means) < 2:
        return Estimate(float(means[0]), None, None)
    drawn = means[rng.integers(0, len(means), (_RESAMPLES, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975)).tolist()
    return Estimate(float(means.mean()), low, high)


def _annotators(photos: Sequence[Sequence[AnnotatorTelling]]) -> list[AnnotatorAgreement]:
    places: defaultdict[str, Scores] = defaultdict(list)
    words: defaultdict[str, Scores] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    for told in photos:
        for one in told:
            rest = [other for other in told if other.annotator != one.annotator]
            counts[one.annotator] += 1
            if near := _placed([one], rest, 0):
                places[one.annotator].append(fmean(near))
            words[one.annotator] += _worded([one], rest, rouge_l)
    return [AnnotatorAgreement(code, counts[code], _mean(places[code]), _mean(words[code])) for code in sorted(counts)]


def _mean(values: Iterable[float]) -> float | None:
    kept = list(values)
    return fmean(kept) if kept else None
