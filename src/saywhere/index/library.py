"""A library: a folder of photos, and beside them what was seen in them and said about them, to be searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from saywhere.core.errors import InvalidFile
from saywhere.index.places import TablesPlace, working
from saywhere.index.stores import place_of
from saywhere.index.tables import PHOTOS, REGIONS, SAID, SOURCES, LibraryTables

FOLDER = ".saywhere"
"""Of the tables, in the folder of the photos."""
_FORMAT, _VERSION = "saywhere library", 1


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a library was made with. model: its name. eyes: what made the vectors. size: their numbers."""

    model: str
    eyes: dict[str, Any]
    size: int
    format: str = _FORMAT
    version: int = _VERSION


class Library:
    """The tables of a library, for reading. Somebody may write meanwhile: what is read is as it was when it was opened.

        library = Library("photos")
        library.counts                    # {"photos": 5000, "failed": 1, "regions": 61204, "said": 0}

    root: the folder of the photos. folder: of the tables, if they are elsewhere; or a URL of object storage.
    """

    def __init__(self, root: str | Path, folder: str | Path | None = None) -> None:
        self.root, self.place = Path(root), tables_place(root, folder)
        self.about = read_about(self.place)
        self.tables = LibraryTables(self.place, self.about.size)

    @property
    def counts(self) -> dict[str, int]:
        """How many photos, regions and pieces of narratives there are, and how many photos cannot be read."""
        failed = self.tables[PHOTOS].count_rows("error is not null")
        return {
            "photos": self.tables[PHOTOS].count_rows() - failed,
            "failed": failed,
            "regions": self.tables[REGIONS].count_rows(),
            "said": self.tables[SAID].count_rows(),
        }

    def failed(self) -> dict[str, str]:
        """The photos that cannot be read, and why."""
        rows = self.tables.columns(PHOTOS, ["name", "error"], "error is not null").to_pylist()
        return {row["name"]: row["error"] for row in sorted(rows, key=lambda row: str(row["name"]))}

    def has(self, name: str) -> bool:
        """Whether a photo of this name could be read."""
        quoted = name.replace("'", "''")
        with working(self.place):
            return bool(self.tables[PHOTOS].count_rows(f"name = '{quoted}' and error is null"))

    def sources(self) -> list[str]:
        """The files of narratives."""
        return sorted(self.tables.columns(SOURCES, ["path"])["path"].to_pylist())


def tables_place(root: str | Path, folder: str | Path | None) -> TablesPlace:
    """Where the tables of a library are."""
    return place_of(Path(root) / FOLDER if folder is None else folder)


def is_library(place: TablesPlace) -> bool:
    """Whether somebody has begun a library in this place."""
    return place.read_note() is not None


def read_about(place: TablesPlace) -> About:
    """What the library was made with; InvalidFile for a place that has none, or one of another version."""
    note = place.read_note()
    if note is None:
        raise InvalidFile(place, "is not a library", "saywhere index DIR makes one of a folder of photos")
    try:
        raw = msgspec.json.decode(note, type=dict[str, Any])
        if (raw.get("format"), raw.get("version")) != (_FORMAT, _VERSION):
            found = f"{raw.get('format')} {raw.get('version')}"
            raise InvalidFile(place, f"is of {found}, not of {_FORMAT} {_VERSION}", "build it anew: saywhere index")
        return msgspec.convert(raw, About)
    except msgspec.DecodeError as error:
        raise InvalidFile(place, f"has a note of itself that cannot be read: {error}") from error


def begin(place: TablesPlace, about: About) -> About:
    """Make this the place of a library, or see that it is one of the same vectors. For its writer."""
    if not is_library(place):
        place.write_note(msgspec.json.format(msgspec.json.encode(about)))
        return about
    known = read_about(place)
    before, now = ({**one.eyes, "size": one.size} for one in (known, about))
    if other := sorted(part for part in before | now if before.get(part) != now.get(part)):
        reason = (
            f"was made with {known.model}, whose vectors are not those of {about.model} (other: {', '.join(other)})"
        )
        raise InvalidFile(place, reason, "name that model, or another --index")
    return known
