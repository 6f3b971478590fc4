"""Values that everything speaks: traces, words, narratives, regions, frames, attention. numpy only."""

from saywhere.core.alignment import WordBoxes, trace_through, word_boxes
from saywhere.core.attention import AttentionMap
from saywhere.core.caption import Caption, Nearest
from saywhere.core.errors import InvalidFile, InvalidValue, MissingDependency, SaywhereError, UnknownName
from saywhere.core.frame import Frame
from saywhere.core.grounded import Grounded
from saywhere.core.narrative import Narrative
from saywhere.core.regions import Box, BoxSet, Mask, Patch, Point, Polygon, Region, WholeImage
from saywhere.core.simplify import simplify_many
from saywhere.core.trace import Trace
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
