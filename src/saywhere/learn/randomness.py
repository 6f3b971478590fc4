"""Seeds as pure functions of what they are for.

Nothing random is carried from step to step: the order of an epoch, the noise of a step and the augmentation of a batch
each have a seed derived from the run's seed and their own number. A run resumed at step 1000 therefore sees what an
uninterrupted one sees, on every process, without any generator's state in the checkpoint.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derived_seed(seed: int, purpose: str, *numbers: int) -> int:
    """A 63-bit seed, unrelated to that of any other purpose or number."""
    text = "/".join([str(seed), purpose, *map(str, numbers)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator_for(seed: int, purpose: str, *numbers: int, device: torch.device | None = None) -> torch.Generator:
    """A torch generator with the derived seed."""
    generator = torch.Generator(device or torch.device("cpu"))
    generator.manual_seed(derived_seed(seed, purpose, *numbers))
    return generator


def seed_globals(seed: int, purpose: str, *numbers: int) -> None:
    """Seed the generators of torch, numpy and Python that library code reaches for by itself (dropout above all)."""
    derived = derived_seed(seed, purpose, *numbers)
    # Not torch.manual_seed: where a GPU library is not in use yet, each call of it queues a formatted stack for later.
    torch.default_generator.manual_seed(derived)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch gives it no types
        torch.cuda.manual_seed_all(derived)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(derived)
    np.random.seed(derived % 2**32)
    random.seed(derived)


@contextmanager
def preserved_global_rng() -> Iterator[None]:
    """Give the caller's global generators back as they were."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
