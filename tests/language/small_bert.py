"""A tiny BERT with random weights, as MiniLM is read from a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn
from transformers.utils import logging

from saywhere.language.embed import MiniLM

END = 2


def save_tokenizer(path: Path, words: Sequence[str], end: int = END) -> None:
    """Words from id 4 on, between a begin (1) and an end sign. By itself it cuts and pads, as released ones do."""
    vocabulary = {"<pad>": 0, "<s>": 1, "</s>": end, "<unk>": 3} | {word: 4 + i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", end)]
    )
    tokenizer.enable_padding(length=20)
    tokenizer.enable_truncation(4)
    tokenizer.save(str(path))


def randomized(network: nn.Module) -> nn.Module:
    """The network with random weights, always the same."""
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng) * 0.4)
    return network


def small_minilm(folder: Path, words: Sequence[str], size: int = 8, layers: int = 2) -> MiniLM:
    """Written to the folder, and opened from there."""
    shape = {"hidden_size": size, "num_attention_heads": 2, "num_hidden_layers": layers, "intermediate_size": 16}
    config = transformers.BertConfig(**shape, vocab_size=4 + len(words), max_position_embeddings=300)
    logging.disable_progress_bar()
    network = randomized(transformers.BertModel(config))
    # Without this all texts would be alike.
    for module in network.modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
        elif isinstance(module, nn.Embedding) and module.num_embeddings == 4 + len(words):
            module.weight.data *= 8
    network.save_pretrained(folder)  # type: ignore[operator]
    logging.enable_progress_bar()
    save_tokenizer(folder / "tokenizer.json", words)
    return MiniLM(folder, "0" * 64)
