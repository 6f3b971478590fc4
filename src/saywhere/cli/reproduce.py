"""`saywhere reproduce`: the papers' tables, trained anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import out, stages, tell_claims

app = typer.Typer(
    help="Run a paper's experiments anew and write a report.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _papers() -> None:
    """Run a paper's experiments anew and write a report."""


@app.command()
def mitr(
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the runs and the report.")] = Path("out/mitr"),
    quick: Annotated[
        bool, typer.Option(help="Run everything in a few minutes with one seed: a check, not a result.")
    ] = False,
    full: Annotated[bool, typer.Option(help="Also run Tables 6, 7 and 8, which takes hours.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="How many processes to use, each with one thread.")] = 2,
    data: Annotated[
        Path | None, typer.Option(help="Use this folder of `saywhere prepare` instead of the simulated world.")
    ] = None,
) -> None:
    """MITR's Tables 2, 3 and 5 (with --full also 6, 7 and 8) in the simulated world, with a verdict for each claim.

    What is done already in the output folder is not done again, so an interrupted run goes on where it was.
    """
    from dataclasses import replace

    from saywhere.reproduce.mitr import Plan, reproduce

    plan = replace(Plan.quick(workers) if quick else Plan(workers=workers), full=full)
    with stages() as progress:
        results = reproduce(output, plan, progress, data)
    tell_claims(results.claims)
    out.print(f"report: {output / 'report.html'} and {output / 'report.md'}", markup=False)


@app.command()
def narrations(
    ids: Annotated[Path, typer.Argument(help="The ids file of tagged narrations (TReCS).", show_default=False)],
    boxes: Annotated[Path, typer.Option(help="Boxes as JSON: image → [[class, cx, cy, w, h], …] in fractions.")],
    photos: Annotated[Path, typer.Option(help="Folder with the photos.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the runs and the report.")] = Path(
        "out/narrations"
    ),
    seeds: Annotated[
        int, typer.Option(min=1, help="How many seeds to train; about ten minutes each on two cores.")
    ] = 1,
) -> None:
    """MITR on real narrations whose words carry a tag, with pseudo-traces made of the tags' boxes."""
    from saywhere.reproduce.mitr_narrations import NarrationPlan, reproduce_narrations

    plan = NarrationPlan(ids, boxes, photos, seeds=tuple(range(seeds)))
    with stages() as progress:
        results = reproduce_narrations(output, plan, progress)
    for row in results.tables[0].rows:
        out.print(f"LBM (k=0) {row.mean('LBM (k=0)'):.4f}  {row.name}", markup=False)
    out.print(f"report: {output / 'report.html'} and {output / 'report.md'}", markup=False)
