"""How long forced alignment takes on real recordings (Video Localized Narratives), and what not listening is worth.

    python -m bench.bench_speech

Needs the extra `speech`, PyAV to decode the recordings, and the shared data folder (SAYWHERE_SHARED). How well words
are aligned is not measured here, because the aligner learnt from these voices: `bench.align_folds` measures it across
voices. Two baselines do not listen: words spread evenly over the recording, and in proportion to letters.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from saywhere.core import Narrative, Utterance, split_words
from saywhere.formats import video_narratives
from saywhere.formats.record import InvalidRecord
from saywhere.language.sound import Sound
from saywhere.language.speech import align_words

SHARED = Path(os.environ.get("SAYWHERE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
FOLDER = SHARED / "data" / "video_narratives"
NEAR_S = 0.25
DECODED_HZ = 48_000
Row = tuple[str, str, str, bool]


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    told = list(narratives())
    if not told:
        return [("forced alignment", f"no recordings in {FOLDER.name}", "for information", True)]
    even: list[float] = []
    letters: list[float] = []
    heard_s = taken_s = 0.0
    for narrative in told:
        sound = decoded(FOLDER / "recordings" / Path(narrative.audio).name)
        words, starts_s = [u.text for u in narrative.utterances], [u.start_s for u in narrative.utterances]
        began = time.perf_counter()
        align_words(sound, words)
        taken_s += time.perf_counter() - began
        heard_s += sound.duration_s
        at = np.arange(len(words)) / len(words) * sound.duration_s
        even += (at - starts_s).tolist()
        shared = split_words([Utterance(" ".join(words), 0.0, sound.duration_s)])
        letters += [word.start_s - start for word, start in zip(shared, starts_s, strict=True)]
    name = f"start of {len(even)} words in {len(told)} recordings"
    return [
        (f"{name}, evenly spread", summary(even), "for information", True),
        (f"{name}, by letters", summary(letters), "for information", True),
        ("time to align", f"{taken_s:.1f} s for {heard_s:.0f} s of sound", "for information", True),
    ]


def narratives() -> Iterator[Narrative]:
    """Those whose words have times and whose recording is at hand."""
    for record in video_narratives.read(FOLDER / "OVIS_train_sample.jsonl") if FOLDER.exists() else ():
        if isinstance(record, InvalidRecord):
            continue
        for actor in record.actors:
            told = actor.narrative
            if told.utterances and (FOLDER / "recordings" / Path(told.audio).name).exists():
                yield told


def decoded(path: Path) -> Sound:
    """A recording of any kind that ffmpeg knows, as one channel."""
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=DECODED_HZ)
    with av.open(str(path)) as container:
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    frames += resampler.resample(None)
    return Sound(np.concatenate([frame.to_ndarray().ravel() for frame in frames]).astype(np.int16), DECODED_HZ)


def summary(errors_s: object) -> str:
    """Median and 90th percentile of how far off the starts are, and how many are near."""
    off = np.abs(np.asarray(errors_s, dtype=np.float64))
    median, high = np.quantile(off, [0.5, 0.9])
    return f"median {median:.2f} s, 90 % {high:.2f} s, within {NEAR_S} s {np.mean(off <= NEAR_S):.1%}"


if __name__ == "__main__":
    for what, measured, asked, held in run():
        print(f"{what}: {measured}  (asked: {asked}{'' if held else ', MISSED'})")
