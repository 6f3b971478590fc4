"""What shape an Oscar has: everything that its weights fix, and how it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.models.common.config import ShapeConfig

OBJECT = "object"
"""The level of captions that name what is there."""


@dataclass(frozen=True, slots=True)
class OscarConfig(ShapeConfig):
    """The shape of the network. The defaults are those of BERT-base, as the paper has them.

    words: rows of the word table, the four markers among them: `len(vocabulary) + MARKERS`, or the checkpoint's.
    region_size: numbers in the feature of one region, without the 6 of its box.
    width, layers, heads, feed_forward: of the transformer.
    dropout: of embeddings and what layers add. attention_dropout: on the shares of attention; 0 makes training on a CPU
        much faster. norm_epsilon: of the layer norms.
    caption_slots: places of [CLS] caption [SEP]. text_slots: of all text; tags always start at `caption_slots`.
    most_regions: those beyond are left out. max_words: pieces written at most, the end among them.
    levels: what it can be asked for. With one level it is the paper's network; with more, a learnt vector of the level
        is added to the caption's places.
    norm_regions: whether what is made of a region is normalised, as in VinVL; Oscar's first checkpoints do not.
    """

    words: int
    region_size: int = 2048
    width: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    dropout: float = 0.1
    attention_dropout: float = 0.1
    norm_epsilon: float = 1e-12
    caption_slots: int = 40
    text_slots: int = 70
    most_regions: int = 50
    max_words: int = 20
    levels: tuple[str, ...] = (OBJECT,)
    norm_regions: bool = True
    family: ClassVar[str] = "Oscar"

    def __post_init__(self) -> None:
        ShapeConfig.__post_init__(self)
        object.__setattr__(self, "levels", checked_levels(self.levels))
        if not self.caption_slots < self.text_slots:
            raise InvalidValue("Oscar config text_slots", f"{self.text_slots} leave no place for tags' [SEP]")
        if not self.max_words < self.caption_slots:
            reason = f"{self.max_words} and [CLS] do not fit into {self.caption_slots} slots"
            raise InvalidValue("Oscar config max_words", reason)

    @property
    def tag_slots(self) -> int:
        """Places of tags and their [SEP]."""
        return self.text_slots - self.caption_slots

    def level_number(self, level: str | None) -> int:
        """Which of the levels this is; the first one if none is asked for."""
        if level is None:
            return 0
        if level not in self.levels:
            raise UnknownName("caption level", level, self.levels)
        return self.levels.index(level)


def checked_levels(levels: Sequence[str]) -> tuple[str, ...]:
    """At least one name, each once."""
    named = isinstance(levels, list | tuple) and all(isinstance(level, str) and level for level in levels)
    if not named or not levels:
        raise InvalidValue("caption levels", f"are {levels!r}, not names")
    if len(set(levels)) != len(levels):
        raise InvalidValue("caption levels", f"{', '.join(levels)}: one comes twice")
    return tuple(levels)
