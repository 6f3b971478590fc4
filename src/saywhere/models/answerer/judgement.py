"""How an answer is to be taken: how likely it is right, and whether the question is of a kind that was learnt.

Both are measured on questions that nothing was learnt from: a network is surer than it is right, and of some kinds of
questions (why, what time, what is written there) it knows no more than the question alone gives away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats
from saywhere.language.vocabulary import plain_words
from saywhere.models.answerer.kinds import KINDS, NAMING, OTHER, answer_group, question_kind

CANNOT_KNOW: Final = "I cannot know that"
FEWEST_MEASURED: Final = 8
"""Questions of a kind without which nothing can be said of it."""
LEAST_GAIN: Final = 0.03
"""How much better than a network that sees no photo it must answer questions of a kind; where few were measured, by a
standard error."""
LEAST_ACCURACY: Final = 0.15
_KNOTS = 12
_FORMAT = 1
_ASKED_FOR: Final = {
    "why": "the reason of something",
    "time": "a time or a date",
    "how old or long": "an age, a size or a measure",
    "reading": "what is written somewhere",
    "brand": "a brand or a maker",
    "who": "who somebody is, or a name",
    "which town": "a town, a country or another place by name",
    "how": "how something is or was done",
}


class CalibrationCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """said: ascending, what the network says of its best answer. right: how often that is right, never falling."""

    said: tuple[float, ...]
    right: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(np.all(np.diff(some) >= 0) for some in (self.said, self.right))
        inside = all(0 <= value <= 1 for value in (*self.said, *self.right))
        if not self.said or len(self.said) != len(self.right) or not rising or not inside:
            raise InvalidValue("curve", "is not as many rising numbers from 0 to 1 on both sides")

    def at(self, said: float) -> float:
        return float(np.interp(said, self.said, self.right))

    @classmethod
    def fit(cls, said: Floats, right: Floats) -> CalibrationCurve:
        """From (n,) pairs: means of equally many, then never falling (pool adjacent violators)."""
        if not len(said) or said.shape != right.shape:
            raise InvalidValue("calibration", f"has {said.shape} and {right.shape} numbers, not as many of both")
        order = np.argsort(said, kind="stable")
        parts = np.array_split(order, min(_KNOTS, max(1, len(said) // 10)))
        pools = [[float(said[one].mean()), float(right[one].mean()), float(len(one))] for one in parts]
        places = [pool[0] for pool in pools]
        merged: list[list[float]] = []
        for _, value, count in pools:
            merged.append([value, count, 1.0])
            while len(merged) > 1 and merged[-2][0] > merged[-1][0]:
                value, count, knots = merged.pop()
                before = merged[-1]
                merged[-1] = [
                    (before[0] * before[1] + value * count) / (before[1] + count),
                    before[1] + count,
                    before[2] + knots,
                ]
        flat = [value for value, _, knots in merged for _ in range(int(knots))]
        return cls(tuple(round(one, 4) for one in places), tuple(round(one, 4) for one in flat))


class KindRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of questions. learnt_from: human questions of it in training. measured: questions that were put to the
    network; accuracy: of its answers; blind: of one that sees no photo."""

    learnt_from: int
    measured: int
    accuracy: float
    blind: float

    @property
    def learnt(self) -> bool:
        """Whether the photo helped, by more than chance may give with so few questions, and answers are right now and
        then."""
        if self.measured < FEWEST_MEASURED or self.accuracy < LEAST_ACCURACY:
            return False
        spread = self.accuracy * (1 - self.accuracy) + self.blind * (1 - self.blind)
        return self.accuracy - self.blind >= max(LEAST_GAIN, math.sqrt(spread / self.measured))


@dataclass(frozen=True, slots=True)
class Verdict:
    """probability: that the answer is right. reason: why none is given; empty if one is. unknown: words."""

    probability: float
    reason: str
    unknown: tuple[str, ...]


class Judgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """curves: for each group of answers. kinds: what is known of each kind of questions. words: of the questions that
    were learnt from. least: an answer that is right less often is not given."""

    curves: dict[str, CalibrationCurve]
    kinds: dict[str, KindRecord]
    words: tuple[str, ...]
    least: float = 0.0
    format: int = _FORMAT

    def __post_init__(self) -> None:
        if OTHER not in self.curves:
            raise InvalidValue("judgement", f"has no curve for {OTHER!r}")
        if not 0 <= self.least < 1:
            raise InvalidValue("judgement", f"least is {self.least}, not in [0, 1)")
        for name in self.kinds:
            if name not in KINDS:
                raise InvalidValue("judgement", f"{name!r} is no kind of question")

    @cached_property
    def known_words(self) -> frozenset[str]:
        return frozenset(self.words)

    def probability(self, question: str, said: float) -> float:
        """How likely the best answer is right, if the network says so much of it."""
        return self.curves.get(answer_group(question), self.curves[OTHER]).at(said)

    def verdict(self, question: str, said: float, *, is_pointed: bool = False) -> Verdict:
        """is_pointed: whether the one who asks points at something. People's questions, by which kinds are judged, do
        not: "Is this a cup?" is another question then, which boxes ask in training."""
        probability = self.probability(question, said)
        unknown = tuple(dict.fromkeys(word for word in plain_words(question) if word not in self.known_words))
        is_judged = not (is_pointed and question_kind(question) == NAMING)
        return Verdict(probability, self._reason(question, probability, unknown, is_judged), unknown)

    def refuses_kind(self, question: str) -> bool:
        record = self.kinds.get(question_kind(question))
        return record is None or not record.learnt

    def _reason(self, question: str, probability: float, unknown: Sequence[str], is_judged: bool) -> str:
        if is_judged and self.refuses_kind(question):
            kind = question_kind(question)
            return f"it asks for {_ASKED_FOR.get(kind, 'something')}, which I did not learn to see"
        if unknown:
            return f"no question that I learnt from had the word {' or '.join(map(repr, unknown))}"
        if probability < self.least:
            return f"my best guess would be right {probability:.0%} of the time"
        return ""

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Judgement:
        try:
            found = msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            raise InvalidValue("judgement", f"cannot be read: {error}") from error
        if found.format != _FORMAT:
            raise InvalidValue("judgement", f"has format {found.format}, this reads {_FORMAT}")
        return found


def fit_judgement(
    questions: Sequence[str],
    said: Floats,
    right: Floats,
    blind: Floats,
    learnt_from: Mapping[str, int],
    words: Sequence[str],
    least: float = 0.0,
) -> Judgement:
    """From n questions that nothing was learnt from. said: (n,) of each best answer; right: (n,) how right it is;
    blind: (n,) how right the answer of a network is that sees no photo. learnt_from: kind → questions in training."""
    groups, kinds = np.array([answer_group(one) for one in questions]), [question_kind(one) for one in questions]
    curves = {OTHER: CalibrationCurve.fit(said, right)}
    for group in sorted(set(groups.tolist())):
        of_it = groups == group
        if of_it.sum() >= 10 * _KNOTS:
            curves[group] = CalibrationCurve.fit(said[of_it], right[of_it])
    records = {}
    for kind in KINDS:
        of_it = np.array([one == kind for one in kinds], dtype=bool)
        count = int(of_it.sum())
        accuracy, without = (float(some[of_it].mean()) if count else 0.0 for some in (right, blind))
        records[kind] = KindRecord(learnt_from.get(kind, 0), count, round(accuracy, 4), round(without, 4))
    return Judgement(curves, records, tuple(sorted(words)), least)
