"""The world: scenes a second on one core, the same bytes in any order, and a hand as fast as real ones."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from saywhere.world import Scene, WorldSettings, make, make_scene, narrate, pointer, scenes

COUNT = 5_000
ASKED_A_SECOND = 200.0
Row = tuple[str, str, str, bool]


def run() -> list[Row]:
    """Rows (name, measured, asked, ok). Times are processor time of this one process: what one core does."""
    cold = a_second(lambda: scenes(COUNT, seed=0), COUNT)
    warm = a_second(lambda: scenes(1000, seed=1), 1000)
    some = list(scenes(300, seed=2))
    told = a_second(lambda: (narrate(scene) for scene in some), len(some))
    asked = f"≥ {ASKED_A_SECOND:.0f} a second"
    rows: list[Row] = [
        (
            f"world: {COUNT:,} scenes, 128 px, nothing kept yet",
            f"{cold:.0f} a second",
            asked,
            cold >= ASKED_A_SECOND,
        ),
        ("world: 1,000 further scenes", f"{warm:.0f} a second", asked, warm >= ASKED_A_SECOND),
        ("world: narrations", f"{told:.0f} a second", "for information", True),
        ("world: everything on disk", f"{whole_worlds():.0f} scenes a second", "for information", True),
    ]
    backwards = [digest(make_scene(2, index)) for index in reversed(range(100))]
    same = backwards[::-1] == [digest(scene) for scene in some[:100]]
    rows.append(("world: the same bytes in another order", "yes" if same else "no", "yes", same))
    speed = float(np.median([np.nanmedian(narrate(scene).narrative.trace.speed()) for scene in some]))
    slow, fast = pointer.RUN_SPEED
    row = "world: median pointer speed, against real narrators"
    rows.append((row, f"{speed:.2f} widths/s", f"{slow} to {fast}", slow <= speed <= fast))
    return rows


def a_second(work: Callable[[], Iterable[object]], count: int) -> float:
    start = time.process_time()
    for _ in work():
        pass
    return count / (time.process_time() - start)


def whole_worlds(count: int = 300) -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        make(Path(folder) / "world", WorldSettings(count, seed=3))
        return count / (time.process_time() - start)


def digest(scene: Scene) -> str:
    return hashlib.sha256(scene.photo.tobytes() + scene.labels.tobytes()).hexdigest()


def main() -> None:
    for name, measured, asked, ok in run():
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {measured} (asked: {asked})")


if __name__ == "__main__":
    main()
