"""From what people say to what captions say: "In this image I can see a dog." becomes "A dog".

Spoken descriptions open with the photo ("in this picture we can see"), hedge ("it might be") and say where on the photo
something is, which the trace tells already. These rules take that away, put the thing before its place ("On the table
there is a cup" → "A cup on the table"), and refuse sentences about the photo itself. They know English as narrators
speak it and nothing else; what they cannot put right they refuse, with a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ABOUT_THE_PHOTO = "about the photo itself"
SAYS_NOTHING = "names nothing"
REFERS_BACK = "means something said before"
NOT_A_CAPTION = "no rule makes it a caption"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A sentence that makes no caption, and why: one of a few fixed phrases, so that they can be counted."""

    reason: str


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PHOTO = r"(?:images?|pictures?|photos?|photographs?|photo graphs?|pics?|snapshots?|screenshots?)"
_THE_PHOTO = rf"(?:(?:the|this|that|given|above|present)\s+)*{_PHOTO}"
_BE = r"(?:is|are|was|were)"
_SOMEHOW = r"(?:(?:also|even|clearly|only|just|still|again|mainly|basically|actually|here)\s+)*"
_SEE = r"(?:see|observe|notice|find|spot|view|watch|identify)"
# What presents a thing: "we can also see that", "there might be", "we have".
_PRESENTS = (
    rf"(?:{_SOMEHOW}(?:i|we|you|one)\s+{_SOMEHOW}(?:(?:can|could)\s+)?(?:(?:am\s+|are\s+|be\s+)?able\s+to\s+)?"
    rf"{_SOMEHOW}{_SEE}(?:\s+that)?"
    rf"|{_SOMEHOW}we\s+{_SOMEHOW}have"
    rf"|{_SOMEHOW}there\s+{_SOMEHOW}(?:{_BE}|(?:seems?|appears?|looks?)\s+to\s+be|(?:might|may|could|must|can)\s+be)"
    r"|there['’]s)"
)
_DETERMINER = (
    r"(?:an?|the|some|few|several|many|two|three|four|five|six|seven|eight|nine|ten|\d+|different|group|another|"
    r"lots?|plenty|multiple|various|one|other|couple|pair)"
)
# "This is roof" points too, but "this is black in color" tells of something named before.
_POINTS_AT = (
    rf"(?:(?:it|this|that)(?:['’]s|\s+{_BE})|(?:these|those|they)\s+{_BE})\s+(?=(?:{_DETERMINER})\b)"
    rf"|(?:this|these|those)\s+{_BE}\s+(?!\w+(?:ing|ed)\b)(?!.*\bcolou?r)"
)
_GUESSES = r"(?:it|this|that|which|they|these)\s+(?:looks?|seems?|appears?)\s+(?:like|to\s+be)\s+"
_SIDE = (
    r"(?:(?:extreme|far|very|top|bottom|upper|lower|left|right)\s+)*"
    r"(?:left|right|top|bottom|middle|center|centre|front|back|foreground|corner|side)"
    r"(?:[\s-]+(?:hand|most|side|sides|corner|corners|part|area|portion|end))*"
)
# (?>…) never gives back what it took: of "on the left side of the road" it must not take "on the left".
_ON_SIDE = (
    rf"(?>(?:in|on|at|to|towards?|from)\s+(?:the\s+|both\s+(?:the\s+)?|either\s+)?{_SIDE}"
    rf"(?:\s+(?:and|or)\s+(?:the\s+)?{_SIDE})*(?:\s+(?:of|in|on)\s+{_THE_PHOTO})?)(?!\s+of\b)(?!\w)"
)
_IN_BACKGROUND = (
    rf"(?>(?:in|on|at|to)\s+(?:the\s+)?back\s?(?:ground|drop|side)(?:\s+(?:of|in)\s+{_THE_PHOTO})?)(?!\s+of\b)"
)
_PREPOSITION = (
    r"(?:in\s+front\s+of|on\s+top\s+of|next\s+to|beside(?:s)?(?:\s+to)?|back\s+of|on|in|at|behind|near(?:\s+to)?|under|"
    r"above|below|beneath|inside|around|between|over|against|along|through|across|among|with|to|from)"
)

_DISCOURSE = [
    _rule(pattern)
    for pattern in (
        r"(?:and|so|then|also|here|now|well|okay|ok|oh|hi|hello|like|um+|uh+|but|where|that|even|additionally|moreover)\b",
        r"(?:i\s+think|i\s+guess|i\s+believe|maybe|perhaps|probably|possibly|of\s+course)\b",
        r"as\s+(?:i|we|you)\s+can\s+see\b",
    )
]
_OPENINGS = _DISCOURSE + [
    _rule(pattern)
    for pattern in (
        r"(?:coming|moving)\s+to\s+(?:the\s+)?[\w\s]{1,30}?(?=,|\s+(?:there|we|i)\b)",
        rf"(?:in|on|at|from)\s+{_THE_PHOTO}(?=\W|$)",
        rf"{_THE_PHOTO}\s+(?:is\s+)?(?:shows?|contains?|consists?(?:\s+of)?|depicts?|has|have|includes?|displays?|is\s+of)"
        r"(?:\s+that)?\b",
        rf"{_THE_PHOTO}(?=\s+(?:i|we|there)\b)",
        rf"(?:this|it|that)(?:['’]s|\s+{_BE})\s+(?:an?|the)\s+(?:[\w-]+\s+){{0,4}}?{_PHOTO}\s+"
        r"(?:of|showing|where|with|which\s+(?:shows|contains)|in\s+which)\b",
        _ON_SIDE,
        r"(?:behind|beside|beneath|above|below|around|inside|outside|in\s+front|in\s+between)(?=\s+(?:there|we|i)\b)",
        _PRESENTS + r"\b",
        _POINTS_AT,
        _GUESSES,
    )
]
_CLOSINGS = [
    _rule(pattern)
    for pattern in (
        rf"{_BE}\s+(?:also\s+)?(?:there|present|visible|seen|shown|displayed|here)$",
        r"(?:can|could|may)\s+(?:also\s+)?be\s+(?:seen|observed|noticed|found)$",
        r"(?:also|here|as\s+well|too|over\s+here|over\s+there|and|or|with|of|which|the|an?)$",
        rf"(?:in|on|of)\s+{_THE_PHOTO}$",
        rf"{_ON_SIDE}$",
    )
]
_INSIDE = [
    (_rule(pattern), by)
    for pattern, by in (
        (r"\b(?:who|which|that)\s+(?:is|are|was|were)\s+(?=\w+(?:ing|ed)\b)", ""),
        (r"\b(?:i\s+think|i\s+guess|i\s+believe|i\s+feel|maybe|perhaps|probably|possibly|i\s+can\s+say)\b", ""),
        (r"\b(?:might|may|could|must)\s+be\b|\b(?:seems?|appears?|looks?)\s+to\s+be\b", "is"),
        (rf"\b(?:and|,)\s+{_PRESENTS}\s+(?:that\s+)?", "and "),
        (rf"\b(?:where|that|which)\s+{_PRESENTS}\s+", "with "),
        (rf"\b{_ON_SIDE}\s+(?:of|in|on)\s+{_THE_PHOTO}", ""),
        (rf"\s+(?:in|of|on)\s+{_THE_PHOTO}\b", ""),
    )
]
_PHOTO_IS = _rule(
    rf"(?:in\s+)?(?:{_THE_PHOTO}|(?:the\s+)?(?:back|fore)ground(?:\s+of\s+{_THE_PHOTO})?(?:\s+it)?)\s+"
    rf"(?:{_BE}|looks?|seems?|appears?|was)\b(?!\s+(?:showing|of)\b)"
)
_IS_PHOTO = _rule(
    rf"(?:this|it|that|these|those)(?:['’]s|\s+(?:{_BE}|looks?\s+like|seems?\s+to\s+be|appears?\s+to\s+be))\s+"
    rf"(?:an?|the|some)?\s*(?:[\w-]+\s+){{0,5}}?(?:{_PHOTO}|collage|photoshoot|animation)\s*(?P<rest>.*)"
)
_OPENS_THING = _rule(r"(?:of|showing|where|with|in\s+which|which\s+(?:shows|contains)|that\s+shows)\b")
_NEXT_PRESENTED = _rule(rf"\b{_PRESENTS}(?=\s|$)")
_MARK = _rule(r"\bwater\s?marks?\b")
_CLAUSE = _rule(rf"(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?=(?:{_PREPOSITION}\s+(?:[\w'’-]+\s+){{1,7}}?)?{_PRESENTS}\s)")
_PLACE_COMMA = _rule(
    rf"(?:^|(?<=, )|(?<=and ))({_PREPOSITION}\s+(?:[\w'’-]+\s+){{0,8}}?[\w'’-]+)\s*,\s*(?={_PRESENTS}\s)"
)
_PLACE_FIRST = _rule(
    rf"(?P<place>{_PREPOSITION}\s+(?:[\w'’-]+\s+){{0,8}}?[\w'’-]+?)\s*,?\s*{_PRESENTS}\s+(?P<thing>.+)"
)
_BACKGROUND_FIRST = _rule(rf"{_IN_BACKGROUND}\s*,?\s*(?:{_PRESENTS}\s+)?(?P<thing>.+)")
_VAGUE_PLACE = _rule(rf"(?:{_PREPOSITION}|back|front|of|\s)+(?:the\s+)?(?:that|this|it|them|him|her|these|those|one)?")
_HAS_PLACE = _rule(rf"\band\b.*\b{_PREPOSITION}\s")
_SOMEBODY = {"he": "a man", "she": "a woman"}
_SUBJECT = _rule(r"(?P<who>he|she)(?:['’]s)?\s+(?:(?:is|was)\s+(?=\w+ing\b))?(?P<rest>.+)")
_BACKWARD = _rule(
    r"(?:it|they|them|this|these|those|that|its|their|his|her|him|which|who|both\s+of\s+them)\b(?!\s+\w+s?\s+of)"
)
_FIRST_PERSON = _rule(r"\b(?:i|we|me|my|us|our|you|your)\b")
_EMPTY = """a an the some few many several other different of and or in on at to with there here is are was were be it
    this that these those they he she him her them things thing something objects object items item etc also which who
    background foreground"""
_EMPTY_WORDS = frozenset(_EMPTY.split())
_LONGEST_WORDS = 100


def rewrite_by_rule(sentence: str) -> str | Dropped:
    """The caption in one sentence of a narrative, without a full stop; or why there is none."""
    text = " ".join(sentence.split()).strip(" .!?;,:\"'")
    if len(text.split()) > _LONGEST_WORDS:
        return Dropped(NOT_A_CAPTION)
    if _MARK.search(text):
        return Dropped(ABOUT_THE_PHOTO)
    if _about_photo(text):
        tail = _NEXT_PRESENTED.search(text)
        if tail is None:
            return Dropped(ABOUT_THE_PHOTO)
        text = text[tail.start() :]
    clauses = _CLAUSE.split(_PLACE_COMMA.sub(r"\1 ", text))
    parts = [part for part in map(_clause, clauses) if part]
    caption = _joined(parts)
    return _judged(caption)


def _about_photo(text: str) -> bool:
    text = _stripped(text, _DISCOURSE)
    if _PHOTO_IS.match(text):
        return True
    named = _IS_PHOTO.match(text)
    return named is not None and not _OPENS_THING.match(named["rest"])


def _stripped(text: str, openings: list[re.Pattern[str]]) -> str:
    """The text without any of these at its front, in any order."""
    while True:
        for opening in openings:
            found = opening.match(text)
            if found and found.end():
                text = text[found.end() :].lstrip(" ,.:;")
                break
        else:
            return text


def _clause(text: str) -> str:
    text = text.strip(" ,")
    while True:
        before = text
        text = _stripped(text, _OPENINGS)
        background = _BACKGROUND_FIRST.match(text)
        if background:
            inner = _clause(background["thing"])
            return f"{inner} in the background" if inner and "background" not in inner else inner
        placed = _PLACE_FIRST.match(text)
        if placed:
            return _placed(_clause(placed["thing"]), placed["place"])
        for pattern, by in _INSIDE:
            text = pattern.sub(by, text)
        text = _closed(" ".join(text.split()))
        if text == before:
            return text


def _placed(thing: str, place: str) -> str:
    if not thing or _VAGUE_PLACE.fullmatch(place):
        return thing
    place = place[0].lower() + place[1:]
    # After a thing that has a place of its own, this one would seem to be that of the last thing only.
    return f"{place}, {thing}" if _HAS_PLACE.search(thing) else f"{thing} {place}"


def _closed(text: str) -> str:
    for closing in _CLOSINGS:
        found = closing.search(text)
        if found and (found.start() == 0 or text[found.start() - 1] == " "):
            text = text[: found.start()].rstrip(" ,")
    return text


def _joined(parts: list[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def _judged(caption: str) -> str | Dropped:
    somebody = _SUBJECT.fullmatch(caption)
    if somebody:
        caption = f"{_SOMEBODY[somebody['who'].lower()]} {somebody['rest']}"
    words = re.findall(r"[\w'’-]+", caption.lower())
    if not set(words) - _EMPTY_WORDS:
        return Dropped(SAYS_NOTHING)
    if _BACKWARD.match(caption):
        return Dropped(REFERS_BACK)
    if _FIRST_PERSON.search(caption) or _NEXT_PRESENTED.search(caption):
        return Dropped(NOT_A_CAPTION)
    return caption[0].upper() + caption[1:]
