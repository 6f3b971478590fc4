"""Making the optimizer, and its state as named tensors: nothing is pickled."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.learn.recipe import Train

_KINDS: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def trainable_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters that are not frozen, by name; a shared one once."""
    found = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not found:
        raise InvalidValue("the model", "has no parameter that can be learnt")
    return found


def make_optimizer(model: nn.Module, settings: Train) -> torch.optim.Optimizer:
    """The recipe's optimizer of everything in the model that is not frozen, in its parameter groups."""
    return _KINDS[settings.optimizer](
        parameter_groups(trainable_parameters(model), settings), lr=settings.lr, betas=settings.betas, eps=settings.eps
    )


def parameter_groups(parameters: Mapping[str, nn.Parameter], settings: Train) -> list[dict[str, Any]]:
    """The recipe's groups as torch wants them. names: of their parameters. lr_ratio: of their rate to train.lr."""
    groups: dict[tuple[float, float], dict[str, Any]] = {}
    used: set[str] = set()
    for name, parameter in parameters.items():
        lr, decay = settings.lr, settings.weight_decay
        naming = ((own, module) for own in settings.groups for module in own.modules if _in(name, module))
        for own, module in itertools.islice(naming, 1):
            used.add(module)
            lr = lr if own.lr is None else own.lr
            decay = decay if own.weight_decay is None else own.weight_decay
        if parameter.ndim < 2 and not settings.decay_norms_and_biases:
            decay = 0.0
        new = {"params": [], "names": [], "lr_ratio": lr / settings.lr, "weight_decay": decay}
        group = groups.setdefault((lr, decay), new)
        group["params"].append(parameter)
        group["names"].append(name)
    for module in (module for group in settings.groups for module in group.modules if module not in used):
        raise UnknownName("module with parameters to learn", module, _modules(parameters))
    return list(groups.values())


def _in(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def _modules(names: Iterable[str]) -> list[str]:
    parts = [name.split(".") for name in names]
    return sorted({".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)})


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state as tensors named "parameter:key", and what they belong to."""
    names = _names(optimizer)
    state = optimizer.state_dict()
    tensors = {f"{names[i]}:{key}": value for i, entry in state["state"].items() for key, value in entry.items()}
    about = {"optimizer": type(optimizer).__name__, "parameters": sorted(names), "groups": state["param_groups"]}
    return tensors, about


def restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], about: Mapping[str, Any], source: object
) -> None:
    """Put saved state back. The settings (rate, betas …) stay those of the recipe."""
    names = _names(optimizer)
    kind = type(optimizer).__name__
    if about["optimizer"] != kind or about["parameters"] != sorted(names):
        raise InvalidFile(source, f"holds {about['optimizer']} for other parameters than this model's {kind}")
    state: dict[int, dict[str, Tensor]] = {}
    for label, tensor in tensors.items():
        name, _, key = label.rpartition(":")
        state.setdefault(names.index(name), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _names(optimizer: torch.optim.Optimizer) -> list[str]:
    """Of all parameters, in the order in which torch numbers them."""
    return [name for group in optimizer.param_groups for name in group["names"]]
