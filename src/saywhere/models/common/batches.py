"""Arrays of different lengths as one tensor: with padding, or without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saywhere.language.vocabulary import PAD_ID


class Movable:
    """A dataclass of tensors, of such dataclasses, or of nothing, that can be put on another device."""

    __slots__ = ()

    def to(self, device: torch.device | str) -> Self:
        parts = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]  # its children are dataclasses
        return type(self)(*(_moved(part, device) for part in parts))


def _moved(part: Any, device: torch.device | str) -> Any:
    if isinstance(part, Tensor):
        return part.to(device, non_blocking=True)
    return part.to(device) if is_dataclass(part) and isinstance(part, Movable) else part


def padded(arrays: Sequence[NDArray[np.generic]], length: int | None = None, padding: int = PAD_ID) -> Tensor:
    """(b, length, …) arrays that differ in their first length, with padding after each end.

    length: of the longest unless given; it must be given where there may be no array.
    """
    longest = max(len(array) for array in arrays) if length is None else length
    shape, dtype = (arrays[0].shape[1:], arrays[0].dtype) if arrays else ((), np.dtype(np.int64))
    block = np.full((len(arrays), longest, *shape), padding, dtype=dtype)
    for row, array in zip(block, arrays, strict=True):
        row[: len(array)] = array
    return torch.from_numpy(block)


def padding_mask(lengths: Tensor, longest: int) -> Tensor:
    """(b, longest) True for the first `lengths` places."""
    return torch.arange(longest, device=lengths.device) < lengths[:, None]


@dataclass(frozen=True, slots=True)
class Packed:
    """Texts of different lengths without their padding: most of a block's work is the same for every place alone.

    rows, n: of the padded form. places: (N,) where each real place lies in it, row by row.
    """

    rows: int
    n: int
    places: Tensor

    @classmethod
    def of(cls, real: Tensor) -> Packed:
        """real: (rows, n) booleans."""
        return cls(real.shape[0], real.shape[1], real.flatten().nonzero()[:, 0])

    def pack(self, x: Tensor) -> Tensor:
        """(rows, n, width) to (N, width)."""
        return x.flatten(0, 1).index_select(0, self.places)

    def unpack(self, x: Tensor) -> Tensor:
        """(N, width) to (rows, n, width), zeros for padding."""
        return x.new_zeros(self.rows * self.n, x.shape[-1]).index_copy(0, self.places, x).view(self.rows, self.n, -1)
