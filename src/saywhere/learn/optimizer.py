"""Making the optimizer, and its state as named tensors: nothing is pickled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.learn.recipe import Train

_KINDS: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def trainable_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters that are not frozen, by name; a shared one once."""
    found = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not found:
        raise InvalidValue("the model", "has no parameter that can be learnt")
    return found


def make_optimizer(model: nn.Module, settings: Train) -> torch.optim.Optimizer:
    """The recipe's optimizer of everything in the model that is not frozen."""
    return _KINDS[settings.optimizer](
        trainable_parameters(model).values(),
        lr=settings.lr,
        betas=settings.betas,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state as tensors named "parameter:key", and what they belong to."""
    names = list(trainable_parameters(model))
    state = optimizer.state_dict()
    tensors = {f"{names[i]}:{key}": value for i, entry in state["state"].items() for key, value in entry.items()}
    about = {"optimizer": type(optimizer).__name__, "parameters": names, "groups": state["param_groups"]}
    return tensors, about


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    about: Mapping[str, Any],
    source: object,
) -> None:
    """Put saved state back. The settings (rate, betas …) stay those of the recipe."""
    names = list(trainable_parameters(model))
    kind = type(optimizer).__name__
    if about["optimizer"] != kind or about["parameters"] != names:
        raise InvalidFile(source, f"holds {about['optimizer']} for other parameters than this model's {kind}")
    state: dict[int, dict[str, Tensor]] = {}
    for label, tensor in tensors.items():
        name, _, key = label.rpartition(":")
        state.setdefault(names.index(name), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
