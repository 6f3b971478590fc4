"""Collections for tests: small photos in a folder, taken in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from saywhere.core.errors import InvalidFile
from saywhere.studio.collect import Collection, open_collection, write_collection
from saywhere.studio.collect_desk import take_photos

from .conftest import png


def make_collection(folder: Path, photos: int = 4, **how: Any) -> Path:
    """A collection of photos called 0.png, 1.png, …, each of another width: 64, 65, …"""
    originals = folder.with_name(f"{folder.name}-originals")
    originals.mkdir(parents=True)
    for number in range(photos):
        (originals / f"{number}.png").write_bytes(png(64 + number, 48))
    with_photos(open_collection(folder, **how), originals)
    return folder


def with_photos(collection: Collection, originals: Path) -> list[InvalidFile]:
    """Take the photos of a folder and write the collection; what could not be taken."""
    found = list(take_photos(collection, originals))
    taken = dict.fromkeys([*collection.photos, *(one for one in found if not isinstance(one, InvalidFile))])
    write_collection(replace(collection, photos=tuple(taken)))
    return [one for one in found if isinstance(one, InvalidFile)]
