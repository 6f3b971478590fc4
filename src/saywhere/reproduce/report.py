"""What an experiment found, for people: a page, the same as Markdown, and all numbers as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure as Sheet

from saywhere.atomic import write_atomic
from saywhere.plots.palette import PALETTES, Palette
from saywhere.plots.sheet import png_bytes
from saywhere.reproduce._cells import check_verdicts, claim_groups
from saywhere.reproduce._markdown import markdown
from saywhere.reproduce._page import page
from saywhere.reproduce._pictures import draw_claims, draw_curves, draw_sweep
from saywhere.reproduce._sheets import PICTURES, check_pictures, illustrate
from saywhere.reproduce.results import Report, Results, load_report, save_report

PAGE = "report.html"


def write_report(results: Results, out: Path) -> None:
    """Write out/numbers.json and out/pictures/, and of them out/report.html (self-contained) and out/report.md.

    Photos of examples are looked up from `out`. Each file is written whole or not at all; the same results give the
    same bytes.
    """
    check_verdicts(results.claims)
    check_pictures(results)
    illustrations = []
    for illustration, files in illustrate(results, out):
        illustrations.append(illustration)
        for name, content in files.items():
            _write(out / PICTURES / name, content)
    report = results.with_pictures(tuple(illustrations))
    for name, draw in _plots(report).items():
        for paper, palette in PALETTES.items():
            _write(out / PICTURES / f"{name}-{paper}.png", png_bytes(draw(palette)))
    save_report(report, out)
    render(out)


def render(folder: Path, *, with_page: bool = True) -> None:
    """Write folder/report.md and folder/report.html anew from folder/numbers.json and folder/pictures/."""
    report = load_report(folder)
    if with_page:
        _write(folder / PAGE, page(report, folder).encode("utf-8"))
    _write(folder / "report.md", markdown(report).encode("utf-8"))


def _plots(report: Report) -> dict[str, Callable[[Palette], Sheet]]:
    """What draws each plot, by name: "claims", "claims-2" …, one for each source; "curves"; "sweep-1" …"""
    plots: dict[str, Callable[[Palette], Sheet]] = {}
    for group in claim_groups(report.claims):
        plots[group.plot] = partial(draw_claims, group.claims, heading=group.heading)
    if report.curves:
        plots["curves"] = partial(draw_curves, report.curves)
    for i, sweep in enumerate(report.sweeps, 1):
        plots[f"sweep-{i}"] = partial(draw_sweep, sweep)
    return plots


def _write(path: Path, content: bytes) -> None:
    with write_atomic(path) as file:
        file.write(content)
