"""What MITR is trained for: L = λ1 · trace + λ2 · caption + λ3 · cycle + λ4 · joint, and LBM if asked.

The image is encoded once and shared by all tasks. All randomness, dropout included, comes from the generator given.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.models.common.batches import padding_mask
from saywhere.models.common.modes import seeded_dropout
from saywhere.models.mitr.batch import Batch, trace_of
from saywhere.models.mitr.cycle import cycle_loss, segments_shuffled, swapped_in_batch
from saywhere.models.mitr.layers import masked_boxes, shifted_boxes, shifted_words
from saywhere.models.mitr.losses import caption_loss, lbm_loss, trace_loss
from saywhere.models.mitr.network import MITR, Memory

CYCLES = ("batch", "segments")


@dataclass(frozen=True, slots=True)
class ObjectiveSettings:
    """Which tasks are learned, and how. A task of weight 0 is not computed.

    trace, caption, cycle, joint: λ1 … λ4 of the paper. lbm: weight of the LBM of the predicted traces.
    cycle_kind: "batch" gives each image another one's trace; "segments" cuts its own into `cycle_segments` and shuffles
        them. temperature: of the words in between.
    mask_rate: how many boxes that the joint task reads are replaced by the whole image. trace_mask_rate: the same for
        the trace task and for the cycle's way back, which is that task again. The paper does not do it: it teaches to
        look at the words instead of the last box.
    guided: for guided captioning, along how many key boxes captions are written; see `batch.trace_of`. 0: along traces.
    lbm_k, lbm_entropy, lbm_iterations: see `saywhere.models.mitr.losses.lbm_loss`.
    """

    trace: float = 1.0
    caption: float = 0.3
    cycle: float = 0.1
    joint: float = 1.0
    lbm: float = 0.0
    cycle_kind: str = "batch"
    cycle_segments: int = 5
    temperature: float = 1.0
    mask_rate: float = 0.5
    trace_mask_rate: float = 0.0
    guided: int = 0
    lbm_k: int = 1
    lbm_entropy: float = 0.02
    lbm_iterations: int = 50

    def __post_init__(self) -> None:
        weights = {name: getattr(self, name) for name in ("trace", "caption", "cycle", "joint", "lbm")}
        for name, weight in weights.items():
            if not 0 <= weight < float("inf"):
                raise InvalidValue(f"weight of the {name} loss", f"is {weight}, not a number from 0 on")
        if not any(weights.values()):
            raise InvalidValue("objective", "every weight is 0: there is nothing to learn")
        if self.cycle_kind not in CYCLES:
            raise UnknownName("kind of cycle", str(self.cycle_kind), CYCLES)
        if not (self.temperature > 0 and self.lbm_entropy > 0):
            raise InvalidValue("objective", "needs temperature > 0 and lbm_entropy > 0")
        if not (0 <= self.mask_rate <= 1 and 0 <= self.trace_mask_rate <= 1):
            raise InvalidValue("objective", "needs mask_rate and trace_mask_rate in [0, 1]")
        if self.cycle_segments < 2 or self.lbm_k < 0 or self.lbm_iterations < 1:
            raise InvalidValue("objective", "needs cycle_segments ≥ 2, lbm_k ≥ 0 and lbm_iterations ≥ 1")
        if self.guided < 0 or (self.guided and any(weights[name] for name in weights if name != "caption")):
            reason = "key boxes (guided) belong to no word: only captions can be learned from them"
            raise InvalidValue("objective", reason, "set trace, cycle, joint and lbm to 0")

    def weights(self) -> dict[str, float]:
        """The weight of each term that `losses` returns: its "loss" is the sum of weight · term."""
        terms = {"trace": self.trace, "lbm": self.lbm, "caption": self.caption, "cycle": self.cycle}
        terms |= {"joint_caption": self.joint, "joint_trace": self.joint}
        return {name: weight for name, weight in terms.items() if weight}


def counts(batch: Batch, settings: ObjectiveSettings) -> dict[str, int]:
    """Over how many things each weighted term of `losses` averages, so that parts of a batch can be put together."""
    located, said = int(batch.located.sum()), int((batch.lengths + 1).sum())
    things = {"trace": located, "caption": said, "cycle": located, "joint_caption": said, "joint_trace": located}
    things["lbm"] = int(batch.located.any(dim=1).sum())
    if settings.cycle_kind == "batch" and len(batch) < 2:
        things["cycle"] = 0
    return {name: things[name] for name in settings.weights()}


def losses(model: MITR, batch: Batch, settings: ObjectiveSettings, generator: torch.Generator) -> dict[str, Tensor]:
    """Every loss that is asked for, unweighted, under its name, and their weighted sum as "loss"."""
    with seeded_dropout(generator, model):
        memory = model.encode_images(batch.images)
        found: dict[str, Tensor] = {}
        if settings.trace or settings.lbm:
            found |= _trace(model, memory, batch, settings, generator)
        if settings.caption:
            found["caption"] = _caption(model, memory, batch, settings.guided)
        if settings.cycle:
            found["cycle"] = _cycle(model, memory, batch, settings, generator)
        if settings.joint:
            found |= _joint(model, memory, batch, settings, generator)
    total = torch.stack([weight * found[name] for name, weight in settings.weights().items()]).sum()
    return {"loss": total, **found}


def _trace(
    model: MITR, memory: Memory, batch: Batch, settings: ObjectiveSettings, generator: torch.Generator
) -> dict[str, Tensor]:
    mask = padding_mask(batch.lengths, batch.words.shape[1])
    seen = masked_boxes(batch.boxes, settings.trace_mask_rate, generator)
    predicted = model.ground(memory, batch.words, mask, shifted_boxes(seen))
    found = {}
    if settings.trace:
        found["trace"] = trace_loss(predicted, batch.boxes, batch.located)
    if settings.lbm:
        found["lbm"] = lbm_loss(
            predicted, batch.boxes, batch.located, settings.lbm_k, settings.lbm_entropy, settings.lbm_iterations
        )
    return found


def _caption(model: MITR, memory: Memory, batch: Batch, guided: int) -> Tensor:
    read, rows = shifted_words(batch.words, batch.lengths)
    real = padding_mask(batch.lengths + 1, read.shape[1])
    boxes, count = trace_of(batch, guided)
    logits = model.caption(memory, read, real, boxes, padding_mask(count, boxes.shape[1]))
    return caption_loss(logits, rows, real)


def _cycle(
    model: MITR, memory: Memory, batch: Batch, settings: ObjectiveSettings, generator: torch.Generator
) -> Tensor:
    how = (settings.temperature, generator, settings.trace_mask_rate)
    if settings.cycle_kind == "segments":
        boxes, located = segments_shuffled(batch, settings.cycle_segments, generator)
        return cycle_loss(model, memory, boxes, located, batch.lengths, *how)
    if len(batch) < 2:
        # Nobody to swap with: the last batch of an epoch may hold one narrative.
        return torch.zeros((), device=batch.boxes.device)
    others = swapped_in_batch(len(batch), generator).to(batch.boxes.device)
    boxes, located, lengths = batch.boxes[others], batch.located[others], batch.lengths[others]
    return cycle_loss(model, memory, boxes, located, lengths, *how)


def _joint(
    model: MITR, memory: Memory, batch: Batch, settings: ObjectiveSettings, generator: torch.Generator
) -> dict[str, Tensor]:
    read, rows = shifted_words(batch.words, batch.lengths)
    real = padding_mask(batch.lengths + 1, read.shape[1])
    seen = masked_boxes(batch.boxes, settings.mask_rate, generator)
    # The start box, then all boxes: the step that says the end has read every one of them.
    logits, predicted = model.joint(memory, read, functional.pad(seen, (0, 0, 1, 0)), real)
    return {
        "joint_caption": caption_loss(logits, rows, real),
        "joint_trace": trace_loss(predicted[:, :-1], batch.boxes, batch.located),
    }
