"""`saywhere chat`: a conversation about a photo, in the terminal or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere import loading
from saywhere.cli.asking import BoxAt, MaskAt, Pixels, PointAt, PolygonAt, TraceAt, region_of
from saywhere.cli.console import err, out
from saywhere.cli.pointing import Pointing
from saywhere.cli.seeing import Model, Photo, busy, looked, opened, read_first
from saywhere.core import Box, InvalidValue, Region, Trace

if TYPE_CHECKING:
    from PIL import Image

    from saywhere.models.face import Spoken

Pictures = Annotated[
    Path | None,
    typer.Option(
        "--png",
        metavar="FILE|DIR",
        help="Also draw what answers point out: the latest into a .png file, or each into a folder.",
    ),
]
_POINTING = "@"
_POINT_NUMBERS = 2


def chat(
    photo: Photo,
    box: BoxAt = None,
    point: PointAt = None,
    polygon: PolygonAt = None,
    trace: TraceAt = None,
    mask: MaskAt = None,
    pixels: Pixels = False,
    png: Pictures = None,
    model: Model = loading.BASE,
) -> None:
    """Talk about a photo: a line is a turn, an empty line ends it.

    The options say what the first turn points at. A later line may begin with @X,Y or @X1,Y1,X2,Y2 to point again.
    """
    image = read_first(photo)
    region = region_of(photo, image if pixels else None, (box, point, polygon, trace), mask)
    pointing = Pointing(photo, image.size) if pixels else Pointing(photo)
    conversation = looked(opened(model, "chat"), photo, image).chat()
    for number, line in enumerate(_lines(), 1):
        try:
            text, again = _pointed(line, pointing)
            with busy("answering"):
                spoken = conversation.say(text, again or region)
        except InvalidValue as error:
            err.print(str(error), markup=False, style="yellow")
            continue
        region = None
        _show(spoken)
        if png is not None and spoken.regions:
            _draw(image, spoken.regions, png, number)


def _lines() -> Iterator[str]:
    """What is typed, until an empty line or the end."""
    while True:
        if sys.stdin.isatty():
            out.print("> ", end="")
        line = sys.stdin.readline().strip()
        if not line:
            return
        yield line


def _pointed(line: str, pointing: Pointing) -> tuple[str, Region | None]:
    """The words of a line, and what it points at."""
    if not line.startswith(_POINTING):
        return line, None
    where, _, text = line[len(_POINTING) :].partition(" ")
    is_point = where.count(",") + 1 == _POINT_NUMBERS
    [region] = pointing.regions([] if is_point else [where], [where] if is_point else [], [], [])
    if not text.strip():
        raise InvalidValue("turn", "points and says nothing", "write words after the place")
    return text.strip(), region


def _show(spoken: Spoken) -> None:
    if spoken.text:
        out.print(spoken.text, markup=False)
    elif not spoken.regions:
        err.print("the model said nothing", style="yellow")
    for region in spoken.regions:
        out.print(f"  → {_place(region)}", markup=False)
    if spoken.forgotten:
        told = f"the first {spoken.forgotten} messages were left out"
        err.print(f"there is room for so much only: {told}", style="yellow")
    for lost in spoken.lost:
        err.print(f"lost of the answer: {lost}", markup=False, style="yellow")


def _draw(image: Image.Image, regions: Sequence[Region], png: Path, number: int) -> None:
    """number: of the line that was answered."""
    from saywhere.plots.pointed import draw_pointed
    from saywhere.plots.sheet import save_png

    file = png if _is_file(png) else png / f"turn-{number:03d}.png"
    save_png(draw_pointed(image, regions), file)
    out.print(f"  → {file}", markup=False)


def _is_file(png: Path) -> bool:
    return png.suffix.lower() == ".png" and not png.is_dir()


def _place(region: Region) -> str:
    """A region in a few numbers."""
    if isinstance(region, Box):
        return "box " + ",".join(f"{number:.2f}" for number in (region.x1, region.y1, region.x2, region.y2))
    if isinstance(region, Trace):
        return "trace " + ";".join(f"{x:.2f},{y:.2f}" for x, y in region.xy.tolist())
    return type(region).__name__.lower()
