"""Which narratives may be learnt from: training splits alone, no image that is kept out, words with times, a trace."""

from __future__ import annotations

import re
from dataclasses import dataclass

from saywhere.build.photo_boxes import photo_name
from saywhere.core.narrative import Narrative
from saywhere.formats.record import InvalidRecord

TRAINING, UNNAMED, EVALUATION = "training", "not named", "evaluation"
OTHER_SPLIT = "not of a training split"
KEPT_OUT = "its image is kept for evaluation"
NO_TIMES = "its words have no times"
NO_TRACE = "nobody pointed while it was said"
UNREADABLE = "it cannot be read"

_EVALUATES = re.compile(
    r"(?:^|[^a-z])(?:val|valid|validation|test|dev|eval|evaluation|minival)(?![a-z])", re.IGNORECASE
)
_TRAINS = re.compile(r"(?:^|[^a-z])train(?:ing)?(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Selection:
    """any_split: take evaluation splits, too. keep_out: names of images that stay out, COCO's in twelve digits."""

    any_split: bool = False
    keep_out: frozenset[str] = frozenset()

    def fault(self, record: Narrative | InvalidRecord) -> str:
        """Why a record is not used, or nothing."""
        if isinstance(record, InvalidRecord):
            return UNREADABLE
        if not self.any_split and split_named(record.dataset_id) == EVALUATION:
            return OTHER_SPLIT
        if photo_name(record.image_id) in self.keep_out:
            return KEPT_OUT
        words = record.words
        if not words or words[-1].end_s <= words[0].start_s:
            return NO_TIMES
        return "" if len(record.trace.between(words[0].start_s, words[-1].end_s)) else NO_TRACE

    def split_of(self, narrative: Narrative) -> str:
        return split_named(narrative.dataset_id)


def split_named(dataset_id: str) -> str:
    """Which split a data set's name tells of; one that names both counts as evaluation.

    >>> split_named("mscoco_train2017"), split_named("mscoco_val2017"), split_named("my photos")
    ('training', 'evaluation', 'not named')
    """
    if _EVALUATES.search(dataset_id):
        return EVALUATION
    return TRAINING if _TRAINS.search(dataset_id) else UNNAMED
