"""Contact sheets: many scenes on one picture."""

from __future__ import annotations

from collections.abc import Iterable

from PIL import Image

from saywhere.core.errors import InvalidValue
from saywhere.world.scene import Scene

_MARGIN_PX = 4
_PAPER = (250, 250, 248)


def contact_sheet(scenes: Iterable[Scene], columns: int = 8) -> Image.Image:
    """The scenes row by row, without words. They must be of one size."""
    listed = list(scenes)
    if not listed or columns < 1:
        raise InvalidValue("contact sheet", f"of {len(listed)} scenes in {columns} columns: needs at least one of each")
    size = listed[0].size
    if any(scene.size != size for scene in listed):
        raise InvalidValue("contact sheet", "the scenes are of different sizes")
    columns = min(columns, len(listed))
    rows = -(-len(listed) // columns)
    pitch = size + _MARGIN_PX
    sheet = Image.new("RGB", (columns * pitch + _MARGIN_PX, rows * pitch + _MARGIN_PX), _PAPER)
    for k, scene in enumerate(listed):
        sheet.paste(Image.fromarray(scene.photo), (_MARGIN_PX + k % columns * pitch, _MARGIN_PX + k // columns * pitch))
    return sheet
