"""What stands in the cells of a report's tables, the same for Markdown and for the page."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.plots.facts import counted
from saywhere.reproduce.claims import PAPER, Claim, least_p_flips
from saywhere.reproduce.decisions import LEVEL, POWER
from saywhere.reproduce.results import Line, Report, Sweep
from saywhere.reproduce.tables import MeasureColumn, ModelRow, Table

NOTHING = "–"
"""Stands where there is no number."""
PAPER_ROW = "the paper, on its own data"
"""Name of the paper's row of a sweep."""
SYMBOLS = {"held": "✓", "not held": "✗", "undecided": "?"}
_EQUAL = 1e-9
_FEWEST_DIGITS, _MOST_DIGITS = 3, 6
_LONGEST_FACT = 60
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Heading:
    """A measure of a table. has_paper: whether a column with the paper's numbers stands beside ours."""

    name: str
    lower_is_better: bool
    has_paper: bool
    digits: int

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
    rows_are: str


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """Claims of one source. whose: empty if all claims of a report are the paper's. plot: the name of theirs."""

    whose: str
    plot: str
    claims: list[Claim]

    @property
    def heading(self) -> str:
        return f"Claims of {self.whose}" if self.whose else ""


@dataclass(frozen=True, slots=True)
class SweepCell:
    """A mean of a sweep, and its 95 % interval, empty if unknown."""

    mean: str
    interval: str


def grouped(items: Iterable[_Item], name: Callable[[_Item], str]) -> dict[str, list[_Item]]:
    """Items by name, in the order of first appearance; those without a name come first."""
    groups: dict[str, list[_Item]] = {"": []}
    for item in items:
        groups.setdefault(name(item), []).append(item)
    return {name: group for name, group in groups.items() if group}


def claim_groups(claims: Sequence[Claim]) -> list[ClaimGroup]:
    """The claims by source."""
    groups = grouped(claims, lambda claim: claim.source)
    if list(groups) == [PAPER]:
        return [ClaimGroup("", "claims", groups[PAPER])]
    return [
        ClaimGroup("the paper" if source == PAPER else source, f"claims-{i}" if i > 1 else "claims", group)
        for i, (source, group) in enumerate(groups.items(), 1)
    ]


def grid(table: Table) -> Grid:
    headings = [Heading(c.name, c.lower_is_better, _paper_knows(table, c), c.digits) for c in table.columns]
    columns = [cells for heading in headings for cells in _columns(table, heading)]
    rows = [(row.name, [column[i] for column in columns]) for i, row in enumerate(table.rows)]
    title = f"Table {table.number}. {table.title}" if table.number else table.title
    return Grid(title, headings, rows, list(_notes(table)), table.rows_are)


def _paper_knows(table: Table, column: MeasureColumn) -> bool:
    return any(math.isfinite(row.paper.get(column.name, math.nan)) for row in table.rows)


def _columns(table: Table, heading: Heading) -> Iterator[list[Cell]]:
    measured = [_finite(row, heading.name) for row in table.rows]
    means = [float(np.mean(values)) if values else math.nan for values in measured]
    bests = _best(means, heading.lower_is_better)
    yield [
        Cell(number(m, heading.digits), _spread(v, heading.digits), table.compete and b)
        for m, v, b in zip(means, measured, bests, strict=True)
    ]
    if heading.has_paper:
        printed = [row.paper.get(heading.name, math.nan) for row in table.rows]
        bests = _best(printed, heading.lower_is_better)
        yield [
            Cell(number(value, heading.digits), best=table.compete and best, paper=True)
            for value, best in zip(printed, bests, strict=True)
        ]


def _finite(row: ModelRow, measure: str) -> list[float]:
    values = [score.get(measure, math.nan) for score in row.scores]
    return [value for value in values if math.isfinite(value)]


def _spread(values: Sequence[float], digits: int) -> str:
    """Over seeds; nothing for rows that are the same for each, such as bounds."""
    if len(values) < 2 or np.ptp(values) <= _EQUAL * max(1.0, abs(values[0])):
        return ""
    return number(float(np.std(values, ddof=1)), digits)


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
    if abs(value) >= 1e5 or (value and abs(value) < 0.5 * 10 ** -max(digits, _FEWEST_DIGITS)):
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
    digits = _digits(claim.high - claim.low, _FEWEST_DIGITS)
    low, high = number(claim.low, digits, signed=True), number(claim.high, digits, signed=True)
    return number(mean, digits, signed=True), f"{low} to {high}"


def _digits(width: float, fewest: int) -> int:
    """As many digits as show an interval's width to two places."""
    return min(max(math.ceil(1 - math.log10(width)), fewest), _MOST_DIGITS) if width > 0 else _FEWEST_DIGITS


def tested(claims: Sequence[Claim]) -> bool:
    return any(claim.p is not None or claim.p_flips is not None for claim in claims)


def probability(p: float | None) -> str:
    """For people: 0.012, < 0.001, or a dash where there is none."""
    return number(math.nan) if p is None else "< 0.001" if p < 0.001 else number(p)


def about_claims(results: Report) -> str:
    """How to read the claims' numbers."""
    parts = [f"A positive difference is as claimed, whatever the direction of the measure. {results.paired}"]
    if tested(results.claims):
        parts.append(
            "p: two-sided test of the mean difference, paired by Student's t over seeds, or by drawing photos again. "
            "p (flips): exact two-sided test by all flips of the signs of the seeds' differences. p (together): p "
            f"after Holm's correction for all claims of the source; a verdict needs at most {LEVEL:g}. Intervals are "
            "of one claim alone, so one may leave out 0 while its claim is undecided."
        )
    if any(claim.margin is not None for claim in results.claims):
        parts.append("“=” claims that both are equal within the margin given: p is that of two one-sided tests.")
    if any(claim.detectable is not None for claim in results.claims):
        parts.append(
            f"Could have shown: the smallest true difference that this run finds with {100 * POWER:.0f} % power, given "
            "the spread of its seeds or photos and the level that is left for the undecided claims; beside “=”, the "
            "smallest margin."
        )
    for n in sorted({len(claim.differences) for claim in results.claims if claim.p_flips is not None}):
        parts.append(f"With {counted(n, 'seed')}, flips cannot give less than {least_p_flips(n):.2g}.")
    return " ".join(parts)


def within(claim: Claim) -> str:
    """The margin of a claim that two rows are equal."""
    return "" if claim.margin is None else f" (within ±{claim.margin:g})"


def could_show(claim: Claim) -> str:
    """The smallest difference that an undecided claim's run could have shown; a dash if it is decided."""
    if claim.verdict != "undecided":
        return NOTHING
    if claim.detectable is None or not math.isfinite(claim.detectable):
        return NOTHING if has_interval(claim) else "nothing"
    if not claim.detectable:
        # All pairs are equal to the last digit: there is no spread to tell from.
        return NOTHING
    digits = _digits(claim.detectable, _FEWEST_DIGITS)
    return f"{'±' if claim.margin is not None else ''}{number(claim.detectable, digits)}"


def about_code(report: Report) -> str:
    """One hash for all files that made it, and how many they are."""
    whole = hashlib.sha256("".join(f"{name} {one}\n" for name, one in report.code.items()).encode()).hexdigest()
    return f"{whole[:16]} ({counted(len(report.code), 'file')}, each in numbers.json)"


def about_older(report: Report) -> str:
    return f"Made by an older version of the code. {report.older}" if report.older else ""


ABOUT_SWEEPS = "Lines join the means over seeds; bands are their 95 % intervals, as given beneath."


def about_sweep(sweep: Sweep) -> str:
    """What a plot of it shows."""
    return f"{sweep.measure} over {sweep.across}, a line with a band for each row: {'; '.join(sweep.series)}"


def sweep_rows(sweep: Sweep) -> tuple[list[str], list[tuple[str, list[SweepCell]]]]:
    """The amounts, and for each row its means with their intervals; the paper's row comes last."""
    values = {name: {x: (mean, low, high) for x, mean, low, high in points} for name, points in sweep.series.items()}
    printed = {x: (y, math.nan, math.nan) for x, y in sweep.paper}
    rows = {**values, **({PAPER_ROW: printed} if printed else {})}
    amounts = sorted({x for points in rows.values() for x in points})
    widths = [high - low for points in values.values() for _, low, high in points.values()]
    # One for the whole sweep, so that its numbers can be compared at a glance.
    digits = _digits(max((width for width in widths if math.isfinite(width)), default=0.0), fewest=1)
    nothing = (math.nan, math.nan, math.nan)
    shown = [
        (name, [_sweep_cell(*points.get(x, nothing), digits=digits) for x in amounts]) for name, points in rows.items()
    ]
    return [f"{x:g}" for x in amounts], shown


def _sweep_cell(mean: float, low: float, high: float, digits: int) -> SweepCell:
    known = math.isfinite(low) and math.isfinite(high)
    interval = f"{number(low, digits)} to {number(high, digits)}" if known else ""
    return SweepCell(number(mean, digits), interval)


def check_verdicts(claims: Sequence[Claim]) -> None:
    for claim in claims:
        if claim.verdict not in SYMBOLS:
            raise InvalidValue("verdict", f"is {claim.verdict!r}, not one of {', '.join(SYMBOLS)}")


def opening(results: Report) -> str:
    """One paragraph: what was run, and how the claims fared."""
    rows = len({row.name for table in results.tables for row in table.rows if row.scores})
    tables = sorted({table.number for table in results.tables if table.number})
    parts = [f"{counted(rows, 'row')} compared anew"]
    if tables:
        parts.append(f"for {'Table' if len(tables) == 1 else 'Tables'} {_listed([str(n) for n in tables])}")
    if results.seeds:
        noun = "seed" if len(results.seeds) == 1 else "seeds"
        parts.append(f"with {noun} {_listed([str(seed) for seed in results.seeds])}")
    return " ".join([f"{' '.join(parts)}.", *(_outcome(group) for group in claim_groups(results.claims))])


def _outcome(group: ClaimGroup) -> str:
    found = {verdict: sum(claim.verdict == verdict for claim in group.claims) for verdict in SYMBOLS}
    outcome = _listed([f"{n} {verdict}" for verdict, n in found.items() if n])
    whose = f" of {group.whose}" if group.whose else ""
    return f"Of {counted(len(group.claims), 'claim')}{whose}: {outcome}."


def key_facts(results: Report) -> str:
    """One line of those settings that are a single short value, and the version."""
    facts = {name: _plain(value) for name, value in results.settings.items() if isinstance(value, str | int | float)}
    version = results.made_by.get("saywhere")
    shown = [f"{name}: {text}" for name, text in facts.items() if len(text) <= _LONGEST_FACT]
    return " · ".join([*shown, *([f"saywhere {version}"] if version else []), "all settings are at the end"])


def about_paper(results: Report, look: str) -> str:
    """look: how the columns with the paper's numbers look."""
    return (
        f"{look} columns give what the paper prints ({results.paper}). "
        "Those numbers come from another data set: compare which row is better, not the values."
    )


def about_ours(results: Report) -> str:
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


def confidence(line: Line) -> str:
    """For people; a dash if there is none."""
    known = line.confidence is not None and math.isfinite(line.confidence)
    return f"{line.confidence:.2f}" if known else NOTHING


def right(line: Line) -> tuple[str, str]:
    """Whether it is right, as a sign and in a word."""
    return (NOTHING, "unknown") if line.good is None else ("✓", "right") if line.good else ("✗", "wrong")
