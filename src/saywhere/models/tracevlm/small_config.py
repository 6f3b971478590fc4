"""What shape the small body of TraceVLM has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from saywhere.core.errors import InvalidValue
from saywhere.models.common.config import ShapeConfig
from saywhere.models.tracevlm.small_photos import WINDOWS


@dataclass(frozen=True, slots=True)
class SmallConfig(ShapeConfig):
    """vocabulary: tokens in all. width, heads, layers, expansion: of the decoder. state_size: numbers of a hidden state
    of the eye. windows: rows and columns of windows that are read. code: numbers that a coordinate becomes. context:
    tokens at most. dropout: in training."""

    family: ClassVar[str] = "small body"

    vocabulary: int
    width: int = 320
    heads: int = 5
    layers: int = 6
    expansion: int = 4
    state_size: int = 384
    windows: int = 5
    code: int = 64
    context: int = 512
    dropout: float = 0.1

    def __post_init__(self) -> None:
        # Python makes slotted dataclasses anew, so that super() without arguments would miss this one.
        ShapeConfig.__post_init__(self)
        if WINDOWS % self.windows:
            raise InvalidValue("small body config windows", f"is {self.windows}, which does not divide {WINDOWS}")
        if self.code % 2 or (self.width // self.heads) % 2:
            raise InvalidValue("small body config", "code, and width over heads, must be even")
