"""Values that everything speaks: traces, words, narratives, regions, frames, attention. numpy only."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from saywhere.core.caption import Caption, Nearest
from saywhere.core.errors import InvalidFile, InvalidValue, MissingDependency, SaywhereError, UnknownName
from saywhere.core.frame import Frame
from saywhere.core.regions import Box, BoxSet, Mask, Patch, Point, Polygon, Region, WholeImage
from saywhere.core.trace import Trace

if TYPE_CHECKING:
    from saywhere.core.alignment import WordBoxes, trace_through, word_boxes
    from saywhere.core.attention import AttentionMap
    from saywhere.core.grounded import Grounded
    from saywhere.core.narrative import Narrative
    from saywhere.core.simplify import simplify_many
    from saywhere.core.trajectory import ParsedTrajectory, Phrase, simplify_phrases
    from saywhere.core.words import Utterance, Word, split_words

__all__ = [
    "AttentionMap",
    "Box",
    "BoxSet",
    "Caption",
    "Frame",
    "Grounded",
    "InvalidFile",
    "InvalidValue",
    "Mask",
    "MissingDependency",
    "Narrative",
    "Nearest",
    "ParsedTrajectory",
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
    "simplify_many",
    "simplify_phrases",
    "split_words",
    "trace_through",
    "word_boxes",
]

_LATER = {
    "alignment": ("WordBoxes", "trace_through", "word_boxes"),
    "attention": ("AttentionMap",),
    "grounded": ("Grounded",),
    "narrative": ("Narrative",),
    "simplify": ("simplify_many",),
    "trajectory": ("ParsedTrajectory", "Phrase", "simplify_phrases"),
    "words": ("Utterance", "Word", "split_words"),
}


def __getattr__(name: str) -> Any:
    # Imported when they are first asked for: who captions a region has no narrative.
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"saywhere.core.{module}"), name)
    raise AttributeError(f"module 'saywhere.core' has no attribute {name!r}")
