"""A report as one page that needs nothing else: its style and pictures are inside it, and it has no script."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from saywhere.core.errors import InvalidFile
from saywhere.plots.heats import heading_words
from saywhere.plots.text import digest, safe
from saywhere.reproduce._cells import (
    NOTHING,
    SYMBOLS,
    Cell,
    Grid,
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
from saywhere.reproduce._parts import (
    Chapter,
    ClaimTable,
    Content,
    Plot,
    Remarks,
    Settings,
    Shown,
    SweepTable,
    parts_of,
)
from saywhere.reproduce._sheets import PICTURES, shown_width_px
from saywhere.reproduce.claims import Claim
from saywhere.reproduce.results import Illustration, Line, Report, Sweep

_EQUALS = '<span class="spoken">equals</span><span aria-hidden="true">=</span>'
_BEATS = '<span class="spoken">better than</span><span aria-hidden="true">&gt;</span>'


def page(report: Report, folder: Path) -> str:
    """folder: where the report is, with its pictures."""
    style = _asset("saywhere.plots", "page.css") + _asset("saywhere.reproduce", "report.css")
    return Template(_asset("saywhere.reproduce", "report.html")).substitute(
        title=safe(report.title),
        policy=f"default-src 'none'; img-src data:; style-src {digest(style)}; base-uri 'none'; form-action 'none'",
        style=style,
        opening=safe(f"{about_older(report)} {opening(report)}".strip()),
        facts=safe(key_facts(report)),
        sections="\n".join(_part(part, folder) for part in parts_of(report, "Lighter")),
    )


def _part(part: Chapter, folder: Path) -> str:
    about = [*part.about, *([part.page_about] if part.page_about else [])]
    paragraphs = "".join(f"<p>{safe(text)}</p>" for text in about)
    content = []
    for name, blocks in part.groups.items():
        content += [f'<h3 class="group-name">{safe(name)}</h3>'] if name else []
        content += [_block(block, 4 if name else 3, folder) for block in blocks]
    inner = "\n".join(content)
    return f'<section class="part"><h2>{safe(part.title)}</h2>{paragraphs}\n{inner}\n</section>'


def _block(block: Content, level: int, folder: Path) -> str:
    match block:
        case ClaimTable():
            return _claims(block.claims, block.with_tests, block.label)
        case Plot():
            return _plot(block.alt, block.name, folder)
        case Grid():
            return _table(block, level)
        case SweepTable():
            return _sweep(block.sweep, block.name, level, folder)
        case Shown(illustration=Illustration(kind="figures")):
            return _figure(block.illustration, level, folder)
        case Shown():
            return _shown(block, level, folder)
        case Remarks():
            return f'<ul class="remarks">{"".join(f"<li>{safe(text)}</li>" for text in block.texts)}</ul>'
        case Settings():
            return _settings(block)


def _settings(block: Settings) -> str:
    heads = "".join(f'<th scope="col">{safe(heading)}</th>' for heading in block.headings)
    rows = "".join(
        f'<tr><th scope="row">{safe(name)}</th>{"".join(f"<td>{safe(value)}</td>" for value in values)}</tr>'
        for name, *values in block.rows
    )
    head = f"<thead><tr>{heads}</tr></thead>"
    return f'<div class="card scroll"><table class="settings">{head}<tbody>{rows}</tbody></table></div>'


def _claims(claims: Sequence[Claim], with_tests: bool, label: str) -> str:
    rows = []
    for claim in claims:
        mean, interval = difference(claim)
        kind = claim.verdict.replace(" ", "-")
        rows.append(
            f'<tr><td><span class="verdict {kind}"><span aria-hidden="true">{SYMBOLS[claim.verdict]}</span> '
            f'{claim.verdict}</span></td><th scope="row">{safe(claim.text)}</th>'
            f'<td class="rows">{safe(claim.better)} {_BEATS if claim.margin is None else _EQUALS} {safe(claim.worse)}'
            f'{safe(within(claim))}<span class="sub">{safe(claim.measure)}</span></td>'
            f'<td class="number">{mean}<span class="sub">{interval}</span></td>'
            f'<td class="number">{safe(could_show(claim))}</td>'
            f"{_tests(claim) if with_tests else ''}</tr>"
        )
    head = '<th scope="col">Verdict</th><th scope="col">Claim</th><th scope="col">Rows compared</th>'
    head += '<th scope="col" class="number">Mean difference<span class="sub">95 % interval</span></th>'
    head += '<th scope="col" class="number">Could have shown</th>'
    if with_tests:
        head += '<th scope="col" class="number">p<span class="sub">p (flips)</span></th>'
        head += '<th scope="col" class="number">p (together)</th>'
    return _scrolled(
        label, f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def _tests(claim: Claim) -> str:
    t, flips = safe(probability(claim.p)), safe(probability(claim.p_flips))
    together = f'<td class="number">{safe(probability(claim.p_together))}</td>'
    return f'<td class="number">{t}<span class="sub">{flips}</span></td>{together}'


def _table(table: Grid, level: int) -> str:
    groups, heads = [], []
    for heading in table.headings:
        which = "lower is better" if heading.lower_is_better else "higher is better"
        arrow = f'<span aria-hidden="true">{heading.arrow}</span><span class="spoken">, {which}</span>'
        span = ' colspan="2"' if heading.has_paper else ""
        groups.append(f'<th class="group" scope="colgroup"{span}>{safe(heading.name)} {arrow}</th>')
        heads.append('<th class="number" scope="col">ours</th>')
        heads += ['<th class="number paper" scope="col">paper</th>'] if heading.has_paper else []
    first = f'<th scope="col">{safe(table.rows_are)}</th>'
    head = f'<tr><td></td>{"".join(groups)}</tr><tr class="heads">{first}{"".join(heads)}</tr>'
    body = "".join(f'<tr><th scope="row">{safe(name)}</th>{"".join(map(_cell, row))}</tr>' for name, row in table.rows)
    content = f'<table class="scores"><thead>{head}</thead><tbody>{body}</tbody></table>'
    notes = "".join(f'<p class="note">{safe(note)}</p>' for note in table.notes)
    return f'<h{level}>{safe(table.title)}</h{level}><div class="fit">{_scrolled(table.title, content)}</div>{notes}'


def _cell(cell: Cell) -> str:
    text = f'<b class="best">{cell.text}</b>' if cell.best else cell.text
    spread = f' <span class="spread">± {cell.spread}</span>' if cell.spread else ""
    return f'<td class="number{" paper" if cell.paper else ""}">{text}{spread}</td>'


def _sweep(sweep: Sweep, name: str, level: int, folder: Path) -> str:
    amounts, values = sweep_rows(sweep)
    heads = "".join(f'<th class="number" scope="col">{amount}</th>' for amount in amounts)
    body = ""
    for row, cells in values:
        numbers = "".join(
            f'<td class="number">{cell.mean}<span class="sub">{cell.interval}</span></td>' for cell in cells
        )
        body += f'<tr><th scope="row">{safe(row)}</th>{numbers}</tr>'
    head = f'<tr><th scope="col">{safe(sweep.across)}</th>{heads}</tr>'
    table = f'<table class="scores sweep"><thead>{head}</thead><tbody>{body}</tbody></table>'
    title = f"<h{level}>{safe(sweep.title)}</h{level}>"
    return f'{title}{_plot(about_sweep(sweep), name, folder)}<div class="fit">{_scrolled(sweep.title, table)}</div>'


def _figure(figure: Illustration, level: int, folder: Path) -> str:
    """At its own size, because it has letters; it scrolls by itself."""
    image = f'<img src="{_data(figure.picture, folder)}" width="{_width(figure, folder)}" alt="{safe(figure.alt)}">'
    if figure.dark:
        source = f'<source media="(prefers-color-scheme: dark)" srcset="{_data(figure.dark, folder)}">'
        image = f"<picture>{source}{image}</picture>"
    kind = "drawn" if figure.dark else "drawn bright"
    shown = f'<div class="card {kind} scroll" tabindex="0" role="region" aria-label="{safe(figure.title)}">'
    caption = f'<p class="note reading">{safe(figure.caption)}</p>' if figure.caption else ""
    return f'<h{level}>{safe(figure.title)}</h{level}><div class="fit">{shown}{image}</div></div>{caption}'


def _width(figure: Illustration, folder: Path) -> int:
    return shown_width_px(_read(figure.picture, folder))


def _shown(shown: Shown, level: int, folder: Path) -> str:
    """A picture of photos with what is said beneath or beside it."""
    one = shown.illustration
    image = f'<img src="{_data(one.picture, folder)}" alt="{safe(one.alt)}">'
    heading = ""
    if one.kind == "heats":
        words = heading_words(one.title, one.explained)
        said = " ".join(f"<mark>{safe(word)}</mark>" if marked else safe(word) for word, marked in words)
        heading = f'<p class="caption asked" dir="auto">{said}</p>'
    elif one.title:
        heading = f"<h{level}>{safe(one.title)}</h{level}>"
    sure = any(line.confidence is not None for line in one.lines)
    judged = any(line.good is not None for line in one.lines)
    items = "".join(_line(line, sure, judged) for line in one.lines)
    notes = "".join(f'<p class="note" dir="auto">{safe(note)}</p>' for note in (one.caption, *one.notes) if note)
    text = f'<div>{heading}{notes}<ul class="said">{items}</ul></div>'
    label = f"{one.kind} {shown.number}"
    return f'<article class="card example {one.kind}" aria-label="{label}">{image}{text}</article>'


def _line(line: Line, sure: bool, judged: bool) -> str:
    beside = ""
    if sure:
        beside += f'<span class="spoken">confidence </span><span>{confidence(line)}</span>'
    if judged:
        sign, word = right(line)
        beside += (
            f' <span class="{word}"><span aria-hidden="true">{sign}</span><span class="spoken">{word}</span></span>'
        )
    label = f'<span class="level">{safe(line.label)}</span><span class="sure">{beside}</span>'
    return f'<li>{label}<span class="caption" dir="auto">{safe(line.text) or NOTHING}</span></li>'


def _scrolled(label: str, content: str) -> str:
    """What may be wider than a phone scrolls by itself, with the keyboard, too."""
    return f'<div class="card scroll" tabindex="0" role="region" aria-label="{safe(label)}">{content}</div>'


def _plot(label: str, name: str, folder: Path) -> str:
    light, dark = (f"{PICTURES}/{name}-{paper}.png" for paper in ("light", "dark"))
    content = f'<img src="{_data(light, folder)}" alt="{safe(label)}">'
    if (folder / dark).exists():
        source = f'<source media="(prefers-color-scheme: dark)" srcset="{_data(dark, folder)}">'
        content = f"<picture>{source}{content}</picture>"
    return f'<div class="card plot scroll" tabindex="0" role="region" aria-label="{safe(label)}">{content}</div>'


def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _data(picture: str, folder: Path) -> str:
    kind = Path(picture).suffix.removeprefix(".")
    return f"data:image/{kind};base64,{base64.b64encode(_read(picture, folder)).decode()}"


def _read(picture: str, folder: Path) -> bytes:
    try:
        return (folder / picture).read_bytes()
    except OSError as error:
        raise InvalidFile(folder / picture, f"is a picture of the report, but cannot be read: {error}") from error
