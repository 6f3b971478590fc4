"""`make bench`: run every benchmark beside this file and write RESULTS.md.

A benchmark is a module bench_*.py with `run() -> list of (what, measured, asked, held)`.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
INTRODUCTION = """# Measured numbers

Made by `make bench`. Speeds are compared within one run, because machines differ and are noisy: read the ratios, not
the milliseconds.

"""


def machine() -> str:
    """What this ran on, in one line."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    python = f"Python {platform.python_version()}, numpy {numpy.__version__}"
    return f"{name}, {os.cpu_count()} cores, {platform.system()}, {python}"


def main() -> int:
    """Run the benchmarks named on the command line, or all of them; 1 if a number asked for was missed."""
    console = Console()
    named = {f"bench_{name}" for name in sys.argv[1:]}
    modules = sorted(path.stem for path in HERE.glob("bench_*.py") if not named or path.stem in named)
    text, missed = INTRODUCTION + f"Machine: {machine()}.\n", 0
    for module in modules:
        console.print(f"[bold]{module}[/bold] …")
        began = time.perf_counter()
        rows = import_module(f"bench.{module}").run()
        table = Table("what", "measured", "asked", "held")
        text += f"\n## {module.removeprefix('bench_')}\n\n| what | measured | asked | held |\n|---|---|---|---|\n"
        for what, measured, asked, held in rows:
            table.add_row(what, measured, asked, "yes" if held else "[red]no[/red]")
            text += f"| {what} | {measured} | {asked} | {'yes' if held else '**no**'} |\n"
            missed += not held
        console.print(table)
        console.print(f"{time.perf_counter() - began:.0f} s")
    if not named:
        (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
        console.print(f"written: {(HERE / 'RESULTS.md').relative_to(HERE.parent)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
