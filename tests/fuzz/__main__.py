"""python -m tests.fuzz [--cases N] [--seed S] [--only TEXT] [--out FOLDER]."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from tests.fuzz.running import Outcomes, run
from tests.fuzz.targets import targets


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("--cases", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default="", help="targets whose name holds this text")
    options.add_argument("--out", type=Path, default=Path("out/fuzz"), help="where failures are kept")
    chosen = options.parse_args()
    wanted = [one for one in targets() if chosen.only in one.name]
    every = Outcomes()
    weights = sum(target.weight for target in wanted)
    for target in wanted:
        count = math.ceil(chosen.cases * target.weight / weights)
        found = run(target, count, chosen.seed, chosen.out)
        every += found
        sys.stdout.write(f"{target.name:40} {found}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{'all':40} {every}\n")
    return 1 if every.failed else 0


if __name__ == "__main__":
    sys.exit(main())
