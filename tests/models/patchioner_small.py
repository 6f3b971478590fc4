"""Small decoders and made-up texts for the tests of the patch-centric captioner."""

from __future__ import annotations

import numpy as np
import torch

from saywhere.language.vocabulary import Vocabulary
from saywhere.models.patchioner.decoder import DecoderConfig, PrefixDecoder

COLOURS, THINGS = ("red", "blue", "green"), ("cat", "dog", "cup", "boat")
SENTENCES = [f"a {colour} {thing} on a {other}." for colour in COLOURS for thing in THINGS for other in THINGS]
SIZE = 12


def vocabulary() -> Vocabulary:
    return Vocabulary.of_words(SENTENCES)


def vectors(count: int, seed: int = 0, size: int = SIZE) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, size)).astype(np.float32)


def embeddings(sentences: list[str], size: int = SIZE) -> np.ndarray:
    """A sum of random vectors of the words, the first ones longer, so that order matters."""
    rng = np.random.default_rng(1)
    words = {word: rng.standard_normal(size) for word in sorted({w for s in sentences for w in s.split()})}
    rows = [sum(words[w] / (i + 1) for i, w in enumerate(s.split())) for s in sentences]
    return np.stack([row / np.linalg.norm(row) for row in rows]).astype(np.float32)


def decoder(seed: int = 0, **changes: int) -> PrefixDecoder:
    """A decoder at rest whose words differ enough in likelihood for searches to have something to choose."""
    known = vocabulary()
    settings = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 32, "prefix": 2, "max_words": 9} | changes
    model = PrefixDecoder.fresh(DecoderConfig(len(known), SIZE, **settings), known, seed).eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model
