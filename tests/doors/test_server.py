"""The Studio's port in bad company: connections that stall, bodies that trickle, folders with monstrous files."""

from __future__ import annotations

import os
import select
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from saywhere.cli import studio as command
from saywhere.core.errors import InvalidFile
from saywhere.studio.app import create_app
from saywhere.studio.connections import server_of
from saywhere.studio.photos import PhotoStore, import_folder
from saywhere.studio.settings import MB, Limits, StudioSettings
from tests.doors.memory import memory_of
from tests.studio.conftest import FakeSeer, png

TOKEN = "correct-horse-battery"
SHORT = Limits(header_s=0.5, grace_s=0.5, floor_bytes_per_s=20_000, write_s=0.5, connections=40, uploads=1)
PATIENCE_S = 30.0
"""How long a test waits for what must happen at some time."""


@contextmanager
def served(folder: Path, limits: Limits = SHORT) -> Iterator[int]:
    """A Studio on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        settings = StudioSettings(folder, port=port, limits=limits)
        server = server_of(create_app(settings, seer=FakeSeer()), limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield port
        server.should_exit = True
        thread.join(PATIENCE_S)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with served(tmp_path / "kept") as number:
        yield number


def connected(port: int, sent: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    made.sendall(sent)
    return made


def head(port: int, method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *lines, "", ""]).encode()


def answer(connection: socket.socket) -> bytes:
    """All that the server says until it closes."""
    said = b""
    try:
        while part := connection.recv(65_536):
            said += part
    except ConnectionError:
        pass
    return said


def ask(port: int, method: str = "GET", path: str = "/api/status", body: bytes = b"", kind: str = "") -> int:
    """The status that one whole request gets."""
    lines = ["Connection: close", f"Content-Length: {len(body)}", *([f"Content-Type: {kind}"] if kind else [])]
    with connected(port, head(port, method, path, *lines) + body) as connection:
        return int(answer(connection).split(b" ", 2)[1])


@pytest.mark.parametrize("sent", [b"", b"GET /api/status HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_request_that_does_not_come_is_not_waited_for(port: int, sent: bytes) -> None:
    with connected(port, sent) as stalled:
        said = answer(stalled)
    assert said == b"" or said.startswith(b"HTTP/1.1 408")
    assert ask(port) == 200


def test_letters_that_trickle_in_do_not_keep_a_connection_open(port: int) -> None:
    with connected(port) as stalled:
        for letter in head(port, "GET", "/api/status", "X-Long: " + "x" * 10_000):
            try:
                stalled.sendall(bytes([letter]))
            except ConnectionError:
                break
            time.sleep(0.005)
        assert b" 200 " not in answer(stalled)


def test_a_body_that_stalls_is_answered_with_408_and_nothing_else_waits(port: int) -> None:
    begun = head(port, "POST", "/api/photos", "Content-Type: image/png", f"Content-Length: {20 * MB}")
    stalled = [connected(port, begun + bytes(2 * MB)) for _ in range(5)]
    assert ask(port, "POST", "/api/photos", png(), "image/png") == 201
    assert [answer(one).split(b"\r\n")[0] for one in stalled] == [b"HTTP/1.1 408 Request Timeout"] * 5
    for one in stalled:
        one.close()


def test_a_large_file_still_comes_in_while_others_stall(port: int) -> None:
    begun = head(port, "POST", "/api/photos", "Content-Type: image/png", f"Content-Length: {20 * MB}")
    stalled = [connected(port, begun + bytes(2 * MB)) for _ in range(5)]
    noise = os.urandom(2 * MB)
    assert ask(port, "POST", "/api/photos", noise, "image/png") == 415  # read whole, and found to be no photo
    for one in stalled:
        one.close()


def test_bodies_in_chunks_of_one_byte_are_refused(port: int) -> None:
    lines = ("Content-Type: image/png", "Transfer-Encoding: chunked")
    with connected(port, head(port, "POST", "/api/photos", *lines)) as tiny:
        try:
            for _ in range(200):
                tiny.sendall(b"1\r\nx\r\n" * 10_000)
        except ConnectionError:
            pass
        said = answer(tiny)
    assert said == b"" or said.startswith(b"HTTP/1.1 400")
    assert ask(port) == 200


def test_chunks_of_a_fair_size_are_taken(port: int) -> None:
    photo = png()
    parts = [photo[start : start + 64] for start in range(0, len(photo), 64)]
    body = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts) + b"0\r\n\r\n"
    lines = ("Content-Type: image/png", "Transfer-Encoding: chunked", "Connection: close")
    with connected(port, head(port, "POST", "/api/photos", *lines) + body) as fair:
        assert answer(fair).startswith(b"HTTP/1.1 201")


def test_a_size_is_checked_while_the_body_comes(port: int) -> None:
    lines = ("Content-Type: image/png", "Transfer-Encoding: chunked")
    with connected(port, head(port, "POST", "/api/photos", *lines)) as long:
        chunk = b"100000\r\n" + bytes(2**20) + b"\r\n"
        try:
            for _ in range(60):
                long.sendall(chunk)
        except ConnectionError:
            pass
        said = answer(long)
    assert said == b"" or said.startswith(b"HTTP/1.1 413")
    assert ask(port) == 200


def test_of_too_many_connections_the_one_that_waited_longest_goes(tmp_path: Path) -> None:
    limits = Limits(header_s=PATIENCE_S, connections=20)
    with served(tmp_path, limits) as port:
        idle = [connected(port) for _ in range(60)]
        assert ask(port) == 200
        assert answer(idle[0]) in (b"", REFUSED)
        for one in idle:
            one.close()


REFUSED = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def test_a_client_that_does_not_read_its_answer_is_left(tmp_path: Path) -> None:
    with served(tmp_path) as port:
        assert ask(port, "POST", "/api/photos", _large_png(), "image/png") == 201
        with connected(port, head(port, "GET", "/api/photos", "Connection: close")) as listing:
            number = answer(listing).split(b'"id":"')[1][:32].decode()
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", port))
        deaf.settimeout(PATIENCE_S)
        deaf.sendall(head(port, "GET", f"/api/photos/{number}/file") * 8)
        assert _is_left(deaf, head(port, "GET", "/api/status"))
        deaf.close()


def _is_left(deaf: socket.socket, sent: bytes) -> bool:
    """Whether the other end closes some time, without anything of its answer being taken."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            deaf.sendall(sent)
        except ConnectionError:
            return True
        time.sleep(0.05)
    return False


def _large_png() -> bytes:
    from PIL import Image

    from tests.studio.conftest import encoded

    return encoded(Image.frombytes("RGB", (1200, 1000), os.urandom(3_600_000)))


def test_uploads_lie_on_the_disk_while_they_come(tmp_path: Path) -> None:
    limits = Limits(spool_bytes=3 * MB)
    with served(tmp_path / "kept", limits) as port:
        begun = head(port, "POST", "/api/photos", "Content-Type: image/png", f"Content-Length: {20 * MB}")
        with connected(port, begun + bytes(2 * MB)) as first, connected(port, begun + bytes(2 * MB)) as second:
            # Whichever of the two is read later has no room.
            (told, *_), _, _ = select.select([first, second], [], [], 20)
            # Only its beginning: the server waits for the rest of the body before it closes.
            assert told.recv(65_536).startswith(b"HTTP/1.1 429")
        assert ask(port) == 200
    assert [path for path in (tmp_path / "kept").rglob("*") if path.is_file()] == []


def test_a_folder_with_a_monstrous_file_is_scanned_without_reading_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(png())
    with (tmp_path / "in" / "b.jpg").open("wb") as file:
        file.write(b"\xff\xd8\xff\xe0")
        file.truncate(30 * 2**30)
    with (tmp_path / "in" / "c.png").open("wb") as file:
        file.truncate(20 * MB)  # small enough, and no photo
    os.mkfifo(tmp_path / "in" / "d.png")
    store = PhotoStore(tmp_path / "kept", Limits())
    with memory_of(200 * MB):
        taken = list(import_folder(store, tmp_path / "in"))
    reasons = [one.reason for one in taken if isinstance(one, InvalidFile)]
    assert len(taken) == 3
    assert "32,212,254,720 bytes" in reasons[0]
    assert "not PNG, JPEG or WebP" in reasons[1]


def test_the_token_comes_from_a_file_or_the_environment_and_not_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[StudioSettings] = []
    monkeypatch.setattr("saywhere.cli.studio._serve", lambda settings, _, browser: served.append(settings))
    app = typer.Typer()
    app.command()(command.studio)
    (tmp_path / "token").write_text(TOKEN + "\n")
    common = ["--port", "0", "--folder", str(tmp_path / "kept"), "--no-browser"]
    for arguments, given in (
        (["--token-file", str(tmp_path / "token")], {}),
        (["--token-file", "-"], {"input": TOKEN}),
        ([], {"env": {"SAYWHERE_TOKEN": TOKEN}}),
    ):
        result = CliRunner().invoke(app, [*common, *arguments], **given)  # type: ignore[arg-type]
        assert result.exit_code == 0, result.output
        assert served.pop().token == TOKEN
    assert CliRunner().invoke(app, [*common, "--token", TOKEN]).exit_code == 2
    assert CliRunner().invoke(app, [*common, "--token-file", str(tmp_path / "none")]).exit_code != 0


def test_the_token_is_in_no_process_list_when_the_browser_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with command.entrance(f"http://127.0.0.1:8765/?token={TOKEN}&a=%22") as page:
        command.open_browser(page)
        path = Path(page.removeprefix("file://"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert f"?token={TOKEN}&amp;a=%22" in path.read_text()
        assert TOKEN not in opened[0]
    assert not path.exists()
    with command.entrance("http://127.0.0.1:8765/") as page:
        assert page == "http://127.0.0.1:8765/"


def test_the_command_of_a_running_studio_does_not_hold_its_token(tmp_path: Path) -> None:
    code = "import sys; sys.argv[0] = 'saywhere'; from saywhere.cli import main; main()"
    arguments = ["studio", "--host", "127.0.0.1", "--port", "0", "--no-browser", "--folder", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "SAYWHERE_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as running:
        assert running.stdout is not None
        said = running.stdout.readline()
        shown = Path(f"/proc/{running.pid}/cmdline").read_bytes()
        running.kill()
    assert TOKEN.encode() in said
    assert TOKEN.encode() not in shown
