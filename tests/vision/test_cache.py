"""Views kept: exactly what the encoder saw, found by pixels and fingerprint, never torn, never without bound."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.vision import CachedEncoder, Found, PhotoLike, View, read_photo

CUP = Found((0.1, 0.2, 0.7, 0.9), "cup", 0.8)


class Fake:
    """Sees the mean colour everywhere, and counts what it was shown."""

    def __init__(self, name: str = "fake", *, rich: bool = True) -> None:
        self.name, self.rich, self.shown = name, rich, 0

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return {"encoder": self.name, "input_px": 4}

    size = 3

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        return Frame.squash(photo_size, (4, 4), 2)

    def look(self, photo: PhotoLike) -> View:
        return self.look_many([photo])[0]

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        self.shown += len(photos)
        return [self._view(read_photo(photo)) for photo in photos]

    def _view(self, image: Image.Image) -> View:
        mean = np.asarray(image).mean(axis=(0, 1)) / 7
        extras = (np.arange(4.0).reshape(2, 2), (CUP,)) if self.rich else ()
        return View(self.frame(image.size), np.tile(mean, (2, 2, 1)), mean, *extras)


def _photo(n: int) -> Image.Image:
    return Image.new("RGB", (6, 5), (n, 2 * n, 100))


def _equal(one: View, other: View) -> bool:
    same = (
        one.frame == other.frame and one.found == other.found and (one.attention is None) == (other.attention is None)
    )
    arrays = [(one.patches, other.patches), (one.whole, other.whole)]
    if one.attention is not None and other.attention is not None:
        arrays.append((one.attention, other.attention))
    return same and all(np.array_equal(a, b) for a, b in arrays)


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("rich", [True, False], ids=["attention and findings", "bare"])
def test_a_kept_view_is_exactly_what_the_encoder_saw(tmp_path: Path, rich: bool) -> None:
    fake = Fake(rich=rich)
    first = CachedEncoder(fake, tmp_path).look(_photo(3))
    again = CachedEncoder(fake, tmp_path).look(_photo(3))
    assert fake.shown == 1
    assert _equal(first, again)
    assert _equal(first, fake.look(_photo(3)))


def test_only_what_is_new_goes_to_the_encoder_and_order_is_kept(tmp_path: Path) -> None:
    fake = Fake()
    cached = CachedEncoder(fake, tmp_path)
    cached.look(_photo(1))
    views = cached.look_many([_photo(0), _photo(1), _photo(2)])
    assert fake.shown == cached.looked == 3
    for n, view in enumerate(views):
        assert _equal(view, fake.look(_photo(n)))
    assert cached.look_many([]) == []


def test_a_photo_is_known_by_its_pixels_wherever_it_comes_from(tmp_path: Path) -> None:
    fake = Fake()
    cached = CachedEncoder(fake, tmp_path / "views")
    _photo(5).save(tmp_path / "a.png")
    _photo(5).save(tmp_path / "b.bmp")
    for photo in (tmp_path / "a.png", tmp_path / "b.bmp", _photo(5), np.asarray(_photo(5))):
        cached.look(photo)
    assert fake.shown == 1
    cached.look(_photo(5).resize((5, 6)))
    assert fake.shown == 2


def test_another_encoder_does_not_get_these_views(tmp_path: Path) -> None:
    CachedEncoder(Fake("one"), tmp_path).look(_photo(1))
    other = Fake("two")
    CachedEncoder(other, tmp_path).look(_photo(1))
    assert other.shown == 1
    assert len(_entries(tmp_path)) == 2


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = content.index(b"patches.npy") + 200
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not a view"),
        lambda path: path.write_bytes(path.read_bytes()[:300]),
        lambda path: path.write_bytes(path.read_bytes()[:-5]),
        _flip,
        lambda path: np.savez(path, facts=np.zeros(3, np.uint8)),
        lambda path: np.savez(path, patches=np.zeros((2, 2, 3))),
    ],
    ids=["empty", "text", "cut", "cut at the end", "one bit", "bad facts", "no facts"],
)
def test_an_unreadable_entry_is_replaced_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: object
) -> None:
    fake = Fake()
    good = CachedEncoder(fake, tmp_path).look(_photo(7))
    (path,) = _entries(tmp_path)
    harm(path)  # type: ignore[operator]
    cached = CachedEncoder(fake, tmp_path)
    with caplog.at_level(logging.WARNING):
        assert _equal(cached.look(_photo(7)), good)
    assert cached.replaced == cached.looked == 1
    assert str(path) in caplog.text
    assert _equal(CachedEncoder(fake, tmp_path).look(_photo(7)), good)
    assert fake.shown == 2


def test_an_entry_of_another_version_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake()
    CachedEncoder(fake, tmp_path).look(_photo(7))
    monkeypatch.setattr("saywhere.vision.cache._VERSION", 99)
    cached = CachedEncoder(fake, tmp_path)
    cached.look(_photo(7))
    assert cached.replaced == 1


def test_past_the_limit_those_unused_for_longest_go(tmp_path: Path) -> None:
    fake = Fake()
    cached = CachedEncoder(fake, tmp_path)
    paths = []
    for n in range(4):
        cached.look(_photo(n))
        paths.append(cached.path_of(_photo(n)))
        os.utime(paths[n], ns=(n * 10**9, n * 10**9))
    size = paths[0].stat().st_size
    cached.look(_photo(0))
    small = CachedEncoder(fake, tmp_path, limit_bytes=4 * size)
    small.look(_photo(9))
    assert [path.exists() for path in paths] == [True, False, False, True]
    assert small.path_of(_photo(9)).exists()
    assert sum(path.stat().st_size for path in _entries(tmp_path)) <= 4 * size


def test_a_bad_limit_or_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="limit_bytes"):
        CachedEncoder(Fake(), tmp_path, 0)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidFile, match="is a file"):
        CachedEncoder(Fake(), tmp_path / "file")


def test_it_is_the_encoder_in_all_else(tmp_path: Path) -> None:
    fake = Fake()
    cached = CachedEncoder(fake, tmp_path)
    assert (cached.fingerprint, cached.size, cached.frame((9, 8))) == (fake.fingerprint, 3, fake.frame((9, 8)))
