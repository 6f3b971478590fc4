"""A TensorFlow Lite file as a torch network: the convolutional part of it, up to what only TensorFlow Lite knows.

    network = TFLiteGraph(read_graph(Path("detector.tflite")))
    network(photos)       # (n, height, width, 3) bytes → what goes into the file's last, custom operation

Weights in a byte each become floats. What lies between layers stays a float, where TensorFlow Lite rounds it to 256
steps, so results differ by that rounding. Operations that detectors do not have are refused by name. `without_custom`
gives the same part as a file, for runtimes that read such files themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core import InvalidFile
from saywhere.core.errors import require

_CUSTOM = "CUSTOM"
_SAME = 0
"""TensorFlow's padding that keeps the size, in the file's numbers."""
_OUTPUTS, _OPERATORS = 8, 10
"""Where the table of a graph keeps these two lists."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One step: the kind by TensorFlow Lite's name, the numbers of its tensors, and its options by name."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """What a file holds.

    constants: by the tensor's number, as real numbers. scale, zero: a byte v of a photo means (v - zero) × scale.
    outputs: the tensors that the last, custom operation reads, constants among them, or the file's own outputs if there
    is no such operation.
    """

    operations: tuple[Operation, ...]
    constants: dict[int, NDArray[Any]]
    input: int
    input_px: tuple[int, int]
    scale: float
    zero: float
    outputs: tuple[int, ...]


def read_graph(path: Path) -> Graph:
    """The graph of a file; InvalidFile says what it has that is not understood."""
    tflite, content = _opened(path)
    model = tflite.Model.GetRootAsModel(content, 0)
    graph = model.Subgraphs(0)
    steps = [_operation(tflite, model, graph.Operators(number), path) for number in range(graph.OperatorsLength())]
    outputs = tuple(int(one) for one in graph.OutputsAsNumpy())
    if steps[-1].kind == _CUSTOM:
        outputs = steps.pop().inputs
    (given,) = (int(one) for one in graph.InputsAsNumpy())
    tensor = graph.Tensors(given)
    _, height, width, _ = tensor.ShapeAsNumpy().tolist()
    kept = tensor.Quantization()
    scale, zero = float(kept.ScaleAsNumpy()[0]), float(kept.ZeroPointAsNumpy()[0])
    return Graph(tuple(steps), _constants(tflite, model, graph), given, (height, width), scale, zero, outputs)


def without_custom(path: Path) -> bytes:
    """The file without its last, custom operation: it gives what that would read and is computed."""
    tflite, content = _opened(path)
    edited = bytearray(content)
    model = tflite.Model.GetRootAsModel(edited, 0)
    graph, last = model.Subgraphs(0), model.Subgraphs(0).OperatorsLength() - 1
    operation = graph.Operators(last)
    if _operation(tflite, model, operation, path).kind != _CUSTOM:
        return content
    computed = {int(one) for number in range(last) for one in graph.Operators(number).OutputsAsNumpy()}
    wanted = [int(one) for one in operation.InputsAsNumpy() if int(one) in computed]
    if len(wanted) > graph.OutputsLength():
        raise InvalidFile(path, f"has room for {graph.OutputsLength()} outputs, not for {len(wanted)}")
    # Both lists are shortened where they stand: a count, then its entries.
    table = graph._tab
    operators, outputs = (table.Vector(table.Offset(field)) for field in (_OPERATORS, _OUTPUTS))
    struct.pack_into("<I", edited, operators - 4, last)
    struct.pack_into(f"<I{len(wanted)}i", edited, outputs - 4, len(wanted), *wanted)
    return bytes(edited)


def _opened(path: Path) -> tuple[Any, bytes]:
    tflite = require("tflite", needed_for="reading a TensorFlow Lite file", extra="models")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
    if content[4:8] != b"TFL3":
        raise InvalidFile(path, "is no TensorFlow Lite file")
    return tflite, content


_OPTIONS = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "ADD": "AddOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "CONCATENATION": "ConcatenationOptions",
}
_READ = ("Padding", "StrideH", "StrideW", "FilterHeight", "FilterWidth", "FusedActivationFunction", "Axis")


def _operation(tflite: Any, model: Any, operation: Any, path: Path) -> Operation:
    code = model.OperatorCodes(operation.OpcodeIndex())
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    kind = tflite.opcode2name(number)
    if kind not in _DO | _SHAPED and kind != _CUSTOM:
        raise InvalidFile(path, f"has the operation {kind}, which is not understood")
    options: dict[str, int] = {}
    if kind in _OPTIONS:
        table, held = operation.BuiltinOptions(), getattr(tflite, _OPTIONS[kind])()
        held.Init(table.Bytes, table.Pos)
        options = {name: int(getattr(held, name)()) for name in _READ if hasattr(held, name)}
    inputs, outputs = operation.InputsAsNumpy(), operation.OutputsAsNumpy()
    return Operation(kind, tuple(map(int, inputs)), tuple(map(int, outputs)), options)


def _constants(tflite: Any, model: Any, graph: Any) -> dict[int, NDArray[Any]]:
    kinds = {
        tflite.TensorType.FLOAT32: np.float32,
        tflite.TensorType.INT32: np.int32,
        tflite.TensorType.INT8: np.int8,
        tflite.TensorType.UINT8: np.uint8,
    }
    held = {}
    for number in range(graph.TensorsLength()):
        tensor = graph.Tensors(number)
        content = model.Buffers(tensor.Buffer())
        if tensor.Type() not in kinds or not content.DataLength():
            continue
        values = np.frombuffer(content.DataAsNumpy().tobytes(), kinds[tensor.Type()])
        values = values.reshape(tensor.ShapeAsNumpy())
        held[number] = _real(values, tensor.Quantization())
    return held


def _real(values: NDArray[Any], quantization: Any) -> NDArray[Any]:
    """Numbers stored in bytes or integers with a scale, as the real numbers that they stand for."""
    if quantization is None or not quantization.ScaleLength():
        return values
    shape = [1] * values.ndim
    if quantization.ScaleLength() > 1:
        shape[quantization.QuantizedDimension()] = -1
    scale, zero = quantization.ScaleAsNumpy().reshape(shape), quantization.ZeroPointAsNumpy().reshape(shape)
    real: NDArray[Any] = ((values.astype(np.float64) - zero) * scale).astype(np.float32)
    return real


class TFLiteGraph(nn.Module):
    """Runs a graph. Maps are (n, channels, height, width) inside, and turned around where the file reshapes them."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        for step in graph.operations:
            if "CONV" in step.kind:
                for number in step.inputs[1:]:
                    self.register_buffer(f"t{number}", _laid_out(graph.constants[number], step.kind), persistent=False)

    def forward(self, photos: Tensor) -> tuple[Tensor, ...]:
        """(n, height, width, 3) bytes. Gives what is computed of the graph's outputs."""
        graph = self.graph
        values = {graph.input: (photos.permute(0, 3, 1, 2).float() - graph.zero) * graph.scale}
        for step in graph.operations:
            (output,) = step.outputs
            values[output] = self._done(step, values)
        return tuple(values[one] for one in graph.outputs if one in values)

    def _done(self, step: Operation, values: dict[int, Tensor]) -> Tensor:
        computed = [values[one] for one in step.inputs if one in values]
        if "CONV" in step.kind:
            computed += [getattr(self, f"t{one}") for one in step.inputs[1:]]
        elif len(computed) < len(step.inputs):
            shape = self.graph.constants[step.inputs[-1]].tolist()
            return _SHAPED[step.kind](computed[0], shape)
        return _activated(_DO[step.kind](step, *computed), step.options.get("FusedActivationFunction", 0))


def _laid_out(constant: NDArray[Any], kind: str) -> Tensor:
    """Kernels as torch wants them: (out, in, height, width), and (channels, 1, height, width) of depthwise ones."""
    tensor = torch.from_numpy(constant.copy())
    if constant.ndim != 4:
        return tensor
    return (
        tensor.permute(3, 0, 1, 2).contiguous()
        if kind == "DEPTHWISE_CONV_2D"
        else tensor.permute(0, 3, 1, 2).contiguous()
    )


def _activated(value: Tensor, function: int) -> Tensor:
    if function == 1:
        return functional.relu(value)
    return functional.relu6(value) if function == 3 else value


def _padded(value: Tensor, step: Operation, kernel: tuple[int, int], fill: float = 0.0) -> Tensor:
    """With what TensorFlow puts around a map, which is one more on the right and below where it is odd."""
    if step.options["Padding"] != _SAME:
        return value
    sides: list[int] = []
    for size, side, stride in zip(value.shape[2:], kernel, _strides(step), strict=True):
        wanted = max((-(-size // stride) - 1) * stride + side - size, 0)
        sides = [wanted // 2, wanted - wanted // 2, *sides]
    return functional.pad(value, sides, value=fill) if any(sides) else value


def _strides(step: Operation) -> tuple[int, int]:
    return step.options["StrideH"], step.options["StrideW"]


def _convolved(step: Operation, value: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    padded = _padded(value, step, (kernel.shape[2], kernel.shape[3]))
    groups = len(kernel) if step.kind == "DEPTHWISE_CONV_2D" else 1
    return functional.conv2d(padded, kernel, bias, _strides(step), groups=groups)


def _pooled(step: Operation, value: Tensor) -> Tensor:
    kernel = step.options["FilterHeight"], step.options["FilterWidth"]
    return functional.max_pool2d(_padded(value, step, kernel, -torch.inf), kernel, _strides(step))


def _resized(value: Tensor, size: list[int]) -> Tensor:
    return functional.interpolate(value, (size[0], size[1]), mode="nearest")


def _reshaped(value: Tensor, shape: list[int]) -> Tensor:
    channels_last = value.permute(0, 2, 3, 1) if value.ndim == 4 else value
    return channels_last.reshape(len(value), *shape[1:])


def _same(_: Operation, value: Tensor) -> Tensor:
    return value


_SHAPED: dict[str, Callable[[Tensor, list[int]], Tensor]] = {"RESIZE_NEAREST_NEIGHBOR": _resized, "RESHAPE": _reshaped}
_DO: dict[str, Callable[..., Tensor]] = {
    "CONV_2D": _convolved,
    "DEPTHWISE_CONV_2D": _convolved,
    "MAX_POOL_2D": _pooled,
    "ADD": lambda _, one, other: one + other,
    "CONCATENATION": lambda step, *parts: torch.cat(parts, step.options["Axis"]),
    "LOGISTIC": lambda _, value: value.sigmoid(),
    "QUANTIZE": _same,
    "DEQUANTIZE": _same,
}
