"""The main job from end to end. Run by `make demo`, which leaves pictures in out/.

First a photograph: captions of the whole, of boxes and along a drawn trace; a sentence found in it; a narrative from
the photo alone. Then recorded narratives: check and draw.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

import saywhere as sw
from saywhere.assets import folder_of
from saywhere.cli.app import app
from saywhere.cli.seeing import busy, fetch_missing, opened

if TYPE_CHECKING:
    from saywhere.models.face import Look
    from saywhere.plots.seen import ShownPhoto

HERE = Path(__file__).resolve().parent
PHOTOS = "sample-photos"
FIRST = "coffee"
BOXES = (sw.Box(0.29, 0.04, 0.71, 0.79), sw.Box(0.53, 0.41, 0.68, 0.82), sw.Box(0.75, 0.0, 1.0, 0.4))
SENTENCES = {
    "coffee": "a cup of coffee on a saucer beside a spoon",
    "chelsea": "a cat with long whiskers and a pink nose",
    "astronaut": "a woman in an orange suit in front of a flag",
    "dogs": "two dogs in front of a window",
}
QUESTIONS = ("How many cups are there?", "What is the table made of?")
console = Console(highlight=False, soft_wrap=True)


def drawn_trace() -> sw.Trace:
    """What a hand draws that circles the spoon twice: x, y, and seconds."""
    seconds = np.linspace(0, 3, 90)
    turn = 2 * np.pi * seconds / 1.5
    x = 0.605 + (0.05 + 0.005 * seconds) * np.cos(turn)
    y = 0.66 + (0.12 + 0.01 * seconds) * np.sin(turn)
    return sw.Trace(np.column_stack([x, y, seconds]))


def told(code: str, *answers: object) -> None:
    """Show a line of code and what it gave."""
    console.print(f"\n>>> {code}", style="bold", markup=False)
    for answer in answers:
        console.print(str(answer), markup=False)


def seen(look: Look, boxes: tuple[sw.Box, ...], trace: sw.Trace | None) -> ShownPhoto:
    """Everything about one photo, asked for as a user would."""
    from saywhere.plots.seen import ShownPhoto

    regions: list[sw.Region] = [*boxes, *([trace] if trace is not None else [])]
    whole, *captions = look.captions([sw.WholeImage(), *regions])
    grounded = look.grounded(SENTENCES[look.image_id])
    return ShownPhoto(
        look.image,
        look.image_id,
        f"looked at by {look.model.name}",
        whole,
        tuple(captions),
        grounded,
        look.narrate(),
    )


def photographs(out: Path) -> None:
    """Look at sample photographs, ask, and leave demo.png and demo.html."""
    from saywhere.plots.captions import draw_seen
    from saywhere.plots.gallery import gallery_page
    from saywhere.plots.sheet import save_png

    fetch_missing([PHOTOS])
    folder = folder_of(PHOTOS)
    seer = opened("saywhere-base")
    told(f'look = sw.load().look("{FIRST}.png")')
    look, trace = seer.look(folder / f"{FIRST}.png"), drawn_trace()
    told("look.caption()", look.caption())
    told("look.captions([Box(…), Box(…), Box(…)])", *look.captions(BOXES))
    told("look.caption(trace)", look.caption(trace))
    sentence = SENTENCES[FIRST]
    with busy("reading"):
        narrative = look.ground(sentence)
    told(f'look.ground("{sentence}")', narrative.trace)
    told("look.narrate()", look.narrate().caption)
    for question in QUESTIONS:
        told(f'look.answer("{question}")', look.answer(question))
    with busy("drawing"):
        first = seen(look, BOXES, trace)
        save_png(draw_seen(first), out / "demo.png")
        others = [seen(seer.look(folder / f"{name}.png"), (), None) for name in ("chelsea", "astronaut")]
        others.append(seen(seer.look(HERE / "photos" / "dogs.jpg"), (), None))
        gallery_page([first, *others], out / "demo.html", "What it sees, and where")
    console.print(f"\n{out / 'demo.png'}\n{out / 'demo.html'}", markup=False)


def command(*arguments: str | Path, expect: int = 0) -> None:
    """Show a command as a user would type it, and run it."""
    shown = [
        str(a.relative_to(Path.cwd())) if isinstance(a, Path) and a.is_relative_to(Path.cwd()) else str(a)
        for a in arguments
    ]
    console.print(f"\n$ saywhere {' '.join(shown)}", style="bold", markup=False)
    code = app(shown, standalone_mode=False) or 0
    if code != expect:
        sys.exit(f"saywhere {shown[0]} ended with {code} instead of {expect}")


def narratives(out: Path) -> None:
    """What people said and pointed at: check files, and draw."""
    good, broken = HERE / "narratives.jsonl", HERE / "broken.jsonl"
    command("data", "check", good)
    command("data", "check", broken, expect=1)
    command("data", "show", good, "--out", out / "narrative.png")
    command("data", "show", good, "--out", out / "narratives.html")


def main() -> None:
    """Run everything and leave pictures in the folder named on the command line."""
    started = time.monotonic()
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out").resolve()
    photographs(out)
    narratives(out)
    console.print(f"\nDone in {time.monotonic() - started:.0f} s.", markup=False)
    pages = f"{out / 'demo.html'} and {out / 'narratives.html'}"
    console.print(f"Open {pages} in a browser and press play.", style="bold green", markup=False)


if __name__ == "__main__":
    try:
        main()
    except sw.SaywhereError as error:
        sys.exit(f"error: {error}")
