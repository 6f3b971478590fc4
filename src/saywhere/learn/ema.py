"""A moving average of the weights, often better than the weights themselves."""

from __future__ import annotations

import copy

import torch
from torch import nn


class MovingAverage:
    """model: a copy whose parameters are the average so far; its buffers are the learner's newest.

    decay: how much of the old average stays at each step. warmup: lower it at first, to min(decay, (1 + t) / (10 + t))
    at step t (from 1), or the random start would outweigh a short run.
    """

    def __init__(self, model: nn.Module, decay: float, warmup: bool) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self._decay, self._warmup = decay, warmup

    def decay_at(self, step: int) -> float:
        """How much of the old average stays at this step, from 1."""
        return min(self._decay, (1 + step) / (10 + step)) if self._warmup else self._decay

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Take in the weights that this step (from 1) made."""
        decay = self.decay_at(step)
        for average, newest in zip(self.model.parameters(), model.parameters(), strict=True):
            average.lerp_(newest, 1 - decay)
        for kept, buffer in zip(self.model.buffers(), model.buffers(), strict=True):
            kept.copy_(buffer)
