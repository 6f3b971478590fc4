"""Parameter groups, and checkpoints without frozen parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.learn import Recipe, find_checkpoint, load_run, make_task, train
from saywhere.learn.optimizer import make_optimizer
from saywhere.learn.randomness import generator_for, seed_globals
from tests.learn.conftest import same_end, stop_at

Tiny = Callable[..., Recipe]


def _settings(tiny: Tiny, *overrides: str) -> dict[str, tuple[float, float]]:
    """For each parameter of a small network: its rate, relative to train.lr, and its weight decay."""
    model = nn.ModuleDict({"eye": nn.Linear(2, 2), "eyes": nn.Linear(2, 2), "norm": nn.LayerNorm(2)})
    optimizer = make_optimizer(model, tiny("train.weight_decay=0.1", *overrides).train)
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 6
    return {n: (g["lr_ratio"], g["weight_decay"]) for g in optimizer.param_groups for n in g["names"]}


def test_a_group_has_its_own_rate_and_decay(tiny: Tiny) -> None:
    found = _settings(tiny, 'train.groups=[{modules=["eye"], lr=0.001}, {modules=["norm.bias"], weight_decay=0.0}]')
    assert found["eye.weight"] == found["eye.bias"] == pytest.approx((0.1, 0.1))
    assert found["eyes.weight"] == found["norm.weight"] == (1.0, 0.1)
    assert found["norm.bias"] == (1.0, 0.0)


def test_norms_and_biases_need_not_decay(tiny: Tiny) -> None:
    found = _settings(tiny, "train.decay_norms_and_biases=false")
    assert {name for name, (_, decay) in found.items() if decay} == {"eye.weight", "eyes.weight"}


def test_a_group_of_an_unknown_module_is_refused(tiny: Tiny) -> None:
    with pytest.raises(UnknownName, match=r"'eyse'.*Did you mean 'eye' or 'eyes'"):
        _settings(tiny, 'train.groups=[{modules=["eyse"], lr=0.1}]')


def test_a_step_moves_each_group_at_its_own_rate_and_schedule(tiny: Tiny, tmp_path: Path) -> None:
    """Adam's first step moves every weight by its rate: 0.01 · 1/3 of the warm-up, and ten times less for the first."""
    recipe = tiny(
        'train.groups=[{modules=["0"], lr=0.001}]', "train.weight_decay=0.0", "data.items=4", "train.epochs=1"
    )
    recipe = recipe.with_overrides(["train.optimizer=adam", "model.dropout=0.0"])
    train(recipe, tmp_path)
    end = load_file(find_checkpoint(tmp_path, "last") / "model.safetensors")
    seed_globals(recipe.seed, "build")
    start = make_task(recipe).build(generator_for(recipe.seed, "build")).state_dict()
    for name, rate in (("0.weight", 0.001), ("4.weight", 0.01)):
        moved = (end[name] - start[name]).abs()
        torch.testing.assert_close(moved, torch.full_like(moved, rate / 3), rtol=1e-3, atol=0)


GROUPS = 'train.groups=[{modules=["4"], lr=0.02, weight_decay=0.1}]'
FROZEN = ("model.frozen=true", "model.batch_norm=true", "checkpoint.trainable_only=true", GROUPS)


def test_resumed_without_frozen_parameters_equals_never_stopped(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(*FROZEN), tmp_path / "whole")
    assert train(tiny(*FROZEN), tmp_path / "cut", on_event=stop_at(7)).status == "interrupted"
    assert train(tiny(*FROZEN), tmp_path / "cut").status == "finished"
    assert same_end(tmp_path / "whole", tmp_path / "cut")
    path = find_checkpoint(tmp_path / "cut", "last")
    for name in ("model", "ema"):
        kept = load_file(path / f"{name}.safetensors")
        assert "4.weight" in kept
        assert "1.running_mean" in kept
        assert not any(one.startswith("0.") for one in kept)


def test_a_run_without_frozen_parameters_gives_its_model_back(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(*FROZEN), tmp_path / "part")
    train(tiny(*FROZEN[:2], GROUPS), tmp_path / "full")
    part, full = (load_run(tmp_path / name, "last").model.state_dict() for name in ("part", "full"))
    assert all(torch.equal(part[name], full[name]) for name in full)
    again = tiny(*FROZEN, f'train.init_from="{tmp_path / "part"}"', "train.epochs=1")
    assert train(again, tmp_path / "again").status == "finished"


def test_other_frozen_parameters_than_before_are_refused(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(*FROZEN), tmp_path / "run")
    with pytest.raises(InvalidFile, match="other frozen parameters"):
        load_run(tmp_path / "run", overrides=["seed=4"])


def test_a_full_checkpoint_still_has_to_be_complete(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(*FROZEN), tmp_path / "run")
    kept = load_file(find_checkpoint(tmp_path / "run", "last") / "model.safetensors")
    save_file(kept, tmp_path / "part.safetensors")
    with pytest.raises(InvalidFile, match=r"0\.weight is missing"):
        train(tiny(*FROZEN, f'train.init_from="{tmp_path / "part.safetensors"}"'), tmp_path / "other")
