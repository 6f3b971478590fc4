"""Sources by URL (s3://, gs://, https://, file:// …), through fsspec; a path of this machine is opened as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from saywhere.core.errors import InvalidFile, MissingDependency, require


def is_url(source: str | Path) -> bool:
    """Whether a source is named by a URL.

    >>> is_url("s3://bucket/shards/000.tar"), is_url("shards/000.tar")
    (True, False)
    """
    return "://" in str(source)


@contextmanager
def open_source(source: str) -> Iterator[BinaryIO]:
    """A file to read, which can be moved about in; InvalidFile if it cannot be opened."""
    with working(source):
        file = _opened(source)
    with file:
        yield file


def _opened(source: str) -> BinaryIO:
    if not is_url(source):
        return Path(source).open("rb")
    system, path = _system(source)
    file: BinaryIO = system.open(path, "rb")
    return file


def is_folder(url: str) -> bool:
    """Whether something lies beneath a URL; InvalidFile if there is nothing."""
    system, path = _system(url)
    with working(url):
        if not system.exists(path):
            raise InvalidFile(url, "was not found")
        return bool(system.isdir(path))


def names_beneath(url: str) -> list[str]:
    """The names of all files beneath a URL, sorted."""
    system, root = _system(url)
    with working(url):
        return sorted(str(path)[len(root) :].lstrip("/") for path in system.find(root))


def _system(url: str) -> tuple[Any, str]:
    fsspec = require("fsspec", needed_for=f"reading {url}", extra="scale")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        scheme = url.partition("://")[0]
        how = {"s3": "pip install s3fs", "gs": "pip install gcsfs"}.get(scheme, f"see fsspec's page on {scheme}://")
        raise MissingDependency(f"what reads {scheme}://", f"reading {url}", how) from error
    return system, str(path)


@contextmanager
def working(url: str) -> Iterator[None]:
    """What a store says against a request, as an error that names the source."""
    try:
        yield
    except InvalidFile:
        raise
    except OSError as error:
        raise InvalidFile(url, f"cannot be read: {error.strerror or error}") from error
    except Exception as error:
        # Stores have exceptions of their own, for missing credentials say. Of a path of this machine there are none.
        if not is_url(url):
            raise
        raise InvalidFile(url, f"cannot be read: {type(error).__name__}: {error}") from error
