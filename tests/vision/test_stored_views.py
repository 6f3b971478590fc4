"""Many photos kept: every one accounted for, and stopping changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.vision import Found, PhotoLike, View, extract, open_views, read_photo
from saywhere.vision.look import LiteEncoder
from tests.vision.conftest import SavePhoto, tiny_network


class Counting(LiteEncoder):
    """Remembers how many photos it looked at."""

    looked = 0

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        self.looked += len(photos)
        return super().look_many(photos)


def _encoder(input_px: int = 64) -> Counting:
    return Counting(tiny_network(), "tiny", "0" * 64, input_px)


@pytest.fixture
def photos(save_photo: SavePhoto) -> list[Path]:
    return [save_photo(f"{n}.png", n, (20 + n, 30)) for n in range(7)]


def test_stored_views_are_the_looks_in_half_precision(tmp_path: Path, photos: list[Path]) -> None:
    encoder = _encoder()
    views = extract(photos, tmp_path / "out", encoder, batch=3)
    assert views.store[0]["patches"].shape == (2, 2, encoder.size)
    assert views.store[0]["patches"].dtype == views.store[0]["whole"].dtype == np.float16
    assert list(views) == [path.stem for path in photos]
    assert len(views) == 7
    for path in photos:
        seen, kept = encoder.look(path), views[path.stem]
        np.testing.assert_allclose(kept.patches, seen.patches, atol=4e-3)
        np.testing.assert_allclose(kept.whole, seen.whole, atol=4e-3)
        assert kept.frame == seen.frame
    assert views.encoder == encoder.fingerprint


def test_stopped_and_taken_up_again_equals_never_stopped(tmp_path: Path, photos: list[Path]) -> None:
    def stop(_doing: str, done: int, _: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    whole = extract(photos, tmp_path / "whole", _encoder(), batch=2)
    with pytest.raises(KeyboardInterrupt):
        extract(photos, tmp_path / "parts", _encoder(), batch=2, progress=stop)
    with pytest.raises(InvalidFile, match="not finished: 4 rows"):
        open_views(tmp_path / "parts")
    again = _encoder()
    parts = extract(photos, tmp_path / "parts", again, batch=2)
    assert again.looked == 3
    assert parts.store.fingerprint == whole.store.fingerprint


def test_what_is_complete_is_not_looked_at_again(tmp_path: Path, photos: list[Path]) -> None:
    extract(photos, tmp_path / "out", _encoder())
    again = _encoder()
    assert len(extract(photos, tmp_path / "out", again)) == 7
    assert again.looked == 0


def test_progress_counts_every_photo(tmp_path: Path, photos: list[Path]) -> None:
    seen: list[tuple[int, int]] = []
    extract(photos, tmp_path / "out", _encoder(), batch=3, progress=lambda _, *count: seen.append(count))
    assert seen == [(3, 7), (6, 7), (7, 7)]


def test_a_photo_that_cannot_be_read_is_noted_and_the_rest_are_kept(tmp_path: Path, photos: list[Path]) -> None:
    photos[2].write_bytes(b"not a photo")
    views = extract(photos, tmp_path / "out", _encoder(), batch=2)
    assert views.failed == {"2": "is not an image"}
    assert len(views) + len(views.failed) == len(photos)
    assert "2" not in views
    assert "3" in views
    np.testing.assert_allclose(views["3"].patches, _encoder().look(photos[3]).patches, atol=4e-3)
    with pytest.raises(InvalidValue, match="has no view: is not an image"):
        views["2"]
    with pytest.raises(InvalidValue, match="not among the 7"):
        views["absent"]


def test_a_folder_of_other_features_is_not_gone_on_with(tmp_path: Path, photos: list[Path]) -> None:
    extract(photos, tmp_path / "out", _encoder())
    with pytest.raises(InvalidFile, match="another encoder"):
        extract(photos, tmp_path / "out", _encoder(96))


def test_more_photos_join_those_that_are_kept(tmp_path: Path, photos: list[Path]) -> None:
    extract(photos[2:], tmp_path / "out", _encoder())
    again = _encoder()
    assert list(extract(photos, tmp_path / "out", again)) == ["2", "3", "4", "5", "6", "0", "1"]
    assert again.looked == 2


class Native(Counting):
    """Grids in the photo's own shape, with attention and things found."""

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        looks = []
        for photo in photos:
            width, height = read_photo(photo).size
            frame = Frame.squash((width, height), (width, height), patch=10)
            patches = np.full((*frame.grid, 3), width)
            found = [Found((0, 0, 0.5, 1), "cup", 0.5)]
            looks.append(View(frame, patches, patches[0, 0], np.ones(frame.grid), found))
        return looks


def test_grids_differ_from_photo_to_photo_and_all_of_a_view_is_kept(tmp_path: Path, save_photo: SavePhoto) -> None:
    encoder = Native(tiny_network(), "tiny", "0" * 64, 64)
    photos = [save_photo("wide.png", 0, (60, 20)), save_photo("high.png", 1, (20, 50))]
    views = extract(photos, tmp_path / "out", encoder)
    assert {name: view.patches.shape for name, view in views.items()} == {"wide": (2, 6, 3), "high": (5, 2, 3)}
    for path in photos:
        seen, kept = encoder.look_many([path])[0], views[path.stem]
        assert (kept.frame, kept.found) == (seen.frame, seen.found)
        np.testing.assert_array_equal(kept.patches, seen.patches)
        np.testing.assert_array_equal(kept.attention, seen.attention)


def test_features_beyond_half_precision_are_refused(tmp_path: Path, photos: list[Path]) -> None:
    class Loud(Counting):
        def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
            return [View(view.frame, view.patches + 1e5, view.whole) for view in super().look_many(photos)]

    with pytest.raises(InvalidValue, match=r"patches of row '0'.*float16"):
        extract(photos, tmp_path / "out", Loud(tiny_network(), "tiny", "0" * 64, 64))


def test_photos_must_be_some_and_their_names_differ(tmp_path: Path, photos: list[Path]) -> None:
    with pytest.raises(InvalidValue, match="are none"):
        extract([], tmp_path / "out", _encoder())
    with pytest.raises(InvalidValue, match="more than once, first '1'"):
        extract([photos[1], photos[1].with_suffix(".jpg")], tmp_path / "out", _encoder())
    with pytest.raises(InvalidValue, match="batch"):
        extract(photos, tmp_path / "out", _encoder(), batch=0)
    assert not (tmp_path / "out").exists()
