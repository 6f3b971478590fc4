"""The things a sentence names, and the short phrases that it is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from saywhere.core.types import Progress
from saywhere.language.phrases import english

# Nouns that name an amount of the things that follow them, and nouns that name the photo or a place in it.
_AMOUNTS = frozenset(
    ("group", "couple", "bunch", "pair", "lot", "number", "piece", "kind", "type", "variety", "set", "row", "part")
)
_PHOTO = frozenset(("image", "picture", "photo", "photograph", "photography", "shot", "view", "scene", "close-up"))
_PLACES = frozenset(
    ("front", "back", "side", "top", "bottom", "middle", "center", "centre", "left", "right", "corner", "edge")
)
_VAGUE = frozenset(
    ("background", "foreground", "distance", "end", "way", "something", "someone", "thing", "one", "other")
)
NO_THINGS = _AMOUNTS | _PHOTO | _PLACES | _VAGUE
"""Lemmas of nouns that name nothing one could point at."""
_FIRST_WORD = re.compile(r"(?:an?|the|some|this|that|these|those|its|his|her|their|our|my|your)\s+", re.IGNORECASE)
_LONGEST_PHRASE = 8
_AT_ONCE = 256


def region_phrases(sentences: Sequence[str], progress: Progress | None = None) -> Counter[str]:
    """The short phrases in the sentences that a region of a photo could be called by, and how often each is there.

    Noun phrases ("a brown dog"), and those with what is said of them ("a brown dog lying on a couch") of up to eight
    words. Lower case. Phrases that differ in their first article or pronoun only count as one, the most frequent form.
    """
    forms: dict[str, Counter[str]] = {}
    for done, doc in enumerate(english().pipe(_lowered(sentences), batch_size=_AT_ONCE), 1):
        for phrase in _phrases(doc):
            forms.setdefault(_FIRST_WORD.sub("", phrase, count=1), Counter())[phrase] += 1
        if progress is not None and (done % _AT_ONCE == 0 or done == len(sentences)):
            progress("finding phrases", done, len(sentences))
    return Counter({seen.most_common(1)[0][0]: seen.total() for seen in forms.values()})


def phrases_in(texts: Sequence[str]) -> list[list[str]]:
    """For each text the phrases that `region_phrases` would count, each once, in their order."""
    return [_phrases(doc) for doc in english().pipe(_lowered(texts), batch_size=_AT_ONCE)]


def _phrases(doc: Any) -> list[str]:
    """Each phrase of a parsed sentence once."""
    found = []
    for chunk in doc.noun_chunks:
        lemma = chunk.root.lemma_
        if chunk.root.pos_ not in ("NOUN", "PROPN") or lemma in NO_THINGS - _AMOUNTS:
            continue
        if lemma not in _AMOUNTS:
            found.append(chunk.text)
        with_more = doc[chunk.start : chunk.root.right_edge.i + 1]
        if len(chunk) < len(with_more) <= _LONGEST_PHRASE:
            found.append(with_more.text.rstrip(" .,;:!?"))
    return list(dict.fromkeys(found))


def _lowered(sentences: Iterable[str]) -> list[str]:
    return [" ".join(sentence.lower().split()) for sentence in sentences]
