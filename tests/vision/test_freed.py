"""Keeping freed memory: it may be asked for anywhere, and what was computed before is the same after."""

from __future__ import annotations

import subprocess
import sys

from saywhere.vision import keep_freed_memory


def test_a_process_that_keeps_its_memory_computes_the_same_and_says_whether_it_keeps_it() -> None:
    code = (
        "from saywhere.vision import keep_freed_memory\n"
        "kept = keep_freed_memory()\n"
        "import numpy as np\n"
        "total = sum(float(np.ones(1 << 20).sum()) for _ in range(20))\n"
        "print(kept, total)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    kept, total = done.stdout.split()
    assert float(total) == 20 * (1 << 20)
    assert kept == str(keep_freed_memory())


def test_where_there_is_no_glibc_nothing_is_done(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False
