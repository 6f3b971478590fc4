"""How a network runs: without dropout and gradients, or with randomness that depends on a seed alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from saywhere.language.vocabulary import Vocabulary


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """A network without dropout, whatever it was doing; afterwards as before."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """A network without dropout and gradients, whatever it was doing; afterwards as before."""
    with without_dropout(model), torch.no_grad():
        yield


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """What is drawn within, such as the first weights of a network, depends on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def seeded_dropout(generator: torch.Generator, model: nn.Module) -> Iterator[None]:
    """Dropout of the model draws from a seed that the generator gives; the global generator is left as it was."""
    devices = sorted(
        {p.device.index for p in model.parameters() if p.device.type == "cuda" and p.device.index is not None}
    )
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def zero_unknown_word(words: nn.Embedding, vocabulary: Vocabulary) -> None:
    """A word that training may never show says nothing at first, rather than something random."""
    if vocabulary.unknown_id is not None:
        with torch.no_grad():
            words.weight[vocabulary.unknown_id].zero_()
