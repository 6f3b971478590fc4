"""VQA-HAT (Das et al., 2016): where people looked to answer a question, as a folder of PNG files.

Each file is the attention map of one person for one question and its image, named <question_id>_<n>.png: n is 1 for
the questions of the training set and 1 to 3 for those of the validation set. Brighter is more attention. Maps are as
large as the photo was shown and cover all of it.

One value for each .png file, in the order of question and person; other files of the folder are not looked at. One
file alone is read, too. Grey pictures of 1 to 16 bits are taken, and colour ones whose channels are equal. Bad records
are: other names, pictures with real colours or transparency, damaged or gigantic ones, and maps that are zero
everywhere.
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saywhere.core.attention import AttentionMap
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats
from saywhere.formats._boxes import MAX_SIDE_PX
from saywhere.formats.files import read_bytes
from saywhere.formats.record import InvalidRecord

_NAME = re.compile(r"([0-9]{1,18})_([0-9]{1,9})\.png", re.IGNORECASE)
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_GREY_MODES = ("1", "L", "I", "I;16")
_COLOUR_MODES = ("RGB", "P")


@dataclass(frozen=True, slots=True)
class HumanAttention:
    """Where one person looked to answer one question. annotator: the person's number among those of the question."""

    question_id: int
    annotator: int
    attention: AttentionMap


def sniff(path: Path, head: bytes) -> bool:
    """Whether this is a PNG file, or a folder with one, that is named as in VQA-HAT."""
    if path.is_dir():
        return any(_NAME.fullmatch(file.name) for file in path.glob("*.[pP][nN][gG]"))
    return head.startswith(_PNG_MAGIC) and _NAME.fullmatch(path.name) is not None


def read(path: str | Path) -> Iterator[HumanAttention | InvalidRecord]:
    """One value for each PNG file of a folder, or of one file."""
    path = Path(path)
    files = sorted(path.glob("*.[pP][nN][gG]"), key=_order) if path.is_dir() else [path]
    if not files:
        raise InvalidFile(path, "holds no .png files")
    for file in files:
        try:
            yield _read_file(file)
        except InvalidValue as error:
            yield InvalidRecord(str(file), 0, f"{error.what} {error.reason}")
        except InvalidFile as error:
            if not path.is_dir():
                raise
            yield InvalidRecord(str(file), 0, error.reason)


def _order(file: Path) -> tuple[int, int, str]:
    name = _NAME.fullmatch(file.name)
    return (int(name[1]), int(name[2]), file.name) if name else (-1, -1, file.name)


def _read_file(file: Path) -> HumanAttention:
    name = _NAME.fullmatch(file.name)
    if name is None:
        raise InvalidValue("the name", "is not <question_id>_<n>.png")
    return HumanAttention(int(name[1]), int(name[2]), AttentionMap(_grey(file)))


def _grey(file: Path) -> Floats:
    """(h, w) brightness, from 0."""
    import io

    from PIL import Image

    content = read_bytes(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
                if max(picture.size) > MAX_SIDE_PX:
                    raise InvalidValue("the picture", f"is larger than {MAX_SIDE_PX} pixels")
                mode = picture.mode
                pixels = np.asarray(picture.convert("RGB") if mode == "P" else picture)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InvalidValue("the picture", f"is too large: {error}") from error
    except (OSError, SyntaxError, ValueError, EOFError, OverflowError, zlib.error) as error:
        raise InvalidFile(file, f"is not a readable PNG file: {error}") from error
    if mode not in _GREY_MODES + _COLOUR_MODES or "transparency" in picture.info:
        raise InvalidValue("the picture", f"(mode {mode}) has transparency or is of another kind than grey")
    if pixels.ndim == 3:
        if (pixels != pixels[..., :1]).any():
            raise InvalidValue("the picture", "has colours, so it is not a map of one value a pixel")
        pixels = pixels[..., 0]
    return pixels.astype(np.float64)
