"""What shape a decoder has: everything that its weights fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from saywhere.core.errors import InvalidValue, UnknownName

_COUNTS = ("words", "vector_size", "width", "layers", "heads", "feed_forward", "prefix", "max_words")


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The shape of a `PrefixDecoder`. Layers, heads and prefix are the paper's; the rest suits two cores.

    words: V, the pieces of its vocabulary. vector_size: d, numbers in the vector that is put into words.
    width, layers, heads, feed_forward: of the transformer. prefix: k, places that the vector becomes.
    max_words: pieces of the longest text. prompt_words: pieces of the longest prompt; 0 if it never learnt any.
    extra_size: numbers in a second vector (detector scores, say) that takes one more place; 0 if there is none.
    states_size: numbers in each hidden state of the photo that it attends to; 0 if it reads the vector alone.
    dropout: on embeddings and on what each layer adds.
    """

    words: int
    vector_size: int
    width: int = 256
    layers: int = 4
    heads: int = 4
    feed_forward: int = 1024
    prefix: int = 1
    max_words: int = 40
    prompt_words: int = 0
    extra_size: int = 0
    states_size: int = 0
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise InvalidValue(f"decoder config {name}", f"is {getattr(self, name)}, not a positive number")
        for name in ("prompt_words", "extra_size", "states_size"):
            if getattr(self, name) < 0:
                raise InvalidValue(f"decoder config {name}", f"is {getattr(self, name)}, which is negative")
        if not 0 <= self.dropout < 1:
            raise InvalidValue("decoder config dropout", f"is {self.dropout}, not in [0, 1)")
        if self.width % self.heads:
            raise InvalidValue("decoder config width", f"{self.width} does not divide into {self.heads} heads")

    @property
    def before_words(self) -> int:
        """Places that vectors take."""
        return self.prefix + (self.extra_size > 0)

    @property
    def places(self) -> int:
        """Places in all: vectors, prompt, the begin of the text, the text."""
        return self.before_words + self.prompt_words + 1 + self.max_words

    def to_dict(self) -> dict[str, int | float]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> DecoderConfig:
        """The config that `to_dict` wrote; unknown names, missing ones and wrong types are refused."""
        known = {field.name for field in fields(cls)}
        for name in values:
            if name not in known:
                raise UnknownName("decoder config key", name, known)
        missing = [name for name in ("words", "vector_size") if name not in values]
        if missing:
            raise InvalidValue("decoder config", f"does not say {' nor '.join(missing)}")
        return cls(**{name: _number(name, value) for name, value in values.items()})  # type: ignore[arg-type]  # `_number` gives each field its own type


def _number(name: str, value: object) -> int | float:
    real = name == "dropout"
    if isinstance(value, bool) or not isinstance(value, int | float if real else int):
        raise InvalidValue(f"decoder config {name}", f"is {value!r}, not {'a number' if real else 'a whole number'}")
    return float(value) if real else int(value)
