"""Decoders that keep nothing between steps: plain to read, slow, and the measure of the ones that are used.

They do what the authors' evaluation does. Captions, and captions with boxes: the image is encoded once; the trace, the
words so far and every layer's keys and values are computed anew for each word, and only the last place is turned into
scores. Traces: everything is computed anew, the encoder included.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from saywhere.language.vocabulary import BEGIN_ID, END_ID
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr.layers import ROW_OFFSET, as_keys, causal_mask, shifted_boxes
from saywhere.models.mitr.network import MITR

Regions = tuple[Tensor, Tensor, Tensor]
"""features (B, R, F), boxes (B, R, 5), mask (B, R)."""

Text = tuple[list[int], float]
"""Ids with begin, and the sum of their log-probabilities."""

Scores = Callable[[Tensor, Tensor], Tensor]
"""The image (rows,) and the ids so far (rows, t) of some texts, to log-probabilities (rows, V + 1) of the next."""


@torch.no_grad()
def caption(
    model: MITR, regions: Regions, boxes: Tensor, box_mask: Tensor, beams: int, max_words: int
) -> list[list[int]]:
    """Ids of the best caption along each trace, by beam search; one beam is greedy."""
    hidden, mask = model.hidden(*regions), regions[2]

    def scores(rows: Tensor, said: Tensor) -> Tensor:
        memory = model.memorise(hidden[rows], mask[rows])
        trace_mask = as_keys(box_mask[rows])
        causal = causal_mask(said.shape[1], said.shape[1], said.device)
        w = model.word_stream(model.words(said), causal, memory.words, memory.mask)
        r = model.trace_stream(model.trace(boxes[rows]), trace_mask, memory.trace, memory.mask)
        return model.to_words(model.caption_fusion(w, r, trace_mask)[:, -1]).log_softmax(-1)

    return _search(scores, len(mask), beams, max_words)


@torch.no_grad()
def joint(model: MITR, regions: Regions, beams: int, max_words: int) -> list[list[int]]:
    """Ids of the best caption of each image, with boxes on the way that are worked out again for each word."""
    hidden, mask = model.hidden(*regions), regions[2]
    boxes_of: dict[tuple[int, ...], Tensor] = {}

    def scores(rows: Tensor, said: Tensor) -> Tensor:
        keys = [(int(row), *ids) for row, ids in zip(rows, said.tolist(), strict=True)]
        start = torch.zeros(1, 5)
        trace = torch.stack([torch.cat([start, *(boxes_of[key[:n]] for n in range(2, len(key)))]) for key in keys])
        likely, boxes = _joint_step(model, hidden[rows], mask[rows], said, trace)
        boxes_of.update(zip(keys, boxes, strict=True))
        return likely

    return _search(scores, len(mask), beams, max_words)


@torch.no_grad()
def joint_score(model: MITR, regions: Regions, item: int, ids: list[int], ended: bool) -> tuple[float, Tensor]:
    """Log-probability of a caption, with its end if it has one, and its boxes (n, 5), for one image of the batch."""
    hidden, mask = model.hidden(*regions)[[item]], regions[2][[item]]
    trace, total = torch.zeros(1, 1, 5), 0.0
    for place, word in enumerate([*ids, END_ID] if ended else ids):
        said = torch.tensor([[BEGIN_ID, *ids[:place]]])
        likely, box = _joint_step(model, hidden, mask, said, trace)
        trace = torch.cat([trace, box], dim=1)
        total += float(likely[0, word - ROW_OFFSET])
    return total, trace[0, 1 : len(ids) + 1]


@torch.no_grad()
def trace(model: MITR, regions: Regions, words: Tensor, lengths: Tensor) -> Tensor:
    """(B, T, 5) a box for each word."""
    mask = padding_mask(lengths, words.shape[1])
    found = torch.zeros(*words.shape, 5)
    for place in range(words.shape[1]):
        boxes = model.ground(model.encode(*regions), words, mask, shifted_boxes(found))
        found[:, place] = _with_area(boxes[:, place])
    return found


def _joint_step(model: MITR, hidden: Tensor, mask: Tensor, said: Tensor, trace: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities (rows, V + 1) of the next word and its box (rows, 1, 5), from all words and boxes before it."""
    memory = model.memorise(hidden, mask)
    causal = causal_mask(said.shape[1], said.shape[1], said.device)
    w = model.word_stream(model.words(said), causal, memory.words, memory.mask)
    r = model.trace_stream(model.trace(trace), causal, memory.trace, memory.mask)
    likely = model.to_words(model.joint_caption_fusion(w, r, causal)[:, -1]).log_softmax(-1)
    pointed = model.joint_trace_fusion(r, w, causal)[:, -1:]
    return likely, _with_area(model.to_boxes(model.joint_trace_norm(pointed)))


def _with_area(boxes: Tensor) -> Tensor:
    area = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return torch.cat([boxes[..., :4], area[..., None]], dim=-1)


def _search(scores: Scores, count: int, beams: int, max_words: int) -> list[list[int]]:
    """Beam search with a list of open texts, and one of ended ones, for each image."""
    open_texts: list[list[Text]] = [[([BEGIN_ID], 0.0)] for _ in range(count)]
    done: list[list[Text]] = [[] for _ in range(count)]
    for _ in range(max_words):
        rows = [(image, ids) for image, texts in enumerate(open_texts) for ids, _ in texts]
        if not rows:
            break
        likely = scores(torch.tensor([image for image, _ in rows]), torch.tensor([ids for _, ids in rows]))
        parts = likely.split([len(texts) for texts in open_texts])
        open_texts = [
            _best_ways_on(texts, part, beams, ended) for texts, part, ended in zip(open_texts, parts, done, strict=True)
        ]
    for ended, texts in zip(done, open_texts, strict=True):
        ended += texts
    return [[i for i in max(texts, key=lambda text: text[1])[0][1:] if i != END_ID] for texts in done]


def _best_ways_on(texts: list[Text], likely: Tensor, beams: int, done: list[Text]) -> list[Text]:
    """The open ones among the best ways to go on; the ended ones are added to `done`."""
    if not texts:
        return []
    totals = torch.tensor([score for _, score in texts])[:, None] + likely
    tops, ways = totals.flatten().topk(min(beams, totals.numel()))
    found = []
    for score, way in zip(tops.tolist(), ways.tolist(), strict=True):
        ids = [*texts[way // totals.shape[1]][0], way % totals.shape[1] + ROW_OFFSET]
        (done if ids[-1] == END_ID else found).append((ids, score))
    # Greedy stops at its end; of several beams any open one may still win.
    return [] if beams == 1 and done else found
