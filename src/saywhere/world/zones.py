"""Zones: where in a picture things may stand, hang, swim and fly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from saywhere.world.paper import Paper


@dataclass(frozen=True, slots=True)
class Zone:
    """An area for things, in fractions. They stand in it with their base, or hang in it with their centre.

    stuff: what they are on or in. order: what is painted first; the same order goes by depth. near, far: scale at the
    zone's lower and upper edge. centred: whether it is the centre that lies in the zone.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    stuff: str
    far: float = 1.0
    near: float = 1.0
    order: int = 1
    centred: bool = False


Painter = Callable[[Paper, np.random.Generator], dict[str, Zone]]
"""Paints one background and says where its zones are."""
