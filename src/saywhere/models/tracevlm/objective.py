"""What is minimised: words, and of every mask that is asked for BCE, Dice and more BCE where two masks overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.models.tracevlm.segmentation import resized

_SMOOTH = 1.0
_SURE = 0.5


@dataclass(frozen=True, slots=True)
class MaskObjective:
    """How much each term of a mask counts. overlap_weight: of the pixels that several predicted masks claim."""

    bce: float = 1.0
    refinement: float = 1.0
    dice: float = 1.0
    overlap_weight: float = 2.0

    def __post_init__(self) -> None:
        if min(self.bce, self.refinement, self.dice, self.overlap_weight) < 0:
            raise InvalidValue("mask objective", "has a negative weight")


@dataclass(frozen=True, slots=True)
class ImageMasks:
    """Of one image: logits (k, h, w) and truths (k, H, W), 0 or 1."""

    logits: Tensor
    truths: Tensor


def word_loss(scores: Tensor, words: Tensor) -> Tensor:
    """The mean over words. scores: (n, V); words: (n,)."""
    return functional.cross_entropy(scores.float(), words)


def mask_losses(images: Sequence[ImageMasks], settings: MaskObjective) -> dict[str, Tensor]:
    """ "masks", and its terms times their weights; each is a mean over masks."""
    terms: dict[str, list[Tensor]] = {"bce": [], "refinement": [], "dice": []}
    for one in images:
        logits = resized(one.logits, (one.truths.shape[1], one.truths.shape[2]))
        truths = one.truths.to(logits.dtype)
        terms["bce"].append(settings.bce * bce(logits, truths))
        terms["refinement"].append(settings.refinement * refinement(logits, truths, settings.overlap_weight))
        terms["dice"].append(settings.dice * dice(logits, truths))
    means = {name: torch.cat(values).mean() for name, values in terms.items()}
    return {"masks": torch.stack(list(means.values())).sum(), **means}


def bce(logits: Tensor, truths: Tensor) -> Tensor:
    """(k,) the mean over pixels."""
    return functional.binary_cross_entropy_with_logits(logits, truths, reduction="none").mean(dim=(1, 2))


def dice(logits: Tensor, truths: Tensor) -> Tensor:
    """(k,) 1 − twice what is shared over all there is."""
    shares = logits.sigmoid()
    shared, there = (shares * truths).sum(dim=(1, 2)), (shares + truths).sum(dim=(1, 2))
    return 1 - (2 * shared + _SMOOTH) / (there + _SMOOTH)


def refinement(logits: Tensor, truths: Tensor, weight: float) -> Tensor:
    """(k,) weight · BCE of the pixels that two or more of an image's predicted masks claim, over all pixels.

    Which pixels those are is taken as given: no gradient flows through the choice.
    """
    claimed = (logits.detach().sigmoid() > _SURE).sum(dim=0) > 1
    each = functional.binary_cross_entropy_with_logits(logits, truths, reduction="none")
    return weight * (each * claimed).mean(dim=(1, 2))


def total(words: Tensor, masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The loss, the sum of "text" and "masks", with all terms."""
    return {"loss": words + masks["masks"] if masks else words, "text": words, **masks}


def near_loss(scores: Tensor, tokens: Tensor, first_coordinate: int, spread: float) -> Tensor:
    """The mean over tokens; for coordinates, which are the last tokens, those near the true one count as well, by a
    bell of this spread. With a spread of 0 it is `word_loss`."""
    logs = scores.float().log_softmax(dim=1)
    drawn = tokens >= first_coordinate
    if not spread or not bool(drawn.any()):
        return functional.nll_loss(logs, tokens)
    bins = torch.arange(scores.shape[1] - first_coordinate, device=scores.device)
    far = (bins - (tokens[drawn] - first_coordinate)[:, None]) / spread
    weights = torch.softmax(-0.5 * far**2, dim=1)
    near = -(weights * logs[drawn][:, first_coordinate:]).sum()
    return (functional.nll_loss(logs[~drawn], tokens[~drawn], reduction="sum") + near) / len(tokens)
