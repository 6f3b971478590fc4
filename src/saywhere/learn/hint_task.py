"""UpDn tuned by HINT: the tasks of `saywhere.models.updown` with a second loss, and what is measured besides.

Task and HINT share one forward pass and its noise, whatever part of the batch is hinted: a second pass over the hinted
questions alone costs as much as the double backward pass of the others that it saves. A batch without hints takes the
plain pass.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.explain.faithfulness import rank_agreement
from saywhere.explain.gradients import shift_importance, twice_differentiable
from saywhere.language.vocabulary import PAD_ID
from saywhere.learn.hint import (
    GradientNorms,
    Hints,
    HintSettings,
    Vectors,
    gradient_norm_ratio,
    hinted_items,
    ranking_loss,
)
from saywhere.models.common.modes import seeded_dropout
from saywhere.models.common.sums import Sums
from saywhere.models.updown.batch import CaptionBatch, QuestionBatch, collate_captions, collate_questions
from saywhere.models.updown.captioner import CaptionerOutput, UpDnCaptioner
from saywhere.models.updown.objective import answer_accuracy, answer_loss, answer_score, caption_loss
from saywhere.models.updown.prepared import CaptionItems, QuestionItems
from saywhere.models.updown.task import (
    CaptionSection,
    UpDnCaptionTask,
    UpDnVqaTask,
    UpDownDataSection,
    VqaSection,
    as_captioner,
    as_vqa,
)
from saywhere.models.updown.vqa import UpDnVqa, VqaOutput

FIXED_ITEMS = 64
"""On so many hinted training items, at most, the two gradients are compared."""

_MEASURED_AT_ONCE = 128

_Module = TypeVar("_Module", bound=nn.Module)


class HintVqaSection(VqaSection, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: as for "updown-vqa". [model.hint]: as `HintSettings` describes it. Start from a trained network:
    train.init_from."""

    hint: HintSettings = msgspec.field(default_factory=HintSettings)


class HintCaptionSection(CaptionSection, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: as for "updown-caption". [model.hint]: as `HintSettings` describes it.

    hint_words: how many visual words of a caption are hinted in one step, drawn anew each time; 0: all. One is cheapest
    and in the mean over steps the same loss, but for captions with many visual words counting as much as others.
    """

    hint: HintSettings = msgspec.field(default_factory=HintSettings)
    hint_words: int = 1

    def __post_init__(self) -> None:
        if self.hint_words < 0:
            raise ValueError("hint_words must be at least 0")


class HintVqaTask(UpDnVqaTask):
    """UpDn on prepared questions; HINT is averaged over the hinted questions of a batch, the task over all of them."""

    model_section: ClassVar[type[msgspec.Struct]] = HintVqaSection

    def __init__(self, model: HintVqaSection, data: UpDownDataSection) -> None:
        super().__init__(model, data)
        self.settings = model.hint
        self.hints = Hints(model.hint, self._train.indices, self._vectors, self._free_view)
        if model.hint.only_hinted:
            self._train = QuestionItems(self.prepared, _some(self.hints.selected))

    def losses(self, model: nn.Module, batch: QuestionBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Both losses with their weights, "hint" and "task", their sum, the accuracy and how many items are hinted."""
        network = as_vqa(model)
        _check_precision(batch.regions)
        human = self._hints_of(batch, generator)
        with seeded_dropout(generator, network):
            answered, hint = self._pass(network, batch, human)
        return {
            **_weighted(hint, answer_loss(answered.logits, batch.targets), self.settings),
            "accuracy": answer_accuracy(answered.logits.detach(), batch.targets).mean(),
            "hinted": hinted_items(human, batch.present, self.settings.tie).float().mean(),
        }

    def counts(self, batch: QuestionBatch) -> dict[str, float]:
        """Over how many things the two losses are averaged."""
        # Whatever is drawn, the same items are hinted.
        hinted = hinted_items(
            self._hints_of(batch, torch.Generator(batch.index.device)), batch.present, self.settings.tie
        )
        return {"hint": float(hinted.sum()), "task": float(len(batch))}

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """As the task without HINT; then, on the validation questions with human attention, the mean rank correlation
        of people with gradients ("spearman") and with attention ("spearman_attention"); and how much stronger than the
        task HINT pulls ("hint_to_task"), on a fixed batch of hinted training questions, of which the first part tells.

        Rank correlations are those of the correct answers' score. What is not defined is left out.
        """
        network, sums = as_vqa(model), super().validation_sums(model, part, parts)
        for some in _parts([i for i in self._validation.indices if self._vectors(i)][part::parts]):
            batch = collate_questions([self.prepared.item(index) for index in some]).to(network.device)
            answered, alpha = _answered_and_why(network, batch)
            _add_correlations(sums, alpha, answered.attention, batch.importance, batch.present)
        if part == 0:
            _add_ratio(sums, self.gradient_norms(network))
        return sums

    def gradient_norms(self, model: nn.Module) -> GradientNorms | None:
        """Of the two weighted losses, without dropout, on up to 64 hinted training items; None if none is hinted."""
        if not self.hints.chosen:
            return None
        network = _learning_copy(as_vqa(model))
        items = [self.prepared.item(index) for index in self.hints.chosen[:FIXED_ITEMS]]
        batch = collate_questions(items).to(network.device)
        human = self._hints_of(batch, torch.Generator(network.device).manual_seed(self.settings.seed))
        with torch.enable_grad(), twice_differentiable():
            answered, hint = self._pass(network, batch, human)
            found = _weighted(hint, answer_loss(answered.logits, batch.targets), self.settings)
        return gradient_norm_ratio(found["hint"], found["task"], network.parameters())

    def _vectors(self, index: int) -> Vectors:
        importance = self.prepared.question(index).importance
        return [] if importance is None else [importance]

    def _free_view(self, index: int) -> Vectors:
        seen = self.prepared.question(index).free_view
        return [] if seen is None else [seen]

    def _hints_of(self, batch: QuestionBatch, generator: torch.Generator) -> Tensor:
        """(b, r) what the items of a batch are hinted at; NaN for nothing."""
        numbers = torch.zeros_like(batch.index)
        return self.hints.of(batch.index, numbers, batch.importance, generator)

    def _pass(self, network: UpDnVqa, batch: QuestionBatch, human: Tensor) -> tuple[VqaOutput, Tensor]:
        """The answers, and HINT without its weight."""
        if self.settings.on == "attention" or not bool(hinted_items(human, batch.present, self.settings.tie).any()):
            # Without hints any importances will do: nothing is ranked.
            answered = _answered(network, batch)
            return answered, _ranked(answered.attention, human, batch.present, self.settings)
        answered, alpha = _answered_and_why(network, batch, self.settings.on, create_graph=True)
        return answered, _ranked(alpha, human, batch.present, self.settings)


class HintCaptionTask(UpDnCaptionTask):
    """The UpDn captioner on prepared captions; HINT is averaged over the hinted words of a batch, the task over all."""

    model_section: ClassVar[type[msgspec.Struct]] = HintCaptionSection

    def __init__(self, model: HintCaptionSection, data: UpDownDataSection) -> None:
        super().__init__(model, data)
        self.settings, self.hint_words = model.hint, model.hint_words
        self.hints = Hints(model.hint, self._train.indices, self._vectors)
        if model.hint.only_hinted:
            self._train = CaptionItems(self.prepared, _some(self.hints.selected))

    def losses(self, model: nn.Module, batch: CaptionBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Both losses with their weights, "hint" and "task", their sum, and hinted words for each caption."""
        network = as_captioner(model)
        _check_precision(batch.regions)
        words = self._drawn(self._hints_of(batch, generator), batch, generator)
        with seeded_dropout(generator, network):
            spoken, hint = self._pass(network, batch, words)
        hinted = torch.tensor(len(words.human) / len(batch), device=batch.regions.device)
        return {**_weighted(hint, caption_loss(spoken.logits, batch.targets), self.settings), "hinted": hinted}

    def counts(self, batch: CaptionBatch) -> dict[str, float]:
        """Over how many words the two losses are averaged."""
        # Whatever is drawn, the number stays.
        generator = torch.Generator(batch.index.device)
        words = self._drawn(self._hints_of(batch, generator), batch, generator)
        return {"hint": float(len(words.human)), "task": float((batch.targets != PAD_ID).sum())}

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """As the task without HINT, then "spearman", "spearman_attention" and "hint_to_task" as for questions, over all
        visual words of the validation captions."""
        network, sums = as_captioner(model), super().validation_sums(model, part, parts)
        for some in _parts([i for i in self._validation.indices if self._vectors(i)][part::parts]):
            batch = collate_captions([self.prepared.item(index) for index in some]).to(network.device)
            rows, places = batch.hinted.nonzero(as_tuple=True)
            words = _Words(rows, places, batch.importance[rows, places])
            spoken, alpha = _spoken_and_why(network, batch, words)
            _add_correlations(sums, alpha, spoken.attention[rows, places], words.human, batch.present[rows])
        if part == 0:
            _add_ratio(sums, self.gradient_norms(network))
        return sums

    def gradient_norms(self, model: nn.Module) -> GradientNorms | None:
        """Of the two weighted losses, without dropout, on up to 64 hinted training items; None if none is hinted."""
        if not self.hints.chosen:
            return None
        network = _learning_copy(as_captioner(model))
        items = [self.prepared.item(index) for index in self.hints.chosen[:FIXED_ITEMS]]
        batch = collate_captions(items).to(network.device)
        generator = torch.Generator(network.device).manual_seed(self.settings.seed)
        with torch.enable_grad(), twice_differentiable():
            spoken, hint = self._pass(network, batch, self._drawn(self._hints_of(batch, generator), batch, generator))
            found = _weighted(hint, caption_loss(spoken.logits, batch.targets), self.settings)
        return gradient_norm_ratio(found["hint"], found["task"], network.parameters())

    def _vectors(self, index: int) -> Vectors:
        visual = self.prepared.caption(index).visual
        return [importance for _, importance in sorted(visual, key=lambda one: one[0])]

    def _hints_of(self, batch: CaptionBatch, generator: torch.Generator) -> _Words:
        """All hinted words of a batch."""
        rows, places = batch.hinted.nonzero(as_tuple=True)
        numbers = (batch.hinted.cumsum(dim=1) - 1)[rows, places]
        human = self.hints.of(batch.index[rows], numbers, batch.importance[rows, places], generator)
        return _Words(rows, places, human).kept(hinted_items(human, batch.present[rows], self.settings.tie))

    def _drawn(self, words: _Words, batch: CaptionBatch, generator: torch.Generator) -> _Words:
        """At most `hint_words` of each caption, drawn."""
        if not self.hint_words:
            return words
        chances = torch.rand(len(words.rows), generator=generator, device=generator.device).to(batch.regions.device)
        # The place of each word among those of its caption, by falling chance.
        beaten = (words.rows[:, None] == words.rows[None, :]) & (chances[:, None] < chances[None, :])
        return words.kept(beaten.sum(dim=1) < self.hint_words)

    def _pass(self, network: UpDnCaptioner, batch: CaptionBatch, words: _Words) -> tuple[CaptionerOutput, Tensor]:
        """The captions, and HINT without its weight."""
        present = batch.present[words.rows]
        if self.settings.on == "attention" or not len(words.rows):
            spoken = _spoken(network, batch)
            return spoken, _ranked(spoken.attention[words.rows, words.places], words.human, present, self.settings)
        spoken, alpha = _spoken_and_why(network, batch, words, self.settings.on, create_graph=True)
        return spoken, _ranked(alpha, words.human, present, self.settings)


@dataclass(frozen=True, slots=True, eq=False)
class _Words:
    """Visual words of a batch. rows, places: (n,) of which caption, said at which place. human: (n, r)."""

    rows: Tensor
    places: Tensor
    human: Tensor

    def kept(self, which: Tensor) -> _Words:
        return _Words(self.rows[which], self.places[which], self.human[which])


def _some(selected: Sequence[int]) -> list[int]:
    if not selected:
        raise InvalidValue("hint only_hinted", "no item can be hinted: none has human attention with an order")
    return sorted(selected)


def _ranked(alpha: Tensor, human: Tensor, present: Tensor, settings: HintSettings) -> Tensor:
    return ranking_loss(alpha, human, present, settings.reduction, settings.tie)


def _answered(network: UpDnVqa, batch: QuestionBatch, moved: _Moved | None = None) -> VqaOutput:
    regions, shift = (batch.regions, None) if moved is None else moved.inputs(batch.regions)
    inputs = (regions, batch.present, batch.questions)
    answered: VqaOutput = network(*inputs, boxes=batch.boxes, pointed=batch.pointed, shift=shift)
    return answered


def _answered_and_why(
    network: UpDnVqa, batch: QuestionBatch, on: str = "gradients", *, create_graph: bool = False
) -> tuple[VqaOutput, Tensor]:
    """The answers, and (b, r) importances for the correct ones."""
    with torch.enable_grad(), twice_differentiable():
        moved = _Moved.by_nothing(batch.regions, on)
        answered = _answered(network, batch, moved)
        scores = answer_score(answered.logits, batch.targets)
    return answered, shift_importance(scores, moved.by, batch.present, create_graph=create_graph)


def _spoken(network: UpDnCaptioner, batch: CaptionBatch, moved: _Moved | None = None) -> CaptionerOutput:
    regions, shift = (batch.regions, None) if moved is None else moved.inputs(batch.regions)
    spoken: CaptionerOutput = network(regions, batch.present, batch.words, boxes=batch.boxes, shift=shift)
    return spoken


def _spoken_and_why(
    network: UpDnCaptioner, batch: CaptionBatch, words: _Words, on: str = "gradients", *, create_graph: bool = False
) -> tuple[CaptionerOutput, Tensor]:
    """The captions, and (n, r) importances for n of their words: one backward pass for the first words of all captions,
    one for the second ones, and so on, because regions have one gradient for each word."""
    rows, places = words.rows, words.places
    with torch.enable_grad(), twice_differentiable():
        moved = _Moved.by_nothing(batch.regions, on)
        spoken = _spoken(network, batch, moved)
        said = spoken.logits[rows, places, batch.targets[rows, places]]
        alpha = said.new_zeros(len(rows), moved.by.shape[1])
        turns = (rows[:, None] == rows[None, :]).tril(-1).sum(dim=1)
        for turn in range(int(turns.max()) + 1):
            these = (turns == turn).nonzero()[:, 0]
            scores = said.new_zeros(len(batch)).index_copy(0, rows[these], said[these])
            found = shift_importance(scores, moved.by, batch.present, create_graph=create_graph)
            alpha = alpha.index_copy(0, these, found[rows[these]])
    return spoken, alpha


@dataclass(frozen=True, slots=True, eq=False)
class _Moved:
    """Features as a function of (b, r) numbers that are 0, to differentiate by: added to a region's whole feature, they
    give the sum of its gradient; as a factor 1 + by, gradient × input."""

    by: Tensor
    as_factor: bool

    @classmethod
    def by_nothing(cls, regions: Tensor, on: str) -> _Moved:
        return cls(regions.new_zeros(regions.shape[:2]).requires_grad_(), on == "gradient_times_input")

    def inputs(self, regions: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the network reads: regions, and a shift of them."""
        return (regions * (1 + self.by)[:, :, None], None) if self.as_factor else (regions, self.by)


def _weighted(hint: Tensor, task: Tensor, settings: HintSettings) -> dict[str, Tensor]:
    """Eq. 4: weight · HINT + λ · task."""
    hint, task = settings.weight * hint, settings.task_weight * task
    return {"loss": hint + task, "hint": hint, "task": task}


def _check_precision(regions: Tensor) -> None:
    if torch.is_autocast_enabled(regions.device.type):
        raise InvalidValue("train.precision", "second derivatives lose too much in half precision", "use fp32")


def _learning_copy(network: _Module) -> _Module:
    """At rest and with gradients for every parameter: what is validated may be a moving average, which has none."""
    return copy.deepcopy(network).requires_grad_(True).eval()


def _add_ratio(sums: Sums, norms: GradientNorms | None) -> None:
    if norms is not None and math.isfinite(norms.ratio):
        sums.add("hint_to_task", norms.ratio, 1)


def _parts(indices: Sequence[int]) -> Iterable[Sequence[int]]:
    return (indices[first : first + _MEASURED_AT_ONCE] for first in range(0, len(indices), _MEASURED_AT_ONCE))


def _add_correlations(sums: Sums, alpha: Tensor, looked: Tensor, human: Tensor, present: Tensor) -> None:
    """Add rank correlations with people, of gradients and of attention, over the items where each is defined."""
    people, here = human.cpu().numpy(), present.cpu().numpy()
    for name, one in (("spearman", alpha), ("spearman_attention", looked)):
        each = rank_agreement(one.detach().cpu().numpy(), people, here).each
        defined = each[~np.isnan(each)]
        sums.add(name, float(defined.sum()), len(defined))
