"""What shape the parts have that TraceVLM adds to a Qwen-VL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from saywhere.core.errors import InvalidValue
from saywhere.models.common.config import ShapeConfig

MOST_POINTS = 256
"""Of one trajectory."""


@dataclass(frozen=True, slots=True)
class TraceVlmConfig(ShapeConfig):
    """The paper leaves most of it open.

    blocks, heads, expansion: of the perception module, which may have no block; its feed-forward layers are
    `expansion` times wider than it. code: numbers that each coordinate of a point becomes. mask_width, mask_heads,
    mask_layers: of the segmentation decoder; without layers there is none, and no masks. lora_rank, lora_alpha: of the
    adapters in the base. whole_base: the base's own parameters were trained too, and are saved. context: tokens at
    most; 0 for as many as the base can read.
    """

    family: ClassVar[str] = "TraceVLM"
    may_be_zero: ClassVar[tuple[str, ...]] = ("blocks", "context", "mask_layers")

    blocks: int = 2
    heads: int = 8
    expansion: int = 4
    code: int = 64
    mask_width: int = 256
    mask_heads: int = 8
    mask_layers: int = 2
    lora_rank: int = 16
    lora_alpha: int = 32
    whole_base: bool = False
    context: int = 0

    def __post_init__(self) -> None:
        # Python makes slotted dataclasses anew, so that super() without arguments would miss this one.
        ShapeConfig.__post_init__(self)
        if self.code % 2:
            raise InvalidValue("TraceVLM config code", f"is {self.code}, not an even number")
        if self.mask_width % (4 * self.mask_heads):
            reason = f"{self.mask_width} does not divide into 4 times {self.mask_heads} heads"
            raise InvalidValue("TraceVLM config mask_width", reason)
