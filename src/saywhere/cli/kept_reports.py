"""`saywhere reproduce card|render|check`: numbers for a model's card, and reports that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere import loading
from saywhere.cli.console import out, stages


def card(
    data: Annotated[Path, typer.Option(help="A folder as for `reproduce patchioner`.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the numbers and the table.")] = Path(
        "out/card"
    ),
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="A model to measure; may be given several times.")
    ] = None,
    photos: Annotated[
        Path | None, typer.Option(help="List of photos to use instead of the 500 held out: a 12-digit name per line.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many photos, the first of the list.")] = None,
    looks: Annotated[
        Path | None, typer.Option(help="A COCO store with SALICON's maps, to measure on where people look.")
    ] = None,
    fixations: Annotated[
        Path | None, typer.Option(help="A folder with SALICON's validation fixations as PNGs, for NSS.", exists=True)
    ] = None,
) -> None:
    """The numbers of a model's card, on photos that no training saw; several models in one run, side by side."""
    from saywhere.reproduce.model_card import TABLE, measure_models
    from saywhere.reproduce.patchioner_data import listed_photos, read_held_out
    from saywhere.store import Store

    if fixations is not None and looks is None:
        raise typer.BadParameter("name the store of the photos with --looks, too", param_hint="--fixations")
    held, maps = read_held_out(data, listed_photos(photos), limit), None if looks is None else Store(looks)
    with stages() as progress:
        models = {name: loading.load(name) for name in model or [loading.BASE]}
        measure_models(models, held, output, progress, maps, fixations)
    out.print((output / TABLE).read_text(), markup=False)


def render(
    folder: Annotated[Path, typer.Argument(help="Folder of an experiment that has ended.", show_default=False)],
) -> None:
    """Write report.md and report.html of a folder anew from its numbers.json and pictures; nothing is run."""
    from saywhere.reproduce.report import render as write

    write(folder)
    out.print(f"report: {folder / 'report.html'} and {folder / 'report.md'}", markup=False)


def check(
    folder: Annotated[Path, typer.Argument(help="A report's folder, or one with several.", show_default=False)],
    mark: Annotated[
        bool,
        typer.Option("--mark", help="Let reports that older.json beside them names say that older code made them."),
    ] = False,
) -> None:
    """Say which reports no longer fit the code, and what has changed; fail if one does that may not.

    older.json beside the reports' folders names those that may: report → what is known to be wrong with it.
    """
    from saywhere.core.errors import InvalidFile
    from saywhere.reproduce.freshness import kept_reports, mark_older, problems, why_older

    reports = kept_reports(folder)
    if not reports:
        raise InvalidFile(folder, "holds no report", "name a folder with numbers.json, or one of such folders")
    wrong = False
    for report in reports:
        if mark:
            mark_older(report)
        found, older = list(problems(report)), why_older(report)
        wrong |= bool(found)
        said = " ".join(found) or (f"older. {older}" if older else "as it should be")
        out.print(f"{report.name}: {said}", markup=False)
    if wrong:
        raise typer.Exit(1)
