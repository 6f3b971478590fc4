"""Oscar, a captioner with object tags as anchors, and captions above objects (HL-scenes).

config    what shape it has               batch      images and captions as it reads them
network   the single stream               words      what its ids mean: our vocabulary, or a BERT's pieces
mask      who sees whom                   prepared   folders that training reads
objective hiding words, and the loss      pretrained folders with weights; bert: from any BERT checkpoint
decode    captions, step by step          task       how the trainer trains it
"""

from saywhere.models.attended import Attended, TokenKind
from saywhere.models.oscar.batch import Context, Reader, TaggedCaptionBatch
from saywhere.models.oscar.config import OscarConfig
from saywhere.models.oscar.network import Oscar
from saywhere.models.oscar.objective import MaskedObjective
from saywhere.models.oscar.prepared import LevelCaption, LevelCaptions, LevelItem, LevelItems, save_level_captions
from saywhere.models.oscar.pretrained import with_levels
from saywhere.models.oscar.words import MARKERS, OwnWords, WordPieces, Words
from saywhere.models.tagged_regions import TaggedRegions

__all__ = [
    "MARKERS",
    "Attended",
    "Context",
    "LevelCaption",
    "LevelCaptions",
    "LevelItem",
    "LevelItems",
    "MaskedObjective",
    "Oscar",
    "OscarConfig",
    "OwnWords",
    "Reader",
    "TaggedCaptionBatch",
    "TaggedRegions",
    "TokenKind",
    "WordPieces",
    "Words",
    "save_level_captions",
    "with_levels",
]
