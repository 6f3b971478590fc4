"""`saywhere prepare`: files of others made ready for `saywhere train`, for every family of models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.batch_options import EngineName, RayAddress, Workers, chosen_engine
from saywhere.cli.console import out, stages, tell_left_out

if TYPE_CHECKING:
    from saywhere.build.prepare import Preparation

app = typer.Typer(
    help="Make data ready to train on. What cannot be used is reported and left out; the exit code is then 1.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Features = Annotated[Path, typer.Option(help="Regions of the photos: what `look` wrote, or npz, h5, lmdb or tsv.")]
_Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to write, for the recipe's [data].")]
_Encoder = Annotated[str, typer.Option(help="Text encoder.")]
_SplitLists = Annotated[
    list[str] | None,
    typer.Option(help="Official list of a split: NAME=FILE, or FILE if it says so itself; may be repeated."),
]


def _tell(output: Path, made: Preparation) -> None:
    out.print(f"{output}: " + ", ".join(f"{count:,} {name}" for name, count in made.counts.items()), markup=False)
    tell_left_out(made.left_out)
    if made.left_out:
        raise typer.Exit(1)


@app.command()
def narratives(
    files: Annotated[list[Path], typer.Argument(help="Files of narratives.", show_default=False)],
    features: _Features,
    output: _Out,
    max_words: Annotated[int, typer.Option(min=2, help="Keep at most this many words of a caption.")] = 100,
    split: _SplitLists = None,
) -> None:
    """For the task mitr: narratives with the regions of their photos, cut into train, validation and test by image.

    Lists may be Karpathy's dataset_coco.json, any COCO file with images, or text with a name a line. Without any,
    images fall into splits by their names.
    """
    from saywhere.build.prepare import prepare_narratives
    from saywhere.cli.data import read_narratives
    from saywhere.formats.split_lists import read_split_lists
    from saywhere.models.region_features import open_features

    about = {"files": [path.name for path in files], "features": features.name}
    told = (narrative for path in files for narrative in read_narratives(path, None))
    with open_features(features) as seen:
        splits = read_split_lists(split) if split else None
        _tell(output, prepare_narratives(output, told, seen, about, max_words, splits=splits))


@app.command()
def captions(
    files: Annotated[
        list[str],
        typer.Argument(help="COCO captions: NAME=FILE for each split, train among them; with --split, FILE alone."),
    ],
    features: _Features,
    output: _Out,
    least_count: Annotated[int, typer.Option(min=1, help="Keep words that occur at least this often.")] = 5,
    split: _SplitLists = None,
) -> None:
    """For the task updown-caption: captions with the regions of their photos.

    With lists, such as `build pairs` writes, each image's captions are of the split that they say; see `narratives`.
    """
    from saywhere.build.prepare import parse_splits, prepare_captions
    from saywhere.formats.split_lists import read_split_lists
    from saywhere.models.region_features import open_features

    if split:
        told = [("", Path(name)) for name in files]
    else:
        told = [(name, path) for name, (path,) in parse_splits(files, "FILE").items()]
    with open_features(features) as seen:
        splits = read_split_lists(split) if split else None
        _tell(output, prepare_captions(output, told, seen, least_count, splits))


@app.command()
def questions(
    split: Annotated[list[str], typer.Argument(help="NAME=QUESTIONS,ANSWERS for each split; train is required.")],
    features: _Features,
    output: _Out,
    attention: Annotated[
        Path | None, typer.Option(help="Human attention: a folder of VQA-HAT maps, or a JSON of boxes to look at.")
    ] = None,
    least_count: Annotated[int, typer.Option(min=1, help="Keep answers that are correct at least this often.")] = 9,
) -> None:
    """For the tasks updown-vqa and hint-vqa: VQA v2, VQA-CP or other questions."""
    from saywhere.build.prepare import parse_splits, prepare_questions
    from saywhere.models.region_features import open_features

    splits = parse_splits(split, "QUESTIONS,ANSWERS")
    with open_features(features) as seen, stages() as progress:
        made = prepare_questions(output, splits, seen, attention, progress, least_count)
    _tell(output, made)


@app.command()
def levels(
    split: Annotated[
        list[str], typer.Argument(help="NAME=FILE for each split (HL, JSONL); train and validation are required.")
    ],
    photos: Annotated[Path, typer.Option(help="Folder with the photos that the rows name.")],
    output: _Out,
    engine: EngineName = "local",
    workers: Workers = 2,
    address: RayAddress = "",
) -> None:
    """For the task oscar: captions at every level, with regions and tags of their photos.

    Then: saywhere train recipes/oscar-object.toml, and recipes/oscar-scene.toml from there.
    """
    from saywhere.build.prepare import parse_splits, prepare_levels

    splits = parse_splits(split, "FILE", ("train", "validation"))
    with stages() as progress:
        made = prepare_levels(output, splits, photos, progress, chosen_engine(engine, workers, address))
    _tell(output, made)


@app.command()
def texts(
    files: Annotated[list[Path], typer.Argument(help="Texts, one sentence a line, COCO captions, narratives …")],
    output: _Out,
    encoder: _Encoder = "all-minilm-l6-v2",
    engine: EngineName = "local",
    workers: Workers = 0,
    address: RayAddress = "",
) -> None:
    """For the task patchioner-decoder: sentences with their vectors."""
    from saywhere.build.mapped_texts import MappedEncoder
    from saywhere.build.prepare import prepare_sentences

    with stages() as progress:
        made = prepare_sentences(
            output, files, MappedEncoder(encoder, chosen_engine(engine, workers, address)), progress
        )
    _tell(output, made)


@app.command()
def pairs(
    captions: Annotated[Path, typer.Argument(help="COCO captions.", show_default=False)],
    views: Annotated[Path, typer.Option(help="What `look` wrote of their photos.")],
    output: _Out,
    encoder: _Encoder = "all-minilm-l6-v2",
    engine: EngineName = "local",
    workers: Workers = 0,
    address: RayAddress = "",
) -> None:
    """For the task patchioner-alignment: photos with the vectors of their captions."""
    from saywhere.build.mapped_texts import MappedEncoder
    from saywhere.build.prepare import prepare_pairs
    from saywhere.vision import open_views

    texts = MappedEncoder(encoder, chosen_engine(engine, workers, address))
    with stages() as progress:
        made = prepare_pairs(output, captions, open_views(views), texts, progress)
    _tell(output, made)
