"""`saywhere assets`: what there is, bringing it, and finding what was altered."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from saywhere.assets import Asset, AssetFile, Wheel, folder_of, registry
from saywhere.cli.assets import app
from saywhere.core import InvalidValue, UnknownName

FILE = "tiny_weights-1.0-py3-none-any.whl"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world with one asset, its wheel in the folder that pip takes for the index."""
    for name, value in (("PIP_CONFIG_FILE", os.devnull), ("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(tmp_path))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SAYWHERE_CACHE", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / FILE, "w") as wheel:
        wheel.writestr("tiny_weights/weights", b"good")
        wheel.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr("tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    file = AssetFile("weights", "tiny_weights/weights", 4, hashlib.sha256(b"good").hexdigest())
    asset = Asset("tiny", "a few bytes", "CC0-1.0", Wheel("tiny-weights", "1.0", FILE), (file,))
    monkeypatch.setattr(registry, "_ASSETS", {"tiny": asset})
    return tmp_path / FILE


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def _put(content: bytes) -> None:
    """The asset in the cache, as if it had been fetched."""
    folder_of("tiny").mkdir(parents=True, exist_ok=True)
    (folder_of("tiny") / "weights").write_bytes(content)


def test_the_list_says_name_size_licence_and_whether_it_is_there(tiny: Path) -> None:
    before = _run("list")
    assert before.exit_code == 0
    assert before.stdout.splitlines()[0].split() == ["tiny", "0.0", "MB", "-", "CC0-1.0", "a", "few", "bytes"]
    _put(b"good")
    assert _run("list").stdout.splitlines()[0].split()[3] == "cached"


@pytest.mark.parametrize("arguments", [("--all",), ("tiny", "tiny")])
def test_fetching_shows_the_licence_and_how_far_it_is(tiny: Path, arguments: tuple[str, ...]) -> None:
    ran = _run("fetch", *arguments)
    assert ran.exit_code == 0
    assert ran.stdout.count("Licence: CC0-1.0") == 1
    assert "fetching tiny (MB): 1 of 1" in ran.stderr
    assert (folder_of("tiny") / "weights").read_bytes() == b"good"


def test_verifying_ends_with_1_when_something_is_missing_or_altered(tiny: Path) -> None:
    missing = _run("verify")
    assert missing.exit_code == 1
    assert "is not in the cache: no weights" in missing.stderr
    assert "saywhere assets fetch tiny" in missing.stderr
    _put(b"good")
    good = _run("verify", "tiny")
    assert good.exit_code == 0
    assert "tiny: unaltered" in good.stdout
    _put(b"evil")
    altered = _run("verify")
    assert altered.exit_code == 1
    assert "was altered or damaged" in altered.stderr


def test_without_the_network_it_is_an_error_and_nothing_is_kept(tiny: Path) -> None:
    tiny.unlink()
    ran = _run("fetch", "tiny")
    assert ran.exit_code != 0
    assert "could not be fetched" in str(ran.exception)
    assert not folder_of("tiny").exists()


def test_names_must_be_known_and_either_names_or_all_given(tiny: Path) -> None:
    assert isinstance(_run("fetch", "tinny").exception, UnknownName)
    assert isinstance(_run("verify", "tinny").exception, UnknownName)
    assert isinstance(_run("fetch").exception, InvalidValue)
    assert isinstance(_run("fetch", "tiny", "--all").exception, InvalidValue)
