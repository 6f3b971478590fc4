"""`saywhere look`: every photo of a folder through an encoder, the views kept for later."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import err, out, stages
from saywhere.core.errors import InvalidFile
from saywhere.vision.photo import PHOTO_ENDINGS


def look(
    photos: Annotated[Path, typer.Argument(help="Folder with the photos.", metavar="DIR", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the views to.")],
    encoder: Annotated[
        str, typer.Option(help="Encoder: a name, or kind:checkpoint from the hub.")
    ] = "efficientnet-lite0",
    input_px: Annotated[
        int | None, typer.Option(help="Side of the encoder's square input, in pixels; its own by default.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="How many photos to encode at a time.")] = 8,
) -> None:
    """Look at every photo of a folder and keep what was seen, for `prepare` and for saywhere.vision.open_views.

    A run that was stopped goes on where it was. Photos that cannot be read are named, and the exit code is then 1.
    """
    from saywhere.vision import extract, open_encoder

    paths = photos_in(photos)
    with stages() as show:
        views = extract(paths, output, open_encoder(encoder, input_px), batch=batch, progress=show)
    grid = "×".join(map(str, next(iter(views.values())).patches.shape)) if views else "nothing"
    out.print(f"{output}: {len(views):,} views of {grid} by {encoder}", markup=False)
    for name, reason in views.failed.items():
        err.print(f"{photos / name}: {reason}", markup=False)
    if views.failed:
        raise typer.Exit(1)


def photos_in(folder: Path) -> list[Path]:
    """The files of a folder whose name ends like a photo's, sorted by name."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in PHOTO_ENDINGS and path.is_file())
    except OSError as error:
        raise InvalidFile(folder, f"cannot be read as a folder: {error.strerror or error}") from error
    if not paths:
        raise InvalidFile(folder, "holds no photos", f"known endings: {', '.join(sorted(PHOTO_ENDINGS))}")
    return paths
