"""A tiny network with random weights, so that no test needs the network or the time of a real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn

from saywhere.vision.efficientnet import EfficientNetLite, LiteConfig
from saywhere.vision.look import LiteEncoder

TINY = LiteConfig(repeats=(1, 2, 1, 1, 1, 1, 1), widths=(4, 4, 5, 6, 6, 7, 8), stem=4, head=9, classes=5)
SavePhoto = Callable[..., Path]


def tiny_network(seed: int = 0, *, classifier: bool = True) -> EfficientNetLite:
    """In eval mode, with batch norms as they are after training: no two channels alike."""
    rng = torch.Generator().manual_seed(seed)
    network = EfficientNetLite(TINY, classifier=classifier).eval()
    with torch.no_grad():
        for tensor in network.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=rng) * 0.5 + 0.5)
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                module.weight.copy_(torch.randn(module.weight.shape, generator=rng) * 0.5)
    return network


@pytest.fixture
def encoder() -> LiteEncoder:
    return LiteEncoder(tiny_network(), "tiny", "0" * 64, 64)


@pytest.fixture
def save_photo(tmp_path: Path) -> SavePhoto:
    """A small photo of noise as a file."""

    def save(name: str = "photo.png", seed: int = 0, size: tuple[int, int] = (40, 30)) -> Path:
        rng = torch.Generator().manual_seed(seed)
        pixels = torch.randint(0, 256, (size[1], size[0], 3), generator=rng, dtype=torch.uint8)
        path = tmp_path / name
        Image.fromarray(pixels.numpy()).save(path)
        return path

    return save
