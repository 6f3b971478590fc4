"""What tells a photo from others: one vector in the space of texts, from all that is known of the photo.

    matcher = Matcher.from_pretrained("folder")
    matcher.vector(view.states, view.contrast, things)          # (d,) of length 1, to find the photo by a text

An eye tells such a vector by itself, from the mean of its hidden states. This network adds to it what lies in the
single windows of the photo and what a detector found there: how many there are, of what kind, and where.
"""

from __future__ import annotations

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
    """The shape of a `MatchNet`. states_size: of hidden states. text_size: of vectors of texts. width, heads, layers,
    feed_forward: of its transformer."""

    states_size: int = 384
    text_size: int = 384
    width: int = 256
    heads: int = 4
    layers: int = 2
    feed_forward: int = 512
    dropout: float = 0.1
    family: ClassVar[str] = "matcher"


class MatchNet(nn.Module):
    """Hidden states of windows and things found → a vector of the photo."""

    def __init__(self, config: MatcherConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.state = nn.Linear(config.states_size, width)
        self.where = nn.Linear(2, width)
        self.things = ThingReader(config.text_size, width)
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
        self, windows: Tensor, centres: Tensor, contrast: Tensor, names: Tensor, boxes_xyxy: Tensor, scores: Tensor
    ) -> Tensor:
        """(B, d) of length 1. windows: (B, 1 + n, states_size), the whole first. centres: (B, n, 2) fractions.
        contrast: (B, d), what the eye tells by itself. names, boxes_xyxy, scores: (B, m, …), of things; a
        score of 0 where there is none."""
        seen = self.state(windows)
        placed = torch.cat([seen[:, :1], seen[:, 1:] + self.where(2 * centres - 1)], dim=1)
        things = self.things(names, boxes_xyxy, scores)
        start = self.start.expand(len(windows), 1, -1).to(things.dtype)
        x = torch.cat([start, placed, things], dim=1)
        absent = functional.pad(scores <= 0, (1 + windows.shape[1], 0))
        read = self.layers(x, src_key_padding_mask=absent)[:, 0]
        return unit(unit(contrast.float()) + self.told(read).float())


class Matcher:
    """A network at rest, for one photo at a time. most, least: of the things that it reads, as above."""

    most, least = MOST_THINGS, LEAST_SCORE

    def __init__(self, network: MatchNet) -> None:
        self.network = network.eval()

    def vector(self, states: Floats32, contrast: Floats32, things: NamedThings | None) -> Floats32:
        """(d,) of length 1. states: (1 + n, s) of an eye, the whole first. contrast: (d,) that it tells by itself."""
        config = self.network.config
        sizes = (states.shape[1], len(contrast))
        if sizes != (config.states_size, config.text_size):
            raise InvalidValue("view", f"has states and a vector of {sizes} numbers, which this matcher cannot read")
        found = NamedThings.none(config.text_size) if things is None else things
        parts = (*windows_of(states), contrast, found.vectors, found.boxes_xyxy, found.scores)
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
