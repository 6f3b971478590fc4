"""A PyTorch .pth of plain tensors, or the weights of an .onnx, as safetensors, converted in a process of its own.

The child loads a .pth with `weights_only=True` and nothing else, so a file that needs more than tensors is refused. Of
an .onnx only the constants are read; nothing is run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from saywhere.core.errors import InvalidFile, MissingDependency, require


def to_safetensors(content: bytes, what: str) -> bytes:
    """The tensors of a file as a safetensors file, the same bytes on every machine.

    what: the file's name, for errors; one that ends in .onnx is read as ONNX, any other as PyTorch's.
    """
    if sys.byteorder != "little":
        raise MissingDependency("a little-endian machine", f"converting {what}", "convert it on one and copy the cache")
    require("torch", needed_for=f"converting {what}", extra="models")
    kind = "_convert"
    if what.endswith(".onnx"):
        require("onnx", needed_for=f"converting {what}", extra="onnx")
        kind = "_convert_onnx"
    with tempfile.TemporaryDirectory(prefix="saywhere-") as folder:
        source, target = Path(folder, "tensors"), Path(folder, "tensors.safetensors")
        source.write_bytes(content)
        command = [sys.executable, "-m", f"saywhere.assets.{kind}", str(source), str(target)]
        result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if result.returncode:
            raise InvalidFile(what, f"cannot be converted to safetensors: {_reason(result.stderr)}")
        return target.read_bytes()


def _reason(stderr: str) -> str:
    if "UnpicklingError" in stderr:
        # What torch says about it is long, and ends with advice to load it unsafely.
        return "it holds more than plain tensors, or is no PyTorch file"
    return (stderr.strip().splitlines() or ["the child process gave no reason"])[-1]
