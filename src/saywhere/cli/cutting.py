"""`saywhere segment`: what is pointed at, or named, cut out of a photo."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer

from saywhere import loading
from saywhere.cli.asking import BoxAt, MaskAt, Pixels, PointAt, PolygonAt, TraceAt, region_of
from saywhere.cli.console import out
from saywhere.cli.seeing import (
    AsJson,
    Model,
    Photo,
    Png,
    busy,
    check_png,
    fetch_missing,
    looked,
    opened,
    read_first,
    say_json,
)
from saywhere.core import InvalidValue, Mask


def segment(
    photo: Photo,
    phrase: Annotated[str, typer.Option(help="Words for what to cut out, such as: the red cup.")] = "",
    box: BoxAt = None,
    point: PointAt = None,
    polygon: PolygonAt = None,
    trace: TraceAt = None,
    mask: MaskAt = None,
    pixels: Pixels = False,
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="File to write the mask to, a PNG that is white inside."),
    ] = None,
    png: Png = None,
    model: Model = loading.BASE,
    as_json: AsJson = False,
) -> None:
    """Cut out what is pointed at in a photo, or what is named."""
    check_png(png)
    if output is not None and output.suffix.lower() != ".png":
        raise InvalidValue("--out", f"{output.name} does not end in .png")
    image = read_first(photo)
    region = region_of(photo, image if pixels else None, (box, point, polygon, trace), mask)
    if (region is None) == (not phrase.split()):
        raise InvalidValue("what to cut out", "is not given" if region is None else "is given twice", _HOW)
    fetch_missing(loading.needed_for_masks(model))
    look = looked(opened(model, "segment", texts=region is None), photo, image)
    with busy("cutting out"):
        found = look.segment(phrase if region is None else region)
    if output is not None:
        _save_mask(found, output)
    if png is not None:
        from saywhere.plots.cut_out import draw_cut_out
        from saywhere.plots.sheet import save_png

        save_png(draw_cut_out(look.image, found, region), png)
    if as_json:
        from saywhere.core.run_lengths import runs_of

        runs = {"size": list(found.values.shape), "counts": runs_of(found.values > 0)}
        asked = {"phrase": phrase} if region is None else {"region": region.to_json()}
        say_json(look, photo, **asked, mask=runs, box_xyxy=_box(found))
        return
    share = (found.values > 0).mean()
    out.print(f"{share:.1%} of the photo, inside {','.join(f'{n:.3f}' for n in _box(found))}", markup=False)


_HOW = "name it with --phrase, or point at it with --box, --point, --polygon, --trace or --mask"


def _box(mask: Mask) -> list[float]:
    """Left, top, right, bottom, in fractions of the photo."""
    [outline] = mask.outlines()
    return [*outline.min(axis=0).tolist(), *outline.max(axis=0).tolist()]


def _save_mask(mask: Mask, path: Path) -> None:
    from PIL import Image

    from saywhere.atomic import write_atomic

    packed = io.BytesIO()
    Image.fromarray(mask.values > 0).save(packed, "PNG")
    with write_atomic(path) as file:
        file.write(packed.getvalue())
