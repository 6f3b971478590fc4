"""HINT's objective: the network's importances of regions in the order of people's (Selvaraju et al. 2019, Eq. 3 and 4).

Shapes: b items, r regions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.learn.learner import gradient_norm

REDUCTIONS = ("sum", "mean")
TARGETS = ("gradients", "gradient_times_input", "attention")
HINTS = ("human", "free_view", "inverse", "random", "redrawn", "permuted", "none")
_OTHERS = ("free_view", "random", "permuted")
# What the seed is used for, so that no two uses share their numbers.
_ORDER, _RANDOM, _PERMUTED = range(3)

Vectors = Sequence[NDArray[np.float32]]
"""The human importances of one item, (r,) each: one for a question, one for each visual word of a caption."""


class HintSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """total = weight · HINT + task_weight · task; the paper's Eq. 4 has weight 1 and λ = task_weight, 10 for VQA.

    reduction: over the pairs of one item: "sum" (Eq. 3) or "mean". λ does not carry over from one to the other.
    on: what is put in order: "gradients" (HINT: their sum over a region's feature, Eq. 2), "gradient_times_input" (to
        first order what the region is worth, also where features are centred and their sum says nothing) or
        "attention" (the attention-alignment control).
    hints: "human"; "free_view", of people who look without the question; "inverse", 1 − s; "random", drawn once for
        each item; "redrawn", drawn anew each time; "permuted", the item's own, shuffled once over its regions, but for
        those that people say nothing of, such as the whole photo; "none", the task alone, still times task_weight.
    only_hinted: learn from the hinted items alone, the task, too; of "none", from those that would be hinted.
    tie: importances that differ by no more are the same to people, and give no pair.
    share: how much of the training set is hinted, in [0, 1]. Items are taken in an order that the seed fixes, so those
        of a smaller share are among those of a larger one, and all kinds of hints are given to the same items. Items
        without human attention, or with the same for all regions, cannot be taken.
    seed: of that order, of the random hints and of the permutation.
    """

    weight: float = 1.0
    task_weight: float = 10.0
    reduction: Literal["sum", "mean"] = "sum"
    on: Literal["gradients", "gradient_times_input", "attention"] = "gradients"
    hints: Literal["human", "free_view", "inverse", "random", "redrawn", "permuted", "none"] = "human"
    share: float = 1.0
    only_hinted: bool = False
    tie: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("weight", "task_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidValue(f"hint {name}", f"is {getattr(self, name)}, not a number from 0 on")
        if not (self.weight or self.task_weight):
            raise InvalidValue("hint", "weight and task_weight are 0: there is nothing to learn")
        if not 0 <= self.share <= 1:
            raise InvalidValue("hint share", f"is {self.share}, not in [0, 1]")
        if not 0 <= self.tie < 1:
            raise InvalidValue("hint tie", f"is {self.tie}, not in [0, 1)")
        if self.only_hinted and self.share == 0:
            raise InvalidValue("hint only_hinted", "leaves nothing to learn from if no share is hinted")
        if self.seed < 0:
            raise InvalidValue("hint seed", f"is {self.seed}, not at least 0")
        for name, value, known in (
            ("reduction", self.reduction, REDUCTIONS),
            ("target of hints", self.on, TARGETS),
            ("kind of hints", self.hints, HINTS),
        ):
            if value not in known:
                raise UnknownName(name, value, known)


def ranking_loss(alpha: Tensor, human: Tensor, present: Tensor, reduction: str = "sum", tie: float = 0.0) -> Tensor:
    """How far importances (b, r) are from the order of people's (b, r): for each s_i > s_j, max(0, α_j − α_i).

    Ties give no pair, nor do regions that are not present, or whose human importance is NaN. reduction: "sum" or "mean"
    over all pairs of an item, those in the right order among them. Either is averaged over the items that have a pair;
    without any the loss is 0. tie: as of `ordered_pairs`.
    """
    if reduction not in REDUCTIONS:
        raise UnknownName("reduction", reduction, REDUCTIONS)
    pairs = ordered_pairs(human, present, tie)
    if alpha.shape != human.shape:
        raise InvalidValue("importances", f"have shape {tuple(alpha.shape)}, people's {tuple(human.shape)}")
    wrong_by = (alpha[:, None, :] - alpha[:, :, None]).relu()
    # Not a product: what is no pair may be NaN.
    each = torch.where(pairs, wrong_by, 0.0).sum(dim=(1, 2))
    counts = pairs.sum(dim=(1, 2))
    if reduction == "mean":
        each = each / counts.clamp_min(1)
    return each.sum() / (counts > 0).sum().clamp_min(1)


def ordered_pairs(human: Tensor, present: Tensor, tie: float = 0.0) -> Tensor:
    """(b, r, r) booleans: whether region i counts more for people than region j, of (b, r) importances.

    tie: by how much more it must, because a sky that holds a clock is no more looked at than the clock.
    """
    if human.ndim != 2 or present.shape != human.shape or present.dtype != torch.bool:
        reason = f"importance {tuple(human.shape)} and {present.dtype} {tuple(present.shape)}, not (b, r) and booleans"
        raise InvalidValue("hints", f"have shapes that do not fit: {reason}")
    # A comparison with NaN is False.
    above = human[:, :, None] > human[:, None, :] + tie
    return above & present[:, :, None] & present[:, None, :]


def hinted_items(human: Tensor, present: Tensor, tie: float = 0.0) -> Tensor:
    """(b,) booleans: which items have a pair of regions in an order, so that `ranking_loss` can say something."""
    shown = present & ~human.isnan()
    highest = human.masked_fill(~shown, -torch.inf).amax(dim=1)
    lowest = human.masked_fill(~shown, torch.inf).amin(dim=1)
    return highest > lowest + tie


@dataclass(frozen=True, slots=True)
class GradientNorms:
    """Lengths of the two losses' gradients with respect to all parameters, each loss with its weight."""

    hint: float
    task: float

    @property
    def ratio(self) -> float:
        """How much stronger HINT pulls than the task; infinite if the task does not pull at all."""
        if not self.task:
            return float("inf") if self.hint else 0.0
        return self.hint / self.task


def gradient_norm_ratio(hint: Tensor, task: Tensor, parameters: Iterable[nn.Parameter]) -> GradientNorms:
    """The norms of two losses' gradients. hint, task: scalars with their graphs, which are kept."""
    learnt = [parameter for parameter in parameters if parameter.requires_grad]
    norms = []
    for loss in (hint, task):
        if not loss.requires_grad:
            norms.append(0.0)
            continue
        gradients = torch.autograd.grad(loss, learnt, retain_graph=True, allow_unused=True)
        norms.append(gradient_norm([gradient for gradient in gradients if gradient is not None]))
    return GradientNorms(*norms)


class Hints:
    """Which items of a training set are hinted, and what they are told.

    selected: the indices of the items that the share takes, in the order in which a growing one takes them. chosen: the
    hinted ones: these, or none.
    """

    def __init__(
        self,
        settings: HintSettings,
        indices: Sequence[int],
        vectors_of: Callable[[int], Vectors],
        free_view_of: Callable[[int], Vectors] | None = None,
    ) -> None:
        """indices: of all training items. vectors_of: an item's human importances, none if it has none. free_view_of:
        as many of people who were not asked; an item without them is told nothing by hints of "free_view"."""
        if settings.hints == "free_view" and free_view_of is None:
            raise InvalidValue("hints", "no items here tell where people look without a question")
        self._free_view_of = free_view_of
        self.settings = settings
        hintable = [i for i in indices if any(_has_order(vector, settings.tie) for vector in vectors_of(i))]
        order = self._random(_ORDER).permutation(len(hintable))[: math.floor(settings.share * len(indices) + 0.5)]
        self.selected = tuple(hintable[place] for place in order.tolist())
        self.chosen = () if settings.hints == "none" else self.selected
        self._is_chosen = torch.zeros(max(indices, default=-1) + 1, dtype=torch.bool)
        self._is_chosen[list(self.chosen)] = True
        # For hints that stay the same but are not the item's own: a row for each, and each item's first row.
        self._first_row = torch.zeros(len(self._is_chosen), dtype=torch.int64)
        self._others = self._tabled(vectors_of) if settings.hints in _OTHERS else None

    def of(self, index: Tensor, number: Tensor, human: Tensor, generator: torch.Generator) -> Tensor:
        """(n, r) what n hinted things are told: NaN for items that are not hinted and wherever people say nothing.

        index: (n,) of the item. number: (n,) which of its importances this is, from 0. human: (n, r), what people say.
        generator: only "redrawn" hints draw from it.
        Random hints are uniform on [0, 1), so they have no ties, where people's often have.
        """
        chosen = self._is_chosen[index.cpu()]
        told = human.masked_fill(~chosen.to(human.device)[:, None], torch.nan)
        if self.settings.hints == "inverse":
            return 1 - told
        if self.settings.hints == "redrawn":
            drawn = torch.rand(told.shape, generator=generator, device=generator.device).to(told)
            return torch.where(told.isnan(), told, drawn)
        if self._others is not None:
            rows = torch.where(chosen, self._first_row[index.cpu()] + number.cpu(), 0)
            others = self._others[rows, : told.shape[1]].to(told)
            wide = functional.pad(others, (0, told.shape[1] - others.shape[1]), value=torch.nan)
            return torch.where(told.isnan(), told, wide)
        return told

    def _tabled(self, vectors_of: Callable[[int], Vectors]) -> Tensor:
        """(rows, regions) the hints of all chosen items, NaN after each end, and one row that says nothing."""
        vectors: list[NDArray[np.float32]] = [np.zeros(0, np.float32)]
        for index in self.chosen:
            self._first_row[index] = len(vectors)
            vectors += [self._other(index, number, own) for number, own in enumerate(vectors_of(index))]
        table = np.full((len(vectors), max(map(len, vectors))), np.nan, np.float32)
        for row, vector in zip(table, vectors, strict=True):
            row[: len(vector)] = vector
        return torch.from_numpy(table)

    def _other(self, index: int, number: int, own: NDArray[np.float32]) -> NDArray[np.float32]:
        """What people who were not asked look at, random numbers for an item's regions, or its own in another order."""
        if self.settings.hints == "free_view":
            seen = self._free_view_of(index) if self._free_view_of else ()
            return np.array(seen[number], np.float32) if seen else np.full(len(own), np.nan, np.float32)
        if self.settings.hints == "random":
            return self._random(_RANDOM, index, number).random(len(own)).astype(np.float32)
        mixed = np.array(own, dtype=np.float32)
        known = ~np.isnan(mixed)
        mixed[known] = self._random(_PERMUTED, index, number).permutation(mixed[known])
        return mixed

    def _random(self, purpose: int, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, purpose, *numbers])


def _has_order(vector: NDArray[np.float32], tie: float) -> bool:
    """Whether some region counts more than another."""
    known = vector[~np.isnan(vector)]
    return len(known) > 1 and bool(known.max() > known.min() + tie)
