"""`saywhere build referring`: the part of a model that finds what referring expressions mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import err, out, plain_table, stages

_SHOWN = 20


def referring(
    store: Annotated[Path, typer.Argument(help="A store that `saywhere build coco` made.", show_default=False)],
    model: Annotated[str, typer.Option(help="The model whose eyes look at the photos: a name or a folder.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; the part is in its referring/.")],
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Use only this many photos: the store's validation photos, then those with most expressions."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="How often every expression is learnt from.")] = 8,
    seed: Annotated[int, typer.Option(help="Of first weights and of the order of expressions.")] = 0,
    install: Annotated[
        bool, typer.Option("--install", help="Put the part into the model's folder, and name it in its seer.json.")
    ] = False,
) -> None:
    """Teach a model to find "second horse from the right", and to say what is not there.

    Looks at the photos once (it goes on after an interruption), then trains a small network on what was seen. Photos
    are split by a hash of their numbers; the report is about test photos alone. Photos that are no picture are left
    out; the exit code is then 1.
    """
    from saywhere import loading
    from saywhere.build.referring_part import build_referring, install_referring
    from saywhere.build.referring_training import TrainingConfig
    from saywhere.models.patchioner.seer import open_seer
    from saywhere.store import Store

    folder = loading.find(model).folder
    seer = open_seer(folder)
    with stages() as progress:
        made = build_referring(
            Store(store), seer, folder, output, TrainingConfig(epochs=epochs, seed=seed), progress, limit
        )
    table = plain_table()
    for name, value in made.measures.items():
        table.add_row(name, f"{value:,.1f}")
    out.print(table)
    if install:
        install_referring(made.part, folder)
    out.print(f"{made.part}: {made.photos:,} photos, {len(made.unreadable):,} left out", markup=False)
    for key in made.unreadable[:_SHOWN]:
        err.print(f"left out {key}: its bytes are no picture", markup=False, style="yellow")
    if made.unreadable:
        raise typer.Exit(1)
