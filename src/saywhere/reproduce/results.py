"""What an experiment found, apart from how it was found and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.core.narrative import Narrative


@dataclass(frozen=True, slots=True)
class Column:
    """One measure of a table. name: as in the heading. lower_is_better: for distances."""

    name: str
    lower_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One model of a table: what the paper reports for it (empty where it does not), and what each seed gave here.

    scores: one dict of measure → value for each seed, in the order of `Results.seeds`.
    """

    name: str
    scores: tuple[dict[str, float], ...] = ()
    paper: dict[str, float] = field(default_factory=dict)

    def mean(self, measure: str) -> float:
        return float(np.mean([score[measure] for score in self.scores]))

    def spread(self, measure: str) -> float:
        """Standard deviation over seeds; NaN for one seed."""
        values = [score[measure] for score in self.scores]
        return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the paper's form. number: the paper's. title: what is compared, on which data, here."""

    number: int
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, and whether it held here.

    measure: what was compared. better, worse: names of the rows. differences: for each seed, how much better `better`
    was (positive: as claimed, whatever the direction). low, high: 95 % interval of the mean difference, paired over
    seeds. verdict: "held", "not held" (the other way round) or "undecided" (the interval holds 0).
    """

    text: str
    measure: str
    better: str
    worse: str
    differences: tuple[float, ...]
    low: float
    high: float
    verdict: str


def judge(text: str, measure: Column, better: Row, worse: Row) -> Claim:
    """Compare two rows seed by seed."""
    from scipy import stats

    sign = -1.0 if measure.lower_is_better else 1.0
    pairs = zip(better.scores, worse.scores, strict=True)
    differences = np.array([sign * (a[measure.name] - b[measure.name]) for a, b in pairs])
    mean = float(differences.mean())
    if len(differences) > 1:
        reach = float(stats.t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences)))
    else:
        reach = float("inf")
    low, high = mean - reach, mean + reach
    verdict = "held" if low > 0 else "not held" if high < 0 else "undecided"
    named = tuple(float(d) for d in differences)
    return Claim(text, measure.name, better.name, worse.name, named, low, high, verdict)


@dataclass(frozen=True, slots=True)
class Example:
    """A held-out image with what a person (or the simulated narrator) said and what models made of it.

    photo: a file beside the report. truth: the narrative. made: title → what a model predicted.
    """

    photo: str
    truth: Narrative
    made: dict[str, Narrative]


@dataclass(frozen=True, slots=True)
class Results:
    """Everything a report shows. settings: what was run, for people. curves: row → validation measure over steps.

    paired: what the two sides of a difference have in common.
    """

    title: str
    paper: str
    settings: dict[str, Any]
    made_by: dict[str, Any]
    seeds: tuple[int, ...]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    examples: tuple[Example, ...] = ()
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    paired: str = "Pairs have the same seed."


def save_numbers(results: Results, path: Path) -> None:
    """All but the pictures, as JSON."""
    content = {
        "title": results.title,
        "settings": results.settings,
        "made_by": results.made_by,
        "seeds": results.seeds,
        "tables": results.tables,
        "claims": results.claims,
        "curves": results.curves,
        "remarks": results.remarks,
    }
    with write_atomic(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(content)))


def save_scores(scores: dict[str, float], path: Path) -> None:
    """Scores of one run, for `load_scores`."""
    with write_atomic(path) as file:
        file.write(msgspec.json.encode(scores))


def load_scores(path: Path) -> dict[str, float]:
    """Scores that one finished run left, so that an interrupted experiment goes on where it was."""
    try:
        scores: dict[str, float] = msgspec.json.decode(path.read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidFile(path, f"holds no scores: {error}") from error
    return scores
