"""Earlier versions of a narrative: each as it was, in a file of its own beside the narrative.

A version is written here before another takes its place. A crash between the two leaves a copy of the version that
still holds; it has that version's number, so it is no earlier one, and the next change writes it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.limits import read_whole

FIRST = 1
"""The number of a narrative's first version, and of those that were kept before versions were counted."""
_FOLDER = "versions"

Record = dict[str, Any]


def keep(place: Path, record: Mapping[str, Any]) -> None:
    """Keep a version. place: the narrative's folder. record: as it is stored, with its number under `version`."""
    with write_atomic(_path(place, record.get("version", FIRST))) as file:
        file.write(msgspec.json.encode(record))


def numbers(place: Path, current: int) -> list[int]:
    """Of all versions before the current one, the newest first."""
    found = (int(path.stem) for path in (place / _FOLDER).glob("*.json") if path.stem.isdecimal())
    return sorted((number for number in found if number < current), reverse=True)


def version(place: Path, number: int) -> Record:
    """An earlier version. UnknownName if there is none of this number."""
    path = _path(place, number)
    if not path.exists():
        raise UnknownName("version", str(number), ())
    try:
        return msgspec.json.decode(read_whole(path), type=Record)
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is damaged: {error}") from error


def _path(place: Path, number: int) -> Path:
    return place / _FOLDER / f"{number}.json"
