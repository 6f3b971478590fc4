"""What shape a MITR has: everything that its weights fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from saywhere.core.errors import InvalidValue, UnknownName


@dataclass(frozen=True, slots=True)
class MitrConfig:
    """The shape of the network. The defaults are the paper's.

    words: V, how many words can be read and said, the unknown word among them. The markers for padding, begin and end
        are not words; see `saywhere.language.vocabulary`.
    region_size: numbers in the feature of one region or patch.
    width, heads, feed_forward, layers: d, attention heads, hidden size of the feed-forward networks, N.
    dropout: inside the transformer. attention_dropout: on the shares of attention; 0 makes training on a CPU a quarter
        faster. input_dropout: on embedded regions, boxes and traces.
    photo_px: side of the square photos its own eye looks at; 0 if regions come from outside.
    """

    words: int
    region_size: int = 2048
    width: int = 512
    heads: int = 8
    feed_forward: int = 2048
    layers: int = 1
    dropout: float = 0.1
    attention_dropout: float = 0.1
    input_dropout: float = 0.5
    photo_px: int = 0

    def __post_init__(self) -> None:
        for name in ("words", "region_size", "width", "heads", "feed_forward", "layers"):
            if getattr(self, name) < 1:
                raise InvalidValue(f"MITR config {name}", f"is {getattr(self, name)}, not a positive number")
        for name in ("dropout", "attention_dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidValue(f"MITR config {name}", f"is {getattr(self, name)}, not in [0, 1)")
        if self.width % self.heads:
            raise InvalidValue("MITR config width", f"{self.width} does not divide into {self.heads} heads")
        if self.width % 2:
            raise InvalidValue("MITR config width", f"{self.width} is odd", "positions need pairs of sine and cosine")
        if self.photo_px < 0 or self.photo_px % 16:
            raise InvalidValue("MITR config photo_px", f"is {self.photo_px}, not a multiple of 16")

    def to_dict(self) -> dict[str, int | float]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> MitrConfig:
        """The config that `to_dict` wrote; unknown names, missing ones and wrong types are refused."""
        known = {field.name: field for field in fields(cls)}
        for name in values:
            if name not in known:
                raise UnknownName("MITR config key", name, known)
        if "words" not in values:
            raise InvalidValue("MITR config", "does not say how many words there are", "key 'words'")
        return cls(**{name: _number(name, value, real="dropout" in name) for name, value in values.items()})  # type: ignore[arg-type]  # `_number` gives each field its own type


def _number(name: str, value: object, *, real: bool) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float if real else int):
        raise InvalidValue(f"MITR config {name}", f"is {value!r}, not {'a number' if real else 'a whole number'}")
    return float(value) if real else int(value)
