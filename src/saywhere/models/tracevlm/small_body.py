"""The small body: a decoder of some million parameters that reads what the eye of saywhere-base sees of photos.

whole, windows and things → one token each, which see each other │ words, each sees what comes before it → next token
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.trajectory import BINS
from saywhere.models.common.batches import Packed
from saywhere.models.common.kv_cache import KVCache
from saywhere.models.common.modes import seeded
from saywhere.models.tracevlm.qwen import VisualFeatures
from saywhere.models.tracevlm.small_config import SmallConfig
from saywhere.models.tracevlm.small_input import BESIDE, SmallInput
from saywhere.models.tracevlm.small_photos import CLASSES
from saywhere.models.tracevlm.small_tokens import IMAGE
from saywhere.models.tracevlm.trajectory import sinusoids

_KINDS = 3
_ROPE_BASE = 10_000.0


@dataclass(frozen=True, slots=True)
class SmallFeatures(VisualFeatures):
    """What the small body sees of some images. output: (n, width) tokens of each. grids: (m, 3) 1, tokens and 1."""

    @property
    def merged(self) -> tuple[Tensor, ...]:
        return tuple(self.output)

    def with_merged(self, merged: Sequence[Tensor]) -> SmallFeatures:
        return replace(self, output=tuple(merged))

    def repeated(self, times: int) -> SmallFeatures:
        """The same images once more for each of `times` texts."""
        return replace(self, output=self.merged * times, grids=self.grids.repeat(times, 1))


class SmallCache:
    """Keys and values of all layers."""

    def __init__(self, layers: int, capacity: int) -> None:
        self.layers = [KVCache(capacity) for _ in range(layers)]

    @property
    def filled(self) -> int:
        return self.layers[0].filled

    def reorder_cache(self, rows: Tensor) -> None:
        """Row i goes on from what was row `rows[i]`."""
        for layer in self.layers:
            layer.reorder(rows)


class SmallBody(nn.Module):
    """inputs: how it reads. Has the methods that `TraceVLM` asks of a body; see `QwenBody`."""

    def __init__(self, config: SmallConfig, inputs: SmallInput, seed: int = 0) -> None:
        super().__init__()
        self.config, self.inputs = config, inputs
        with seeded(seed):
            self.network = SmallDecoder(config, inputs.tokenizer.first_coordinate)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def width(self) -> int:
        return self.config.width

    @property
    def patch_width(self) -> int:
        return self.config.width

    @property
    def outputs(self) -> int:
        """Tokens that are scored."""
        return self.config.vocabulary

    def adapt(self, rank: int, alpha: int, seed: int = 0) -> None:
        """Nothing: all of its parameters are its own."""

    def see(self, places: Tensor, grids: Tensor) -> SmallFeatures:
        """places, grids: see `SmallInput.places`."""
        tokens = self.network.see(places)
        each = tuple(tokens[row, :n] for row, n in enumerate(grids[:, 1].tolist()))
        return SmallFeatures(each, (), grids)

    def positions(self, ids: Tensor, there: Tensor, grids: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002 - as of Qwen
        """(3, b, n) where each token stands, and (b, 1) how much the next ones stand ahead of their number. All tokens
        of an image stand at 0: where they are in it is in their codes. There is one axis; the others repeat it."""
        images = ids == self.inputs.special[IMAGE]
        placed = (there & ~images).long().cumsum(dim=1)
        return placed.masked_fill(images, 0).expand(3, -1, -1), 1 - images.sum(dim=1, keepdim=True)

    def read(
        self, ids: Tensor, there: Tensor, positions: Tensor, seen: VisualFeatures | None = None, cache: Any = None
    ) -> Tensor:
        """(b, n, width) last states. there: (b, n with what the cache holds), False for padding. seen: the images
        that the tokens stand for."""
        tokens = self.network.embed(ids)
        images = ids == self.inputs.special[IMAGE]
        if seen is not None:
            tokens = tokens.masked_scatter(images[..., None], torch.cat(list(seen.merged)).to(tokens.dtype))
        # Where there is a cache, rows end together; in training most of a batch may be padding, which is left out.
        packed = Packed.of(there) if cache is None else None
        return self.network.read(tokens, visible(there, images), positions[0], cache, packed)

    def say(self, states: Tensor) -> Tensor:
        """(…, tokens) scores from (…, width) states."""
        return self.network.say(states)

    def new_cache(self) -> SmallCache:
        return SmallCache(self.config.layers, self.config.context)


def visible(there: Tensor, images: Tensor) -> Tensor:
    """(b, 1, n, n with what was read before) what each of the n last tokens may see: itself, all that is there before
    it, and, if it is of an image, all tokens of images."""
    n, whole = images.shape[1], there.shape[1]
    before = torch.ones(n, whole, dtype=torch.bool, device=there.device).tril(whole - n)
    seen = before & there[:, None]
    if n == whole:
        seen = seen | (images[:, :, None] & images[:, None])
    return (seen | torch.eye(n, whole, dtype=torch.bool, device=there.device).roll(whole - n, 1))[:, None]


class SmallDecoder(nn.Module):
    """Words and coordinates are embedded and scored by the same vectors. Those of coordinates are made of their
    numbers, so that near ones are alike from the start."""

    def __init__(self, config: SmallConfig, words: int) -> None:
        super().__init__()
        width = config.width
        self.code, self.words = config.code, nn.Embedding(words, width)
        self.coordinates = nn.Sequential(nn.Linear(config.code, width), nn.GELU(), nn.Linear(width, width))
        self.state_norm = nn.LayerNorm(config.state_size)
        self.state = nn.Linear(config.state_size, width)
        self.box = nn.Sequential(nn.Linear(4 * config.code + 1, width), nn.GELU(), nn.Linear(width, width))
        self.kinds = nn.Embedding(_KINDS, width)
        self.classes = nn.Embedding(len(CLASSES) + 1, width)
        self.layers = nn.ModuleList(SmallLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(config.dropout)
        for table in (self.words, self.kinds, self.classes):
            nn.init.normal_(table.weight, std=0.02)
        with torch.no_grad():
            last: nn.Linear = self.coordinates[-1]  # type: ignore[assignment]
            last.weight.mul_(0.1)

    def see(self, places: Tensor) -> Tensor:
        """(m, places, width) of what `SmallInput.places` gives."""
        states, beside = places[..., :-BESIDE], places[..., -BESIDE:]
        boxes = sinusoids(beside[..., :4] * BINS, self.code).flatten(-2)
        coded = self.box(torch.cat([boxes, beside[..., 4:5]], dim=-1))
        named = self.classes(beside[..., 5].long()) + self.kinds(beside[..., 6].long())
        tokens: Tensor = self.state(self.state_norm(states)) + coded + named
        return tokens

    def embed(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.drop(functional.embedding(ids, self._table()))
        return embedded

    def read(
        self,
        tokens: Tensor,
        mask: Tensor,
        positions: Tensor,
        cache: SmallCache | None = None,
        packed: Packed | None = None,
    ) -> Tensor:
        """(b, n, width) last states; those of padding are 0 where it is left out."""
        turns = rotations(positions, self.layers[0].head_size)  # type: ignore[arg-type]
        x = tokens if packed is None else packed.pack(tokens)
        for number, layer in enumerate(self.layers):
            x = layer(x, mask, turns, None if cache is None else cache.layers[number], packed)
        states: Tensor = self.norm(x)
        return states if packed is None else packed.unpack(states)

    def say(self, states: Tensor) -> Tensor:
        return functional.linear(states, self._table())

    def _table(self) -> Tensor:
        """(tokens, width), words and then coordinates."""
        numbers = torch.arange(BINS, device=self.words.weight.device, dtype=torch.float32)
        made = self.coordinates(sinusoids(numbers, self.code))
        return torch.cat([self.words.weight, made.to(self.words.weight.dtype)])


class SmallLayer(nn.Module):
    """Attention over what is visible, then two layers; both normed before."""

    def __init__(self, config: SmallConfig) -> None:
        super().__init__()
        width = config.width
        self.heads, self.head_size = config.heads, width // config.heads
        self.read_norm, self.think_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        inner = config.expansion * width
        self.think = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))
        self.drop = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        turns: tuple[Tensor, Tensor],
        cache: KVCache | None = None,
        packed: Packed | None = None,
    ) -> Tensor:
        """(b, n, width) or, with packed, (N, width) without padding."""
        made = self.qkv(self.read_norm(x))
        made = made if packed is None else packed.unpack(made)
        rows, n = made.shape[:2]
        made = made.view(rows, n, 3, self.heads, self.head_size).permute(2, 0, 3, 1, 4)
        query, key, value = turned(made[0], turns), turned(made[1], turns), made[2]
        if cache is not None:
            key, value = cache.append(torch.stack([key, value]))
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        seen = seen.transpose(1, 2).reshape(rows, n, -1)
        x = x + self.drop(self.out(seen if packed is None else packed.pack(seen)))
        return x + self.drop(self.think(self.think_norm(x)))  # type: ignore[no-any-return]


def rotations(positions: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines, (b, 1, n, size / 2), of RoPE."""
    half = size // 2
    slowness = torch.arange(half, device=positions.device, dtype=torch.float32) / half
    angles = (positions.float()[..., None] * _ROPE_BASE**-slowness)[:, None]
    return angles.cos(), angles.sin()


def turned(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """(b, heads, n, size) each half of the numbers turned with the other by its place."""
    cosines, sines = (one.to(x.dtype) for one in turns)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, first * sines + second * cosines], dim=-1)
