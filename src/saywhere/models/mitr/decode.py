"""Writing: captions, traces, or both, from an encoded image. See `steps` for what makes it fast.

A search keeps, for each beam, a score and the words said; of the (images, beams, vocabulary) scores only those of the
current place exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.language.vocabulary import END_ID, FIRST_PIECE_ID
from saywhere.models.common.batches import padding_mask
from saywhere.models.common.modes import eval_mode
from saywhere.models.mitr.layers import BOX_SIZE, ROW_OFFSET, nowhere, shifted_boxes
from saywhere.models.mitr.network import MITR, Memory
from saywhere.models.mitr.steps import CaptionSteps, JointSteps, TraceSteps, WordSteps

METHODS = ("greedy", "beam", "nucleus")
END_ROW = END_ID - ROW_OFFSET


@dataclass(frozen=True, slots=True)
class Decoding:
    """How to choose words.

    method: "greedy", "beam", or "nucleus" (random; needs a generator). beams: for "beam". max_words: for all.
    top_p, temperature: for "nucleus": draw from the likeliest words that together have this probability.
    length_penalty: for "beam": scores are divided by length ** this, so more favours longer texts; 0 compares plain
        log-probabilities.
    coverage: taken off a word's log-probability for every time that it would repeat a run of `coverage_run` words said
        before; 0 lets the network repeat itself.
    finish_sentence: end only after one of `sentence_ends`, and cut a text that ran out of words back to the last one.
    sentence_ends, forbidden: ids of pieces that end a sentence, and of pieces never to say.
    """

    method: str = "beam"
    beams: int = 5
    max_words: int = 100
    top_p: float = 0.9
    temperature: float = 1.0
    length_penalty: float = 0.0
    coverage: float = 0.0
    coverage_run: int = 2
    finish_sentence: bool = False
    sentence_ends: tuple[int, ...] = ()
    forbidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownName("decoding method", str(self.method), METHODS)
        for name in ("beams", "max_words", "coverage_run"):
            if getattr(self, name) < 1:
                raise InvalidValue(f"decoding {name}", f"is {getattr(self, name)}, not a positive number")
        if not (0 < self.top_p <= 1 and self.temperature > 0 and math.isfinite(self.temperature)):
            raise InvalidValue("decoding top_p, temperature", f"are {self.top_p}, {self.temperature}")
        if not (self.length_penalty >= 0 and self.coverage >= 0):
            raise InvalidValue("decoding length_penalty, coverage", "must not be negative")
        if any(i < FIRST_PIECE_ID for i in (*self.sentence_ends, *self.forbidden)):
            raise InvalidValue("decoding sentence_ends, forbidden", "name a marker, not a piece")


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """What was written for one image.

    ids: the words, without markers. boxes: (n, 5) one for each of them, if the task gives boxes.
    score: the sum of log-probabilities, after penalties, that it was chosen by. finished: whether the network ended it,
    rather than `max_words`.
    """

    ids: tuple[int, ...]
    score: float
    finished: bool
    boxes: Tensor | None = None


_NOTHING = Hypothesis((), -math.inf, False)


def caption(
    model: MITR,
    memory: Memory,
    boxes: Tensor,
    box_mask: Tensor,
    decoding: Decoding,
    generator: torch.Generator | None = None,
) -> list[Hypothesis]:
    """Task 2: words along each trace. boxes: (B, N, 5); box_mask: (B, N)."""
    with eval_mode(model):
        return search(CaptionSteps(model, memory, boxes, box_mask, decoding.max_words), decoding, generator)


def joint(
    model: MITR, memory: Memory, decoding: Decoding, generator: torch.Generator | None = None
) -> list[Hypothesis]:
    """Task 3: words and boxes from the image alone."""
    with eval_mode(model):
        return search(JointSteps(model, memory, decoding.max_words), decoding, generator)


def trace(model: MITR, memory: Memory, words: Tensor, lengths: Tensor, *, hidden: bool = False) -> Tensor:
    """Task 1: (B, T, 5) a box for each word; zeros after the last. words: (B, T) ids, padded; lengths: (B,).

    hidden: each box is found without the boxes before it, all at once. For models that learnt so (`trace_mask_rate`).
    """
    mask = padding_mask(lengths, words.shape[1])
    with eval_mode(model):
        if hidden:
            return model.ground(memory, words, mask, shifted_boxes(nowhere(words))) * mask[:, :, None]
        steps = TraceSteps(model, memory, words, mask)
        found = [torch.zeros(len(words), 1, BOX_SIZE, device=words.device)]
        for _ in range(words.shape[1]):
            found.append(steps.advance(found[-1]))
    return torch.cat(found[1:], dim=1) * mask[:, :, None]


def search(steps: WordSteps, decoding: Decoding, generator: torch.Generator | None = None) -> list[Hypothesis]:
    """The best text for each image, under any model that can go step by step."""
    if decoding.finish_sentence and not decoding.sentence_ends:
        raise InvalidValue("decoding finish_sentence", "no piece is known to end a sentence", "set sentence_ends")
    if decoding.method == "beam":
        found = _beam(steps, decoding)
    elif decoding.method == "greedy":
        found = _one_way(steps, decoding, lambda scores: scores.argmax(dim=-1, keepdim=True))
    elif generator is None:
        raise InvalidValue("generator", "nucleus sampling is random and needs one", "torch.Generator")
    else:
        found = _one_way(steps, decoding, lambda scores: _draw(scores, decoding, generator))
    return [_whole_sentences(said, decoding) for said in found] if decoding.finish_sentence else found


def _beam(steps: WordSteps, decoding: Decoding) -> list[Hypothesis]:
    """Beam search. A text that ends leaves its place to the others; an image is done when none of them can win."""
    words = steps.begin()
    scores = torch.zeros(words.shape, device=words.device)
    said = words.new_empty((*words.shape, 0))
    best = [_NOTHING] * len(words)
    for place in range(decoding.max_words):
        likely = _word_scores(steps.advance(words), said, decoding)
        scores, parents, said = _extended(scores, said, likely, decoding.beams)
        ended = said[..., -1] == END_ROW
        _offer(best, scores.masked_fill(~ended, -math.inf), parents, said, steps.boxes, decoding, finished=True)
        scores = scores.masked_fill(ended, -math.inf)
        if place + 1 == decoding.max_words or not _may_win(best, scores, decoding):
            break
        steps.reorder((parents + torch.arange(len(words), device=words.device)[:, None] * words.shape[1]).flatten())
        words = said[..., -1] + ROW_OFFSET
    if place + 1 == decoding.max_words:
        _offer(best, scores, parents, said, steps.boxes, decoding, finished=False)
    if any(one is _NOTHING for one in best):
        raise InvalidValue("network", "gives no finite score to any word", "its weights or inputs hold NaN")
    return best


def _extended(scores: Tensor, said: Tensor, likely: Tensor, beams: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best `beams` ways to go on. scores: (B, w); said: (B, w, t) rows; likely: (B, w, V + 1).

    Returns their scores (B, beams), the beams they go on from (B, beams), and what they say (B, beams, t + 1).
    """
    # No beam can be gone on from in more than `beams` of the best ways.
    best_each, rows = likely.topk(min(beams, likely.shape[-1]), dim=-1)
    ways = (scores[:, :, None] + best_each).flatten(1)
    scores, chosen = ways.topk(min(beams, ways.shape[1]), dim=-1)
    parents = chosen // rows.shape[-1]
    past = said.gather(1, parents[:, :, None].expand(-1, -1, said.shape[-1]))
    return scores, parents, torch.cat([past, rows.flatten(1).gather(1, chosen)[:, :, None]], dim=-1)


def _offer(
    best: list[Hypothesis],
    scores: Tensor,
    parents: Tensor,
    said: Tensor,
    boxes: Tensor | None,
    decoding: Decoding,
    *,
    finished: bool,
) -> None:
    """Keep the best text of each image if it beats what there was. boxes: (B, w, t + 1, 5), still by parent."""
    length = said.shape[-1]
    tops, beams = scores.max(dim=1)
    for i, (top, beam) in enumerate(
        zip((tops / length**decoding.length_penalty).tolist(), beams.tolist(), strict=True)
    ):
        if not top > best[i].score or (decoding.finish_sentence and best[i].finished and not finished):
            continue
        rows = said[i, beam].tolist()
        words = rows[:-1] if finished else rows
        pointed = None if boxes is None else boxes[i, parents[i, beam], : len(words)].clone()
        best[i] = Hypothesis(tuple(row + ROW_OFFSET for row in words), top, finished, pointed)


def _may_win(best: list[Hypothesis], scores: Tensor, decoding: Decoding) -> bool:
    """Whether any open beam can still beat its image's best text: scores only fall, and divide by the most at most."""
    bounds = (scores.amax(dim=1) / decoding.max_words**decoding.length_penalty).tolist()
    return any(bound > one.score for bound, one in zip(bounds, best, strict=True))


def _one_way(steps: WordSteps, decoding: Decoding, choose: Callable[[Tensor], Tensor]) -> list[Hypothesis]:
    """One text for each image. choose: (B, V + 1) scores to (B, 1) rows."""
    words = steps.begin()
    said = words.new_empty((*words.shape, 0))
    totals = torch.zeros(len(words), device=words.device)
    ended = torch.zeros(len(words), dtype=torch.bool, device=words.device)
    for _ in range(decoding.max_words):
        likely = _word_scores(steps.advance(words), said, decoding)[:, 0]
        # What is not NaN is at most 0, so the sum tells in one pass.
        if likely.sum().isnan():
            raise InvalidValue("network", "gives NaN for a word's score", "its weights or inputs hold NaN")
        rows = choose(likely)
        totals += likely.gather(1, rows)[:, 0].masked_fill(ended, 0)
        said = torch.cat([said, rows[:, :, None]], dim=-1)
        ended = ended | (rows[:, 0] == END_ROW)
        if ended.all():
            break
        words = rows + ROW_OFFSET
    texts = []
    for i, (rows_said, total, finished) in enumerate(
        zip(said[:, 0].tolist(), totals.tolist(), ended.tolist(), strict=True)
    ):
        kept = rows_said[: rows_said.index(END_ROW)] if finished else rows_said
        pointed = None if steps.boxes is None else steps.boxes[i, 0, : len(kept)].clone()
        texts.append(Hypothesis(tuple(row + ROW_OFFSET for row in kept), total, finished, pointed))
    return texts


def _draw(scores: Tensor, decoding: Decoding, generator: torch.Generator) -> Tensor:
    """A row for each image, drawn from the likeliest that together reach `top_p`. scores: (B, V + 1)."""
    chances, rows = (scores / decoding.temperature).softmax(dim=-1).sort(dim=-1, descending=True)
    # A word is out if the ones before it already reach top_p; so the first is always in.
    out = chances.cumsum(dim=-1) - chances >= decoding.top_p
    return rows.gather(1, chances.masked_fill(out, 0).multinomial(1, generator=generator))


def _word_scores(logits: Tensor, said: Tensor, decoding: Decoding) -> Tensor:
    """Log-probabilities of the next rows, less what they cost. logits: (B, w, V + 1); said: (B, w, t) rows."""
    scores = logits.float().log_softmax(dim=-1)
    if decoding.forbidden:
        scores[..., [i - ROW_OFFSET for i in decoding.forbidden]] = -math.inf
    if decoding.finish_sentence:
        ends = torch.tensor(decoding.sentence_ends, device=said.device) - ROW_OFFSET
        whole = torch.isin(said[..., -1:], ends).any(dim=-1)
        scores[..., END_ROW].masked_fill_(~whole, -math.inf)
    if decoding.coverage and said.shape[-1] >= decoding.coverage_run:
        runs = said.unfold(-1, decoding.coverage_run, 1)
        latest = said[..., said.shape[-1] - decoding.coverage_run + 1 :]
        same = (runs[..., :-1] == latest[..., None, :]).all(dim=-1)
        scores.scatter_add_(-1, runs[..., -1], same * -decoding.coverage)
    return scores


def _whole_sentences(said: Hypothesis, decoding: Decoding) -> Hypothesis:
    """A text that ran out of words, cut back to its last whole sentence if it has one."""
    ends = [i + 1 for i, word in enumerate(said.ids) if word in decoding.sentence_ends]
    if said.finished or not ends:
        return said
    return Hypothesis(said.ids[: ends[-1]], said.score, False, None if said.boxes is None else said.boxes[: ends[-1]])
