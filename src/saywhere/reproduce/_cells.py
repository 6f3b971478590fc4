"""What stands in the cells of a report's tables, the same for Markdown and for the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.plots.facts import counted
from saywhere.reproduce.results import Claim, Column, Results, Row, Table

NOTHING = "–"
"""Stands where there is no number."""
SYMBOLS = {"held": "✓", "not held": "✗", "undecided": "?"}
_FEWEST_DIGITS, _MOST_DIGITS = 3, 6
_LONGEST_FACT = 60


@dataclass(frozen=True, slots=True)
class Heading:
    """A measure of a table. has_paper: whether a column with the paper's numbers stands beside ours."""

    name: str
    lower_is_better: bool
    has_paper: bool

    @property
    def arrow(self) -> str:
        return "↓" if self.lower_is_better else "↑"


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a table. spread: of the seeds, empty if unknown. best: of its column. paper: not ours."""

    text: str
    spread: str = ""
    best: bool = False
    paper: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table ready to be written. rows: a name and, in the order of the headings, our cell and perhaps the paper's."""

    title: str
    headings: list[Heading]
    rows: list[tuple[str, list[Cell]]]
    notes: list[str]


def grid(table: Table) -> Grid:
    headings = [Heading(c.name, c.lower_is_better, _paper_knows(table, c)) for c in table.columns]
    columns = [cells for heading in headings for cells in _columns(table, heading)]
    rows = [(row.name, [column[i] for column in columns]) for i, row in enumerate(table.rows)]
    return Grid(f"Table {table.number}. {table.title}", headings, rows, list(_notes(table)))


def _paper_knows(table: Table, column: Column) -> bool:
    return any(math.isfinite(row.paper.get(column.name, math.nan)) for row in table.rows)


def _columns(table: Table, heading: Heading) -> Iterator[list[Cell]]:
    measured = [_finite(row, heading.name) for row in table.rows]
    means = [float(np.mean(values)) if values else math.nan for values in measured]
    bests = _best(means, heading.lower_is_better)
    yield [Cell(number(m), _spread(v), b) for m, v, b in zip(means, measured, bests, strict=True)]
    if heading.has_paper:
        printed = [row.paper.get(heading.name, math.nan) for row in table.rows]
        bests = _best(printed, heading.lower_is_better)
        yield [Cell(number(value), best=best, paper=True) for value, best in zip(printed, bests, strict=True)]


def _finite(row: Row, measure: str) -> list[float]:
    values = [score.get(measure, math.nan) for score in row.scores]
    return [value for value in values if math.isfinite(value)]


def _spread(values: Sequence[float]) -> str:
    return number(float(np.std(values, ddof=1))) if len(values) > 1 else ""


def _best(values: Sequence[float], lower_is_better: bool) -> list[bool]:
    """Which are best; none if there is nothing to compare."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return [False] * len(values)
    best = min(finite) if lower_is_better else max(finite)
    return [value == best for value in values]


def _notes(table: Table) -> Iterator[str]:
    """A mean over fewer seeds than were run must not pass for a mean over all."""
    for row in table.rows:
        for column in table.columns:
            tried = sum(column.name in score for score in row.scores)
            good = len(_finite(row, column.name))
            if good < tried:
                yield f"{row.name}: {column.name} is no number in {tried - good} of {counted(tried, 'seed')}."


def number(value: float, digits: int = _FEWEST_DIGITS, signed: bool = False) -> str:
    """For people: 0.171, −0.020, 1.2e+06, or a dash where there is none."""
    if not math.isfinite(value):
        return NOTHING
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if abs(value) >= 1e5 or (value and abs(value) < 0.5 * 10**-digits):
        text = f"{value:+.1e}" if signed else f"{value:.1e}"
    return text.replace("-", "−")


def mean_difference(claim: Claim) -> float:
    """Mean over seeds; NaN if there is none, or one of them is."""
    return float(np.mean(claim.differences)) if claim.differences else math.nan


def has_interval(claim: Claim) -> bool:
    return math.isfinite(claim.low) and math.isfinite(claim.high)


def difference(claim: Claim) -> tuple[str, str]:
    """The mean difference, and its interval or why there is none."""
    mean = mean_difference(claim)
    if not has_interval(claim):
        seeds = len(claim.differences)
        return number(mean, signed=True), f"no interval from {counted(seeds, 'seed')}"
    width = claim.high - claim.low
    # As many digits as show the interval's width to two places.
    digits = math.ceil(1 - math.log10(width)) if width > 0 else _FEWEST_DIGITS
    digits = min(max(digits, _FEWEST_DIGITS), _MOST_DIGITS)
    low, high = number(claim.low, digits, signed=True), number(claim.high, digits, signed=True)
    return number(mean, digits, signed=True), f"{low} to {high}"


def check_verdicts(claims: Sequence[Claim]) -> None:
    for claim in claims:
        if claim.verdict not in SYMBOLS:
            raise InvalidValue("verdict", f"is {claim.verdict!r}, not one of {', '.join(SYMBOLS)}")


def opening(results: Results) -> str:
    """One paragraph: what was run, and how the claims fared."""
    rows = len({row.name for table in results.tables for row in table.rows if row.scores})
    tables = sorted({table.number for table in results.tables})
    parts = [f"{counted(rows, 'row')} compared anew"]
    if tables:
        parts.append(f"for {'Table' if len(tables) == 1 else 'Tables'} {_listed([str(n) for n in tables])}")
    if results.seeds:
        noun = "seed" if len(results.seeds) == 1 else "seeds"
        parts.append(f"with {noun} {_listed([str(seed) for seed in results.seeds])}")
    found = {verdict: sum(claim.verdict == verdict for claim in results.claims) for verdict in SYMBOLS}
    outcome = _listed([f"{n} {verdict}" for verdict, n in found.items() if n])
    checked = f" Of {counted(len(results.claims), 'claim')}: {outcome}." if results.claims else ""
    return f"{' '.join(parts)}.{checked}"


def key_facts(results: Results) -> str:
    """One line of those settings that are a single short value, and the version."""
    facts = {name: _plain(value) for name, value in results.settings.items() if isinstance(value, str | int | float)}
    version = results.made_by.get("saywhere")
    shown = [f"{name}: {text}" for name, text in facts.items() if len(text) <= _LONGEST_FACT]
    return " · ".join([*shown, *([f"saywhere {version}"] if version else []), "all settings are at the end"])


def about_paper(results: Results, look: str) -> str:
    """look: how the columns with the paper's numbers look."""
    return (
        f"{look} columns give what the paper prints ({results.paper}). "
        "Those numbers come from another data set: compare which row is better, not the values."
    )


def about_ours(results: Results) -> str:
    spread = "mean ± standard deviation over seeds" if len(results.seeds) > 1 else "the value of one seed"
    return f"Ours: {spread}. ↓ lower is better, ↑ higher is better. Best of a column in bold. {NOTHING} no number."


def settings_rows(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """A name and a value for people; what is nested gets a row for each part."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name} · {inner}", text) for inner, text in settings_rows(value))
        else:
            yield str(name), _plain(value)


def _plain(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple | set | frozenset):
        parts = [_plain(part) for part in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)]
        return ", ".join(parts) or NOTHING
    return str(value)


def _listed(parts: Sequence[str]) -> str:
    """As in: 2, 3 and 5."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
