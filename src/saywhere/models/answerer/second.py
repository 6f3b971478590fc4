"""What a second look gives of a place, in as few numbers as places have otherwise.

They say how far it lies along the directions in which photos differ most, each with mean 0 and spread 1.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32

_LEAST_SPREAD = 1e-3
"""Of a direction in which nothing differs, so that dividing by it stays finite."""


class SecondReader(nn.Module):
    """mean: (second_size,). axes: (second_size, size), each divided by how far photos differ along it."""

    mean: Tensor
    axes: Tensor

    def __init__(self, second_size: int, size: int) -> None:
        super().__init__()
        if size > second_size:
            raise InvalidValue("second look", f"has {second_size} numbers a place, but is to be read as {size}")
        self.register_buffer("mean", torch.zeros(second_size))
        self.register_buffer("axes", torch.zeros(second_size, size))

    @classmethod
    def fit(cls, seen: Tensor, size: int) -> Self:
        """seen: (n, second_size), of places of many photos."""
        reader = cls(seen.shape[1], size)
        values = seen.double()
        mean = values.mean(dim=0)
        spread, directions = torch.linalg.eigh((values - mean).T @ (values - mean) / len(values))
        # In rising order; of a direction and its opposite the one that mostly points up.
        widest = directions[:, -size:].flip(1)
        widest = widest * torch.where(widest.sum(dim=0) < 0, -1.0, 1.0)
        reader.mean.copy_(mean)
        reader.axes.copy_(widest / spread[-size:].flip(0).clamp(min=0).sqrt().clamp(min=_LEAST_SPREAD))
        return reader

    def forward(self, seen: Tensor) -> Tensor:
        """(…, second_size) → (…, size)."""
        return (seen - self.mean) @ self.axes

    def read(self, seen: Floats32) -> Floats32:
        """The same of an array."""
        with torch.inference_mode():
            read: Floats32 = self(torch.tensor(seen)).numpy()
        return read
