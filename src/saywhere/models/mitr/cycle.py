"""The cycle of §3.4: a trace nobody drew → the caption it would have → the trace of that caption: the same again.

The words in between are sampled one after the other, with Gumbel noise drawn for every narrative, place and word. They
are then read again all at once, with gradients: each is a one-hot choice forwards, and a softmax at the given
temperature backwards (straight-through). Both times the caption is read without dropout: with a draw of its own for
each, the word chosen was not the likeliest of its own softmax at a fifth of all places. The gradient follows each
word's own distribution; how an earlier word changed a later one is not followed. The released code does something else
(it reads the original caption, aims at the original trace, pairs boxes with the next word, and shares one noise vector
in the batch); the paper is followed here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from saywhere.language.vocabulary import BEGIN_ID
from saywhere.models.common.batches import padding_mask
from saywhere.models.common.modes import eval_mode, without_dropout
from saywhere.models.mitr.batch import Batch
from saywhere.models.mitr.decode import END_ROW
from saywhere.models.mitr.layers import ROW_OFFSET, DrawnWords, masked_boxes, shifted_boxes
from saywhere.models.mitr.losses import trace_loss
from saywhere.models.mitr.network import MITR, Memory
from saywhere.models.mitr.steps import TraceCaptionSteps

LOWEST_LOG_PROBABILITY = -50.0
"""Words less likely than e^−50 count as if they were just that: an underflow must not turn into NaN."""


def cycle_loss(
    model: MITR,
    memory: Memory,
    boxes: Tensor,
    located: Tensor,
    lengths: Tensor,
    temperature: float,
    generator: torch.Generator,
    hidden_rate: float = 0.0,
) -> Tensor:
    """L1 from the permuted trace to the trace that comes back. boxes: (B, T, 5); located: (B, T); lengths: (B,).

    hidden_rate: how many of the boxes before it the second half does not see, as in Task 1, whose work it does.
    """
    mask = padding_mask(lengths, boxes.shape[1])
    words = drawn_caption(model, memory, boxes, mask, temperature, generator)
    predicted = model.ground(memory, words, mask, shifted_boxes(masked_boxes(boxes, hidden_rate, generator)))
    return trace_loss(predicted, boxes, located & mask)


def drawn_caption(
    model: MITR, memory: Memory, boxes: Tensor, mask: Tensor, temperature: float, generator: torch.Generator
) -> DrawnWords:
    """The first half of the cycle: a word for each box, (B, T). boxes: (B, T, 5); mask: (B, T)."""
    noise = word_noise(boxes, model.config.words, generator)
    read = sampled_words(model, memory, boxes, mask, noise)
    with without_dropout(model):
        logits = model.caption(memory, read[:, :-1], mask, boxes, mask)
    chances = noisy_chances(word_log_probabilities(logits), noise, temperature)
    return DrawnWords(read[:, 1:] - ROW_OFFSET, chances)


def sampled_words(model: MITR, memory: Memory, boxes: Tensor, mask: Tensor, noise: Tensor) -> Tensor:
    """(B, T + 1) ids: begin, and one word for each box of the trace, drawn by adding the noise (B, T, V + 1)."""
    with eval_mode(model):
        steps = TraceCaptionSteps(model, memory, boxes, mask, boxes.shape[1])
        drawn = [torch.full_like(mask[:, 0], BEGIN_ID - ROW_OFFSET, dtype=torch.long)]
        for place in range(boxes.shape[1]):
            scores = steps.advance(drawn[-1])
            drawn.append((scores + noise[:, place]).argmax(dim=-1))
    return torch.stack(drawn, dim=1) + ROW_OFFSET


def word_log_probabilities(logits: Tensor) -> Tensor:
    """(…, V + 1) log-probabilities, none so low that it could underflow."""
    return logits.log_softmax(dim=-1).clamp_min(LOWEST_LOG_PROBABILITY)


def noisy_chances(log_probabilities: Tensor, noise: Tensor, temperature: float) -> Tensor:
    """(B, T, V + 1) the Gumbel-softmax: what a word would be at this temperature, a little of every word."""
    return ((log_probabilities + noise) / temperature).softmax(dim=-1)


def word_noise(boxes: Tensor, words: int, generator: torch.Generator) -> Tensor:
    """(B, T, V + 1) independent Gumbel noise for every place and row of (B, T, 5) boxes.

    The end gets −∞: a trace of T boxes has T words, and the end is none of them.
    """
    uniform = torch.rand((*boxes.shape[:2], words + 1), generator=generator, device=generator.device)
    tiny = torch.finfo(uniform.dtype).tiny
    noise = -(-uniform.clamp_min(tiny).log()).clamp_min(tiny).log()
    noise[..., END_ROW] = -math.inf
    return noise.to(boxes.device)


def swapped_in_batch(size: int, generator: torch.Generator) -> Tensor:
    """(size,) whose trace each image gets: a random cycle through the whole batch, so never its own. Needs size ≥ 2."""
    order = torch.randperm(size, generator=generator, device=generator.device).cpu()
    others = torch.empty_like(order)
    others[order] = order.roll(1)
    return others


def segments_shuffled(batch: Batch, segments: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Boxes (B, T, 5) and located flags (B, T), each trace cut into segments of nearly equal length and shuffled."""
    order = torch.arange(batch.words.shape[1]).repeat(len(batch), 1)
    for row, length in zip(order, batch.lengths.tolist(), strict=True):
        parts = row[:length].tensor_split(min(segments, length))
        shuffled = torch.randperm(len(parts), generator=generator, device=generator.device).tolist()
        row[:length] = torch.cat([parts[i] for i in shuffled])
    order = order.to(batch.boxes.device)
    return batch.boxes.gather(1, order[:, :, None].expand_as(batch.boxes)), batch.located.gather(1, order)
