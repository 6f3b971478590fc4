"""The second look: means of features over the whole photo and over windows."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image

from saywhere.vision.auxiliary import INPUT_PX, LARGEST, WINDOWS, Auxiliary, AuxiliaryNet, to_bytes, to_floats
from saywhere.vision.efficientnet import MEAN_8BIT, SCALE_8BIT
from tests.vision.conftest import TINY, tiny_network


def looker() -> Auxiliary:
    network = AuxiliaryNet(tiny_network())

    def run(pixels: np.ndarray) -> tuple[np.ndarray, ...]:
        with torch.inference_mode():
            return (network(torch.from_numpy(pixels)).numpy(),)

    return Auxiliary(run, TINY.head)


def noise(seed: int, size: tuple[int, int] = (90, 70)) -> Image.Image:
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def test_the_whole_comes_first_and_then_windows_row_by_row() -> None:
    image = noise(0, (INPUT_PX, INPUT_PX))
    seen = looker().look(image)
    assert seen.shape == (1 + WINDOWS**2, TINY.head)
    pixels = torch.from_numpy(np.asarray(image).copy())[None].permute(0, 3, 1, 2).float()
    with torch.inference_mode():
        features = tiny_network().features((pixels - MEAN_8BIT) / SCALE_8BIT)[0].numpy()
    np.testing.assert_allclose(seen[0], features.mean(axis=(1, 2)), rtol=1e-4, atol=1e-5)
    side = features.shape[1] // WINDOWS
    first_row_last = features[:, :side, -side:].mean(axis=(1, 2))
    np.testing.assert_allclose(seen[WINDOWS], first_row_last, rtol=1e-4, atol=1e-5)


def test_one_photo_is_seen_as_among_others() -> None:
    images = [noise(1), noise(2, (33, 200))]
    both = looker().look_many(images)
    np.testing.assert_allclose(looker().look(images[1]), both[1], rtol=1e-4, atol=1e-5)
    assert np.abs(both[0] - both[1]).max() > 1e-3


def test_a_byte_a_number_is_near_enough() -> None:
    features = np.linspace(-1, LARGEST + 1, 50, dtype=np.float32)
    stored = to_bytes(features)
    assert stored.dtype == np.uint8
    np.testing.assert_allclose(to_floats(stored), features.clip(0, LARGEST), atol=LARGEST / 255)
