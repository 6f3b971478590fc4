"""What pocketsphinx hears of a known English text, with the model that its wheel carries.

* Pauses are cut out before and put back after. People who point while they speak are silent for most of the time, and
  an aligner that hears ten seconds of room noise likes to find a short word in it.
* Words that the dictionary does not have get a rough pronunciation. Every word may be skipped, at a price.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saywhere.core.errors import InvalidValue, require
from saywhere.core.types import Ints
from saywhere.language.opinion import Opinion
from saywhere.language.pronunciation import sounds, spoken_parts
from saywhere.language.sound import FRAMES_PER_S, Sound

RATE_HZ = 16_000
"""What the acoustic model was trained on."""

# A phone has three states of at least one frame each.
_FRAMES_A_PHONE = 3
# Narrow beams lose the right path in noise and on voices unlike the model's, and then the words after it, too.
_BEAMS = {"beam": 1e-120, "wbeam": 1e-80, "pbeam": 1e-120}
_SKIP = 1e-5
_MOST_SKIPPED = 2
_SMALLEST_SCORE = 1e-300
# Scores are kept in steps of 2**10 of a log-probability, which the package does not undo.
_SCORE_STEP = 2**10


@dataclass(frozen=True, slots=True)
class Cut:
    """How pauses are cut: what is louder than `share` of the way from quiet to loud is speech, with a margin around."""

    share: float
    margin_s: float


@dataclass(frozen=True, slots=True)
class _Part:
    """Something to listen for: a word of the dictionary, and which of the text's words it belongs to."""

    spelling: str
    word: int
    phones: int


class Sphinx:
    """One text to listen for. InvalidValue if none of its words can be said in English."""

    def __init__(self, words: Sequence[str]) -> None:
        pocketsphinx = require("pocketsphinx", needed_for="timing words by a recording", extra="speech")
        # The best path through a lattice moves words' borders; the first pass, as it is, is nearer to the truth.
        self._decoder = pocketsphinx.Decoder(lm=None, loglevel="FATAL", samprate=RATE_HZ, bestpath=False, **_BEAMS)
        self._n_words = len(words)
        self._parts = list(self._listed(words))
        if not self._parts:
            raise InvalidValue("the text", "has no word that can be said in English")
        end = (_MOST_SKIPPED + 1) * len(self._parts) + _MOST_SKIPPED
        self._decoder.add_fsg("text", self._decoder.create_fsg("text", 0, end, _steps(self._parts)))
        self._decoder.activate_search("text")

    def hear(self, sound: Sound, cut: Cut) -> Opinion:
        """When each word was said, as far as it was heard. sound: at 16 kHz.

        InvalidValue if there is no speech in the recording, or too little of it.
        """
        (frames,) = np.nonzero(sound.speech_frames(cut.share, cut.margin_s))
        self._check_length(len(frames))
        step = RATE_HZ // FRAMES_PER_S
        speech = sound.samples[: len(sound.samples) // step * step].reshape(-1, step)[frames]
        opinion = Opinion.of_nothing(self._n_words)
        waiting = iter(self._parts)
        for segment in self._segments(speech.tobytes()):
            said = segment.word.partition("(")[0]  # "with(2)" is another way to say "with".
            part = next(part for part in waiting if part.spelling == said)
            start_s, end_s = _window(frames[segment.start_frame : segment.end_frame + 1])
            length = segment.end_frame - segment.start_frame + 1
            score = _SCORE_STEP * math.log(max(segment.ascore, _SMALLEST_SCORE)) / length
            opinion.add(part.word, start_s, end_s, score, length / (_FRAMES_A_PHONE * part.phones))
        return opinion

    def _listed(self, words: Sequence[str]) -> Iterator[_Part]:
        """What to listen for, all of it in the decoder's dictionary."""
        for i, word in enumerate(words):
            for said in spoken_parts(word):
                phones = self._decoder.lookup_word(said)
                if phones is None:
                    phones = sounds(said)
                    self._decoder.add_word(said, phones, update=False)
                yield _Part(said, i, len(phones.split()))

    def _check_length(self, n_frames: int) -> None:
        needed = _FRAMES_A_PHONE * sum(part.phones for part in self._parts)
        if n_frames < needed:
            raise InvalidValue(
                "the recording",
                f"holds {n_frames / FRAMES_PER_S:.1f} s of speech, too little for {self._n_words} words",
                f"they take at least {needed / FRAMES_PER_S:.1f} s",
            )

    def _segments(self, speech: bytes) -> list[Any]:
        """What was heard of the parts, in their order; nothing if the decoder did not get through to the end."""
        self._decoder.start_utt()
        self._decoder.process_raw(speech, full_utt=True)
        self._decoder.end_utt()
        if self._decoder.hyp() is None:
            return []
        # Silence, noise and skips are segments, too.
        return [segment for segment in self._decoder.seg() if not segment.word.startswith(("<", "[", "("))]


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


def _window(frames: Ints) -> tuple[float, float]:
    """Seconds. Nobody pauses inside a word: of one that lies across a pause, the longer side counts."""
    sides = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
    side = max(sides, key=len)
    return float(side[0]) / FRAMES_PER_S, float(side[-1] + 1) / FRAMES_PER_S
