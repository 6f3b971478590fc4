"""`saywhere caption`, `scene`, `ground` and `narrate`: what a photo shows and where it is taken, where a text is in it,
and a narrative of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import saywhere
from saywhere import loading
from saywhere.cli.console import MB, err, in_megabytes, out, stages
from saywhere.cli.pointing import Pointing
from saywhere.core import Caption, Grounded, InvalidValue, Narrative, WholeImage

if TYPE_CHECKING:
    from PIL import Image

    from saywhere.models.face import Look
    from saywhere.models.face import Model as LoadedModel
    from saywhere.models.search import GenerationConfig

Photo = Annotated[Path, typer.Argument(help="The photo.", metavar="PHOTO", show_default=False)]
Model = Annotated[str, typer.Option("--model", "-m", help="Model: a name, a folder, or owner/name on the hub.")]
Png = Annotated[Path | None, typer.Option("--png", help="Also draw the result into this PNG file.", metavar="FILE")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Also write the narrative to this file (.jsonl or .jsonl.gz).")
]
Level = Annotated[
    str,
    typer.Option(help="What to tell: object, or another level of the model, such as scene."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def caption(
    photo: Photo,
    box: Annotated[list[str] | None, typer.Option(metavar="X1,Y1,X2,Y2", help="A rectangle. Can be repeated.")] = None,
    point: Annotated[list[str] | None, typer.Option(metavar="X,Y", help="A point. Can be repeated.")] = None,
    polygon: Annotated[list[str] | None, typer.Option(metavar="X,Y;X,Y;…", help="An outline. Can be repeated.")] = None,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|X,Y;X,Y;…", help="A trace: a file of narratives, or points to connect. Can be repeated."
        ),
    ] = None,
    mask: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="An image of the photo's shape, white where to look. Can be repeated."),
    ] = None,
    pixels: Annotated[
        bool, typer.Option("--pixels", help="Coordinates are pixels, not fractions of the photo.")
    ] = False,
    model: Model = loading.BASE,
    beams: Annotated[
        int | None, typer.Option(min=1, help="Width of the beam search; 1 is greedy search, the fastest.")
    ] = None,
    level: Level = "object",
    weighting: Annotated[
        str,
        typer.Option(help="How a region's patches are weighed: uniform, gaussian, attention, coverage, box or dwell."),
    ] = "",
    as_json: AsJson = False,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Also print the nearest sentences of the model's memory.")
    ] = False,
    png: Png = None,
) -> None:
    """Caption a photo, or the regions of it that are given.

    Coordinates are fractions of the photo's width and height, x to the right, y down.
    """
    check_png(png)
    image = read_first(photo)
    pointed = Pointing(photo, image.size if pixels else (1, 1))
    regions = pointed.regions(box or [], point or [], polygon or [], trace or [], mask or [])
    loaded = opened(model, "caption", texts=False)
    from saywhere.models.face import check_level

    check_level(level, loaded.levels, loaded.name)
    look = looked(loaded, photo, image)
    if weighting:
        look = look.weighing(weighting)
    with busy("writing"):
        captions = look.captions(regions or [WholeImage()], _generation(loaded, beams), level)
    # Said before it is drawn: on a full disk it is not lost.
    if as_json:
        values = [{"region": one.region.to_json(), **_caption_values(one)} for one in captions]
        say_json(look, photo, level=level, captions=values)
    else:
        for one in captions:
            out.print(f"{one.region.name}: {one}" if regions else str(one), markup=False)
            for near in one.nearest if nearest else ():
                out.print(f"    {near.cosine:.2f}  {near.sentence}", markup=False)
    if png is not None:
        from saywhere.plots.captions import draw_seen
        from saywhere.plots.seen import ShownPhoto
        from saywhere.plots.sheet import save_png

        whole = None if regions else captions[0]
        about = loaded.name if level == "object" else f"{loaded.name}, {level}"
        save_png(draw_seen(ShownPhoto(look.image, photo.name, about, whole, tuple(captions if regions else ()))), png)


def scene(
    photo: Photo,
    levels: Annotated[bool, typer.Option("--levels", help="Print captions at every level that the model has.")] = (
        False
    ),
    model: Model = loading.BASE,
    as_json: AsJson = False,
    png: Png = None,
) -> None:
    """Say where a photo was taken, with the mean probability of the words as confidence."""
    check_png(png)
    image = read_first(photo)
    loaded = opened(model, "scene", texts=False)
    look = looked(loaded, photo, image)
    with busy("writing"):
        captions = [look.caption(level=level) for level in (loaded.levels if levels else ("scene",))]
    if as_json:
        values = [{"level": one.level, **_caption_values(one), "confidence": one.confidence} for one in captions]
        say_json(look, photo, captions=values)
    else:
        width = max(len(one.level) for one in captions)
        for one in captions:
            name = f"{one.level:<{width}}  " if levels else ""
            out.print(f"{name}{one.confidence:4.0%}  {one}", markup=False)
    if png is not None:
        from saywhere.plots.captions import draw_seen
        from saywhere.plots.seen import ShownPhoto
        from saywhere.plots.sheet import save_png

        save_png(draw_seen(ShownPhoto(look.image, photo.name, loaded.name, levels=tuple(captions))), png)


def ground(
    photo: Photo,
    text: Annotated[str, typer.Argument(help="The text to find in the photo.", show_default=False)],
    model: Model = loading.BASE,
    output: Out = None,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Find where each phrase of a text is in a photo."""
    check_png(png)
    _check_out(output)
    image = read_first(photo)
    if not text.split():
        raise InvalidValue("text", "has no word")
    look = looked(opened(model, "ground"), photo, image)
    with busy("finding"):
        grounded = look.grounded(text)
    narrative = grounded.narrative(look.image_id, origin=look.model.name)
    if as_json:
        say_json(look, photo, text=text, words=_word_values(narrative, grounded.boxes.boxes_xyxy.tolist()))
    else:
        _say_places(grounded)
    _write(narrative, output)
    if png is not None:
        from saywhere.plots.captions import draw_seen
        from saywhere.plots.seen import ShownPhoto
        from saywhere.plots.sheet import save_png

        save_png(draw_seen(ShownPhoto(look.image, photo.name, look.model.name, grounded=grounded)), png)


def narrate(
    photo: Photo,
    model: Model = loading.BASE,
    most: Annotated[int, typer.Option(min=0, help="Describe at most this many things after the whole photo.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice among sentences that say the same.")] = 0,
    output: Out = None,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Describe a photo as a whole, then thing by thing, with a pointer trace that follows the words."""
    check_png(png)
    _check_out(output)
    image = read_first(photo)
    look = looked(opened(model, "narrate"), photo, image)
    with busy("narrating"):
        narrative = look.narrate(most, seed)
    if as_json:
        boxes = narrative.word_boxes().boxes_xyxy.tolist()
        say_json(look, photo, text=narrative.caption, words=_word_values(narrative, boxes))
    else:
        out.print(narrative.caption, markup=False)
    _write(narrative, output)
    if png is not None:
        from saywhere.plots import draw_narrative, save_png

        save_png(draw_narrative(look.image, narrative), png)


def opened(model: str, skill: str = "", *, texts: bool = True) -> LoadedModel:
    """The model of this name; what it needs is fetched first, saying what it is and its licence.

    skill: that it must have. texts: whether texts will have to be found in photos.
    """
    with busy(f"opening {model}"):
        wanted = loading.needed_assets(model, texts=texts)
    fetch_missing(wanted)
    with busy(f"opening {model}"):
        loaded = loading.load(model)
    if skill:
        from saywhere.models.face import check_skill

        check_skill(loaded, skill)
    return loaded


def fetch_missing(names: Sequence[str]) -> None:
    """Bring those assets that are not in the cache, saying what each is and its licence."""
    from saywhere.assets import fetch, find, is_cached

    for asset in [find(name) for name in names if not is_cached(name)]:
        total = max(1, round(asset.size / MB))
        err.print(f"fetching {asset.name} ({total} MB): {asset.what}. Licence: {asset.licence}", markup=False)
        with stages() as show:
            fetch(asset.name, in_megabytes(show))


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """A sign of life on a terminal while something takes a few seconds."""
    if not err.is_terminal:
        yield
        return
    with err.status(f"{doing} …"):
        yield


def looked(model: LoadedModel, photo: Path, image: Image.Image) -> Look:
    """image: the photo, read already."""
    with busy("looking"):
        return model.look(image, photo.stem)


def read_first(photo: Path) -> Image.Image:
    """The photo, upright. Read before anything heavy, so that a bad one is said at once."""
    from saywhere.vision import read_photo

    image = read_photo(photo)
    if (pictures := getattr(image, "pictures", 1)) > 1:
        err.print(f"{photo.name} moves: the first of its {pictures:,} pictures is looked at", markup=False)
    return image


def _generation(model: LoadedModel, beams: int | None) -> GenerationConfig | None:
    """The model's own way to write with another number of beams; None to leave it as it is."""
    if beams is None:
        return None
    return replace(model.generation, method="beam" if beams > 1 else "greedy", beams=beams)


def check_png(png: Path | None) -> None:
    if png is not None and png.suffix.lower() != ".png":
        raise InvalidValue("--png", f"{png.name} does not end in .png")


def _check_out(output: Path | None) -> None:
    if output is not None and not output.name.endswith((".jsonl", ".jsonl.gz")):
        hint = "saywhere data convert makes other formats of it"
        raise InvalidValue("--out", f"{output.name} ends neither in .jsonl nor in .jsonl.gz", hint)


def _write(narrative: Narrative, output: Path | None) -> None:
    if output is not None:
        from saywhere.formats import localized_narratives

        localized_narratives.write(output, [narrative])


def _say_places(grounded: Grounded) -> None:
    phrases = grounded.phrases()
    width = max(len(phrase.text) for phrase in phrases)
    for phrase in phrases:
        box = phrase.box_xyxy
        place = "not found" if box is None else ",".join(f"{value:.3f}" for value in box)
        out.print(f"{phrase.text:<{width}}  {place}", markup=False)


def _caption_values(one: Caption) -> dict[str, Any]:
    nearest = [{"sentence": near.sentence, "cosine": near.cosine} for near in one.nearest]
    return {
        "text": one.text,
        "score": one.score,
        "similarity": one.similarity,
        "sure": one.sure,
        "nearest": nearest,
    }


def _word_values(narrative: Narrative, boxes: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    return [
        {
            "text": word.text,
            "start_s": word.start_s,
            "end_s": word.end_s,
            # A box that is not a number is no place.
            "box_xyxy": list(box) if box[0] == box[0] else None,
        }
        for word, box in zip(narrative.words, boxes, strict=True)
    ]


def say_json(look: Look, photo: Path, **values: Any) -> None:
    """A result as JSON, with what made it."""
    made_by = {"saywhere": saywhere.__version__, "model": look.model.name}
    typer.echo(json.dumps({"photo": photo.name, **values, "made_by": made_by}, allow_nan=False))
