"""A report as Markdown, with its pictures in files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saywhere.plots.text import printable
from saywhere.reproduce._cells import (
    SYMBOLS,
    Cell,
    Grid,
    about_ours,
    about_paper,
    difference,
    grid,
    key_facts,
    opening,
    settings_rows,
)
from saywhere.reproduce._examples import Scene
from saywhere.reproduce.results import Claim, Results

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")
# What would make a list or heading of a line's beginning: "- ", "# ", "1. ".
_OPENS_BLOCK = re.compile(r"^(\s*\d+(?=[.)](?:\s|$))|\s*(?=[-+=#]))")


def markdown(results: Results, scenes: Sequence[Scene], pictures: dict[str, str]) -> str:
    """pictures: file, relative to the report, for "claims", "curves" and "example 1" …; those not drawn are absent."""
    blocks = [f"# {_safe(results.title)}", _safe(opening(results)), _safe(key_facts(results))]
    if results.claims:
        blocks += ["## Did the claims hold?", _claims(results.claims, results.paired)]
        blocks += [_image("Differences with 95 % intervals", pictures["claims"])]
    if results.tables:
        blocks += ["## Tables", f"{_safe(about_ours(results))} {_safe(about_paper(results, 'Slanted'))}"]
        blocks += [_table(grid(table)) for table in results.tables]
    if "curves" in pictures:
        blocks += ["## How they learned", _image("Validation measure over steps for each row", pictures["curves"])]
    if scenes:
        blocks.append("## Examples")
        blocks += [_example(i, scene, pictures[f"example {i}"]) for i, scene in enumerate(scenes, 1)]
    if results.remarks:
        blocks += ["## Remarks", "\n".join(f"- {_safe(remark)}" for remark in results.remarks)]
    blocks += ["## What was run", _settings(results)]
    return "\n\n".join(blocks) + "\n"


def _claims(claims: Sequence[Claim], paired: str) -> str:
    rows = []
    for claim in claims:
        mean, interval = difference(claim)
        compared = f"{_safe(claim.better)} \\> {_safe(claim.worse)}"
        verdict = f"{SYMBOLS[claim.verdict]} {claim.verdict}"
        rows.append([verdict, _safe(claim.text), compared, _safe(claim.measure), mean, interval])
    headings = ["Verdict", "Claim", "Rows compared", "Measure", "Mean difference", "95 % interval"]
    after = f"A positive difference is as claimed, whatever the direction of the measure. {paired}"
    return f"{_rows(headings, rows, numeric={4, 5})}\n\n{after}"


def _table(table: Grid) -> str:
    headings = ["Model"]
    for heading in table.headings:
        headings += [f"{_safe(heading.name)} {heading.arrow}", *(["*paper*"] if heading.has_paper else [])]
    rows = [[_safe(name), *(_cell(cell) for cell in cells)] for name, cells in table.rows]
    notes = [_safe(note) for note in table.notes]
    return "\n\n".join([f"### {_safe(table.title)}", _rows(headings, rows, set(range(1, len(headings)))), *notes])


def _cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    if cell.paper:
        return f"*{text}*"
    return f"{text} ± {cell.spread}" if cell.spread else text


def _example(number: int, scene: Scene, picture: str) -> str:
    said = [f"- {_safe(panel.title)}: {_safe(panel.narrative.caption) or '–'}" for panel in scene.panels]
    titles = ", ".join(panel.title for panel in scene.panels)
    return "\n\n".join([_image(f"Example {number}: traces of {titles}", picture), "\n".join(said)])


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
