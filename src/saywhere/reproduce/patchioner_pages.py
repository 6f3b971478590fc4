"""Photos and narrations that Patch-ioner's report shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from saywhere.core import Box, Grounded, WholeImage
from saywhere.models.patchioner.seer import Seer
from saywhere.plots.seen import ShownPhoto
from saywhere.reproduce.patchioner_data import HeldOut
from saywhere.reproduce.patchioner_looks import LookResults
from saywhere.reproduce.results import Example
from saywhere.vision import CachedEncoder

_MOST_BOXES = 6


def narration_examples(held: HeldOut, looked: LookResults, seer: Seer) -> list[Example]:
    """Narrations with their pseudo-traces beside what was found for the same words."""
    examples = []
    for narration, grounded in looked.shown:
        truth = Grounded(narration.words, narration.placed)
        examples.append(
            Example(
                str(held.photos[narration.image_id].resolve()),
                truth.narrative(narration.image_id, origin="pseudo-trace"),
                {f"found by {seer.name}": grounded.narrative(narration.image_id, origin=seer.name)},
            )
        )
    return examples


def shown_photos(held: HeldOut, seer: Seer, eye: CachedEncoder, most: int) -> list[ShownPhoto]:
    """Photos from all over the list, with their caption and those of their largest boxes, as the seer says them."""
    boxes, names = held.boxes.by_image, list(held.photos)
    chosen = sorted({int(i) for i in np.linspace(0, len(names) - 1, min(most, len(names)))})
    entries = []
    for name in (names[i] for i in chosen):
        largest = sorted(boxes.get(name, []), key=lambda item: -_area(item.region))[:_MOST_BOXES]
        look = seer.see(eye.look(held.photos[name]), image_id=name)
        whole, *parts = look.captions([WholeImage(), *(item.region for item in largest)])
        regions = tuple(
            replace(part, text=f"{part.text} (true class: {item.references[0]})")
            for item, part in zip(largest, parts, strict=True)
        )
        entries.append(ShownPhoto(held.photos[name], name, "", whole, regions))
    return entries


def _area(region: object) -> float:
    if not isinstance(region, Box):
        raise TypeError(f"{type(region).__name__} is not a box")
    x1, y1, x2, y2 = region.xyxy
    return (x2 - x1) * (y2 - y1)
