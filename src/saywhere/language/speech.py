"""Forced alignment: when each word of a known English text is said in a recording.

pocketsphinx does the work with the model that its wheel carries. Around it stands what real recordings need:

* Pauses are cut out before and put back after. People who point while they speak are silent for most of the time, and
  an aligner that hears ten seconds of room noise likes to find a short word in it.
* Words that the dictionary does not have get a rough pronunciation. Every word may be skipped, at a price. Those that
  were not heard, or cannot be said in English (other scripts, signs), get time between their neighbours. One strange
  word never costs the others their times.
* Text of which too little is heard is refused, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidValue, require
from saywhere.core.words import Utterance, Word, split_words
from saywhere.language.pronunciation import sounds, spoken_parts
from saywhere.language.sound import FRAMES_PER_S, Sound

RATE_HZ = 16_000
"""What the acoustic model was trained on."""

MOST_WORDS = 2_000
# A phone has three states of at least one frame each.
_FRAMES_A_PHONE = 3
# Narrow beams are quick and enough for clear speech; noise and rough pronunciations need wide ones.
_BEAMS: tuple[dict[str, float], ...] = ({}, {"beam": 1e-80, "wbeam": 1e-60, "pbeam": 1e-80})
# What skipping a word costs. On real recordings, all words of the right text are heard and words put in are skipped;
# of other texts, mostly less than 75 % are "heard".
_SKIP = 1e-5
_MOST_SKIPPED = 2
_LEAST_HEARD = 0.75
# Log-probability a frame, beside the sound that fits best. The right text has −2.0 to −3.0, a wrong one −3.5 (nearly
# the same sentence) to −4.7: this refuses only what is surely wrong.
_WORST_FIT = -4.0
_SMALLEST_SCORE = 1e-300
# A word that was not heard gets this much of a pause between its neighbours at most.
_UNHEARD_S = 0.5


@dataclass(frozen=True, slots=True)
class _Part:
    """Something to listen for: a word of the dictionary, and which of the text's words it belongs to."""

    spelling: str
    word: int
    phones: int


def align_words(sound: Sound, words: Sequence[str]) -> tuple[Word, ...]:
    """One window for every word, in their order; windows never overlap. Times are seconds of the recording.

    words: as written, none with white space inside; punctuation is passed over.
    InvalidValue if there is no speech in the recording, too little of it, or other speech than this.
    """
    if not words or len(words) > MOST_WORDS:
        raise InvalidValue("the text", f"has {len(words)} words; 1 to {MOST_WORDS:,} can be aligned")
    heard = sound.resampled(RATE_HZ)
    (frames,) = np.nonzero(heard.speech_frames())
    step = RATE_HZ // FRAMES_PER_S
    speech = heard.samples[: len(heard.samples) // step * step].reshape(-1, step)[frames].ravel()
    for beams in _BEAMS:
        decoder = _decoder(beams)
        parts = _parts(decoder, words)
        _check_length(parts, len(words), len(frames))
        segments = _segments(decoder, parts, speech)
        if segments is not None:
            return _words(words, _recognised(parts, segments), frames)
    raise _unfit()


def _unfit() -> InvalidValue:
    return InvalidValue("the text", "is not what is said in the recording", "write what was spoken, word by word")


def _decoder(beams: dict[str, float]) -> Any:
    pocketsphinx = require("pocketsphinx", needed_for="timing words by a recording", extra="speech")
    # The best path through a lattice moves words' borders; the first pass, as it is, is nearer to the truth.
    return pocketsphinx.Decoder(lm=None, loglevel="FATAL", samprate=RATE_HZ, bestpath=False, **beams)


def _parts(decoder: Any, words: Sequence[str]) -> list[_Part]:
    """What to listen for, all of it in the decoder's dictionary."""
    parts: list[_Part] = []
    for i, word in enumerate(words):
        for said in spoken_parts(word):
            phones = decoder.lookup_word(said)
            if phones is None:
                phones = sounds(said)
                decoder.add_word(said, phones, update=False)
            parts.append(_Part(said, i, len(phones.split())))
    if not parts:
        raise InvalidValue("the text", "has no word that can be said in English")
    return parts


def _check_length(parts: Sequence[_Part], n_words: int, n_frames: int) -> None:
    needed = _FRAMES_A_PHONE * sum(part.phones for part in parts)
    if n_frames < needed:
        raise InvalidValue(
            "the recording",
            f"holds {n_frames / FRAMES_PER_S:.1f} s of speech, too little for {n_words} words",
            f"they take at least {needed / FRAMES_PER_S:.1f} s",
        )


def _segments(decoder: Any, parts: Sequence[_Part], speech: NDArray[np.int16]) -> list[Any] | None:
    """What was heard of the parts, in their order, or None if the decoder did not get through to the end."""
    end = (_MOST_SKIPPED + 1) * len(parts) + _MOST_SKIPPED
    decoder.add_fsg("text", decoder.create_fsg("text", 0, end, _steps(parts)))
    decoder.activate_search("text")
    decoder.start_utt()
    decoder.process_raw(speech.tobytes(), full_utt=True)
    decoder.end_utt()
    if decoder.hyp() is None:
        return None
    # Silence, noise and skips are segments, too.
    return [segment for segment in decoder.seg() if not segment.word.startswith(("<", "[", "("))]


def _steps(parts: Sequence[_Part]) -> list[tuple[int, int, float] | tuple[int, int, float, str]]:
    """Steps from state to state: heard, or skipped. There is a state for each number of parts skipped just before.

    If any number could be skipped in a row, the decoder would make a step for every two parts of the text.
    """
    steps: list[tuple[int, int, float] | tuple[int, int, float, str]] = []
    width = _MOST_SKIPPED + 1
    for i, part in enumerate(parts):
        for skipped in range(width):
            steps.append((width * i + skipped, width * (i + 1), 1 - _SKIP, part.spelling))
            if skipped < _MOST_SKIPPED:
                steps.append((width * i + skipped, width * (i + 1) + skipped + 1, _SKIP))
    end = width * len(parts)
    return steps + [(end + skipped, end + _MOST_SKIPPED, 1.0) for skipped in range(_MOST_SKIPPED)]


def _recognised(parts: Sequence[_Part], segments: Sequence[Any]) -> list[tuple[_Part, Any]]:
    """The parts that were heard, each with its segment. InvalidValue if they are too few or fit badly."""
    heard: list[tuple[_Part, Any]] = []
    waiting = iter(parts)
    for segment in segments:
        said = segment.word.partition("(")[0]  # "with(2)" is another way to say "with".
        heard.append((next(part for part in waiting if part.spelling == said), segment))
    # One that was not heard is never too many, unless it is all.
    if len(heard) < max(1, min(_LEAST_HEARD * len(parts), len(parts) - 1)):
        raise _unfit()
    score = sum(math.log(max(segment.ascore, _SMALLEST_SCORE)) for segment in segments)
    n_frames = sum(segment.end_frame - segment.start_frame + 1 for segment in segments)
    if score < _WORST_FIT * n_frames:
        raise _unfit()
    return heard


def _words(words: Sequence[str], heard: Sequence[tuple[_Part, Any]], frames: NDArray[np.int64]) -> tuple[Word, ...]:
    """Windows out of segments. frames: where in the recording each frame of the speech was."""
    windows: dict[int, tuple[float, float]] = {}
    for part, segment in heard:
        start_s, end_s = _window(frames[segment.start_frame : segment.end_frame + 1])
        windows[part.word] = windows.get(part.word, (start_s, end_s))[0], end_s
    return split_words(between_neighbours(words, windows))


def _window(frames: NDArray[np.int64]) -> tuple[float, float]:
    """Seconds. Nobody pauses inside a word: of one that lies across a pause, the longer side counts."""
    sides = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
    side = max(sides, key=len)
    return float(side[0]) / FRAMES_PER_S, float(side[-1] + 1) / FRAMES_PER_S


def between_neighbours(words: Sequence[str], windows: dict[int, tuple[float, float]]) -> list[Utterance]:
    """All words: those without a window (by index) share the pause before the next that has one, if there is any."""
    utterances: list[Utterance] = []
    first, last = min(windows), max(windows)
    i = 0
    while i < len(words):
        if i in windows:
            utterances.append(Utterance(words[i], *windows[i]))
            i += 1
            continue
        stop = next((j for j in range(i, len(words)) if j in windows), len(words))
        start_s = windows[last][1] if i > last else windows[first][0] if i < first else utterances[-1].end_s
        free_s = max(0.0, windows[stop][0] - start_s) if stop < len(words) else 0.0
        end_s = start_s + min(free_s, _UNHEARD_S * (stop - i))
        utterances.append(Utterance(" ".join(words[i:stop]), start_s, end_s))
        i = stop
    return utterances
