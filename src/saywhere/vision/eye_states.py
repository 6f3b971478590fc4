"""An eye as far as other networks read it, as a network of its own that a runtime may convert."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from saywhere.assets import cache_folder
from saywhere.vision.eye import EyeNet
from saywhere.vision.runtime import F32, Runtime, open_runtime


class _StatesNet(nn.Module):
    """An eye as far as other networks read it."""

    def __init__(self, eye: EyeNet) -> None:
        super().__init__()
        self.eye = eye

    def forward(self, trunk_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen = self.eye(trunk_states)
        return seen.whole, seen.contrast, seen.states


def open_states(
    make: Callable[[], EyeNet], weights_sha256: str, example: Tensor, kind: str = "", precision: str = F32
) -> Runtime:
    """From what the trunk gave to `Seen.whole`, `.contrast` and `.states`: all that networks read which stand on an
    eye. make: gives the eye of these weights. example, kind, precision: see `open_runtime`."""
    key = f"states {weights_sha256}"
    return open_runtime(lambda: _StatesNet(make()), key, example, cache_folder() / "compiled", kind, precision)
