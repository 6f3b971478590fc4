"""What listeners hear of real recordings in simulated rooms, kept for `bench.align_folds` to learn from.

    python -m bench.align_listen FOLDER EVIDENCE.jsonl

FOLDER holds Video Localized Narratives: `vidlns/*.jsonl` and the voices that they name, as `data/` of the public
repository google/video-localized-narratives does. Every recording is heard as it is, in each room, with longer pauses,
and beside the text of another recording, which it does not fit. A line of EVIDENCE is one hearing; those that are there
are not made again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.bench_speech import decoded
from bench.rooms import ROOMS, in_room, with_pauses
from saywhere.core.errors import InvalidValue
from saywhere.formats import video_narratives
from saywhere.formats.record import InvalidRecord
from saywhere.language.opinion import Opinion
from saywhere.language.sound import Sound
from saywhere.language.speech import CUTS
from saywhere.language.sphinx import RATE_HZ, Sphinx

FITTING = ("clear", "pauses", *ROOMS)
WRONG = "another text"


@dataclass(frozen=True, slots=True)
class Told:
    """A recording, whose it is, and when its words start."""

    name: str
    voice: str
    sound: Sound
    words: list[str]
    starts_s: list[float]


def recordings(folder: Path) -> list[Told]:
    told = []
    for file in sorted((folder / "vidlns").glob("*_sample.jsonl")):
        for record in video_narratives.read(file):
            for actor in () if isinstance(record, InvalidRecord) else record.actors:
                said = actor.narrative
                path = folder / said.audio
                words, starts_s = [u.text for u in said.utterances], [u.start_s for u in said.utterances]
                if words and path.exists():
                    name = f"{path.parent.name}/{path.stem}"
                    told.append(Told(name, said.annotator_id, decoded(path).resampled(RATE_HZ), words, starts_s))
    return told


def plan(n_recordings: int) -> Iterator[tuple[str, int]]:
    """(room, recording) to be heard. The first rounds have some recordings in every room already."""
    for turn in range(len(FITTING) + 1):
        for i in range(n_recordings):
            yield str((FITTING[0], WRONG, *np.roll(FITTING[1:], i))[turn]), i


def placed(told: list[Told], i: int, room: str) -> Told:
    """A recording in a room, or beside the text of another."""
    one = told[i]
    if room == WRONG:
        return Told(one.name, one.voice, one.sound, _another(told, i), [])
    if room == "pauses":
        sound, starts_s = with_pauses(one.sound, np.array(one.starts_s), i)
        return Told(one.name, one.voice, sound, one.words, starts_s.tolist())
    return Told(one.name, one.voice, in_room(one.sound, room, i), one.words, one.starts_s)


def _another(told: list[Told], i: int) -> list[str]:
    """The text of another recording whose length is nearest, if it shares less than half of this one's words."""
    mine = {word.lower() for word in told[i].words}
    others = [one.words for one in told if len(mine & {word.lower() for word in one.words}) < len(mine) / 2]
    return min(others, key=lambda words: abs(len(words) - len(told[i].words)))


def heard(one: Told) -> dict[str, Any]:
    opinions: dict[str, Opinion] = {}
    refused = ""
    try:
        sphinx = Sphinx(one.words)
        for name, cut in CUTS.items():
            opinions[name] = sphinx.hear(one.sound, cut)
    except InvalidValue as error:
        refused = str(error)
    kept = {name: {k: getattr(o, k).tolist() for k in Opinion.__slots__} for name, o in opinions.items()}
    return {"opinions": kept, "refused": refused}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("evidence", type=Path)
    args = parser.parse_args()
    lines = args.evidence.read_text("utf-8").splitlines() if args.evidence.exists() else []
    done = {(line["room"], line["recording"]) for line in map(json.loads, lines)}
    with args.evidence.open("a", encoding="utf-8") as out:
        told = recordings(args.folder)
        for room, i in plan(len(told)):
            if (room, told[i].name) in done:
                continue
            one = placed(told, i, room)
            facts: dict[str, Any] = {"room": room, "recording": one.name, "voice": one.voice, "words": one.words}
            facts |= {"starts_s": one.starts_s, "duration_s": one.sound.duration_s}
            print(json.dumps(facts | heard(one)), file=out, flush=True)
            print(room, one.name, flush=True)


if __name__ == "__main__":
    main()
