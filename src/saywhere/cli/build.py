"""`saywhere build`: memory banks and data sets out of files."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.batch_options import EngineName, RayAddress, Workers, chosen_engine
from saywhere.cli.console import out, stages, tell_left_out

app = typer.Typer(
    help="Build memory banks, data sets and the parts of saywhere-base.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _builders() -> None:
    """Make memory banks and data sets."""


@app.command()
def memory(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files of sentences: one per line, COCO captions, narratives …; .gz is read as well.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="The memory bank to write: a .safetensors file.")],
    phrases: Annotated[
        bool, typer.Option("--phrases", help="Also add the phrases that occur at least twice in the sentences.")
    ] = False,
    encoder: Annotated[str, typer.Option(help="Text encoder to embed sentences with.")] = "all-minilm-l6-v2",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only this many different sentences, the first ones.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="How many sentences to embed at a time.")] = 64,
    engine: EngineName = "local",
    workers: Workers = 0,
    address: RayAddress = "",
) -> None:
    """Make a memory bank of sentences. Bad lines are reported and left out; the exit code is then 1."""
    from saywhere.build.mapped_texts import MappedEncoder
    from saywhere.build.memory import build_memory

    texts = MappedEncoder(encoder, chosen_engine(engine, workers, address))
    with stages() as progress:
        made = build_memory(files, output, texts, phrases=phrases, limit=limit, batch=batch, progress=progress)
    tell_left_out(made.bad)
    whole = len(made.sentences) - made.phrases
    size_mb = output.stat().st_size / 1e6
    out.print(
        f"{output}: {whole:,} sentences and {made.phrases:,} phrases, {size_mb:,.1f} MB; "
        f"{made.again:,} were there already, {len(made.bad):,} bad",
        markup=False,
    )
    if made.bad:
        raise typer.Exit(1)


@app.command("memory-index")
def memory_index(
    bank: Annotated[Path, typer.Argument(help="A memory bank: a .safetensors file.", show_default=False)],
) -> None:
    """Make an index beside a memory bank, so that a bank of millions is searched without reading all of it.

    A model whose bank has one searches approximately; without its .lance folder, exactly.
    """
    from saywhere.models.patchioner.bank_file import open_bank
    from saywhere.models.patchioner.bank_index import build_index

    file = open_bank(bank, verify=True)
    with stages() as progress:
        folder = build_index(bank, file.vectors, file.sha256, progress)
    size_mb = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1e6
    out.print(f"{folder}: index of {len(file.sentences):,} sentences, {size_mb:,.1f} MB", markup=False)


@app.command()
def published(
    projection: Annotated[Path, typer.Option(help="Talk2DINO's projection: vitb_mlp_infonce.pth, or safetensors.")],
    decoder: Annotated[Path, typer.Option(help="The authors' decoder: coco_karpathy-009.pt, or safetensors.")],
    memory: Annotated[
        Path, typer.Option(help="Captions to remember: COCO's or a list as JSON, with or without features; or HDF5.")
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.")] = Path(
        "out/patch-ioner"
    ),
    dino: Annotated[str, typer.Option(help="DINOv2 with registers: a folder, or a name on the hub.")] = (
        "facebook/dinov2-with-registers-base"
    ),
    clip: Annotated[str, typer.Option(help="CLIP, whose text side is read: a folder, or a name on the hub.")] = (
        "openai/clip-vit-base-patch16"
    ),
    input_px: Annotated[int, typer.Option(min=14, help="Side of the square that photos are brought to.")] = 518,
    heads: Annotated[int, typer.Option(min=1, help="Heads of the decoder, which its tensors do not tell.")] = 4,
) -> None:
    """Patch-ioner's full system out of the authors' published parts, as a model for every command.

    Then: saywhere caption photo.jpg --box … --model out/patch-ioner
    """
    from saywhere.build.released import PublishedSystem, build_published

    parts = PublishedSystem(projection, decoder, memory, dino, clip, input_px, heads)
    with stages() as progress:
        count = build_published(parts, output, progress)
    out.print(f"{output}: remembers {count:,} captions; load it with saywhere.load({str(output)!r})", markup=False)


@app.command()
def oscar(
    checkpoint: Annotated[
        Path, typer.Argument(help="A published Oscar or VinVL: config.json, vocab.txt, pytorch_model.bin.")
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the network to.")] = Path("out/oscar"),
) -> None:
    """A published Oscar or VinVL as a network of ours, to caption with, to tune on scenes and to look inside.

    Tune it by recipes/oscar-scene.toml with model.start=FOLDER; the checkpoint's own folder will do there, too.
    """
    from saywhere.models.oscar.released import oscar_from_released

    network = oscar_from_released(checkpoint)
    network.save_pretrained(output)
    shape = network.config
    out.print(f"{output}: {shape.layers} layers of width {shape.width}, regions of {shape.region_size}", markup=False)


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
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.")] = Path(
        "out/saywhere-base"
    ),
    work: Annotated[Path, typer.Option(help="Folder for intermediate results, which a second run reuses.")] = Path(
        "out/base-work"
    ),
    steps: Annotated[int, typer.Option(min=1, help="Training steps of the decoder.")] = 4000,
    rate: Annotated[float, typer.Option(min=0, help="Learning rate of the decoder.")] = 1e-3,
    start: Annotated[
        Path | None,
        typer.Option(help="Continue from the model.safetensors of an earlier decoder with the same vocabulary."),
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
    hl: Annotated[Path, typer.Option(help="HL file (JSONL) with scene, action, rationale and object captions.")],
    data: Annotated[Path, typer.Option(help="The data folder of `saywhere build base`.")],
    base_work: Annotated[Path, typer.Option(help="The work folder of `saywhere build base`.")] = Path("out/base-work"),
    model: Annotated[
        Path | None, typer.Option(help="Model whose decoder to continue from; saywhere-base by default.")
    ] = None,
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the decoder to.")] = Path("out/levels"),
    work: Annotated[Path, typer.Option(help="Folder for intermediate results, which a second run reuses.")] = Path(
        "out/levels-work"
    ),
    seed: Annotated[int, typer.Option(help="Random seed of the split and the training.")] = 0,
) -> None:
    """Make the writer of scenes, actions and rationales of saywhere-base.

    Bad rows are reported and left out; the exit code is then 1.
    """
    from saywhere.build.levels import LevelSettings, build_levels
    from saywhere.language.embed import open_text_encoder
    from saywhere.metrics.captions import bleu, cider

    folder, settings = model or Path(str(files("saywhere.models") / "base")), LevelSettings(seed=seed)
    with stages() as progress:
        made = build_levels(hl, data, folder, base_work, output, work, open_text_encoder(), settings, progress)
    tell_left_out(made.bad)
    for level, one in made.outputs.items():
        scores = {**cider(one.texts, one.wanted)["corpus"], **bleu(one.texts, one.wanted)["corpus"]}
        out.print(
            f"{level}: CIDEr {scores['CIDEr']:.2f}, BLEU-4 {scores['BLEU-4']:.2f} on {len(one.texts):,} test rows"
        )
    out.print(f"{output}: put it into a model's folder and name it in seer.json as level_writer", markup=False)
    if made.bad:
        raise typer.Exit(1)
