"""How English words are said, for those that no dictionary has: rough rules from letters to sounds (ARPABET).

The rules need not be right, only near: an aligner that is told roughly what to listen for finds where it is.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST_LETTERS = 40

_VOWELS = "aeiouy"
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SIGNS = {"&": "and", "+": "plus", "%": "percent", "@": "at", "=": "equals"}

# Longer spellings first; what is looked up is what stands at this place of the word.
_SPELLINGS = {
    "tion": "SH AH N", "sion": "ZH AH N", "ough": "AO", "augh": "AO", "eigh": "EY", "igh": "AY", "tch": "CH",
    "sch": "S K", "dge": "JH", "ch": "CH", "sh": "SH", "th": "TH", "ph": "F", "wh": "W", "ck": "K", "ng": "NG",
    "qu": "K W", "gh": "G", "ee": "IY", "ea": "IY", "oo": "UW", "ou": "AW", "ow": "OW", "ai": "EY", "ay": "EY",
    "oa": "OW", "oi": "OY", "oy": "OY", "au": "AO", "aw": "AO", "ew": "UW", "ei": "IY", "ie": "IY", "ue": "UW",
    "ar": "AA R", "er": "ER", "ir": "ER", "ur": "ER", "or": "AO R", "x": "K S", "c": "K", "a": "AE", "e": "EH",
    "i": "IH", "o": "AA", "u": "AH", "j": "JH", "q": "K", "y": "IY", "h": "HH", "b": "B", "d": "D", "f": "F",
    "g": "G", "k": "K", "l": "L", "m": "M", "n": "N", "p": "P", "r": "R", "s": "S", "t": "T", "v": "V", "w": "W",
    "z": "Z",
}  # fmt: skip
_LONG_VOWELS = {"a": "EY", "e": "IY", "i": "AY", "o": "OW", "u": "UW", "y": "AY"}
_LETTER_NAMES = {
    "a": "EY", "b": "B IY", "c": "S IY", "d": "D IY", "e": "IY", "f": "EH F", "g": "JH IY", "h": "EY CH", "i": "AY",
    "j": "JH EY", "k": "K EY", "l": "EH L", "m": "EH M", "n": "EH N", "o": "OW", "p": "P IY", "q": "K Y UW",
    "r": "AA R", "s": "EH S", "t": "T IY", "u": "Y UW", "v": "V IY", "w": "D AH B AH L Y UW", "x": "EH K S",
    "y": "W AY", "z": "Z IY",
}  # fmt: skip


def spoken_parts(word: str) -> list[str]:
    """What is said for a written word: parts of a … z and apostrophes inside. Empty if it cannot be said in English.

    Accents are dropped, parts joined by a hyphen are said one after the other, numbers are said in words.
    """
    plain = unicodedata.normalize("NFKD", word.replace("’", "'")).casefold()
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    parts: list[str] = []
    for piece in re.findall(r"[a-z]+(?:'[a-z]+)*|[0-9]+|[&+%@=]", plain):
        if piece[0].isdigit():
            parts += _number(piece)
        else:
            parts.append(_SIGNS.get(piece, piece))
    return parts if all(len(part) <= LONGEST_LETTERS for part in parts) else []


def _number(digits: str) -> list[str]:
    if len(digits) > LONGEST_LETTERS:
        return []
    if len(digits) > 2 or digits[0] == "0":
        return [_DIGITS[int(digit)] for digit in digits]
    number = int(digits)
    if number < 10:
        return [_DIGITS[number]]
    if number < 20:
        return [_TEENS[number - 10]]
    return [_TENS[number // 10]] + ([_DIGITS[number % 10]] if number % 10 else [])


def sounds(part: str) -> str:
    """Phones of one of `spoken_parts`, parted by spaces. One without a vowel is spelled out, as in "dvd"."""
    letters = part.replace("'", "")
    if not any(vowel in letters for vowel in _VOWELS):
        return " ".join(_LETTER_NAMES[letter] for letter in letters)
    phones: list[str] = []
    at = 0
    while at < len(letters):
        spelling, phone = _at(letters, at)
        if not phones or phones[-1] != phone:  # Letters that are doubled are said once.
            phones += phone.split()
        at += len(spelling)
    return " ".join(phones)


def _at(letters: str, at: int) -> tuple[str, str]:
    """The spelling at this place and its sound, which may be none: the e in "made"."""
    letter, rest = letters[at], letters[at + 1 :]
    if letter == "e" and not rest and at > 1 and any(vowel in letters[:at] for vowel in _VOWELS):
        return letter, ""
    if letter == "y" and at == 0:
        return letter, "Y"
    if letter in _LONG_VOWELS and re.fullmatch(f"[^{_VOWELS}wx]e", rest):
        return letter, _LONG_VOWELS[letter]
    if letter == "c" and rest[:1] in ("e", "i", "y"):
        return letter, "S"
    if letter == "k" and rest[:1] == "n" and at == 0:
        return letter, ""
    for length in (4, 3, 2, 1):
        spelling = letters[at : at + length]
        if len(spelling) == length and spelling in _SPELLINGS:
            return spelling, _SPELLINGS[spelling]
    return letter, ""
