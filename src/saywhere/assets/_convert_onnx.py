"""The child process of `conversion` for ONNX: python -m saywhere.assets._convert_onnx FROM.onnx TO.safetensors.

Exporting from PyTorch keeps the names of most weights, but a linear layer's is turned around and renamed
`onnx::MatMul_…`. Its bias keeps its name, so the weight gets its own back from the sum that the product goes into.
"""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from saywhere.assets._convert import packed

_NAMELESS = "onnx::"
_BIAS = ".bias"


def linear_names(graph: onnx.GraphProto) -> dict[str, str]:
    """The nameless weights of linear layers, each with the name it had in PyTorch."""
    constants = {constant.name for constant in graph.initializer}
    product_of = {
        node.output[0]: node.input[1]
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in constants and node.input[1].startswith(_NAMELESS)
    }
    names = {}
    for node in graph.node:
        weights = [product_of[one] for one in node.input if one in product_of]
        biases = [one for one in node.input if one in constants and one.endswith(_BIAS)]
        if node.op_type == "Add" and len(weights) == len(biases) == 1:
            names[weights[0]] = biases[0].removesuffix(_BIAS) + ".weight"
    return names


def main(source: str, target: str) -> str:
    """Convert; an empty answer is success, anything else says what is wrong with the file."""
    graph = onnx.load(source, load_external_data=False).graph
    if not graph.initializer:
        return "it holds no weights"
    names = linear_names(graph)
    tensors: dict[str, Tensor] = {}
    for constant in graph.initializer:
        if constant.data_location == onnx.TensorProto.EXTERNAL:
            return f"{constant.name!r} lies in another file"
        tensor = torch.from_numpy(numpy_helper.to_array(constant).copy())
        name = names.get(constant.name, constant.name)
        if name in tensors:
            return f"{name!r} occurs twice"
        tensors[name] = tensor.T if constant.name in names else tensor
    Path(target).write_bytes(packed(tensors))
    return ""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) or 0)
