"""The one writer of a library: it looks at what is new or changed, forgets what is gone, and takes in narratives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from saywhere.core.errors import InvalidFile, require
from saywhere.core.types import Floats32, Progress
from saywhere.engine import Engine, FailedShard, OneProcess, Options
from saywhere.index.files import Changes, FileState, changes, content_id
from saywhere.index.library import About, begin, tables_folder
from saywhere.index.narratives import read_parts
from saywhere.index.seen import LookAtPhotos, Seeing, SeenPhoto, open_seeing
from saywhere.index.tables import PHOTOS, REGIONS, SAID, SOURCES, LibraryTables, working
from saywhere.provenance import sha256_of
from saywhere.vision import photo_reader

_AT_ONCE = 32
"""Photos that are looked at and written together: what a killed writer looks at again."""
_INDEXED_FROM = 50_000
"""Rows from which on vectors are not all compared; fewer take some ten milliseconds."""
_KEPT: Final = timedelta(hours=1)
"""How long what was replaced stays on disk, for those who read it."""
_PER_CELL = 4_096
"""Rows of a cell of the inverted file, about."""


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
    progress: Progress | None = None,
) -> Updated:
    """Bring a library up to its folder of photos; the first time it is made.

    narratives: files of recorded narratives to take in; those taken in before stay until their file is gone. folder: of
    the tables, if not within `root`. engine: where photos are looked at. Killed at any time, the next call goes on.
    timeout_s: a photo that takes longer to read is kept with that reason, and so is one that crashes what reads it, or
    over which workers die. reader: the module that reads photos.
    """
    if not Path(root).is_dir():
        raise InvalidFile(root, "is not a folder of photos")
    seer = open_seeing(model) if isinstance(model, str) else model
    home = tables_folder(root, folder)
    home.mkdir(parents=True, exist_ok=True)
    with _only_writer(home):
        eyes: Any = seer.eyes
        begin(home, About(seer.name, dict(eyes.encoder.fingerprint), seer.eyes.size))
        tables = LibraryTables(home, seer.eyes.size, create=True)
        tables.recover()
        writer = _Writer(tables, Path(root), seer, progress)
        own = seer if engine is None or isinstance(engine, OneProcess) else None
        stage = LookAtPhotos(
            str(Path(root).absolute()), model if isinstance(model, str) else seer.name, own, timeout_s, reader
        )
        done = writer.photos(stage, engine or OneProcess())
        done = replace(done, **writer.narratives([Path(path) for path in narratives]))
        order_vectors(tables, progress)
        return replace(done, failed=tables[PHOTOS].count_rows("error is not null"))


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    filelock = require("filelock", needed_for="a library of photographs", extra="search")
    try:
        # The system lets go of it when a process ends, however it ends.
        with filelock.FileLock(str(folder / "writer.lock"), timeout=0):
            yield
    except filelock.Timeout as error:
        raise InvalidFile(folder, "is being written by another process", "wait for it; reading is possible") from error


@dataclass(frozen=True)
class _Writer:
    tables: LibraryTables
    root: Path
    seer: Seeing
    progress: Progress | None

    def photos(self, stage: LookAtPhotos, engine: Engine) -> Updated:
        known = self._known()
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
                path = self.root / name
                state = replace(FileState.of(path), digest=sha256_of(path)) if path.exists() else FileState(0, 0)
                seen.append(SeenPhoto(name, state, result.reason))
            else:
                seen += result
        return seen

    def _known(self) -> dict[str, tuple[int, FileState]]:
        columns = ["id", "name", "size", "mtime_ns", "digest"]
        rows = self.tables.columns(PHOTOS, columns).to_pylist()
        return {row["name"]: (row["id"], FileState(row["size"], row["mtime_ns"], row["digest"])) for row in rows}

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
        self.tables.replace(PHOTOS, "name", [_photo_row(photo) for photo in looked])
        for (name, _), state in zip(part, seen, strict=True):
            if isinstance(state, FileState):
                self.tables[PHOTOS].update(where=f"id = {known[name][0]}", values={"mtime_ns": state.mtime_ns})
        again = [photo for photo in looked if photo.name in known]
        self.tables.delete(REGIONS, "photo", {known[one.name][0] for one in again} - {one.id for one in again})
        same = len(seen) - len(looked)
        return replace(
            done,
            new=done.new + len(looked) - len(again),
            changed=done.changed + len(again),
            same=done.same + same,
        )

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
        with working(tables.folder):
            if rows >= _INDEXED_FROM and not table.list_indices():
                table.create_index("vector", config=kind(distance_type="cosine", num_partitions=rows // _PER_CELL))
            table.optimize(cleanup_older_than=_KEPT)
        if progress is not None:
            progress(f"ordering {name}", rows, rows)


def _name(part: Sequence[tuple[str, str]]) -> str:
    return f"{part[0][0]} and {len(part) - 1} more" if len(part) > 1 else part[0][0]


_KEEPING = Options(name=_name, keep_errors=True)


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
