"""An Oscar that starts from a BERT: any checkpoint that transformers opens, with its own tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saywhere.assets.hub import local_folder
from saywhere.core.errors import InvalidFile, require
from saywhere.models.common.modes import seeded
from saywhere.models.oscar.config import OBJECT, OscarConfig
from saywhere.models.oscar.network import Oscar
from saywhere.models.oscar.words import WordPieces

_FILES = ("*.json", "*.txt", "model*.safetensors")
_EMBEDDINGS = {
    "words.weight": "bert.embeddings.word_embeddings.weight",
    "types.weight": "bert.embeddings.token_type_embeddings.weight",
    "text_norm": "bert.embeddings.LayerNorm",
}
_LAYER = {
    "out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "norm": "output.LayerNorm",
}
_HEAD = {
    "head": "cls.predictions.transform.dense",
    "head_norm": "cls.predictions.transform.LayerNorm",
}


def oscar_from_bert(source: str | Path, region_size: int, levels: Sequence[str] = (OBJECT,), seed: int = 0) -> Oscar:
    """A network with BERT's weights; what reads regions is new, and so is the head if the checkpoint has none.

    source: a folder, or a name on the hub. Only safetensors are read, never pickles. seed: of what is new.
    """
    transformers = require("transformers", needed_for="starting from a BERT", extra="models")
    folder = local_folder(source, _FILES)
    try:
        described = transformers.AutoConfig.from_pretrained(folder)
        config = _config(source, described, region_size, levels)
        network, told = transformers.BertForMaskedLM.from_pretrained(
            folder, config=described, use_safetensors=True, output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise InvalidFile(source, f"is no BERT that can be loaded: {error}") from error
    with seeded(seed):
        model = Oscar(config, WordPieces(tokenizer.backend_tokenizer))
    absent = sorted(name for name in told["missing_keys"] if name.startswith("bert.") and "pooler" not in name)
    if absent:
        raise InvalidFile(source, f"lacks {len(absent)} tensors of a BERT, first {absent[0]!r}")
    has_head = not any(name.startswith("cls.predictions.transform") for name in told["missing_keys"])
    tensors = bert_tensors(network.state_dict(), config, has_head)
    model.load_state_dict(model.state_dict() | tensors)
    return model


def _config(source: str | Path, described: Any, region_size: int, levels: Sequence[str]) -> OscarConfig:
    if described.model_type != "bert" or described.hidden_act != "gelu":
        reason = f"describes a {described.model_type!r} with {getattr(described, 'hidden_act', None)!r}"
        raise InvalidFile(source, reason, "a BERT with GELU is needed")
    config = OscarConfig(
        described.vocab_size,
        region_size,
        described.hidden_size,
        described.num_hidden_layers,
        described.num_attention_heads,
        described.intermediate_size,
        described.hidden_dropout_prob,
        described.attention_probs_dropout_prob,
        described.layer_norm_eps,
        levels=tuple(levels),
    )
    if described.max_position_embeddings < config.text_slots or described.type_vocab_size != 2:
        reason = f"has {described.max_position_embeddings} positions and {described.type_vocab_size} types of token"
        raise InvalidFile(source, reason, f"needs at least {config.text_slots} and 2")
    return config


def bert_tensors(given: Mapping[str, Tensor], config: OscarConfig, has_head: bool) -> dict[str, Tensor]:
    """BERT's tensors under our names."""
    found = {"positions.weight": given["bert.embeddings.position_embeddings.weight"][: config.text_slots]}
    pairs = dict(_EMBEDDINGS)
    for number in range(config.layers):
        theirs = f"bert.encoder.layer.{number}"
        pairs |= {f"layers.{number}.{ours}": f"{theirs}.{name}" for ours, name in _LAYER.items()}
        for kind in ("weight", "bias"):
            parts = [given[f"{theirs}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            found[f"layers.{number}.query_key_value.{kind}"] = torch.cat(parts)
    if has_head:
        pairs |= _HEAD
        found["word_bias"] = given["cls.predictions.bias"]
    for ours, name in pairs.items():
        if name in given:
            found[ours] = given[name]
        else:
            found |= {f"{ours}.{kind}": given[f"{name}.{kind}"] for kind in ("weight", "bias")}
    return {name: tensor.float() for name, tensor in found.items()}
