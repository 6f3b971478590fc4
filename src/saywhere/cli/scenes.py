"""`saywhere reproduce scenes`: captions above objects, and what changes inside the captioner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import out, stages, tell_claims


def scenes(
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the runs and the report.")] = Path(
        "out/scenes"
    ),
    quick: Annotated[
        bool, typer.Option(help="Run everything in a few minutes with one seed: a check, not a result.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="How many processes to use, each with one thread.")] = 2,
) -> None:
    """Captions of objects, then of scenes, in the simulated world: attention, ablation and probes before and after.

    What is done already in the output folder is not done again, so an interrupted run goes on where it was.
    """
    from saywhere.reproduce.scenes import ScenesPlan, reproduce_scenes

    with stages() as progress:
        results = reproduce_scenes(
            output, ScenesPlan.quick(workers) if quick else ScenesPlan(workers=workers), progress
        )
    tell_claims(results.claims)
    out.print(f"report: {output / 'report.html'} and {output / 'report.md'}", markup=False)
