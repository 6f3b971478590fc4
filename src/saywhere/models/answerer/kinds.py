"""What a question asks for, by its words: the kinds by which it is decided what can be answered at all."""

from __future__ import annotations

import re
from typing import Final

from saywhere.language.coco_aliases import classes_named

YES_NO, NUMBER, OTHER = "yes/no", "number", "other"
"""Groups of questions by the answers that people give."""

_RULES: Final = (
    ("why", r"^why\b|\bwhat (is|was) the (reason|purpose)\b|\bhow come\b|^for what\b|\bwhat for$"),
    ("time of day", r"\btime of (the )?(day|year)\b|\bwhat season\b|\bwhat meal\b"),
    ("time", r"\bwhat time\b|\bwhat (hour|year|month|date|day|century)\b|^when\b|\btell time\b"),
    ("how old or long", r"\bhow (old|long|tall|far|fast|deep|high|heavy|wide|much|hot|cold|often|late|big|large)\b"),
    (
        "reading",
        r"\b(say|says|said|read|reads|written|writing|spell|spelled|printed|word|words|letter|letters|license|numbers?"
        r" (is|are|on)|what number|phone number|initials|text|slogan|title)\b",
    ),
    ("brand", r"\b(brand|company|manufacturer|make of|logo|airline|sponsor|sponsors|advertised|model of|store)\b"),
    ("who", r"^who\b|\bwhose\b|\bname of\b|\bnamed\b|\bfamous\b|\bnationality\b|\bcalled\b|\bteam\b"),
    (
        "which town",
        r"\bwhat (city|country|state|street|town|continent|park|airport|nation|language)\b|\bwhich country\b",
    ),
    ("colour", r"\bcolou?rs?\b"),
    ("number", r"^how many\b|\bhow many\b|\bnumber of\b"),
    ("side", r"\b(left|right)\b|\bwhich (side|direction|way)\b|\bfacing\b|\bwhat direction\b"),
    ("presence", r"^(is|are) there\b|^(do|can) you see\b"),
    ("naming", r"^(is|are) (this|that|it|these) (an?|the)\b|^what (is|are) (this|that|these)$"),
    ("yes or no", r"^(is|are|was|were|does|do|did|has|have|had|can|could|will|would|should|may|might|isn't|aren't)\b"),
    ("where", r"^where\b"),
    ("how", r"^how\b"),
    ("which", r"^which\b"),
    ("doing", r"\bdoing\b|\bwhat (sport|game|activity)\b|\bplaying\b"),
    ("sort", r"\bwhat (kind|type|sort|style|breed|shape|pattern|material)\b|\bmade of\b|\bmade out of\b"),
    ("what", r"^what\b"),
)
_COMPILED: Final = tuple((name, re.compile(rule)) for name, rule in _RULES)
REST: Final = "another"
PRESENCE: Final = "presence"
NAMING: Final = "naming"
KNOWN: Final = "presence of a known kind"
KINDS: Final = (*(name for name, _ in _RULES), KNOWN, REST)
"""All kinds, the first that fits first."""


def question_kind(text: str) -> str:
    """One of KINDS.

    >>> question_kind("Why is the man smiling?"), question_kind("What color is the cup?")
    ('why', 'colour')
    >>> question_kind("Is there a dog?"), question_kind("Is there a shadow?")
    ('presence of a known kind', 'presence')
    """
    words = " ".join(re.findall(r"[a-z0-9']+", text.lower()))
    kind = next((name for name, rule in _COMPILED if rule.search(words)), REST)
    return KNOWN if kind == PRESENCE and classes_named(text) else kind


def answer_group(text: str) -> str:
    """What kind of answer a question wants: yes/no, number or other."""
    kind = question_kind(text)
    if kind == "number":
        return NUMBER
    words = re.findall(r"[a-z0-9']+", text.lower())
    return YES_NO if words and _IS.match(words[0]) and " or " not in text.lower() else OTHER


_IS: Final = re.compile(next(rule for name, rule in _RULES if name == "yes or no"))
