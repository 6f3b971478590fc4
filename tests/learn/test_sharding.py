"""A model in pieces on two processes learns what a whole one learns; its checkpoints are read anywhere."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from saywhere.core.errors import InvalidFile
from saywhere.learn import checkpoint, find_checkpoint, load_run, sharding, train
from saywhere.learn.checkpoint import load_checkpoint, verify_checkpoint
from tests.learn.conftest import run_python, steps_of
from tests.learn.sharded_tiny import FROZEN, PIECES, recipe

LAUNCHER = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two processes ran."""
    out = tmp_path_factory.mktemp("pair")
    done = run_python(*LAUNCHER, "-m", "tests.learn.sharded_tiny", str(out), timeout_s=900)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("name", ["whole", "pieces", "cut"])
def test_pieces_learn_what_the_whole_learns(tmp_path: Path, pair: Path, name: str) -> None:
    train(recipe(), tmp_path)
    alone, together = steps_of(tmp_path), steps_of(pair / name)
    assert [one["step"] for one in together] == list(range(1, 10))
    for one, two in zip(alone, together, strict=True):
        assert two["losses"] == pytest.approx(one["losses"], rel=1e-4)
        assert two["norm"] == pytest.approx(one["norm"], rel=1e-3)
    ours, theirs = (load_checkpoint(find_checkpoint(out, "last")) for out in (tmp_path, pair / name))
    for mine, other in ((ours.model, theirs.model), (ours.optimizer, theirs.optimizer)):
        assert mine.keys() == other.keys()
        for key in mine:
            torch.testing.assert_close(other[key], mine[key], atol=1e-5, rtol=1e-3)


def test_a_run_in_two_parts_is_bit_equal_to_one_that_was_never_stopped(pair: Path) -> None:
    cut, whole = (load_checkpoint(find_checkpoint(pair / name, "last")) for name in ("cut", "pieces"))
    assert all(torch.equal(cut.model[key], whole.model[key]) for key in whole.model)
    assert all(torch.equal(cut.optimizer[key], whole.optimizer[key]) for key in whole.optimizer)


def test_each_process_writes_its_piece_or_the_first_writes_all(pair: Path) -> None:
    names = {path.name for path in find_checkpoint(pair / "pieces", "last").glob("*.safetensors")}
    assert names == {f"{stem}-{rank}-of-2.safetensors" for stem in ("model", "optimizer") for rank in (0, 1)}
    names = {path.name for path in find_checkpoint(pair / "whole", "last").glob("*.safetensors")}
    assert names == {"model.safetensors", "optimizer.safetensors"}
    piece = load_file(find_checkpoint(pair / "pieces", "last") / "model-0-of-2.safetensors")
    assert piece["first.weight"].shape == (4, 3)  # of seven rows


def test_a_piece_that_is_missing_is_said(pair: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "step-00000009"
    shutil.copytree(find_checkpoint(pair / "pieces", "last"), copy)
    (copy / "model-1-of-2.safetensors").unlink()
    with pytest.raises(InvalidFile, match=r"has no model-1-of-2\.safetensors"):
        verify_checkpoint(copy)


def test_one_process_reads_pieces_and_goes_on_from_them(pair: Path) -> None:
    recipe()
    model = load_run(pair / "pieces", "last").model
    saved = load_checkpoint(find_checkpoint(pair / "pieces", "last"))
    assert all(torch.equal(tensor, saved.model[name]) for name, tensor in model.state_dict().items())
    result = train(recipe("train.steps=11"), pair / "pieces")
    assert (result.status, result.steps) == ("finished", 11)


def test_frozen_weights_may_be_left_out(pair: Path) -> None:
    saved = load_checkpoint(find_checkpoint(pair / "frozen", "last"))
    assert "first.weight" not in saved.model
    assert saved.frozen_sha256
    assert len(steps_of(pair / "frozen")) == 9
    result = train(recipe(*FROZEN, "train.steps=10"), pair / "frozen")
    assert result.steps == 10


@pytest.mark.parametrize("wrong", ["train.ema_decay=0.9", "train.precision=fp16"])
def test_what_does_not_go_with_pieces_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidFile, match="shard goes neither"):
        recipe(*PIECES, wrong)


def test_examples_run() -> None:
    for module in (sharding, checkpoint):
        assert doctest.testmod(module, extraglobs={"nn": torch.nn}).failed == 0
