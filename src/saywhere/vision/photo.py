"""Photos as people see them: upright, eight bits, red green blue. Anything else is a clear error.

Of a moving picture (GIF, WebP, APNG) the first one is the photo, and so it is of a phone's JPEG that carries previews.
A TIFF of several pages is refused, because nobody can know which page is meant. Of a picture that is hardly a
photograph, models that learnt from photographs are sure of nothing; `why_no_photo` tells.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from saywhere.core.errors import InvalidFile, InvalidValue

PhotoLike = str | PathLike[str] | bytes | Image.Image | NDArray[np.uint8]
"""A file, a file's content, a Pillow image, or (h, w), (h, w, 3) or (h, w, 4) bytes: grey, RGB or RGB with alpha."""

PHOTO_ENDINGS = frozenset((".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"))
"""Of names of files, in small letters."""
MOST_PIXELS = 100_000_000
"""Larger photos are refused before they are decoded."""

# Pillow knows more, but some of those start other programs (EPS) or are not photos.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
# What Pillow is known to raise on damaged files.
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError, struct.error, zlib.error)
_MOVING = ("GIF", "WEBP", "PNG")
_HEIC_HEAD, _HEIC_BRANDS = 12, (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")
HEIC = "is HEIC, as phones take photos; it is not read here"
HEIC_HINT = (
    "save it as JPEG: on an iPhone share it as “most compatible”, on a computer `heif-convert photo.heic photo.jpg` "
    "(libheif) or any photo viewer does it"
)
_WHITE = (255, 255, 255, 255)
_CLEAR_MODES = ("RGBA", "LA", "PA", "RGBa", "P")
_PLAIN_MODES = ("1", "L", "RGB", "RGBX", "CMYK", "YCbCr", "HSV")

_SIDE_PX = 512
_LONGEST = 8.0
"""Longer side by shorter one."""
_FLAT_SHARE, _NEAR = 0.7, 6
"""A drawing, a page of text or a plain surface: so much of it is within so many 8-bit steps of its commonest colour."""
_LEAST_ALIKE = 0.35
"""Neighbouring pixels of a photograph are alike: the correlation of brightness; that of noise is 0."""


class ReadPhoto(Image.Image):
    """A photo that `read_photo` has read; reading it again gives itself. What Pillow makes of it is a plain image.

    pictures: how many the file holds; the first one is the photo.
    """

    pictures: int


class _Refused(Exception):
    """Why a picture is no photo, before it is known whether it came from a file."""

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason, self.hint = reason, hint
        super().__init__(reason)


def read_photo(photo: PhotoLike) -> Image.Image:
    """The photo in mode RGB, turned as its camera meant it, transparent parts on white. It is a copy, but for a photo
    that was read already: that one is given back, so that it is read once on its way through encoders and detectors.

    What is wrong with a file is an InvalidFile, with anything else an InvalidValue.
    """
    if isinstance(photo, ReadPhoto):
        return photo
    try:
        read, pictures = _decoded(_source(photo))
    except _Refused as refused:
        if isinstance(photo, str | PathLike):
            raise InvalidFile(photo, refused.reason, refused.hint) from refused.__cause__
        raise InvalidValue("photo", refused.reason, refused.hint) from refused.__cause__
    # Pillow has no way to make an image of another class out of one; both have the same attributes.
    read.__class__ = ReadPhoto
    read.pictures = pictures  # type: ignore[attr-defined]
    return read


def _source(photo: PhotoLike) -> Path | io.BytesIO | Image.Image:
    if isinstance(photo, np.ndarray):
        return _image_of(photo)
    if isinstance(photo, bytes):
        return io.BytesIO(photo)
    return photo if isinstance(photo, Image.Image) else Path(photo)


def _decoded(source: Path | io.BytesIO | Image.Image) -> tuple[Image.Image, int]:
    """The photo, and how many pictures there are."""
    try:
        with warnings.catch_warnings():
            # Pillow warns at its own limit, and of odd metadata; neither keeps anyone from seeing the photo.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
            if isinstance(source, Image.Image):
                return _rgb_photo(source), 1
            with Image.open(source, formats=_FORMATS) as image:
                # A phone's JPEG may carry previews behind the photo; that is no animation.
                pictures = int(getattr(image, "n_frames", 1)) if image.format in _MOVING else 1
                return _rgb_photo(image), pictures
    except Image.DecompressionBombError as error:
        raise _Refused(f"has more than {MOST_PIXELS // 10**6} million pixels", "shrink it first") from error
    except UnidentifiedImageError as error:
        if is_heic(_head(source)):
            raise _Refused(HEIC, HEIC_HINT) from error
        raise _Refused("is not an image", f"known kinds: {', '.join(_FORMATS)}") from error
    except FileNotFoundError as error:
        raise _Refused("was not found") from error
    except IsADirectoryError as error:
        raise _Refused("is a folder, not a photo") from error
    except _DAMAGE as error:
        raise _Refused(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _head(source: Path | io.BytesIO | Image.Image) -> bytes:
    """How a file begins."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return file.read(_HEIC_HEAD)
    return source.getvalue()[:_HEIC_HEAD] if isinstance(source, io.BytesIO) else b""


def is_heic(head: bytes) -> bool:
    """Whether a file that begins so is HEIC."""
    return head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS


def _image_of(pixels: NDArray[np.uint8]) -> Image.Image:
    channels = pixels.shape[2:]
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or channels not in ((), (3,), (4,)) or not pixels.size:
        raise _Refused(
            f"is an array of {pixels.dtype} {pixels.shape}, not of uint8 (h, w), (h, w, 3) or (h, w, 4)",
            "scale it to 0 … 255 and put the channels last",
        )
    return Image.fromarray(pixels)


def _rgb_photo(image: Image.Image) -> Image.Image:
    """Everything that can be known without decoding is checked first."""
    width, height = image.size
    if not width or not height:
        raise _Refused(f"has no pixels: {width}×{height}")
    if width * height > MOST_PIXELS:
        raise _Refused(
            f"has {width}×{height} pixels, more than {MOST_PIXELS // 10**6} million of them", "shrink it first"
        )
    if image.format == "TIFF" and getattr(image, "n_frames", 1) > 1:
        raise _Refused(f"holds {getattr(image, 'n_frames', 1)} pages, not one photo", "save the page you mean")
    return _rgb(ImageOps.exif_transpose(image))


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode == "F" or (image.mode == "I" and _brightest(image) > 0xFFFF):
        raise _Refused("holds measurements rather than 8- or 16-bit brightness", "convert it to 8 bits first")
    if image.mode.startswith("I"):
        # 16-bit greys: Pillow would cut them off at 255.
        return image.convert("I").point(lambda value: value / 257).convert("L").convert("RGB")
    if image.mode in _CLEAR_MODES or "transparency" in image.info:
        paper = Image.new("RGBA", image.size, _WHITE)
        return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")
    if image.mode not in _PLAIN_MODES:
        raise _Refused(f"has colours of the kind {image.mode}", "convert it to RGB first")
    return image.convert("RGB") if image.mode != "RGB" else image.copy()


def _brightest(image: Image.Image) -> float:
    extrema = image.getextrema()
    return max(abs(value) for value in extrema if isinstance(value, int | float))


def why_no_photo(image: Image.Image) -> str:
    """What speaks against a picture's being a photograph; empty if nothing does.

    >>> why_no_photo(Image.new("RGB", (64, 64), "red"))
    'it is mostly of one colour'
    """
    width, height = image.size
    if max(width, height) > _LONGEST * min(width, height):
        return f"it is {width} × {height} pixels"
    pixels = np.asarray(image.convert("RGB").crop(_middle(width, height)), np.int16)
    commonest = np.median(pixels.reshape(-1, 3), axis=0)
    if (np.abs(pixels - commonest).max(axis=-1) <= _NEAR).mean() > _FLAT_SHARE:
        return "it is mostly of one colour"
    bright = pixels.mean(axis=-1)
    beside, right = bright[:, :-1].ravel(), bright[:, 1:].ravel()
    if beside.std() and right.std() and np.corrcoef(beside, right)[0, 1] < _LEAST_ALIKE:
        return "it is noise"
    return ""


def _middle(width: int, height: int) -> tuple[int, int, int, int]:
    """The middle of a picture, at its own size: shrinking would make noise smooth."""
    wide, high = min(width, _SIDE_PX), min(height, _SIDE_PX)
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high
