"""`saywhere train`, `eval` and `export`: recipes into trained models, how good they are, and the models themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from saywhere.cli.console import err, out, plain_table
from saywhere.core.errors import UnknownName


def train(
    recipe: Annotated[Path, typer.Argument(help="A TOML recipe; see recipes/.", show_default=False)],
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes to the recipe: key.path=value.")] = None,
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the run; out/NAME by default.")] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run.")] = True,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only estimate computing, memory and GPU hours; train nothing.")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, help="GPUs to plan for, each with a process.")] = 1,
) -> None:
    """Train a model by a recipe. For several processes: torchrun --nproc-per-node N -m saywhere train …"""
    if plan:
        _tell_plan(recipe, overrides or [], processes)
        return
    from saywhere.learn import train as train_recipe

    result = train_recipe(
        recipe, output or Path("out") / recipe.stem, resume=resume, overrides=overrides or (), console=err
    )
    best = f", best {result.best.metric} {result.best.value:.4g} at step {result.best.step}" if result.best else ""
    out.print(f"{result.out_dir}: {result.status} after {result.steps:,} steps{best}", markup=False)
    if result.status == "interrupted":
        raise typer.Exit(130)


def _tell_plan(recipe: Path, overrides: list[str], processes: int) -> None:
    from saywhere.learn.estimate import GPUS, estimate

    found = estimate(recipe, overrides, processes)
    table = plain_table()
    table.add_row("parameters", f"{found.parameters / 1e6:,.1f} million, {found.trainable / 1e6:,.1f} million learn")
    table.add_row("steps", f"{found.steps:,} of {found.batch_size:,} items, {found.items:,} items in an epoch")
    table.add_row("computing", f"{found.flops_per_item:.3g} FLOPs an item, {found.flops:.3g} in all")
    table.add_row("memory", f"{found.state_bytes / 2**30:,.2f} GiB of weights, gradients and moments on each GPU")
    activations = f"{found.activation_bytes / 2**30:,.2f} GiB for the backward pass"
    table.add_row("", f"{activations} of a micro-batch of {found.micro_batch:,}")
    for name, gpu in GPUS.items():
        hours, fits = found.gpu_hours(gpu), found.fits(gpu)
        table.add_row(name, f"{hours:,.3g} GPU hours, {hours / processes:,.3g} hours" + ("" if fits else "; too small"))
    out.print(table)
    err.print(f"measured on {found.measured:,} items, in {recipe.name}'s precision; GPUs at {found.share:.0%} of peak")


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run.", show_default=False)],
    which: Annotated[str, typer.Option(help="Which checkpoint: best or last.")] = "best",
) -> None:
    """Validate a trained model again and say how good it is."""
    from saywhere.learn import evaluate as evaluate_run

    table = plain_table()
    for name, value in evaluate_run(run, _checkpoint(which))["metrics"].items():
        table.add_row(name, "–" if value is None else f"{value:.4f}")
    out.print(table)


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a run.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the network to.")],
    which: Annotated[str, typer.Option(help="Which checkpoint: best or last.")] = "best",
) -> None:
    """Write a trained network into a folder of its own, for `from_pretrained` and for recipes that start from it."""
    from saywhere.learn import export as export_run

    checkpoint = export_run(run, output, _checkpoint(which))
    out.print(f"{output}: the network of {checkpoint.name}", markup=False)


def _checkpoint(which: str) -> Literal["best", "last"]:
    if which not in ("best", "last"):
        raise UnknownName("checkpoint", which, ("best", "last"))
    return "best" if which == "best" else "last"
