"""`saywhere answer` and `saywhere why`: questions about a photo, and where a word or an answer came from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saywhere import loading
from saywhere.cli.console import err, out
from saywhere.cli.pointing import Pointing
from saywhere.cli.seeing import AsJson, Level, Model, Photo, Png, busy, check_png, looked, opened, read_first, say_json
from saywhere.core import InvalidValue, Region, UnknownName, WholeImage

if TYPE_CHECKING:
    from PIL import Image

    from saywhere.explain.seen import Method, Reason
    from saywhere.models.face import Look

_NOTHING_TO_DRAW = "no picture is written: no part of the photo speaks for this"

BoxAt = Annotated[str | None, typer.Option("--box", metavar="X1,Y1,X2,Y2", help="Only this rectangle.")]
PointAt = Annotated[str | None, typer.Option("--point", metavar="X,Y", help="Only this point.")]
PolygonAt = Annotated[
    str | None, typer.Option("--polygon", metavar="X,Y;X,Y;…", help="Only what this outline encloses.")
]
TraceAt = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="FILE|X,Y;X,Y;…",
        help="Only this trace: a file with one narrative, or points to connect.",
    ),
]
Pixels = Annotated[bool, typer.Option("--pixels", help="Coordinates are pixels, not fractions of the photo.")]
HowFound = Annotated[str, typer.Option("--method", help="How the reason is found: gradient, attention or occlusion.")]
MaskAt = Annotated[
    Path | None,
    typer.Option("--mask", metavar="FILE", help="Only this mask: an image of the photo's shape, white where to look."),
]


def answer(
    photo: Photo,
    question: Annotated[str, typer.Argument(help="The question, such as: is there a cup?", show_default=False)],
    box: BoxAt = None,
    point: PointAt = None,
    polygon: PolygonAt = None,
    trace: TraceAt = None,
    mask: MaskAt = None,
    pixels: Pixels = False,
    model: Model = loading.BASE,
    method: HowFound = "gradient",
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question about a photo, or about a region of it."""
    way = _checked(method, png)
    image = read_first(photo)
    region = region_of(photo, image if pixels else None, (box, point, polygon, trace), mask)
    if not question.split():
        raise InvalidValue("question", "has no word")
    look = looked(opened(model, "answer", texts=False), photo, image)
    with busy("answering"):
        given = look.answer(question, region)
    reason = None
    if png is not None or as_json:
        from saywhere.explain.seen import why_answer

        with busy("looking for the reason"):
            reason = why_answer(look, question, region, way)
    drawn = png is None or (reason is not None and _draw(look, reason.weights, png))
    if as_json:
        if not drawn:
            err.print(_NOTHING_TO_DRAW, style="yellow", markup=False)
        ranked = [{"text": text, "probability": chance} for text, chance in given.ranked]
        unread = {"unknown": list(given.unknown), "unread": list(given.unread), "not_answered": given.reason}
        _say_json(look, photo, region, reason, question=question, answers=ranked, **unread)
        return
    if given.reason:
        out.print(f"{given.text}: {given.reason}", markup=False)
        out.print("guesses, not to be relied on:", markup=False)
    for text, chance in given.ranked:
        out.print(f"{chance:4.0%}  {text}", markup=False)
    if given.unknown:
        out.print(f"not known to this model: {', '.join(given.unknown)}", markup=False)
    if given.unread:
        out.print(f"too long, not read: {' '.join(given.unread)}", markup=False)
    if not drawn:
        err.print(_NOTHING_TO_DRAW, style="yellow", markup=False)


def why(
    photo: Photo,
    word: Annotated[str, typer.Argument(help="A word of the caption; the first one if it occurs twice.")],
    box: BoxAt = None,
    point: PointAt = None,
    polygon: PolygonAt = None,
    trace: TraceAt = None,
    mask: MaskAt = None,
    pixels: Pixels = False,
    caption: Annotated[str, typer.Option(help="Explain this text instead of the model's own caption.")] = "",
    level: Level = "object",
    model: Model = loading.BASE,
    method: HowFound = "gradient",
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Explain a word of a caption: which patches of the photo it rests on, and how faithful that explanation is."""
    way = _checked(method, png)
    image = read_first(photo)
    region = region_of(photo, image if pixels else None, (box, point, polygon, trace), mask) or WholeImage()
    look = looked(opened(model, "caption", texts=False), photo, image)
    from saywhere.explain.seen import why_word

    with busy("writing"):
        text = caption or look.caption(region, level=level).text
    with busy("looking for the reason"):
        reason = why_word(look, region, text, _place(word, text), way, level)
    if png is not None:
        from saywhere.explain.heat import patch_heat

        if not _draw(look, patch_heat(reason.weights, look.view.frame), png):
            err.print(_NOTHING_TO_DRAW, style="yellow", markup=False)
    if as_json:
        _say_json(look, photo, region, reason, level=level, caption=text)
        return
    out.print(text, markup=False)
    for line in _lines(reason):
        out.print(line, markup=False)


def _checked(method: str, png: Path | None) -> Method:
    check_png(png)
    # Heavy, but so is everything that follows.
    from saywhere.explain.seen import METHODS

    for known in METHODS:
        if method == known:
            return known
    raise UnknownName("method", method, METHODS)


def region_of(
    photo: Path, in_pixels: Image.Image | None, typed: Sequence[str | None], mask: Path | None
) -> Region | None:
    """The one region that is given, if one is. in_pixels: the photo, if coordinates are in its pixels."""
    boxes, points, polygons, traces = ([one] if one is not None else [] for one in typed)
    unit = (1, 1) if in_pixels is None else in_pixels.size
    regions = Pointing(photo, unit).regions(boxes, points, polygons, traces, [mask] if mask else [])
    if len(regions) > 1:
        raise InvalidValue("region", f"{len(regions)} are given", "point at one")
    return regions[0] if regions else None


def _place(word: str, text: str) -> int:
    """The place of a word among those of a text, however it is written and whatever signs cling to it."""
    words = [_bare(one) for one in text.split()]
    if _bare(word) not in words:
        raise UnknownName("word of the caption", word, words)
    return words.index(_bare(word))


def _bare(word: str) -> str:
    return word.strip(".,!?;:\"'()").lower()


def _lines(reason: Reason) -> list[str]:
    lines = [f"{reason.said}: probability {math.exp(reason.score):.1%}"]
    if reason.faithfulness is not None:
        measured = f"{reason.faithfulness:.2f}, the rank correlation with occlusion"
        blind = "no order" if reason.blind_faithfulness is None else f"{reason.blind_faithfulness:.2f}"
        lines.append(f"faithfulness of the {reason.method} map: {measured}; of a map that ignores the word: {blind}")
    elif reason.method != "occlusion":
        lines.append(f"the {reason.method} map tells no place from another: all patches count the same")
    if reason.from_names is not None:
        less = f"{reason.from_names:.0%}"
        said = "as likely" if less == "0%" else f"{less} less likely"
        lines.append(f"without the detector's names it would be {said}")
    rows, cols = reason.weights.shape
    row, col = divmod(int(reason.weights.argmax()), cols)
    if reason.weights[row, col] > 0 and reason.method != "attention":
        lines.append(f"most of it came from patch {row + 1} of {rows} down, {col + 1} of {cols} across")
    return lines


def _draw(look: Look, heat: Any, png: Path) -> bool:
    """Whether there was something to draw. heat: (h, w) over the photo."""
    from saywhere.core import AttentionMap
    from saywhere.plots import draw_heatmap, save_png

    if not heat.max() > 0:
        return False
    save_png(draw_heatmap(look.image, AttentionMap(heat)), png)
    return True


def _say_json(look: Look, photo: Path, region: Region | None, reason: Reason | None, **values: Any) -> None:
    if reason is not None:
        values["reason"] = {
            "said": reason.said,
            "method": reason.method,
            "score": reason.score,
            "faithfulness": reason.faithfulness,
            "fall": reason.fall,
            "from_names": reason.from_names,
            "blind_faithfulness": reason.blind_faithfulness,
            "weights": reason.weights.tolist(),
        }
    say_json(look, photo, region=(region or WholeImage()).to_json(), **values)
