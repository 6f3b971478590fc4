"""Make the example files again: kitchen.jpg, narratives.jsonl and broken.jsonl, the same on every run.

    python examples/make_examples.py [folder]

The picture is drawn by kitchen.py. The narratives are simulated: three people describe it, each pointing at what they
name, with a lag, an unsteady hand and, now and then, the pen up. They are in the official Localized Narratives form.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))  # So that kitchen.py is found however this file is run.

import kitchen

from saywhere.core import Word, WordBoxes, trace_through

SEED = 20
LAG_S = 0.12
"""How far the hand is behind the voice."""

# `word@place` is said while pointing at the place; `a_b_c` is one utterance; a leading `=` gives it no length, as
# aligners do with words they cannot hear apart; `|1.5` is a pause of 1.5 s with the pen up.
SCRIPTS = {
    7: (
        "In_this image I_can_see a wooden@table table.@table On_it_there_is a white@plate plate@plate with an "
        "apple,@apple some ripe@bananas bananas@bananas and an orange.@orange |1.2 Beside the plate@plate =we_can_see "
        "a blue@cup cup@cup of coffee@steam and a spoon.@spoon On the right_side a cat@cat is sitting@cat "
        "with its tail@tail up. In the background there_is a window@window and a clock@clock on =the wall.@wall"
    ),
    12: (
        "A@cat ginger@cat cat@cat sits at the table@table and looks@face at us. |0.9 Above it =there_is a round@clock "
        "clock@clock and next to it there is a small@plant plant@plant on the sill."
    ),
    31: (
        "Outside the window@window the sun@sun is_shining over green@hills hills@hills with a single@tree tree.@tree "
        "|1.4 Inside, steam@steam rises from a cup@cup of coffee, =and_there_is a spoon@spoon next to it. To the left "
        "=there_is a plate@plate full of fruit.@bananas"
    ),
}


@dataclass(frozen=True)
class _Spoken:
    """One word as it was really said. utterance: which one it belongs to. heard: False if its aligner lost its time."""

    word: Word
    place: str
    utterance: int
    heard: bool


def _say(script: str, rng: np.random.Generator) -> tuple[list[_Spoken], list[tuple[float, float]]]:
    """The words of a script in time, and the pauses (start, end) with the pen up."""
    now = float(rng.uniform(0.3, 0.8))
    spoken, pauses = [], []
    for i, token in enumerate(script.split()):
        if token.startswith("|"):
            pauses.append((now, now + float(token[1:])))
            now = pauses[-1][1]
            continue
        text, _, place = token.removeprefix("=").partition("@")
        for part in text.split("_"):
            lasts = (0.14 + 0.05 * len(part)) * float(rng.uniform(0.85, 1.3)) + (0.25 if part.endswith(".") else 0)
            word = Word(part, now, now + lasts)
            spoken.append(_Spoken(word, place, i, not token.startswith("=")))
            now += lasts
    return spoken, pauses


def _point(
    spoken: list[_Spoken], pauses: list[tuple[float, float]], rng: np.random.Generator
) -> list[NDArray[np.float64]]:
    """The strokes of an unsteady hand, each (n, 3) x, y, t, that follows the voice and rests in the pauses."""
    boxes = np.full((len(spoken), 4), np.nan)
    for i, said in enumerate(spoken):
        if said.place:
            x1, y1, x2, y2 = kitchen.PLACES[said.place]
            # Nobody draws along the very edge: a little in from it, off centre, larger or smaller each time.
            inset = rng.uniform(0.02, 0.2, 4) * [x2 - x1, y2 - y1, x1 - x2, y1 - y2]
            boxes[i] = np.clip(np.array([x1, y1, x2, y2]) + inset, 0, 1)
    points = np.array(trace_through([said.word for said in spoken], WordBoxes(boxes)).points)
    points[:, 2] += LAG_S
    points[:, :2] += _tremor(len(points), rng)
    parts = []
    for start_s, end_s in pauses:
        # The pen comes down again only where the next thing is.
        down_s = next(said.word.start_s for said in spoken if said.place and said.word.start_s >= end_s)
        parts.append(points[points[:, 2] <= start_s + LAG_S])
        points = points[points[:, 2] >= down_s - 0.1]
    parts.append(points)
    return [part for part in parts if len(part)]


def _tremor(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(n, 2) a slow wander of about a hundredth of the picture and a fine shake."""
    window = np.hanning(31)
    padded = rng.normal(size=(n + 30, 2))
    slow = np.stack([np.convolve(padded[:, k], window / np.sqrt((window**2).sum()), "valid") for k in (0, 1)], axis=1)
    tremor: NDArray[np.float64] = 0.009 * slow + rng.normal(scale=0.0008, size=(n, 2))
    return tremor


def _utterances(spoken: list[_Spoken]) -> list[dict[str, Any]]:
    """What an aligner gives: times in tenths of a second, and no length where it could not tell the words apart."""
    utterances: list[dict[str, Any]] = []
    heard_until = 0.0
    for number in dict.fromkeys(said.utterance for said in spoken):
        mine = [said for said in spoken if said.utterance == number]
        start_s = max(heard_until, round(mine[0].word.start_s, 1))
        end_s = max(start_s, round(mine[-1].word.end_s, 1)) if mine[0].heard else start_s
        text = " ".join(said.word.text for said in mine)
        utterances.append({"utterance": text, "start_time": start_s, "end_time": end_s})
        heard_until = end_s
    return utterances


def narratives() -> list[dict[str, Any]]:
    """The records of narratives.jsonl."""
    records = []
    for annotator, script in SCRIPTS.items():
        rng = np.random.default_rng([SEED, annotator])
        spoken, pauses = _say(script, rng)
        strokes = _point(spoken, pauses, rng)
        records.append(
            {
                "dataset_id": "saywhere_example",
                "image_id": "kitchen",
                "annotator_id": annotator,
                "caption": " ".join(said.word.text for said in spoken),
                "timed_caption": _utterances(spoken),
                "traces": [
                    [{"x": round(x, 4), "y": round(y, 4), "t": round(t, 3)} for x, y, t in stroke.tolist()]
                    for stroke in strokes
                ],
                "voice_recording": f"saywhere_example/kitchen_{annotator}.ogg",
            }
        )
    return records


def broken_lines() -> list[bytes]:
    """The lines of broken.jsonl: a good record first and last, and in between one of each way to be wrong."""
    good: dict[str, Any] = {
        "dataset_id": "saywhere_example",
        "image_id": "kitchen",
        "annotator_id": 1,
        "caption": "A cat.",
        "timed_caption": [
            {"utterance": "A", "start_time": 0.2, "end_time": 0.4},
            {"utterance": "cat.", "start_time": 0.4, "end_time": 1.0},
        ],
        "traces": [[{"x": 0.74, "y": 0.4, "t": 0.3}, {"x": 0.8, "y": 0.5, "t": 0.7}, {"x": 0.77, "y": 0.6, "t": 0.9}]],
        "voice_recording": "saywhere_example/kitchen_1.ogg",
    }

    def line(**changed: Any) -> str:
        return json.dumps({key: value for key, value in {**good, **changed}.items() if value is not None})

    back = [[{"x": 0.7, "y": 0.4, "t": 2.0}, {"x": 0.8, "y": 0.5, "t": 1.0}]]
    lines = [
        line(),
        line()[:90],
        "[1, 2, 3]",
        line(image_id=None),
        line(caption=17),
        line(timed_caption=[{"utterance": "cat", "start_time": 3.0, "end_time": 2.0}]),
        line(timed_caption=[{"utterance": "cat", "start_time": "early", "end_time": 2.0}]),
        line(traces=back),
        line(traces=[[{"x": float("nan"), "y": 0.4, "t": 0.5}]]),
        line().replace("0.74", "1e999"),
        line(traces=[[{"x": 0.5, "t": 0.5}]]),
        line(caption="half a pair: \ud83d"),
    ]
    latin = line(caption="Kitten").replace("Kitten", "Kätzchen").encode("latin-1")
    return [text.encode() for text in lines] + [latin, line().encode()]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kitchen.draw().save(folder / "kitchen.jpg", quality=90, optimize=True)
    lines = [json.dumps(record) + "\n" for record in narratives()]
    (folder / "narratives.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "broken.jsonl").write_bytes(b"\n".join(broken_lines()) + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
