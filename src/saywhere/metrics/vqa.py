"""Answers to questions: VQA accuracy with the official answer normalisation, soft targets, and yes/no scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from saywhere.core.answers import check_answers, normalise_answer, trimmed
from saywhere.core.errors import InvalidValue, UnknownName

Normalise = Literal["official", "always"]


@dataclass(frozen=True, slots=True)
class VQAScores:
    """Accuracies in [0, 1]. per_item follows the order of the items."""

    overall: float
    by_answer_type: dict[str, float]
    by_question_type: dict[str, float]
    per_item: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class YesNoScores:
    """Yes is the positive class. A ratio whose denominator is 0 is NaN."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    yes_rate: float
    items: int


def vqa_accuracy(
    predictions: Sequence[str],
    answers: Sequence[Sequence[str]],
    answer_types: Sequence[str] | None = None,
    question_types: Sequence[str] | None = None,
    *,
    normalise: Normalise = "official",
) -> VQAScores:
    """VQA accuracy: min(people who gave that answer / 3, 1), averaged over leaving out each person in turn.

    predictions: one answer an item. answers: its human answers, ten in VQA v2. answer_types ("yes/no", "number",
    "other") and question_types: one word an item, for the breakdown. Fewer than four people cannot give 1: with three
    who agree, each left-out round sees two.
    normalise: the official evaluation leaves all answers as they are when the humans agree to the letter, so that "Yes"
    is wrong where ten people wrote "yes". "always" normalises every answer of every item.

    >>> vqa_accuracy(["2"], [["2"] * 3 + ["3"] * 7]).overall
    0.9
    """
    metric = VQAAccuracy(normalise=normalise)
    metric.update(predictions, answers, answer_types, question_types)
    return metric.compute()


class VQAAccuracy:
    """`vqa_accuracy` over batches."""

    higher_is_better = True

    def __init__(self, *, normalise: Normalise = "official") -> None:
        if normalise not in ("official", "always"):
            raise UnknownName("normalisation", normalise, ("official", "always"))
        self.normalise: Normalise = normalise
        self._items: list[_Item] = []

    def update(
        self,
        predictions: Sequence[str],
        answers: Sequence[Sequence[str]],
        answer_types: Sequence[str] | None = None,
        question_types: Sequence[str] | None = None,
    ) -> None:
        """Add items; all sequences have one entry an item."""
        n = len(predictions)
        for name, column in (("answers", answers), ("answer_types", answer_types), ("question_types", question_types)):
            if column is not None and len(column) != n:
                raise InvalidValue(name, f"{len(column)} entries for {n} predictions")
        self._items += [
            _Item(
                _tally(prediction, people, self.normalise),
                answer_types[i] if answer_types is not None else None,
                question_types[i] if question_types is not None else None,
            )
            for i, (prediction, people) in enumerate(zip(predictions, answers, strict=True))
        ]

    def compute(self) -> VQAScores:
        """Accuracy over all items and by type."""
        return _finish(self._items)

    def reset(self) -> None:
        """Forget every item."""
        self._items.clear()


def said_yes(answer: str) -> bool:
    """POPE's reading of a free answer: no when the first sentence has the word "No", "no" or "not", else yes.

    So an answer that says neither counts as yes, as in POPE's evaluation.
    """
    return {"No", "no", "not"}.isdisjoint(answer.split(".")[0].replace(",", "").split(" "))


def yes_no_scores(predictions: Sequence[str | bool], targets: Sequence[str | bool]) -> YesNoScores:
    """Accuracy, precision, recall, F1 and share of yes.

    predictions: booleans, or free answers read by `said_yes`. targets: booleans, or "yes" and "no".

    >>> yes_no_scores(["yes", "No."], [True, True]).accuracy
    0.5
    """
    metric = YesNo()
    metric.update(predictions, targets)
    return metric.compute()


class YesNo:
    """`yes_no_scores` over batches."""

    higher_is_better = True

    def __init__(self) -> None:
        self._counts: Counter[tuple[bool, bool]] = Counter()

    def update(self, predictions: Sequence[str | bool], targets: Sequence[str | bool]) -> None:
        """Add items: predictions (booleans or free answers) and targets (booleans, "yes" or "no")."""
        if len(predictions) != len(targets):
            raise InvalidValue("yes/no answers", f"{len(predictions)} predictions for {len(targets)} targets")
        said = [_predicted_yes(prediction) for prediction in predictions]
        self._counts.update(zip(said, [_is_yes(target) for target in targets], strict=True))

    def compute(self) -> YesNoScores:
        """The scores over all items."""
        return _finish_yes_no(self._counts)

    def reset(self) -> None:
        """Forget every item."""
        self._counts.clear()


class _Item(NamedTuple):
    accuracy: float
    answer_type: str | None
    question_type: str | None


def _tally(prediction: str, answers: Sequence[str], normalise: Normalise) -> float:
    """The accuracy of one answer."""
    check_answers(answers)
    if not isinstance(prediction, str):
        raise InvalidValue("prediction", f"{prediction!r} is not text", 'an item without an answer has ""')
    people, said = [trimmed(answer) for answer in answers], trimmed(prediction)
    if normalise == "always" or len(set(people)) > 1:
        people, said = [normalise_answer(answer) for answer in people], normalise_answer(said)
    n, agree = len(people), people.count(said)
    # Leaving out one of those who agree leaves agree - 1; leaving out any other leaves all of them.
    return (agree * min(max(agree - 1, 0) / 3, 1) + (n - agree) * min(agree / 3, 1)) / n


def _finish(items: Sequence[_Item]) -> VQAScores:
    if not items:
        raise InvalidValue("VQA accuracy", "no item was given, so there is no mean")
    by_answer: dict[str, list[float]] = {}
    by_question: dict[str, list[float]] = {}
    for item in items:
        if item.answer_type is not None:
            by_answer.setdefault(item.answer_type, []).append(item.accuracy)
        if item.question_type is not None:
            by_question.setdefault(item.question_type, []).append(item.accuracy)
    per_item = tuple(item.accuracy for item in items)
    return VQAScores(
        math.fsum(per_item) / len(per_item),
        {name: math.fsum(values) / len(values) for name, values in by_answer.items()},
        {name: math.fsum(values) / len(values) for name, values in by_question.items()},
        per_item,
    )


def _finish_yes_no(counts: Counter[tuple[bool, bool]]) -> YesNoScores:
    """counts: (said yes, is yes) → how often."""
    items = counts.total()
    if not items:
        raise InvalidValue("yes/no scores", "no item was given")
    hit, false_yes, false_no = counts[True, True], counts[True, False], counts[False, True]
    return YesNoScores(
        accuracy=(hit + counts[False, False]) / items,
        precision=_ratio(hit, hit + false_yes),
        recall=_ratio(hit, hit + false_no),
        f1=_ratio(2 * hit, 2 * hit + false_yes + false_no),
        yes_rate=(hit + false_yes) / items,
        items=items,
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _predicted_yes(prediction: str | bool) -> bool:
    return said_yes(prediction) if isinstance(prediction, str) else _flag(prediction, "prediction")


def _is_yes(target: str | bool) -> bool:
    if not isinstance(target, str):
        return _flag(target, "target")
    word = target.strip().lower()
    if word not in ("yes", "no"):
        raise InvalidValue("target", f"{target!r} is neither yes nor no")
    return word == "yes"


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidValue(what, f"{value!r} is neither text nor true or false")
    return bool(value)
