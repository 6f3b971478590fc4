"""Photos of every kind that people have, and files that are none."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.core import InvalidFile
from saywhere.vision import read_photo


def _bytes(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _read(tmp_path: Path, content: bytes) -> np.ndarray:
    path = tmp_path / "photo"
    path.write_bytes(content)
    return np.asarray(read_photo(path))


def _animation(kind: str) -> bytes:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    return _bytes(frames[0], kind, save_all=True, append_images=frames[1:])


def _bomb() -> bytes:
    """A PNG of a hundred bytes that claims 60,000 × 60,000 pixels."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    packed = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def test_a_photo_on_its_side_is_turned_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (30, 20), "blue")
    exif = image.getexif()
    exif[0x0112] = 6
    assert _read(tmp_path, _bytes(image, "JPEG", exif=exif)).shape == (30, 20, 3)


@pytest.mark.parametrize(
    ("image", "kind", "rgb"),
    [
        (Image.new("L", (2, 2), 100), "PNG", (100, 100, 100)),
        (Image.new("1", (2, 2), 1), "PNG", (255, 255, 255)),
        (Image.fromarray(np.full((2, 2), 65535, np.uint16)), "PNG", (255, 255, 255)),
        (Image.fromarray(np.full((2, 2), 257 * 100, np.uint16)), "TIFF", (100, 100, 100)),
        (Image.new("RGBA", (2, 2), (0, 0, 0, 0)), "PNG", (255, 255, 255)),
        (Image.new("LA", (2, 2), (0, 255)), "PNG", (0, 0, 0)),
        (Image.new("RGB", (2, 2), (255, 0, 0)).quantize(4), "PNG", (255, 0, 0)),
        (Image.new("CMYK", (2, 2), (0, 255, 255, 0)), "TIFF", (255, 0, 0)),
        (Image.new("RGB", (1, 1), (1, 2, 3)), "BMP", (1, 2, 3)),
        (Image.new("RGB", (20_000, 3), (9, 9, 9)), "PNG", (9, 9, 9)),
    ],
    ids=["grey", "bit", "16 bits", "16 bits TIFF", "clear", "grey alpha", "palette", "CMYK", "1x1", "20000x3"],
)
def test_every_kind_of_photo_becomes_eight_bit_rgb(
    tmp_path: Path, image: Image.Image, kind: str, rgb: tuple[int, int, int]
) -> None:
    pixels = _read(tmp_path, _bytes(image, kind))
    assert pixels.shape == (image.height, image.width, 3)
    assert pixels.dtype == np.uint8
    assert (pixels == rgb).all()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an image of a known kind"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "not an image of a known kind"),
        (_bytes(Image.effect_noise((64, 64), 50).convert("RGB"), "JPEG")[:400], "is damaged"),
        (_bytes(Image.effect_noise((64, 64), 50), "PNG")[:200], "is damaged"),
        (_bomb(), "too many pixels"),
        (_animation("GIF"), "holds 2 pictures"),
        (_animation("WEBP"), "holds 2 pictures"),
        (_animation("TIFF"), "holds 2 pictures"),
        (_bytes(Image.new("F", (2, 2), 0.5), "TIFF"), "measurements"),
        (_bytes(Image.new("I", (2, 2), 1 << 20), "TIFF"), "measurements"),
    ],
    ids=["empty", "EPS", "JPEG", "PNG", "bomb", "GIF", "WebP", "TIFF", "floats", "32 bits"],
)
def test_what_is_no_photo_is_named_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(InvalidFile, match=reason) as caught:
        _read(tmp_path, content)
    assert caught.value.path == str(tmp_path / "photo")


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="is a folder"):
        read_photo(tmp_path)
    with pytest.raises(InvalidFile, match="does not exist"):
        read_photo(tmp_path / "absent.jpg")


def test_an_image_given_is_not_changed() -> None:
    image = Image.new("RGB", (2, 2), "red")
    read = read_photo(image)
    read.putpixel((0, 0), (0, 0, 0))
    assert image.getpixel((0, 0)) == (255, 0, 0)
