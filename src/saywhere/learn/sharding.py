"""Weights, gradients and moments spread over the processes: torch's FSDP, for networks that are too large for one GPU.

Every parameter is cut along its first axis, a piece for each process. The layers of the network's largest stack are
gathered one at a time while they compute, everything else while a batch does. Processes must call these layers in step,
so each validates everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from saywhere.core.errors import InvalidFile
from saywhere.learn.processes import Processes

T = TypeVar("T")


class ModelInPieces(nn.Module):
    """A model that is spread over processes. Whatever is done with it is done in the forward pass of this module: a
    task may call its model in any way, but FSDP gathers weights when a module is called."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, work: Callable[[], T]) -> T:
        return work()


def in_pieces(model: nn.Module, processes: Processes) -> ModelInPieces:
    """Spread a model over the processes, in place."""
    mesh = init_device_mesh(processes.device.type, (processes.size,))
    whole_model = ModelInPieces(model)
    for module in (*largest_stack(model), whole_model):
        held = fully_shard(module, mesh=mesh)
        # Micro-batches carry their share of the batch: gradients are summed, not averaged.
        held.set_force_sum_reduction_for_comms(True)
        held.set_gradient_divide_factor(1.0)
        # What this process's items did not touch may have been touched by another's.
        held.set_reduce_scatter_unused_params(True)
    return whole_model


def largest_stack(model: nn.Module) -> list[nn.Module]:
    """The layers of the `nn.ModuleList` with the most numbers; none, if the model has no such list.

    >>> layers = [nn.Linear(4, 4) for _ in range(3)]
    >>> len(largest_stack(nn.ModuleDict({"body": nn.ModuleList(layers), "heads": nn.ModuleList([nn.Linear(4, 1)])})))
    3
    """
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not lists:
        return []
    largest = max(lists, key=_numbers)
    return list(largest)


def _numbers(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor; of one that is spread over processes, all of them must ask for it together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local(tensor: Tensor) -> Tensor:
    """This process's piece."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def piece_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Of a whole tensor what this process holds, spread as another tensor is."""
    if not isinstance(like, DTensor):
        return tensor
    mesh = like.device_mesh
    pieces = tensor.chunk(mesh.size())
    rank = mesh.get_local_rank()
    own = pieces[rank] if rank < len(pieces) else tensor[:0]
    own = own.to(like.device).clone()
    return DTensor.from_local(own, mesh, like.placements, run_check=False, shape=tensor.shape, stride=tensor.stride())


def load_pieces(model: nn.Module, weights: Mapping[str, Tensor], source: object, absent: Collection[str] = ()) -> None:
    """Put whole weights into a model that is spread over processes. absent: names that are not among them."""
    own = {name: tensor for name, tensor in model.state_dict().items() if name not in absent}
    wrong = sorted({*own} ^ {*weights}) or [name for name in own if weights[name].shape != own[name].shape]
    if wrong:
        raise InvalidFile(source, f"the weights do not fit the model: {', '.join(wrong[:4])}")
    with torch.no_grad():
        for name, tensor in own.items():
            local(tensor).copy_(local(piece_of(weights[name], tensor)))


def moments_in_pieces(moments: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """An optimizer's whole tensors, named "parameter:key", spread as the parameters are; plain numbers stay."""
    return {
        label: piece_of(tensor, parameters[label.rpartition(":")[0]]) if tensor.ndim else tensor
        for label, tensor in moments.items()
    }


def collected(tensors: Mapping[str, Tensor], processes: Processes, *, pieces: bool) -> dict[str, Tensor]:
    """What this process writes of some tensors. pieces: its own pieces, and on the first what is not spread; else
    everything on the first, one tensor after another, and nothing elsewhere."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if pieces and isinstance(tensor, DTensor):
            found[name] = local(tensor)
            continue
        together = whole(tensor)
        if processes.is_main:
            found[name] = together.cpu()
    return found
