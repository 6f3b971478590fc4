"""`saywhere build`: memory banks and data sets out of files."""

from __future__ import annotations

from importlib.resources import files
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


@app.command()
def levels(
    hl: Annotated[Path, typer.Option(help="HL rows (JSONL) with scene, action, rationale and object captions.")],
    data: Annotated[Path, typer.Option(help="The folder that `saywhere build base` reads.")],
    base_work: Annotated[Path, typer.Option(help="The work folder of `saywhere build base`.")] = Path("out/base-work"),
    model: Annotated[
        Path | None, typer.Option(help="The model whose decoder is gone on from; by default saywhere-base.")
    ] = None,
    output: Annotated[Path, typer.Option("--out", "-o", help="The folder of the writer.")] = Path("out/levels"),
    work: Annotated[Path, typer.Option(help="What is made on the way; not made again.")] = Path("out/levels-work"),
    seed: Annotated[int, typer.Option(help="Of what is drawn and of the training.")] = 0,
) -> None:
    """Make the writer of scenes, actions and rationales of saywhere-base.

    Bad rows are said and left out; then the exit code is 1.
    """
    from saywhere.build.levels import LevelSettings, build_levels
    from saywhere.language.embed import open_text_encoder
    from saywhere.metrics.captions import bleu, cider

    folder, settings = model or Path(str(files("saywhere.models") / "base")), LevelSettings(seed=seed)
    with stages() as progress:
        made = build_levels(hl, data, folder, base_work, output, work, open_text_encoder(), settings, progress)
    for record in made.bad[:_SHOWN]:
        err.print(f"left out {record}", markup=False, style="yellow")
    if len(made.bad) > _SHOWN:
        err.print(f"left out {len(made.bad) - _SHOWN:,} more", style="yellow")
    for level, told in made.told.items():
        scores = {**cider(told.said, told.wanted)["corpus"], **bleu(told.said, told.wanted)["corpus"]}
        out.print(
            f"{level}: CIDEr {scores['CIDEr']:.2f}, BLEU-4 {scores['BLEU-4']:.2f} on {len(told.said):,} test rows"
        )
    out.print(f"{output}: put it into a model's folder and name it in seer.json as level_writer", markup=False)
    if made.bad:
        raise typer.Exit(1)
