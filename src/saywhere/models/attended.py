"""What a network that reads tagged regions attended to: the one small protocol of the attention laboratory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from torch import Tensor

from saywhere.models.search import BEAM, GenerationConfig, Written
from saywhere.models.tagged_regions import TaggedRegions


class TokenKind(IntEnum):
    """What stands at a place of the sequence. SPECIAL: [CLS] and [SEP]."""

    PAD = 0
    SPECIAL = 1
    CAPTION = 2
    TAG = 3
    REGION = 4


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """b images, n places (of the longest sequence), on the CPU and without gradients.

    layers: for each layer (b, heads, n, n), from (row) to (column). Rows of what is there sum to 1 over what they may
        see; rows and columns of padding are 0.
    states: (b, n, d) of the last layer; 0 for padding.
    parts: (b, n) int64 of `TokenKind`. index: (b, n) int64, which tag or region of its image stands there; −1 for the
        rest. A tag of several pieces stands at several places.
    """

    layers: tuple[Tensor, ...]
    states: Tensor
    parts: Tensor
    index: Tensor

    def __len__(self) -> int:
        return len(self.parts)


class Attending(Protocol):
    """Anything that shows what it attends to."""

    def attend(self, images: Sequence[TaggedRegions]) -> Attended:
        """Images without a caption: [CLS], tags, [SEP], regions."""
        ...


class Speaking(Protocol):
    """Anything that captions tagged regions. A caption's confidence is exp of its score."""

    def write(
        self, images: Sequence[TaggedRegions], level: str | None = None, how: GenerationConfig = BEAM
    ) -> list[Written]: ...
