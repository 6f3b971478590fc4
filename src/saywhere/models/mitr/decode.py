"""Writing captions, traces, or both, from an encoded image, by `saywhere.models.search`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from saywhere.language.vocabulary import END_ID, Vocabulary
from saywhere.models.common.batches import padding_mask
from saywhere.models.common.modes import eval_mode
from saywhere.models.mitr.layers import BOX_SIZE, ROW_OFFSET, nowhere, shifted_boxes
from saywhere.models.mitr.network import MITR, Memory
from saywhere.models.mitr.steps import JointSteps, RowSteps, TraceCaptionSteps, TraceSteps
from saywhere.models.search import GenerationConfig, Hypothesis, Rules, search, uniform_draws

END_ROW = END_ID - ROW_OFFSET
MOST_WORDS = 100
BEAM = GenerationConfig("beam", beams=5, min_words=0, length_penalty=0.0)
"""As the authors write: sums of log-probabilities are compared."""


def caption(
    model: MITR, memory: Memory, boxes: Tensor, box_mask: Tensor, how: GenerationConfig = BEAM
) -> list[Hypothesis]:
    """Task 2: words along each trace. boxes: (B, N, 5); box_mask: (B, N). Tokens of the result are ids."""
    most = how.max_words or MOST_WORDS
    with eval_mode(model):
        return written(TraceCaptionSteps(model, memory, boxes, box_mask, most), how, len(boxes), model.vocabulary)


def joint(model: MITR, memory: Memory, how: GenerationConfig = BEAM) -> list[Hypothesis]:
    """Task 3: words and boxes, (n, 5) `outputs`, from the image alone. Tokens of the result are ids."""
    with eval_mode(model):
        steps = JointSteps(model, memory, how.max_words or MOST_WORDS)
        return written(steps, how, len(memory.mask), model.vocabulary)


def trace(model: MITR, memory: Memory, words: Tensor, lengths: Tensor, *, hidden: bool = False) -> Tensor:
    """Task 1: (B, T, 5) a box for each word; zeros after the last. words: (B, T) ids, padded; lengths: (B,).

    hidden: each box is found without the boxes before it, all at once. For models that learnt so (`trace_mask_rate`).
    """
    mask = padding_mask(lengths, words.shape[1])
    with eval_mode(model):
        if hidden:
            return model.ground(memory, words, mask, shifted_boxes(nowhere(words))) * mask[:, :, None]
        return boxes_one_by_one(TraceSteps(model, memory, words, mask).advance, mask)


def written(
    steps: RowSteps, how: GenerationConfig, images: int, vocabulary: Vocabulary | None = None
) -> list[Hypothesis]:
    """The best text for each image, in ids. vocabulary: its unknown word is never said."""
    most = how.max_words or MOST_WORDS
    unknown, ends = (None, ()) if vocabulary is None else (vocabulary.unknown_id, vocabulary.sentence_end_ids)
    forbidden = () if unknown is None else (unknown - ROW_OFFSET,)
    rules = Rules(how, most, (END_ROW,), forbidden, tuple(end - ROW_OFFSET for end in ends))
    # The same for all: a text must not depend on its neighbours, and an image is rounded otherwise among others.
    draws = uniform_draws([b""] * images, how.seed, most) if how.method == "nucleus" else None
    return [
        replace(one, tokens=tuple(token + ROW_OFFSET for token in one.tokens)) for one in search(steps, rules, draws)
    ]


def boxes_one_by_one(advance: Callable[[Tensor], Tensor], mask: Tensor) -> Tensor:
    """(B, T, 5) boxes, each from the one before it; zeros where the mask (B, T) is False."""
    found = [torch.zeros(len(mask), BOX_SIZE, device=mask.device)]
    for _ in range(mask.shape[1]):
        found.append(advance(found[-1]))
    return torch.stack(found[1:], dim=1) * mask[:, :, None]
