"""Scene: a picture together with everything that is true of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidValue
from saywhere.world.kinds import KINDS

BoxXyxy = tuple[float, float, float, float]

_CLEAR_SHARE = 0.35
_CLEAR_AREA = 0.0012
_SMALL_AREA, _LARGE_AREA = 0.012, 0.06


@dataclass(frozen=True, slots=True)
class Thing:
    """Something in a scene: an object, or stuff such as sky and grass.

    kind: a name from KINDS or STUFF. colour: its name; empty for stuff. pose: "sitting", "walking" …, or empty.
    box_xyxy: bounds of what is seen, in fractions. area: seen share of the picture. visible: seen share of the thing.
    depth: 0 at the front … 1 at the back. on: index of the thing that it stands on or is in.
    identity: the same for the same thing in all frames of a video, where its index may change.
    """

    kind: str
    colour: str
    pose: str
    box_xyxy: BoxXyxy
    area: float
    visible: float
    depth: float
    on: int | None = None
    stuff: bool = False
    identity: int = 0

    @property
    def group(self) -> str:
        """ "person", "animal", "vehicle" …, or "stuff"."""
        return "stuff" if self.stuff else KINDS[self.kind].group

    @property
    def size(self) -> str:
        """ "small", "medium" or "large" on the picture."""
        return "small" if self.area < _SMALL_AREA else "large" if self.area > _LARGE_AREA else "medium"

    @property
    def clear(self) -> bool:
        """Whether a person would see at once what it is: enough of it is visible, and it is not tiny."""
        return self.visible >= _CLEAR_SHARE and self.area >= _CLEAR_AREA

    @property
    def centre(self) -> tuple[float, float]:
        x1, y1, x2, y2 = self.box_xyxy
        return (x1 + x2) / 2, (y1 + y2) / 2


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One picture and its truth.

    index: its number in the world of its seed. place: "kitchen", "beach" …
    photo: (size, size, 3) uint8, read-only. labels: (size, size) uint8, read-only: at each pixel 1 + the index of the
    thing that is seen there. things: objects first, then stuff; each has at least one visible pixel.
    """

    index: int
    place: str
    photo: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    things: tuple[Thing, ...]

    @property
    def image_id(self) -> str:
        return str(self.index)

    @property
    def size(self) -> int:
        """Width and height in pixels."""
        return int(self.photo.shape[0])

    @property
    def objects(self) -> tuple[int, ...]:
        """Indices of the things that are not stuff."""
        return tuple(i for i, thing in enumerate(self.things) if not thing.stuff)

    @property
    def tags(self) -> tuple[str, ...]:
        """The kinds of the clearly visible objects, each once, the largest first."""
        ranked = sorted((self.things[i] for i in self.objects if self.things[i].clear), key=lambda t: -t.area)
        return tuple(dict.fromkeys(thing.kind for thing in ranked))

    def mask(self, index: int) -> NDArray[np.bool_]:
        """(size, size) where the thing is seen."""
        if not 0 <= index < len(self.things):
            raise InvalidValue("thing", f"{index} is not one of the {len(self.things)} things of scene {self.index}")
        seen: NDArray[np.bool_] = self.labels == index + 1
        return seen
