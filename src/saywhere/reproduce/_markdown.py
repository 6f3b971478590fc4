"""A report as Markdown, with its pictures in files beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from saywhere.plots.text import printable
from saywhere.reproduce._cells import (
    ABOUT_SWEEPS,
    NOTHING,
    SYMBOLS,
    Cell,
    Grid,
    SweepCell,
    about_claims,
    about_ours,
    about_paper,
    about_sweep,
    claim_groups,
    difference,
    grid,
    grouped,
    key_facts,
    opening,
    probability,
    settings_rows,
    sweep_rows,
    tested,
)
from saywhere.reproduce._examples import Scene
from saywhere.reproduce._heats import ABOUT, HeatScene
from saywhere.reproduce._levels import ABOUT as ABOUT_LEVELS
from saywhere.reproduce._levels import TITLE as LEVELS_TITLE
from saywhere.reproduce._levels import LevelScene, confidence, verdict
from saywhere.reproduce.results import Claim, Figure, Results, Sweep

_Item = TypeVar("_Item")
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")
# What would make a list or heading of a line's beginning: "- ", "# ", "1. ".
_OPENS_BLOCK = re.compile(r"^(\s*\d+(?=[.)](?:\s|$))|\s*(?=[-+=#]))")


def markdown(
    results: Results,
    scenes: Sequence[Scene],
    pictures: dict[str, str],
    heats: Sequence[HeatScene] = (),
    levels: Sequence[LevelScene] = (),
) -> str:
    """pictures: file, relative to the report, for "claims" (and of other sources "claims-2" …), "curves", "sweep-1" …,
    "figure-1" …, "example 1" …, "levels 1" … and "heats 1" …; those not drawn are absent.
    """
    blocks = [f"# {_safe(results.title)}", _safe(opening(results)), _safe(key_facts(results))]
    if results.claims:
        blocks += ["## Did the claims hold?", *_claim_groups(results, pictures)]
    if results.tables:
        blocks += ["## Tables", f"{_safe(about_ours(results))} {_safe(about_paper(results, 'Slanted'))}"]
        blocks += _in_groups(results.tables, lambda table: table.section, lambda table, mark: _table(grid(table), mark))
    if results.sweeps:
        sweeps = list(enumerate(results.sweeps, 1))
        blocks += ["## Sweeps", _safe(ABOUT_SWEEPS)]
        blocks += _in_groups(
            sweeps, lambda n: n[1].section, lambda n, mark: _sweep(n[1], pictures[f"sweep-{n[0]}"], mark)
        )
    if results.figures:
        figures = list(enumerate(results.figures, 1))
        blocks.append("## Figures")
        blocks += _in_groups(
            figures, lambda n: n[1].section, lambda n, mark: _figure(n[1], pictures[f"figure-{n[0]}"], mark)
        )
    if "curves" in pictures:
        blocks += ["## How they learned", _image("Validation measure over steps for each row", pictures["curves"])]
    if scenes:
        blocks.append("## Examples")
        blocks += [_example(i, scene, pictures[f"example {i}"]) for i, scene in enumerate(scenes, 1)]
    if levels:
        blocks += [f"## {LEVELS_TITLE}", _safe(ABOUT_LEVELS)]
        photos = list(enumerate(levels, 1))
        blocks += _in_groups(
            photos, lambda n: n[1].example.section, lambda n, mark: _levels(*n, pictures[f"levels {n[0]}"], mark)
        )
    if heats:
        blocks += ["## Heat maps", _safe(ABOUT)]
        looks = list(enumerate(heats, 1))
        blocks += _in_groups(looks, lambda n: n[1].example.section, lambda n, _: _heats(*n, pictures[f"heats {n[0]}"]))
    if results.remarks:
        blocks += ["## Remarks", "\n".join(f"- {_safe(remark)}" for remark in results.remarks)]
    blocks += ["## What was run", _settings(results)]
    return "\n\n".join(blocks) + "\n"


def _in_groups(items: Sequence[_Item], name: Callable[[_Item], str], shown: Callable[[_Item, str], str]) -> list[str]:
    """Items under the names of their groups. shown: an item and what marks its heading."""
    blocks = []
    for group_name, group in grouped(items, name).items():
        blocks += [*_section(group_name), *(shown(item, "####" if group_name else "###") for item in group)]
    return blocks


def _section(name: str) -> list[str]:
    return [f"### {_safe(name)}"] if name else []


def _claim_groups(results: Results, pictures: dict[str, str]) -> Iterator[str]:
    """What the numbers mean stands once: under the only table, or before the first of several."""
    groups = claim_groups(results.claims)
    with_tests = tested(results.claims)
    if len(groups) > 1:
        yield _safe(about_claims(results))
    for group in groups:
        yield from _section(group.heading)
        yield _claims(group.claims, with_tests)
        if len(groups) == 1:
            yield _safe(about_claims(results))
        yield _image("Differences with 95 % intervals", pictures[group.plot])


def _claims(claims: Sequence[Claim], with_tests: bool) -> str:
    rows = []
    for claim in claims:
        mean, interval = difference(claim)
        compared = f"{_safe(claim.better)} \\> {_safe(claim.worse)}"
        verdict = f"{SYMBOLS[claim.verdict]} {claim.verdict}"
        tests = [_safe(probability(claim.p)), _safe(probability(claim.p_flips))] if with_tests else []
        rows.append([verdict, _safe(claim.text), compared, _safe(claim.measure), mean, interval, *tests])
    headings = ["Verdict", "Claim", "Rows compared", "Measure", "Mean difference", "95 % interval"]
    headings += ["p (t)", "p (flips)"] if with_tests else []
    return _rows(headings, rows, numeric={4, 5, 6, 7})


def _table(table: Grid, mark: str) -> str:
    headings = [_safe(table.rows_are)]
    for heading in table.headings:
        headings += [f"{_safe(heading.name)} {heading.arrow}", *(["*paper*"] if heading.has_paper else [])]
    rows = [[_safe(name), *(_cell(cell) for cell in cells)] for name, cells in table.rows]
    notes = [_safe(note) for note in table.notes]
    return "\n\n".join([f"{mark} {_safe(table.title)}", _rows(headings, rows, set(range(1, len(headings)))), *notes])


def _cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    if cell.paper:
        return f"*{text}*"
    return f"{text} ± {cell.spread}" if cell.spread else text


def _example(number: int, scene: Scene, picture: str) -> str:
    said = [f"- {_safe(panel.title)}: {_safe(panel.narrative.caption) or '–'}" for panel in scene.panels]
    titles = ", ".join(panel.title for panel in scene.panels)
    return "\n\n".join([_image(f"Example {number}: traces of {titles}", picture), "\n".join(said)])


def _sweep(sweep: Sweep, picture: str, mark: str) -> str:
    amounts, values = sweep_rows(sweep)
    rows = [[_safe(name), *map(_sweep_cell, cells)] for name, cells in values]
    numbers = _rows([_safe(sweep.across), *amounts], rows, set(range(1, len(amounts) + 1)))
    return "\n\n".join([f"{mark} {_safe(sweep.title)}", _image(about_sweep(sweep), picture), numbers])


def _sweep_cell(cell: SweepCell) -> str:
    return f"{cell.mean} ({cell.interval})" if cell.interval else cell.mean


def _heats(number: int, heat: HeatScene, picture: str) -> str:
    words = " ".join(f"**{_safe(word)}**" if marked else _safe(word) for word, marked in heat.words)
    notes = [f"- {_safe(panel.title)}: {_safe(panel.note)}" for panel in heat.example.panels if panel.note]
    return "\n\n".join(
        [f"{number}\\. {words}", _image(heat.described(), picture), *(["\n".join(notes)] if notes else [])]
    )


def _figure(figure: Figure, picture: str, mark: str) -> str:
    caption = [_safe(figure.caption)] if figure.caption else []
    return "\n\n".join([f"{mark} {_safe(figure.title)}", _image(figure.alt, picture), *caption])


def _levels(number: int, scene: LevelScene, picture: str, mark: str) -> str:
    headings = ["Level", "Caption"]
    headings += ["Confidence"] * scene.has_confidence + ["Right"] * scene.has_verdict
    rows = []
    for line in scene.example.lines:
        beside = [confidence(line)] * scene.has_confidence + [verdict(line)[0]] * scene.has_verdict
        rows.append([_safe(line.label), _safe(line.text) or NOTHING, *beside])
    numeric = {2} if scene.has_confidence else set()
    heading = f"{mark} {number}\\. {_safe(scene.example.heading)}".rstrip()
    removed = [_safe(scene.removed())] if scene.removed() else []
    return "\n\n".join([heading, _image(scene.described(), picture), *removed, _rows(headings, rows, numeric)])


def _settings(results: Results) -> str:
    rows = [
        [_safe(name), _safe(value)]
        for name, value in settings_rows({"paper": results.paper, **results.settings, **results.made_by})
    ]
    return _rows(["Setting", "Value"], rows, set())


def _rows(headings: Sequence[str], rows: Sequence[Sequence[str]], numeric: set[int]) -> str:
    """A table; the columns `numeric` are set to the right."""
    rule = ["---:" if i in numeric else "---" for i in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def _image(text: str, path: str) -> str:
    return f"![{_safe(text)}]({path})"


def _safe(text: str) -> str:
    """Any text on one line, shown as it is: no markup, no HTML, no cell or list of its own."""
    return _OPENS_BLOCK.sub(r"\1\\", _SPECIAL.sub(r"\\\1", printable(text)))
