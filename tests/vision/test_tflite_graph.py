"""A TensorFlow Lite file as a torch network: a small one, written here, whose results can be reckoned by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from saywhere.core import InvalidFile

tflite = pytest.importorskip("tflite")
flatbuffers = pytest.importorskip("flatbuffers")

from saywhere.vision.tflite_graph import TFLiteGraph, read_graph, without_custom  # noqa: E402

CONV, DEPTHWISE, POOL, RESHAPE, CUSTOM, FLOOR = 3, 4, 17, 22, 32, 8
INT8, INT32, FLOAT32, UINT8 = (getattr(tflite.TensorType, name) for name in ("INT8", "INT32", "FLOAT32", "UINT8"))


class Writer:
    """Writes such a file: tensors first, then operations on them, by number."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1024)
        self.buffers, self.tensors, self.operations = [self._buffer(b"")], list[int](), list[int]()
        self.codes = list[int]()

    def _buffer(self, content: bytes) -> int:
        data = self.builder.CreateByteVector(content) if content else 0
        tflite.BufferStart(self.builder)
        if content:
            tflite.BufferAddData(self.builder, data)
        return int(tflite.BufferEnd(self.builder))

    def _vector(self, start: Any, values: Sequence[int], put: str) -> int:
        start(self.builder, len(values))
        for value in reversed(values):
            getattr(self.builder, put)(value)
        return int(self.builder.EndVector())

    def tensor(
        self, shape: Sequence[int], kind: int, value: NDArray[Any] | None = None, scale: float = 0.0, zero: int = 0
    ) -> int:
        if value is not None:
            self.buffers.append(self._buffer(value.tobytes()))
        sides = self._vector(tflite.TensorStartShapeVector, shape, "PrependInt32")
        kept = 0
        if scale:
            scales = self._vector(tflite.QuantizationParametersStartScaleVector, [scale], "PrependFloat32")  # type: ignore[list-item]
            zeros = self._vector(tflite.QuantizationParametersStartZeroPointVector, [zero], "PrependInt64")
            tflite.QuantizationParametersStart(self.builder)
            tflite.QuantizationParametersAddScale(self.builder, scales)
            tflite.QuantizationParametersAddZeroPoint(self.builder, zeros)
            kept = tflite.QuantizationParametersEnd(self.builder)
        name = self.builder.CreateString(f"tensor {len(self.tensors)}")
        tflite.TensorStart(self.builder)
        tflite.TensorAddName(self.builder, name)
        tflite.TensorAddShape(self.builder, sides)
        tflite.TensorAddType(self.builder, kind)
        tflite.TensorAddBuffer(self.builder, 0 if value is None else len(self.buffers) - 1)
        if kept:
            tflite.TensorAddQuantization(self.builder, kept)
        self.tensors.append(tflite.TensorEnd(self.builder))
        return len(self.tensors) - 1

    def operation(
        self, code: int, inputs: Sequence[int], outputs: Sequence[int], options: int = 0, kind: int = 0
    ) -> None:
        read = self._vector(tflite.OperatorStartInputsVector, inputs, "PrependInt32")
        made = self._vector(tflite.OperatorStartOutputsVector, outputs, "PrependInt32")
        tflite.OperatorStart(self.builder)
        tflite.OperatorAddOpcodeIndex(self.builder, len(self.codes))
        tflite.OperatorAddInputs(self.builder, read)
        tflite.OperatorAddOutputs(self.builder, made)
        if options:
            tflite.OperatorAddBuiltinOptionsType(self.builder, kind)
            tflite.OperatorAddBuiltinOptions(self.builder, options)
        self.operations.append(tflite.OperatorEnd(self.builder))
        self.codes.append(code)

    def convolution(self, stride: int, activation: int = 0) -> int:
        tflite.Conv2DOptionsStart(self.builder)
        tflite.Conv2DOptionsAddPadding(self.builder, 0)
        tflite.Conv2DOptionsAddStrideH(self.builder, stride)
        tflite.Conv2DOptionsAddStrideW(self.builder, stride)
        tflite.Conv2DOptionsAddFusedActivationFunction(self.builder, activation)
        return int(tflite.Conv2DOptionsEnd(self.builder))

    def write(self, path: Path, inputs: Sequence[int], outputs: Sequence[int]) -> Path:
        def table(start: Any, tables: Sequence[int]) -> int:
            return self._vector(start, tables, "PrependUOffsetTRelative")

        codes = []
        for code in self.codes:
            tflite.OperatorCodeStart(self.builder)
            tflite.OperatorCodeAddDeprecatedBuiltinCode(self.builder, code)
            tflite.OperatorCodeAddBuiltinCode(self.builder, code)
            codes.append(tflite.OperatorCodeEnd(self.builder))
        tensors, steps = (
            table(tflite.SubGraphStartTensorsVector, self.tensors),
            table(tflite.SubGraphStartOperatorsVector, self.operations),
        )
        read = self._vector(tflite.SubGraphStartInputsVector, inputs, "PrependInt32")
        made = self._vector(tflite.SubGraphStartOutputsVector, outputs, "PrependInt32")
        tflite.SubGraphStart(self.builder)
        tflite.SubGraphAddTensors(self.builder, tensors)
        tflite.SubGraphAddInputs(self.builder, read)
        tflite.SubGraphAddOutputs(self.builder, made)
        tflite.SubGraphAddOperators(self.builder, steps)
        graph = tflite.SubGraphEnd(self.builder)
        graphs = table(tflite.ModelStartSubgraphsVector, [graph])
        kinds, held = (
            table(tflite.ModelStartOperatorCodesVector, codes),
            table(tflite.ModelStartBuffersVector, self.buffers),
        )
        tflite.ModelStart(self.builder)
        tflite.ModelAddVersion(self.builder, 3)
        tflite.ModelAddOperatorCodes(self.builder, kinds)
        tflite.ModelAddSubgraphs(self.builder, graphs)
        tflite.ModelAddBuffers(self.builder, held)
        self.builder.Finish(tflite.ModelEnd(self.builder), b"TFL3")
        path.write_bytes(bytes(self.builder.Output()))
        return path


def _small(path: Path, last: int = CUSTOM) -> Path:
    """A photo of 4 × 4 pixels, a kernel of 3 × 3 ones over red with stride 2, a bias of 1, at most 6; then reshaped."""
    writer = Writer()
    photo = writer.tensor((1, 4, 4, 3), UINT8, scale=0.5, zero=2)
    kernel = np.zeros((1, 3, 3, 3), np.int8)
    kernel[..., 0] = 4
    weights = writer.tensor(kernel.shape, INT8, kernel, scale=0.25)
    bias = writer.tensor((1,), INT32, np.array([8], np.int32), scale=0.125)
    seen = writer.tensor((1, 2, 2, 1), INT8, scale=0.1)
    writer.operation(
        CONV, [photo, weights, bias], [seen], writer.convolution(2, activation=3), tflite.BuiltinOptions.Conv2DOptions
    )
    shape = writer.tensor((3,), INT32, np.array([1, 4, 1], np.int32))
    row = writer.tensor((1, 4, 1), INT8, scale=0.1)
    writer.operation(RESHAPE, [seen, shape], [row])
    given = writer.tensor((4,), FLOAT32, np.arange(4, dtype=np.float32))
    boxes, scores = writer.tensor((1, 4), FLOAT32), writer.tensor((1, 4), FLOAT32)
    writer.operation(last, [row, given], [boxes, scores])
    return writer.write(path, [photo], [boxes, scores])


def test_bytes_are_read_as_the_numbers_they_mean_and_maps_are_padded_as_tensorflow_does(tmp_path: Path) -> None:
    graph = read_graph(_small(tmp_path / "small.tflite"))
    assert graph.input_px == (4, 4)
    network = TFLiteGraph(graph)
    photo = torch.full((2, 4, 4, 3), 2, dtype=torch.uint8)
    photo[0, 3, 3, 0] = 4
    (row,) = network(photo)
    # Padding is on the right and below alone: the last window sees 2 × 2 pixels, one of which means 1.
    torch.testing.assert_close(row[0, :, 0], torch.tensor([1.0, 1.0, 1.0, 2.0]))
    torch.testing.assert_close(row[1, :, 0], torch.ones(4))
    photo[0] = 255
    torch.testing.assert_close(network(photo)[0][0, :, 0], torch.full((4,), 6.0))


def test_what_the_last_operation_reads_is_given_and_its_constants_are_kept(tmp_path: Path) -> None:
    graph = read_graph(_small(tmp_path / "small.tflite"))
    assert graph.constants[graph.outputs[1]].tolist() == [0, 1, 2, 3]


def test_an_operation_that_is_not_understood_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="FLOOR"):
        read_graph(_small(tmp_path / "small.tflite", last=FLOOR))


def test_the_same_part_as_a_file_gives_the_same_numbers(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    path = _small(tmp_path / "small.tflite")
    cut = tmp_path / "cut.tflite"
    cut.write_bytes(without_custom(path))
    photo = np.random.default_rng(0).integers(0, 8, (1, 4, 4, 3), dtype=np.uint8)
    (by_openvino,) = openvino.Core().compile_model(openvino.Core().read_model(cut), "CPU")(photo).values()
    (by_torch,) = TFLiteGraph(read_graph(path))(torch.from_numpy(photo))
    np.testing.assert_allclose(np.asarray(by_openvino, np.float32) * 0.1, by_torch.numpy(), atol=0.051)
    assert without_custom(cut) == cut.read_bytes()


@pytest.mark.parametrize("content", [b"", b"not a model at all"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.tflite"
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match="is no TensorFlow Lite file"):
        read_graph(path)
    with pytest.raises(InvalidFile, match="cannot be read"):
        read_graph(tmp_path / "nothing.tflite")
