"""What people ask of a photo in a conversation, by the words they begin with."""

from __future__ import annotations

import re

_WHERE = re.compile(
    r"(?:where(?:'s| is| are)|find|show me|point (?:at|to|out)) (?P<what>[^?.!]*\w)[?.! ]*$", re.IGNORECASE
)
_WHOLE = re.compile(
    r"(?:describe|tell me about|what(?:'s| is| are| do you see| can you see|) (?:there )?(?:in|on)) "
    r"(?:the|this) (?:whole )?(?:photo|image|picture)\b|what do you see\b|what is (?:happening|going on)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:what|who)(?:'s| is| are) (?:this|that|it|these|those|they|here|there)[?.! ]*$", re.IGNORECASE)
_BACK = re.compile(r"\b(?:it|its|this|that|these|those|they|them|their|he|she|him|her|his|there|here)\b", re.IGNORECASE)

_THERE = re.compile(
    r"(?:is|are) there (?:any )?(?P<is>[^?.!]*?\w)|(?:do|can) you see (?:any )?(?P<seen>[^?.!]*?\w)", re.IGNORECASE
)
_SOMEWHERE = re.compile(r" (?:here|(?:in|on) (?:the|this) (?:photo|image|picture))$", re.IGNORECASE)


def thing_asked_after(text: str) -> str:
    """What somebody asks to be there or not; "" for any other question.

    >>> thing_asked_after("Is there a dog in the photo?"), thing_asked_after("Do you see any cups?")
    ('a dog', 'cups')
    >>> thing_asked_after("Is the dog asleep?")
    ''
    """
    found = _THERE.fullmatch(text.strip().rstrip("?.! "))
    return _SOMEWHERE.sub("", found["is"] or found["seen"]) if found else ""


def thing_looked_for(text: str) -> str:
    """What somebody asks to be shown; "" for any other question.

    >>> thing_looked_for("Where is the red cup?")
    'the red cup'
    >>> thing_looked_for("What is in the cup?")
    ''
    """
    found = _WHERE.match(text.strip())
    return found["what"] if found else ""


def is_about_the_whole(text: str) -> bool:
    """Whether somebody asks for the whole photo to be described.

    >>> is_about_the_whole("What is in the picture?"), is_about_the_whole("What is in the cup?")
    (True, False)
    """
    return _WHOLE.match(text.strip()) is not None


def asks_for_name(text: str) -> bool:
    """Whether somebody asks what the thing is that was pointed at.

    >>> asks_for_name("What is this?"), asks_for_name("What is this for?")
    (True, False)
    """
    return _NAME.match(text.strip()) is not None


def refers_back(text: str) -> bool:
    """Whether a question is about what was pointed at or spoken of before.

    >>> refers_back("What colour is it?"), refers_back("How many dogs are in the photo?")
    (True, False)
    """
    return _BACK.search(text) is not None
