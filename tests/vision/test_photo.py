"""Photos of every kind that people have, and files that are none."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from saywhere.core import InvalidFile, InvalidValue
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


def _png(size: tuple[int, int], depth: int, colours: int, rows: bytes) -> bytes:
    """A PNG by hand, since Pillow writes neither 16-bit colours nor files that lie."""
    header = struct.pack(">IIBBBBB", *size, depth, colours, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    packed = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


RGB16 = _png((1, 1), 16, 2, b"\x00" + struct.pack(">HHH", 65535, 257 * 100, 0))
# A hundred bytes that claim 3.6 thousand million pixels, past Pillow's own limit; and just past ours.
BOMB, LARGE = _png((60_000, 60_000), 8, 2, b""), _png((10_001, 10_000), 8, 2, b"")


def _clear_palette() -> Image.Image:
    image = Image.new("P", (2, 2), 0)
    image.putpalette([0, 0, 0, 9, 9, 9])
    image.info["transparency"] = 0
    return image


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
        (_clear_palette(), "PNG", (255, 255, 255)),
        (_clear_palette(), "GIF", (255, 255, 255)),
        (Image.new("CMYK", (2, 2), (0, 255, 255, 0)), "TIFF", (255, 0, 0)),
        (Image.new("CMYK", (16, 16), (0, 0, 0, 255)), "JPEG", (0, 0, 0)),
        (Image.new("RGB", (1, 1), (1, 2, 3)), "BMP", (1, 2, 3)),
        (Image.new("RGB", (20_000, 3), (9, 9, 9)), "PNG", (9, 9, 9)),
    ],
    ids=[
        *("grey", "bit", "16 bits", "16 bits TIFF", "clear", "grey alpha", "palette", "clear palette", "clear GIF"),
        *("CMYK", "CMYK JPEG", "1x1", "20000x3"),
    ],
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
        (b"", "is not an image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "is not an image"),
        (_bytes(Image.effect_noise((64, 64), 50).convert("RGB"), "JPEG")[:400], "cannot be read"),
        (_bytes(Image.effect_noise((64, 64), 50), "PNG")[:200], "cannot be read"),
        (BOMB, "has more than 100 million pixels"),
        (LARGE, "has 10001×10000 pixels, more than 100 million of them"),
        (_animation("TIFF"), "holds 2 pages"),
        (_bytes(Image.new("LAB", (2, 2)), "TIFF"), "colours of the kind LAB"),
        (_bytes(Image.new("F", (2, 2), 0.5), "TIFF"), "measurements"),
        (_bytes(Image.new("I", (2, 2), 1 << 20), "TIFF"), "measurements"),
    ],
    ids=["empty", "EPS", "JPEG", "PNG", "bomb", "large", "TIFF", "LAB", "floats", "32 bits"],
)
def test_what_is_no_photo_is_named_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(InvalidFile, match=reason) as caught:
        _read(tmp_path, content)
    assert caught.value.path == str(tmp_path / "photo")


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_a_moving_picture_the_first_one_is_the_photo(tmp_path: Path, kind: str) -> None:
    content = _animation(kind)
    with Image.open(io.BytesIO(content)) as image:
        assert image.n_frames == 2
    np.testing.assert_allclose(_read(tmp_path, content)[0, 0].astype(int), (255, 0, 0), atol=3)


def test_sixteen_bit_colours_keep_their_brightness(tmp_path: Path) -> None:
    assert _read(tmp_path, RGB16).tolist() == [[[255, 100, 0]]]


def test_a_photo_too_large_is_never_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("decoded"))
    with pytest.raises(InvalidFile, match="100 million"):
        _read(tmp_path, LARGE)


def test_a_file_its_content_its_image_and_its_pixels_are_one_photo(tmp_path: Path) -> None:
    image = Image.effect_noise((6, 4), 80).convert("RGB")
    image.save(tmp_path / "photo.png")
    pixels = np.asarray(image)
    for photo in (tmp_path / "photo.png", str(tmp_path / "photo.png"), _bytes(image, "PNG"), image, pixels):
        np.testing.assert_array_equal(np.asarray(read_photo(photo)), pixels)


@pytest.mark.parametrize(
    ("pixels", "rgb"),
    [
        (np.full((2, 3), 7, np.uint8), (7, 7, 7)),
        (np.full((2, 3, 4), (1, 2, 3, 255), np.uint8), (1, 2, 3)),
        (np.full((2, 3, 4), (1, 2, 3, 0), np.uint8), (255, 255, 255)),
    ],
    ids=["grey", "opaque", "clear"],
)
def test_arrays_of_grey_and_alpha_are_photos_too(pixels: np.ndarray, rgb: tuple[int, int, int]) -> None:
    read = np.asarray(read_photo(pixels))
    assert read.shape == (2, 3, 3)
    assert (read == rgb).all()


@pytest.mark.parametrize(
    ("photo", "reason"),
    [
        (np.zeros((2, 2, 3)), "array of float64"),
        (np.zeros((3, 8, 8), np.uint8), r"uint8 \(3, 8, 8\)"),
        (np.zeros((0, 4, 3), np.uint8), r"uint8 \(0, 4, 3\)"),
        (np.zeros(5, np.uint8), r"uint8 \(5,\)"),
        (b"hello", "is not an image"),
        (_bytes(Image.effect_noise((64, 64), 50), "PNG")[:200], "cannot be read"),
        (Image.new("RGB", (0, 3)), "has no pixels: 0×3"),
        (Image.new("F", (2, 2)), "measurements"),
    ],
    ids=["floats", "channels first", "empty", "flat", "text", "cut off", "no width", "measurements"],
)
def test_what_was_given_and_is_no_photo_is_an_invalid_value(photo: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        read_photo(photo)  # type: ignore[arg-type]


def test_an_image_opened_by_the_caller_from_a_torn_file_is_an_invalid_value() -> None:
    torn = _bytes(Image.effect_noise((64, 64), 50), "PNG")[:200]
    with Image.open(io.BytesIO(torn)) as image, pytest.raises(InvalidValue, match="cannot be read"):
        read_photo(image)


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="is a folder"):
        read_photo(tmp_path)
    with pytest.raises(InvalidFile, match="was not found"):
        read_photo(tmp_path / "absent.jpg")


def test_an_image_given_is_not_changed() -> None:
    image = Image.new("RGB", (2, 2), "red")
    read = read_photo(image)
    read.putpixel((0, 0), (0, 0, 0))
    assert image.getpixel((0, 0)) == (255, 0, 0)


def test_a_photo_that_was_read_is_given_back_and_what_is_made_of_it_is_read_anew() -> None:
    given = Image.new("RGB", (4, 3), "red")
    read = read_photo(given)
    assert read is not given
    assert read_photo(read) is read
    smaller = read.resize((2, 2))
    assert read_photo(smaller) is not smaller
    np.testing.assert_array_equal(np.asarray(read), np.asarray(given))
