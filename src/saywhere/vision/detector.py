"""COCO's 80 kinds of things found in a photo: SSD with MobileNetV3-Large (Howard et al. 2019), run by OpenCV.

    detector = open_detector()
    detector.find("kitchen.jpg", least_score=0.3)     # (Found(box_xyxy=…, name='cup', score=0.81), …)

OpenCV takes as many threads as `cv2.setNumThreads` lets it; this module leaves that to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from saywhere.assets import fetch, find
from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.core.errors import require
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.view import Encoder, Found, View

NAME = "ssd-mobilenet-v3-coco"
INPUT_PX = 320
# The network saw 8-bit values v as (v - 127.5) / 127.5.
_MIDDLE_8BIT = 127.5
# The labels name 91 kinds, but nobody ever drew these in COCO, so the network never learnt them.
_NEVER_DRAWN = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83, 91})
_COLUMNS = 7


class Network(Protocol):
    """What is used of OpenCV's network: one input, one table of detections."""

    def setInput(self, blob: NDArray[np.float32]) -> None:  # noqa: N802 - OpenCV's name
        """(1, 3, 320, 320), red first."""

    def forward(self) -> NDArray[np.float32]:
        """(1, 1, n, 7): image, kind's number, score, then left, top, right, bottom in fractions of the input."""


class Detector:
    """Finds things in photos squashed to a square. Not for two threads at once: the network holds its input.

    names: of the kinds, by the network's numbers. name, sha256: of the weights, for the record.
    """

    def __init__(self, network: Network, names: Mapping[int, str], name: str, sha256: str) -> None:
        self._cv2 = require("cv2", needed_for="the detector", extra="models")
        self.network, self._names, self.name, self.sha256 = network, dict(names), name, sha256

    @property
    def names(self) -> tuple[str, ...]:
        """All kinds it may find, in COCO's order."""
        return tuple(self._names[number] for number in sorted(self._names))

    @property
    def fingerprint(self) -> dict[str, str | int]:
        """What the findings depend on."""
        return {"detector": self.name, "weights_sha256": self.sha256, "input_px": INPUT_PX}

    def find(self, photo: PhotoLike, least_score: float = 0.0) -> tuple[Found, ...]:
        """Up to 100 things, the surest first. Boxes are cut at the photo's edges; those without area are left out."""
        if not 0 <= least_score <= 1:
            raise InvalidValue("least_score", f"is {least_score}, not within [0, 1]")
        pixels = np.asarray(read_photo(photo))
        middle, side = (_MIDDLE_8BIT,) * 3, (INPUT_PX, INPUT_PX)
        self.network.setInput(self._cv2.dnn.blobFromImage(pixels, 1 / _MIDDLE_8BIT, side, middle, swapRB=False))
        table = self.network.forward().reshape(-1, _COLUMNS).astype(np.float64)
        found = [self._found(row) for row in table if row[2] >= least_score]
        return tuple(sorted((one for one in found if one is not None), key=lambda one: -one.score))

    def _found(self, row: NDArray[np.float64]) -> Found | None:
        name = self._names.get(int(row[1]))
        left, top, right, bottom = np.clip(row[3:], 0, 1).tolist()
        if name is None or not (left < right and top < bottom):
            return None
        return Found((left, top, right, bottom), name, min(max(float(row[2]), 0.0), 1.0))


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
        return [
            view.with_found(self.detector.find(image, self.least_score))
            for image, view in zip(images, self.encoder.look_many(images), strict=True)
        ]


def open_detector() -> Detector:
    """The detector, its weights fetched if they are not there."""
    cv2 = require("cv2", needed_for=f"the detector {NAME!r}", extra="models")
    asset, folder = find(NAME), fetch(NAME)
    network = cv2.dnn.readNetFromTensorflow(str(folder / "model.pb"), str(folder / "model.pbtxt"))
    (weights,) = (file for file in asset.files if file.name == "model.pb")
    return Detector(network, read_names(folder / "labels.txt"), NAME, weights.stored_sha256)


def read_names(path: Path) -> dict[int, str]:
    """The kinds that the network learnt, by its numbers, from a file with one name a line, the first being number 1."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return {number: name.strip() for number, name in enumerate(lines, 1) if number not in _NEVER_DRAWN}
