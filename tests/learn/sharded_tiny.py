"""Runs of a model that two processes hold in pieces: torchrun … -m tests.learn.sharded_tiny OUT"""

from __future__ import annotations

import faulthandler
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saywhere.learn import Recipe, processes, register, train
from saywhere.learn.recipe import parse_recipe
from tests.learn.tiny import TinyRegression

RECIPE = """
name = "stack"
seed = 3
task = "tiny-stack"

[train]
steps = 9
batch_size = 7         # of 17 items: the last batch has three, of which one process gets one and the other two
accumulate = 2
lr = 0.01
clip_norm = 0.5
num_threads = 1

[data]
items = 17

[validate]
every_steps = 4
metric = "error"

[checkpoint]
every_steps = 4

[log]
plot = false
"""
SHARDED = ("train.shard=true",)
PIECES = (*SHARDED, "checkpoint.sharded=true")
FROZEN = ("model.frozen=true", "checkpoint.trainable_only=true")


class Stack(nn.Module):
    """Layers, an odd number of rows, a buffer, and a part that only some items need; it has no forward pass."""

    def __init__(self, frozen: bool) -> None:
        super().__init__()
        self.first = nn.Linear(3, 7).requires_grad_(not frozen)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(7, 7), nn.Tanh()) for _ in range(3))
        self.last, self.rare = nn.Linear(7, 1), nn.Linear(7, 1)
        self.register_buffer("seen", torch.zeros(()))

    def predict(self, x: Tensor) -> Tensor:
        states = self.first(x)
        for layer in self.layers:
            states = states + layer(states)
        out: Tensor = self.last(states)
        high = x[:, :1] > -0.3
        return torch.where(high, self.rare(states), out) if bool(high.any()) else out


class TinyStack(TinyRegression):
    """The smooth function of three numbers, learnt by a stack of layers that is not called as a module."""

    def build(self, generator: torch.Generator) -> nn.Module:
        return Stack(self.model.frozen)

    def losses(self, model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Mapping[str, Tensor]:
        assert isinstance(model, Stack)
        return {"loss": (model.predict(batch["x"]) - batch["y"]).square().mean()}

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        assert isinstance(model, Stack)
        return {"error": float((model.predict(self.inputs) - self.targets).square().mean())}


def recipe(*overrides: str) -> Recipe:
    register("tiny-stack", "tests.learn.sharded_tiny:TinyStack")
    return parse_recipe(tomllib.loads(RECIPE), "stack.toml", overrides)


def run(out: Path, name: str, overrides: Sequence[str]) -> Any:
    return train(recipe(*overrides), out / name)


def main(out: Path) -> None:
    faulthandler.enable()
    run(out, "whole", SHARDED)
    run(out, "pieces", PIECES)
    # In two parts: the second goes on from pieces.
    run(out, "cut", (*PIECES, "train.steps=5"))
    run(out, "cut", PIECES)
    run(out, "frozen", (*PIECES, *FROZEN, "train.steps=5"))
    run(out, "frozen", (*PIECES, *FROZEN))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    processes.leave_together()
