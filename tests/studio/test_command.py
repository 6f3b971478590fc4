"""`saywhere studio`: what it takes, what it refuses, and what it would serve."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from saywhere.cli.studio import page_address, studio
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.studio.settings import StudioSettings, default_folder
from tests.studio.conftest import HEIC, png

TOKEN = "correct-horse-battery"


@pytest.fixture
def command() -> typer.Typer:
    app = typer.Typer()
    app.command()(studio)
    return app


def _served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[StudioSettings, bool]]:
    """What would be served, instead of serving it."""
    served: list[tuple[StudioSettings, bool]] = []
    monkeypatch.setattr("saywhere.cli.studio._serve", lambda settings, _, browser: served.append((settings, browser)))
    return served


def test_the_command_takes_photos_and_a_free_port(
    command: typer.Typer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served = _served(monkeypatch)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.png").write_bytes(png())
    (tmp_path / "mine" / "bad.png").write_bytes(b"x")
    for name in ("IMG_1.HEIC", "IMG_2.heic"):
        (tmp_path / "mine" / name).write_bytes(HEIC)
    arguments = ["--photos", tmp_path / "mine", "--port", 0, "--folder", tmp_path / "kept", "--no-browser"]
    result = CliRunner().invoke(command, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    (settings, browser), *_ = served
    assert settings.port > 0
    assert not browser
    assert len(list((tmp_path / "kept" / "photos").glob("*.png"))) == 1
    assert f"passed over {tmp_path / 'mine' / 'bad.png'}: " in result.stderr
    assert f"passed over {tmp_path / 'mine' / 'IMG_2.heic'}: the file is HEIC" in result.stderr
    assert result.stderr.count("save it as JPEG") == 1
    assert f"1 photos taken from {tmp_path / 'mine'}, 3 passed over" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--host", "0.0.0.0"], InvalidValue),
        (["--model", "no-such-model"], UnknownName),
        (["--photos", "no-such-folder"], InvalidFile),
    ],
)
def test_the_command_refuses_before_it_opens_a_port(
    command: typer.Typer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], error: type[Exception]
) -> None:
    served = _served(monkeypatch)
    result = CliRunner().invoke(command, ["--folder", str(tmp_path), "--port", "0", *arguments])
    assert isinstance(result.exception, error)
    assert served == []


def test_a_port_in_use_is_said(command: typer.Typer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _served(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(command, ["--folder", str(tmp_path), "--port", port])
    assert isinstance(result.exception, InvalidValue)
    assert "--port 0" in str(result.exception)


@pytest.mark.parametrize(
    ("host", "token", "address"),
    [
        ("127.0.0.1", "", "http://127.0.0.1:8765/"),
        ("::1", "", "http://[::1]:8765/"),
        ("0.0.0.0", TOKEN + "&", f"http://127.0.0.1:8765/?token={TOKEN}%26"),
    ],
)
def test_the_address_to_open_is_whole(tmp_path: Path, host: str, token: str, address: str) -> None:
    assert page_address(StudioSettings(tmp_path, host=host, token=token)) == address


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SAYWHERE_STUDIO", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("SAYWHERE_STUDIO")
    assert default_folder().parts[-2:] == ("saywhere", "studio")
