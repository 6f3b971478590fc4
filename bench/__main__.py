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


def sections(text: str) -> dict[str, str]:
    """The parts of RESULTS.md by their headings."""
    parts = text.split("\n## ")[1:]
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in parts}


def main() -> int:
    """Run the benchmarks named on the command line, or all of them; 1 if a number asked for was missed.

    RESULTS.md keeps the parts that were not run.
    """
    console = Console()
    named = {f"bench_{name}" for name in sys.argv[1:]}
    modules = sorted(path.stem for path in HERE.glob("bench_*.py") if not named or path.stem in named)
    path, missed = HERE / "RESULTS.md", 0
    parts = sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    for module in modules:
        console.print(f"[bold]{module}[/bold] …")
        began = time.perf_counter()
        rows = import_module(f"bench.{module}").run()
        table = Table("what", "measured", "asked", "held")
        part = f"{machine()}\n\n| what | measured | asked | held |\n|---|---|---|---|\n"
        for what, measured, asked, held in rows:
            table.add_row(what, measured, asked, "yes" if held else "[red]no[/red]")
            part += f"| {what} | {measured} | {asked} | {'yes' if held else '**no**'} |\n"
            missed += not held
        parts[module.removeprefix("bench_")] = part.strip()
        console.print(table)
        console.print(f"{time.perf_counter() - began:.0f} s")
        text = INTRODUCTION + "\n".join(f"## {name}\n\n{parts[name]}\n" for name in sorted(parts))
        path.write_text(text, encoding="utf-8")
    console.print(f"written: {path.relative_to(HERE.parent)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
