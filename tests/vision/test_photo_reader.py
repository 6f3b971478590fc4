"""Photos read in a process of their own: the same pictures, the same words, and no way to end a run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.core import InvalidFile, InvalidValue
from saywhere.vision import read_photo
from saywhere.vision.photo_reader import NoReader, PhotoReader
from tests.vision import odd_reader

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def found_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))


def _photo(path: Path, side: int = 700) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (side, side + 1, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def test_a_photo_is_what_read_photo_gives_by_path_and_by_content(tmp_path: Path) -> None:
    path, reader = _photo(tmp_path / "ä photo.png"), PhotoReader()
    wanted = np.asarray(read_photo(path))
    for asked in (path, str(path), path.read_bytes()):
        np.testing.assert_array_equal(np.asarray(reader.read(asked)), wanted)


def test_what_is_no_photo_is_refused_in_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "no.jpg").write_bytes(b"no photo")
    reader = PhotoReader()
    for asked, kind in (
        (tmp_path / "no.jpg", InvalidFile),
        (b"no photo", InvalidValue),
        (tmp_path / "gone", InvalidFile),
    ):
        with pytest.raises(kind) as here:
            read_photo(asked)
        with pytest.raises(kind) as there:
            reader.read(asked)
        assert str(there.value) == str(here.value)


def test_a_photo_that_crashes_or_stalls_the_decoder_is_refused_and_the_next_is_read(tmp_path: Path) -> None:
    reader, good = PhotoReader(odd_reader.TIMEOUT_S, odd_reader.__name__), _photo(tmp_path / "good.png", 9)
    with pytest.raises(InvalidValue, match=r"crashed what reads photos \(signal 6\)"):
        reader.read(odd_reader.CRASHING)
    assert reader.read(good).size == (10, 9)
    with pytest.raises(InvalidValue, match="takes more than 2 s to read"):
        reader.read(odd_reader.SLOW)
    assert reader.read(good).size == (10, 9)
    reader.close()
    assert reader.read(good).size == (10, 9)


def test_a_reader_that_cannot_start_is_no_photo_s_fault(tmp_path: Path) -> None:
    with pytest.raises(NoReader, match=r"ended at its start \(exit code 1\): .* -m no\.such\.module"):
        PhotoReader(module="no.such.module").read(_photo(tmp_path / "good.png", 9))


def test_no_time_at_all_is_refused() -> None:
    with pytest.raises(InvalidValue, match="timeout"):
        PhotoReader(0)
