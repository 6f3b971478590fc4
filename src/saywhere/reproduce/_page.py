"""A report as one page that needs nothing else: its style and pictures are inside it, and it has no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

import numpy as np

from saywhere.plots.colour import hex_colours
from saywhere.plots.facts import word_time_s
from saywhere.plots.text import printable, seconds, shortened
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
from saywhere.reproduce._examples import LONGEST_WORD, Panel, Scene, panel_webp
from saywhere.reproduce.results import Claim, Results

_N_COLOURS = 64
_BEATS = '<span class="spoken">better than</span><span aria-hidden="true">&gt;</span>'


def page(results: Results, scenes: Sequence[Scene], plots: Mapping[str, Mapping[str, bytes]]) -> str:
    """plots: for "claims" and "curves", if drawn, the PNG on "light" and on "dark" paper."""
    sections = []
    if results.claims:
        about = f"A positive difference is as claimed, whatever the direction of the measure. {results.paired}"
        forest = _plot("Differences with 95 % intervals, a tick for each seed", plots["claims"])
        sections.append(_section("Did the claims hold?", [about], _claims(results.claims) + forest))
    if results.tables:
        tables = "\n".join(_table(grid(table)) for table in results.tables)
        sections.append(_section("Tables", [about_ours(results), about_paper(results, "Lighter")], tables))
    if "curves" in plots:
        about = "Each panel shows one row, and all others in grey, on the same axes."
        curves = _plot("Validation measure over steps for each row", plots["curves"])
        sections.append(_section("How they learned", [about], curves))
    if scenes:
        about = "Colours tell time, alike in all pictures of an example. A ring is the first point, a square the last."
        shown = "\n".join(_example(i, scene) for i, scene in enumerate(scenes, 1))
        sections.append(_section("Examples", [about], shown))
    if results.remarks:
        items = "".join(f"<li>{_safe(remark)}</li>" for remark in results.remarks)
        sections.append(_section("Remarks", [], f'<ul class="remarks">{items}</ul>'))
    sections.append(_section("What was run", [], _settings(results)))
    style = _style()
    return Template(_asset("saywhere.reproduce", "report.html")).substitute(
        title=_safe(results.title),
        policy=f"default-src 'none'; img-src data:; style-src {_digest(style)}; base-uri 'none'; form-action 'none'",
        style=style,
        opening=_safe(opening(results)),
        facts=_safe(key_facts(results)),
        sections="\n".join(sections),
    )


def _section(title: str, about: Sequence[str], content: str) -> str:
    paragraphs = "".join(f"<p>{_safe(text)}</p>" for text in about)
    return f'<section class="part"><h2>{_safe(title)}</h2>{paragraphs}\n{content}\n</section>'


def _claims(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        mean, interval = difference(claim)
        kind = claim.verdict.replace(" ", "-")
        rows.append(
            f'<tr><td><span class="verdict {kind}"><span aria-hidden="true">{SYMBOLS[claim.verdict]}</span> '
            f'{claim.verdict}</span></td><th scope="row">{_safe(claim.text)}</th>'
            f'<td class="rows">{_safe(claim.better)} {_BEATS} {_safe(claim.worse)}'
            f'<span class="sub">{_safe(claim.measure)}</span></td>'
            f'<td class="number">{mean}<span class="sub">{interval}</span></td></tr>'
        )
    head = '<th scope="col">Verdict</th><th scope="col">Claim</th><th scope="col">Rows compared</th>'
    head += '<th scope="col" class="number">Mean difference<span class="sub">95 % interval</span></th>'
    return _scrolled(
        "Claims", f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def _table(table: Grid) -> str:
    groups, heads = [], []
    for heading in table.headings:
        which = "lower is better" if heading.lower_is_better else "higher is better"
        arrow = f'<span aria-hidden="true">{heading.arrow}</span><span class="spoken">, {which}</span>'
        span = ' colspan="2"' if heading.has_paper else ""
        groups.append(f'<th class="group" scope="colgroup"{span}>{_safe(heading.name)} {arrow}</th>')
        heads.append('<th class="number" scope="col">ours</th>')
        heads += ['<th class="number paper" scope="col">paper</th>'] if heading.has_paper else []
    head = f'<tr><td></td>{"".join(groups)}</tr><tr class="heads"><th scope="col">Model</th>{"".join(heads)}</tr>'
    body = "".join(f'<tr><th scope="row">{_safe(name)}</th>{"".join(map(_cell, row))}</tr>' for name, row in table.rows)
    content = f'<table class="scores"><thead>{head}</thead><tbody>{body}</tbody></table>'
    notes = "".join(f'<p class="note">{_safe(note)}</p>' for note in table.notes)
    return f'<h3>{_safe(table.title)}</h3><div class="fit">{_scrolled(table.title, content)}</div>{notes}'


def _cell(cell: Cell) -> str:
    text = f'<b class="best">{cell.text}</b>' if cell.best else cell.text
    spread = f' <span class="spread">± {cell.spread}</span>' if cell.spread else ""
    return f'<td class="number{" paper" if cell.paper else ""}">{text}{spread}</td>'


def _settings(results: Results) -> str:
    values = settings_rows({"paper": results.paper, **results.settings, **results.made_by})
    rows = "".join(f'<tr><th scope="row">{_safe(name)}</th><td>{_safe(value)}</td></tr>' for name, value in values)
    return f'<div class="card scroll"><table class="settings"><tbody>{rows}</tbody></table></div>'


def _scrolled(label: str, content: str) -> str:
    """What may be wider than a phone scrolls by itself, with the keyboard, too."""
    return f'<div class="card scroll" tabindex="0" role="region" aria-label="{_safe(label)}">{content}</div>'


def _plot(label: str, plot: Mapping[str, bytes]) -> str:
    light, dark = (_data("image/png", plot[name]) for name in ("light", "dark"))
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
    content = f'<picture>{source}<img src="{light}" alt="{_safe(label)}"></picture>'
    return f'<div class="card plot scroll" tabindex="0" role="region" aria-label="{_safe(label)}">{content}</div>'


def _example(number: int, scene: Scene) -> str:
    panels = "\n".join(_panel(number, scene, panel) for panel in scene.panels)
    ramp = '<span class="ramp" role="img" aria-label="colours from violet over red to yellow"></span>'
    start, end = seconds(scene.scale.start_s), seconds(scene.scale.end_s)
    legend = f'<p class="legend"><span>{start}</span>{ramp}<span>{end}</span></p>'
    content = f'<div class="panels">{panels}</div>{legend}'
    return f'<article class="card example" aria-label="Example {number}">{content}</article>'


def _panel(number: int, scene: Scene, panel: Panel) -> str:
    shares = scene.scale.shares([word_time_s(word) for word in panel.words])
    spans = []
    for word, located, share in zip(panel.words, panel.located, shares.tolist(), strict=True):
        kind = f"c{round(share * (_N_COLOURS - 1))}" if located else "nowhere"
        spans.append(f'<span class="word {kind}">{_safe(shortened(word.text, LONGEST_WORD))}</span>')
    caption = f'<p class="caption" dir="auto">{" ".join(spans)}</p>' if spans else ""
    notes = "".join(f'<p class="note" dir="auto">{_safe(note)}</p>' for note in panel.notes)
    alt = _safe(f"Example {number}, with the trace of: {panel.title}")
    image = f'<img src="{_data("image/webp", panel_webp(scene, panel))}" alt="{alt}">'
    return f"<figure><h3>{_safe(panel.title)}</h3>{image}<figcaption>{caption}{notes}</figcaption></figure>"


def _style() -> str:
    colours = hex_colours(np.linspace(0, 1, _N_COLOURS))
    ramp = f":root {{ --ramp: {', '.join(colours[::7])}; }}\n"
    classes = "\n".join(f".c{i} {{ --c: {colour}; }}" for i, colour in enumerate(colours))
    return _asset("saywhere.plots", "page.css") + _asset("saywhere.reproduce", "report.css") + ramp + classes


def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _digest(content: str) -> str:
    """How a content security policy names one inline style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _safe(text: str) -> str:
    """Any text as text of the page, inside elements and quoted attributes."""
    return escape(printable(text), quote=True)
