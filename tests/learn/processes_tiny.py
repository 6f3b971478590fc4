"""Several runs by processes that learn together: torchrun … -m tests.learn.processes_tiny RECIPE OUT

Each process leaves what it saw of each run in OUT/seen-RANK.json.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from saywhere.learn import Event, StepDone, TrainingDiverged, processes, train
from tests.learn.tiny import register_all

QUIET = ("model.dropout=0.0", "data.jitter=0.0", "data.items=17")
RUNS = {
    "items": QUIET,
    "words": (*QUIET, "task=tiny-words", "train.accumulate=2"),
    "stream": (*QUIET, "task=tiny-stream", "train.shuffle_buffer=5"),
    "shared": (*QUIET, "task=tiny-shared"),
    "noisy": ("model.batch_norm=true",),
    "lost": ("data.bad_input=0", "data.items=16"),
}

CUT = ("noisy", "stream")


def _pid_file(out: Path, rank: str) -> Path:
    return out / f"pid-{rank}"


def _tell_the_other_to_stop(out: Path, at: int) -> Any:
    def listen(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == at:
            os.kill(int(_pid_file(out, "1").read_text()), signal.SIGTERM)
            time.sleep(0.05)

    return listen


def main(recipe: str, out: Path) -> None:
    # A process that aborts says where.
    faulthandler.enable()
    register_all()
    # So small that some gradients are larger than a bucket, and the others need several.
    processes._BUCKET_ELEMENTS = 10
    rank = os.environ["RANK"]
    _pid_file(out, rank).write_text(str(os.getpid()))
    seen: dict[str, Any] = {}
    for name, overrides in RUNS.items():
        console = Console(stderr=True) if name == "items" else None
        try:
            result = train(recipe, out / name, overrides=overrides, console=console)
            seen[name] = [result.status, result.steps, result.metrics]
        except TrainingDiverged as error:
            seen[name] = ["diverged", error.step, None]
    for name in CUT:
        for _ in range(2):
            listen = _tell_the_other_to_stop(out, 7)
            result = train(recipe, out / f"cut-{name}", overrides=RUNS[name], on_event=listen)
            seen.setdefault(f"cut-{name}", []).append([result.status, result.steps])
    (out / f"seen-{rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
    processes.leave_together()
