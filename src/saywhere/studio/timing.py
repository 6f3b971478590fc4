"""When each word of a narrative was said or typed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from saywhere.core.errors import InvalidValue
from saywhere.core.words import Utterance, Word, split_words

_WORD = re.compile(r"\S+")
# Keys that come in one sample (a paste, a swipe) are spread over the time before it, this much for each at most.
_SLOWEST_KEY_S = 0.3
# A word lasts until the key after it is pressed, but nobody means a word while thinking about the next. The last word
# lasts a moment, too.
_LONGEST_REST_S, _LAST_REST_S = 0.5, 0.2
# Up to so many characters taken away and typed anew, once the text was whole, are a correction.
_LONGEST_CORRECTION = 20
# So many of a text's words must have been typed for the keys to be its own, as many as must be heard of a recording.
_LEAST_TYPED = 0.75


def align(record: Mapping[str, Any], audio: Path | None) -> dict[str, Any]:
    """The record with a window for every word of its text, and `timed_by`: "audio" or "keys". Words that were heard
    have a `confidence`.

    The voice is heard where there is a recording, if that is in a language whose words can be found in it, or nobody
    noted in which. Where the voice does not tell, because of its language or because it says something else, and the
    text was typed meanwhile, the keys do; those of another text never do. InvalidValue, with the reason, where there is
    neither. Boxes of other words are dropped.
    """
    texts = _WORD.findall(record["text"])
    if not texts:
        raise InvalidValue("the text", "is empty", "type what was said, then align")
    if audio is None and not record["keys"]:
        raise InvalidValue("the narrative", "has neither a recording nor times of keys, so its words have no times")
    said, timed_by = _timed(record, texts, audio)
    kept = dict(record)
    if [word["text"] for word in record["words"]] != texts:
        kept.pop("boxes", None)
    return kept | {"words": said, "timed_by": timed_by}


def _timed(record: Mapping[str, Any], texts: Sequence[str], audio: Path | None) -> tuple[list[dict[str, Any]], str]:
    """Words as records have them, and where their times come from."""
    if audio is None:
        return _said(_typed_words(record, texts)), "keys"
    from saywhere.language.sound import read_wav
    from saywhere.language.speech import align_words

    try:
        _check_aligned(record.get("language"))
        heard = align_words(read_wav(audio), texts)
        sure = [round(word.confidence, 3) for word in heard]
        return [word | {"confidence": one} for word, one in zip(_said(heard), sure, strict=True)], "audio"
    except InvalidValue as unheard:
        try:
            return _said(_typed_words(record, texts)), "keys"
        except InvalidValue:
            raise unheard from None  # Why the voice does not tell is what helps.


def _check_aligned(language: str | None) -> None:
    """InvalidValue if words of this language cannot be found in a recording. Unknown ones are tried."""
    from saywhere.language.transcript import ALIGNED_LANGUAGES, is_aligned

    if language and not is_aligned(language):
        known = ", ".join(ALIGNED_LANGUAGES)
        hint = "spread the words in the editor and drag them, or type along while you record"
        raise InvalidValue("the language", f"is {language}, and only words in {known} are found in a recording", hint)


def _said(words: Sequence[Word]) -> list[dict[str, Any]]:
    return [{"text": word.text, "start_s": word.start_s, "end_s": word.end_s} for word in words]


def _typed_words(record: Mapping[str, Any], texts: Sequence[str]) -> tuple[Word, ...]:
    """Times of words by the keys. What was corrected since lies between its neighbours; of another text, none are told.

    A client that does not say what was typed is believed if that was as long as the text.
    """
    from saywhere.language.speech import between_neighbours

    text, keys = record["text"], record["keys"]
    typed = record.get("typed")
    if typed is None:
        typed = text if keys and keys[-1]["text_length"] == len(text) else ""
    before = _WORD.findall(typed)
    blocks = SequenceMatcher(None, [_plain(w) for w in before], [_plain(w) for w in texts], False).get_matching_blocks()
    same = {block.b + i: block.a + i for block in blocks for i in range(block.size)}
    if len(same) < _LEAST_TYPED * len(texts):
        raise InvalidValue("the keys", "tell nothing: another text was typed", "record it once more")
    times = words_from_keys(typed, keys)
    return split_words(between_neighbours(texts, {at: (times[i].start_s, times[i].end_s) for at, i in same.items()}))


def _plain(word: str) -> str:
    """A word without punctuation and capitals, which are corrected most."""
    return re.sub(r"\W", "", word).casefold() or word


def words_from_keys(text: str, keys: Sequence[Mapping[str, Any]]) -> tuple[Word, ...]:
    """A window for every word of the text, from the first of its characters to the one after it; none overlap.

    keys: {"t", "text_length"}, how many characters the text had at t seconds, in the order of time. Only lengths are
    known, so where a change was made must be guessed: see `character_times_s`. Words beyond the last known character
    share the end of what was typed.
    """
    times_s = character_times_s(keys)
    if not times_s:
        raise InvalidValue("the keys", "never typed anything")
    last = len(times_s) - 1
    utterances: list[Utterance] = []
    for match in _WORD.finditer(text):
        start_s, end_s = (times_s[min(i, last)] for i in (match.start(), match.end() - 1))
        after_s = times_s[match.end()] if match.end() <= last else end_s + _LAST_REST_S
        end_s = min(after_s, end_s + _LONGEST_REST_S)
        utterances.append(Utterance(match.group(), start_s, end_s))
    return split_words(utterances)


def character_times_s(keys: Sequence[Mapping[str, Any]]) -> list[float]:
    """When each character of the typed text appeared, in seconds; never decreasing.

    Deleting takes from the end, and what is typed then is new: its own time counts. Except for corrections: once the
    text has had its final length, a few characters taken away and put back may be anywhere in it, and all the others
    keep the times they had.
    """
    times_s: list[float] = []
    removed_s: list[float] = []
    whole = False
    before_s = keys[0]["t"] if keys else 0.0
    for key in keys:
        now_s, length = key["t"], key["text_length"]
        if now_s < before_s:
            raise InvalidValue("the keys", f"go back in time from {before_s:g} s to {now_s:g} s")
        if length < len(times_s):
            removed_s = times_s[length:] + removed_s
            del times_s[length:]
        elif length > len(times_s):
            if not whole or len(removed_s) > _LONGEST_CORRECTION:
                removed_s = []
            grown = length - len(times_s)
            times_s += removed_s[:grown]
            removed_s = removed_s[grown:]
            times_s += _spread(before_s, now_s, length - len(times_s))
        whole = whole or length >= keys[-1]["text_length"]
        before_s = now_s
    return times_s


def _spread(before_s: float, now_s: float, count: int) -> list[float]:
    """Times of `count` characters that were first seen at now_s; the last of them appeared then."""
    if not count:
        return []
    step_s = min(_SLOWEST_KEY_S, (now_s - before_s) / count)
    return [max(before_s, now_s - step_s * later) for later in range(count - 1, 0, -1)] + [now_s]
