"""A report as Markdown, with its pictures in files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from saywhere.plots.heats import heading_words
from saywhere.plots.text import printable
from saywhere.reproduce._cells import (
    NOTHING,
    SYMBOLS,
    Cell,
    Grid,
    SweepCell,
    about_older,
    about_sweep,
    confidence,
    could_show,
    difference,
    key_facts,
    opening,
    probability,
    right,
    sweep_rows,
    within,
)
from saywhere.reproduce._parts import ClaimTable, Content, Plot, Remarks, Settings, Shown, SweepTable, parts_of
from saywhere.reproduce._sheets import PICTURES
from saywhere.reproduce.claims import Claim
from saywhere.reproduce.results import Line, Report, Sweep

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")
# What would make a list or heading of a line's beginning: "- ", "# ", "1. ".
_OPENS_BLOCK = re.compile(r"^(\s*\d+(?=[.)](?:\s|$))|\s*(?=[-+=#]))")


def markdown(report: Report) -> str:
    older = [f"**{_safe(about_older(report))}**"] if report.older else []
    blocks = [f"# {_safe(report.title)}", *older, _safe(opening(report)), _safe(key_facts(report))]
    for part in parts_of(report, "Slanted"):
        about = [" ".join(_safe(text) for text in part.about)] if part.about else []
        content = [list(_group(name, group)) for name, group in part.groups.items()]
        # What the numbers of claims mean stands once: under the only table, or before the first of several.
        if len(content) == 1 and isinstance(next(iter(part.groups.values()))[0], ClaimTable):
            content[0][1:1] = about
            about = []
        blocks += [f"## {part.title}", *about, *(block for group in content for block in group)]
    return "\n\n".join(blocks) + "\n"


def _group(name: str, blocks: Sequence[Content]) -> Iterator[str]:
    if name:
        yield f"### {_safe(name)}"
    for block in blocks:
        yield _block(block, "####" if name else "###")


def _block(block: Content, mark: str) -> str:
    match block:
        case ClaimTable():
            return _claims(block.claims, block.with_tests)
        case Plot():
            return _image(block.alt, _plot_path(block.name))
        case Grid():
            return _table(block, mark)
        case SweepTable():
            return _sweep(block.sweep, _plot_path(block.name), mark)
        case Shown():
            return "\n\n".join(_shown(block, mark))
        case Remarks():
            return "\n".join(f"- {_safe(text)}" for text in block.texts)
        case Settings():
            return _rows(block.headings, [[_safe(text) for text in row] for row in block.rows], set())


def _plot_path(name: str) -> str:
    return f"{PICTURES}/{name}-light.png"


def _claims(claims: Sequence[Claim], with_tests: bool) -> str:
    rows = []
    for claim in claims:
        mean, interval = difference(claim)
        sign = "\\>" if claim.margin is None else "="
        compared = f"{_safe(claim.better)} {sign} {_safe(claim.worse)}{_safe(within(claim))}"
        verdict = f"{SYMBOLS[claim.verdict]} {claim.verdict}"
        tests = [_safe(probability(p)) for p in (claim.p, claim.p_flips, claim.p_together)] if with_tests else []
        shown = _safe(could_show(claim))
        rows.append([verdict, _safe(claim.text), compared, _safe(claim.measure), mean, interval, shown, *tests])
    headings = ["Verdict", "Claim", "Rows compared", "Measure", "Mean difference", "95 % interval", "Could have shown"]
    headings += ["p", "p (flips)", "p (together)"] if with_tests else []
    return _rows(headings, rows, numeric={4, 5, 6, 7, 8, 9})


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


def _sweep(sweep: Sweep, picture: str, mark: str) -> str:
    amounts, values = sweep_rows(sweep)
    rows = [[_safe(name), *map(_sweep_cell, cells)] for name, cells in values]
    numbers = _rows([_safe(sweep.across), *amounts], rows, set(range(1, len(amounts) + 1)))
    return "\n\n".join([f"{mark} {_safe(sweep.title)}", _image(about_sweep(sweep), picture), numbers])


def _sweep_cell(cell: SweepCell) -> str:
    return f"{cell.mean} ({cell.interval})" if cell.interval else cell.mean


def _shown(shown: Shown, mark: str) -> Iterator[str]:
    """Its heading, the picture, its caption, and the lines beneath it."""
    one, number = shown.illustration, shown.number
    if one.kind == "figures":
        yield f"{mark} {_safe(one.title)}"
    elif one.kind == "levels":
        yield f"{mark} {number}\\. {_safe(one.title)}".rstrip()
    elif one.kind == "heats":
        words = heading_words(one.title, one.explained)
        yield f"{number}\\. " + " ".join(f"**{_safe(word)}**" if marked else _safe(word) for word, marked in words)
    yield _image(one.alt, one.picture)
    if one.caption:
        yield _safe(one.caption)
    if one.kind == "levels":
        yield _levels(one.lines)
    elif one.lines:
        yield "\n".join(f"- {_safe(line.label)}: {_safe(line.text) or NOTHING}" for line in one.lines)


def _levels(lines: Sequence[Line]) -> str:
    sure = any(line.confidence is not None for line in lines)
    judged = any(line.good is not None for line in lines)
    headings = ["Level", "Caption", *["Confidence"] * sure, *["Right"] * judged]
    rows = [
        [_safe(line.label), _safe(line.text) or NOTHING, *[confidence(line)] * sure, *[right(line)[0]] * judged]
        for line in lines
    ]
    return _rows(headings, rows, {2} if sure else set())


def _rows(headings: Sequence[str], rows: Sequence[Sequence[str]], numeric: set[int]) -> str:
    """A table; the columns `numeric` are set to the right."""
    rule = ["---:" if i in numeric else "---" for i in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def _image(text: str, path: str) -> str:
    return f"![{_safe(text)}]({path})"


def _safe(text: str) -> str:
    """Any text on one line, shown as it is: no markup, no HTML, no cell or list of its own."""
    return _OPENS_BLOCK.sub(r"\1\\", _SPECIAL.sub(r"\\\1", printable(text)))
