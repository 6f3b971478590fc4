"""What a seer cuts out: what is pointed at, what is named; and what it says without a segmenter or its asset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saywhere.assets import MOBILE_SAM, AssetUnavailable
from saywhere.core import Box, InvalidValue, Point
from saywhere.models.face import MissingSkill
from saywhere.models.patchioner.seer import Seer
from saywhere.vision.segmenter import Segmenter, open_segmenter
from tests.models.patchioner_seeing import LEFT, photo, seer
from tests.vision.small_sam import obedient_segmenter


class _Counting(Segmenter):
    looks = 0

    def look(self, photo: object) -> object:  # type: ignore[override]
        self.looks += 1
        return super().look(photo)  # type: ignore[arg-type]


def cutting(asset: str = "") -> tuple[Seer, _Counting]:
    made_of = obedient_segmenter()
    counting = _Counting(made_of.run, made_of.sam, made_of.input_px, made_of.sha256)
    made = seer()
    made.parts = replace(made.parts, segmenter=lambda: counting, segmenter_asset=asset)
    return made, counting


def test_a_photo_is_looked_at_once_and_only_when_something_is_cut_out() -> None:
    model, segmenter = cutting()
    assert model.skills == ("caption", "ground", "narrate", "segment")
    look = model.look(photo())
    assert segmenter.looks == 0
    box, point = look.segment(Box(*LEFT)), look.segment(Point(0.25, 0.5))
    assert segmenter.looks == 1
    expected = np.zeros((40, 40))
    expected[:, :20] = 1
    np.testing.assert_array_equal(box.values, expected)
    assert point.values[20, 10] == 1
    assert point.values.mean() < 0.1


def test_what_is_named_is_found_and_its_box_cut_out() -> None:
    model, _ = cutting()
    look = model.look(photo())
    np.testing.assert_array_equal(look.segment("a cat").values, look.segment(Box(*LEFT)).values)
    with pytest.raises(InvalidValue, match="'a horse': seems not to be in the photo"):
        look.segment("a horse")
    with pytest.raises(InvalidValue, match="has no word"):
        look.segment(" ")


def test_without_a_segmenter_or_the_photo_it_is_refused() -> None:
    with pytest.raises(MissingSkill, match="cut out what is pointed at"):
        seer().look(photo()).segment(Point(0.5, 0.5))
    model, _ = cutting()
    with pytest.raises(InvalidValue, match="look at it again"):
        model.see(model.look(photo()).view).segment(Point(0.5, 0.5))


def test_without_the_asset_the_skill_is_not_there_and_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAYWHERE_CACHE", str(tmp_path))
    model, _ = cutting(MOBILE_SAM)
    assert "segment" not in model.skills
    model.parts = replace(model.parts, segmenter=open_segmenter)
    with pytest.raises(AssetUnavailable, match="saywhere assets fetch mobile-sam"):
        model.look(photo()).segment(Point(0.5, 0.5))
