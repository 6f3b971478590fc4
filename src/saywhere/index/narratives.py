"""What people said about photos, in pieces that can be found: a few words, where the pointer was, and a vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from saywhere.core import InvalidFile, Narrative
from saywhere.core.types import Floats
from saywhere.formats import InvalidRecord, detect
from saywhere.formats import read as read_file
from saywhere.index.seen import image_id_of

_FEWEST, _MOST = 3, 14
"""Words of a piece: it ends at a mark after the fewest, and before there are too many."""
_MARKS = (".", ",", ";", ":", "!", "?")
_LEAST_SIDE = 0.04
"""Of a box, in fractions of the photo: a pointer may stand still."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words that one person said in one go. number: of the narrative in its file. box_xyxy: where the pointer was
    meanwhile, None if it was nowhere."""

    number: int
    image_id: str
    who: str
    text: str
    start_s: float
    end_s: float
    box_xyxy: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class SomeNarratives:
    """Some records of a file. records: how many, with `bad` ones."""

    pieces: list[Piece]
    records: int
    bad: int


def read_parts(path: Path, done: int, size: int = 256) -> Iterator[SomeNarratives]:
    """The pieces of a file of narratives, some records at a time. done: records at its beginning to pass over."""
    found = detect(path)
    if found.holds != "narratives":
        raise InvalidFile(path, f"holds {found.holds} ({found.title}), and narratives are needed here")
    records = enumerate(read_file(path, found.name))
    rest = islice(records, done, None)
    while some := list(islice(rest, size)):
        good = [(number, one) for number, one in some if not isinstance(one, InvalidRecord)]
        cut = [piece for number, one in good for piece in pieces(one, number)]
        yield SomeNarratives(cut, len(some), len(some) - len(good))


def pieces(narrative: Narrative, number: int = 0) -> list[Piece]:
    """A narrative cut at its marks; without timed words, its caption in one piece.

    >>> from saywhere.core import Trace, Utterance
    >>> said = (Utterance("a red cup on a table.", 0, 2), Utterance("and a spoon", 2, 3))
    >>> [piece.text for piece in pieces(Narrative("139", "", said, Trace([(0.1, 0.2, 0.0), (0.3, 0.4, 3.0)])))]
    ['a red cup on a table.', 'and a spoon']
    """
    image_id, who = image_id_of(narrative.image_id), narrative.annotator_id
    words = narrative.words
    if not words:
        text = narrative.caption.strip()
        return [Piece(number, image_id, who, text, 0.0, 0.0, None)] if text else []
    boxes = narrative.word_boxes()
    return [
        Piece(
            number,
            image_id,
            who,
            " ".join(word.text for word in words[first:stop]),
            words[first].start_s,
            words[stop - 1].end_s,
            _around(boxes.boxes_xyxy[first:stop]),
        )
        for first, stop in _spans([word.text for word in words])
    ]


def _spans(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    first = 0
    for place, word in enumerate(words):
        length = place + 1 - first
        if length >= _MOST or (length >= _FEWEST and word.endswith(_MARKS)) or place + 1 == len(words):
            yield first, place + 1
            first = place + 1


def _around(boxes_xyxy: Floats) -> tuple[float, float, float, float] | None:
    """The box around those of some words, as large as can be seen; without words that are nowhere."""
    own = boxes_xyxy[~np.isnan(boxes_xyxy[:, 0])]
    if not len(own):
        return None
    middle = (own[:, :2].min(axis=0) + own[:, 2:].max(axis=0)) / 2
    reach = np.maximum(own[:, 2:].max(axis=0) - own[:, :2].min(axis=0), _LEAST_SIDE) / 2
    left, top, right, bottom = np.concatenate([middle - reach, middle + reach]).clip(0, 1).tolist()
    return (left, top, right, bottom)
