"""COCO's 80 kinds of things found in a photo: EfficientDet-Lite2 (Tan et al. 2020), in a byte a number.

detector = open_detector()
seen = detector.find("kitchen.jpg")
seen.found                                  # (Found(box_xyxy=…, name='cup', score=0.81), …)
seen.proposals                              # all that it weighed, before boxes that overlap are dropped
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from saywhere.assets import cache_folder, fetch, find
from saywhere.core import Frame, InvalidValue
from saywhere.core.types import Floats32
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.runtime import Runtime, open_runtime
from saywhere.vision.things import suppressed
from saywhere.vision.view import Encoder, Found, Proposals, View

NAME: Final = "efficientdet-lite2-coco"
INPUT_PX: Final = 448
# COCO numbers its kinds up to 90 but nobody ever drew these.
_NEVER_DRAWN: Final = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})
_COLUMNS: Final = np.array([number - 1 for number in range(1, 91) if number not in _NEVER_DRAWN])
"""Where the network's 90 scores tell of COCO's 80 kinds, in COCO's order."""
_LEVELS: Final = (8, 16, 32, 64, 128)
"""Pixels from one place to the next, in each of the maps that the network looks at."""
_ANCHOR_SIDES: Final = 3.0
"""Side of an anchor, in places."""
_GREY: Final = 127
_FAINTEST = 0.02
_MOST_PROPOSALS = 2000
_SAME = 0.5
"""Of two things of one kind that overlap by more (IoU) the surer is kept."""
_MOST_FOUND = 100
_WEIGHED = 600
"""So many of the surest scores nearly always hold the 100 things that are found."""


@dataclass(frozen=True, slots=True, eq=False)
class Detected:
    """found: things, the surest first. proposals: places with what each may show, whether they overlap or not."""

    found: tuple[Found, ...]
    proposals: Proposals


class Detector:
    """Finds things in photos that are shrunk or grown to fit a square, with grey below or on the right.

    network: from (1, 448, 448, 3) bytes to (1, n, 4) shifts of anchors and (1, n, 90) scores. names: what COCO's 80
    kinds are called, in COCO's order. name, sha256: of the weights, for the record.
    """

    def __init__(self, network: Runtime, names: Sequence[str], name: str, sha256: str) -> None:
        if len(names) != len(_COLUMNS):
            raise InvalidValue("names", f"are {len(names)}, not one for each of COCO's {len(_COLUMNS)} kinds")
        self.network, self.names, self.name, self.sha256 = network, tuple(names), name, sha256
        self._anchors = anchors()

    @property
    def fingerprint(self) -> dict[str, str | int]:
        """What the findings depend on."""
        return {"detector": self.name, "weights_sha256": self.sha256, "input_px": INPUT_PX}

    def find(self, photo: PhotoLike, least_score: float = 0.0) -> Detected:
        """Up to 100 things with at least this score. Boxes are cut at the edges; those without area are left out."""
        if not 0 <= least_score <= 1:
            raise InvalidValue("least_score", f"is {least_score}, not within [0, 1]")
        pixels, shares = _fitted(read_photo(photo))
        shifts, scores = self.network(pixels[None])
        # Of most places nothing is ever said, so that only the others are sorted by kind.
        places = np.unique(np.flatnonzero(scores[0] >= _FAINTEST) // scores.shape[2])
        proposals = self._proposals(self._anchors[places], shifts[0][places], scores[0][places][:, _COLUMNS], shares)
        return Detected(_things(proposals, max(least_score, _FAINTEST)), proposals)

    def _proposals(
        self, anchored: Floats32, shifts: Floats32, scores: Floats32, shares: tuple[float, float]
    ) -> Proposals:
        """The surest places. shares: of the input's width and height that the photo takes."""
        best = scores.max(axis=1)
        chosen = np.flatnonzero(best >= _FAINTEST)
        if len(chosen) > _MOST_PROPOSALS:
            chosen = chosen[np.argsort(-best[chosen], kind="stable")[:_MOST_PROPOSALS]]
        moved = _moved(anchored[chosen], shifts[chosen])
        boxes: Floats32 = np.clip(moved / np.array(shares * 2, np.float32), 0, 1).astype(np.float32)
        real = (boxes[:, :2] < boxes[:, 2:]).all(axis=1)
        return Proposals(boxes[real], np.clip(scores[chosen][real], 0, 1), self.names)


def anchors() -> Floats32:
    """(n, 4) middle y and x, height and width of the boxes that the network moves, in fractions of its input.

    At each place of each map nine: three sizes, a third of an octave apart, in three forms.
    """
    all_levels = []
    for stride in _LEVELS:
        places = -(-INPUT_PX // stride)
        middles = (np.arange(places) + 0.5) / places
        sides = [
            (size / np.sqrt(form), size * np.sqrt(form))
            for size in (_ANCHOR_SIDES / places * 2 ** (third / 3) for third in range(3))
            for form in (1.0, 2.0, 0.5)
        ]
        y, x, nth = (axis.ravel() for axis in np.meshgrid(middles, middles, np.arange(len(sides)), indexing="ij"))
        all_levels.append(np.column_stack([y, x, np.array(sides)[nth]]))
    return np.concatenate(all_levels).astype(np.float32)


def _moved(anchored: Floats32, shifts: Floats32) -> Floats32:
    """(n, 4) boxes, xyxy, from anchors and what the network says of each: by how many of its sides the middle is off,
    and the logarithm of how much larger it is."""
    middles = shifts[:, :2] * anchored[:, 2:] + anchored[:, :2]
    halves = np.exp(np.minimum(shifts[:, 2:], np.log(64))) * anchored[:, 2:] / 2
    corners = np.concatenate([middles - halves, middles + halves], axis=1)
    moved: Floats32 = corners[:, [1, 0, 3, 2]].astype(np.float32)
    return moved


def _fitted(photo: Image.Image) -> tuple[NDArray[np.uint8], tuple[float, float]]:
    """(448, 448, 3) the photo with its longer side 448, and which shares of that its width and height are."""
    scale = INPUT_PX / max(photo.size)
    width, height = (max(1, round(side * scale)) for side in photo.size)
    pixels = np.full((INPUT_PX, INPUT_PX, 3), _GREY, np.uint8)
    pixels[:height, :width] = np.asarray(photo.resize((width, height), Image.Resampling.BILINEAR))
    return pixels, (width / INPUT_PX, height / INPUT_PX)


def _things(proposals: Proposals, least_score: float) -> tuple[Found, ...]:
    """What is left when of those of one kind that overlap only the surest is kept."""
    weighed = proposals.scores[proposals.scores >= least_score]
    surer = least_score if len(weighed) <= _WEIGHED else float(np.partition(weighed, -_WEIGHED)[-_WEIGHED])
    kept = _kept(proposals, surer)
    if len(kept) < _MOST_FOUND and surer > least_score:
        kept = _kept(proposals, least_score)
    best = sorted(kept, key=lambda one: -one[2])[:_MOST_FOUND]
    boxes = proposals.boxes_xyxy[[place for place, _, _ in best]].tolist()
    return tuple(
        Found((left, top, right, bottom), proposals.names[kind], score)
        for (left, top, right, bottom), (_, kind, score) in zip(boxes, best, strict=True)
    )


def _kept(proposals: Proposals, least_score: float) -> list[tuple[int, int, float]]:
    """Place, kind and score of the things with at least this score that stay, kind by kind. Which do depends on none
    that is less sure."""
    kept: list[tuple[int, int, float]] = []
    for kind in np.flatnonzero((proposals.scores >= least_score).any(axis=0)).tolist():
        (sure,) = np.nonzero(proposals.scores[:, kind] >= least_score)
        scores = proposals.scores[sure, kind]
        stay = suppressed(proposals.boxes_xyxy[sure], scores, _SAME)
        kept += zip(sure[stay].tolist(), [kind] * len(stay), scores[stay].tolist(), strict=True)
    return kept


class DetectingEncoder(Encoder):
    """An encoder whose views also hold what a detector found."""

    def __init__(self, encoder: Encoder, detector: Detector, least_score: float = 0.0) -> None:
        self.encoder, self.detector, self.least_score = encoder, detector, least_score

    @property
    def fingerprint(self) -> dict[str, str | int]:
        finding = {f"found_by_{key}": value for key, value in self.detector.fingerprint.items()}
        return self.encoder.fingerprint | finding | {"found_above": repr(self.least_score)}

    @property
    def size(self) -> int:
        return self.encoder.size

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        return self.encoder.frame(photo_size)

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        images = [read_photo(photo) for photo in photos]
        seen = [self.detector.find(image, self.least_score) for image in images]
        return [
            view.with_found(one.found, one.proposals)
            for one, view in zip(seen, self.encoder.look_many(images), strict=True)
        ]


def open_detector(names: Sequence[str] = (), runtime: str = "") -> Detector:
    """The detector, its weights fetched if they are not there. names: of its kinds, by default COCO's own. runtime: see
    `open_runtime`."""
    if not names:
        from saywhere.core.coco_classes import COCO_CLASSES as names  # noqa: N811 - the default
    asset, folder = find(NAME), fetch(NAME)
    (weights,) = asset.files
    path = folder / weights.name

    def network() -> torch.nn.Module:
        # Read when nothing was converted before.
        from saywhere.vision.tflite_graph import TFLiteGraph, read_graph

        return TFLiteGraph(read_graph(path))

    def tflite() -> bytes:
        from saywhere.vision.tflite_graph import without_custom

        return without_custom(path)

    example = torch.zeros((1, INPUT_PX, INPUT_PX, 3), dtype=torch.uint8)
    key = f"{NAME} {weights.stored_sha256}"
    return Detector(
        open_runtime(network, key, example, cache_folder() / "compiled", runtime, tflite=tflite),
        names,
        NAME,
        weights.stored_sha256,
    )
