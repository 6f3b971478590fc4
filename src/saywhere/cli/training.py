"""`saywhere train`, `eval` and `export`: recipes into trained models, how good they are, and the models themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from saywhere.cli.console import err, out, plain_table, stages
from saywhere.core.errors import InvalidValue, UnknownName


def train(
    recipe: Annotated[Path, typer.Argument(help="A TOML recipe; see recipes/.", show_default=False)],
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes to the recipe: key.path=value.")] = None,
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the run; out/NAME by default.")] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run.")] = True,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only estimate computing, memory and GPU hours; train nothing.")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, help="GPUs to plan for, each with a process.")] = 1,
    items: Annotated[
        int | None, typer.Option(min=1, help="Items of an epoch to plan for, if the data here are a sample of them.")
    ] = None,
) -> None:
    """Train a model by a recipe. For several processes: torchrun --nproc-per-node N -m saywhere train …"""
    if plan:
        _tell_plan(recipe, overrides or [], processes, items)
        return
    from saywhere.learn import train as train_recipe
    from saywhere.learn.processes import leave_together

    result = train_recipe(
        recipe, output or Path("out") / recipe.stem, resume=resume, overrides=overrides or (), console=err
    )
    best = f", best {result.best.metric} {result.best.value:.4g} at step {result.best.step}" if result.best else ""
    out.print(f"{result.out_dir}: {result.status} after {result.steps:,} steps{best}", markup=False)
    if result.status == "interrupted":
        raise typer.Exit(130)
    leave_together()


def _tell_plan(recipe: Path, overrides: list[str], processes: int, items: int | None) -> None:
    from saywhere.learn.estimate import GPUS, estimate

    found = estimate(recipe, overrides, processes, items)
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
    split: Annotated[
        str,
        typer.Option(
            help="Of a MITR: test on this split, or on the images of a list (a file; of one that tells splits apart, "
            "on those of the test), and score it."
        ),
    ] = "",
    data: Annotated[Path | None, typer.Option(help="With --split: another prepared folder than the run's own.")] = None,
    beams: Annotated[int, typer.Option(min=1, help="With --split: how many beams write captions.")] = 5,
    limit: Annotated[int | None, typer.Option(min=1, help="With --split: test on this many narratives.")] = None,
    metrics: Annotated[
        str, typer.Option(help="With --split: caption metrics: bleu, rouge-l, cider, meteor, spice, scene-graph-f.")
    ] = "bleu,rouge-l,cider",
    predictions: Annotated[
        Path | None, typer.Option("--predictions", "-p", help="With --split: write what it said and where, as JSONL.")
    ] = None,
) -> None:
    """Validate a trained model again and say how good it is.

    With --split, a MITR writes and points: LBM with k = 0 and 1 and caption metrics of every task that it learnt.
    """
    from saywhere.learn import evaluate as evaluate_run

    if split:
        names = tuple(name.strip().replace("-", "_") for name in metrics.split(",") if name.strip())
        found = _test_mitr(run, _checkpoint(which), split, data, beams, limit, names, predictions)
    elif data or limit or predictions:
        raise InvalidValue("split", "is not given", "--data, --limit and --predictions go with --split")
    else:
        found = evaluate_run(run, _checkpoint(which))["metrics"]
    table = plain_table()
    for name, value in found.items():
        table.add_row(name, "–" if value is None else f"{value:.4f}")
    out.print(table)


def _test_mitr(
    run: Path,
    which: Literal["best", "last"],
    split: str,
    data: Path | None,
    beams: int,
    limit: int | None,
    metrics: tuple[str, ...],
    predictions: Path | None,
) -> dict[str, float]:
    from saywhere.formats.split_lists import image_key, read_split_list
    from saywhere.learn import load_run
    from saywhere.learn.mitr_evaluation import evaluate_mitr, items_of, write_predictions
    from saywhere.models.mitr.prepared import SPLITS
    from saywhere.models.mitr.task import MitrTask

    trained = load_run(run, which, [] if data is None else [f"data.folder={str(data)!r}"])
    if not isinstance(trained.task, MitrTask):
        raise InvalidValue("--split", f"is for MITR's runs; this one learnt {trained.recipe.task}")
    listed = None if split in SPLITS else read_split_list(split, "test")
    chosen = split if listed is None else lambda image: listed.get(image_key(image)) == "test"
    items = items_of(trained.task.prepared, chosen, limit)
    with stages() as progress:
        found = evaluate_mitr(trained.model, trained.task, items, beams, metrics, progress)
    if found.learnt_from and data is None:
        err.print(f"{found.learnt_from:,} of {found.narratives:,} narratives were learnt from", style="yellow")
    if predictions:
        write_predictions(found, predictions)
    out.print(f"{found.narratives:,} narratives, {beams} beams", markup=False)
    return found.scores


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
