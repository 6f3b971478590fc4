"""Assets from the hub: one fixed commit, checked like any other, and clear when there is no way to it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from saywhere.assets import Asset, AssetFile, AssetUnavailable, Hub, fetch, folder_of, register, registry
from saywhere.assets.hub import local_folder
from saywhere.core import InvalidFile, InvalidValue

huggingface_hub = pytest.importorskip("huggingface_hub")
errors = pytest.importorskip("huggingface_hub.errors")

REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def asset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asset:
    monkeypatch.setenv("SAYWHERE_CACHE", str(tmp_path / "cache"))
    content = b"weights"
    file = AssetFile("model.safetensors", "sub/model.safetensors", len(content), hashlib.sha256(content).hexdigest())
    made = Asset("tiny-hub", "a few bytes", "CC0-1.0", Hub("someone/tiny", REVISION), (file,))
    monkeypatch.setattr(registry, "_ASSETS", dict(registry._ASSETS))
    register(made)
    return made


def _serve(monkeypatch: pytest.MonkeyPatch, content: bytes | Exception) -> list[tuple[str, str, str]]:
    """Let the library's download give this content, and remember what it was asked for."""
    asked: list[tuple[str, str, str]] = []

    def download(repo: str, file: str, *, revision: str, local_dir: Path) -> str:
        asked.append((repo, file, revision))
        if isinstance(content, Exception):
            raise content
        path = Path(local_dir) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return asked


def test_a_file_comes_from_the_fixed_commit_and_only_once(asset: Asset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _serve(monkeypatch, b"weights")
    told: list[tuple[str, int, int]] = []
    folder = fetch("tiny-hub", lambda *count: told.append(count))
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert fetch("tiny-hub") == folder
    assert asked == [("someone/tiny", "sub/model.safetensors", REVISION)]
    assert told[0] == ("fetching tiny-hub", 0, 7)
    assert told[-1] == ("fetching tiny-hub", 7, 7)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"evil!!!", "is not the file it should be"), (b"weights and more", "has 16 bytes, not 7")],
)
def test_other_bytes_are_refused_and_nothing_is_kept(
    asset: Asset, monkeypatch: pytest.MonkeyPatch, content: bytes, reason: str
) -> None:
    _serve(monkeypatch, content)
    with pytest.raises(InvalidFile, match=f"someone/tiny@0123456789ab: sub/model.safetensors {reason}"):
        fetch("tiny-hub")
    assert not folder_of("tiny-hub").exists()


@pytest.mark.parametrize(
    "error",
    [
        errors.LocalEntryNotFoundError("no connection\nlong advice"),
        errors.OfflineModeIsEnabled("no connection"),
        ConnectionError("no connection"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_without_the_network_the_message_says_what_and_how(
    asset: Asset, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    _serve(monkeypatch, error)
    with pytest.raises(AssetUnavailable, match="could not be fetched from the hub: no connection\\.") as caught:
        fetch("tiny-hub")
    assert "saywhere assets fetch tiny-hub" in caught.value.how_to_get
    assert "huggingface.co/someone/tiny" in caught.value.how_to_get


def test_a_known_name_is_never_given_to_something_else(asset: Asset) -> None:
    register(asset)
    with pytest.raises(InvalidValue, match="already known"):
        register(Asset("tiny-hub", "other bytes", "MIT", asset.source, asset.files))


def _snapshots(monkeypatch: pytest.MonkeyPatch, answer: Path | Exception) -> list[tuple[str, object, object]]:
    """Let the library give this folder for any name, and remember what it was asked for."""
    asked: list[tuple[str, object, object]] = []

    def snapshot(repo: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((repo, revision, allow_patterns))
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    return asked


def test_a_folder_here_needs_no_hub_and_has_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _snapshots(monkeypatch, OSError("never asked"))
    assert local_folder(tmp_path, ["*.json"]) == tmp_path
    with pytest.raises(InvalidValue, match="only the hub has revisions"):
        local_folder(tmp_path, ["*.json"], "main")
    assert asked == []


def test_a_name_is_fetched_at_its_revision_and_only_what_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _snapshots(monkeypatch, tmp_path)
    assert local_folder("someone/tiny", ("*.json",), "v2") == tmp_path
    assert asked == [("someone/tiny", "v2", ["*.json"])]


@pytest.mark.parametrize(
    "error", [OSError("no network\nand more"), ValueError("no network"), errors.HTTPError("no network")]
)
def test_a_hub_that_gives_nothing_says_why_and_how_to_get_it(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    _snapshots(monkeypatch, error)
    with pytest.raises(AssetUnavailable, match="does not give it: no network") as caught:
        local_folder("someone/tiny", ("*.json",))
    assert "hf download someone/tiny" in str(caught.value)
    assert "and more" not in str(caught.value)


@pytest.mark.parametrize("source", ["tiny", "./some/where", "/no/folder", "~/models", "a/b/c", "../x"])
def test_what_is_neither_folder_nor_name_is_never_asked_for(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _snapshots(monkeypatch, OSError("never asked"))
    with pytest.raises(InvalidFile, match="owner/name"):
        local_folder(source, ("*.json",))
    assert asked == []
