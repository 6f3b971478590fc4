from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from saywhere.core.errors import InvalidFile
from saywhere.formats import hat
from saywhere.formats.hat import HumanAttention
from saywhere.formats.record import InvalidRecord

MAP = np.array([[0, 10, 20], [30, 40, 255]], np.uint8)


def save(path: Path, pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8 | np.uint16 | np.bool_]] = MAP) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def test_maps_come_in_the_order_of_question_and_person(tmp_path: Path) -> None:
    for name in ("1500070_2.png", "99_1.png", "1500070_1.png"):
        save(tmp_path / name)
    (tmp_path / "README.txt").write_text("not a map")
    values = [value for value in hat.read(tmp_path) if isinstance(value, HumanAttention)]
    assert [(value.question_id, value.annotator) for value in values] == [(99, 1), (1500070, 1), (1500070, 2)]
    np.testing.assert_array_equal(values[0].attention.values, MAP)
    assert hat.sniff(tmp_path, b"")
    (alone,) = hat.read(tmp_path / "99_1.png")
    assert isinstance(alone, HumanAttention)


@pytest.mark.parametrize(
    "pixels",
    [MAP.astype(np.uint16) * 257, np.stack([MAP] * 3, axis=2), MAP > 25],
    ids=["16 bits", "grey saved as colour", "1 bit"],
)
def test_grey_pictures_of_any_depth_are_maps(pixels: np.ndarray, tmp_path: Path) -> None:  # type: ignore[type-arg]
    (value,) = hat.read(save(tmp_path / "7_1.png", pixels))
    assert isinstance(value, HumanAttention)
    wanted = pixels[..., 0] if pixels.ndim == 3 else pixels
    np.testing.assert_allclose(value.attention.density, wanted / wanted.sum())


def test_bad_pictures_are_bad_records_and_the_others_are_read(tmp_path: Path) -> None:
    save(tmp_path / "5_1.png")
    save(tmp_path / "1_1.png", np.zeros_like(MAP))
    save(tmp_path / "1_2.png", np.stack([MAP, MAP, MAP // 2], axis=2))
    save(tmp_path / "1_3.png", np.stack([MAP] * 4, axis=2))
    (tmp_path / "1_4.png").write_bytes((tmp_path / "5_1.png").read_bytes()[:50])
    (tmp_path / "1_5.png").write_bytes(b"")
    save(tmp_path / "heat.png")
    name, *others, good = hat.read(tmp_path)
    assert isinstance(good, HumanAttention)
    assert isinstance(name, InvalidRecord)
    assert "<question_id>_<n>.png" in name.reason
    words = ["zero everywhere", "has colours", "mode RGBA", "not a readable PNG", "not a readable PNG"]
    for other, word in zip(others, words, strict=True):
        assert isinstance(other, InvalidRecord)
        assert word in other.reason


def test_a_gigantic_picture_is_not_unpacked(tmp_path: Path) -> None:
    save(tmp_path / "1_1.png")
    content = bytearray((tmp_path / "1_1.png").read_bytes())
    for width in (40_000, 2**31 - 1):
        content[16:20] = width.to_bytes(4, "big")
        content[20:24] = width.to_bytes(4, "big")
        content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
        (tmp_path / "1_1.png").write_bytes(content)
        (bad,) = hat.read(tmp_path / "1_1.png")
        assert isinstance(bad, InvalidRecord)
        assert "larg" in bad.reason


def test_files_that_are_not_there_and_damaged_ones_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"holds no \.png"):
        list(hat.read(tmp_path))
    with pytest.raises(InvalidFile, match="cannot be opened"):
        list(hat.read(tmp_path / "1_1.png"))
    (tmp_path / "1_1.png").write_bytes(b"GIF89a")
    with pytest.raises(InvalidFile, match="not a readable PNG"):
        list(hat.read(tmp_path / "1_1.png"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_bytes_crash_the_reader(data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(save(tmp_path / "1_1.png").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    (tmp_path / "1_1.png").write_bytes(content)
    (value,) = hat.read(tmp_path)
    assert isinstance(value, HumanAttention) or value.reason
