"""Photos as people see them: upright, eight bits, red green blue. Anything else is a clear error."""

from __future__ import annotations

import struct
import warnings
import zlib
from os import PathLike
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from saywhere.core.errors import InvalidFile

PhotoLike = str | PathLike[str] | Image.Image
"""A file or a Pillow image."""

# Pillow knows more, but some of those start other programs (EPS) or are not photos.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
# What Pillow is known to raise on damaged files.
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, zlib.error)
_WHITE = (255, 255, 255, 255)


def read_photo(photo: PhotoLike) -> Image.Image:
    """The photo in mode RGB, turned as its camera meant it, transparent parts on white. It is always a copy."""
    if isinstance(photo, Image.Image):
        return _opened(photo, "the image given")
    path = Path(photo)
    try:
        with warnings.catch_warnings():
            # A photo of a hundred megapixels is no attack; Pillow still refuses twice that.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=_FORMATS) as image:
                return _opened(image, path)
    except Image.DecompressionBombError as error:
        raise InvalidFile(path, "has too many pixels to be opened safely", "shrink it first") from error
    except UnidentifiedImageError as error:
        raise InvalidFile(path, "is not an image of a known kind", f"known: {', '.join(_FORMATS)}") from error
    except InvalidFile:
        raise
    except FileNotFoundError as error:
        raise InvalidFile(path, "does not exist") from error
    except IsADirectoryError as error:
        raise InvalidFile(path, "is a folder, not a photo") from error
    except _DAMAGE as error:
        raise InvalidFile(path, f"is damaged: {getattr(error, 'strerror', None) or error}") from error


def _opened(image: Image.Image, where: object) -> Image.Image:
    frames = getattr(image, "n_frames", 1)
    # A phone's JPEG may carry more pictures (MPO), such as a preview: the first one is the photo.
    if frames > 1 and image.format != "MPO":
        raise InvalidFile(where, f"holds {frames} pictures (animated or several pages), not one photo")
    return _rgb(ImageOps.exif_transpose(image), where)


def _rgb(image: Image.Image, where: object) -> Image.Image:
    if image.mode == "F" or (image.mode == "I" and _brightest(image) > 0xFFFF):
        raise InvalidFile(where, "holds measurements rather than 8- or 16-bit brightness", "convert it to 8 bits first")
    if image.mode.startswith("I"):
        # 16-bit greys: Pillow would cut them off at 255.
        return image.convert("I").point(lambda value: value / 257).convert("L").convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa", "P") or "transparency" in image.info:
        paper = Image.new("RGBA", image.size, _WHITE)
        return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB") if image.mode != "RGB" else image.copy()


def _brightest(image: Image.Image) -> float:
    extrema = image.getextrema()
    return max(abs(value) for value in extrema if isinstance(value, int | float))
