"""How a text is read that is to find a photo: the last layers of the text encoder, which learnt beside `MatchNet`.

    network = QueryNet.of(minilm.network, layers=2)     # reads as MiniLM does, until it learns
    read_queries(network, ["a dog on a sofa"], minilm)  # (1, d) of length 1

The layers before them stay as they are, so that a text may be read once for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets.checkpoint import CONFIG
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.core.types import Floats32
from saywhere.language.bert import Bert
from saywhere.language.embed import MiniLM, TextEncoder
from saywhere.models.common.config import ShapeConfig
from saywhere.models.folder import built, load_part, save_part

_KIND = "patchioner-query"
_TOGETHER = 64
_FEED_FORWARD = "intermediate.dense"


@dataclass(frozen=True, slots=True)
class QueryConfig(ShapeConfig):
    """The shape of a `QueryNet`, as the text encoder has it. layers: how many of its last ones; 0: texts are read as
    everywhere. most_tokens: of a text, the rest is cut off."""

    size: int = 384
    heads: int = 12
    feed_forward: int = 1536
    layers: int = 0
    most_tokens: int = 32
    dropout: float = 0.1
    family: ClassVar[str] = "query"
    may_be_zero: ClassVar[tuple[str, ...]] = ("layers",)

    def __post_init__(self) -> None:
        # Python makes slotted dataclasses anew, so that super() without arguments would miss this one.
        ShapeConfig.__post_init__(self)
        if self.size % self.heads:
            raise InvalidValue("query config size", f"{self.size} does not divide into {self.heads} heads")


class QueryNet(nn.Module):
    """What the layers before give of each token → a vector of the text."""

    def __init__(self, config: QueryConfig) -> None:
        super().__init__()
        self.config = config
        shape = (config.size, config.heads, config.feed_forward, config.dropout, "gelu", 1e-12)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(*shape, batch_first=True) for _ in range(config.layers))

    @classmethod
    def of(cls, encoder: Bert, layers: int, dropout: float = 0.1) -> Self:
        """Begin as an encoder's own last layers are."""
        if not 0 < layers < encoder.layers:
            raise InvalidValue("layers", f"are {layers}, not between 0 and the {encoder.layers} of the text encoder")
        inner = len(encoder.layer_tensors(0)[f"{_FEED_FORWARD}.bias"])
        network = cls(QueryConfig(encoder.size, encoder.heads, inner, layers, dropout=dropout))
        for number, layer in enumerate(network.layers, encoder.layers - layers):
            layer.load_state_dict(_named_as_torch_does(encoder.layer_tensors(number)))
        return network

    def save_pretrained(self, folder: str | Path) -> None:
        """Weights and shape into a folder, to begin with."""
        save_part(folder, _KIND, self.config.to_dict(), self.state_dict())

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Self:
        """From such a folder."""
        part = load_part(source, _KIND)
        try:
            config = QueryConfig.from_dict(part.config)
            return built(lambda: cls(config), part)
        except (InvalidValue, UnknownName) as error:
            raise InvalidFile(part.folder / CONFIG, str(error)) from error

    def forward(self, states: Tensor, there: Tensor) -> Tensor:
        """(B, size) of length 1. states: (B, t, size) of tokens. there: (B, t) bool, which tokens there are."""
        x = states
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~there)
        counted = there.unsqueeze(-1).to(x.dtype)
        return functional.normalize(((x * counted).sum(dim=1) / counted.sum(dim=1)).float(), dim=-1)


def read_queries(network: QueryNet, texts: Sequence[str], encoder: TextEncoder) -> Floats32:
    """(n, size) vectors of length 1, by which texts find photos. encoder: one that gives states of its layers."""
    if not isinstance(encoder, MiniLM):
        raise InvalidValue("text encoder", f"is {encoder.name}, but queries are read by {MiniLM.name}'s last layers")
    config = network.config
    states = states_before(encoder, texts, config)
    order = sorted(range(len(states)), key=lambda place: len(states[place]))
    vectors = np.zeros((len(states), config.size), np.float32)
    with torch.inference_mode():
        for first in range(0, len(order), _TOGETHER):
            some = order[first : first + _TOGETHER]
            vectors[some] = network(*padded_tokens([states[place] for place in some])).numpy()
    return vectors


def states_before(encoder: MiniLM, texts: Sequence[str], config: QueryConfig) -> list[Floats32]:
    """(t, size) of each text's tokens: what a `QueryNet` reads."""
    return encoder.states(texts, most=config.most_tokens, layers=encoder.network.layers - config.layers)


def padded_tokens(states: Sequence[Floats32]) -> tuple[Tensor, Tensor]:
    """(B, t, size) and (B, t) bool, from texts of any number of tokens."""
    longest = max(map(len, states), default=0)
    tokens = torch.zeros(len(states), longest, states[0].shape[1] if len(states) else 0)
    there = torch.zeros(len(states), longest, dtype=torch.bool)
    for row, one in enumerate(states):
        tokens[row, : len(one)], there[row, : len(one)] = torch.from_numpy(np.array(one, np.float32)), True
    return tokens, there


def _named_as_torch_does(layer: dict[str, Tensor]) -> dict[str, Tensor]:
    """One layer of a released BERT as the parameters of `nn.TransformerEncoderLayer`."""
    theirs = {
        "self_attn.out_proj": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "linear1": _FEED_FORWARD,
        "linear2": "output.dense",
        "norm2": "output.LayerNorm",
    }
    found = {f"{ours}.{kind}": layer[f"{name}.{kind}"] for ours, name in theirs.items() for kind in ("weight", "bias")}
    for kind in ("weight", "bias"):
        parts = [layer[f"attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
        found[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
    return found
