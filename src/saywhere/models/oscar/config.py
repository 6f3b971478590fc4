"""What shape an Oscar has: everything that its weights fix, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from saywhere.core.errors import InvalidValue, UnknownName

OBJECT = "object"
"""The level of captions that name what is there."""

_REALS = ("dropout", "attention_dropout", "norm_epsilon")


@dataclass(frozen=True, slots=True)
class OscarConfig:
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

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "levels":
                _check_number(field.name, getattr(self, field.name))
        object.__setattr__(self, "levels", checked_levels(self.levels))
        if self.width % self.heads:
            raise InvalidValue("Oscar config width", f"{self.width} does not divide into {self.heads} heads")
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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"levels": list(self.levels)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> OscarConfig:
        """The config that `to_dict` wrote; unknown names, missing ones and wrong types are refused."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise UnknownName("Oscar config key", name, known)
        missing = [name for name in known if name not in values]
        if missing:
            raise InvalidValue("Oscar config", f"does not say {', '.join(missing)}")
        return cls(**values)


def checked_levels(levels: Sequence[str]) -> tuple[str, ...]:
    """At least one name, each once."""
    if isinstance(levels, str) or not levels or not all(isinstance(level, str) and level for level in levels):
        raise InvalidValue("caption levels", f"are {levels!r}, not names")
    if len(set(levels)) != len(levels):
        raise InvalidValue("caption levels", f"{', '.join(levels)}: one comes twice")
    return tuple(levels)


def _check_number(name: str, value: object) -> None:
    real = name in _REALS
    if isinstance(value, bool) or not isinstance(value, int | float if real else int):
        raise InvalidValue(f"Oscar config {name}", f"is {value!r}, not {'a number' if real else 'a whole number'}")
    if real and not 0 <= value < 1:
        raise InvalidValue(f"Oscar config {name}", f"is {value}, not in [0, 1)")
    if not real and value < 1:
        raise InvalidValue(f"Oscar config {name}", f"is {value}, not a positive number")
