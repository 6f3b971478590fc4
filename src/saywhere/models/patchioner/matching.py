"""What tells a photo from others: one vector in the space of texts, from all that is known of the photo.

    matcher = Matcher.from_pretrained("folder")
    matcher.vector(view.states, view.contrast, things, view.auxiliary)   # (d,) of length 1, to find the photo by a text
    matcher.queries(["a dog on a sofa"], minilm)                         # (1, d) of length 1, nearest to such photos

An eye tells such a vector by itself, from the mean of its hidden states. This network adds to it what lies in the
single windows of the photo, and what a detector found there: how many there are, of what kind, and where. A second
network reads a second look instead of the eye, see `saywhere.vision.auxiliary`, and both vectors are added. They learn
beside each other, not together: the eye knows the photos that it learnt from too well, and a network that reads both
trusts it alone. Texts are read in a way of their own, too, see `saywhere.models.patchioner.queries`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

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
from saywhere.models.patchioner.queries import QueryConfig, QueryNet, read_queries
from saywhere.vision.things import NamedThings

if TYPE_CHECKING:
    from saywhere.language.embed import TextEncoder

_KIND = "patchioner-matching"
_SECOND = 0.6
"""How much the vector by the second look counts beside the one by the eye: chosen on 500 validation photos."""
_LEAST_SPREAD = 0.02
MOST_THINGS, LEAST_SCORE = 20, 0.1
"""Things found that are read: the surest, if they are at least as sure as that."""


@dataclass(frozen=True, slots=True)
class MatcherConfig(ShapeConfig):
    """The shape of a `MatchNet`. states_size: of hidden states. text_size: of vectors of texts. auxiliary_size: of what
    a second look gives for each place; 0: it reads none. width, heads, layers, feed_forward: of its transformers.
    query_layers, query_heads, query_feed_forward: see `QueryConfig`; 0 layers: texts are read as everywhere."""

    states_size: int = 384
    text_size: int = 384
    width: int = 256
    heads: int = 4
    layers: int = 2
    feed_forward: int = 512
    dropout: float = 0.1
    auxiliary_size: int = 0
    query_layers: int = 0
    query_heads: int = 12
    query_feed_forward: int = 1536
    family: ClassVar[str] = "matcher"
    may_be_zero: ClassVar[tuple[str, ...]] = ("auxiliary_size", "query_layers")
    added: ClassVar[tuple[str, ...]] = ("query_layers", "query_heads", "query_feed_forward")

    @property
    def query(self) -> QueryConfig:
        return QueryConfig(self.text_size, self.query_heads, self.query_feed_forward, self.query_layers)


class MatchNet(nn.Module):
    """Hidden states of windows, things found and a second look → a vector of the photo."""

    def __init__(self, config: MatcherConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.state = nn.Linear(config.states_size, width)
        self.where = nn.Linear(2, width)
        self.things = ThingReader(config.text_size, width)
        self.start = nn.Parameter(0.02 * torch.randn(width))
        self.layers = _layers(config)
        self.told = nn.Linear(width, config.text_size)
        self.second = SecondNet(config) if config.auxiliary_size else None
        self.query = QueryNet(config.query) if config.query_layers else None
        # At first it says what the eye says by itself.
        nn.init.zeros_(self.told.weight)
        nn.init.zeros_(self.told.bias)

    def forward(self, *seen: Tensor) -> Tensor:
        """(B, d) of length 1. seen: as for `each`."""
        ours, *second = self.each(*seen)
        return unit(ours + _SECOND * second[0]) if second else ours

    def each(
        self,
        windows: Tensor,
        centres: Tensor,
        contrast: Tensor,
        names: Tensor,
        boxes_xyxy: Tensor,
        scores: Tensor,
        auxiliary: Tensor,
    ) -> list[Tensor]:
        """What `forward` adds: (B, d) by the eye and, if a second look is read, the same by that; of length 1.

        windows: (B, 1 + n, states_size), the whole first. centres: (B, n, 2) fractions. contrast: (B, d), what the eye
        tells by itself. names, boxes_xyxy, scores: (B, m, …), of things; a score of 0 where there is none. auxiliary:
        (B, 1 + k, auxiliary_size), the whole first; not read by a network without a second look.
        """
        seen = self.state(windows)
        placed = torch.cat([seen[:, :1], seen[:, 1:] + self.where(2 * centres - 1)], dim=1)
        things = self.things(names, boxes_xyxy, scores)
        read = _read(self.start, self.layers, placed, things, scores)
        ours = unit(unit(contrast.float()) + self.told(read).float())
        return [ours] if self.second is None else [ours, self.second(auxiliary, names, boxes_xyxy, scores)]


class SecondNet(nn.Module):
    """A second look and things found → a vector of the photo, without the eye.

    mean, spread: (auxiliary_size,) of what a second look gives of the whole; see `spread_as`.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, config: MatcherConfig) -> None:
        super().__init__()
        width, size = config.width, config.auxiliary_size
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("spread", torch.ones(size))
        self.place, self.where = nn.Linear(size, width), nn.Linear(2, width)
        self.things = ThingReader(config.text_size, width)
        self.start, self.is_whole = (nn.Parameter(0.02 * torch.randn(width)) for _ in range(2))
        self.layers = _layers(config)
        self.told, self.straight = nn.Linear(width, config.text_size), nn.Linear(size, config.text_size)
        self.drop = nn.Dropout(config.dropout)
        nn.init.zeros_(self.told.weight)

    def spread_as(self, wholes: Tensor) -> None:
        """Read numbers that are spread like those of (n, size) wholes as if they had mean 0 and spread 1."""
        self.mean.copy_(wholes.mean(dim=0))
        self.spread.copy_(wholes.std(dim=0) + _LEAST_SPREAD)

    def forward(self, auxiliary: Tensor, names: Tensor, boxes_xyxy: Tensor, scores: Tensor) -> Tensor:
        """(B, d) of length 1. auxiliary: (B, 1 + side², size), the whole first, then windows row by row; names,
        boxes_xyxy, scores: as for `MatchNet`."""
        seen = (auxiliary - self.mean) / self.spread
        side = math.isqrt(seen.shape[1] - 1)
        steps = (2 * torch.arange(side, device=seen.device, dtype=seen.dtype) + 1) / max(side, 1) - 1
        down, across = torch.meshgrid(steps, steps, indexing="ij")
        places = self.drop(self.place(seen))
        where = self.where(torch.stack([across, down], dim=-1).flatten(0, 1))
        places = torch.cat([places[:, :1] + self.is_whole, places[:, 1:] + where], dim=1)
        read = _read(self.start, self.layers, places, self.things(names, boxes_xyxy, scores), scores)
        return unit(self.told(read).float() + self.straight(self.drop(seen[:, 0])).float())


def _layers(config: MatcherConfig) -> nn.TransformerEncoder:
    shape = (config.width, config.heads, config.feed_forward, config.dropout, "gelu")
    layer = nn.TransformerEncoderLayer(*shape, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, config.layers, nn.LayerNorm(config.width), enable_nested_tensor=False)


def _read(start: Tensor, layers: nn.TransformerEncoder, places: Tensor, things: Tensor, scores: Tensor) -> Tensor:
    """(B, width) what the first place knows after it looked at the others; things with a score of 0 are not there."""
    first = start.expand(len(places), 1, -1).to(things.dtype)
    x = torch.cat([first, places.to(things.dtype), things], dim=1)
    absent = functional.pad(scores <= 0, (x.shape[1] - scores.shape[1], 0))
    read: Tensor = layers(x, src_key_padding_mask=absent)[:, 0]
    return read


class Matcher:
    """A network at rest, for one photo at a time. most, least: of the things that it reads, as above."""

    most, least = MOST_THINGS, LEAST_SCORE

    def __init__(self, network: MatchNet) -> None:
        self.network = network.eval()

    @property
    def reads_auxiliary(self) -> bool:
        """Whether it needs a second look."""
        return self.network.config.auxiliary_size > 0

    @property
    def reads_queries(self) -> bool:
        """Whether texts that are to find photos are read in a way of their own."""
        return self.network.query is not None

    def queries(self, texts: Sequence[str], encoder: TextEncoder) -> Floats32:
        """(n, d) of length 1, for a network that `reads_queries`. encoder: whose last layers it learnt instead of."""
        if self.network.query is None:
            raise InvalidValue("matcher", "has no way of its own to read texts")
        return read_queries(self.network.query, texts, encoder)

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
