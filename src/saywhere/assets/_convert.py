"""The child process of `conversion`: python -m saywhere.assets._convert FROM.pth TO.safetensors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import Tensor

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_ALIGNMENT = 8


def packed(tensors: dict[str, Tensor]) -> bytes:
    """A safetensors file. Written here because its bytes are hash-checked and must not change with a library."""
    # Wide types first, so that every tensor is aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, object] = {}
    blocks: list[bytes] = []
    end = 0
    for name in names:
        tensor = tensors[name].detach().contiguous()
        block = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
        start, end = end, end + len(block)
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        blocks.append(block)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text + b"".join(blocks)


def main(source: str, target: str) -> str:
    """Convert; an empty answer is success, anything else says what is wrong with the file."""
    loaded = torch.load(source, map_location="cpu", weights_only=True)
    if not isinstance(loaded, dict) or not loaded:
        return f"it holds a {type(loaded).__name__}, not tensors by name"
    for name, value in loaded.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            return f"{name!r} is a {type(value).__name__}, not a tensor"
        if value.dtype not in _DTYPES or value.layout != torch.strided:
            return f"{name!r} is a {value.layout} tensor of {value.dtype}"
    Path(target).write_bytes(packed(dict(loaded)))
    return ""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) or 0)
