"""Where the photo lies in the input, what lies beside it, and how its colours are scaled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from saywhere.assets.checkpoint import find_checkpoint
from saywhere.core import Frame, InvalidValue
from saywhere.vision.hub import open_hub_encoder
from saywhere.vision.pixels import CLIP, FITS, IMAGENET, Pixels, frame_of, pixels_of
from tests.vision.hub.conftest import MakePhoto

WHERE = torch.zeros(1)
PLAIN = Pixels((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def _eight_bits(pixels: Pixels, image: Image.Image, frame: Frame) -> np.ndarray:
    values = pixels.tensor([image], [frame], WHERE)[0].permute(1, 2, 0).numpy()
    return np.rint((values * pixels.std + pixels.mean) * 255)


def test_colours_are_scaled_by_mean_and_spread() -> None:
    image = Image.new("RGB", (2, 2), (255, 0, 51))
    seen = CLIP.tensor([image], [frame_of((2, 2), 2, (1, 1), "squash")], WHERE)
    expected = (np.array([1, 0, 0.2]) - CLIP.mean) / CLIP.std
    assert seen.shape == (1, 3, 2, 2)
    np.testing.assert_allclose(seen[0, :, 1, 0].numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (16, 16), (7, 50)])
def test_a_centre_crop_is_resize_and_then_crop(make_photo: MakePhoto, size: tuple[int, int]) -> None:
    # Greyish, so that nothing is cut off at black and white between Pillow's two passes, whose order may differ.
    image = make_photo(size=size).point(lambda value: 96 + value // 4)
    frame = frame_of(size, 16, (4, 4), "centre_crop")
    left, top = -frame.offset[0], -frame.offset[1]
    resized = image.resize(frame.span, Image.Resampling.BICUBIC).crop((left, top, left + 16, top + 16))
    assert min(frame.span) == 16
    assert np.abs(_eight_bits(PLAIN, image, frame) - np.asarray(resized)).max() <= 1


def test_beside_a_letterboxed_photo_the_network_sees_nothing(make_photo: MakePhoto) -> None:
    frame = frame_of((32, 16), 16, (4, 4), "letterbox")
    seen = IMAGENET.tensor([make_photo(size=(32, 16))], [frame], WHERE)[0]
    assert seen[:, [0, 3, 12, 15]].abs().max() < 0.01
    assert seen[:, 4:12].abs().min(dim=2).values.max() > 0.01


def test_a_squashed_photo_is_seen_whole(make_photo: MakePhoto) -> None:
    image = make_photo(size=(40, 30))
    seen = _eight_bits(PLAIN, image, frame_of((40, 30), 16, (4, 4), "squash"))
    np.testing.assert_array_equal(seen, np.asarray(image.resize((16, 16), Image.Resampling.BICUBIC)))


@given(width=st.integers(1, 300), height=st.integers(1, 300), side=st.integers(1, 64), fit=st.sampled_from(FITS))
def test_any_photo_fits_any_square(width: int, height: int, side: int, fit: str) -> None:
    frame = frame_of((width, height), side, (1, 1), fit)
    seen = PLAIN.tensor([Image.new("RGB", (width, height), "white")], [frame], WHERE)
    left, top, right, bottom = frame.visible_xyxy
    assert seen.shape == (1, 3, side, side)
    # White where the photo is and black beside it, to the pixel.
    area_px = round((right - left) * frame.span[0]) * round((bottom - top) * frame.span[1])
    assert round(float(seen[0, 0].sum())) == area_px


@pytest.mark.parametrize("fit", FITS)
def test_a_long_thin_photo_takes_no_gigabytes(fit: str) -> None:
    frame = frame_of((20_000, 3), 32, (8, 8), fit)
    assert PLAIN.tensor([Image.new("RGB", (20_000, 3))], [frame], WHERE).shape == (1, 3, 32, 32)


@pytest.mark.parametrize(
    ("fit", "size", "square_px", "cells"),
    [
        ("squash", (16, 16), (0, 0), [(0, 0)]),
        ("squash", (16, 16), (12, 4), [(1, 3)]),
        # Of 32 columns the middle 16 are seen.
        ("centre_crop", (32, 16), (16, 8), [(2, 2)]),
        ("centre_crop", (32, 16), (8, 12), [(3, 0)]),
        ("centre_crop", (32, 16), (0, 0), []),
        # Eight rows lie in the middle of sixteen.
        ("letterbox", (16, 8), (4, 0), [(1, 1)]),
        ("letterbox", (16, 8), (12, 4), [(2, 3)]),
    ],
)
def test_a_bright_square_changes_the_patch_under_it_and_no_other(
    checkpoints: dict[str, str],
    fit: str,
    size: tuple[int, int],
    square_px: tuple[int, int],
    cells: list[tuple[int, int]],
) -> None:
    # With attention off in all three blocks no patch knows of another.
    encoder = open_hub_encoder(f"invite:{checkpoints['clip']}", fit=fit, attention_off=3)
    dark = Image.new("RGB", size, (40, 60, 80))
    bright = dark.copy()
    x, y = square_px
    bright.paste((255, 255, 255), (x, y, x + 4, y + 4))
    before, after = encoder.look_many([dark, bright])
    changed = np.abs(after.patches - before.patches).max(axis=-1) > 1e-4
    assert [tuple(cell) for cell in np.argwhere(changed)] == cells
    centre = [((x + 2) / size[0], (y + 2) / size[1])]
    assert after.frame.sees(centre)[0] == bool(cells)
    if cells:
        assert tuple(after.frame.cells(centre)[0]) == cells[0]


def test_what_lies_beside_the_photo_gets_no_attention(checkpoints: dict[str, str], make_photo: MakePhoto) -> None:
    encoder = open_hub_encoder(f"clip:{checkpoints['clip']}", fit="letterbox")
    attention = encoder.look(make_photo(size=(16, 8))).attention
    assert attention is not None
    assert attention[[0, 3]].max() == 0
    assert attention[1:3].min() > 0
    np.testing.assert_allclose(attention.sum(), 1, atol=1e-6)


def test_the_preprocessors_word_counts_where_there_is_one(copied: Callable[[str], Path]) -> None:
    folder = copied("clip")
    assert pixels_of(find_checkpoint(str(folder)), CLIP) == CLIP
    said = {"image_mean": [0.1, 0.2, 0.3], "image_std": [1, 2, 3], "resample": 2}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    found = pixels_of(find_checkpoint(str(folder)), CLIP)
    assert found == Pixels((0.1, 0.2, 0.3), (1, 2, 3), 2)
    assert open_hub_encoder(f"clip:{folder}").backbone.pixels == found


@pytest.mark.parametrize(
    "values",
    [
        ((0, 0), (1, 1, 1), 2),
        ((0, 0, 0), (1, 0, 1), 2),
        ((0, 0, float("nan")), (1, 1, 1), 2),
        ((0, 0, 0), (1, 1, 1), 77),
    ],
)
def test_colours_that_cannot_be_scaled_are_an_error(values: tuple[object, ...]) -> None:
    with pytest.raises(InvalidValue, match="Pixels"):
        Pixels(*values)
