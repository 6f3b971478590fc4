"""`saywhere build riln` as a process of its own that somebody kills without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import saywhere
from saywhere.build.riln.pipeline import read_manifest
from saywhere.formats import localized_narratives
from tests.build.riln.told import told

_MANY = 20
_COMMAND = (sys.executable, "-m", "saywhere", "build", "riln", "narratives.jsonl", "--out", "out", "--shard", "1")


def _begun(folder: Path) -> subprocess.Popen[bytes]:
    """The same words in each folder, for the report holds them."""
    folder.mkdir(exist_ok=True)
    localized_narratives.write(folder / "narratives.jsonl", [told(str(i)) for i in range(_MANY)])
    path = str(Path(saywhere.__file__).parents[1])
    return subprocess.Popen(_COMMAND, cwd=folder, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path})


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def test_a_process_that_is_killed_is_finished_by_the_next_with_the_same_files(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert _begun(whole).wait(timeout=300) == 0
    run = _begun(killed)
    try:
        while not (killed / "out" / "examples-00003.jsonl").exists() and run.poll() is None:
            time.sleep(0.001)
    finally:
        run.kill()
    assert run.wait(timeout=60) == -signal.SIGKILL
    stopped = read_manifest(killed / "out")
    assert stopped is not None
    assert not stopped.complete
    first = killed / "out" / "examples-00000.jsonl"
    stamp = first.stat().st_mtime_ns
    assert _begun(killed).wait(timeout=300) == 0
    assert first.stat().st_mtime_ns == stamp, "what was there is kept"
    assert _contents(killed) == _contents(whole)
    assert len(_contents(killed)) == _MANY + len({"manifest.json", "report.md", "statistics.png", "review.html"})
