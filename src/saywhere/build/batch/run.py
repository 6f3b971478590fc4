"""A task over all parts of some sources, on any engine: sharded Parquet, a manifest, and a report.

Every part becomes a file of its own, written whole or not at all, and then a note of it (by the engine, in `parts/`).
So a run that is killed at any point goes on with the parts that have no note; nothing is done twice but the part that
was being written, which gets the same bytes again. A file that is gone or altered is made anew. The manifest comes
last: where it is, everything is.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import saywhere
from saywhere import loading
from saywhere.atomic import write_atomic
from saywhere.build.batch.sources import SourceItem, SourcePart, list_parts
from saywhere.build.batch.tasks import TASKS
from saywhere.core.errors import InvalidFile, InvalidValue, SaywhereError, UnknownName
from saywhere.core.types import Progress
from saywhere.engine import Engine, FailedShard, OneProcess, Options
from saywhere.provenance import git_hash, sha256_of
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
    """A numbered part → what is noted of it. inputs, weights: digests of all parts and of the model, so that a folder
    holds the results of one set of sources with one model. model: what results call it. out: where the files go. opens:
    the model's name or folder, opened in each worker. timeout_s: for reading one photo; reader: the module that reads
    them.

    out and opens lead there from any folder: workers of a cluster are in one of their own."""

    task: str
    model: str
    inputs: str
    weights: str
    out: str = field(repr=False)
    opens: str = field(repr=False)
    opened: Model | None = field(default=None, repr=False)
    timeout_s: float = field(default=60.0, repr=False)
    reader: str = field(default=photo_reader.__name__, repr=False)
    photos: PhotoReader | None = field(default=None, init=False, repr=False)

    def setup(self) -> None:
        self.photos = PhotoReader(self.timeout_s, self.reader)
        if self.opened is None:
            self.opened = saywhere.load(self.opens)
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
    weights: str = "",
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> BatchReport:
    """Do a task of `TASKS` with every photo of the sources, and write the results into a folder.

    engine: this process by default. photos: the folder of the photos of narratives. size: photos of a part. A model
    that is open already serves this process only; others open it by name. timeout_s: a photo that takes longer to read
    is a row with that reason, and so is one that crashes what reads it. reader: the module that reads photos. weights:
    `loading.digest` of a model that is open; without it, one of the same name is taken for the same. retry_failed:
    parts with photos that failed before are done anew.
    """
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    folder, parts = Path(out).absolute(), list_parts(sources, size, photos)
    named, opened = (model, None) if isinstance(model, str) else (model.name, model)
    weights = weights or (loading.digest(named) if opened is None else "")
    stage = BatchStage(
        task, named, _digest(parts), weights, str(folder), loading.absolute(named), opened, timeout_s, reader
    )
    known: set[str] = set()
    options = Options(folder / _NOTES, _name, partial(_is_there, folder, known, retry_failed), keep_errors=True)
    began = time.monotonic()
    results = (engine or OneProcess()).map(stage, list(enumerate(parts)), options)
    notes: list[dict[str, Any]] = []
    lost: dict[str, str] = {}
    for note in _told(results, parts, known, task, progress):
        if isinstance(note, FailedShard):
            lost[note.name] = note.reason
        else:
            notes.append(note)
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


def _is_there(folder: Path, known: set[str], retry_failed: bool, note: dict[str, Any]) -> bool:
    """Whether the file of a note is as it was written, and need not be again. Then its name is added to those that are
    known."""
    path = folder / note["file"]
    if (retry_failed and note["failed"]) or not path.is_file() or sha256_of(path) != note["sha256"]:
        return False
    known.add(note["file"])
    return True


def _told(
    results: Iterable[Any], parts: Sequence[SourcePart], known: set[str], task: str, progress: Progress | None
) -> Iterator[Any]:
    """The same results. Photos that were done before are told at once, so that the rate is that of this run."""
    before = [f"{_name(shard)}.parquet" in known for shard in enumerate(parts)]
    told, total = sum(len(part) for part, done in zip(parts, before, strict=True) if done), sum(map(len, parts))
    tell = progress or (lambda *_: None)
    tell(f"{task} of photos", told, total)
    for part, done, result in zip(parts, before, results, strict=True):
        yield result
        if not done:
            told += len(part)
            tell(f"{task} of photos", told, total)


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
        "weights": stage.weights,
        "inputs": stage.inputs,
        "rows": report.photos,
        "failed": report.failed,
        "files": list(notes),
        "lost": report.parts,
        "made_by": {"saywhere": saywhere.__version__, "git": git_hash()},
    }
    with write_atomic(folder / MANIFEST) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest)))
