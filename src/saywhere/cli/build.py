"""`saywhere build`: memory banks and data sets out of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import err, out, stages

app = typer.Typer(help="Make memory banks and data sets.", no_args_is_help=True, rich_markup_mode=None)

_SHOWN = 20


@app.callback()
def _builders() -> None:
    """Make memory banks and data sets."""


@app.command()
def memory(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Texts, one sentence a line, COCO captions, narratives …; .gz is unpacked.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="The bank: a .safetensors file.")],
    phrases: Annotated[
        bool, typer.Option("--phrases", help="Add the phrases that sentences are made of, those there twice or more.")
    ] = False,
    encoder: Annotated[str, typer.Option(help="The text encoder.")] = "all-minilm-l6-v2",
    limit: Annotated[int | None, typer.Option(min=1, help="Take the first so many different sentences.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Sentences that are embedded at once.")] = 64,
) -> None:
    """Make a memory bank of sentences. Bad lines are said and left out; then the exit code is 1."""
    from saywhere.build.memory import build_memory
    from saywhere.language.embed import open_text_encoder

    with stages() as progress:
        made = build_memory(
            files, output, open_text_encoder(encoder), phrases=phrases, limit=limit, batch=batch, progress=progress
        )
    for record in made.bad[:_SHOWN]:
        err.print(f"left out {record}", markup=False, style="yellow")
    if len(made.bad) > _SHOWN:
        err.print(f"left out {len(made.bad) - _SHOWN:,} more", style="yellow")
    whole = len(made.sentences) - made.phrases
    size_mb = output.stat().st_size / 1e6
    out.print(
        f"{output}: {whole:,} sentences and {made.phrases:,} phrases, {size_mb:,.1f} MB; "
        f"{made.again:,} were there already, {len(made.bad):,} bad",
        markup=False,
    )
    if made.bad:
        raise typer.Exit(1)


@app.command()
def base(
    data: Annotated[
        Path,
        typer.Option(
            help="A folder with coco_val/ (photos/, captions_val2017.json, boxes.json), flickr8k/ (photos/, "
            "captions.token.txt) "
            "and text/ (train.*.en.gz)."
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="The model's folder.")] = Path("out/saywhere-base"),
    work: Annotated[Path, typer.Option(help="What is made on the way; not made again.")] = Path("out/base-work"),
    steps: Annotated[int, typer.Option(min=1, help="Steps of the decoder.")] = 4000,
    rate: Annotated[float, typer.Option(min=0, help="Learning rate of the decoder.")] = 1e-3,
    start: Annotated[
        Path | None, typer.Option(help="model.safetensors of an earlier decoder with the same words to go on from.")
    ] = None,
) -> None:
    """Make saywhere-base anew: looks, alignment, gap, two decoders, memory. About three hours on two cores."""
    from saywhere.build.base import ENCODER, INPUT_PX, BaseSettings, build_from_folder
    from saywhere.language.embed import open_text_encoder
    from saywhere.vision import open_encoder
    from saywhere.vision.detector import open_detector

    with stages() as progress:
        build_from_folder(
            data,
            output,
            work,
            open_encoder(ENCODER, INPUT_PX),
            open_detector(),
            open_text_encoder(),
            BaseSettings(steps=steps, rate=rate, start=start),
            progress,
        )
    out.print(f"{output}: load it with saywhere.load({str(output)!r})", markup=False)
