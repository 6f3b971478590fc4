"""A task over all parts of some sources, on any engine: sharded Parquet, a manifest, and a report.

Every part becomes a file of its own, written whole or not at all, and then a note of it (by the engine, in `parts/`).
So a run that is killed at any point goes on with the parts that have no note; nothing is done twice but the part that
was being written, which gets the same bytes again. The manifest comes last: where it is, everything is.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import saywhere
from saywhere.atomic import write_atomic
from saywhere.build.batch.sources import SourceItem, SourcePart, list_parts
from saywhere.build.batch.tasks import TASKS
from saywhere.core.errors import InvalidFile, InvalidValue, SaywhereError, UnknownName
from saywhere.core.types import Progress
from saywhere.engine import Engine, FailedShard, OneProcess, Options
from saywhere.provenance import git_hash
from saywhere.vision import photo_reader
from saywhere.vision.photo_reader import PhotoReader

if TYPE_CHECKING:
    from saywhere.models.face import Model

MANIFEST = "manifest.json"
_NOTES = "parts"
Numbered = tuple[int, SourcePart]


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What a run did. photos, failed: rows of all parts, and those of them that are a reason instead of a result.
    parts: that could not be read, by name, with the reason. seconds, fresh: how long this run took, for how many."""

    photos: int
    failed: int
    parts: dict[str, str]
    seconds: float
    fresh: int

    @property
    def per_second(self) -> float:
        """Photos of this run a second."""
        return self.fresh / self.seconds if self.seconds else 0.0

    def cost_per_million(self, price_per_hour: float, machines: int = 1) -> float:
        """What a million photos cost at this rate, if a machine costs so much an hour.

        >>> BatchReport(photos=720, failed=0, parts={}, seconds=72.0, fresh=720).cost_per_million(0.36)
        10.0
        """
        return price_per_hour * machines * 1e6 / (3600 * self.per_second) if self.per_second else float("nan")


@dataclass
class BatchStage:
    """A numbered part → what is noted of it. inputs: a digest of all parts, so that a folder holds the results of one
    set of sources. model: name or folder; opened in each worker. out: where the files go. timeout_s: for reading one
    photo; reader: the module that reads them."""

    task: str
    model: str
    inputs: str
    out: str = field(repr=False)
    opened: Model | None = field(default=None, repr=False)
    timeout_s: float = field(default=60.0, repr=False)
    reader: str = field(default=photo_reader.__name__, repr=False)
    photos: PhotoReader | None = field(default=None, init=False, repr=False)

    def setup(self) -> None:
        self.photos = PhotoReader(self.timeout_s, self.reader)
        if self.opened is None:
            self.opened = saywhere.load(self.model)
        if skill := TASKS[self.task].skill:
            from saywhere.models.face import check_skill

            check_skill(self.opened, skill)

    def __call__(self, shard: Numbered, /) -> dict[str, Any]:
        rows = [self._row(item) for item in shard[1].items()]
        content = _parquet(rows, self.task)
        name = f"{_name(shard)}.parquet"
        with write_atomic(Path(self.out) / name) as file:
            file.write(content)
        failed = sum(row["error"] is not None for row in rows)
        return {"file": name, "rows": len(rows), "failed": failed, "sha256": hashlib.sha256(content).hexdigest()}

    def _row(self, item: SourceItem) -> dict[str, Any]:
        if item.error:
            return {"key": item.key, "error": item.error}
        if self.opened is None or self.photos is None:
            raise InvalidValue("stage", "has not been set up")
        try:
            photo = self.photos.read(item.photo)
            values = TASKS[self.task].row(self.opened.look(photo, item.key), item.text)
        except (InvalidFile, InvalidValue) as error:
            # Without the file: the key says which, and another machine may have it elsewhere.
            return {"key": item.key, "error": error.reason}
        except SaywhereError as error:
            return {"key": item.key, "error": str(error)}
        return {"key": item.key, "error": None, **values}


def run_batch(
    task: str,
    sources: Sequence[str | Path],
    out: str | Path,
    model: str | Model = "saywhere-base",
    *,
    engine: Engine | None = None,
    photos: str | Path | None = None,
    size: int = 64,
    timeout_s: float = 60.0,
    reader: str = photo_reader.__name__,
    progress: Progress | None = None,
) -> BatchReport:
    """Do a task of `TASKS` with every photo of the sources, and write the results into a folder.

    engine: this process by default. photos: the folder of the photos of narratives. size: photos of a part. A model
    that is open already serves this process only; others open it by name. timeout_s: a photo that takes longer to read
    is a row with that reason, and so is one that crashes what reads it. reader: the module that reads photos.
    """
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    folder, parts = Path(out), list_parts(sources, size, photos)
    named = model if isinstance(model, str) else model.name
    stage = BatchStage(
        task, named, _digest(parts), str(folder), None if isinstance(model, str) else model, timeout_s, reader
    )
    options = Options(folder / _NOTES, _name, keep_errors=True)
    known = _noted(folder, len(parts))
    began, total, told = time.monotonic(), sum(map(len, parts)), 0
    notes: list[dict[str, Any]] = []
    lost: dict[str, str] = {}
    for note in (engine or OneProcess()).map(stage, list(enumerate(parts)), options):
        if isinstance(note, FailedShard):
            lost[note.name] = note.reason
        else:
            notes.append(note)
        told += len(parts[len(notes) + len(lost) - 1])
        if progress is not None:
            progress(f"{task} of photos", told, total)
    report = BatchReport(
        sum(note["rows"] for note in notes),
        sum(note["failed"] for note in notes),
        lost,
        time.monotonic() - began,
        sum(note["rows"] for note in notes if note["file"] not in known),
    )
    _write_manifest(folder, stage, notes, report)
    return report


def _name(shard: Numbered) -> str:
    return f"part-{shard[0]:06}"


def _digest(parts: Sequence[SourcePart]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(repr(part).encode())
    return digest.hexdigest()[:16]


def _noted(folder: Path, parts: int) -> set[str]:
    """The files that were finished before this run."""
    return {
        f"part-{number:06}.parquet" for number in range(parts) if (folder / _NOTES / f"part-{number:06}.json").exists()
    }


def _parquet(rows: Sequence[dict[str, Any]], task: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=TASKS[task].schema), buffer, compression="zstd")
    return buffer.getvalue()


def _write_manifest(folder: Path, stage: BatchStage, notes: Sequence[dict[str, Any]], report: BatchReport) -> None:
    manifest = {
        "format": "saywhere batch",
        "version": 1,
        "task": stage.task,
        "model": stage.model,
        "inputs": stage.inputs,
        "rows": report.photos,
        "failed": report.failed,
        "files": list(notes),
        "lost": report.parts,
        "made_by": {"saywhere": saywhere.__version__, "git": git_hash()},
    }
    with write_atomic(folder / MANIFEST) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest)))
