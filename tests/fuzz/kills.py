"""Writers that are killed: python -m tests.fuzz.kills --kills 500.

A child writes one thing after another and notes each one that is done; it is killed (SIGKILL) at some moment. Then what
was done must be there, whole, and what was not may be there or not, but not in part.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saywhere.core import Narrative, Trace, Utterance
from saywhere.core.errors import InvalidFile
from saywhere.formats import localized_narratives, parquet
from saywhere.learn.checkpoint import Snapshot, load_checkpoint, newest_intact, save_checkpoint
from saywhere.models.folder import load_part, save_part
from saywhere.store import Store, StoreWriter
from saywhere.studio.line_log import now
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.study_ratings import Rating, RatingLog, read_ratings

_DONE = struct.Struct("<q")
_LONGEST_S = 0.2
_NUMBERS = 4_000


@dataclass(frozen=True)
class Writer:
    """write: thing n into a folder. check: that things 0 … done are as they must be; a sentence if not."""

    name: str
    write: Callable[[Path, int], Any]
    check: Callable[[Path, int], str]


def _narratives(number: int) -> list[Narrative]:
    trace = Trace(np.column_stack([np.full((300, 2), 0.5), np.arange(300.0)]))
    return [Narrative(f"photo {i}", f"version {number}", (Utterance("cup", 0, 1),), trace) for i in range(5)]


def _check_file(read: Callable[[Path], Any], name: str) -> Callable[[Path, int], str]:
    def check(folder: Path, done: int) -> str:
        path = folder / name
        if not path.exists():
            return "" if done < 0 else f"{name} is not there after version {done}"
        captions = {getattr(value, "caption", str(value)) for value in read(path)}
        allowed = ({f"version {done}"}, {f"version {done + 1}"})
        return "" if captions in allowed else f"{name} holds {captions}, not version {done} or the next"

    return check


def _rows(folder: Path) -> StoreWriter:
    return StoreWriter(folder / "store", "rows", {"numbers": "float32"}, {}, shard_bytes=40_000)


def _write_rows(folder: Path, number: int) -> None:
    with _rows(folder) as writer:
        for row in range(3):
            writer.add(f"{number}-{row}", numbers=np.full(_NUMBERS, number))


def _check_rows(folder: Path, done: int) -> str:
    if done < 0 and not (folder / "store" / "index.json").exists():
        return ""
    with _rows(folder):
        pass  # A store that was not finished goes on from where it was.
    store = Store(folder / "store")
    keys = [row.key for shard in store.shards for row in shard]
    torn = [row.key for shard in store.shards for row in shard if set(row["numbers"].tolist()) != {_number(row.key)}]
    absent = [f"{n}-{row}" for n in range(done + 1) for row in range(3) if f"{n}-{row}" not in keys]
    return f"rows {torn} are torn" if torn else f"rows {absent} are lost" if absent else ""


def _number(key: str) -> float:
    return float(key.split("-")[0])


def _write_checkpoint(folder: Path, number: int) -> None:
    weights = {"w": torch.full((_NUMBERS,), float(number))}
    save_checkpoint(folder / "run", number, Snapshot(weights, None, weights, {"kind": "Adam"}, {"state": number}))


def _check_checkpoint(folder: Path, done: int) -> str:
    newest, damaged = newest_intact(folder / "run")
    if damaged:
        return f"damaged: {damaged}"
    if newest is None:
        return "" if done < 0 else "there is no checkpoint"
    found = load_checkpoint(newest)
    whole = bool((found.model["w"] == found.trainer["state"]).all())
    return "" if whole and found.trainer["state"] >= done else f"{newest} is not what was saved"


def _write_model(folder: Path, number: int) -> None:
    tensors = {"w": torch.full((_NUMBERS,), float(number))}
    save_part(folder / "model", "kills", {"number": number}, tensors, {"v.json": str(number).encode()})


def _check_model(folder: Path, done: int) -> str:
    """A folder is several files, of which the description comes last: one that is between two versions says so."""
    try:
        part = load_part(folder / "model", "kills")
    except InvalidFile as error:
        return "" if done < 0 or "was the save cut off?" in str(error) else str(error)
    number = part.config["number"]
    whole = bool((part.tensors["w"] == number).all()) and part.files["v.json"] == str(number).encode()
    return "" if whole and number >= done else f"version {number} is not whole"


def _narrative(number: int) -> dict[str, Any]:
    return {"id": f"{number:032x}", "photo": "a" * 32, "caption": f"version {number}", "words": [], "strokes": []}


def _check_narratives(folder: Path, done: int) -> str:
    kept = {record["id"] for record in NarrativeStore(folder / "told").list()}
    absent = [number for number in range(done + 1) if f"{number:032x}" not in kept]
    return f"narratives {absent} are lost" if absent else ""


def _rating(number: int) -> Rating:
    return Rating(participant="P01", item=f"item {number}", left="a", rating=1, at=now())


def _write_rating(folder: Path, number: int) -> None:
    with closing(RatingLog(folder)) as log:
        log.add(_rating(number))


def _check_ratings(folder: Path, done: int) -> str:
    found = read_ratings(folder)
    kept = found.ratings.get("P01", {})
    absent = [number for number in range(done + 1) if f"item {number}" not in kept]
    return f"ratings {absent} are lost" if absent else f"torn: {found.bad_lines}" if found.bad_lines else ""


WRITERS = (
    Writer(
        "export as JSONL",
        lambda folder, number: localized_narratives.write(folder / "a.jsonl", _narratives(number)),
        _check_file(localized_narratives.read, "a.jsonl"),
    ),
    Writer(
        "export as Parquet",
        lambda folder, number: parquet.write(folder / "a.parquet", _narratives(number)),
        _check_file(parquet.read, "a.parquet"),
    ),
    Writer("store and its index", _write_rows, _check_rows),
    Writer("checkpoint", _write_checkpoint, _check_checkpoint),
    Writer("model folder", _write_model, _check_model),
    Writer(
        "narratives of the Studio",
        lambda folder, number: NarrativeStore(folder / "told").create(_narrative(number)),
        _check_narratives,
    ),
    Writer(
        "answers of a study",
        _write_rating,
        _check_ratings,
    ),
)


def killed(writer: Writer, folder: Path, after_s: float) -> int:
    """Which thing was the last that a child had done when it was killed; −1 for none."""
    with mmap.mmap(-1, _DONE.size) as shared:
        shared[:] = _DONE.pack(-1)
        child = os.fork()
        if child == 0:
            number = 0
            try:
                while True:
                    writer.write(folder, number)
                    shared[:] = _DONE.pack(number)
                    number += 1
            finally:
                os._exit(1)
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            raise RuntimeError(f"{writer.name}: the writer ended by itself")
        return int(_DONE.unpack(shared[:])[0])


def kill_all(writer: Writer, kills: int, seed: int) -> tuple[list[str], int]:
    """What was torn or lost, and how many things the killed writers had done in all."""
    rng = random.Random(f"{writer.name} {seed}")
    found, written = [], 0
    with tempfile.TemporaryDirectory() as folder:
        writer.write(Path(folder), 0)  # Children need not import anything.
    for number in range(kills):
        with tempfile.TemporaryDirectory() as folder:
            done = killed(writer, Path(folder), rng.uniform(0.001, _LONGEST_S))
            written += done + 1
            if said := writer.check(Path(folder), done):
                found.append(f"{writer.name}, kill {number}: {said}")
    return found, written


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.kills", description=__doc__)
    options.add_argument("--kills", type=int, default=500)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    torn = 0
    for number, writer in enumerate(WRITERS):
        kills = chosen.kills // len(WRITERS) + (number < chosen.kills % len(WRITERS))
        found, written = kill_all(writer, kills, chosen.seed)
        torn += len(found)
        sys.stdout.write(f"{writer.name:30} {kills:4} kills {written:6} writes done {len(found):4} torn or lost\n")
        sys.stdout.writelines(f"  {one}\n" for one in found)
        sys.stdout.flush()
    return 1 if torn else 0


if __name__ == "__main__":
    sys.exit(main())
