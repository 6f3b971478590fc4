"""One search for every network that writes: what it finds, what it keeps to, and when it stops."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from saywhere.core import InvalidValue, UnknownName
from saywhere.models.search import GenerationConfig, Hypothesis, Rules, Steps, search, uniform_draws

END = 0


class Chain(Steps):
    """Scores that depend on the last token alone: a table small enough to search by trying everything."""

    def __init__(self, first: torch.Tensor, table: torch.Tensor) -> None:
        self.first, self.table = first, table

    def start(self) -> torch.Tensor:
        return self.first

    def advance(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table[tokens]

    def reorder(self, rows: torch.Tensor) -> None:
        del rows


def best_by_trying(first: torch.Tensor, table: torch.Tensor, most: int, penalty: float) -> tuple[float, list[int]]:
    start, after = first.log_softmax(-1), table.log_softmax(-1)
    found: list[tuple[float, list[int]]] = []
    open_ways = [([token], float(start[token])) for token in range(1, len(start))]
    for _ in range(most):
        grown = []
        for said, total in open_ways:
            if len(said) == most:
                found.append((total / most**penalty, said))
                continue
            found.append(((total + float(after[said[-1], 0])) / (len(said) + 1) ** penalty, said))
            grown += [([*said, t], total + float(after[said[-1], t])) for t in range(1, len(start))]
        open_ways = grown
    return max(found)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_wide_enough_finds_the_best_text_there_is(penalty: float, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    first, table = 2 * torch.randn(3, 4, generator=draw), 2 * torch.randn(4, 4, generator=draw)
    rules = Rules(GenerationConfig("beam", beams=200, length_penalty=penalty), 4, (0,))
    found = search(Chain(first, table), rules)
    for row, said in zip(first, found, strict=True):
        score, tokens = best_by_trying(row, table, 4, penalty)
        assert list(said.tokens) == tokens
        assert sum(said.logprobs) / len(said.logprobs) ** penalty == pytest.approx(score, abs=1e-5)


def test_sampling_draws_words_as_often_as_they_are_likely() -> None:
    scores = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    count = 4000
    draws = uniform_draws([str(i).encode() for i in range(count)], 0, 1)
    rules = Rules(GenerationConfig("nucleus", top_p=0.9, min_words=0), 1, (9,))
    said = search(Chain(scores.expand(count, 4), scores.expand(4, 4)), rules, draws)
    shares = np.bincount([one.tokens[0] for one in said], minlength=4) / count
    np.testing.assert_allclose(shares, [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0], atol=0.025)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", [0.0, 0.7, 1.0])
def test_a_beam_of_one_is_greedy_whatever_the_length_penalty(seed: int, penalty: float) -> None:
    draw = torch.Generator().manual_seed(seed)
    chain = Chain(2 * torch.randn(5, 6, generator=draw), 2 * torch.randn(6, 6, generator=draw))
    greedy = search(chain, Rules(GenerationConfig(), 8, (END,)))
    assert search(chain, Rules(GenerationConfig("beam", beams=1, length_penalty=penalty), 8, (END,))) == greedy
    for row, one in zip(chain.first, greedy, strict=True):
        assert one.tokens[0] == int(row[1:].argmax()) + 1


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_forbidden_tokens_are_never_said(method: str) -> None:
    draw = torch.Generator().manual_seed(0)
    chain = Chain(torch.randn(4, 6, generator=draw), torch.randn(6, 6, generator=draw))
    how = GenerationConfig(method, beams=3)
    draws = uniform_draws([b"one", b"two", b"three", b"four"], 0, 9) if method == "nucleus" else None
    usual = {token for one in search(chain, Rules(how, 9, (END,)), draws) for token in one.tokens}
    said = search(chain, Rules(how, 9, (END,), tuple(usual)[:2]), draws)
    assert not {token for one in said for token in one.tokens} & set(tuple(usual)[:2])


def test_a_repeat_costs_the_same_for_each_time_that_it_was_said() -> None:
    """After 1 2 1 2 1, going on with 2 would repeat "1 2" a third time."""
    likely = {}
    for cost in (0.0, 0.5):
        how = GenerationConfig("beam", beams=6, no_repeat=2, repeat_penalty=cost, min_words=6, length_penalty=0.0)
        forced = torch.full((6, 6), -50.0)
        forced[1, 2], forced[2, 1] = 0.0, 0.0
        forced[1, 3] = -0.9
        first = torch.full((1, 6), -50.0)
        first[0, 1] = 0.0
        likely[cost] = search(Chain(first, forced), Rules(how, 6, (END,)))[0].tokens
    assert likely[0.0] == (1, 2, 1, 2, 1, 2)
    assert likely[0.5] == (1, 2, 1, 2, 1, 3)


def test_a_text_that_runs_out_of_words_is_cut_back_to_its_last_sentence() -> None:
    table = torch.full((6, 6), -50.0)
    table[3, 4], table[4, 3] = 0.0, 0.0
    first = torch.full((1, 6), -50.0)
    first[0, 3] = 0.0
    plain = Rules(GenerationConfig(), 5, (END,), sentence_ends=(4,))
    (whole,) = search(Boxed(first, table), plain)
    (cut,) = search(Boxed(first, table), replace(plain, how=GenerationConfig(finish_sentence=True)))
    assert whole.tokens == (3, 4, 3, 4, 3)
    assert cut.tokens == (3, 4, 3, 4)
    assert not cut.ended
    assert len(cut.logprobs) == 4
    assert cut.outputs is not None
    assert cut.outputs.tolist() == [0, 1, 2, 3]
    # There is no sentence to cut back to.
    (kept,) = search(
        Boxed(first, table), replace(plain, how=GenerationConfig(finish_sentence=True), sentence_ends=(5,))
    )
    assert kept.tokens == whole.tokens


class Boxed(Chain):
    """With each token comes its place."""

    place = 0

    @property
    def outputs(self) -> torch.Tensor:
        return torch.arange(self.place).expand(self.rows, -1)

    def start(self) -> torch.Tensor:
        self.place, self.rows = 1, len(self.first)
        return super().start()

    def advance(self, tokens: torch.Tensor) -> torch.Tensor:
        self.place, self.rows = self.place + 1, len(tokens)
        return super().advance(tokens)


def test_texts_that_are_done_leave_and_what_stays_is_not_moved_in_vain() -> None:
    table = torch.full((4, 4), -30.0)
    table[1, END], table[2, 2] = 0.0, 0.0
    first = torch.full((3, 4), -30.0)
    first[0, 2] = first[1, 1] = first[2, 2] = 0.0
    chain = Counting(first, table)
    said = search(chain, Rules(GenerationConfig(), 5, (END,)))
    assert [one.tokens for one in said] == [(2,) * 5, (1,), (2,) * 5]
    assert chain.read == [3, 2, 2, 2]
    assert chain.moved == [[0, 2]]


class Counting(Chain):
    """How many rows were read each time, and how rows were moved."""

    def __init__(self, first: torch.Tensor, table: torch.Tensor) -> None:
        super().__init__(first, table)
        self.read: list[int] = []
        self.moved: list[list[int]] = []

    def advance(self, tokens: torch.Tensor) -> torch.Tensor:
        self.read.append(len(tokens))
        return super().advance(tokens)

    def reorder(self, rows: torch.Tensor) -> None:
        self.moved.append(rows.tolist())


def test_a_search_stops_when_nothing_that_goes_on_can_win_and_no_sooner() -> None:
    """1 ends at once; 2 begins badly and goes on for certain: by the mean it wins, but only in the end."""
    first = torch.tensor([[-99.0, math.log(0.6), math.log(0.4), -99.0]])
    table = torch.full((4, 4), -99.0)
    table[1, END], table[2, 2] = 0.0, 0.0
    for power, best, read in ((1.0, (2,) * 20, 19), (0.0, (1,), 1)):
        chain = Counting(first, table)
        (said,) = search(chain, Rules(GenerationConfig("beam", beams=2, length_penalty=power), 20, (END,)))
        assert (said.tokens, len(chain.read)) == (best, read)


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (lambda: GenerationConfig("gredy"), UnknownName, "greedy"),
        (lambda: GenerationConfig(beams=0), InvalidValue, "not positive"),
        (lambda: GenerationConfig(max_words=0), InvalidValue, "not positive"),
        (lambda: GenerationConfig(top_p=0.0), InvalidValue, "top_p"),
        (lambda: GenerationConfig(top_p=1.5), InvalidValue, "top_p"),
        (lambda: GenerationConfig(temperature=0.0), InvalidValue, "temperature"),
        (lambda: GenerationConfig(length_penalty=-1.0), InvalidValue, "negative"),
        (lambda: GenerationConfig(repeat_penalty=-0.1), InvalidValue, "negative"),
        (lambda: GenerationConfig(repeat_penalty=math.nan), InvalidValue, "negative"),
        (lambda: GenerationConfig(no_repeat=-1), InvalidValue, "negative"),
        (lambda: Rules(GenerationConfig(finish_sentence=True), 3, (END,)), InvalidValue, "end a sentence"),
        (lambda: _search(GenerationConfig("nucleus")), InvalidValue, "needs them"),
        (lambda: _search(GenerationConfig(min_words=2), forbidden=(1, 2, 3)), InvalidValue, "no text to say"),
    ],
)
def test_what_cannot_be_is_named(work: Callable[[], object], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        work()


def _search(how: GenerationConfig, forbidden: tuple[int, ...] = ()) -> list[Hypothesis]:
    return search(Chain(torch.zeros(2, 4), torch.zeros(4, 4)), Rules(how, 3, (END,), forbidden))
