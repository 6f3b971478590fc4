"""`saywhere build hl`: HL rows and their photos made ready for Oscar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import err, out, stages

_SHOWN = 20


def hl(
    split: Annotated[
        list[str],
        typer.Argument(help="NAME=FILE for each split (HL, JSONL); train and validation are required."),
    ],
    photos: Annotated[Path, typer.Option(help="Folder with the photos that the rows name.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write for the task oscar.")],
    workers: Annotated[int, typer.Option(min=1, help="How many processes encode photos.")] = 2,
) -> None:
    """Make captions at every level ready to learn from, with regions and tags of their photos.

    Bad rows and photos are reported and left out: exit code 1. Then: saywhere train recipes/oscar-object.toml, and
    recipes/oscar-scene.toml from there.
    """
    from saywhere.build.hl_photos import parse_hl_splits, prepare_hl

    splits = parse_hl_splits(split)
    with stages() as progress:
        made = prepare_hl(output, splits, photos, progress, workers)
    folder = made.captions
    counts = ", ".join(f"{count:,} of {level}" for level, count in folder.levels.items())
    out.print(f"{output}: {len(folder):,} captions ({counts})", markup=False)
    said = [str(record) for record in made.bad]
    said += [f"{name}: {reason}" for name, reason in made.unseen.items()]
    said += [f"caption {one.id}: {one.reason}" for one in folder.skipped]
    for line in said[:_SHOWN]:
        err.print(f"left out {line}", markup=False, style="yellow")
    if len(said) > _SHOWN:
        err.print(f"left out {len(said) - _SHOWN:,} more", style="yellow")
    if said:
        raise typer.Exit(1)
