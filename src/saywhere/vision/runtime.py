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

Runtime = Callable[[NDArray[np.uint8]], tuple[NDArray[np.float32], ...]]
"""From a batch of inputs to the arrays that the network gives."""

RUNTIMES = ("openvino", "torch")


PRECISIONS = ("f32", "bf16")
PRECISION_VARIABLE = "SAYWHERE_PRECISION"


def looking_precision() -> str:
    """The precision in which an eye of ours looks at photos: $SAYWHERE_PRECISION, one of PRECISIONS; by default f32.
    bf16 is refused where it would not be computed."""
    wanted = os.environ.get(PRECISION_VARIABLE) or PRECISIONS[0]
    if wanted not in PRECISIONS:
        raise UnknownName("precision", wanted, PRECISIONS)
    if wanted != PRECISIONS[0]:
        openvino = require("openvino", needed_for=f"the precision {wanted!r}", extra="fast")
        if wanted.upper() not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise InvalidValue(f"${PRECISION_VARIABLE}", f"is {wanted!r}, which this processor lacks", "unset it")
    return wanted


def open_runtime(
    make: Callable[[], nn.Module],
    key: str,
    example: Tensor,
    cache: Path,
    kind: str = "",
    precision: str = "f32",
    tflite: Callable[[], bytes] | None = None,
) -> Runtime:
    """A network that takes one tensor and gives one or several, ready to run.

    make: gives the network; not called if it was converted before. key: names all that it depends on, its shape and the
    hashes of its weights: equal keys mean equal networks. example: an input; batches of any size may follow. cache: a
    folder for what is converted. kind: one of RUNTIMES; by default the first that is installed. precision: one of
    PRECISIONS, of OpenVINO alone; bf16 is twice as fast where the processor has it, and off by a hundredth. tflite:
    gives the same network as a TensorFlow Lite file, which OpenVINO reads instead, to compute with bytes where the file
    does; batches are then as large as the example.
    """
    chosen = kind or ("openvino" if find_spec("openvino") else "torch")
    if chosen not in RUNTIMES:
        raise UnknownName("runtime", chosen, RUNTIMES)
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    if chosen == "torch":
        return _by_torch(_frozen(make))

    def convert(openvino: Any) -> Any:
        return _of_torch(_frozen(make), example) if tflite is None else _of_tflite(openvino, tflite())

    return _by_openvino(convert, f"{key} {tuple(example.shape)}", cache, precision)


def _frozen(make: Callable[[], nn.Module]) -> nn.Module:
    return make().eval().requires_grad_(False)


def _by_torch(network: nn.Module) -> Runtime:
    def run(inputs: NDArray[np.uint8]) -> tuple[NDArray[np.float32], ...]:
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
    compiled: Any = core.compile_model(core.read_model(stored), "CPU", {"INFERENCE_PRECISION_HINT": precision})

    def run(inputs: NDArray[np.uint8]) -> tuple[NDArray[np.float32], ...]:
        # The arrays are views of the compiled network's own memory, which the next run overwrites.
        return tuple(np.array(out) for out in compiled(inputs).values())

    return run


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
