"""Text on figures and pages: any characters in, no warning and no surprise out."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties

_UNREADABLE = "\N{REPLACEMENT CHARACTER}"
_NO_GLYPH = "\N{WHITE SQUARE}"


def printable(text: str) -> str:
    """The text on one line, control characters and half characters (lone surrogates) replaced by �."""
    return "".join(" " if c.isspace() else _UNREADABLE if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def safe(text: str) -> str:
    """Any text as text of a page, inside elements and quoted attributes."""
    return escape(printable(text), quote=True)


def digest(content: str) -> str:
    """How a content security policy names one inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def drawable(text: str) -> str:
    """The text with what figures cannot draw replaced by □: their font has no Chinese, for instance; the page has."""
    known = _glyphs()
    return "".join(c if ord(c) in known else _NO_GLYPH for c in printable(text))


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning and end around an ellipsis."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def seconds(time_s: float) -> str:
    """A time for people: 3.2 s, 1:05 min, 1.2e+05 s."""
    if abs(time_s) >= 36000:
        return f"{time_s:.3g} s"
    tenths = round(abs(time_s) * 10)
    sign = "−" if time_s < 0 and tenths else ""
    if tenths < 600:
        return f"{sign}{tenths / 10:.1f} s"
    minutes, rest = divmod(round(abs(time_s)), 60)
    return f"{sign}{minutes}:{rest:02d} min"


@lru_cache(maxsize=2)
def font(bold: bool = False) -> FontProperties:
    """DejaVu Sans as matplotlib brings it, whatever the user's own settings say."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(fname=_font_file("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"))


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(_font_file("DejaVuSans.ttf")).get_charmap())


def _font_file(name: str) -> str:
    from matplotlib import get_data_path

    return str(Path(get_data_path()) / "fonts" / "ttf" / name)
