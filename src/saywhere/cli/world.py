"""`saywhere world`: simulated scenes with exact truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import out, stages
from saywhere.core.errors import InvalidValue

app = typer.Typer(help="Simulated scenes with exact truth.", no_args_is_help=True, rich_markup_mode=None)

Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Size = Annotated[int, typer.Option(min=32, max=1024, help="Width and height of a photo, in pixels.")]


@app.command()
def make(
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write photos and truth to.")],
    n: Annotated[int, typer.Option("-n", "--n", min=1, help="How many scenes.")] = 1000,
    seed: Seed = 0,
    size: Size = 128,
    videos: Annotated[int, typer.Option(min=0, help="How many short videos.")] = 0,
) -> None:
    """Draw scenes and write them down: narratives, captions, masks, questions, referring expressions, videos.

    All in the official formats of the data sets they imitate. A run that was stopped goes on where it was.
    """
    from saywhere.world import WorldSettings
    from saywhere.world import make as make_world

    with stages() as progress:
        manifest = make_world(
            output,
            WorldSettings(n=n, seed=seed, size=size, videos=videos),
            progress,
        )
    counts = ", ".join(f"{count:,} {what}" for what, count in manifest["counts"].items())
    out.print(f"{output}: {counts}", markup=False)


@app.command()
def show(
    output: Annotated[Path, typer.Option("--out", "-o", help="PNG file to write.")] = Path("world.png"),
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=400, help="How many scenes.")] = 48,
    seed: Seed = 0,
    size: Size = 128,
    place: Annotated[str | None, typer.Option(help="Draw only this kind of place, such as kitchen.")] = None,
) -> None:
    """Draw a contact sheet of scenes."""
    from saywhere.atomic import write_atomic
    from saywhere.world import contact_sheet, scenes

    if output.suffix.lower() != ".png":
        raise InvalidValue("--out", f"{output.name} is not a .png")
    sheet = contact_sheet(scenes(n, seed=seed, size=size, place=place))
    with write_atomic(output) as file:
        sheet.save(file, format="PNG")
    out.print(f"{output}: {n:,} scenes", markup=False)
