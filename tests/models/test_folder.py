"""Folders of weights: mapped, in the type they were saved with, and beside a base that is named and not copied."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from saywhere.assets.checkpoint import CONFIG, BaseModel
from saywhere.core import InvalidFile
from saywhere.models.folder import WEIGHTS, built, load_part, save_part

KIND = "test"


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    save_part(tmp_path / "base", KIND, {"size": 4}, network().state_dict())
    return tmp_path / "base"


def test_half_stays_half_in_the_file_and_becomes_single_in_a_network(tmp_path: Path) -> None:
    save_part(tmp_path, KIND, {}, network().state_dict(), half=True)
    part = load_part(tmp_path, KIND)
    module = built(lambda: network(seed=1), part)
    assert {tensor.dtype for tensor in part.stored.values()} == {torch.float16}
    assert {tensor.dtype for tensor in module.state_dict().values()} == {torch.float32}
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, network().state_dict()[name].half().float())
        assert torch.equal(tensor, part.tensors[name])


def test_bfloat16_is_kept(tmp_path: Path) -> None:
    save_part(tmp_path, KIND, {}, network().to(torch.bfloat16).state_dict())
    assert {tensor.dtype for tensor in load_part(tmp_path, KIND).stored.values()} == {torch.bfloat16}


@pytest.mark.skipif(sys.platform != "linux", reason="the maps of a process are a file on Linux only")
def test_weights_are_mapped_and_writing_to_them_leaves_the_file_alone(base: Path) -> None:
    part = load_part(base, KIND)
    assert str(base / WEIGHTS) in Path("/proc/self/maps").read_text()
    part.stored["0.weight"].zero_()
    again = load_part(base, KIND)
    assert torch.equal(again.tensors["0.weight"], network().state_dict()["0.weight"])


def _changed(base: Path, folder: Path, source: str | Path) -> None:
    """A model that differs from its base in one layer."""
    tensors = {name: tensor for name, tensor in network(seed=1).state_dict().items() if name.startswith("1.")}
    reference = BaseModel(str(source), BaseModel.of(base).sha256)
    save_part(folder, KIND, {"size": 4}, tensors, base=reference)


@pytest.mark.parametrize("beside", [False, True])
def test_a_model_beside_its_base_holds_only_what_is_its_own(base: Path, tmp_path: Path, beside: bool) -> None:
    _changed(base, tmp_path / "mine", "../base" if beside else base)
    part = load_part(tmp_path / "mine", KIND)
    assert part.base is not None
    below = built(lambda: network(seed=2), load_part(part.base.open(part.folder).folder, KIND))
    module = built(lambda: below, part)
    for name, tensor in module.state_dict().items():
        seed = 1 if name.startswith("1.") else 0
        assert torch.equal(tensor, network(seed).state_dict()[name])


def test_a_base_that_is_another_one_now_is_refused(base: Path, tmp_path: Path) -> None:
    _changed(base, tmp_path / "mine", base)
    save_part(base, KIND, {"size": 4}, network(seed=5).state_dict())
    part = load_part(tmp_path / "mine", KIND)
    assert part.base is not None
    with pytest.raises(InvalidFile, match="is not the base that this model was made from"):
        part.base.open()


def test_a_part_that_its_module_has_no_room_for_is_refused(base: Path, tmp_path: Path) -> None:
    _changed(base, tmp_path / "mine", base)
    with pytest.raises(InvalidFile, match="does not hold the parameters"):
        built(lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 9)), load_part(tmp_path / "mine", KIND))


@pytest.mark.parametrize("named", ["", {"source": "a/b"}, {"source": "a/b", "sha256": "0", "more": 1}])
def test_a_base_that_is_not_named_in_full_is_refused(base: Path, named: object) -> None:
    content = json.loads((base / CONFIG).read_text())
    (base / CONFIG).write_text(json.dumps(content | {"base": named}))
    with pytest.raises(InvalidFile, match="does not name its base"):
        load_part(base, KIND)


def test_matrices_in_a_byte_a_number_are_off_by_half_a_step_at_most(tmp_path: Path) -> None:
    large = nn.Linear(256, 64)
    save_part(tmp_path, KIND, {}, large.state_dict(), int8=True)
    module = built(lambda: nn.Linear(256, 64), load_part(tmp_path, KIND))
    steps = large.weight.abs().amax(dim=1, keepdim=True) / 127
    assert ((module.weight - large.weight).abs() <= 0.5001 * steps).all()
    assert torch.equal(module.bias, large.bias.half().float())
    assert (tmp_path / WEIGHTS).stat().st_size < 0.3 * 4 * 256 * 64


def test_steps_without_their_numbers_are_refused(tmp_path: Path) -> None:
    save_part(tmp_path, KIND, {}, {"lost.step": torch.ones(2)})
    with pytest.raises(InvalidFile, match="lost"):
        load_part(tmp_path, KIND)
