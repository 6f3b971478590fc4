"""What shape a MITR has: everything that its weights fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from saywhere.core.errors import InvalidValue
from saywhere.models.common.config import ShapeConfig


@dataclass(frozen=True, slots=True)
class MitrConfig(ShapeConfig):
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

    family: ClassVar[str] = "MITR"
    may_be_zero: ClassVar[tuple[str, ...]] = ("photo_px",)

    def __post_init__(self) -> None:
        ShapeConfig.__post_init__(self)
        if self.width % 2:
            raise InvalidValue("MITR config width", f"{self.width} is odd", "positions need pairs of sine and cosine")
        if self.photo_px % 16:
            raise InvalidValue("MITR config photo_px", f"is {self.photo_px}, not a multiple of 16")
