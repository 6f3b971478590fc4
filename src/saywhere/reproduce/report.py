"""What an experiment found, for people: a page, the same as Markdown, and all numbers as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure as Sheet

from saywhere.atomic import write_atomic
from saywhere.plots.palette import PALETTES, Palette
from saywhere.plots.sheet import save_png
from saywhere.reproduce._cells import check_verdicts, claim_groups
from saywhere.reproduce._examples import Scene, draw_example, webp
from saywhere.reproduce._heats import HeatScene
from saywhere.reproduce._levels import LevelScene
from saywhere.reproduce._markdown import markdown
from saywhere.reproduce._page import page
from saywhere.reproduce._pictures import draw_claims, draw_curves
from saywhere.reproduce._sweeps import draw_sweep
from saywhere.reproduce.figures import check_figures
from saywhere.reproduce.results import Results, save_numbers

PICTURES = "pictures"
"""Folder beside report.md with what it shows."""
_PHOTOS_DPI = 110
"""Of sheets with several whole photos, which would be large files."""


def write_report(results: Results, out: Path) -> None:
    """Write out/report.html (self-contained), out/report.md with out/pictures/, and out/numbers.json.

    Photos of examples are looked up from `out`; one that is absent gives a grey canvas that says so. Each file is
    written whole or not at all; the same results give the same bytes.
    """
    check_verdicts(results.claims)
    check_figures(results.figures)
    scenes = [Scene.of(example, out) for example in results.examples]
    heats = [HeatScene.of(example, out) for example in results.heats]
    levels = [LevelScene.of(example, out) for example in results.levels]
    plots = {name: _plot(draw, out / PICTURES / name) for name, draw in _drawings(results).items()}
    pictures = {name: f"{PICTURES}/{name}-light.png" for name in plots}
    for i, scene in enumerate(scenes, 1):
        pictures[f"example {i}"] = f"{PICTURES}/traces-{i}.png"
        save_png(draw_example(scene), out / pictures[f"example {i}"])
    for i, heat in enumerate(heats, 1):
        pictures[f"heats {i}"] = f"{PICTURES}/heats-{i}.png"
        save_png(heat.draw(), out / pictures[f"heats {i}"], dpi=_PHOTOS_DPI)
    for i, figure in enumerate(results.figures, 1):
        pictures[f"figure-{i}"] = f"{PICTURES}/figure-{i}-light.png"
        _write(out / pictures[f"figure-{i}"], figure.png)
        if figure.dark_png is not None:
            _write(out / PICTURES / f"figure-{i}-dark.png", figure.dark_png)
    for i, level in enumerate(levels, 1):
        pictures[f"levels {i}"] = f"{PICTURES}/levels-{i}.webp"
        _write(out / pictures[f"levels {i}"], webp(level.draw()))
    save_numbers(results, out / "numbers.json")
    _write(out / "report.md", markdown(results, scenes, pictures, heats, levels).encode("utf-8"))
    _write(out / "report.html", page(results, scenes, plots, heats, levels).encode("utf-8"))


def _drawings(results: Results) -> dict[str, Callable[[Palette], Sheet]]:
    """What draws each plot, by name: "claims", "claims-2" …, one for each source; "curves"; "sweep-1" …"""
    drawings: dict[str, Callable[[Palette], Sheet]] = {}
    for group in claim_groups(results.claims):
        drawings[group.plot] = partial(draw_claims, group.claims, heading=group.heading)
    if results.curves:
        drawings["curves"] = partial(draw_curves, results.curves)
    for i, sweep in enumerate(results.sweeps, 1):
        drawings[f"sweep-{i}"] = partial(draw_sweep, sweep)
    return drawings


def _plot(draw: Callable[[Palette], Sheet], stem: Path) -> dict[str, bytes]:
    """The PNG on each paper, as written to `stem`-light.png and `stem`-dark.png."""
    content = {}
    for name, palette in PALETTES.items():
        path = stem.with_name(f"{stem.name}-{name}.png")
        save_png(draw(palette), path)
        content[name] = path.read_bytes()
    return content


def _write(path: Path, content: bytes) -> None:
    with write_atomic(path) as file:
        file.write(content)
