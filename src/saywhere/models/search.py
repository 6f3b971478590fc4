"""Choosing words: greedy, beam and nucleus, over any network that goes step by step with what it read kept.

A search knows tokens by their place in the network's scores. It keeps for each text the tokens said and their
log-probabilities; of scores over the vocabulary only those of the current place exist. A text that is finished leaves
the batch, so that short ones do not wait for long ones.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from saywhere.core.errors import InvalidValue, UnknownName

METHODS = ("greedy", "beam", "nucleus")


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """How to choose words.

    method: "greedy", "beam", or "nucleus" (random, but the same for the same seed). beams: for "beam".
    max_words: pieces at most; by default as many as the writer can. min_words: it may not end before.
    length_penalty: for "beam": sums of log-probabilities are divided by length ** this; 1 compares their means.
    no_repeat: no run of so many pieces comes twice; 0 allows all.
    top_p, temperature, seed: for "nucleus": draw from the likeliest pieces that together have this probability.
    """

    method: str = "greedy"
    beams: int = 5
    max_words: int | None = None
    min_words: int = 1
    length_penalty: float = 1.0
    no_repeat: int = 0
    top_p: float = 0.9
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownName("writing method", str(self.method), METHODS)
        if self.beams < 1 or (self.max_words is not None and self.max_words < 1):
            raise InvalidValue("writing beams, max_words", f"are {self.beams}, {self.max_words}, not positive numbers")
        if min(self.min_words, self.no_repeat, self.length_penalty) < 0:
            raise InvalidValue("writing min_words, no_repeat, length_penalty", "must not be negative")
        if not (0 < self.top_p <= 1 and 0 < self.temperature < math.inf):
            raise InvalidValue("writing top_p, temperature", f"are {self.top_p}, {self.temperature}")

    def most_words(self, limit: int) -> int:
        """How many pieces to write at most with a writer that can write `limit`."""
        if self.max_words is not None and self.max_words > limit:
            raise InvalidValue("writing max_words", f"is {self.max_words}, but the writer was made for {limit}")
        return limit if self.max_words is None else self.max_words


GREEDY = GenerationConfig()


@dataclass(frozen=True, slots=True)
class Written:
    """A text. score: the mean of token_logprobs. token_logprobs: of every piece, and of the end if it came.

    ended: whether the network ended it, rather than the limit of words.
    """

    text: str
    score: float
    token_logprobs: tuple[float, ...]
    ended: bool = True


class Writer(Protocol):
    """Anything that puts vectors into words."""

    def write(
        self, vectors: ArrayLike, how: GenerationConfig = GREEDY, prompts: Sequence[str] | None = None
    ) -> list[Written]:
        """A text for each of (m, d) vectors. prompts: a text for each vector to start from, "" for none."""
        ...


class Steps(Protocol):
    """A network that has read what comes before the text."""

    def start(self) -> Tensor:
        """(texts, V) scores of the first token."""
        ...

    def advance(self, tokens: Tensor) -> Tensor:
        """Read a token for each row, (rows,); returns (rows, V) scores of the next."""
        ...

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from what was row `rows[i]`. The number of rows may change."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """What a search needs of a network besides its steps. ends: tokens that end a text. forbidden: never said."""

    how: GenerationConfig
    max_words: int
    ends: tuple[int, ...]
    forbidden: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """tokens: without the end. logprobs: of each, and of the end if it came."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    ended: bool

    @property
    def score(self) -> float:
        return sum(self.logprobs) / len(self.logprobs)


def search(steps: Steps, rules: Rules, chances: Tensor | None = None) -> list[Hypothesis]:
    """A text for each row of `steps`. chances: (texts, max_words) in [0, 1), for "nucleus"; see `draws`."""
    if rules.how.method == "beam":
        return _beam(steps, rules)
    if (rules.how.method == "nucleus") != (chances is not None):
        raise InvalidValue("chances", "are for nucleus sampling, which needs them")
    return _one_way(steps, rules, chances)


def draws(keys: Sequence[bytes], seed: int, count: int) -> Tensor:
    """(texts, count) numbers in [0, 1) that depend on the seed and each text's own key, not on its neighbours."""
    rows = []
    for key in keys:
        digest = hashlib.sha256(seed.to_bytes(16, "big", signed=True) + key).digest()
        rows.append(np.random.default_rng(int.from_bytes(digest[:16], "big")).random(count))
    return torch.from_numpy(np.asarray(rows, dtype=np.float64).reshape(len(keys), count))


def _one_way(steps: Steps, rules: Rules, chances: Tensor | None) -> list[Hypothesis]:
    """One text for each row, without looking back."""
    scores = steps.start()
    count, device = len(scores), scores.device
    done: list[Hypothesis | None] = [None] * count
    numbers = torch.arange(count, device=device)
    said, logprobs = numbers.new_empty(count, 0), scores.new_empty(count, 0, dtype=torch.float32)
    ends = torch.tensor(rules.ends, device=device)
    for place in range(rules.max_words):
        likely = _likely(scores)
        allowed = _allowed(likely, said, rules)
        if chances is None:
            tokens = allowed.argmax(dim=-1, keepdim=True)
        else:
            tokens = _drawn(allowed, chances[numbers.cpu(), place].to(device), rules.how)
        if bool(allowed.gather(1, tokens).isinf().any()):
            raise InvalidValue("writing", "the rules leave no word to say", "lower min_words or no_repeat")
        said, logprobs = torch.cat([said, tokens], 1), torch.cat([logprobs, likely.gather(1, tokens)], 1)
        ended = torch.isin(tokens[:, 0], ends)
        last = place + 1 == rules.max_words
        leaving = torch.ones_like(ended) if last else ended
        for row in leaving.nonzero()[:, 0].tolist():
            done[int(numbers[row])] = _said(said[row], logprobs[row], bool(ended[row]))
        if bool(leaving.all()):
            break
        if bool(leaving.any()):
            stay = (~leaving).nonzero()[:, 0]
            steps.reorder(stay)
            said, logprobs, numbers, tokens = said[stay], logprobs[stay], numbers[stay], tokens[stay]
        scores = steps.advance(tokens[:, 0])
    return [one for one in done if one is not None]


def _beam(steps: Steps, rules: Rules) -> list[Hypothesis]:
    """Beam search. A text that ends leaves its place to the others; a row is done when none of them can win."""
    scores = steps.start()
    count, device, beams = len(scores), scores.device, rules.how.beams
    best: list[tuple[float, Hypothesis | None]] = [(-math.inf, None)] * count
    numbers = torch.arange(count, device=device)
    said = numbers.new_empty(count, 0)
    logprobs = scores.new_empty(count, 0, dtype=torch.float32)
    totals = scores.new_zeros(count, 1, dtype=torch.float32)
    ends = torch.tensor(rules.ends, device=device)
    for place in range(rules.max_words):
        likely = _likely(scores)
        totals, rows, tokens = _extended(totals, _allowed(likely, said, rules), beams)
        said = torch.cat([said[rows], tokens[:, None]], 1)
        logprobs = torch.cat([logprobs[rows], likely[rows, tokens][:, None]], 1)
        last = place + 1 == rules.max_words
        ended = torch.isin(tokens, ends).view_as(totals)
        offered = totals if last else totals.masked_fill(~ended, -math.inf)
        _offer(best, numbers, offered / (place + 1) ** rules.how.length_penalty, said, logprobs, ended)
        totals = totals.masked_fill(ended, -math.inf)
        bounds = totals.amax(dim=1) / rules.max_words**rules.how.length_penalty
        standing = [bound > best[i][0] for bound, i in zip(bounds.tolist(), numbers.tolist(), strict=True)]
        if last or not any(standing):
            break
        width = totals.shape[1]
        stay = torch.tensor(standing, device=device).nonzero()[:, 0]
        kept = (stay[:, None] * width + torch.arange(width, device=device)).flatten()
        totals, numbers, said, logprobs = totals[stay], numbers[stay], said[kept], logprobs[kept]
        steps.reorder(rows[kept])
        scores = steps.advance(tokens[kept])
    return [_found(one) for _, one in best]


def _extended(totals: Tensor, allowed: Tensor, beams: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best ways to go on. totals: (texts, w); allowed: (texts · w, V) log-probabilities.

    Returns totals (texts, beams), and for each of these texts · beams the row it goes on from and its token.
    """
    texts, width = totals.shape
    # No row can be gone on from in more than `beams` of the best ways.
    best_each, token_each = allowed.topk(min(beams, allowed.shape[1]), dim=-1)
    ways = (totals.flatten()[:, None] + best_each).view(texts, -1)
    totals, chosen = ways.topk(min(beams, ways.shape[1]), dim=-1)
    first_rows = torch.arange(texts, device=totals.device)[:, None] * width
    rows = (first_rows + chosen // best_each.shape[1]).flatten()
    return totals, rows, token_each.view(texts, -1).gather(1, chosen).flatten()


def _offer(
    best: list[tuple[float, Hypothesis | None]],
    numbers: Tensor,
    scores: Tensor,
    said: Tensor,
    logprobs: Tensor,
    ended: Tensor,
) -> None:
    """Keep each text's best way if it beats what there was. scores, ended: (texts, w); said: (texts · w, t)."""
    tops, beams = scores.max(dim=1)
    for i, (number, top, beam) in enumerate(zip(numbers.tolist(), tops.tolist(), beams.tolist(), strict=True)):
        if top > best[number][0]:
            row = i * scores.shape[1] + beam
            best[number] = top, _said(said[row], logprobs[row], bool(ended[i, beam]))


def _found(said: Hypothesis | None) -> Hypothesis:
    if said is None:
        raise InvalidValue("writer", "gives no finite score to any text", "are its weights or vectors NaN?")
    return said


def _said(tokens: Tensor, logprobs: Tensor, ended: bool) -> Hypothesis:
    kept: list[int] = tokens.tolist()
    return Hypothesis(tuple(kept[:-1] if ended else kept), tuple(logprobs.tolist()), ended)


def _likely(scores: Tensor) -> Tensor:
    likely = scores.float().log_softmax(dim=-1)
    if bool(likely.isnan().any()):
        raise InvalidValue("writer", "gives NaN for a word's score", "are its weights or vectors NaN?")
    return likely


def _allowed(likely: Tensor, said: Tensor, rules: Rules) -> Tensor:
    """The log-probabilities with −∞ for what may not be said now. likely: (rows, V); said: (rows, t)."""
    allowed = likely.clone()
    if rules.forbidden:
        allowed[:, list(rules.forbidden)] = -math.inf
    if said.shape[1] < rules.how.min_words:
        allowed[:, list(rules.ends)] = -math.inf
    run = rules.how.no_repeat
    if run and said.shape[1] >= run:
        runs = said.unfold(1, run, 1)
        latest = said[:, said.shape[1] - run + 1 :]
        same = (runs[..., :-1] == latest[:, None]).all(dim=-1)
        allowed.scatter_add_(1, runs[..., -1], torch.zeros_like(same, dtype=allowed.dtype).masked_fill(same, -math.inf))
    return allowed


def _drawn(allowed: Tensor, chances: Tensor, how: GenerationConfig) -> Tensor:
    """(rows, 1) tokens, drawn from the likeliest that together reach `top_p`. chances: (rows,) in [0, 1)."""
    shares, tokens = (allowed / how.temperature).double().softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    # A token is out if the ones before it already reach top_p; so the first is always in.
    shares = shares.masked_fill(shares.cumsum(dim=-1) - shares >= how.top_p, 0)
    reached = shares.cumsum(dim=-1)
    place = torch.searchsorted(reached, (chances * reached[:, -1])[:, None], right=True)
    # Rounding may put a chance near 1 behind the last token that is in.
    most = (shares > 0).sum(dim=-1, keepdim=True) - 1
    return tokens.gather(1, place.minimum(most))
