"""A reader of photos that some of them crash, and some keep busy for ever: what damaged files do to real decoders."""

from __future__ import annotations

import os
import time
from pathlib import Path

from PIL import Image

from saywhere.vision.photo import read_photo
from saywhere.vision.photo_reader import serve

CRASHING, SLOW = b"crashes the decoder", b"takes minutes"
TIMEOUT_S = 2.0
"""Long enough for any other photo, on a busy machine, too."""


def read_oddly(photo: bytes | Path) -> Image.Image:
    content = photo.read_bytes() if isinstance(photo, Path) else photo
    if content == CRASHING:
        os.abort()
    if content == SLOW:
        time.sleep(600)
    return read_photo(photo)


if __name__ == "__main__":
    serve(read_oddly)
