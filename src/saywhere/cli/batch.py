"""`saywhere batch`: one task with every photo of folders, tar files, Parquet or narratives, here or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere import loading
from saywhere.cli.batch_options import EngineName, PhotoTimeout, RayAddress, RetryFailed, Workers, chosen_engine
from saywhere.cli.console import out, plain_table, rated, stages, tell_left_out
from saywhere.cli.seeing import Model, opened
from saywhere.core.errors import UnknownName


def batch(
    task: Annotated[str, typer.Argument(help="What to do: look, caption, narrate or ground.", show_default=False)],
    sources: Annotated[
        list[str],
        typer.Argument(help="Folders, .tar, .parquet, by path or URL, or files of narratives.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results, as Parquet.")],
    photos: Annotated[Path | None, typer.Option(help="Folder of the photos of narratives.", metavar="DIR")] = None,
    model: Model = loading.BASE,
    engine: EngineName = "local",
    workers: Workers = 0,
    address: RayAddress = "",
    timeout: PhotoTimeout = 60.0,
    retry_failed: RetryFailed = False,
    size: Annotated[int, typer.Option(min=1, help="Photos in each file of results.")] = 64,
    price: Annotated[float, typer.Option(min=0, help="What a machine costs an hour, for the report.")] = 0.0,
    machines: Annotated[int, typer.Option(min=1, help="How many machines work, for the report.")] = 1,
) -> None:
    """Do one thing with every photo and write the results as Parquet files with a manifest.

    A run that was stopped goes on where it was. A photo that cannot be read is a row with the reason. The results are
    the same on every engine. If a photo or a whole part fails, the exit code is 1.
    """
    from saywhere.build.batch import TASKS, run_batch

    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    here = opened(model, TASKS[task].skill) if engine == "local" and not workers else model
    with stages() as show:
        report = run_batch(
            task,
            sources,
            output,
            here,
            engine=chosen_engine(engine, workers, address),
            timeout_s=timeout,
            photos=photos,
            size=size,
            retry_failed=retry_failed,
            weights=loading.digest(model),
            progress=rated(show),
        )
    tell_left_out([f"{name}: {reason}" for name, reason in report.parts.items()])
    table = plain_table()
    table.add_row("photos", f"{report.photos:,}")
    table.add_row("failed", f"{report.failed:,}")
    table.add_row("this run", f"{report.fresh:,} photos in {report.seconds:.1f} s, {report.per_second:.2f} a second")
    if price and report.fresh:
        table.add_row(
            "a million photos", f"{report.cost_per_million(price, machines):,.2f} at {price:g} a machine hour"
        )
    table.add_row("results", str(output))
    out.print(table)
    if report.failed or report.parts:
        raise typer.Exit(1)
