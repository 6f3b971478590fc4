"""BERT's encoder in plain torch, read from weights under their released names.

transformers has it too, and our tests compare the two; but importing that takes five seconds, and a person who asks
where a word is would wait for them every time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from saywhere.assets.checkpoint import read_json, read_tensors
from saywhere.core.errors import InvalidFile

_NEEDED = ("num_hidden_layers", "num_attention_heads", "layer_norm_eps", "hidden_size")
_PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


class Bert:
    """The network without its pooler: token ids to states. Fixed: no dropout, no gradients."""

    def __init__(self, tensors: Mapping[str, Tensor], layers: int, heads: int, epsilon: float) -> None:
        self._tensors, self.layers, self.heads, self.epsilon = tensors, layers, heads, epsilon

    @property
    def size(self) -> int:
        return self._tensors["embeddings.word_embeddings.weight"].shape[1]

    def __call__(self, ids: Tensor, mask: Tensor, layers: int | None = None) -> Tensor:
        """(B, T) ids and their mask, 1 where there is a token → (B, T, size) states of the last layer, or of the layer
        before which so many were passed."""
        tables = (self._tensors[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type"))
        words, places, kinds = tables
        x = self._norm(words[ids] + places[: ids.shape[1]] + kinds[0], "embeddings.LayerNorm")
        seen = mask[:, None, None, :].bool()
        for number in range(self.layers if layers is None else layers):
            x = self._layer(x, seen, f"encoder.layer.{number}")
        return x

    def layer_tensors(self, number: int) -> dict[str, Tensor]:
        """What one layer holds, by released names without the layer's own, such as "output.dense.weight"."""
        start = f"encoder.layer.{number}."
        return {name.removeprefix(start): one for name, one in self._tensors.items() if name.startswith(start)}

    def _layer(self, x: Tensor, seen: Tensor, name: str) -> Tensor:
        batch, length, _ = x.shape
        shape = (batch, length, self.heads, -1)
        query, key, value = (
            self._linear(x, f"{name}.attention.self.{part}").view(shape).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        mixed = self._linear(mixed.transpose(1, 2).reshape(x.shape), f"{name}.attention.output.dense")
        x = self._norm(x + mixed, f"{name}.attention.output.LayerNorm")
        wide = functional.gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._norm(x + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"]
        return functional.layer_norm(x, weight.shape, weight, bias, self.epsilon)


def load_bert(folder: str | Path) -> Bert:
    """A BERT from a folder with config.json and model.safetensors, as transformers writes them."""
    path = Path(folder)
    config, tensors = read_json(path / "config.json"), read_tensors(path / "model.safetensors")
    absent = [key for key in _NEEDED if not isinstance(config.get(key), int | float)]
    if absent or config.get("hidden_act") != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
        raise InvalidFile(path / "config.json", "does not describe a BERT with GELU and absolute positions")
    layers = int(config["num_hidden_layers"])
    names = [f"encoder.layer.{number}.{part}" for number in range(layers) for part in _PARTS] + ["embeddings.LayerNorm"]
    wanted = [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]
    wanted += [f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
    if missing := sorted(set(wanted) - set(tensors)):
        raise InvalidFile(path, f"lacks {len(missing)} tensors of a BERT, first {missing[0]!r}")
    kept = {name: tensors[name].float() for name in wanted}
    if kept["embeddings.word_embeddings.weight"].shape[1] != config["hidden_size"]:
        raise InvalidFile(path, "weights and config.json are of different sizes")
    if any(not bool(torch.isfinite(tensor).all()) for tensor in kept.values()):
        raise InvalidFile(path, "holds NaN or infinity")
    return Bert(kept, layers, int(config["num_attention_heads"]), float(config["layer_norm_eps"]))
