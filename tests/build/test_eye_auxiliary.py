"""What a second look gives, kept beside what an eye learns from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.build import eye_auxiliary
from saywhere.build.eye_auxiliary import look_again
from saywhere.core.types import Floats32
from saywhere.models.eye.features import AUXILIARY, AUXILIARY_KIND
from saywhere.store import Store
from saywhere.vision.auxiliary import to_floats
from tests.build.test_eye_features import Brightness, build
from tests.build.test_eye_features import coco as coco


class Bright:
    """Sees how bright a photo is; stops after some photos if told so."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.seen, self._stop_after = 0, stop_after

    def look_many(self, images: list[Image.Image]) -> Floats32:
        if self._stop_after is not None and self.seen >= self._stop_after:
            raise KeyboardInterrupt
        self.seen += len(images)
        values = [np.full((2, 3), np.asarray(image).mean() / 255, np.float32) for image in images]
        return np.stack(values)


def test_every_photo_is_looked_at_again_and_an_interrupted_run_goes_on(
    coco: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eye_auxiliary, "_BATCH", 2)
    build(coco, tmp_path, Brightness())
    with pytest.raises(KeyboardInterrupt):
        look_again(coco, tmp_path, Bright(stop_after=2), lambda *_: None)
    second, told = Bright(), []
    assert look_again(coco, tmp_path, second, lambda _, done, total: told.append((done, total))) == 5
    assert second.seen == 3
    assert told == [(4, 5), (5, 5)]
    rows = {row.key: to_floats(row["features"]) for row in Store(tmp_path / AUXILIARY, AUXILIARY_KIND)}
    np.testing.assert_allclose(rows["000000000005"], np.full((2, 3), 200 / 255), atol=0.03)
    assert rows["000000000000"].max() < 0.03
