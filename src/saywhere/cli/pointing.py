"""Regions as people type them: numbers between commas, points between semicolons, or a file of narratives."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saywhere.core import Box, Frame, InvalidFile, InvalidValue, Mask, Narrative, Point, Polygon, Region, Trace

_RATE_HZ = 60.0
_SPEED = 0.5
"""Fractions of the photo a second: the pace of a pointer along points typed without times."""
_PIXELS_FROM = 2.0
"""Fractions above this were meant as pixels."""
_FINE = Frame.of_grid(64, 64)


@dataclass(frozen=True, slots=True)
class Pointing:
    """Reads regions of one photo. unit: what numbers are divided by, in x and y: 1, or the photo's size in pixels."""

    photo: Path
    unit: tuple[float, float] = (1.0, 1.0)

    def regions(
        self,
        boxes: Sequence[str],
        points: Sequence[str],
        polygons: Sequence[str],
        traces: Sequence[str],
        masks: Sequence[Path] = (),
    ) -> list[Region]:
        """All of them, in this order. One that is not on the photo is an error here, before anything heavy."""
        regions: list[Region] = [Box(*self._row("--box", text, 4)) for text in boxes]
        regions += [Point(*self._row("--point", text, 2)) for text in points]
        regions += [Polygon(self._rows("--polygon", text, 2)) for text in polygons]
        for text in traces:
            regions += self._traces(text)
        regions += [_mask(path) for path in masks]
        for region in regions:
            region.weights(_FINE)
        return regions

    def _row(self, option: str, text: str, count: int) -> list[float]:
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError as error:
            raise InvalidValue(option, f"{text!r} is not numbers between commas") from error
        if len(numbers) != count:
            raise InvalidValue(option, f"{text!r} holds {len(numbers)} numbers, not {count}")
        if not all(math.isfinite(number) for number in numbers):
            raise InvalidValue(option, f"{text!r} holds NaN or infinity")
        # Two by two x and y; a third one of a trace is a time.
        units = [*self.unit, *self.unit] if count == 4 else [*self.unit, 1.0]
        fractions = [number / unit for number, unit in zip(numbers, units, strict=False)]
        if option != "--trace":
            self._check_on_photo(option, text, fractions)
        return fractions

    def _check_on_photo(self, option: str, text: str, fractions: Sequence[float]) -> None:
        """People overshoot the edge while they point, but nobody types a box that is not on the photo."""
        if max(fractions) > _PIXELS_FROM and self.unit == (1.0, 1.0):
            raise InvalidValue(option, f"{text!r} is not in fractions of the photo", "for pixels, add --pixels")
        if self.unit != (1.0, 1.0) and not all(0 <= one <= 1 for one in fractions):
            width, height = (int(side) for side in self.unit)
            raise InvalidValue(option, f"{text!r} is not on the photo, which has {width} × {height} pixels")

    def _rows(self, option: str, text: str, count: int) -> NDArray[np.float64]:
        points = [self._row(option, part, count) for part in re.split(r"[;\s]+", text.strip("; \t")) if part]
        return np.array(points, dtype=np.float64).reshape(-1, count)

    def _traces(self, text: str) -> list[Trace]:
        # Many points are too long for the name of a file, at which Path.is_file would raise.
        if "," not in text or os.path.isfile(text):  # noqa: PTH113
            return _traces_of(Path(text), self.photo)
        timed = text.split(";")[0].count(",") == 2
        rows = self._rows("--trace", text, 3 if timed else 2)
        if not timed:
            steps = np.linalg.norm(np.diff(rows, axis=0), axis=1) / _SPEED
            rows = np.column_stack([rows, np.append(0.0, np.cumsum(steps))])
        # Between typed points the pointer moved, too.
        return [Trace(rows).resample(_RATE_HZ)]


def _mask(path: Path) -> Mask:
    """An image laid over the whole photo, whatever its resolution: the brighter, the more it counts."""
    from saywhere.vision import read_photo

    grey = np.asarray(read_photo(path).convert("L"))
    if not grey.any():
        raise InvalidFile(path, "is black everywhere, so it marks nothing", "a mask is white where to look")
    return Mask(grey)


def _traces_of(path: Path, photo: Path) -> list[Trace]:
    """The traces of a photo's narratives in a file; if that holds one narrative only, of that."""
    from saywhere.cli.data import read_narratives

    narratives = list(read_narratives(path, None))
    own = [one for one in narratives if _same_image(one, photo)]
    chosen = own or (narratives if len(narratives) == 1 else [])
    if not chosen:
        raise InvalidFile(path, f"none of its {len(narratives):,} narratives is of the image {photo.stem!r}")
    return [one.trace for one in chosen]


def _same_image(narrative: Narrative, photo: Path) -> bool:
    """By name; COCO's numbers with or without zeros before them."""
    names = {narrative.image_id, narrative.image_id.lstrip("0")}
    return bool(names & {photo.stem, photo.stem.lstrip("0"), photo.name} - {""})
