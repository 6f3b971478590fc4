"""`saywhere studio`: the page and its server."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from saywhere import loading
from saywhere.cli.console import counted, err, out
from saywhere.core.errors import InvalidFile, InvalidValue, require

if TYPE_CHECKING:
    from fastapi import FastAPI

    from saywhere.studio.settings import Limits, StudioSettings

# What every command that opens a port takes.
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes any free one.")]
Host = Annotated[str, typer.Option(help="Address to listen on. Other computers need a token.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(help="File with the secret that clients must send; - reads it from standard input.", metavar="FILE"),
]
TOKEN_VARIABLE = "SAYWHERE_TOKEN"
Names = Annotated[list[str] | None, typer.Option(help="Further host name of this computer. Can be repeated.")]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")]


def studio(
    context: typer.Context,
    photos: Annotated[Path | None, typer.Option(metavar="DIR", help="Add the photos of this folder.")] = None,
    videos: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Video narratives to replay, or a folder of videos to tell about."),
    ] = None,
    library: Annotated[
        Path | None,
        typer.Option("--library", "-l", metavar="DIR", help="Search the photos of this folder, not the shelf."),
    ] = None,
    port: Port = 8765,
    host: Host = "127.0.0.1",
    token_file: TokenFile = None,
    model: Annotated[
        str,
        typer.Option("--model", "-m", help="Model: a name, a folder, or owner/name on the hub."),
    ] = loading.BASE,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder where photos and narratives are kept.")
    ] = None,
    name: Names = None,
    browser: Browser = True,
) -> None:
    """Record, describe, ground and replay in the browser."""
    if context.invoked_subcommand is not None:
        return
    for package in ("fastapi", "uvicorn"):
        require(package, needed_for="the Studio", extra="studio")
    from saywhere.studio.settings import StudioSettings, default_folder

    settings = StudioSettings(
        folder or default_folder(),
        host,
        port,
        read_token(token_file),
        tuple(name or ()),
        photos=photos,
        videos=videos,
        library=library,
        model=model,
    )
    loading.find(model)
    if library is not None:
        if not library.is_dir():
            raise InvalidFile(library, "is not a folder of photos")
        require("lancedb", needed_for="a library of photographs", extra="search")
    if photos is not None:
        take_photos(photos, settings)
    with bound(settings) as listening:
        _serve(replace(settings, port=listening.getsockname()[1]), listening, browser)


def take_photos(folder: Path, settings: StudioSettings) -> None:
    """Take the photos of a folder into the store; the originals are only read."""
    from saywhere.studio.photos import PhotoStore, import_folder, photo_files

    if not folder.is_dir():
        raise InvalidFile(folder, "is not a folder")
    store = PhotoStore(settings.folder / "photos", settings.limits)
    taken = 0
    hints: list[str] = []
    for one in counted(import_folder(store, folder), "taking photos", len(photo_files(folder))):
        if isinstance(one, InvalidFile):
            err.print(f"passed over {one.path}: {one.reason}", markup=False)
            hints.append(one.hint)
        else:
            taken += 1
    for hint in filter(None, dict.fromkeys(hints)):  # Each once: there may be hundreds of one kind.
        err.print(hint, markup=False)
    passed = f", {len(hints):,} passed over" if hints else ""
    err.print(f"{taken:,} photos taken from {folder}{passed}", markup=False)


def bound(settings: StudioSettings) -> socket.socket:
    """A socket that listens already, so that the page can be opened at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        reason = f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}"
        raise InvalidValue("studio", reason, "another --port, or --port 0 for any that is free") from error


def _serve(settings: StudioSettings, listening: socket.socket, browser: bool) -> None:
    # Threads of a network that wait for each other soon sleep instead of spinning: the browser needs the cores, too.
    # With both cores of two taken, a caption took 0.4 s instead of 5 when they slept at once; that made looks slower
    # (0.41 s against 0.33). Read when torch is first imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    from saywhere.studio.app import create_app

    address = page_address(settings)
    out.print(f"saywhere Studio: {address}", markup=False)
    err.print(f"Photos and narratives are kept in {settings.folder}. Ctrl-C ends the Studio.", markup=False)
    run(create_app(settings), listening, settings.limits, address if browser else None)


def read_token(path: Path | None) -> str:
    """The token of a file, or else of $SAYWHERE_TOKEN; empty if there is none. On the command line all would see it."""
    if path is None:
        return os.environ.get(TOKEN_VARIABLE, "")
    try:
        return (sys.stdin.readline() if str(path) == "-" else path.read_text(encoding="utf-8")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def run(app: FastAPI, listening: socket.socket, limits: Limits, opened: str | None) -> None:
    """Serve until Ctrl-C. opened: an address to open in the browser first."""
    from saywhere.studio.connections import server_of

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    with entrance(opened) as page:
        if page is not None:
            open_browser(page)
        # Ctrl-C is the way to end it: nothing went wrong.
        with suppress(KeyboardInterrupt):
            server_of(app, limits).run(sockets=[listening])


@contextmanager
def entrance(address: str | None) -> Iterator[str | None]:
    """What to hand to a browser: an address with a token by way of a page that only this user can read, because the
    browser's command line is there for all to see."""
    if address is None or "?token=" not in address:
        yield address
        return
    with tempfile.NamedTemporaryFile("w", prefix="saywhere-", suffix=".html", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">')
        file.flush()
        yield f"file://{file.name}"


def open_browser(page: str) -> None:
    webbrowser.open(page)


def page_address(settings: StudioSettings) -> str:
    """What to open in a browser."""
    from saywhere.studio.settings import is_everywhere

    host = "127.0.0.1" if is_everywhere(settings.host) else settings.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{settings.port}/" + (f"?token={quote(settings.token, safe='')}" if settings.token else "")
