"""Gaze: where one person looked, or moved a mouse instead of the eye, on one image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.trace import Trace
from saywhere.core.types import Floats, owned


@dataclass(frozen=True, slots=True, eq=False)
class Gaze:
    """The places one person looked at in one image, in their order.

    kind: "eye" for an eye tracker's fixations, "mouse" for a pointer that stood in for the eye.
    points_xy: (n ≥ 1, 2) fractions of the image's width and height; they may leave [0, 1].
    durations_s: (n,) seconds spent at each point, or None: then the order is all that is known of time.
    """

    image_id: int | str
    subject: str
    kind: Literal["mouse", "eye"]
    points_xy: Floats
    durations_s: Floats | None = None

    def __init__(
        self,
        image_id: int | str,
        subject: str,
        kind: Literal["mouse", "eye"],
        points_xy: ArrayLike,
        durations_s: ArrayLike | None = None,
    ) -> None:
        points = owned(points_xy, "gaze points", (None, 2))
        if not len(points):
            raise InvalidValue("gaze points", "are none")
        durations = None if durations_s is None else owned(durations_s, "gaze durations", (len(points),))
        if durations is not None and (durations < 0).any():
            raise InvalidValue("gaze durations", "hold a negative time")
        for name, value in (("image_id", image_id), ("subject", subject), ("kind", kind)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "points_xy", points)
        object.__setattr__(self, "durations_s", durations)

    def __len__(self) -> int:
        return len(self.points_xy)

    def trace(self, rate_hz: float) -> Trace:
        """A trace of the points, as if they had been sampled `rate_hz` times a second from second 0 on.

        The files give no times, so the rate is the caller's claim. Fixations with durations are not samples of equal
        length: for them it is an error.
        """
        if self.durations_s is not None:
            raise InvalidValue("gaze", "has durations, so its points are not evenly spaced in time")
        if not (np.isfinite(rate_hz) and rate_hz > 0):
            raise InvalidValue("rate_hz", f"is {rate_hz}, not a positive number")
        return Trace(np.column_stack([self.points_xy, np.arange(len(self)) / rate_hz]))
