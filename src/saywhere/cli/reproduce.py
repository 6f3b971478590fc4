"""`saywhere reproduce`: the papers' tables, trained anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import out, stages

app = typer.Typer(
    help="Run a paper's experiments anew and write a report.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _papers() -> None:
    """Run a paper's experiments anew and write a report."""


@app.command()
def mitr(
    output: Annotated[Path, typer.Option("--out", "-o", help="Where runs and the report go.")] = Path("out/mitr"),
    quick: Annotated[
        bool, typer.Option(help="A few minutes, one seed: shows that all runs, and decides nothing.")
    ] = False,
    full: Annotated[bool, typer.Option(help="Tables 7 and 8 too; hours.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each of one thread.")] = 2,
    data: Annotated[
        Path | None, typer.Option(help="A folder of prepared narratives (saywhere prepare) to use, not the world.")
    ] = None,
) -> None:
    """MITR's Tables 2, 3 and 5 in the simulated world, with a verdict for each claim.

    What is done already in the output folder is not done again, so an interrupted run goes on where it was.
    """
    from dataclasses import replace

    from saywhere.reproduce.mitr import Plan, reproduce

    plan = replace(Plan.quick(workers) if quick else Plan(workers=workers), full=full)
    with stages() as progress:
        results = reproduce(output, plan, progress, data)
    for claim in results.claims:
        sign = {"held": "✓", "not held": "✗"}.get(claim.verdict, "?")
        out.print(f"{sign} {claim.text} ({claim.measure}): {claim.verdict}", markup=False)
    out.print(f"report: {output / 'report.html'} and {output / 'report.md'}", markup=False)
