"""`saywhere build coco`: COCO's photographs and labels as one store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import err, out, plain_table, stages


def coco(
    folder: Annotated[
        Path,
        typer.Argument(
            help="COCO as it is published (annotations/, train2017/), or a folder with boxes.tsv.gz; see docs/data.md."
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the store to.")],
    photos: Annotated[
        Path | None,
        typer.Option(help="Folder with the photos, of any size; train2017 in the folder by default."),
    ] = None,
    saliency: Annotated[
        list[Path] | None, typer.Option(help="Folder of SALICON's maps (PNG). Can be repeated.")
    ] = None,
    keep_out: Annotated[
        list[Path] | None,
        typer.Option(help="List of photos to leave out as well, one number per line. Can be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many photos, the first by number.")] = None,
    validation: Annotated[float, typer.Option(min=0, max=1, help="Share of the photos to keep for validation.")] = 0.02,
) -> None:
    """Make a store of COCO's photos with their boxes, captions, questions, referring expressions and saliency.

    Run it again after an interruption: it goes on. Photos and labels that cannot be read are counted, and named in
    left_out.jsonl in the store; then the exit code is 1.
    """
    from saywhere.build.coco import LEFT_OUT, ON_PURPOSE, CocoSource, build_coco

    source = CocoSource(folder, photos, tuple(saliency or ()), tuple(keep_out or ()))
    with stages() as progress:
        made = build_coco(source, output, progress, limit=limit, validation=validation)
    table = plain_table()
    table.add_row("photos in the store", f"{made.rows:,}")
    for field, count in made.labels.items():
        table.add_row(f"labels read: {field}", f"{count:,}")
    table.add_row("labels of photos that are kept out", f"{made.kept_back:,}")
    for kind, count in sorted(made.left_out.items()):
        table.add_row(f"left out: {kind}", f"{count:,}")
    out.print(table)
    if made.left_out.keys() - ON_PURPOSE:
        err.print(f"what was left out is named in {output / LEFT_OUT}", markup=False, style="yellow")
        raise typer.Exit(1)
