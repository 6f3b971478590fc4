"""Decoders that keep nothing between steps: plain to read, slow, and the measure of the ones that are used.

They do what the authors' evaluation does. Captions: the image is encoded once, and all else (the trace, the words so
far, every layer's keys and values) is computed anew for each word. Traces: everything is, the encoder included.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saywhere.language.vocabulary import BEGIN_ID
from saywhere.models.mitr.layers import ROW_OFFSET, padding_mask, shifted_boxes
from saywhere.models.mitr.network import MITR

Regions = tuple[Tensor, Tensor, Tensor]
"""features (B, R, F), boxes (B, R, 5), mask (B, R)."""


@torch.no_grad()
def caption(
    model: MITR, regions: Regions, boxes: Tensor, box_mask: Tensor, beams: int, max_words: int, keep_image: bool = False
) -> list[list[int]]:
    """Ids of the best caption along each trace, by beam search; one beam is greedy.

    keep_image: keep the keys and values of the image, the least a decoder would.
    """
    hidden, mask = model.hidden(*regions), regions[2]
    count = len(mask)
    memory = model.memorise(hidden, mask)

    def scores(said: Tensor) -> Tensor:
        rows = torch.arange(count).repeat_interleave(len(said) // count)
        seen = memory.take(rows) if keep_image else model.memorise(hidden[rows], mask[rows])
        real = torch.ones_like(said, dtype=torch.bool)
        return model.caption(seen, said, real, boxes[rows], box_mask[rows])[:, -1].log_softmax(-1)

    return _search(scores, count, beams, max_words)


@torch.no_grad()
def joint(model: MITR, regions: Regions, max_words: int) -> tuple[list[list[int]], Tensor]:
    """Ids and boxes (B, T, 5) of the greedy caption and trace of each image."""
    hidden, mask = model.hidden(*regions), regions[2]
    trace = torch.zeros(len(mask), 1, 5)

    def scores(said: Tensor) -> Tensor:
        nonlocal trace
        real = torch.ones_like(said, dtype=torch.bool)
        logits, boxes = model.joint(model.memorise(hidden, mask), said, trace, real)
        trace = torch.cat([trace, _with_area(boxes[:, -1:])], dim=1)
        return logits[:, -1].log_softmax(-1)

    return _search(scores, len(mask), 1, max_words), trace[:, 1:]


@torch.no_grad()
def joint_score(model: MITR, regions: Regions, item: int, ids: list[int]) -> tuple[float, Tensor]:
    """Log-probability of a caption with its end, and its boxes (n, 5), when image and words are given."""
    memory = model.encode(*regions).take(torch.tensor([item]))
    trace, total = torch.zeros(1, 1, 5), 0.0
    for place, word in enumerate([*ids, ROW_OFFSET]):
        said = torch.tensor([[BEGIN_ID, *ids[:place]]])
        logits, boxes = model.joint(memory, said, trace, torch.ones_like(said, dtype=torch.bool))
        trace = torch.cat([trace, _with_area(boxes[:, -1:])], dim=1)
        total += float(logits[0, -1].log_softmax(-1)[word - ROW_OFFSET])
    return total, trace[0, 1:-1]


@torch.no_grad()
def trace(model: MITR, regions: Regions, words: Tensor, lengths: Tensor, encode_once: bool = False) -> Tensor:
    """(B, T, 5) a box for each word."""
    mask = padding_mask(lengths, words.shape[1])
    found = torch.zeros(*words.shape, 5)
    memory = model.encode(*regions)
    for place in range(words.shape[1]):
        seen = memory if encode_once else model.encode(*regions)
        boxes = model.ground(seen, words, mask, shifted_boxes(found))
        found[:, place] = _with_area(boxes[:, place])
    return found


def _with_area(boxes: Tensor) -> Tensor:
    area = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return torch.cat([boxes[..., :4], area[..., None]], dim=-1)


def _search(scores, count: int, beams: int, max_words: int) -> list[list[int]]:  # type: ignore[no-untyped-def]
    """Beam search with a list for each image. scores: (rows, t) ids to (rows, V + 1) log-probabilities."""
    open_texts = [[([BEGIN_ID], 0.0)] for _ in range(count)]
    done: list[list[tuple[list[int], float]]] = [[] for _ in range(count)]
    for place in range(max_words):
        width = max(len(texts) for texts in open_texts)
        # Every image needs the same number of rows; an image with fewer open texts repeats its first.
        padded = [texts + [(texts[0] if texts else ([BEGIN_ID] * (place + 1), 0.0))] * (width - len(texts)) for texts in open_texts]
        likely = scores(torch.tensor([ids for texts in padded for ids, _ in texts])).view(count, width, -1)
        for image, texts in enumerate(open_texts):
            if not texts:
                continue
            totals = torch.tensor([score for _, score in texts])[:, None] + likely[image, : len(texts)]
            tops, ways = totals.flatten().topk(min(beams, totals.numel()))
            chosen = []
            for score, way in zip(tops.tolist(), ways.tolist(), strict=True):
                ids = [*texts[way // totals.shape[1]][0], way % totals.shape[1] + ROW_OFFSET]
                if ids[-1] == ROW_OFFSET:
                    done[image].append((ids[1:-1], score))
                else:
                    chosen.append((ids, score))
            # One beam that has ended is the greedy answer; several go on, as any open one may still win.
            open_texts[image] = [] if beams == 1 and done[image] else chosen
        if not any(open_texts):
            break
    for image, texts in enumerate(open_texts):
        done[image] += [(ids[1:], score) for ids, score in texts]
    return [max(texts, key=lambda text: text[1])[0] for texts in done]
