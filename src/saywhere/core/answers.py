"""Answers that people gave: their official normalisation, and how right each is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from saywhere.core.errors import InvalidValue

_ARTICLES = {"a", "an", "the"}
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {"none": "0"} | {word: str(number) for number, word in enumerate(_NUMBER_WORDS)}
_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'  # ':', "'" and '.' are not in it
_DIGIT_COMMA_DIGIT = re.compile(r"\d,\d")
_STOP = re.compile(r"\.(?!\d)")

# The contractions the official evaluation restores when one of their apostrophes is missing.
_CONTRACTIONS = """
ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've he's
how'd how'll how's isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've needn't not've o'clock
oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's someone'd
someone'd've someone'll someone's something'd something'd've something'll that's there'd there'd've there're there's
they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're what's what've when's
where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't would've wouldn't wouldn't've
y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""


def _without_each_apostrophe(word: str) -> Iterable[str]:
    return (word[:i] + word[i + 1 :] for i, letter in enumerate(word) if letter == "'")


_RESTORED = {short: word for word in _CONTRACTIONS.split() for short in _without_each_apostrophe(word)}
_RESTORED["somebody'd"] = "somebodyd"  # the official table has this one the wrong way round


def normalise_answer(answer: str) -> str:
    """The answer as the official VQA evaluation compares it.

    Punctuation goes (to a space when it stood between letters, to nothing next to a space or when the answer holds a
    number such as 1,000), then a period not followed by a digit; the rest is lower-cased, number words up to ten become
    digits ("none" is 0), articles are dropped and lost apostrophes put back.
    """
    text = trimmed(answer)
    squeeze = _DIGIT_COMMA_DIGIT.search(text) is not None
    kept = text
    for mark in _PUNCTUATION:
        near_space = f"{mark} " in text or f" {mark}" in text
        kept = kept.replace(mark, "" if squeeze or near_space else " ")
    words = (_NUMBERS.get(word, word) for word in _STOP.sub("", kept).lower().split())
    return " ".join(_RESTORED.get(word, word) for word in words if word not in _ARTICLES)


def soft_scores(answers: Sequence[str]) -> dict[str, float]:
    """Training targets of one question: normalised answer → 0.3, 0.6, 0.9 or 1 when 1, 2, 3 or more people gave it.

    With ten people this is the accuracy that answer would get; every other answer has 0.
    """
    check_answers(answers)
    counts = Counter(normalise_answer(answer) for answer in answers)
    return {answer: min(10, 3 * count) / 10 for answer, count in counts.items()}


def trimmed(answer: str) -> str:
    """Without white space at its ends, and with only blanks inside."""
    return answer.replace("\n", " ").replace("\t", " ").strip()


def check_answers(answers: Sequence[str]) -> None:
    """Refuse what is not the answers of two people or more."""
    if isinstance(answers, str) or not all(isinstance(answer, str) for answer in answers):
        raise InvalidValue("human answers", f"{answers!r} is not a list of strings", "give one answer a person")
    if len(answers) < 2:
        raise InvalidValue("human answers", f"{len(answers)} of them", "leaving one person out needs at least two")
