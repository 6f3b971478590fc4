"""The one writer of a library: it looks at what is new or changed, forgets what is gone, and takes in narratives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from saywhere import loading
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats32, Progress
from saywhere.engine import Engine, FailedShard, OneProcess, Options
from saywhere.index.files import Changes, FileState, changes, content_id
from saywhere.index.library import About, begin, tables_place
from saywhere.index.narratives import read_parts
from saywhere.index.places import working
from saywhere.index.seen import LookAtPhotos, Seeing, SeenPhoto, open_seeing
from saywhere.index.tables import PHOTOS, REGIONS, SAID, SOURCES, LibraryTables, one_of
from saywhere.provenance import sha256_of
from saywhere.vision import photo_reader

_AT_ONCE = 32
"""Photos that are looked at and written together: what a killed writer looks at again."""
_INDEXED_FROM = 50_000
"""Rows from which on vectors are not all compared; fewer take some ten milliseconds."""
_KEPT: Final = timedelta(hours=1)
"""How long what was replaced stays on disk, for those who read it."""
_PER_CELL = 4_096
"""Rows of a cell of the inverted file, about, when they are made."""
_GROWN = 4
"""Cells are made anew when there are so many times the rows that there were then; until then rows are only added."""
_CELLS = "cells_"
"""Before the number of those rows, in the name of what orders a table."""


@dataclass(frozen=True, slots=True)
class Updated:
    """What a writer did. new, changed, deleted, same: photos. said: pieces of narratives that were added. failed:
    photos that cannot be read, with those known before. bad_records: of files of narratives."""

    new: int = 0
    changed: int = 0
    deleted: int = 0
    same: int = 0
    said: int = 0
    failed: int = 0
    bad_records: int = 0


def update(
    root: str | Path,
    model: str | Seeing = "saywhere-base",
    *,
    folder: str | Path | None = None,
    narratives: Sequence[str | Path] = (),
    engine: Engine | None = None,
    timeout_s: float = 60.0,
    reader: str = photo_reader.__name__,
    opens: str = "",
    retry_failed: bool = False,
    break_lock: bool = False,
    progress: Progress | None = None,
) -> Updated:
    """Bring a library up to its folder of photos; the first time it is made.

    narratives: files of recorded narratives to take in; those taken in before stay until their file is gone. folder: of
    the tables, if not within `root`, or a URL of object storage; break_lock: a writer there that was killed on another
    machine does not write any more. engine: where photos are looked at. Killed at any time, the next call goes on.
    timeout_s: a photo that takes longer to read is kept with that reason, and so is one that crashes what reads it, or
    over which workers die; retry_failed: all of them are tried again, for reasons that pass. reader: the module that
    reads photos. opens: what other processes open the model by, that is open here; its name by default.
    """
    if not Path(root).is_dir():
        raise InvalidFile(root, "is not a folder of photos")
    seer = open_seeing(model) if isinstance(model, str) else model
    place = tables_place(root, folder)
    with place.only_writer(break_lock=break_lock) as still_mine:
        eyes: Any = seer.eyes
        begin(place, About(seer.name, eyes.fingerprint, seer.eyes.size))
        tables = LibraryTables(place, seer.eyes.size, create=True, still_mine=still_mine)
        tables.recover()
        writer = _Writer(tables, Path(root), seer, progress)
        own = seer if engine is None or isinstance(engine, OneProcess) else None
        named = loading.absolute(opens or (model if isinstance(model, str) else seer.name))
        stage = LookAtPhotos(str(Path(root).absolute()), named, own, timeout_s, reader)
        done = writer.photos(stage, engine or OneProcess(), retry_failed)
        done = replace(done, **writer.narratives([Path(path) for path in narratives]))
        order_vectors(tables, progress)
        return replace(done, failed=tables[PHOTOS].count_rows("error is not null"))


@dataclass(frozen=True)
class _Writer:
    tables: LibraryTables
    root: Path
    seer: Seeing
    progress: Progress | None

    def photos(self, stage: LookAtPhotos, engine: Engine, retry_failed: bool) -> Updated:
        known = self._known(retry_failed)
        found = changes(self.root, {name: state for name, (_, state) in known.items()})
        self._forget(found, {name: number for name, (number, _) in known.items()})
        digests = [(name, known[name][1].digest if name in known else "") for name in found.looks]
        parts = [digests[first : first + _AT_ONCE] for first in range(0, len(digests), _AT_ONCE)]
        done = Updated(deleted=len(found.gone), same=found.same)
        self._tell("looking at photos", 0, len(digests))
        looked = 0
        for part, seen in zip(parts, engine.map(stage, parts, _KEEPING), strict=True):
            kept = self._one_by_one(part, stage, engine) if isinstance(seen, FailedShard) else seen
            done = self._keep(part, kept, known, done)
            looked += len(part)
            self._tell("looking at photos", looked, len(digests))
        return done

    def _one_by_one(
        self, part: Sequence[tuple[str, str]], stage: LookAtPhotos, engine: Engine
    ) -> list[SeenPhoto | FileState]:
        """A part over which workers died: each photo by itself, so that the one that did it is known."""
        seen: list[SeenPhoto | FileState] = []
        alone = [[one] for one in part]
        for [(name, _)], result in zip(alone, engine.map(stage, alone, _KEEPING), strict=True):
            if isinstance(result, FailedShard):
                seen.append(SeenPhoto(name, _state_of(self.root / name), result.reason))
            else:
                seen += result
        return seen

    def _known(self, retry_failed: bool) -> dict[str, tuple[int, FileState]]:
        columns = ["id", "name", "size", "mtime_ns", "digest", "error"]
        return {
            row["name"]: (row["id"], FileState(-1, -1) if retry_failed and row["error"] else _state(row))
            for row in self.tables.columns(PHOTOS, columns).to_pylist()
        }

    def _forget(self, found: Changes, ids: Mapping[str, int]) -> None:
        gone = [ids[name] for name in found.gone]
        self.tables.delete(PHOTOS, "id", gone)
        self.tables.delete(REGIONS, "photo", gone)

    def _keep(
        self,
        part: Sequence[tuple[str, str]],
        seen: Sequence[SeenPhoto | FileState],
        known: Mapping[str, tuple[int, FileState]],
        done: Updated,
    ) -> Updated:
        """Regions first, then the photos at one stroke, then what they replace goes; see `tables`."""
        looked = [one for one in seen if isinstance(one, SeenPhoto)]
        self.tables.add(REGIONS, (row for photo in looked for row in _region_rows(photo)))
        touched = {
            known[name][0]: state for (name, _), state in zip(part, seen, strict=True) if isinstance(state, FileState)
        }
        self.tables.replace(PHOTOS, "name", [*map(_photo_row, looked), *self._touched_rows(touched)])
        again = [photo for photo in looked if photo.name in known]
        self.tables.delete(REGIONS, "photo", {known[one.name][0] for one in again} - {one.id for one in again})
        same = len(seen) - len(looked)
        return replace(
            done,
            new=done.new + len(looked) - len(again),
            changed=done.changed + len(again),
            same=done.same + same,
        )

    def _touched_rows(self, touched: Mapping[int, FileState]) -> Iterator[dict[str, Any]]:
        """The rows of photos whose files have another time, and nothing else that is new."""
        if not touched:
            return
        columns = self.tables.schemas[PHOTOS].names
        for row in self.tables.columns(PHOTOS, columns, one_of("id", touched)).to_pylist():
            vector = None if row["vector"] is None else np.array(row["vector"], np.float16)
            yield {**row, "mtime_ns": touched[row["id"]].mtime_ns, "vector": vector}

    def narratives(self, paths: Sequence[Path]) -> dict[str, int]:
        known = {
            row["path"]: row for row in self.tables.columns(SOURCES, self.tables.schemas[SOURCES].names).to_pylist()
        }
        wanted = {str(path.absolute()): path for path in paths}
        wanted |= {path: Path(path) for path in known if Path(path).exists()}
        self._drop([row["id"] for path, row in known.items() if path not in wanted])
        added = bad = 0
        for path in sorted(wanted):
            pieces, records = self._take_in(wanted[path], path, known.get(path))
            added, bad = added + pieces, bad + records
        return {"said": added, "bad_records": bad}

    def _take_in(self, path: Path, name: str, known: Mapping[str, Any] | None) -> tuple[int, int]:
        if not path.is_file():
            raise InvalidFile(path, "was not found")
        state = FileState.of(path)
        digest = sha256_of(path)
        source = content_id(name, digest)
        done, bad, added = 0, 0, 0
        if known is not None and known["id"] != source:
            self._drop([known["id"]])
        elif known is not None:
            done, bad = known["done"], known["bad"]
        row = {"id": source, "path": name, "size": state.size, "mtime_ns": state.mtime_ns, "digest": digest}
        for part in read_parts(path, done):
            vectors = self._texts([piece.text for piece in part.pieces])
            rows = [_said_row(source, piece, vector) for piece, vector in zip(part.pieces, vectors, strict=True)]
            self.tables.add(SAID, rows)
            done, bad, added = done + part.records, bad + part.bad, added + len(rows)
            self.tables.replace(SOURCES, "id", [{**row, "done": done, "bad": bad}])
            self._tell("reading narratives", done, 0)
        return added, bad

    def _texts(self, texts: Sequence[str]) -> Floats32:
        return self.seer.texts(texts) if texts else np.empty((0, self.seer.eyes.size), np.float32)

    def _drop(self, sources: Sequence[int]) -> None:
        self.tables.delete(SOURCES, "id", sources)
        self.tables.delete(SAID, "source", sources)

    def _tell(self, doing: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(doing, done, total)


def order_vectors(tables: LibraryTables, progress: Progress | None = None) -> None:
    """Join small files, drop what was replaced an hour ago, and order many vectors into cells to be found fast."""
    from lancedb.index import IvfFlat, IvfRq

    # One bit a number is packed eight by eight; vectors of other lengths are compared as they are.
    kind = IvfFlat if tables.size % 8 else IvfRq
    for name in (PHOTOS, REGIONS, SAID):
        table, rows = tables[name], tables[name].count_rows()
        if progress is not None:
            progress(f"ordering {name}", 0, rows)
        with working(tables.place):
            before = [index.name for index in table.list_indices()]
            if rows >= max(_INDEXED_FROM, _GROWN * max(map(_made_of, before), default=0)):
                cells = kind(distance_type="cosine", num_partitions=rows // _PER_CELL)
                table.create_index("vector", config=cells, name=f"{_CELLS}{rows}")
                for name_before in before:
                    table.drop_index(name_before)
            table.optimize(cleanup_older_than=_KEPT)
        if progress is not None:
            progress(f"ordering {name}", rows, rows)


def _made_of(index: str) -> int:
    """Of how many rows cells of this name were made; older ones do not say, and were made as soon as possible."""
    return int(index.removeprefix(_CELLS)) if index.startswith(_CELLS) else _INDEXED_FROM


def _name(part: Sequence[tuple[str, str]]) -> str:
    return f"{part[0][0]} and {len(part) - 1} more" if len(part) > 1 else part[0][0]


_KEEPING = Options(name=_name, keep_errors=True)


def _state(row: Mapping[str, Any]) -> FileState:
    return FileState(row["size"], row["mtime_ns"], row["digest"])


def _state_of(path: Path) -> FileState:
    """With the digest; of a file that cannot be read nothing is known."""
    try:
        return replace(FileState.of(path), digest=sha256_of(path))
    except OSError:
        return FileState(0, 0)


def _photo_row(photo: SeenPhoto) -> dict[str, Any]:
    state = photo.state
    return {
        "id": photo.id,
        "name": photo.name,
        "image_id": photo.image_id,
        "size": state.size,
        "mtime_ns": state.mtime_ns,
        "digest": state.digest,
        "error": photo.error or None,
        "words": list(photo.words),
        "vector": None if photo.vector is None else photo.vector.astype(np.float16),
    }


def _region_rows(photo: SeenPhoto) -> Iterator[dict[str, Any]]:
    for one in photo.regions:
        vector = one.vector.astype(np.float16)
        yield {"photo": photo.id, "name": one.name, "score": one.score, "box": one.box_xyxy, "vector": vector}


def _said_row(source: int, piece: Any, vector: Floats32) -> dict[str, Any]:
    return {
        "source": source,
        "number": piece.number,
        "image_id": piece.image_id,
        "who": piece.who,
        "text": piece.text,
        "start_s": piece.start_s,
        "end_s": piece.end_s,
        "box": piece.box_xyxy,
        "vector": vector.astype(np.float16),
    }
