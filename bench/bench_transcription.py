"""Transcription of real recordings (Video Localized Narratives): word error rate and time, for each Whisper.

    python -m bench.bench_transcription

Needs the extra `transcribe`, the assets (`saywhere assets fetch whisper-base whisper-tiny`), PyAV to decode the
recordings, and the shared data folder (SAYWHERE_SHARED). One thread. Punctuation and capitals do not count.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np

from bench.bench_speech import FOLDER, Row, decoded
from saywhere.assets import is_cached
from saywhere.formats import video_narratives
from saywhere.formats.record import InvalidRecord
from saywhere.language.sound import Sound
from saywhere.language.whisper import WHISPER, Whisper


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    told = recordings()
    return [measured(name, language, told) for name in WHISPER if is_cached(name) for language in ("en", None)]


def recordings() -> list[tuple[list[str], Sound]]:
    """What was said and its sound, of every recording at hand."""
    found = []
    for record in video_narratives.read(FOLDER / "OVIS_train_sample.jsonl") if FOLDER.exists() else ():
        for actor in () if isinstance(record, InvalidRecord) else record.actors:
            path = FOLDER / "recordings" / Path(actor.narrative.audio).name
            if path.exists():
                found.append((plain_words(actor.narrative.caption), decoded(path)))
    return found


def measured(name: str, language: str | None, told: list[tuple[list[str], Sound]]) -> Row:
    whisper = Whisper(name)
    wrong = words = 0
    heard_s = taken_s = 0.0
    languages = set()
    for said, sound in told:
        began = time.perf_counter()
        transcript = whisper.transcribe(sound, language, lambda *_: None)
        taken_s += time.perf_counter() - began
        heard_s += sound.duration_s
        wrong += word_errors(said, plain_words(transcript.text))
        words += len(said)
        languages.add(transcript.language)
    result = (
        f"WER {wrong / max(words, 1):.1%} ({wrong} of {words} words), {60 * taken_s / max(heard_s, 1):.1f} s a minute"
    )
    chosen = language or f"detected {', '.join(sorted(languages))}"
    return (f"{name}, {len(told)} recordings of {heard_s:.0f} s, {chosen}", result, "for information", True)


def plain_words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def word_errors(said: list[str], written: list[str]) -> int:
    """Words to be put in, taken out or changed (Levenshtein)."""
    row = np.arange(len(written) + 1)
    for i, word in enumerate(said, 1):
        best = np.minimum(row[1:] + 1, row[:-1] + [word != other for other in written])
        row = np.concatenate([[i], best])
        row = np.minimum.accumulate(row - np.arange(len(row))) + np.arange(len(row))
    return int(row[-1])


if __name__ == "__main__":
    for row in run():
        print(*row[:3], sep=" | ")
