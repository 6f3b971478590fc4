"""One look: the same alone and among others, at any size, with patches where the photo has them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saywhere.assets import is_cached
from saywhere.core import Box, InvalidValue, UnknownName
from saywhere.vision import open_encoder
from saywhere.vision.look import LiteEncoder
from tests.vision.conftest import SavePhoto, tiny_network


def test_a_look_gives_a_grid_of_patches_and_their_mean(encoder: LiteEncoder, save_photo: SavePhoto) -> None:
    view = encoder.look(save_photo(size=(50, 30)))
    assert view.patches.shape == (2, 2, encoder.size)
    assert view.patches.dtype == view.whole.dtype == np.float32
    assert view.frame.photo_size == (50, 30)
    np.testing.assert_allclose(view.whole, view.patches.mean(axis=(0, 1)), rtol=1e-5)
    assert Box(0, 0, 0.5, 0.5).weights(view.frame).shape == (2, 2)


def test_a_photo_looks_the_same_alone_and_among_others(encoder: LiteEncoder, save_photo: SavePhoto) -> None:
    paths = [save_photo(f"{n}.png", n, (20 + n, 30)) for n in range(3)]
    for path, view in zip(paths, encoder.look_many(paths), strict=True):
        np.testing.assert_allclose(view.patches, encoder.look(path).patches, atol=1e-5)
    assert not np.allclose(encoder.look(paths[0]).patches, encoder.look(paths[1]).patches)
    assert encoder.look_many([]) == []


def test_a_file_and_its_image_look_the_same(encoder: LiteEncoder, save_photo: SavePhoto) -> None:
    path = save_photo()
    with Image.open(path) as image:
        np.testing.assert_array_equal(encoder.look(image).patches, encoder.look(path).patches)


def test_the_network_gets_red_first_and_127_as_zero(encoder: LiteEncoder) -> None:
    seen = encoder.inputs([Image.new("RGB", (8, 8), (255, 127, 0))])
    assert seen.shape == (1, 3, 64, 64)
    torch.testing.assert_close(seen[0, :, 0, 0], torch.tensor([1.0, 0.0, -127 / 128]))


@torch.no_grad()
def test_patches_are_the_networks_map_rows_first(encoder: LiteEncoder, save_photo: SavePhoto) -> None:
    path = save_photo()
    with Image.open(path) as image:
        seen = encoder.network.features(encoder.inputs([image]))
    patches = encoder.look(path).patches
    for row, col in np.ndindex(2, 2):
        np.testing.assert_array_equal(patches[row, col], seen[0, :, row, col].numpy())
    assert not np.allclose(patches[0, 1], patches[1, 0])


@pytest.mark.parametrize("side", [0, -32, 100])
def test_an_input_that_is_no_multiple_of_32_is_refused(side: int) -> None:
    with pytest.raises(InvalidValue, match="multiple of 32"):
        LiteEncoder(tiny_network(), "tiny", "", side)
    with pytest.raises(InvalidValue, match="multiple of 32"):
        open_encoder("efficientnet-lite0", side)


def test_an_unknown_encoder_suggests_a_known_one() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'efficientnet-lite0'"):
        open_encoder("efficientnet-light0")
    with pytest.raises(UnknownName, match=r"Did you mean .*'dinov2'"):
        open_encoder("dinov9:somewhere")


def test_importing_vision_loads_no_torch() -> None:
    code = "import sys, saywhere.vision, saywhere.assets; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ImageNet's number for what plainly fills these photos of COCO: pizza.
PLAIN = [("000000032038", 963), ("000000374982", 963)]


@pytest.mark.parametrize(("photo", "number"), PLAIN)
def test_the_real_network_names_what_fills_a_photo(shared: Callable[[str], Path], photo: str, number: int) -> None:
    path = shared(f"data/coco_val/photos/{photo}.webp")
    if not is_cached("efficientnet-lite0"):
        pytest.skip("efficientnet-lite0 is not in the cache")
    encoder = open_encoder("efficientnet-lite0", 224)
    view = encoder.look(path)
    logits = encoder.network.logits(torch.from_numpy(view.patches.copy()).permute(2, 0, 1)[None])
    assert int(logits.argmax()) == number
