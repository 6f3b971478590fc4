"""The main job from end to end on the example data: check, describe, align, score, draw. Run by `make demo`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import saywhere as sw
from saywhere.core.trajectory import to_text
from saywhere.formats import localized_narratives
from saywhere.language import phrases_of

HERE = Path(__file__).resolve().parent
console = Console(highlight=False, soft_wrap=True)


def command(*arguments: str | Path, expect: int = 0) -> None:
    """Show a command as a user would type it, and run it."""
    shown = [
        str(a.relative_to(Path.cwd())) if isinstance(a, Path) and a.is_relative_to(Path.cwd()) else str(a)
        for a in arguments
    ]
    console.print(f"\n$ saywhere {' '.join(shown)}", style="bold", markup=False)
    ran = subprocess.run([sys.executable, "-m", "saywhere", *shown], check=False)
    if ran.returncode != expect:
        sys.exit(f"saywhere {shown[0]} ended with {ran.returncode} instead of {expect}")


def words_and_boxes(narrative: sw.Narrative) -> None:
    """Print where each word of a narrative is, and its trace as text for a language model."""
    boxes = narrative.word_boxes()
    table = Table("said", "from", "to", "where (x1 y1 x2 y2)", box=None)
    for word, box, located in zip(narrative.words, boxes.boxes_xyxy, boxes.located, strict=True):
        place = " ".join(f"{value:.2f}" for value in box) if located else "unlocated"
        table.add_row(word.text, f"{word.start_s:.2f} s", f"{word.end_s:.2f} s", place)
    console.print("\n>>> narrative.words, narrative.word_boxes()", style="bold")
    console.print(table)
    simple = sw.simplify_phrases(narrative.trace, phrases_of(narrative.words), size=(960, 720))
    console.print("\n>>> simplify_phrases(…), to_text(…)", style="bold")
    console.print(f"{narrative.trace} became {simple}:", markup=False)
    console.print(to_text(simple), markup=False)


def main() -> None:
    """Run everything and leave pictures in the folder named on the command line."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out").resolve()
    good, broken = HERE / "narratives.jsonl", HERE / "broken.jsonl"
    command("data", "check", good)
    command("data", "check", broken, expect=1)
    command("data", "stats", good, "--png", out / "stats.png")
    first = next(n for n in localized_narratives.read(good) if isinstance(n, sw.Narrative))
    words_and_boxes(first)
    command("data", "convert", good, out / "narratives.parquet")
    command("score", "traces", out / "narratives.parquet", good, "--out", out / "scores.json")
    command("data", "show", good, "--out", out / "narrative.png")
    command("data", "show", good, "--out", out / "narratives.html")
    console.print(f"\nOpen {out / 'narratives.html'} in a browser and press play.", style="bold green", markup=False)


if __name__ == "__main__":
    main()
