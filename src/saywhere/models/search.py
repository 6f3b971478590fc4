"""Choosing words: greedy, beam and nucleus, over any network that goes step by step with what it read kept.

A search knows tokens by their place in the network's scores. It keeps for each text the tokens said and their
log-probabilities; of scores over the vocabulary only those of the current place exist. A text that is finished leaves
the batch, so that short ones do not wait for long ones. Greedy search is a beam of one; sampling is a beam of one whose
token is drawn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from saywhere.core.errors import InvalidValue, UnknownName

_FEW = 128
"""Tokens that nearly always hold a nucleus."""

METHODS = ("greedy", "beam", "nucleus")


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """How to choose words.

    method: "greedy", "beam", or "nucleus" (random, but the same for the same seed). beams: for "beam".
    max_words: pieces at most; by default as many as the writer can. min_words: it may not end before.
    length_penalty: for "beam": sums of log-probabilities are divided by length ** this; 1 compares their means.
    no_repeat: no run of so many pieces comes twice; 0 allows all. repeat_penalty: taken off a piece's log-probability
        for every time that it would repeat such a run; by default no repeat is allowed.
    finish_sentence: end only after a sign that ends a sentence, and cut a text that ran out of words back to the last.
    top_p, temperature, seed: for "nucleus": draw from the likeliest pieces that together have this probability.
    """

    method: str = "greedy"
    beams: int = 5
    max_words: int | None = None
    min_words: int = 1
    length_penalty: float = 1.0
    no_repeat: int = 0
    repeat_penalty: float = math.inf
    finish_sentence: bool = False
    top_p: float = 0.9
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownName("generation method", str(self.method), METHODS)
        if self.beams < 1 or (self.max_words is not None and self.max_words < 1):
            found = f"are {self.beams}, {self.max_words}, not positive numbers"
            raise InvalidValue("generation beams, max_words", found)
        if not all(one >= 0 for one in (self.min_words, self.no_repeat, self.length_penalty, self.repeat_penalty)):
            names = "generation min_words, no_repeat, length_penalty, repeat_penalty"
            raise InvalidValue(names, "must not be negative")
        if not (0 < self.top_p <= 1 and 0 < self.temperature < math.inf):
            raise InvalidValue("generation top_p, temperature", f"are {self.top_p}, {self.temperature}")

    def most_words(self, limit: int) -> int:
        """How many pieces to write at most with a writer that can write `limit`."""
        if self.max_words is not None and self.max_words > limit:
            raise InvalidValue("generation max_words", f"is {self.max_words}, but the writer was made for {limit}")
        return limit if self.max_words is None else self.max_words


GREEDY = GenerationConfig()
BEAM = GenerationConfig("beam", beams=5)


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
    """A network that has read what comes before the text. Rows of one text stand side by side, as many for each."""

    @property
    def outputs(self) -> Tensor | None:
        """(rows, n, …) what else came with each token so far, such as a box; of most networks nothing."""
        return None

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
    """What a search needs of a network besides its steps. ends: tokens that end a text. forbidden: never said.

    sentence_ends: tokens that end a sentence, for `finish_sentence`.
    """

    how: GenerationConfig
    max_words: int
    ends: tuple[int, ...]
    forbidden: tuple[int, ...] = ()
    sentence_ends: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.how.finish_sentence and not self.sentence_ends:
            reason = "no piece is known to end a sentence"
            raise InvalidValue("generation finish_sentence", reason, "use a vocabulary that has '.'")

    @property
    def beams(self) -> int:
        return self.how.beams if self.how.method == "beam" else 1


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text that was found.

    tokens: without the end. logprobs: of each, and of the end if it came. ended: whether the network ended it, rather
    than the limit of words. outputs: (n, …) what came with each token, see `Steps.outputs`.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    ended: bool
    outputs: Tensor | None = field(default=None, compare=False)

    @property
    def score(self) -> float:
        """The mean log-probability."""
        return sum(self.logprobs) / len(self.logprobs)


@dataclass(frozen=True, slots=True, eq=False)
class Quest:
    """One of several searches that share the work of the network.

    rows: (texts,) which rows of the network's start to write from; one may come often. draws: (texts, max_words) in
    [0, 1), for "nucleus"; see `uniform_draws`.
    """

    rules: Rules
    rows: Tensor
    draws: Tensor | None = None


def search(steps: Steps, rules: Rules, draws: Tensor | None = None) -> list[Hypothesis]:
    """A text for each row of `steps`. draws: see `Quest`.

    A text that ends leaves its place to the others; a search is over when none of those can win.
    """
    scores = steps.start()
    [found] = _searched(steps, scores, [Quest(rules, torch.arange(len(scores), device=scores.device), draws)])
    return found


def search_together(steps: Steps, quests: Sequence[Quest]) -> list[list[Hypothesis]]:
    """What `search` finds for each quest, but for rounding. The network reads what comes before the text once, and at
    every place the tokens of all quests at once. It must be one without `outputs`."""
    return _searched(steps, steps.start(), quests)


_Course = Generator[tuple[Tensor, Tensor], Tensor, list[Hypothesis]]


def _searched(steps: Steps, scores: Tensor, quests: Sequence[Quest]) -> list[list[Hypothesis]]:
    found: list[list[Hypothesis]] = [[] for _ in quests]
    courses = {number: _course(steps, scores[quest.rows], quest) for number, quest in enumerate(quests)}
    # Where the rows of each search are among those of the network.
    places = {number: quest.rows for number, quest in enumerate(quests)}
    given: dict[int, Tensor | None] = dict.fromkeys(courses)
    while courses:
        moves = {}
        for number, course in list(courses.items()):
            try:
                moves[number] = course.send(given[number])  # type: ignore[arg-type]  # a generator starts with None
            except StopIteration as over:
                found[number] = over.value
                del courses[number]
        if not moves:
            break
        order = torch.cat([places[number][rows] for number, (rows, _) in moves.items()])
        if not torch.equal(order, torch.arange(len(scores), device=order.device)):
            steps.reorder(order)
        sizes = [len(tokens) for _, tokens in moves.values()]
        scores = steps.advance(torch.cat([tokens for _, tokens in moves.values()]))
        places = dict(zip(moves, torch.split(torch.arange(len(scores), device=scores.device), sizes), strict=True))
        given = dict(zip(moves, torch.split(scores, sizes), strict=True))
    return found


def _course(steps: Steps, scores: Tensor, quest: Quest) -> _Course:
    """A search that asks to go on from some of its rows with a token each, and is sent the scores of the next."""
    rules, draws = quest.rules, quest.draws
    if (rules.how.method == "nucleus") != (draws is not None):
        raise InvalidValue("draws", "are for nucleus sampling, which needs them")
    found = _BestTexts(rules, len(scores))
    numbers = torch.arange(len(scores), device=scores.device)
    said, logprobs = numbers.new_empty(len(scores), 0), scores.new_empty(len(scores), 0, dtype=torch.float32)
    totals = scores.new_zeros(len(scores), 1, dtype=torch.float32)
    ends = torch.tensor(rules.ends, device=scores.device)
    for place in range(rules.max_words):
        drawn = None if draws is None else draws[numbers.cpu(), place].to(scores.device)
        totals, rows, tokens, new = _extended(totals, scores, said, rules, drawn)
        said, logprobs = torch.cat([said[rows], tokens[:, None]], 1), torch.cat([logprobs[rows], new[:, None]], 1)
        ended = torch.isin(tokens, ends).view_as(totals)
        outputs = None if steps.outputs is None else steps.outputs[rows]
        found.offer(numbers, totals, ended, _Rows(said, logprobs, outputs))
        totals = totals.masked_fill(ended, -math.inf)
        stay = found.unsettled(numbers, totals)
        if place + 1 == rules.max_words or not len(stay):
            break
        width = totals.shape[1]
        kept = (stay[:, None] * width + torch.arange(width, device=stay.device)).flatten()
        totals, numbers, said, logprobs = totals[stay], numbers[stay], said[kept], logprobs[kept]
        scores = yield rows[kept], tokens[kept]
    return found.best()


def uniform_draws(keys: Sequence[bytes], seed: int, count: int) -> Tensor:
    """(texts, count) numbers in [0, 1) that depend on the seed and each text's own key, not on its neighbours."""
    rows = []
    for key in keys:
        digest = hashlib.sha256(seed.to_bytes(16, "big", signed=True) + key).digest()
        rows.append(np.random.default_rng(int.from_bytes(digest[:16], "big")).random(count))
    return torch.from_numpy(np.asarray(rows, dtype=np.float64).reshape(len(keys), count))


@dataclass(frozen=True, slots=True)
class _Rows:
    """tokens, logprobs: (rows, t) of every text that is followed. outputs: (rows, t, …) or nothing."""

    tokens: Tensor
    logprobs: Tensor
    outputs: Tensor | None

    def hypothesis(self, row: int, ended: bool) -> Hypothesis:
        tokens: list[int] = self.tokens[row].tolist()
        kept = tokens[:-1] if ended else tokens
        outputs = None if self.outputs is None else self.outputs[row, : len(kept)].clone()
        return Hypothesis(tuple(kept), tuple(self.logprobs[row].tolist()), ended, outputs)


class _BestTexts:
    """The best text so far of each that is asked for."""

    def __init__(self, rules: Rules, count: int) -> None:
        self._rules = rules
        self._scores = [-math.inf] * count
        self._texts: list[Hypothesis | None] = [None] * count

    def offer(self, numbers: Tensor, totals: Tensor, ended: Tensor, rows: _Rows) -> None:
        """Keep what beats what there was: texts that ended and, at the last place, the others.

        numbers: (texts,) whose rows these are. totals, ended: (texts, w).
        """
        self._offer(numbers, totals.masked_fill(~ended, -math.inf), rows, ended=True)
        if rows.tokens.shape[1] == self._rules.max_words:
            self._offer(numbers, totals.masked_fill(ended, -math.inf), rows, ended=False)

    def _offer(self, numbers: Tensor, totals: Tensor, rows: _Rows, *, ended: bool) -> None:
        width = totals.shape[1]
        tops, beams = (totals / rows.tokens.shape[1] ** self._rules.how.length_penalty).max(dim=1)
        for i, (number, top, beam) in enumerate(zip(numbers.tolist(), tops.tolist(), beams.tolist(), strict=True)):
            whole = self._texts[number]
            if self._rules.how.finish_sentence and not ended and whole is not None and whole.ended:
                continue
            if top > self._scores[number]:
                self._scores[number], self._texts[number] = top, rows.hypothesis(i * width + beam, ended)

    def unsettled(self, numbers: Tensor, totals: Tensor) -> Tensor:
        """Which of the texts can still be beaten by one that goes on. totals: (texts, w) of those, −∞ for no such.

        Totals only fall and are divided by the longest length at most, so this bound is never below what comes. Nothing
        lower would be safe: a text that begins badly may go on for certain, and by the mean win in the end.
        """
        bounds = totals.amax(dim=1) / self._rules.max_words**self._rules.how.length_penalty
        open_ = [bound > self._scores[i] for bound, i in zip(bounds.tolist(), numbers.tolist(), strict=True)]
        return torch.tensor(open_, device=totals.device).nonzero()[:, 0]

    def best(self) -> list[Hypothesis]:
        texts = [text for text in self._texts if text is not None]
        if len(texts) < len(self._texts):
            raise InvalidValue("generation", "the rules leave no text to say", "lower min_words or no_repeat")
        if not self._rules.how.finish_sentence:
            return texts
        return [text if text.ended else _whole_sentences(text, self._rules.sentence_ends) for text in texts]


def _whole_sentences(text: Hypothesis, sentence_ends: Sequence[int]) -> Hypothesis:
    """A text that ran out of words, cut back to its last whole sentence if it has one."""
    last = max((i + 1 for i, token in enumerate(text.tokens) if token in sentence_ends), default=len(text.tokens))
    outputs = None if text.outputs is None else text.outputs[:last]
    return replace(text, tokens=text.tokens[:last], logprobs=text.logprobs[:last], outputs=outputs)


def _extended(
    totals: Tensor, scores: Tensor, said: Tensor, rules: Rules, draws: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best ways to go on. totals: (texts, w); scores: (texts · w, V); said: (texts · w, t); draws: (texts · w,).

    Returns totals (texts, beams), and for each of these texts · beams the row it goes on from, its token and the
    token's log-probability.
    """
    texts, width = totals.shape
    likely = _likely(scores)
    allowed = _allowed(likely, said, rules)
    if draws is not None:
        token_each = _drawn(allowed, draws, rules.how)
        best_each = allowed.gather(1, token_each)
    else:
        # No row can be gone on from in more than `beams` of the best ways.
        best_each, token_each = allowed.topk(min(rules.beams, allowed.shape[1]), dim=-1)
    ways = (totals.flatten()[:, None] + best_each).view(texts, -1)
    totals, chosen = ways.topk(min(rules.beams, ways.shape[1]), dim=-1)
    first_rows = torch.arange(texts, device=totals.device)[:, None] * width
    rows = (first_rows + chosen // best_each.shape[1]).flatten()
    tokens = token_each.reshape(texts, -1).gather(1, chosen).flatten()
    return totals, rows, tokens, likely[rows, tokens]


def _likely(scores: Tensor) -> Tensor:
    likely = scores.float().log_softmax(dim=-1)
    # What is not NaN is at most 0, so the sum tells in one pass.
    if bool(likely.sum().isnan()):
        raise InvalidValue("writer", "gives NaN for a word's score", "are its weights or vectors NaN?")
    return likely


def _allowed(likely: Tensor, said: Tensor, rules: Rules) -> Tensor:
    """The log-probabilities less what repeats cost; −∞ for what may not be said. likely: (rows, V); said: (rows, t)."""
    how = rules.how
    repeats = 0 < how.no_repeat <= said.shape[1]
    if not (rules.forbidden or said.shape[1] < how.min_words or how.finish_sentence or repeats):
        return likely
    allowed = likely.clone()
    if rules.forbidden:
        allowed[:, list(rules.forbidden)] = -math.inf
    if said.shape[1] < how.min_words:
        allowed[:, list(rules.ends)] = -math.inf
    if how.finish_sentence:
        whole = torch.isin(said[:, -1:], torch.tensor(rules.sentence_ends, device=said.device)).any(dim=1)
        for end in rules.ends:
            allowed[:, end].masked_fill_(~whole, -math.inf)
    if repeats:
        runs = said.unfold(1, how.no_repeat, 1)
        latest = said[:, said.shape[1] - how.no_repeat + 1 :]
        same = (runs[..., :-1] == latest[:, None]).all(dim=-1)
        cost = torch.zeros_like(same, dtype=allowed.dtype).masked_fill(same, -how.repeat_penalty)
        allowed.scatter_add_(1, runs[..., -1], cost)
    return allowed


def _drawn(allowed: Tensor, draws: Tensor, how: GenerationConfig) -> Tensor:
    """(rows, 1) tokens, drawn from the likeliest that together reach `top_p`. draws: (rows,) in [0, 1)."""
    shares, tokens = _ranked((allowed / how.temperature).double().softmax(dim=-1), how.top_p)
    # A token is out if the ones before it already reach top_p; so the first is always in.
    shares = shares.masked_fill(shares.cumsum(dim=-1) - shares >= how.top_p, 0)
    reached = shares.cumsum(dim=-1)
    place = torch.searchsorted(reached, (draws * reached[:, -1])[:, None], right=True)
    # Rounding may put a draw near 1 behind the last token that is in.
    most = (shares > 0).sum(dim=-1, keepdim=True) - 1
    return tokens.gather(1, place.minimum(most))


def _ranked(shares: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """Shares, largest first, and whose they are, of equals the first; at least as many as reach `top_p` together."""
    if shares.shape[-1] > _FEW:
        # Sorting a whole vocabulary at every word took a fifth of the time of a caption.
        tokens = shares.topk(_FEW, dim=-1).indices.sort(dim=-1).values
        best, order = shares.gather(-1, tokens).sort(dim=-1, descending=True, stable=True)
        # Who is last among these may be one of several equals, so it must not count.
        if bool((best[..., :-1].sum(dim=-1) >= top_p).all()):
            return best, tokens.gather(-1, order)
    return shares.sort(dim=-1, descending=True, stable=True)
