"""What an answering network is worth, on questions about photos that nothing of it was learnt from or chosen by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats, Progress
from saywhere.models.answerer.data import HUMAN, TEST, TRAIN, AnswerData, StoredQuestion
from saywhere.models.answerer.judgement import Judgement
from saywhere.models.answerer.kinds import question_kind
from saywhere.models.answerer.network import AnswerNet
from saywhere.models.answerer.task import answered, human

UNKNOWABLE: Final = (
    *("why", "why is the", "what time", "what brand", "what is the name", "who is", "what number is", "what does the"),
)
"""VQA's own types of questions that a small network cannot answer from a photo: reasons, clocks, letters, names."""
KNOWABLE: Final = (
    *("what color is the", "what color are the", "what color is", "what color", "how many", "how many people are"),
    *("is there a", "is there", "are there", "are there any", "is this a", "is this an", "what animal is"),
    *("what sport is", "what room is", "is the man", "is the woman", "is this person"),
)
"""Types that can be seen."""
_BINS = 10
_SIDES: Final = ("what is to the", "is the")
"""Types of questions about sides among those from boxes."""


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """A measure over some questions. accuracy: of the network. blind: of one that sees no photo. commonest: of always
    giving the answer that is right most often in training."""

    questions: int
    accuracy: float
    blind: float
    commonest: float


@dataclass(frozen=True, slots=True)
class Refusals:
    """false: share of questions that can be seen which are refused; missed: of those that cannot which are answered.
    refused: share of all. accuracy: of the answers that are given; kept_back: of those that would have been."""

    false: float
    missed: float
    knowable: int
    unknowable: int
    refused: float
    accuracy: float
    kept_back: float

    def sentence(self) -> str:
        return (
            f"Not answered: {100 * self.refused:.1f} % of all. Of {self.knowable:,} questions of kinds that can be "
            f"seen {100 * self.false:.1f} % are refused; of {self.unknowable:,} that cannot, {100 * self.missed:.1f} % "
            f"are answered. Answers that are given are right to {100 * self.accuracy:.1f} %, those kept back would be "
            f"to {100 * self.kept_back:.1f} %."
        )


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """shares: by what is asked. error: of the probabilities, expected (ECE). table: probability told, how often right,
    and how many, for ten parts of the questions. judgement: how it takes answers, kind by kind."""

    shares: dict[str, AccuracyRow]
    error: float
    table: tuple[tuple[float, float, int], ...]
    refusals: Refusals
    judgement: Judgement

    def lines(self) -> Iterator[str]:
        """As Markdown."""
        yield "# Answers"
        yield ""
        yield "| questions | n | soft accuracy | without the photo | commonest answer |"
        yield "|---|---|---|---|---|"
        for name, one in self.shares.items():
            values = (one.accuracy, one.blind, one.commonest)
            yield f"| {name} | {one.questions:,} | {' | '.join(f'{100 * value:.1f}' for value in values)} |"
        yield ""
        yield f"Expected calibration error {100 * self.error:.1f} points. Told and right, in ten parts:"
        yield ""
        yield "| told | right | questions |"
        yield "|---|---|---|"
        yield from (f"| {100 * told:.0f} | {100 * right:.0f} | {count:,} |" for told, right, count in self.table)
        yield ""
        yield self.refusals.sentence()
        yield ""
        yield "| kind of question | learnt from | measured | right | without the photo | answered |"
        yield "|---|---|---|---|---|---|"
        for kind, record in self.judgement.kinds.items():
            right = f"{100 * record.accuracy:.0f} | {100 * record.blind:.0f}"
            said = "yes" if record.learnt else "no"
            yield f"| {kind} | {record.learnt_from:,} | {record.measured:,} | {right} | {said} |"

    def save(self, path: Path) -> None:
        with write_atomic(path) as file:
            file.write("\n".join([*self.lines(), ""]).encode())


def report_of(network: AnswerNet, blind: AnswerNet, data: AnswerData, progress: Progress) -> AnswerReport:
    """network: with its judgement. blind: one that sees no photo."""
    if network.judgement is None:
        raise InvalidFile(data.folder, "the network was not calibrated")
    photos, held = data.photos(TEST), data.held()
    commonest = Commonest.of(data.photos(TRAIN))
    shares: dict[str, AccuracyRow] = {}
    for source in dict.fromkeys(one.source for some in photos.values() for one in some):
        asked = human(photos, source)
        measured = _Measured.of(network, blind, data, asked, commonest, progress)
        unseen = np.array([photo in held for photo, some in asked for _ in some], dtype=bool)
        shares |= _shares(source, measured, unseen)
        if source == HUMAN:
            of_people = measured
    if HUMAN not in {name.split(":")[0] for name in shares}:
        raise InvalidFile(data.folder, "has no human question to report on")
    judgement = network.judgement
    verdicts = [judgement.verdict(*one) for one in zip(of_people.texts, of_people.said.tolist(), strict=True)]
    told = np.array([one.probability for one in verdicts])
    error, table = calibration_error(told, of_people.right)
    refused = np.array([bool(one.reason) for one in verdicts], dtype=bool)
    return AnswerReport(shares, error, table, _refusals(of_people, refused), judgement)


@dataclass(frozen=True, slots=True)
class Commonest:
    """For each source and type of question the scores of all answers in training, best first."""

    best: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, photos: Mapping[str, Sequence[StoredQuestion]]) -> Commonest:
        sums: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for some in photos.values():
            for one in some:
                for name in group_names(one):
                    for answer, score in one.targets:
                        sums[one.source, name][answer] += score
        return cls({key: max(scores, key=lambda one: scores[one]) for key, scores in sums.items()})

    def right(self, one: StoredQuestion, name: str) -> float:
        """How right that answer is to a question of the group of this name."""
        return dict(one.targets).get(self.best.get((one.source, name), -1), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    questions: tuple[StoredQuestion, ...]
    said: Floats
    right: Floats
    without: Floats
    commonest: Commonest

    @classmethod
    def of(
        cls,
        network: AnswerNet,
        blind: AnswerNet,
        data: AnswerData,
        asked: Sequence[tuple[str, tuple[StoredQuestion, ...]]],
        commonest: Commonest,
        progress: Progress,
    ) -> _Measured:
        said, right = answered(network, data, asked, progress)
        _, without = answered(blind, data, asked)
        return cls(tuple(one for _, some in asked for one in some), said, right, without, commonest)

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.questions]

    def share(self, name: str, chosen: NDArray[np.bool_]) -> AccuracyRow:
        often = [self.commonest.right(one, name) for one, is_it in zip(self.questions, chosen, strict=True) if is_it]
        right, without = (float(some[chosen].mean()) for some in (self.right, self.without))
        return AccuracyRow(int(chosen.sum()), right, without, float(np.mean(often)))


def group_names(one: StoredQuestion) -> tuple[str, ...]:
    """The groups by which a question is measured: all, by type of answer, and what it asks for."""
    kind = question_kind(one.text)
    if one.source != HUMAN:
        asked_for = {"color": "colour", "number": "number"}.get(one.question_type, one.question_type)
        return ("all", "side") if one.question_type in _SIDES and kind == "side" else ("all", asked_for)
    return ("all", one.answer_type, *((kind,) if kind in ("colour", "number", "side") else ()))


def _shares(source: str, measured: _Measured, unseen: NDArray[np.bool_]) -> dict[str, AccuracyRow]:
    names = [group_names(one) for one in measured.questions]
    found = {}
    for name in dict.fromkeys(name for some in names for name in some):
        of_it = np.array([name in some for some in names], dtype=bool)
        found[f"{source}: {name}"] = measured.share(name, of_it)
        if name == "all" and unseen.any():
            found[f"{source}: all, photos that the eye did not learn from"] = measured.share(name, unseen)
    return found


def calibration_error(told: Floats, right: Floats) -> tuple[float, tuple[tuple[float, float, int], ...]]:
    """(n,) probabilities and how right answers are → the mean distance over ten equally large parts, and these."""
    order = np.argsort(told, kind="stable")
    parts = [part for part in np.array_split(order, _BINS) if len(part)]
    table = tuple((float(told[part].mean()), float(right[part].mean()), len(part)) for part in parts)
    error = sum(count * abs(said - true) for said, true, count in table) / max(len(told), 1)
    return error, table


def _refusals(measured: _Measured, refused: NDArray[np.bool_]) -> Refusals:
    types = [one.question_type for one in measured.questions]
    knowable, unknowable = (np.array([one in some for one in types], dtype=bool) for some in (KNOWABLE, UNKNOWABLE))

    def mean(values: Floats | NDArray[np.bool_]) -> float:
        return float(values.mean()) if len(values) else 0.0

    return Refusals(
        mean(refused[knowable]),
        mean(~refused[unknowable]),
        int(knowable.sum()),
        int(unknowable.sum()),
        mean(refused),
        mean(measured.right[~refused]),
        mean(measured.right[refused]),
    )
