"""A wheel is asked for by its own tags, so that any machine gets the very file whose hash is known."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from saywhere.assets import AssetUnavailable, Wheel, wheel
from saywhere.assets.wheel import download

LINUX = "some_thing-1.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(
    ("file", "asked"),
    [
        ("some_thing-1.0-py3-none-any.whl", ""),
        (
            LINUX,
            "--implementation cp --python-version 311 --abi cp311 "
            "--platform manylinux_2_24_x86_64 --platform manylinux_2_28_x86_64",
        ),
    ],
)
def test_pip_is_told_the_machine_only_where_a_wheel_is_for_one(
    file: str, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def watched(command: list[str], folder: Path, progress: object) -> tuple[int, str]:
        commands.append(command)
        return 1, "ERROR: no network"

    monkeypatch.setattr(wheel, "_watched", watched)
    with pytest.raises(AssetUnavailable, match="no network"):
        download("thing", Wheel("some-thing", "1.0", file), tmp_path)
    [command] = commands
    assert command[-1] == "some-thing==1.0"
    after_folder = command[command.index(str(tmp_path)) + 1 : -1]
    assert " ".join(after_folder) == asked


def test_a_folder_that_vanishes_while_its_bytes_are_counted_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from saywhere.assets.wheel import _bytes_in

    (tmp_path / "unpack").mkdir()
    (tmp_path / "unpack" / "gone").write_bytes(b"12345")
    (tmp_path / "kept").write_bytes(b"123")
    listing = os.scandir

    def vanished(folder: Any) -> Any:
        if Path(folder).name == "unpack":
            raise FileNotFoundError(folder)
        return listing(folder)

    monkeypatch.setattr(os, "scandir", vanished)
    assert _bytes_in(tmp_path) == 3
