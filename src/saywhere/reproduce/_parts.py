"""The parts of a report and their order, the same for Markdown and for the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from saywhere.reproduce._cells import (
    ABOUT_SWEEPS,
    Grid,
    about_claims,
    about_code,
    about_ours,
    about_paper,
    claim_groups,
    grid,
    grouped,
    settings_rows,
    tested,
)
from saywhere.reproduce.claims import Claim
from saywhere.reproduce.results import Illustration, Report, Sweep

# Kind of picture → the title of its part, what is said of it, and what is said on the page alone.
ILLUSTRATED = {
    "figures": ("Figures", "", ""),
    "examples": (
        *("Examples", ""),
        "Colours tell time, alike in all pictures of an example. A ring is the first point, a square the last.",
    ),
    "levels": (
        "Captions at several levels",
        *("Confidence is from 0 to 1. ✓: right, ✗: wrong, as far as that can be told.", ""),
    ),
    "heats": (
        "Heat maps",
        "Each map lies over the photo in grey and is relative to its own highest value: no colour where nothing "
        "counted, yellow where most did.",
        "",
    ),
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot that is drawn from the report's numbers on light and dark paper. name: of its files."""

    name: str
    alt: str


@dataclass(frozen=True, slots=True)
class ClaimTable:
    """with_tests: whether any claim of the report was tested. label: what the table is, for those who cannot see it."""

    claims: Sequence[Claim]
    with_tests: bool
    label: str


@dataclass(frozen=True, slots=True)
class SweepTable:
    sweep: Sweep
    name: str


@dataclass(frozen=True, slots=True)
class Shown:
    """An illustration and its number among those of its kind."""

    number: int
    illustration: Illustration


@dataclass(frozen=True, slots=True)
class Remarks:
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Settings:
    """headings: over its columns."""

    rows: Sequence[Sequence[str]]
    headings: tuple[str, ...] = ("Setting", "Value")


Content = Plot | ClaimTable | Grid | SweepTable | Shown | Remarks | Settings


@dataclass(frozen=True, slots=True)
class Chapter:
    """groups: name, perhaps empty, → what stands under it. page_about: said on the page alone."""

    title: str
    groups: Mapping[str, Sequence[Content]]
    about: list[str] = field(default_factory=list)
    page_about: str = ""


def parts_of(report: Report, paper_looks: str) -> Iterator[Chapter]:
    """paper_looks: how columns with the paper's numbers look."""
    if report.departures:
        rows = [(one.setting, one.here, one.paper) for one in report.departures]
        table = Settings(rows, ("Setting", "Here", "The paper"))
        yield Chapter("What departs from the paper", {"": [table]})
    if report.claims:
        with_tests = tested(report.claims)
        claims: dict[str, list[Content]] = {
            group.heading: [
                ClaimTable(group.claims, with_tests, group.heading or "Claims"),
                Plot(group.plot, "Differences with 95 % intervals"),
            ]
            for group in claim_groups(report.claims)
        }
        yield Chapter("Did the claims hold?", claims, [about_claims(report)])
    if report.tables:
        tables = grouped(report.tables, lambda table: table.section)
        grids: dict[str, list[Content]] = {name: [grid(table) for table in group] for name, group in tables.items()}
        yield Chapter("Tables", grids, [about_ours(report), about_paper(report, paper_looks)])
    if report.sweeps:
        numbered = [SweepTable(sweep, f"sweep-{i}") for i, sweep in enumerate(report.sweeps, 1)]
        swept = grouped(numbered, lambda one: one.sweep.section)
        yield Chapter("Sweeps", swept, [ABOUT_SWEEPS])
    yield from _illustrated(report, "figures")
    if report.curves:
        about = "Each panel shows one row, and all others in grey, on the same axes."
        plot = Plot("curves", "Validation measure over steps for each row")
        yield Chapter("How they learned", {"": [plot]}, page_about=about)
    for kind in ("examples", "levels", "heats"):
        yield from _illustrated(report, kind)
    if report.remarks:
        yield Chapter("Remarks", {"": [Remarks(report.remarks)]})
    code = {"code": about_code(report)} if report.code else {}
    settings = settings_rows({"paper": report.paper, **report.settings, **report.made_by, **code})
    yield Chapter("What was run", {"": [Settings(list(settings))]})


def _illustrated(report: Report, kind: str) -> Iterator[Chapter]:
    shown = [Shown(i, one) for i, one in enumerate((o for o in report.illustrations if o.kind == kind), 1)]
    if shown:
        title, about, page_about = ILLUSTRATED[kind]
        groups = grouped(shown, lambda one: one.illustration.section)
        yield Chapter(title, groups, [about] if about else [], page_about)
