"""A report as one page that needs nothing else: its style and pictures are inside it, and it has no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TypeVar

import numpy as np

from saywhere.plots.colour import as_hex, hex_colours
from saywhere.plots.facts import word_time_s
from saywhere.plots.heatmap import heat_colours
from saywhere.plots.text import printable, seconds, shortened
from saywhere.reproduce._cells import (
    ABOUT_SWEEPS,
    NOTHING,
    SYMBOLS,
    Cell,
    Grid,
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
from saywhere.reproduce._examples import LONGEST_WORD, Panel, Scene, panel_webp, webp
from saywhere.reproduce._heats import ABOUT, HeatScene, Picture
from saywhere.reproduce._levels import ABOUT as ABOUT_LEVELS
from saywhere.reproduce._levels import TITLE as LEVELS_TITLE
from saywhere.reproduce._levels import LevelScene, confidence, verdict
from saywhere.reproduce.figures import shown_width_px
from saywhere.reproduce.results import Claim, Figure, LevelLine, Results, Sweep

_N_COLOURS = 64
_Item = TypeVar("_Item")
_HEAT_LEGEND = (
    '<p class="legend"><span>no attention</span>'
    '<span class="ramp heat" role="img" aria-label="colours from grey over violet and red to yellow"></span>'
    "<span>most attention</span></p>\n"
)
_BEATS = '<span class="spoken">better than</span><span aria-hidden="true">&gt;</span>'


def page(
    results: Results,
    scenes: Sequence[Scene],
    plots: Mapping[str, Mapping[str, bytes]],
    heats: Sequence[HeatScene] = (),
    levels: Sequence[LevelScene] = (),
) -> str:
    """plots: for "claims" (and of other sources "claims-2" …), "curves" and "sweep-1" …, if drawn, the PNG on "light"
    and on "dark" paper.
    """
    style = _style()
    return Template(_asset("saywhere.reproduce", "report.html")).substitute(
        title=_safe(results.title),
        policy=f"default-src 'none'; img-src data:; style-src {_digest(style)}; base-uri 'none'; form-action 'none'",
        style=style,
        opening=_safe(opening(results)),
        facts=_safe(key_facts(results)),
        sections="\n".join(_sections(results, scenes, plots, heats, levels)),
    )


def _sections(
    results: Results,
    scenes: Sequence[Scene],
    plots: Mapping[str, Mapping[str, bytes]],
    heats: Sequence[HeatScene],
    levels: Sequence[LevelScene],
) -> Iterator[str]:
    if results.claims:
        yield _section("Did the claims hold?", [about_claims(results)], _claim_groups(results, plots))
    if results.tables:
        tables = _in_groups(
            results.tables, lambda table: table.section, lambda table, level: _table(grid(table), level)
        )
        yield _section("Tables", [about_ours(results), about_paper(results, "Lighter")], tables)
    if results.sweeps:
        numbered = list(enumerate(results.sweeps, 1))
        sweeps = _in_groups(
            numbered, lambda n: n[1].section, lambda n, level: _sweep(n[1], plots[f"sweep-{n[0]}"], level)
        )
        yield _section("Sweeps", [ABOUT_SWEEPS], sweeps)
    if results.figures:
        yield _section("Figures", [], _in_groups(results.figures, lambda figure: figure.section, _figure))
    if "curves" in plots:
        about = "Each panel shows one row, and all others in grey, on the same axes."
        curves = _plot("Validation measure over steps for each row", plots["curves"])
        yield _section("How they learned", [about], curves)
    if scenes:
        about = "Colours tell time, alike in all pictures of an example. A ring is the first point, a square the last."
        shown = "\n".join(_example(i, scene) for i, scene in enumerate(scenes, 1))
        yield _section("Examples", [about], shown)
    if levels:
        photos = list(enumerate(levels, 1))
        captions = _in_groups(photos, lambda n: n[1].example.section, lambda n, level: _levels(*n, level))
        yield _section(LEVELS_TITLE, [ABOUT_LEVELS], captions)
    if heats:
        looks = list(enumerate(heats, 1))
        maps = _in_groups(looks, lambda n: n[1].example.section, lambda n, _: _heats(*n))
        yield _section("Heat maps", [ABOUT], _HEAT_LEGEND + maps)
    if results.remarks:
        items = "".join(f"<li>{_safe(remark)}</li>" for remark in results.remarks)
        yield _section("Remarks", [], f'<ul class="remarks">{items}</ul>')
    yield _section("What was run", [], _settings(results))


def _in_groups(items: Sequence[_Item], name: Callable[[_Item], str], shown: Callable[[_Item, int], str]) -> str:
    """Items under the names of their groups. shown: an item and the level of its heading."""
    parts = []
    for group_name, group in grouped(items, name).items():
        parts += [*_group_name(group_name), *(shown(item, 4 if group_name else 3) for item in group)]
    return "\n".join(parts)


def _group_name(name: str) -> list[str]:
    return [f'<h3 class="group-name">{_safe(name)}</h3>'] if name else []


def _section(title: str, about: Sequence[str], content: str) -> str:
    paragraphs = "".join(f"<p>{_safe(text)}</p>" for text in about)
    return f'<section class="part"><h2>{_safe(title)}</h2>{paragraphs}\n{content}\n</section>'


def _claim_groups(results: Results, plots: Mapping[str, Mapping[str, bytes]]) -> str:
    with_tests = tested(results.claims)
    parts = []
    for group in claim_groups(results.claims):
        label = "Differences with 95 % intervals, a tick for each seed"
        forest = _plot(f"{group.heading}: {label.lower()}" if group.whose else label, plots[group.plot])
        parts += [*_group_name(group.heading), _claims(group.claims, with_tests, group.heading or "Claims") + forest]
    return "\n".join(parts)


def _claims(claims: Sequence[Claim], with_tests: bool, label: str) -> str:
    rows = []
    for claim in claims:
        mean, interval = difference(claim)
        kind = claim.verdict.replace(" ", "-")
        rows.append(
            f'<tr><td><span class="verdict {kind}"><span aria-hidden="true">{SYMBOLS[claim.verdict]}</span> '
            f'{claim.verdict}</span></td><th scope="row">{_safe(claim.text)}</th>'
            f'<td class="rows">{_safe(claim.better)} {_BEATS} {_safe(claim.worse)}'
            f'<span class="sub">{_safe(claim.measure)}</span></td>'
            f'<td class="number">{mean}<span class="sub">{interval}</span></td>'
            f"{_tests(claim) if with_tests else ''}</tr>"
        )
    head = '<th scope="col">Verdict</th><th scope="col">Claim</th><th scope="col">Rows compared</th>'
    head += '<th scope="col" class="number">Mean difference<span class="sub">95 % interval</span></th>'
    if with_tests:
        head += '<th scope="col" class="number">p (t)<span class="sub">p (flips)</span></th>'
    return _scrolled(
        label, f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def _tests(claim: Claim) -> str:
    t, flips = _safe(probability(claim.p)), _safe(probability(claim.p_flips))
    return f'<td class="number">{t}<span class="sub">{flips}</span></td>'


def _table(table: Grid, level: int) -> str:
    groups, heads = [], []
    for heading in table.headings:
        which = "lower is better" if heading.lower_is_better else "higher is better"
        arrow = f'<span aria-hidden="true">{heading.arrow}</span><span class="spoken">, {which}</span>'
        span = ' colspan="2"' if heading.has_paper else ""
        groups.append(f'<th class="group" scope="colgroup"{span}>{_safe(heading.name)} {arrow}</th>')
        heads.append('<th class="number" scope="col">ours</th>')
        heads += ['<th class="number paper" scope="col">paper</th>'] if heading.has_paper else []
    first = f'<th scope="col">{_safe(table.rows_are)}</th>'
    head = f'<tr><td></td>{"".join(groups)}</tr><tr class="heads">{first}{"".join(heads)}</tr>'
    body = "".join(f'<tr><th scope="row">{_safe(name)}</th>{"".join(map(_cell, row))}</tr>' for name, row in table.rows)
    content = f'<table class="scores"><thead>{head}</thead><tbody>{body}</tbody></table>'
    notes = "".join(f'<p class="note">{_safe(note)}</p>' for note in table.notes)
    return f'<h{level}>{_safe(table.title)}</h{level}><div class="fit">{_scrolled(table.title, content)}</div>{notes}'


def _cell(cell: Cell) -> str:
    text = f'<b class="best">{cell.text}</b>' if cell.best else cell.text
    spread = f' <span class="spread">± {cell.spread}</span>' if cell.spread else ""
    return f'<td class="number{" paper" if cell.paper else ""}">{text}{spread}</td>'


def _sweep(sweep: Sweep, plot: Mapping[str, bytes], level: int) -> str:
    amounts, values = sweep_rows(sweep)
    heads = "".join(f'<th class="number" scope="col">{amount}</th>' for amount in amounts)
    body = ""
    for name, cells in values:
        numbers = "".join(
            f'<td class="number">{cell.mean}<span class="sub">{cell.interval}</span></td>' for cell in cells
        )
        body += f'<tr><th scope="row">{_safe(name)}</th>{numbers}</tr>'
    head = f'<tr><th scope="col">{_safe(sweep.across)}</th>{heads}</tr>'
    table = f'<table class="scores sweep"><thead>{head}</thead><tbody>{body}</tbody></table>'
    title = f"<h{level}>{_safe(sweep.title)}</h{level}>"
    return f'{title}{_plot(about_sweep(sweep), plot)}<div class="fit">{_scrolled(sweep.title, table)}</div>'


def _heats(number: int, heat: HeatScene) -> str:
    words = " ".join(f"<mark>{_safe(word)}</mark>" if marked else _safe(word) for word, marked in heat.words)
    panels = "\n".join(_heat_panel(picture) for picture in heat.pictures())
    content = f'<p class="caption asked" dir="auto">{words}</p><div class="panels">{panels}</div>'
    return f'<article class="card example heats" aria-label="Heat maps {number}">{content}</article>'


def _heat_panel(picture: Picture) -> str:
    note = f'<p class="note">{_safe(picture.note)}</p>' if picture.note else ""
    image = f'<img src="{_data("image/webp", picture.webp)}" alt="{_safe(picture.seen)}">'
    return f"<figure><h3>{_safe(picture.title)}</h3>{image}<figcaption>{note}</figcaption></figure>"


def _figure(figure: Figure, level: int) -> str:
    width = f'width="{shown_width_px(figure.png)}"'
    image = f'<img src="{_data("image/png", figure.png)}" {width} alt="{_safe(figure.alt)}">'
    if figure.dark_png is not None:
        source = f'<source media="(prefers-color-scheme: dark)" srcset="{_data("image/png", figure.dark_png)}">'
        image = f"<picture>{source}{image}</picture>"
    kind = "drawn" if figure.dark_png is not None else "drawn bright"
    shown = f'<div class="card {kind} scroll" tabindex="0" role="region" aria-label="{_safe(figure.title)}">'
    caption = f'<p class="note reading">{_safe(figure.caption)}</p>' if figure.caption else ""
    return f'<h{level}>{_safe(figure.title)}</h{level}><div class="fit">{shown}{image}</div></div>{caption}'


def _levels(number: int, scene: LevelScene, level: int) -> str:
    items = "".join(_level(line, scene) for line in scene.example.lines)
    removed = f'<p class="note">{_safe(scene.removed())}</p>' if scene.removed() else ""
    image = f'<img src="{_data("image/webp", webp(scene.draw()))}" alt="{_safe(scene.described())}">'
    heading = f"<h{level}>{_safe(scene.example.heading)}</h{level}>" if scene.example.heading else ""
    said = f'<div>{heading}{removed}<ul class="said">{items}</ul></div>'
    return f'<article class="card example levels" aria-label="Photo {number}">{image}{said}</article>'


def _level(line: LevelLine, scene: LevelScene) -> str:
    beside = ""
    if scene.has_confidence:
        beside += f'<span class="spoken">confidence </span><span>{confidence(line)}</span>'
    if scene.has_verdict:
        sign, word = verdict(line)
        beside += (
            f' <span class="{word}"><span aria-hidden="true">{sign}</span><span class="spoken">{word}</span></span>'
        )
    label = f'<span class="level">{_safe(line.label)}</span><span class="sure">{beside}</span>'
    return f'<li>{label}<span class="caption" dir="auto">{_safe(line.text) or NOTHING}</span></li>'


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
    heat = as_hex(heat_colours(np.linspace(0, 1, 17)))
    ramp = f":root {{ --ramp: {', '.join(colours[::7])}; --heat: {', '.join(heat)}; }}\n"
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
