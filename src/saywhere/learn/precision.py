"""Mixed precision where the device has it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from saywhere.core.errors import InvalidValue


def check_precision(precision: str, device: torch.device) -> None:
    """Raise if the device cannot train in this precision."""
    if precision == "fp16" and device.type != "cuda":
        raise InvalidValue("train.precision", f"fp16 needs a CUDA device, this is {device.type}", "use bf16 or fp32")
    if precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise InvalidValue("train.precision", "this CUDA device has no bf16 arithmetic", "use fp16 or fp32")
    if precision == "bf16" and not torch.amp.is_autocast_available(device.type):
        raise InvalidValue("train.precision", f"torch has no bf16 for {device.type}", "use fp32")


def autocast(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """The context in which losses are computed."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16 if precision == "bf16" else torch.float16)


def loss_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler | None:
    """fp16's small gradients vanish unless the loss is scaled up; the other precisions need no scaler."""
    return torch.amp.GradScaler(device.type) if precision == "fp16" else None
