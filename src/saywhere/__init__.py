"""saywhere joins images, language and human attention: where people look or point, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saywhere.core import (
    AttentionMap,
    Box,
    BoxSet,
    Frame,
    InvalidFile,
    InvalidValue,
    Mask,
    MissingDependency,
    Narrative,
    Patch,
    Phrase,
    Point,
    Polygon,
    Region,
    SaywhereError,
    Trace,
    UnknownName,
    Utterance,
    WholeImage,
    Word,
    WordBoxes,
    simplify_many,
    simplify_phrases,
    split_words,
    trace_through,
    word_boxes,
)

if TYPE_CHECKING:
    from os import PathLike

    from saywhere.models.patchioner.seer import Seer

__version__ = "0.1.0"

__all__ = [
    "AttentionMap",
    "Box",
    "BoxSet",
    "Frame",
    "InvalidFile",
    "InvalidValue",
    "Mask",
    "MissingDependency",
    "Narrative",
    "Patch",
    "Phrase",
    "Point",
    "Polygon",
    "Region",
    "SaywhereError",
    "Trace",
    "UnknownName",
    "Utterance",
    "WholeImage",
    "Word",
    "WordBoxes",
    "load",
    "simplify_many",
    "simplify_phrases",
    "split_words",
    "trace_through",
    "word_boxes",
]


def load(name: str | PathLike[str] = "saywhere-base") -> Seer:
    """A model that looks at photos, by name, folder or hub id; see `saywhere.loading`. This is what imports torch.

    view = load().look("kitchen.jpg")        # heavy, once
    view.caption(Box(0.1, 0.2, 0.4, 0.6))    # cheap, often; view.captions([...]) is the primitive
    view.ground("a cup beside a spoon")      # a narrative: a place for every word, a trace through them
    view.narrate()                           # a narrative from the photo alone
    """
    from saywhere import loading

    return loading.load(name)
