"""What shape the two UpDn networks have: everything that their weights fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from saywhere.core.errors import InvalidValue, UnknownName

Value = int | float | bool | str
ACTIVATIONS = ("gated tanh", "gelu")


@dataclass(frozen=True, slots=True)
class _Config:
    """What both networks' shapes share: plain numbers, checked, written and read by name."""

    words: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "activation":
                if value not in ACTIVATIONS:
                    raise UnknownName("UpDn activation", str(value), ACTIVATIONS)
                continue
            real, flag = "dropout" in field.name, field.name == "use_boxes"
            kind: Any = bool if flag else (int | float) if real else int
            if not isinstance(value, kind) or (isinstance(value, bool) and not flag):
                sort = "true or false" if flag else "a number" if real else "a whole number"
                raise InvalidValue(f"UpDn config {field.name}", f"is {value!r}, not {sort}")
            if real and not 0 <= value < 1:
                raise InvalidValue(f"UpDn config {field.name}", f"is {value}, not in [0, 1)")
            if not real and not flag and value < 1:
                raise InvalidValue(f"UpDn config {field.name}", f"is {value}, not a positive number")

    def to_dict(self) -> dict[str, Value]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config that `to_dict` wrote; unknown names, missing ones and wrong types are refused."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise UnknownName("UpDn config key", name, known)
        missing = [name for name in known if name not in values]
        if missing:
            raise InvalidValue("UpDn config", f"does not say {', '.join(missing)}")
        return cls(**values)


@dataclass(frozen=True, slots=True)
class UpDnConfig(_Config):
    """The shape of the network that answers questions. The defaults are those of the released UpDn.

    words: V, how many words can be read, the unknown word among them; see `saywhere.language.vocabulary`.
    answers: how many answers can be given.
    region_size: numbers in the feature of one region or patch.
    embedding: of a word. width: of the GRU and of every layer after it.
    max_words: words of a question that are read; the rest is cut off.
    dropout: on the product that attends. answer_dropout: before the answers.
    use_boxes: whether x1, y1, x2, y2 and area follow each region's feature.
    activation: "gated tanh", as Teney et al. have it, or "gelu"; see `layers`.
    """

    answers: int
    region_size: int = 2048
    embedding: int = 300
    width: int = 1024
    max_words: int = 14
    dropout: float = 0.2
    answer_dropout: float = 0.5
    use_boxes: bool = False
    activation: str = "gated tanh"


@dataclass(frozen=True, slots=True)
class UpDnCaptionConfig(_Config):
    """The shape of the captioner. The defaults are the paper's.

    words, region_size, use_boxes: as for `UpDnConfig`. embedding: of a word. width: of both LSTMs.
    attention: of the layer that compares regions with the attention LSTM's state. max_words: of a caption.
    dropout: before the words.
    """

    region_size: int = 2048
    embedding: int = 1000
    width: int = 1000
    attention: int = 512
    max_words: int = 20
    dropout: float = 0.5
    use_boxes: bool = False
