"""A narrative as text for people who do not see the photo: a long description with places."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saywhere.core.description import SENTENCE_END
from saywhere.core.narrative import Narrative
from saywhere.core.places import place_of
from saywhere.core.words import Word

_CLAUSE_END = re.compile(r"[.,;:!?][\"')\]]*$")


def long_description(narrative: Narrative) -> str:
    """All that was said, in the order in which it was pointed at: a paragraph for each stretch about one place.

    A stretch is one or more clauses. Where it is comes from the trace during its words: "On the left: a chair,".
    Without words in time or without a trace, it is the caption, a sentence a line.
    """
    clauses = _clauses(narrative.words)
    if not clauses or not len(narrative.trace):
        return "\n".join(SENTENCE_END.split(" ".join(narrative.caption.split())))
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
