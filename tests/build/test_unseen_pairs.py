"""Splits in which pairs of things meet in the test alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.build.unseen_pairs import PairSettings, PairSplit, split_by_pairs
from saywhere.core import InvalidValue

SETTINGS = PairSettings(test=0.3, validation=0.1, least=4, kept=0.4)


def _photos(seed: int, count: int = 200) -> dict[str, set[str]]:
    rng = np.random.default_rng(seed)
    names = ["dog", "cat", "car", "cup", "bed", "tv"]
    return {f"{i:012}": {name for name in names if rng.random() < 0.3} for i in range(count)}


def _split(photos: dict[str, set[str]], seed: int = 0) -> PairSplit:
    return split_by_pairs(photos, np.random.default_rng(seed), SETTINGS)


@given(st.integers(0, 10_000))
def test_no_pair_of_the_test_is_learnt_from_and_each_thing_is(seed: int) -> None:
    photos = _photos(seed)
    split = _split(photos)
    learnt = [photos[photo] for side in ("train", "validation") for photo in split.sides[side]]
    for one, other in split.pairs:
        assert not any({one, other} <= classes for classes in learnt)
    counts = Counter(name for classes in photos.values() for name in classes)
    for name in {name for pair in split.pairs for name in pair}:
        assert sum(name in classes for classes in learnt) >= SETTINGS.kept * counts[name]
    for photo in split.sides["test"]:
        assert any(set(pair) <= photos[photo] for pair in split.pairs)
    assert len(split.sides["test"]) <= SETTINGS.test * len(photos)


@given(st.integers(0, 10_000))
def test_every_photo_is_on_one_side_and_the_seed_fixes_which(seed: int) -> None:
    photos = _photos(seed, 120)
    split = _split(photos, seed)
    assert sorted(photo for side in split.sides.values() for photo in side) == sorted(photos)
    assert split == _split(photos, seed)
    for pair, count in split.pairs.items():
        assert count == sum(set(pair) <= classes for classes in photos.values()) >= SETTINGS.least


def test_things_that_never_stand_alone_cannot_be_taken_out() -> None:
    always = {str(i): {"fork", "knife"} for i in range(50)} | {f"x{i}": {"dog"} for i in range(200)}
    with pytest.raises(InvalidValue, match="no two things meet"):
        split_by_pairs(always, np.random.default_rng(0))


@pytest.mark.parametrize("change", [{"test": 0.0}, {"validation": 1.0}, {"kept": -0.1}, {"least": 0}])
def test_settings_that_cannot_be_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        PairSettings(**change)  # type: ignore[arg-type]
