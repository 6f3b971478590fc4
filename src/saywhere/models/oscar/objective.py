"""What Oscar is trained for: to say the words that were hidden from a caption.

As Oscar's captioning has it: 15 % of a caption's places, the final [SEP] among them but never [CLS], at least 1 and at
most 3. Of those, 8 in 10 become [MASK], 1 in 10 any word, and 1 in 10 stay. All randomness comes from the generator.

Or every word at once, each from a [MASK] of its own that sees the true words before it. That is exactly what writing
asks, gives several times as many words to learn from per step, and is not the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.models.common.modes import seeded_dropout
from saywhere.models.oscar.batch import TaggedCaptionBatch
from saywhere.models.oscar.network import Oscar

_MASKED, _RANDOM = 0.8, 0.1


@dataclass(frozen=True, slots=True)
class MaskedObjective:
    """mask_rate: share of a caption's places, [CLS] and [SEP] counted. most_masked: of a caption.

    smoothing: of the labels. every_word: all words at once; then mask_rate and most_masked do not matter.
    """

    mask_rate: float = 0.15
    most_masked: int = 3
    smoothing: float = 0.1
    every_word: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.mask_rate <= 1 and self.most_masked >= 1):
            raise InvalidValue("mask_rate, most_masked", f"are {self.mask_rate}, {self.most_masked}")
        if not 0 <= self.smoothing < 1:
            raise InvalidValue("smoothing", f"is {self.smoothing}, not in [0, 1)")

    def target_count(self, batch: TaggedCaptionBatch) -> int:
        """How many words of a batch are learnt from."""
        return int((batch.lengths - 1 if self.every_word else self.hidden(batch.lengths)).sum())

    def hidden(self, lengths: Tensor) -> Tensor:
        """(b,) how many places of captions of these lengths are hidden."""
        wanted = (self.mask_rate * lengths).round().long()
        return wanted.clamp(1, self.most_masked).minimum(lengths - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """captions: (b, c) ids with some hidden. places: (b, k) which. counted: (b, k) bool, False for padding.

    targets: (b, k) what stood there.
    """

    captions: Tensor
    places: Tensor
    counted: Tensor
    targets: Tensor


def hide(model: Oscar, batch: TaggedCaptionBatch, objective: MaskedObjective, generator: torch.Generator) -> Hidden:
    """Captions with words hidden, the same for the same generator."""
    captions, lengths, device = batch.captions, batch.lengths, batch.captions.device
    b, c = captions.shape
    drawn = torch.rand(b, c, generator=generator, device=device)
    slots = torch.arange(c, device=device)
    order = drawn.masked_fill((slots == 0) | (slots >= lengths[:, None]), torch.inf).argsort(dim=1)
    counts = objective.hidden(lengths)
    k = int(counts.max())
    counted = torch.arange(k, device=device) < counts[:, None]
    # A place that is not counted asks for [CLS], which is always there.
    places = torch.where(counted, order[:, :k], 0)
    targets = captions.gather(1, places)
    kind = torch.rand(targets.shape, generator=generator, device=device)
    anything = torch.randint(model.coding.size, targets.shape, generator=generator, device=device)
    other = torch.where(kind < _MASKED + _RANDOM, anything, targets)
    shown = other.masked_fill(kind < _MASKED, model.coding.mask_id)
    changed = captions.scatter(1, places, torch.where(counted, shown, targets))
    return Hidden(changed, places, counted, targets)


def scores(
    model: Oscar, batch: TaggedCaptionBatch, objective: MaskedObjective, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(m, words) scores of the words that were hidden, and (m,) what they are."""
    if objective.every_word:
        there = batch.there[:, 1:]
        return model.every_word(batch)[there], batch.captions[:, 1:][there]
    hidden = hide(model, batch, objective, generator)
    shown = TaggedCaptionBatch(batch.context, hidden.captions, batch.lengths, batch.levels)
    return model(shown, hidden.places)[hidden.counted], hidden.targets[hidden.counted]


def losses(
    model: Oscar, batch: TaggedCaptionBatch, objective: MaskedObjective, generator: torch.Generator
) -> Mapping[str, Tensor]:
    """The mean cross entropy of a hidden word with smoothed labels; the share said right."""
    with seeded_dropout(generator, model):
        said, targets = scores(model, batch, objective, generator)
    loss = functional.cross_entropy(said, targets, label_smoothing=objective.smoothing)
    right = (said.detach().argmax(dim=1) == targets).float().mean()
    return {"loss": loss, "accuracy": right}


def word_losses(model: Oscar, batch: TaggedCaptionBatch) -> tuple[Tensor, Tensor]:
    """(b,) the summed negative log-likelihood of each caption's words and [SEP], and (b,) how many were said right.

    Each word is hidden alone and read from a [MASK] after the true words before it: what writing asks. No chance.
    """
    said, there = model.every_word(batch), batch.there[:, 1:]
    targets = batch.captions[:, 1:]
    each = functional.cross_entropy(said.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)
    return (each * there).sum(dim=1), ((said.argmax(dim=2) == targets) & there).sum(dim=1)
