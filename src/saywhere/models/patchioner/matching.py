"""What tells a photo from others: one vector in the space of texts, from all that is known of the photo.

    matcher = Matcher.from_pretrained("folder")
    matcher.vector(view.states, view.contrast, things, view.auxiliary)   # (d,) of length 1, to find the photo by a text

An eye tells such a vector by itself, from the mean of its hidden states. This network adds to it what lies in the
single windows of the photo, what a detector found there (how many there are, of what kind, and where), and what a
second look says of it, see `saywhere.vision.auxiliary`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets.checkpoint import CONFIG
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.core.types import Floats32
from saywhere.models.common.config import ShapeConfig
from saywhere.models.common.windows import window_means
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.patchioner.layers import ThingReader, unit
from saywhere.vision.things import NamedThings

_KIND = "patchioner-matching"
MOST_THINGS, LEAST_SCORE = 20, 0.1
"""Things found that are read: the surest, if they are at least as sure as that."""


@dataclass(frozen=True, slots=True)
class MatcherConfig(ShapeConfig):
    """The shape of a `MatchNet`. states_size: of hidden states. text_size: of vectors of texts. auxiliary_size: of what
    a second look gives for each place; 0: it reads none. width, heads, layers, feed_forward: of its transformer."""

    states_size: int = 384
    text_size: int = 384
    width: int = 256
    heads: int = 4
    layers: int = 2
    feed_forward: int = 512
    dropout: float = 0.1
    auxiliary_size: int = 0
    family: ClassVar[str] = "matcher"
    may_be_zero: ClassVar[tuple[str, ...]] = ("auxiliary_size",)


class MatchNet(nn.Module):
    """Hidden states of windows and things found → a vector of the photo."""

    def __init__(self, config: MatcherConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.state = nn.Linear(config.states_size, width)
        self.where = nn.Linear(2, width)
        self.things = ThingReader(config.text_size, width)
        self.auxiliary = AuxiliaryReader(config.auxiliary_size, width) if config.auxiliary_size else None
        self.start = nn.Parameter(0.02 * torch.randn(width))
        layer = nn.TransformerEncoderLayer(
            width, config.heads, config.feed_forward, config.dropout, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, config.layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.told = nn.Linear(width, config.text_size)
        # At first it says what the eye says by itself.
        nn.init.zeros_(self.told.weight)
        nn.init.zeros_(self.told.bias)

    def forward(
        self,
        windows: Tensor,
        centres: Tensor,
        contrast: Tensor,
        names: Tensor,
        boxes_xyxy: Tensor,
        scores: Tensor,
        auxiliary: Tensor,
    ) -> Tensor:
        """(B, d) of length 1. windows: (B, 1 + n, states_size), the whole first. centres: (B, n, 2) fractions.
        contrast: (B, d), what the eye tells by itself. names, boxes_xyxy, scores: (B, m, …), of things; a
        score of 0 where there is none. auxiliary: (B, 1 + k, auxiliary_size), the whole first; k may be whatever the
        network does not read."""
        seen = self.state(windows)
        placed = torch.cat([seen[:, :1], seen[:, 1:] + self.where(2 * centres - 1)], dim=1)
        things = self.things(names, boxes_xyxy, scores)
        start = self.start.expand(len(windows), 1, -1).to(things.dtype)
        second = [] if self.auxiliary is None else [self.auxiliary(auxiliary).to(things.dtype)]
        x = torch.cat([start, placed, *second, things], dim=1)
        absent = functional.pad(scores <= 0, (x.shape[1] - scores.shape[1], 0))
        read = self.layers(x, src_key_padding_mask=absent)[:, 0]
        return unit(unit(contrast.float()) + self.told(read).float())


class AuxiliaryReader(nn.Module):
    """What a second look gives, as further places: (B, 1 + side², size), the whole first → (B, 1 + side², width)."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, width))
        self.where = nn.Linear(2, width)
        self.whole = nn.Parameter(torch.zeros(width))

    def forward(self, seen: Tensor) -> Tensor:
        x = self.read(seen)
        side = math.isqrt(seen.shape[1] - 1)
        steps = (2 * torch.arange(side, device=x.device, dtype=x.dtype) + 1) / side - 1
        y, across = torch.meshgrid(steps, steps, indexing="ij")
        where = self.where(torch.stack([across, y], dim=-1).flatten(0, 1))
        return torch.cat([x[:, :1] + self.whole, x[:, 1:] + where], dim=1)


class Matcher:
    """A network at rest, for one photo at a time. most, least: of the things that it reads, as above."""

    most, least = MOST_THINGS, LEAST_SCORE

    def __init__(self, network: MatchNet) -> None:
        self.network = network.eval()

    @property
    def reads_auxiliary(self) -> bool:
        """Whether it needs a second look."""
        return self.network.config.auxiliary_size > 0

    def vector(
        self, states: Floats32, contrast: Floats32, things: NamedThings | None, auxiliary: Floats32 | None = None
    ) -> Floats32:
        """(d,) of length 1. states: (1 + n, s) of an eye, the whole first. contrast: (d,) that it tells by itself.
        auxiliary: (1 + k, a) of a second look, for a network that reads it."""
        config = self.network.config
        sizes = (states.shape[1], len(contrast))
        if sizes != (config.states_size, config.text_size):
            raise InvalidValue("view", f"has states and a vector of {sizes} numbers, which this matcher cannot read")
        second = np.zeros((1, 0), np.float32) if auxiliary is None or not self.reads_auxiliary else auxiliary
        if second.shape[1] != config.auxiliary_size:
            wanted = f"{second.shape[1]} numbers a place, but this matcher reads {config.auxiliary_size}"
            raise InvalidValue("view.auxiliary", f"has {wanted}", "look at the photo again, with this model")
        found = NamedThings.none(config.text_size) if things is None else things
        parts = (*windows_of(states), contrast, found.vectors, found.boxes_xyxy, found.scores, second)
        with torch.inference_mode():
            told = self.network(*(torch.from_numpy(np.array(part, np.float32))[None] for part in parts))
        vector: Floats32 = told[0].numpy()
        return vector

    def save_pretrained(self, folder: str | Path, *, int8: bool = True) -> None:
        """Weights and shape into a folder. int8: in a byte a number; it loads as float32."""
        save_part(folder, _KIND, self.network.config.to_dict(), self.network.state_dict(), half=not int8, int8=int8)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> Matcher:
        """From a folder, or from the hub ("owner/name")."""
        part = load_part(source, _KIND, revision)
        try:
            config = MatcherConfig.from_dict(part.config)
            return cls(built(lambda: MatchNet(config), part))
        except (InvalidValue, UnknownName) as error:
            raise InvalidFile(part.folder / CONFIG, str(error)) from error


def windows_of(states: Floats32) -> tuple[Floats32, Floats32]:
    """(1 + n, s) the whole's state and the mean of those in each window; (n, 2) where the windows' centres are."""
    windows, side = window_means(states)
    y, x = np.divmod(np.arange(side * side), side)
    centres = (np.column_stack([x, y]) + 0.5) / side
    return windows, centres.astype(np.float32)
