"""Large multimodal models as baselines: any OpenAI-compatible endpoint that takes images (Patch-ioner, Section 8).

Such models have no input for regions, so the region goes into the picture: *visual prompting* draws it on the photo in
red and asks about what is marked; *cropping* sends only the part of the photo around it. Both are captioners of
`region_tasks`, one question for each region.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from saywhere.build.llm import Chat, Message
from saywhere.core import Box, BoxSet, InvalidValue, Mask, Point, Polygon, Region, Trace, WholeImage
from saywhere.vision.photo import PhotoLike, read_photo

Photos = Callable[[str], PhotoLike]
"""Image id → its photo."""

BoxXyxy = tuple[float, float, float, float]

RED = (255, 0, 0)
_SHARE_OF_SIDE = 1 / 150
_ASK_WHOLE = "Describe this image in one short sentence, like a caption. Answer with the caption alone."
_ASK_MARKED = (
    "Describe what is {where} in red in this image, in one short sentence, like a caption. Do not mention the red "
    "{mark} or the rest of the image. Answer with the caption alone."
)
_MARKS = {
    Box: ("inside the box", "box"),
    BoxSet: ("inside the boxes", "boxes"),
    Trace: ("under the line", "line"),
    Point: ("at the circle", "circle"),
    Mask: ("inside the outline", "outline"),
    Polygon: ("inside the outline", "outline"),
}


@dataclass(frozen=True, slots=True)
class VisualPrompting:
    """Draws the region on the photo and asks for a caption of it. max_side_px: larger photos are shrunk to it."""

    chat: Chat
    photos: Photos
    max_side_px: int = 1024
    workers: int = 4

    def captions(self, image_id: str, regions: Sequence[Region]) -> list[str]:
        """One caption for each region, in order."""
        photo = shrunk(read_photo(self.photos(image_id)), self.max_side_px)
        questions = [_question(marked(photo, region), _instruction(region)) for region in regions]
        return [one_line(answer) for answer in self.chat.ask_many(questions, self.workers)]


@dataclass(frozen=True, slots=True)
class Cropping:
    """Sends the part of the photo around the region and asks for a caption.

    margin: how much of its surroundings comes along, as a share of the region's width and height on each side; the
    paper uses 0. min_side: the crop is at least this share of the photo's sides, so that a point shows something.
    """

    chat: Chat
    photos: Photos
    margin: float = 0.1
    min_side: float = 0.1
    max_side_px: int = 1024
    workers: int = 4

    def __post_init__(self) -> None:
        if not (self.margin >= 0 and 0 < self.min_side <= 1):
            raise InvalidValue("Cropping", "margin must be at least 0, min_side above 0 and at most 1")

    def captions(self, image_id: str, regions: Sequence[Region]) -> list[str]:
        """One caption for each region, in order."""
        photo = read_photo(self.photos(image_id))
        crops = [cropped(photo, region, self.margin, self.min_side) for region in regions]
        questions = [_question(shrunk(crop, self.max_side_px), _ASK_WHOLE) for crop in crops]
        return [one_line(answer) for answer in self.chat.ask_many(questions, self.workers)]


def bounds_xyxy(region: Region) -> BoxXyxy:
    """The box around a region, in fractions of the photo and inside it. InvalidValue if none of it is on the photo."""
    if isinstance(region, WholeImage):
        return 0.0, 0.0, 1.0, 1.0
    if isinstance(region, Mask):
        return _mask_bounds(region)
    points = _corners(region)
    if isinstance(region, Trace):
        points = points[((points >= 0) & (points <= 1)).all(axis=1)]
        if not len(points):
            raise InvalidValue("trace", "has no point on the photo")
    (x1, y1), (x2, y2) = np.clip(points.min(axis=0), 0, 1).tolist(), np.clip(points.max(axis=0), 0, 1).tolist()
    if isinstance(region, Box | BoxSet | Polygon) and (x1 >= x2 or y1 >= y2):
        raise InvalidValue("region", "lies outside the photo")
    if isinstance(region, Point) and not (0 <= region.x <= 1 and 0 <= region.y <= 1):
        raise InvalidValue("point", "lies outside the photo")
    return x1, y1, x2, y2


def _corners(region: Region) -> np.ndarray:
    """(n, 2) the points that a region is made of."""
    match region:
        case Box():
            return np.array(region.xyxy).reshape(2, 2)
        case BoxSet():
            return np.concatenate([np.array(box.xyxy).reshape(2, 2) for box in region.boxes])
        case Point():
            return np.array([[region.x, region.y]])
        case Polygon():
            return region.points_xy
        case Trace():
            return region.xy
        case _:
            raise InvalidValue(
                "region", f"a {type(region).__name__} has no outline of its own", "give a box, trace, point or mask"
            )


def _mask_bounds(mask: Mask) -> BoxXyxy:
    rows, cols = np.nonzero(mask.values)
    height, width = mask.values.shape
    return cols.min() / width, rows.min() / height, (cols.max() + 1) / width, (rows.max() + 1) / height


def cropped(photo: Image.Image, region: Region, margin: float, min_side: float) -> Image.Image:
    """The part of the photo around a region."""
    x1, y1, x2, y2 = bounds_xyxy(region)
    left, right = _widened(x1, x2, margin, min_side)
    top, bottom = _widened(y1, y2, margin, min_side)
    (x1_px, x2_px), (y1_px, y2_px) = (
        _pixels(*side) for side in ((left, right, photo.width), (top, bottom, photo.height))
    )
    return photo.crop((x1_px, y1_px, x2_px, y2_px))


def _pixels(low: float, high: float, size_px: int) -> tuple[int, int]:
    """The pixels that an interval of fractions touches, at least one; a rounding error touches none."""
    first = min(math.floor(low * size_px + 1e-6), size_px - 1)
    return first, max(math.ceil(high * size_px - 1e-6), first + 1)


def _widened(low: float, high: float, margin: float, at_least: float) -> tuple[float, float]:
    """The interval with a margin on each side, no shorter than asked, moved and cut to lie in [0, 1]."""
    length = max((high - low) * (1 + 2 * margin), at_least)
    low = (low + high - length) / 2
    low = min(max(low, 0.0), max(1.0 - length, 0.0))
    return low, min(low + length, 1.0)


def marked(photo: Image.Image, region: Region) -> Image.Image:
    """A copy of the photo with the region drawn on it in red. The whole image needs no mark."""
    drawn = photo.copy()
    if isinstance(region, WholeImage):
        return drawn
    bounds_xyxy(region)  # an error if there is nothing to draw
    size_px = np.array(photo.size)
    width_px = max(2, round(max(photo.size) * _SHARE_OF_SIDE))
    pen = ImageDraw.Draw(drawn)
    match region:
        case Box() | BoxSet():
            for box in region.boxes if isinstance(region, BoxSet) else (region,):
                corners_px = np.clip(np.array(box.xyxy).reshape(2, 2), 0, 1) * (size_px - 1)
                pen.rectangle(corners_px.ravel().tolist(), outline=RED, width=width_px)
        case Point():
            _circle(pen, np.array([region.x, region.y]) * size_px, 4 * width_px, width_px)
        case Trace():
            for stroke in region.segments:
                _line(pen, stroke[:, :2] * size_px, width_px)
        case Polygon():
            _line(pen, np.concatenate([region.points_xy, region.points_xy[:1]]) * size_px, width_px)
        case Mask():
            drawn.paste(RED, mask=_outline(region, photo.size, width_px))
    return drawn


def _line(pen: ImageDraw.ImageDraw, points_px: np.ndarray, width_px: int) -> None:
    if len(points_px) == 1:
        x, y = points_px[0].tolist()
        pen.ellipse((x - width_px, y - width_px, x + width_px, y + width_px), fill=RED)
    else:
        pen.line([tuple(point) for point in points_px.tolist()], fill=RED, width=width_px, joint="curve")


def _circle(pen: ImageDraw.ImageDraw, centre_px: np.ndarray, radius_px: int, width_px: int) -> None:
    x, y = centre_px.tolist()
    pen.ellipse((x - radius_px, y - radius_px, x + radius_px, y + radius_px), outline=RED, width=width_px)


def _outline(mask: Mask, size_px: tuple[int, int], width_px: int) -> Image.Image:
    """The edge of a mask on a photo of this size, `width_px` wide, as a grey image."""
    from PIL import ImageChops, ImageFilter

    inside = Image.fromarray(np.where(mask.values > 0, 255, 0).astype(np.uint8)).resize(
        size_px, Image.Resampling.NEAREST
    )
    side_px = width_px // 2 * 2 + 1
    return ImageChops.difference(
        inside.filter(ImageFilter.MaxFilter(side_px)), inside.filter(ImageFilter.MinFilter(side_px))
    )


def shrunk(photo: Image.Image, max_side_px: int) -> Image.Image:
    """The photo, made smaller if a side is longer than this."""
    scale = max_side_px / max(photo.size)
    if scale >= 1:
        return photo
    width, height = (max(1, round(side * scale)) for side in photo.size)
    return photo.resize((width, height), Image.Resampling.LANCZOS)


def data_url(photo: Image.Image) -> str:
    """The photo as a JPEG inside an address."""
    packed = io.BytesIO()
    # Full colour resolution, because halving it would blur a thin red line away.
    photo.save(packed, "JPEG", quality=92, subsampling=0)
    return "data:image/jpeg;base64," + base64.b64encode(packed.getvalue()).decode("ascii")


def one_line(answer: str) -> str:
    """The first line of an answer, without quotes and the full stop at its end."""
    line = next((line for line in answer.splitlines() if line.strip()), "")
    return line.strip(" \"'“”*").rstrip(" .")


def _instruction(region: Region) -> str:
    if isinstance(region, WholeImage):
        return _ASK_WHOLE
    where, mark = next(words for kind, words in _MARKS.items() if isinstance(region, kind))
    return _ASK_MARKED.format(where=where, mark=mark)


def _question(photo: Image.Image, instruction: str) -> list[Message]:
    shown = {"type": "image_url", "image_url": {"url": data_url(photo)}}
    return [{"role": "user", "content": [{"type": "text", "text": instruction}, shown]}]
