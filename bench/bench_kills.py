"""Writers killed at random points: a library and a batch run, each compared with one that was never killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KILLS = int(os.environ.get("SAYWHERE_KILLS", "100"))
MODULES = {"a library": "tests.index.kill_library", "a batch run": "tests.build.batch.kill_batch"}
Row = tuple[str, str, str, bool]


def run() -> list[Row]:
    rows = []
    for what, module in MODULES.items():
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", module, folder, str(KILLS), "7"]
            ran = subprocess.run(
                command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False
            )
        told = ran.stdout.strip() or ran.stderr.strip().splitlines()[-1]
        killed = re.match(r"(\d+) kills", told)
        held = ran.returncode == 0 and killed is not None and int(killed[1]) >= KILLS
        rows.append((f"{what}, its writer killed at random points", told, f"{KILLS} kills: equal", held))
    return rows
