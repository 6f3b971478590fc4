"""Encoders behind one verb: look(photo) → View. Importing this package loads no torch; opening an encoder does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saywhere.vision.extract import StoredViews, extract, open_views
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.view import Encoder, View

if TYPE_CHECKING:
    from saywhere.vision.look import LiteEncoder

__all__ = ["Encoder", "PhotoLike", "StoredViews", "View", "extract", "open_encoder", "open_views", "read_photo"]


def open_encoder(name: str = "efficientnet-lite0", input_px: int = 448) -> LiteEncoder:
    """An encoder by name, its weights fetched if they are not there. input_px: side of the square the photo becomes."""
    from saywhere.core.errors import require

    require("torch", needed_for=f"the encoder {name!r}", extra="models")
    from saywhere.vision.look import open_lite

    return open_lite(name, input_px)
