"""Start a tiny run and kill it with SIGKILL, again and again, until it gets to its end.

python -m tests.learn.kill_tiny RECIPE OUT KILLS SEED; writes at which steps it killed. Each run is a child forked after
the slow imports, so that it lives for the run alone.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from saywhere.learn import train
from tests.learn.tiny import register_all


def _lines(log: Path) -> int:
    return log.read_bytes().count(b'"kind":"train"') if log.exists() else 0


def _killed_at(recipe: str, out: Path, after_lines: int | None, delay_s: float) -> int | None:
    """Run until so many more steps are logged, and a little longer; the step then, or None if the run ended itself."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if train(recipe, out).status == "finished" else 2
        finally:
            os._exit(status)
    log = out / "log.jsonl"
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if status != 0:
                sys.exit(f"the run failed with status {status}")
            return None
        if after_lines is not None and _lines(log) >= after_lines:
            time.sleep(delay_s)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            return _lines(log) if os.WIFSIGNALED(status) else None
        time.sleep(0.001)


if __name__ == "__main__":
    recipe, out, kills, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    register_all()
    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])  # its first use imports much
    dice = random.Random(seed)
    for _ in range(kills):
        step = _killed_at(recipe, out, _lines(out / "log.jsonl") + dice.randint(1, 4), dice.uniform(0, 0.02))
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()
    _killed_at(recipe, out, None, 0.0)
