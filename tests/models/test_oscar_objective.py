"""Hiding words of captions, and the loss of the hidden ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from saywhere.core import InvalidValue
from saywhere.models.oscar import MaskedObjective
from saywhere.models.oscar.batch import TaggedCaptionBatch
from saywhere.models.oscar.objective import hide, losses, word_losses
from tests.models import oscar_small as small

LONG = " ".join(["a cup and a dog"] * 6)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(texts: list[str]) -> TaggedCaptionBatch:
    model = small.network()
    return model.reader.batch([small.image(i) for i in range(len(texts))], texts, ["object"] * len(texts))


@pytest.mark.parametrize(
    ("length", "hidden"), [(2, 1), (3, 1), (9, 1), (10, 2), (11, 2), (16, 2), (17, 3), (20, 3), (40, 3)]
)
def test_fifteen_in_a_hundred_are_hidden_at_least_one_and_at_most_three(length: int, hidden: int) -> None:
    # 0.15 · 10 is 1.5, which goes to the even 2.
    assert MaskedObjective().hidden(torch.tensor([length])).tolist() == [hidden]


def test_only_places_of_the_caption_are_hidden_the_end_among_them_and_never_the_begin() -> None:
    model = small.network()
    given = batch(["a cup", LONG])
    places: set[int] = set()
    for seed in range(60):
        hidden = hide(model, given, MaskedObjective(), generator(seed))
        assert hidden.counted.sum(dim=1).tolist() == [1, 3]
        assert len(set(hidden.places[1].tolist())) == 3
        assert torch.equal(hidden.targets, given.captions.gather(1, hidden.places))
        changed = given.captions != hidden.captions
        assert not changed[:, 0].any()
        assert not (changed & ~given.there).any()
        places |= set(hidden.places[0, :1].tolist())
        assert changed.sum(dim=1).tolist() <= [1, 3]
    # a, cup, [SEP]
    assert places == {1, 2, 3}


def test_eight_in_ten_become_mask_one_any_word_and_one_stays() -> None:
    model = small.network()
    given = batch(["a cup and a dog and a bed and a boat and a cup and a dog"] * 400)
    hidden = hide(model, given, MaskedObjective(), generator())
    shown = hidden.captions.gather(1, hidden.places)[hidden.counted]
    targets = hidden.targets[hidden.counted]
    masked = (shown == model.coding.mask_id).float().mean()
    stayed = (shown == targets).float().mean()
    assert masked == pytest.approx(0.8, abs=0.05)
    assert stayed == pytest.approx(0.1, abs=0.04)
    assert len(set(shown.tolist())) > 10


def test_the_same_generator_hides_the_same_words() -> None:
    model = small.network()
    given = batch([LONG] * 4)
    first, again, other = (hide(model, given, MaskedObjective(), generator(seed)).captions for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_a_mean_over_hidden_words_with_smoothed_labels(smoothing: float) -> None:
    model, given = small.network(), batch(["a cup", LONG])
    objective = MaskedObjective(smoothing=smoothing)
    draws = generator(3)
    # `losses` first takes a seed for dropout.
    torch.randint(2**62, (), generator=draws)
    hidden = hide(model, given, objective, draws)
    with torch.no_grad():
        found = losses(model, given, objective, generator(3))
        likely = model(replace(given, captions=hidden.captions), hidden.places).log_softmax(dim=-1)
    by_hand = []
    for i in range(2):
        for j in range(int(hidden.counted[i].sum())):
            true = likely[i, j, hidden.targets[i, j]]
            by_hand.append(-(1 - smoothing) * true - smoothing * likely[i, j].mean())
    assert len(by_hand) == objective.target_count(given) == 4
    assert float(found["loss"]) == pytest.approx(float(torch.stack(by_hand).mean()), rel=1e-5)
    assert 0 <= float(found["accuracy"]) <= 1


def test_learning_every_word_counts_each_word_and_end_once() -> None:
    model, given = small.network(), batch(["a cup", LONG])
    objective = MaskedObjective(smoothing=0.0, every_word=True)
    found = losses(model, given, objective, generator())
    each, right = word_losses(model, given)
    assert objective.target_count(given) == 3 + 31
    assert float(found["loss"].detach()) == pytest.approx(float(each.detach().sum()) / 34, rel=1e-5)
    assert float(found["accuracy"]) == pytest.approx(float(right.sum()) / 34)


def test_a_word_is_measured_by_what_it_costs_to_write_it() -> None:
    model, given = small.network(), batch(["a dog"])
    ids = given.captions[0]
    with torch.no_grad():
        total, _ = word_losses(model, given)
        cost = 0.0
        for place in range(1, len(ids)):
            so_far = torch.cat([ids[:place], torch.tensor([model.coding.mask_id])])[None]
            shown = replace(given, captions=so_far, lengths=torch.tensor([place + 1]))
            scores = model(shown, torch.tensor([[place]]))[0]
            cost += float(functional.cross_entropy(scores, ids[place : place + 1]))
    assert float(total) == pytest.approx(cost, rel=1e-5)


def test_dropout_draws_from_the_generator_alone() -> None:
    model, given = small.network(dropout=0.3, attention_dropout=0.2).train(), batch([LONG])
    torch.manual_seed(0)
    before = torch.get_rng_state()
    values = [float(losses(model, given, MaskedObjective(), generator(s))["loss"].detach()) for s in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), before)
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("every_word", [False, True])
def test_every_part_of_the_network_learns(every_word: bool) -> None:
    model = small.network(levels=("object", "scene")).train()
    images = [small.image(i) for i in range(2)]
    given = model.reader.batch(images, ["a cup", "the picture"], ["object", "scene"])
    losses(model, given, MaskedObjective(every_word=every_word), generator())["loss"].backward()
    idle = [name for name, one in model.named_parameters() if one.grad is None or not one.grad.abs().max() > 0]
    assert idle == []


@pytest.mark.parametrize("changes", [{"mask_rate": 0.0}, {"most_masked": 0}, {"smoothing": 1.0}])
def test_an_objective_that_cannot_be_is_refused(changes: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        MaskedObjective(**changes)  # type: ignore[arg-type]
