"""Networks run where they run fastest: by OpenVINO if it is installed, else by torch; the same numbers to 1e-3.

OpenVINO converts a network once and keeps the result in the cache folder of assets, by what the network depends on.
From then on the network itself is not even read. Attention, too, runs by whichever way is fastest.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core import InvalidValue, UnknownName
from saywhere.core.errors import require

Runtime = Callable[[NDArray[Any]], tuple[NDArray[np.float32], ...]]
"""From a batch of inputs to the arrays that the network gives."""

RUNTIMES = ("openvino", "torch")


F32, BF16, INT8 = "f32", "bf16", "int8"
PRECISIONS = (F32, BF16, INT8)
"""int8: matrices in a byte a number with a step for each row, and what they are multiplied with in bytes, too, with a
step for each 64 numbers of a place."""
PRECISION_VARIABLE = "SAYWHERE_PRECISION"
_GROUP = 64
_SMALLEST_SIDE = 64
"""Of a matrix that is put into bytes: smaller ones take no time."""


def looking_precision(kind: str = "") -> str:
    """The precision in which an eye of ours looks at photos: $SAYWHERE_PRECISION, one of PRECISIONS; by default int8
    with OpenVINO on a processor that multiplies bytes, else f32. kind: of runtime, see `open_runtime`. What is wished
    for and would not be computed is refused."""
    wanted = os.environ.get(PRECISION_VARIABLE, "")
    if wanted and wanted not in PRECISIONS:
        raise UnknownName("precision", wanted, PRECISIONS)
    if wanted not in ("", F32) and kind == "torch":
        raise InvalidValue(f"${PRECISION_VARIABLE}", f"is {wanted!r}, which torch does not look in here", "unset it")
    if wanted == F32 or (_chosen(kind) == "torch" and not wanted):
        return F32
    able = _multiplies(wanted or INT8)
    if wanted and not able:
        raise InvalidValue(f"${PRECISION_VARIABLE}", f"is {wanted!r}, which this processor lacks", "unset it")
    return (wanted or INT8) if able else F32


def fast_precision(kind: str = "") -> str:
    """bf16 where OpenVINO runs networks on a processor that has it, else f32: for features that networks learn from.
    kind: of runtime, see `open_runtime`."""
    return BF16 if _chosen(kind) == "openvino" and _multiplies(BF16) else F32


def _multiplies(precision: str) -> bool:
    openvino = require("openvino", needed_for=f"the precision {precision!r}", extra="fast")
    return precision.upper() in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def _chosen(kind: str) -> str:
    return kind or ("openvino" if find_spec("openvino") else "torch")


def open_runtime(
    make: Callable[[], nn.Module],
    key: str,
    example: Tensor,
    cache: Path,
    kind: str = "",
    precision: str = F32,
    tflite: Callable[[], bytes] | None = None,
) -> Runtime:
    """A network that takes one tensor and gives one or several, ready to run.

    make: gives the network; not called if it was converted before. key: names all that it depends on, its shape and the
    hashes of its weights: equal keys mean equal networks. example: an input; batches of any size may follow. cache: a
    folder for what is converted. kind: one of RUNTIMES; by default the first that is installed. precision: one of
    PRECISIONS, of OpenVINO alone; bf16 and int8 take a little more than half the time of f32 where the processor has
    them, and are off by a hundredth. tflite: gives the same network as a TensorFlow Lite file, which OpenVINO reads
    instead, to compute with bytes where the file does; batches are then as large as the example.
    """
    chosen = _chosen(kind)
    if chosen not in RUNTIMES:
        raise UnknownName("runtime", chosen, RUNTIMES)
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    if chosen == "torch":
        return _by_torch(_frozen(make))

    def convert(openvino: Any) -> Any:
        made = _of_torch(_frozen(make), example) if tflite is None else _of_tflite(openvino, tflite())
        return _in_bytes(made) if precision == INT8 else made

    stored = f"{key} {tuple(example.shape)}" + (f" {INT8}" if precision == INT8 else "")
    return _by_openvino(convert, stored, cache, precision)


def _frozen(make: Callable[[], nn.Module]) -> nn.Module:
    return make().eval().requires_grad_(False)


def _by_torch(network: nn.Module) -> Runtime:
    def run(inputs: NDArray[Any]) -> tuple[NDArray[np.float32], ...]:
        with torch.inference_mode():
            given = network(torch.from_numpy(inputs))
            return tuple(out.float().numpy() for out in ((given,) if isinstance(given, Tensor) else given))

    return run


def _by_openvino(convert: Callable[[Any], Any], key: str, cache: Path, precision: str) -> Runtime:
    """convert: gives OpenVINO's model, from OpenVINO itself."""
    # Some virtual machines announce matrix units (AMX) that end the process when they are used.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    openvino = require("openvino", needed_for="the runtime 'openvino'", extra="fast")
    digest = hashlib.sha256(f"{key} {openvino.__version__}".encode()).hexdigest()
    stored = cache / f"{digest[:32]}.xml"
    if not stored.exists():
        _save(openvino, convert(openvino), stored)
    core = openvino.Core()
    how = {"INFERENCE_PRECISION_HINT": BF16 if precision == BF16 else F32}
    how |= {"DYNAMIC_QUANTIZATION_GROUP_SIZE": str(_GROUP)} if precision == INT8 else {}
    # By itself it takes every core, whatever a worker among others was told.
    how |= {"INFERENCE_NUM_THREADS": str(allowed_threads())}
    # By itself it binds its threads to the first cores, so that all workers of one thread would share a single core.
    how |= {"ENABLE_CPU_PINNING": "NO"}
    compiled: Any = core.compile_model(core.read_model(stored), "CPU", how)

    def run(inputs: NDArray[Any]) -> tuple[NDArray[np.float32], ...]:
        # The arrays are views of the compiled network's own memory, which the next run overwrites.
        return tuple(np.array(out) for out in compiled(inputs).values())

    return run


def allowed_threads() -> int:
    """Threads to compute with: as many as torch takes, and no more than $OMP_NUM_THREADS, which a worker may have been
    told after torch was imported."""
    told = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    threads = torch.get_num_threads()
    return min(threads, int(told)) if told.isdecimal() and int(told) else threads


def _of_torch(network: nn.Module, example: Tensor) -> Any:
    # Two examples, because one would be taken for a batch that is always one.
    batch = ({0: torch.export.Dim("batch")},)
    with warnings.catch_warnings(), _without_log():
        # What the two libraries deprecate and miss in each other concerns their authors.
        warnings.simplefilter("ignore", FutureWarning)
        exported = torch.export.export(network, (torch.cat([example, example]),), dynamic_shapes=batch)
        # `openvino.convert_model` would do the same, and report to its makers that it was used.
        frontend = require("openvino.frontend", needed_for="the runtime 'openvino'", extra="fast")
        decoder = require("openvino.frontend.pytorch.fx_decoder", needed_for="the runtime 'openvino'", extra="fast")
        reader = frontend.FrontEndManager().load_by_framework("pytorch")
        # The reader keeps no reference to it, so this name does.
        program = decoder.TorchFXPythonDecoder.from_exported_program(exported)
        return reader.convert(reader.load(program))


def _in_bytes(model: Any) -> Any:
    """The same model with its larger matrices in a byte a number."""
    operations = require("openvino.opset13", needed_for="the runtime 'openvino'", extra="fast")
    for product in model.get_ops():
        if product.get_type_name() != "MatMul" or product.input_value(1).get_node().get_type_name() != "Constant":
            continue
        matrix = np.array(product.input_value(1).get_node().data, np.float32)
        if matrix.ndim != 2 or min(matrix.shape) < _SMALLEST_SIDE:
            continue
        summed_over = 1 if product.get_attributes()["transpose_b"] else 0
        step = np.maximum(np.abs(matrix).max(axis=summed_over, keepdims=True), 1e-12) / np.float32(127)
        rounded = operations.constant(np.rint(matrix / step).astype(np.int8))
        spread = operations.multiply(operations.convert(rounded, F32), operations.constant(step.astype(np.float32)))
        product.input(1).replace_source_output(spread.output(0))
    model.validate_nodes_and_infer_types()
    return model


def _of_tflite(openvino: Any, content: bytes) -> Any:
    with tempfile.TemporaryDirectory(prefix="saywhere-") as folder:
        path = Path(folder) / "network.tflite"
        path.write_bytes(content)
        return openvino.Core().read_model(path)


def _save(openvino: Any, model: Any, stored: Path) -> None:
    stored.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=stored.parent) as made:
        path = Path(made) / stored.name
        openvino.save_model(model, path, compress_to_fp16=False)
        # The weights first: whoever sees the .xml finds its .bin.
        shutil.move(path.with_suffix(".bin"), stored.with_suffix(".bin"))
        path.replace(stored)


@contextmanager
def _without_log() -> Iterator[None]:
    """No warnings in the log, where OpenVINO puts whole tracebacks of operations that it does without."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None, *, causal: bool = False) -> Tensor:
    """(B, heads, n, size) from queries of that shape, keys and values (B, heads, k, size). bias: added to the scores.
    causal: each place sees itself and those before.

    In bfloat16 on a processor torch's fused kernel takes three times as long to learn through as three plain products.
    """
    if query.dtype == torch.bfloat16 and query.device.type == "cpu":
        scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-1, -2)
        scores = scores if bias is None else scores + bias.to(scores.dtype)
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return torch.softmax(scores, dim=-1).to(value.dtype) @ value
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=causal)
