"""Checkpoints: whole or absent, and believed only if untouched."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn

from saywhere.core.errors import InvalidFile
from saywhere.learn.checkpoint import (
    Snapshot,
    list_checkpoints,
    load_checkpoint,
    load_weights,
    newest_intact,
    remove_old,
    remove_partial,
    save_checkpoint,
    step_of,
    verify_checkpoint,
)
from saywhere.learn.optimizer import make_optimizer, optimizer_tensors, restore_optimizer
from saywhere.learn.recipe import Train


def _snapshot(value: float = 1.0, size: int = 3) -> Snapshot:
    weights = {"w": torch.full((size,), value), "b": torch.zeros(1, dtype=torch.int64)}
    return Snapshot(weights, {"w": weights["w"] / 2}, {"w:exp_avg": weights["w"] * 3}, {"optimizer": "Adam"}, {"n": 1})


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 40, _snapshot(2.5))
    assert path == tmp_path / "step-00000040"
    assert step_of(path) == 40
    loaded = load_checkpoint(path)
    assert torch.equal(loaded.model["w"], torch.full((3,), 2.5))
    assert loaded.model["b"].dtype == torch.int64
    assert loaded.ema is not None
    assert torch.equal(loaded.ema["w"], torch.full((3,), 1.25))
    assert torch.equal(loaded.optimizer["w:exp_avg"], torch.full((3,), 7.5))
    assert (loaded.optimizer_about, loaded.trainer) == ({"optimizer": "Adam"}, {"n": 1})


def test_the_manifest_has_size_and_digest_of_every_file(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 1, _snapshot())
    files = json.loads((path / "manifest.json").read_text())["files"]
    assert set(files) == {p.name for p in path.iterdir()} - {"manifest.json"}
    assert all(files[p]["bytes"] == (path / p).stat().st_size and len(files[p]["sha256"]) == 64 for p in files)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _forget_the_model(manifest: Path) -> None:
    known = json.loads(manifest.read_text())
    del known["files"]["model.safetensors"]
    manifest.write_text(json.dumps(known))


@pytest.mark.parametrize(
    ("name", "damage", "reason"),
    [
        ("model.safetensors", _cut, r"torn: model\.safetensors has \d+ bytes, not \d+"),
        ("ema.safetensors", _cut, r"torn: ema\.safetensors"),
        ("trainer.json", _cut, r"torn: trainer\.json"),
        ("optimizer.safetensors", _flip, r"altered: optimizer\.safetensors is not what was written"),
        ("model.safetensors", _flip, "altered: model.safetensors"),
        ("optimizer.json", Path.unlink, "has no optimizer.json"),
        ("ema.safetensors", Path.unlink, "has no ema.safetensors"),
        ("manifest.json", Path.unlink, "has no manifest.json"),
        ("manifest.json", _cut, "manifest.json is damaged"),
        ("manifest.json", _forget_the_model, "has no model.safetensors"),
        ("manifest.json", lambda p: p.write_text("[]"), "manifest.json is damaged"),
        ("manifest.json", lambda p: p.write_bytes(b"\xff"), "manifest.json is damaged"),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_is_taken(
    tmp_path: Path, name: str, damage: Callable[[Path], object], reason: str
) -> None:
    good = save_checkpoint(tmp_path, 9, _snapshot())
    bad = save_checkpoint(tmp_path, 10, _snapshot())
    damage(bad / name)
    with pytest.raises(InvalidFile, match=reason):
        verify_checkpoint(bad)
    with pytest.raises(InvalidFile, match=reason):
        load_checkpoint(bad)
    newest, damaged = newest_intact(tmp_path)
    assert newest == good
    assert [error.path for error in damaged] == [str(bad)]


def test_any_altered_byte_is_noticed(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 1, _snapshot())
    for file in sorted(path.iterdir()):
        if file.name == "manifest.json":
            continue
        content = file.read_bytes()
        for position in range(0, len(content), 37):
            changed = bytearray(content)
            changed[position] ^= 0x10
            file.write_bytes(changed)
            with pytest.raises(InvalidFile, match="altered"):
                verify_checkpoint(path)
        file.write_bytes(content)
    verify_checkpoint(path)


def test_steps_are_ordered_as_numbers_and_other_names_are_left_alone(tmp_path: Path) -> None:
    for step in (100_000_000, 99_999_999, 5):
        save_checkpoint(tmp_path, step, _snapshot())
    (tmp_path / "step-7").mkdir()
    (tmp_path / ".step-00000006.1.new.part").mkdir()
    assert [step_of(path) for path in list_checkpoints(tmp_path)] == [5, 99_999_999, 100_000_000]
    assert list_checkpoints(tmp_path / "nowhere") == []
    with pytest.raises(InvalidFile, match="is not the folder of a checkpoint"):
        step_of(tmp_path / "step-7")


def test_half_written_checkpoints_are_never_seen_and_can_be_cleared(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 1, _snapshot())
    left = tmp_path / ".step-00000002.123.new.part"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    assert newest_intact(tmp_path) == (tmp_path / "step-00000001", [])
    remove_partial(tmp_path)
    assert not left.exists()


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    for step in range(1, 7):
        save_checkpoint(tmp_path, step, _snapshot())
    remove_old(tmp_path, keep=2, best_step=3)
    assert [step_of(path) for path in list_checkpoints(tmp_path)] == [3, 5, 6]


def test_a_checkpoint_replaces_one_of_the_same_step(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 1, _snapshot(1.0))
    path = save_checkpoint(tmp_path, 1, _snapshot(2.0))
    assert float(load_checkpoint(path).model["w"][0]) == 2.0
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]


@contextmanager
def _files_no_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_and_leaves_the_older_checkpoints(tmp_path: Path) -> None:
    good = save_checkpoint(tmp_path, 1, _snapshot())
    with (
        _files_no_larger_than(50_000),
        pytest.raises(InvalidFile, match="step-00000002: the checkpoint cannot be written"),
    ):
        save_checkpoint(tmp_path, 2, _snapshot(size=100_000))
    assert [p.name for p in tmp_path.iterdir()] == [good.name]
    verify_checkpoint(good)


class _Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(4, 3)
        self.out = nn.Linear(3, 4, bias=False)
        self.out.weight = self.words.weight


def test_tied_weights_come_back_tied(tmp_path: Path) -> None:
    model, other = _Tied(), _Tied()
    settings = Train(batch_size=1, lr=0.1, steps=1)
    optimizer = make_optimizer(model, settings)
    model.out(model.words.weight).sum().backward()
    optimizer.step()
    tensors, about = optimizer_tensors(optimizer)
    path = save_checkpoint(tmp_path, 1, Snapshot(model.state_dict(), None, tensors, about, {}))
    loaded = load_checkpoint(path)
    load_weights(other, loaded.model, path)
    assert other.out.weight is other.words.weight
    assert torch.equal(other.words.weight, model.words.weight)
    assert loaded.ema is None


def test_the_optimizer_comes_back_to_the_bit(tmp_path: Path) -> None:
    torch.manual_seed(0)
    settings = Train(batch_size=1, lr=0.1, steps=1, weight_decay=0.1)
    models = [nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)) for _ in range(2)]
    models[0][0].weight.requires_grad_(False)
    models[1][0].weight.requires_grad_(False)
    first, second = (make_optimizer(model, settings) for model in models)
    data = torch.randn(5, 3)
    for _ in range(3):
        first.zero_grad()
        models[0](data).square().sum().backward()
        first.step()
    tensors, about = optimizer_tensors(first)
    loaded = load_checkpoint(
        save_checkpoint(tmp_path, 3, Snapshot(models[0].state_dict(), None, tensors, json.loads(json.dumps(about)), {}))
    )
    load_weights(models[1], loaded.model, "saved")
    restore_optimizer(second, loaded.optimizer, loaded.optimizer_about, "saved")
    for model, optimizer in zip(models, (first, second), strict=True):
        optimizer.zero_grad()
        model(data).square().sum().backward()
        optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True))


def test_an_optimizer_of_another_kind_or_model_is_refused() -> None:
    model, settings = nn.Linear(2, 1), Train(batch_size=1, lr=0.1, steps=1)
    tensors, about = optimizer_tensors(make_optimizer(model, settings))
    adam = make_optimizer(model, Train(batch_size=1, lr=0.1, steps=1, optimizer="adam"))
    with pytest.raises(InvalidFile, match="holds AdamW for other parameters than this model's Adam"):
        restore_optimizer(adam, tensors, about, "saved")


def test_weights_that_do_not_fit_are_named() -> None:
    saved = nn.ModuleDict({"words": nn.Embedding(10, 2), "old": nn.Linear(1, 1)}).state_dict()
    model = nn.ModuleDict({"words": nn.Embedding(9, 2), "new": nn.Linear(1, 1)})
    with pytest.raises(InvalidFile) as caught:
        load_weights(model, saved, "run/step-1")
    message = str(caught.value)
    assert message.startswith(
        "run/step-1: the weights do not fit the model: new.weight is missing; new.bias is missing"
    )
    assert "old.weight is unknown to the model" in message
    assert "and 1 more (were they made with another [model] section or another vocabulary?)" in message
    with pytest.raises(InvalidFile, match=r"words\.weight is \(10, 2\), the model needs \(9, 2\)"):
        load_weights(nn.ModuleDict({"words": nn.Embedding(9, 2)}), {"words.weight": saved["words.weight"]}, "run")
