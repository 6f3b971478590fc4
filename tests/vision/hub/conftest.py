"""Tiny checkpoints, saved once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import save_file
from transformers.utils import logging

from saywhere.vision.hub import open_hub_encoder
from saywhere.vision.transformer import HubEncoder
from tests.vision.hub.tiny import MAKERS, dinotxt_head

MakePhoto = Callable[..., Image.Image]
OpenEncoder = Callable[..., HubEncoder]


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The folder of each tiny checkpoint, and under "head" the file of a DINO.txt head."""
    root = tmp_path_factory.mktemp("checkpoints")
    logging.disable_progress_bar()
    for name, make in MAKERS.items():
        make().save_pretrained(root / name)
    logging.enable_progress_bar()
    save_file(dinotxt_head().state_dict(), root / "head.safetensors")
    yield {name: str(root / name) for name in MAKERS} | {"head": str(root / "head.safetensors")}
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def opened(checkpoints: dict[str, str]) -> OpenEncoder:
    """An encoder by a spec with the checkpoints' names in braces, each opened once."""

    @cache
    def open_once(spec: str, **options: str | int) -> HubEncoder:
        return open_hub_encoder(spec.format(**checkpoints), **options)

    return open_once


@pytest.fixture
def copied(checkpoints: dict[str, str], tmp_path: Path) -> Callable[[str], Path]:
    """A checkpoint's folder that may be spoilt."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(checkpoints[name], tmp_path / name))

    return copy


@pytest.fixture
def make_photo() -> MakePhoto:
    def make(seed: int = 0, size: tuple[int, int] = (40, 30)) -> Image.Image:
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        return Image.fromarray(pixels)

    return make
