"""Forced alignment: when each word of a known English text is said in a recording, and how sure that is.

pocketsphinx listens twice, with pauses cut close and wide; `trust` decides word by word whom to believe, and how much.
Words that were not heard, or cannot be said in English (other scripts, signs), get time between their neighbours. One
strange word never costs the others their times. A text of which too little is heard is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.words import Utterance, Word, split_words
from saywhere.language.opinion import Opinion
from saywhere.language.pronunciation import spoken_parts
from saywhere.language.sound import Sound
from saywhere.language.sphinx import RATE_HZ, Cut, Sphinx
from saywhere.language.trust import Judged, Trust, judge, learnt

MOST_WORDS = 2_000
CUTS = {"close": Cut(0.25, 0.1), "wide": Cut(0.15, 0.3)}
"""How pocketsphinx listens: the first finds borders best, the second hears quiet speech."""
DOUBTFUL = 0.7
"""Words of which we are less sure than this should be looked at."""

# A word that was not heard gets this much of a pause between its neighbours at most.
_UNHEARD_S = 0.5


@dataclass(frozen=True, slots=True)
class HeardWord(Word):
    """A word and how likely its start is within a quarter of a second of the true one.

    >>> HeardWord("cup", 1.0, 1.25, 0.9).confidence
    0.9
    """

    confidence: float


def align_words(sound: Sound, words: Sequence[str]) -> tuple[HeardWord, ...]:
    """One window for every word, in their order; windows never overlap. Times are seconds of the recording.

    words: as written, none with white space inside; punctuation is passed over.
    InvalidValue if there is no speech in the recording, too little of it, or other speech than this.
    """
    if not words or len(words) > MOST_WORDS:
        raise InvalidValue("the text", f"has {len(words)} words; 1 to {MOST_WORDS:,} can be aligned")
    # Signs and other scripts are no evidence against their neighbours.
    places = [i for i, word in enumerate(words) if spoken_parts(word)]
    spoken = [words[i] for i in places]
    judged = judge(spoken, listened(sound, spoken), learnt())
    check_fit(judged, learnt())
    return heard_words(words, judged.among(len(words), places, learnt().unheard), sound.duration_s)


def listened(sound: Sound, words: Sequence[str]) -> dict[str, Opinion]:
    """What was heard with each cut."""
    clear = sound.resampled(RATE_HZ)
    clear.speech_frames()  # What is silent is told before anything is loaded.
    sphinx = Sphinx(words)
    return {name: sphinx.hear(clear, cut) for name, cut in CUTS.items()}


def check_fit(judged: Judged, trust: Trust) -> None:
    """InvalidValue if the words are too unsure, all in all, to be what is said."""
    if np.isnan(judged.starts_s).all() or judged.confidence.mean() < trust.least:
        raise InvalidValue("the text", "is not what is said in the recording", "write what was spoken, word by word")


def heard_words(words: Sequence[str], judged: Judged, duration_s: float) -> tuple[HeardWord, ...]:
    """All words with their times; those that nobody heard lie between their neighbours."""
    (known,) = np.nonzero(~np.isnan(judged.starts_s))
    starts_s = judged.starts_s[known].clip(0.0, duration_s)
    # Listeners do not agree on where a word ends and the next begins: it is where the next begins.
    ends_s = np.minimum(judged.ends_s[known].clip(0.0, duration_s), np.append(starts_s[1:], duration_s))
    spans = zip(known.tolist(), starts_s.tolist(), np.maximum(starts_s, ends_s).tolist(), strict=True)
    windows = {word: (start_s, end_s) for word, start_s, end_s in spans}
    timed = split_words(between_neighbours(words, windows))
    return tuple(
        HeardWord(word.text, word.start_s, word.end_s, float(sure))
        for word, sure in zip(timed, judged.confidence, strict=True)
    )


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
