"""What an experiment found, apart from how it was found and how it is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.core.narrative import Narrative
from saywhere.reproduce.paired import LEAST_SEEDS, compare

if TYPE_CHECKING:
    from saywhere.plots.heats import HeatPanel

PAPER = "paper"
"""Source of the paper's own claims."""


@dataclass(frozen=True, slots=True)
class Column:
    """One measure of a table. name: as in the heading. lower_is_better: for distances. digits: decimals to show."""

    name: str
    lower_is_better: bool = False
    digits: int = 3


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
        if len(values) < 2:
            return float("nan")
        spread = float(np.std(values, ddof=1))
        # Values that are equal but for rounding have no spread.
        return 0.0 if spread < 1e-12 * max(abs(value) for value in values) else spread


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the paper's form. number: the paper's; 0 if the paper has none like it.

    title: what is compared, on which data, here. section: tables of one section stand together under its name.
    rows_are: what stands over the names of rows. compete: whether the best row of a column is worth pointing out; not
    if rows are scenes, for instance.
    """

    number: int
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    section: str = ""
    rows_are: str = "Model"
    compete: bool = True


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, or of someone else about it, and whether it held here.

    measure: what was compared. better, worse: names of the rows. differences: for each seed, how much better `better`
    was (positive: as claimed, whatever the direction). low, high: 95 % interval of the mean difference, paired over
    seeds. verdict: "held", "not held" (the other way round) or "undecided" (the interval holds 0).
    source: whose claim, as in "claims of …"; `PAPER` is the paper. p, p_flips: two-sided tests over seeds, as in
    `Comparison`; None if not tested.
    """

    text: str
    measure: str
    better: str
    worse: str
    differences: tuple[float, ...]
    low: float
    high: float
    verdict: str
    source: str = PAPER
    p: float | None = None
    p_flips: float | None = None


def judge(text: str, measure: Column, better: Row, worse: Row, source: str = PAPER) -> Claim:
    """Compare two rows seed by seed; tested, too, if there are seeds enough for that."""
    values = ([score[measure.name] for score in row.scores] for row in (better, worse))
    found = compare(*values, lower_is_better=measure.lower_is_better)
    verdict = "held" if found.low > 0 else "not held" if found.high < 0 else "undecided"
    tests = (found.p, found.p_flips) if len(found.differences) >= LEAST_SEEDS else (None, None)
    return Claim(
        *(text, measure.name, better.name, worse.name),
        *(found.differences, found.low, found.high, verdict, source, *tests),
    )


@dataclass(frozen=True, slots=True)
class Example:
    """A held-out image with what a person (or the simulated narrator) said and what models made of it.

    photo: a file beside the report. truth: the narrative. made: title → what a model predicted.
    """

    photo: str
    truth: Narrative
    made: dict[str, Narrative]


@dataclass(frozen=True, slots=True)
class HeatExample:
    """A held-out image with where models, and people, looked.

    photo: a file beside the report. heading: a question and its true answer, or a caption. marked: which of the
    heading's words, split at spaces, is the one explained. section: as of tables.
    """

    photo: str
    heading: str
    panels: tuple[HeatPanel, ...]
    marked: int | None = None
    section: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A measure as an amount changes. across: what the amount is, with its unit.

    series: row → for each amount (x, mean, low, high), the ends of a 95 % interval NaN where unknown. paper: (x, y) as
    the paper has it, on its own data. section: as of tables.
    """

    title: str
    across: str
    measure: str
    series: dict[str, list[tuple[float, float, float, float]]]
    paper: tuple[tuple[float, float], ...] = ()
    section: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot that is drawn already; `reproduce.figures.drawn` makes one. section: as of tables.

    png: on light paper; dark_png: the same on dark paper, None if there is none. alt: what it shows, for those who
    cannot see it. caption: how to read it.
    """

    title: str
    png: bytes
    alt: str
    caption: str = ""
    section: str = ""
    dark_png: bytes | None = None


@dataclass(frozen=True, slots=True)
class LevelLine:
    """A caption of a photo. label: at which level, by which model, from what. confidence: 0 to 1, None if unknown.

    good: whether it is right (the scene it names is the true one, for instance), None if nobody can tell.
    """

    label: str
    text: str
    confidence: float | None = None
    good: bool | None = None


@dataclass(frozen=True, slots=True)
class NamedBox:
    """A thing on a photo. box_xyxy: in fractions of its width and height."""

    name: str
    box_xyxy: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class LevelExample:
    """A photo with captions at several levels. photo: a file beside the report.

    heading: for instance the true scene. removed: the things taken away for some of the captions, outlined on the
    photo. section: as of tables.
    """

    photo: str
    heading: str
    lines: tuple[LevelLine, ...]
    removed: tuple[NamedBox, ...] = ()
    section: str = ""


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
    sweeps: tuple[Sweep, ...] = ()
    heats: tuple[HeatExample, ...] = ()
    figures: tuple[Figure, ...] = ()
    levels: tuple[LevelExample, ...] = ()


def save_numbers(results: Results, path: Path) -> None:
    """All but the pictures, as JSON."""
    content: dict[str, Any] = {
        "title": results.title,
        "settings": results.settings,
        "made_by": results.made_by,
        "seeds": results.seeds,
        "tables": results.tables,
        "claims": results.claims,
        "sweeps": results.sweeps,
        "curves": results.curves,
        "remarks": results.remarks,
    }
    if results.levels:
        content["levels"] = results.levels
    with write_atomic(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(content)))


def save_scores(scores: dict[str, float], path: Path) -> None:
    """Scores of one run, for `load_scores`."""
    with write_atomic(path) as file:
        file.write(msgspec.json.encode(scores))


def load_scores(path: Path) -> dict[str, float]:
    """Scores that one finished run left, so that an interrupted experiment goes on where it was."""
    try:
        scores = msgspec.json.decode(path.read_bytes(), type=dict[str, float | None])
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidFile(path, f"holds no scores: {error}") from error
    # JSON has no NaN.
    return {name: math.nan if value is None else value for name, value in scores.items()}
