"""`saywhere build answers`: the part of a model that answers questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from saywhere.cli.console import out, stages


def answers(
    coco: Annotated[Path, typer.Argument(help="Store that `saywhere build coco` wrote.", show_default=False)],
    features: Annotated[Path, typer.Option(help="Folder that `saywhere build eye` wrote.", show_default=False)],
    eye: Annotated[Path, typer.Option(help="Folder of a trained eye, as `saywhere export` writes it.")],
    output: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for data, runs, report.md and answers/, the part itself.")
    ],
    steps: Annotated[int | None, typer.Option(min=8, help="Training steps; 4,000 by default.")] = None,
    blind_steps: Annotated[int | None, typer.Option(min=8, help="Steps of the model that sees no photo.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only so many photos, to try it.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads that compute; all cores by default.")] = None,
    bf16: Annotated[bool, typer.Option(help="Compute in bf16, faster where the processor has it.")] = True,
    start: Annotated[
        Path | None, typer.Option(help="Folder of such a part to begin with, instead of afresh.", show_default=False)
    ] = None,
    install: Annotated[
        Path | None, typer.Option(help="Folder of a model to put the part into.", show_default=False)
    ] = None,
) -> None:
    """Make the part of a model that answers questions, and measure it on photos held out. Goes on where it stopped."""
    import torch

    from saywhere.build.answer_questions import QuestionScale
    from saywhere.build.answers import PART, AnswerInputs, AnswerScale, build_answers, install_answers

    given: dict[str, Any] = {"steps": steps, "blind_steps": blind_steps}
    changes = {name: value for name, value in given.items() if value is not None}
    if threads is not None:
        torch.set_num_threads(threads)
    scale = AnswerScale(QuestionScale(limit=limit), threads=threads, bf16=bf16, **changes)
    with stages() as progress:
        report = build_answers(AnswerInputs(coco, features, eye, start), output, scale, progress)
    for line in report.lines():
        out.print(line, markup=False)
    where = output / PART
    if install is not None:
        install_answers(where, install)
    note = "with --install MODEL it goes into a model's folder" if install is None else f"is now in {install}"
    out.print(f"{where}: {note}", markup=False)
