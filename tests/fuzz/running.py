"""Cases run in children of this process, so that a crash, a hang or a hunger for memory is one failure, not the end."""

from __future__ import annotations

import mmap
import os
import random
import resource
import signal
import struct
import tempfile
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from saywhere.core.errors import SaywhereError
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import Target

SLOWEST_S = 60
MEMORY_BYTES = 2**30
"""Beside what the process has: a hundred times what any of the good files needs."""
# A disk takes ten times as long to make and remove a folder as a case takes.
_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_COUNTS = struct.Struct("<QQQ")


@dataclass
class Outcomes:
    """read: were good enough. refused: with a clear error. failures: in any other way, each with its report."""

    read: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return len(self.failures)

    def __iadd__(self, other: Outcomes) -> Outcomes:
        self.read, self.refused = self.read + other.read, self.refused + other.refused
        self.failures += other.failures
        return self

    def __str__(self) -> str:
        cases = self.read + self.refused + self.failed
        return f"{cases:8,} cases {self.read:8,} read {self.refused:8,} refused {self.failed:4,} failed"


def case(target: Target, seed: int, number: int) -> tuple[str, bytes]:
    """Which file of a target is changed in a case, and to what. The same numbers give the same case."""
    rng = random.Random(f"{target.name} {seed} {number}")
    name = rng.choice(sorted(target.files))
    return name, mutated(target.files[name], rng)


def attempt(target: Target, name: str, content: bytes) -> bool:
    """Whether the files are read; False if they are refused. Anything but a SaywhereError is a failure."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target.write(Path(folder), name, content)
        try:
            target.read(Path(folder))
        except SaywhereError:
            return False
        return True


def run(target: Target, cases: int, seed: int, out: Path) -> Outcomes:
    """So many cases of a target. Failures are kept in the folder `out`, each file with its report."""
    found = Outcomes()
    done = 0
    with mmap.mmap(-1, _COUNTS.size) as shared:
        while done < cases:
            shared[:] = _COUNTS.pack(done, 0, 0)
            child = os.fork()
            if child == 0:
                _attempt_all(target, range(done, cases), seed, shared)
            _, status = os.waitpid(child, 0)
            done, read, refused = _COUNTS.unpack(shared[:])
            found.read, found.refused = found.read + read, found.refused + refused
            if status:
                reason = Path(tempfile.gettempdir(), f"saywhere-fuzz-{child}")
                report = reason.read_text() if reason.exists() else f"ended by signal {os.WTERMSIG(status)}"
                reason.unlink(missing_ok=True)
                found.failures.append(_kept(target, seed, done, report, out))
                done += 1
    return found


def _attempt_all(target: Target, numbers: range, seed: int, shared: Any) -> None:
    """In a child; ends the process. It stops at the first failure, whose number then stands in `shared`."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    read = refused = 0
    try:
        for number in numbers:
            shared[:] = _COUNTS.pack(number, read, refused)
            signal.alarm(SLOWEST_S)
            good = attempt(target, *case(target, seed, number))
            read, refused = read + good, refused + (not good)
        shared[:] = _COUNTS.pack(numbers.stop, read, refused)
    except BaseException:  # noqa: BLE001 - whatever it is, it is the failure that is looked for
        Path(tempfile.gettempdir(), f"saywhere-fuzz-{os.getpid()}").write_text(traceback.format_exc())
        os._exit(1)
    os._exit(0)


def _kept(target: Target, seed: int, number: int, report: str, out: Path) -> str:
    folder = out / f"{target.name} {seed} {number}".replace("/", "-").replace(":", "")
    name, content = case(target, seed, number)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / Path(name).name).write_bytes(content)
    (folder / "report.txt").write_text(report)
    return f"{target.name}, seed {seed}, case {number}, {name}: {report.strip().splitlines()[-1]}"
