"""What a question and its answer say of a photo, as a sentence: COCO-QA's questions were made out of captions.

They are not always good English; a text encoder reads them all the same, beside the captions of other photos.
"""

from __future__ import annotations

import re

_COLOUR = re.compile(r"what (?:is|are) the colou?r of (?:the |a |an )?(?P<thing>.+)")
_COUNT = re.compile(r"\bhow many\b")
_PLACE = re.compile(r"^where (?:do|does|did|is|are|was|were) (?P<rest>.+)")
_THING = re.compile(r"\b(?:what|who)\b")


def statement(question: str, answer: str) -> str:
    """One sentence, in small letters.

    >>> statement("what is sitting in the nook on the mouse", "kitten")
    'a kitten is sitting in the nook on the mouse'
    >>> statement("what is the color of the pastry", "brown")
    'a brown pastry'
    >>> statement("how many people are standing on skis in the snow", "three")
    'three people are standing on skis in the snow'
    >>> statement("where does the cat sleep", "sink")
    'the cat sleep in a sink'
    """
    asked, thing = question.strip().rstrip("?").lower(), answer.strip().lower()
    if colour := _COLOUR.fullmatch(asked):
        return f"a {thing} {colour['thing']}"
    if _COUNT.search(asked):
        return _COUNT.sub(thing, asked, count=1)
    if place := _PLACE.fullmatch(asked):
        return f"{place['rest']} in a {thing}"
    named = thing if thing.endswith("s") else f"a {thing}"
    return _THING.sub(named, asked, count=1) if _THING.search(asked) else f"{asked} {named}"
