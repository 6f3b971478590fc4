"""`saywhere build naming`: what a box shows, learnt from photos that a model's eye never learnt from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import err, out, stages

_SHOWN = 20


def naming(
    store: Annotated[Path, typer.Argument(help="A store that `saywhere build coco` made.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; the part is in its naming/.")],
    model: Annotated[str, typer.Option(help="The model with eye and detector: a name or a folder.")] = "saywhere-base",
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many of the validation photos.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the training.")] = 0,
    install: Annotated[
        bool, typer.Option("--install", help="Put the part into the model's folder, and name it in its seer.json.")
    ] = False,
) -> None:
    """Teach a model which kind a box shows, or that it shows none, from photos that its eye did not learn from.

    After an interruption the same command goes on.
    """
    from saywhere import loading
    from saywhere.build.naming import NamingScale, build_naming, install_naming
    from saywhere.models.patchioner.seer import open_eyes
    from saywhere.models.patchioner.seer_config import read_config
    from saywhere.store import Store

    folder = loading.find(model).folder
    coco, eyes = Store(store), open_eyes(folder, read_config(folder))
    with stages() as progress:
        built = build_naming(coco, eyes, folder, output, NamingScale(photos=limit, seed=seed), progress)
    for key in built.unreadable[:_SHOWN]:
        err.print(f"left out {key}: its bytes are no picture", markup=False, style="yellow")
    for name, value in built.measures.items():
        out.print(f"{name}: {100 * value:.1f} %", markup=False)
    if install:
        install_naming(built.part, folder)
    told = f"{built.part}: names boxes, learnt from {built.boxes:,} boxes and empty places of {built.photos:,} photos"
    out.print(told + (f"; now a part of {folder}" if install else ""), markup=False)
    if built.unreadable:
        raise typer.Exit(1)
