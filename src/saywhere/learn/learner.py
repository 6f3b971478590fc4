"""One step of learning: losses, gradients over micro-batches and processes, clipping, update, moving average."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.learn.batches import LoadedMicroBatch, to_device
from saywhere.learn.checkpoint import Snapshot, digest_tensors, frozen_parameters, load_weights
from saywhere.learn.ema import MovingAverage
from saywhere.learn.errors import TrainingDiverged
from saywhere.learn.optimizer import make_optimizer, optimizer_tensors, restore_optimizer, trainable_parameters
from saywhere.learn.precision import autocast
from saywhere.learn.processes import Processes
from saywhere.learn.randomness import generator_for, seed_globals
from saywhere.learn.recipe import Train
from saywhere.learn.task import Task

if TYPE_CHECKING:
    from saywhere.learn.sharding import ModelInPieces


_Part = tuple[LoadedMicroBatch, Any, dict[str, float]]
"""A micro-batch, on its device, and its shares of the terms of the loss."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step gave. losses: over the whole batch. grad_norm: before clipping."""

    losses: dict[str, float]
    grad_norm: float


class Learner:
    """The model and all that changes with it.

    Losses and gradients are summed over micro-batches and processes, each with its share of the batch, so that
    however the batch is cut the step is the same (but for rounding, and for noise such as dropout, which differs by
    micro-batch). Gradients are exchanged after the last micro-batch rather than by a wrapper around the model, because
    a task may call the model in any way it likes.
    """

    def __init__(
        self,
        task: Task,
        model: nn.Module,
        settings: Train,
        *,
        seed: int,
        processes: Processes,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        self._task, self._settings, self._seed, self._processes = task, settings, seed, processes
        self.model = model.to(processes.device)
        self._pieces: ModelInPieces | None = None
        if settings.shard and processes.size > 1:
            from saywhere.learn.sharding import in_pieces

            # Their digests are those of whole tensors.
            self._frozen_sha256, self._frozen = _frozen_digest(model), frozenset(frozen_parameters(model))
            self._pieces = in_pieces(self.model, processes)
        self.optimizer = make_optimizer(self.model, settings)
        self.scaler = scaler
        self.ema = (
            MovingAverage(self.model, settings.ema_decay, settings.ema_warmup)
            if settings.ema_decay is not None
            else None
        )
        self._parameters = list(trainable_parameters(self.model).values())
        self._sum_checked = False

    @property
    def eval_model(self) -> nn.Module:
        """The model to validate and to ship: the moving average if there is one."""
        return self.ema.model if self.ema is not None else self.model

    @property
    def is_sharded(self) -> bool:
        """Whether every process holds a piece of the weights, so that all must save and validate together."""
        return self._pieces is not None

    def validated(self, validate: Callable[[Processes], dict[str, float]]) -> dict[str, float]:
        """What a validation gives, told which processes share it: those of a model in pieces validate everything."""
        if self._pieces is None:
            return validate(self._processes)
        alone = Processes(device=self._processes.device)
        return self._pieces(lambda: validate(alone))  # type: ignore[no-any-return]  # a module's call has no types

    def train_step(self, micro_batches: Sequence[LoadedMicroBatch], step: int, lr: float) -> StepResult:
        """Make one step. step: from 0. Raises TrainingDiverged, with the weights as before, if a number is lost."""
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        batches = [to_device(loaded.batch, self._processes.device) for loaded in micro_batches]
        totals: dict[str, Tensor] = {}
        parts = list(zip(micro_batches, batches, self._shares(micro_batches, batches), strict=True))
        for loaded, batch, shares in parts + self._for_nothing(parts):
            for name, value in self._backward(loaded, batch, shares).items():
                totals[name] = totals[name] + value if name in totals else value
        losses = self._over_processes(totals)
        if not math.isfinite(losses["loss"]):
            raise TrainingDiverged(step + 1, "the loss is not finite", losses, None)
        self._exchange_gradients()
        grad_norm = self._update(step, lr, losses)
        return StepResult(losses, grad_norm)

    def _for_nothing(self, parts: list[_Part]) -> list[_Part]:
        """Processes that hold a model in pieces compute in step: one with fewer micro-batches than another computes its
        last again, with no share in the loss."""
        if self._pieces is None:
            return []
        counts = torch.zeros(self._processes.size, device=self._processes.device)
        counts[self._processes.rank] = len(parts)
        self._processes.all_reduce(counts)
        loaded, batch, shares = parts[-1]
        return [(loaded, batch, dict.fromkeys(shares, 0.0))] * (int(counts.max()) - len(parts))

    def _shares(self, micro_batches: Sequence[LoadedMicroBatch], batches: Sequence[Any]) -> list[dict[str, float]]:
        """For each micro-batch, its shares of the terms of the loss; empty if the loss is of the whole batch alone."""
        weights = [float(loaded.micro_batch.weight > 0) for loaded in micro_batches]
        counts = [dict(self._task.counts(batch)) for batch in batches]
        names = sorted(counts[0])
        if any(sorted(count) != names for count in counts):
            raise InvalidValue("the task's counts", f"name other terms in one micro-batch than {names} in another")
        self._processes.check_equal("the names of the task's counts", repr(names))
        if not names and max(len(micro_batches), self._processes.size) > 1:
            reason = "this task's loss compares all items of a batch: cut into parts, it is another loss"
            raise InvalidValue("train.accumulate, processes", reason, "use accumulate = 1 and one process")
        table = [[weight * count[name] for name in names] for weight, count in zip(weights, counts, strict=True)]
        sums = torch.tensor(table, dtype=self._number_type, device=self._processes.device).sum(0)
        self._processes.all_reduce(sums)
        return [
            {
                name: row[i] / total if total else 0.0
                for i, (name, total) in enumerate(zip(names, sums.tolist(), strict=True))
            }
            for row in table
        ]

    def _backward(self, loaded: LoadedMicroBatch, batch: Any, shares: Mapping[str, float]) -> dict[str, Tensor]:
        """Add one micro-batch's gradients; its terms times their shares of the whole batch."""
        micro_batch, device = loaded.micro_batch, self._processes.device
        seed_globals(self._seed, "noise", micro_batch.step, micro_batch.number)
        generator = generator_for(self._seed, "losses", micro_batch.step, micro_batch.number, device=device)
        with autocast(self._settings.precision, device):
            losses = self._losses(batch, generator)
        _check_losses(losses)
        weighted = {name: value * shares.get(name, micro_batch.weight) for name, value in losses.items()}
        if shares:
            self._check_sum(losses, shares)
            weighted["loss"] = functools.reduce(torch.add, [weighted[name] for name in shares])
        objective = weighted["loss"]
        (self.scaler.scale(objective) if self.scaler is not None else objective).backward()  # type: ignore[no-untyped-call]
        return {name: value.detach() for name, value in weighted.items()}

    def _losses(self, batch: Any, generator: torch.Generator) -> dict[str, Tensor]:
        def compute() -> dict[str, Tensor]:
            return dict(self._task.losses(self.model, batch, generator))

        return compute() if self._pieces is None else self._pieces(compute)

    def _check_sum(self, losses: Mapping[str, Tensor], shares: Mapping[str, float]) -> None:
        if self._sum_checked:
            return
        self._sum_checked = True
        absent = [name for name in shares if name not in losses]
        if absent:
            raise InvalidValue("the task's counts", f"count terms that losses() does not return: {', '.join(absent)}")
        total, loss = sum(float(losses[name].detach()) for name in shares), float(losses["loss"].detach())
        if math.isfinite(loss) and not math.isclose(total, loss, rel_tol=1e-2, abs_tol=1e-6):
            raise InvalidValue("the task's losses", f"the counted terms sum to {total:g} but 'loss' is {loss:g}")

    @functools.cached_property
    def _frozen(self) -> frozenset[str]:
        return frozenset(frozen_parameters(self.model))

    @functools.cached_property
    def _frozen_sha256(self) -> str:
        return _frozen_digest(self.model)

    @property
    def _number_type(self) -> torch.dtype:
        return torch.float32 if self._processes.device.type == "mps" else torch.float64

    def _over_processes(self, totals: Mapping[str, Tensor]) -> dict[str, float]:
        self._processes.check_equal("the names of the task's losses", repr(list(totals)))
        values = torch.stack([value.to(self._number_type) for value in totals.values()])
        self._processes.all_reduce(values)
        return dict(zip(totals, values.tolist(), strict=True))

    def _exchange_gradients(self) -> None:
        if self._processes.size == 1 or self._pieces is not None:
            return
        has = torch.tensor([float(p.grad is not None) for p in self._parameters], device=self._processes.device)
        self._processes.all_reduce(has)
        touched = [parameter for parameter, count in zip(self._parameters, has.tolist(), strict=True) if count]
        for parameter in touched:
            # A parameter that this process's items did not touch may have been touched by another's.
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        self._processes.all_reduce_many(parameter.grad for parameter in touched if parameter.grad is not None)

    def _update(self, step: int, lr: float, losses: Mapping[str, float]) -> float:
        """Clip and apply the gradients; their norm before clipping."""
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        gradients = [self._own(parameter.grad) for parameter in self._parameters if parameter.grad is not None]
        pieces = self._processes if self._pieces is not None else Processes()
        grad_norm = gradient_norm(gradients, pieces)
        self._check_norm(step, grad_norm, losses)
        clip(gradients, self._settings.clip_value, self._settings.clip_norm, pieces)
        for group in self.optimizer.param_groups:
            group["lr"] = lr * group["lr_ratio"]
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self._processes.broadcast(list(self.model.buffers()))
        if self.ema is not None:
            self.ema.update(self.model, step + 1)
        return grad_norm

    def _check_norm(self, step: int, grad_norm: float, losses: Mapping[str, float]) -> None:
        if math.isfinite(grad_norm):
            return
        # fp16 overflows now and then: the scaler leaves that step out and scales less. At scale 1 there is no excuse.
        if self.scaler is None or self.scaler.get_scale() <= 1:
            raise TrainingDiverged(step + 1, f"the gradient's norm is {grad_norm}", losses, grad_norm)

    def is_finite(self) -> bool:
        """Whether all weights and buffers are numbers."""
        tensors = [self._own(t) for t in self.model.state_dict().values() if t.is_floating_point()]
        lost = torch.tensor([float(not all(bool(torch.isfinite(tensor).all()) for tensor in tensors))])
        if self._pieces is not None:
            lost = lost.to(self._processes.device)
            self._processes.all_reduce(lost)
        return not bool(lost.item())

    def _own(self, tensor: Tensor) -> Tensor:
        """What this process holds of a tensor."""
        if self._pieces is None:
            return tensor
        from saywhere.learn.sharding import local

        return local(tensor)

    def snapshot(
        self, trainer: Mapping[str, Any], *, trainable_only: bool = False, in_pieces: bool = False
    ) -> Snapshot:
        """All that has to be saved; `trainer` is added to. trainable_only: without frozen parameters. in_pieces: of a
        model in pieces, this process's; else it is put together, which all processes must do, on the first."""
        tensors, about = optimizer_tensors(self.optimizer)
        if self._pieces is not None:
            return self._snapshot_of_pieces(tensors, about, trainer, trainable_only, in_pieces)
        scaler = self.scaler.state_dict() if self.scaler is not None else None
        kept = {name for name in self.model.state_dict() if not (trainable_only and name in self._frozen)}
        model, ema = (
            {name: tensor for name, tensor in one.state_dict().items() if name in kept} if one is not None else None
            for one in (self.model, self.ema.model if self.ema is not None else None)
        )
        frozen = {"frozen_sha256": self._frozen_sha256} if trainable_only else {}
        return Snapshot(model or {}, ema, tensors, about, {**trainer, **frozen, "scaler": scaler})

    def _snapshot_of_pieces(
        self,
        tensors: Mapping[str, Tensor],
        about: Mapping[str, Any],
        trainer: Mapping[str, Any],
        trainable_only: bool,
        in_pieces: bool,
    ) -> Snapshot:
        from saywhere.learn.sharding import collected

        own = {
            name: tensor
            for name, tensor in self.model.state_dict().items()
            if not (trainable_only and name in self._frozen)
        }
        model, moments = (collected(one, self._processes, pieces=in_pieces) for one in (own, tensors))
        frozen = {"frozen_sha256": self._frozen_sha256} if trainable_only else {}
        return Snapshot(model, None, moments, about, {**trainer, **frozen, "scaler": None})

    def restore(self, snapshot: Snapshot, source: object) -> None:
        """Take all of it back."""
        if self._pieces is not None:
            from saywhere.learn.sharding import load_pieces, moments_in_pieces

            if snapshot.frozen_sha256 not in (None, self._frozen_sha256):
                reason = "was trained on other frozen parameters than this model has"
                raise InvalidFile(source, reason, "use the same base")
            load_pieces(self.model, snapshot.model, source, self._frozen if snapshot.frozen_sha256 else ())
            moments = moments_in_pieces(snapshot.optimizer, dict(self.model.named_parameters()))
            restore_optimizer(self.optimizer, moments, snapshot.optimizer_about, source)
            return
        load_weights(self.model, snapshot.model, source, snapshot.frozen_sha256)
        if self.ema is not None and snapshot.ema is not None:
            frozen = frozen_parameters(self.model) if snapshot.frozen_sha256 else {}
            load_weights(self.ema.model, {**frozen, **snapshot.ema}, source)
        restore_optimizer(self.optimizer, snapshot.optimizer, snapshot.optimizer_about, source)
        if self.scaler is not None:
            self.scaler.load_state_dict(snapshot.trainer["scaler"])


_ALONE = Processes()


def gradient_norm(gradients: Sequence[Tensor], pieces: Processes = _ALONE) -> float:
    """The length of all gradients as one vector. pieces: the processes over which they are spread."""
    norms = [torch.linalg.vector_norm(g.float()) for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms)) if norms else torch.zeros((), device=pieces.device)
    if pieces.size == 1:
        return float(norm)
    squares = norm.square()[None]
    pieces.all_reduce(squares)
    return math.sqrt(float(squares))


def clip(
    gradients: Sequence[Tensor],
    largest_value: float | None,
    largest_norm: float | None,
    pieces: Processes = _ALONE,
) -> None:
    """Bound each element, then the whole gradient's length, in place."""
    if largest_value is not None:
        for gradient in gradients:
            gradient.clamp_(-largest_value, largest_value)
    if largest_norm is not None:
        norm = gradient_norm(gradients, pieces)
        if norm > largest_norm:
            for gradient in gradients:
                gradient.mul_(largest_norm / norm)


def _frozen_digest(model: nn.Module) -> str:
    return digest_tensors(frozen_parameters(model))


def _check_losses(losses: Mapping[str, Tensor]) -> None:
    if "loss" not in losses:
        raise InvalidValue("the task's losses", f"have no 'loss', only {', '.join(losses) or 'nothing'}")
    for name, value in losses.items():
        if not isinstance(value, Tensor) or value.ndim != 0:
            raise InvalidValue("the task's losses", f"{name!r} is not a tensor with a single number")
    if not losses["loss"].requires_grad:
        raise InvalidValue("the task's losses", "'loss' does not depend on any parameter that is learnt")
