"""A narrative as text for people who do not see the photo: a short alt text, and a long description with places."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saywhere.core.narrative import Narrative
from saywhere.core.types import Floats
from saywhere.core.words import Word

ALT_CHARACTERS = 125
"""Screen readers read an alt text in one go; this is what guides agree on as its length."""

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_CLAUSE_END = re.compile(r"[.,;:!?][\"')\]]*$")
# A clause whose pointing spans this much of the photo in both directions is about all of it.
_EVERYWHERE = 0.7
_ROWS = ("top", "", "bottom")
_COLUMNS = ("left", "", "right")


def alt_text(text: str) -> str:
    """The first sentence, cut at a word if it is long."""
    sentence = _SENTENCE_END.split(" ".join(text.split()), maxsplit=1)[0]
    if len(sentence) <= ALT_CHARACTERS:
        return sentence
    kept = sentence[:ALT_CHARACTERS]
    # The character at the limit is not part of the alt text: room for the dots.
    kept = kept.rpartition(" ")[0] or kept[:-1]
    return kept.rstrip(" ,;:") + "…"


def long_description(narrative: Narrative) -> str:
    """All that was said, in the order in which it was pointed at: a paragraph for each stretch about one place.

    A stretch is one or more clauses. Where it is comes from the trace during its words: "On the left: a chair,".
    Without words in time or without a trace, it is the caption, a sentence a line.
    """
    clauses = _clauses(narrative.words)
    if not clauses or not len(narrative.trace):
        return "\n".join(_SENTENCE_END.split(" ".join(narrative.caption.split())))
    lines: list[str] = []
    here = ""
    for clause in clauses:
        said = " ".join(word.text for word in clause)
        place = _place(narrative, clause)
        if lines and place in (here, ""):
            lines[-1] += " " + said
        else:
            lines.append(f"{place[0].upper()}{place[1:]}: {said}" if place else said)
        here = place or here
    return "\n".join(lines)


def _clauses(words: Sequence[Word]) -> list[list[Word]]:
    clauses: list[list[Word]] = [[]]
    for word in words:
        clauses[-1].append(word)
        if _CLAUSE_END.search(word.text):
            clauses.append([])
    return [clause for clause in clauses if clause]


def _place(narrative: Narrative, words: Sequence[Word]) -> str:
    """Where the pointer was meanwhile; empty if it was nowhere."""
    trace = narrative.trace.between(words[0].start_s, words[-1].end_s)
    return place_of(trace.xy) if len(trace) else ""


def place_of(xy: Floats) -> str:
    """(n, 2) positions in words: "on the left", "at the bottom right", "in the middle", "across the photo"."""
    width, height = xy.max(axis=0) - xy.min(axis=0)
    if width >= _EVERYWHERE and height >= _EVERYWHERE:
        return "across the photo"
    x, y = xy.mean(axis=0).clip(0, 1 - 1e-9).tolist()
    row, column = _ROWS[int(3 * y)], _COLUMNS[int(3 * x)]
    if row:
        return f"at the {row} {column}".strip()
    return f"on the {column}" if column else "in the middle"
