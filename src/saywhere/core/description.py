"""A photo described for people who do not see it: what is there, in the order in which people look, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from saywhere.core.places import BoxXyxy

ALT_CHARACTERS = 125
"""Screen readers read an alt text in one go; this is what guides agree on as its length."""
NOTHING_SURE = "There is nothing in this photo that the model is sure of."

SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+")


@dataclass(frozen=True, slots=True)
class DescribedThing:
    """One thing that a model is sure of. name: "a dog". box_xyxy: fractions of the photo.

    about: what more there is to say, one sentence after another. neighbours: the number of the thing to its "left" and
    "right", "above" and "below" it, where there is one.
    """

    name: str
    box_xyxy: BoxXyxy
    about: tuple[str, ...] = ()
    neighbours: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DescribedSentence:
    """A sentence, and the numbers of the things that it tells of; none for one about the whole photo."""

    text: str
    things: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """All that a model is sure of in a photo. sentences: that tell it. things: in the order in which people look at
    them. origin: the model.

    >>> Description((DescribedSentence("A dog on a bench."), DescribedSentence("There is a cup.", (0,)))).text
    'A dog on a bench. There is a cup.'
    """

    sentences: tuple[DescribedSentence, ...] = ()
    things: tuple[DescribedThing, ...] = ()
    origin: str = ""

    @property
    def text(self) -> str:
        """The long description."""
        return " ".join(one.text for one in self.sentences) or NOTHING_SURE

    @property
    def alt_text(self) -> str:
        """The first sentence, cut at a word if it is long."""
        return alt_text(self.text)


def alt_text(text: str) -> str:
    """The first sentence, cut at a word if it is long.

    >>> alt_text("A dog on a bench. There is a cup.")
    'A dog on a bench.'
    """
    sentence = SENTENCE_END.split(" ".join(text.split()), maxsplit=1)[0]
    if len(sentence) <= ALT_CHARACTERS:
        return sentence
    kept = sentence[:ALT_CHARACTERS]
    # The character at the limit is not part of the alt text: room for the dots.
    kept = kept.rpartition(" ")[0] or kept[:-1]
    return kept.rstrip(" ,;:") + "…"


def labelled(photo: str, by: str, alt: str, long: str) -> str:
    """Both texts of a photo as one text file. by: who wrote them.

    >>> print(labelled("dog.jpg", "machine-written", "A dog.", "A dog. It sits."), end="")
    Photo: dog.jpg
    <BLANKLINE>
    Alt text (machine-written):
    A dog.
    <BLANKLINE>
    Long description (machine-written):
    A dog. It sits.
    """
    parts = (f"Photo: {' '.join(photo.split())}", f"Alt text ({by}):\n{alt}", f"Long description ({by}):\n{long}")
    return "\n\n".join(parts) + "\n"


def varied(choices: Sequence[Sequence[str]], rng: np.random.Generator, before: str = "") -> list[str]:
    """One of each of some choices of a sentence, so that they begin alike as seldom as can be: never like the sentence
    before if there is another way, and else with the word that fewest begin with. before: what was said already.

    >>> varied([["at the top there is a cat", "we can see a cat"]] * 2, np.random.default_rng(0))
    ['at the top there is a cat', 'we can see a cat']
    """
    last = _beginning(before)
    begun = Counter([last])
    chosen: list[str] = []
    for ways in choices:
        order = rng.permutation(len(ways)).tolist()
        best = min(order, key=lambda way: (_beginning(ways[way]) == last, begun[_beginning(ways[way])]))
        chosen.append(ways[best])
        last = _beginning(ways[best])
        begun[last] += 1
    return chosen


def _beginning(text: str) -> str:
    return text.lower().split(maxsplit=1)[0] if text.strip() else ""
