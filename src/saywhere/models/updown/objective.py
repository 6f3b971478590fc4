"""What the two networks are trained for, and the scores that HINT explains."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import PAD_ID


def answer_score(logits: Tensor, targets: Tensor) -> Tensor:
    """(b,) the sum of logits over all correct answers: o_gt of HINT.

    logits: (b, answers). targets: (b, answers) soft scores in [0, 1]; correct are those above 0. An item without any
    has score 0, and no gradient.
    """
    _check_alike(logits, targets)
    return (logits * (targets > 0)).sum(dim=1)


def answer_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy with soft targets, summed over answers, mean over the batch, as UpDn has it."""
    _check_alike(logits, targets)
    return functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(logits)


def answer_accuracy(logits: Tensor, targets: Tensor) -> Tensor:
    """(b,) the soft score of the answer with the highest logit; with ten people, its VQA accuracy."""
    _check_alike(logits, targets)
    return targets.gather(1, logits.argmax(dim=1, keepdim=True))[:, 0]


def word_score(logits: Tensor, targets: Tensor) -> Tensor:
    """(b, t) the logit of each true word. logits: (b, t, ids). targets: (b, t) ids; 0 where these are padding."""
    return logits.gather(2, targets[:, :, None])[:, :, 0].masked_fill(targets == PAD_ID, 0)


def caption_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Negative log-likelihood of a word, mean over all words and ends of the batch.

    logits: (b, t, ids). targets: (b, t) ids, PAD_ID after the end.
    """
    if not bool((targets != PAD_ID).any()):
        raise InvalidValue("captions", "hold no word")
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD_ID)


def _check_alike(logits: Tensor, targets: Tensor) -> None:
    if logits.shape != targets.shape or logits.dim() != 2 or not torch.is_floating_point(targets):
        found = f"{tuple(logits.shape)} and {tuple(targets.shape)} {targets.dtype}"
        raise InvalidValue("logits and targets", f"are {found}, not (b, answers) numbers both")
