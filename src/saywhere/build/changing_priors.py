"""Splits of any question set in which the answers' priors change between training and test, as in VQA-CP.

Photos are divided first, so that no photo is on two sides. Then, for each question type, questions are dropped until
the answers have the shares that are wanted: training, validation and `test_same` have one prior, `test_changed` has it
turned round, so that the most frequent answer of training becomes the rarest. A model that answers from the question
alone does well on `test_same` and badly on `test_changed`.

Answers too rare to stand alone share a group with the next rarer ones, each keeping its share of the group: turning a
long tail round answer by answer would leave no questions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from saywhere.build.box_questions import BoxQuestion
from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Floats
from saywhere.formats.vqa import Question
from saywhere.world.questions import SceneQuestion

SIDES = ("train", "validation", "test_same", "test_changed")
CHANGED = "test_changed"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the split must know of a question."""

    image: str
    question_type: str
    answer: str


def asked_of(question: BoxQuestion | Question | SceneQuestion) -> Asked:
    """Image, type and true answer; of VQA's questions the answer that most people gave."""
    if isinstance(question, BoxQuestion):
        return Asked(question.image, question.question_type, question.answer)
    if isinstance(question, SceneQuestion):
        return Asked(str(question.scene), question.question_type, question.answer)
    answer = question.multiple_choice_answer
    if not answer and question.answers:
        answer = Counter(question.answers).most_common(1)[0][0]
    if not answer:
        raise InvalidValue(f"question {question.question_id}", "has no answer", "read it together with its annotations")
    return Asked(f"{question.coco_split}{question.image_id}", question.question_type, answer)


@dataclass(frozen=True, slots=True)
class PriorSettings:
    """strength: from 0, where nothing changes and nothing is dropped, to 1, where the test's prior is training's turned
    round. odds: at strength 1, how much more frequent training's first answer is than its last.

    rare, least: no group of answers has a smaller share of its type's questions, or fewer of them. sides: side → its
    share of the photos.
    """

    strength: float = 1.0
    odds: float = 6.0
    rare: float = 0.1
    least: int = 20
    sides: Mapping[str, float] = field(
        default_factory=lambda: {"train": 0.5, "validation": 0.1, "test_same": 0.15, "test_changed": 0.25}
    )

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= 1:
            raise InvalidValue("strength", f"is {self.strength:g}, not from 0 to 1")
        if not self.odds >= 1:
            raise InvalidValue("odds", f"are {self.odds:g}, not at least 1")
        if not (0 <= self.rare < 1 and self.least >= 1):
            raise InvalidValue("rare and least", f"are {self.rare:g} and {self.least}, not a share and at least 1")
        if set(self.sides) != set(SIDES) or any(share < 0 for share in self.sides.values()):
            raise InvalidValue("sides", f"are {dict(self.sides)}, not shares of {', '.join(SIDES)}")
        if abs(sum(self.sides.values()) - 1) > 1e-6:
            raise InvalidValue("sides", f"sum to {sum(self.sides.values()):g}, not to 1")


@dataclass(frozen=True, slots=True)
class TypeReport:
    """One question type. changed: False if it has one answer only, or too few questions for two groups of answers; its
    questions are then all kept.

    groups: the answers that go together, the most frequent group first; wanted: "train" and "test_changed" → share of
    each group. kept, dropped: side → questions. priors: side → answer → share of what is kept.
    """

    question_type: str
    changed: bool
    groups: tuple[tuple[str, ...], ...]
    wanted: dict[str, tuple[float, ...]]
    kept: dict[str, int]
    dropped: dict[str, int]
    priors: dict[str, dict[str, float]]

    def distance(self, one: str = "train", other: str = CHANGED) -> float:
        """Total variation distance between the priors of two sides, from 0 to 1; NaN if one side has no question."""
        a, b = self.priors[one], self.priors[other]
        if not a or not b:
            return float("nan")
        return sum(abs(a.get(answer, 0.0) - b.get(answer, 0.0)) for answer in a.keys() | b.keys()) / 2


@dataclass(frozen=True, slots=True)
class PriorSplit:
    """sides: side → indices into the questions, rising. dropped: the others. photos: side → how many it was given."""

    sides: dict[str, tuple[int, ...]]
    dropped: tuple[int, ...]
    photos: dict[str, int]
    types: tuple[TypeReport, ...]

    @property
    def left_as_they_are(self) -> tuple[str, ...]:
        """Question types whose prior could not be turned round."""
        return tuple(report.question_type for report in self.types if not report.changed)


def split_by_priors(
    questions: Sequence[Asked],
    rng: np.random.Generator,
    settings: PriorSettings | None = None,
    side_of: Mapping[str, str] | None = None,
) -> PriorSplit:
    """Divide questions; the same for the same questions and generator. Every index is on one side or dropped.

    side_of: the side of each photo, where that is settled already; by default photos are divided by chance.
    """
    wanted = settings or PriorSettings()
    if side_of is None:
        side_of = _divided(questions, rng, wanted.sides)
    else:
        _check_sides(questions, side_of)
    counts = Counter(side_of[image] for image in {question.image for question in questions})
    photos = {side: counts[side] for side in SIDES}
    by_type: dict[str, list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        by_type[question.question_type].append(index)
    sides: dict[str, list[int]] = {name: [] for name in SIDES}
    reports = []
    for question_type, indices in sorted(by_type.items()):
        chosen, report = _one_type(question_type, indices, questions, side_of, rng, wanted)
        for name in SIDES:
            sides[name] += chosen[name]
        reports.append(report)
    kept = {index for chosen_indices in sides.values() for index in chosen_indices}
    dropped = tuple(index for index in range(len(questions)) if index not in kept)
    return PriorSplit({name: tuple(sorted(rows)) for name, rows in sides.items()}, dropped, photos, tuple(reports))


def _divided(questions: Sequence[Asked], rng: np.random.Generator, shares: Mapping[str, float]) -> dict[str, str]:
    """Photo → its side."""
    names = sorted({question.image for question in questions})
    ends = np.round(np.cumsum([shares[side] for side in SIDES]) * len(names)).astype(int)
    places = np.searchsorted(ends, rng.permutation(len(names)), side="right")
    return {name: SIDES[place] for name, place in zip(names, places.tolist(), strict=True)}


def _check_sides(questions: Sequence[Asked], side_of: Mapping[str, str]) -> None:
    for question in questions:
        if question.image not in side_of:
            raise InvalidValue("sides of photos", f"say nothing of {question.image!r}")
    for side in set(side_of.values()):
        if side not in SIDES:
            raise UnknownName("side", side, SIDES)


def _one_type(
    question_type: str,
    indices: Sequence[int],
    questions: Sequence[Asked],
    side_of: Mapping[str, str],
    rng: np.random.Generator,
    settings: PriorSettings,
) -> tuple[dict[str, list[int]], TypeReport]:
    groups = _groups(Counter(questions[i].answer for i in indices), settings)
    group_of = {answer: place for place, group in enumerate(groups) for answer in group}
    pools: dict[str, list[list[int]]] = {side: [[] for _ in groups] for side in SIDES}
    for index in indices:
        question = questions[index]
        pools[side_of[question.image]][group_of[question.answer]].append(index)
    counts = np.array([sum(len(pools[side][place]) for side in SIDES) for place in range(len(groups))])
    train, changed = priors(counts, settings.strength, settings.odds)
    turned = len(groups) > 1 and settings.strength > 0
    chosen: dict[str, list[int]] = {}
    for side in SIDES:
        shares = changed if side == CHANGED else train
        chosen[side] = _fitting(pools[side], shares, rng) if turned else [i for pool in pools[side] for i in pool]
    report = TypeReport(
        question_type,
        len(groups) > 1,
        groups,
        {"train": tuple(train.tolist()), CHANGED: tuple(changed.tolist())},
        {side: len(chosen[side]) for side in SIDES},
        {side: sum(map(len, pools[side])) - len(chosen[side]) for side in SIDES},
        {side: _shares(questions[i].answer for i in chosen[side]) for side in SIDES},
    )
    return chosen, report


def _groups(counts: Counter[str], settings: PriorSettings) -> tuple[tuple[str, ...], ...]:
    """Answers, the most frequent first, each group as short as its least size allows; the most frequent group first."""
    needed = max(float(settings.least), settings.rare * counts.total())
    groups: list[list[str]] = []
    size = needed
    for answer in sorted(counts, key=lambda answer: (-counts[answer], answer)):
        if size >= needed:
            groups.append([])
            size = 0
        groups[-1].append(answer)
        size += counts[answer]
    if size < needed and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return tuple(sorted(map(tuple, groups), key=lambda group: -sum(counts[answer] for answer in group)))


def priors(counts: Sequence[int] | Floats, strength: float, odds: float) -> tuple[Floats, Floats]:
    """Shares of training and of the changed test, out of how often each answer is there, the most frequent first.

    Training goes from the natural shares (strength 0) to ones that fall evenly on a logarithmic scale, the first `odds`
    times the last (strength 1); never to ones that rise. The test goes from training's to training's turned round.
    """
    natural = np.asarray(counts, dtype=np.float64) / np.sum(counts)
    tilt = np.linspace(0.5, -0.5, len(natural)) if len(natural) > 1 else np.zeros(1)
    train: Floats = natural ** (1 - strength) * odds ** (strength * tilt)
    train /= train.sum()
    return train, (1 - strength) * train + strength * train[::-1]


def _fitting(pools: Sequence[Sequence[int]], shares: Floats, rng: np.random.Generator) -> list[int]:
    """As many as can be kept in these shares, rounded for each pool; which ones, by chance."""
    total = min(len(pool) / share for pool, share in zip(pools, shares.tolist(), strict=True))
    chosen: list[int] = []
    for pool, share in zip(pools, shares.tolist(), strict=True):
        order = rng.permutation(len(pool))[: round(total * share)]
        chosen += [pool[place] for place in order.tolist()]
    return chosen


def _shares(answers: Iterable[str]) -> dict[str, float]:
    counts = Counter(answers)
    return {answer: count / counts.total() for answer, count in counts.most_common()}
