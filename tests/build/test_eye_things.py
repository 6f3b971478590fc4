"""What a detector finds, kept beside what an eye learns from."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from saywhere.build.eye_things import find_things
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.models.eye.features import FOUND, FOUND_KIND, FoundThings
from saywhere.store import Store
from saywhere.vision.detector import Detected
from saywhere.vision.view import Found, Proposals
from tests.build.test_eye_features import Brightness, build
from tests.build.test_eye_features import coco as coco

_NOTHING = Proposals(np.zeros((0, 4), np.float32), np.zeros((0, 80), np.float32), COCO_CLASSES)


class OneThing:
    """A detector that finds a cup, the surer the brighter the photo is; it stops after some photos if told so."""

    fingerprint: ClassVar[dict[str, str | int]] = {"detector": "one thing"}

    def __init__(self, stop_after: int | None = None) -> None:
        self.seen, self._stop_after = 0, stop_after

    def find(self, photo: Image.Image, least_score: float = 0.0) -> Detected:
        if self.seen == self._stop_after:
            raise KeyboardInterrupt
        self.seen += 1
        score = float(np.asarray(photo).mean()) / 255
        found = (Found((0.1, 0.2, 0.5, 0.75), "cup", score),) if score >= least_score else ()
        return Detected(found, _NOTHING)


def test_every_photo_has_its_things_and_an_interrupted_run_goes_on(coco: Store, tmp_path: Path) -> None:
    build(coco, tmp_path, Brightness())
    with pytest.raises(KeyboardInterrupt):
        find_things(coco, tmp_path, OneThing(stop_after=2), lambda *_: None)
    second = OneThing()
    assert find_things(coco, tmp_path, second, lambda *_: None) == 5
    assert second.seen == 3
    rows = {row.key: FoundThings.of_row(row) for row in Store(tmp_path / FOUND, FOUND_KIND)}
    bright = rows["000000000005"]
    np.testing.assert_allclose(bright.boxes_xyxy, [[0.1, 0.2, 0.5, 0.75]], atol=1e-3)
    assert [COCO_CLASSES[kind] for kind in bright.kinds] == ["cup"]
    np.testing.assert_allclose(bright.scores, [200 / 255], atol=0.01)
    assert not len(rows["000000000000"].kinds)
