"""Probes of states that know, and of states that do not."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, UnknownName
from saywhere.explain import pooled, pooled_many, probe_table, probing
from saywhere.models.attended import TokenKind
from tests.explain.laboratory import C, Even, P, R, S, T, attended, image

pytest.importorskip("sklearn")

LABELS = ["kitchen"] * 20 + ["beach"] * 12 + ["road"] * 4


def _knowing(noise: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = {"kitchen": (1, 0, 0), "beach": (0, 1, 0), "road": (0, 0, 1)}
    return np.array([centres[label] for label in LABELS]) * 50.0 + rng.standard_normal((len(LABELS), 3)) * noise


def _blind() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((len(LABELS), 3))


STATES = np.array([[[1, 10], [2, 20], [3, 30], [5, 50], [99, 99]], [[7, 7]] * 5], np.float64)


@pytest.mark.parametrize(
    ("over", "expected"),
    [("all", 11 / 4), ("inputs", 4.0), (TokenKind.TAG, 3.0), (TokenKind.CAPTION, 2.0), (TokenKind.SPECIAL, 1.0)],
)
def test_states_are_averaged_over_what_is_there_and_nan_where_nothing_is(over: str, expected: float) -> None:
    seen = attended(np.zeros((1, 2, 1, 5, 5)), [[S, C, T, R, P], [P] * 5], states=STATES)
    found = pooled(seen, over)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, [[expected, 10 * expected], [np.nan, np.nan]])


def test_states_of_many_images_come_in_their_order_and_see_ablations() -> None:
    images = {"a": image(["cup"], [0, 0]), "b": image([]), "c": image(["cup", "cat"], [1]).without(tags=[1])}
    model = Even()
    np.testing.assert_allclose(
        pooled_many(model, ["c", "a", "b"], images.__getitem__, batch=2), [[1, 1], [1, 2], [0, 0]]
    )
    assert model.most == 2
    with pytest.raises(InvalidValue, match="there is none"):
        pooled_many(model, [], images.__getitem__)


def test_probes_tell_states_that_know_from_those_that_do_not() -> None:
    found = probe_table({"knowing": _knowing(), "blind": _blind()}, LABELS, train_shares=[0.5], seeds=[0, 1])
    by = {(one.states, one.probe): one for one in found}
    assert set(by) == {(name, probe) for name in ("knowing", "blind") for probe in ("forest", "mlp")} | {
        ("", "random"),
        ("", "majority"),
    }
    for probe in ("forest", "mlp"):
        assert by["knowing", probe].micro == 1.0  # type: ignore[index]
        assert by["knowing", probe].macro == 1.0  # type: ignore[index]
        assert by["blind", probe].macro < 0.7  # type: ignore[index]
        assert by["blind", probe].macro < by["knowing", probe].classes["road"].f1  # type: ignore[index]
    assert by["knowing", "forest"].classes["road"].support == 2
    majority = by["", "majority"]
    assert majority.micro == pytest.approx(10 / 18)
    assert majority.macro == pytest.approx((2 * 10 / 28) / 3)
    assert majority.weighted == pytest.approx(10 / 18 * (2 * 10 / 28))
    assert majority.classes["beach"].f1 == 0.0


def test_scores_equal_those_of_scikit_learn() -> None:
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(0)
    true = rng.choice(["a", "b", "c"], 40, p=[0.6, 0.3, 0.1])
    guessed = rng.choice(["a", "b", "c"], 40)
    run = probing._scored(true, guessed, 0, 10, True)
    for name in ("micro", "macro", "weighted"):
        assert getattr(run, name) == pytest.approx(f1_score(true, guessed, average=name))
    each = f1_score(true, guessed, average=None, labels=["a", "b", "c"])
    np.testing.assert_allclose([run.classes[name].f1 for name in "abc"], each)


def test_random_labels_are_right_as_often_as_their_shares_say() -> None:
    labels = ["a"] * 300 + ["b"] * 100
    (found,) = probe_table({"x": np.zeros((400, 1))}, labels, probes=["random"], train_shares=[0.5], seeds=range(20))
    assert found.micro == pytest.approx(0.75**2 + 0.25**2, abs=0.03)


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    share=st.sampled_from([0.9, 0.7, 0.5]),
    seed=st.integers(0, 99),
)
def test_a_split_has_every_label_on_both_sides_unless_it_has_one_item(
    sizes: list[int], share: float, seed: int
) -> None:
    labels = np.array([f"label {i}" for i, size in enumerate(sizes) for _ in range(size)])
    train, test = probing.split(labels, share, np.random.default_rng(seed))
    assert sorted([*train, *test]) == list(range(len(labels)))
    trained, tested = Counter(labels[train].tolist()), Counter(labels[test].tolist())
    for label, count in Counter(labels.tolist()).items():
        assert trained[label] >= 1
        assert tested[label] == (0 if count == 1 else min(max(1, round(count * (1 - share))), count - 1))


def test_labels_with_one_item_are_named_and_items_without_label_or_state_left_out() -> None:
    states = {"x": np.vstack([_knowing(), np.ones((3, 3))]), "y": np.vstack([_knowing(), np.ones((3, 3))])}
    states["y"][0] = np.nan
    labels = [*LABELS, "moon", None, None]
    found = probe_table(states, labels, probes=["forest", "majority"], train_shares=[0.7], seeds=[0])
    for one in found:
        assert one.singles == ("moon",)
        assert one.left_out == 3
        assert one.runs[0].train + one.runs[0].test == len(LABELS)
        assert "moon" not in one.classes


def test_all_states_and_probes_meet_the_same_splits() -> None:
    once = probe_table({"x": _knowing(), "y": _knowing()}, LABELS, probes=["forest"], train_shares=[0.5], seeds=[3])
    again = probe_table({"x": _knowing()}, LABELS, probes=["forest"], train_shares=[0.5], seeds=[3])
    assert once[0].runs == once[1].runs == again[0].runs


def test_training_that_does_not_converge_is_a_value_and_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (whole,) = probe_table({"x": _knowing()}, LABELS, probes=["mlp"], train_shares=[0.5], seeds=[0])
        monkeypatch.setattr(probing, "_MAX_ITERATIONS", 2)
        (short,) = probe_table({"x": _knowing()}, LABELS, probes=["mlp"], train_shares=[0.5], seeds=[0])
    assert whole.converged == 1.0
    assert short.converged == 0.0


def test_the_network_sees_states_of_any_scale_alike() -> None:
    tables = [
        probe_table({"x": scale * _knowing(20.0)}, LABELS, probes=["mlp"], train_shares=[0.5], seeds=[0])[0]
        for scale in (1e-3, 1e3)
    ]
    assert tables[0].micro == pytest.approx(tables[1].micro)


@pytest.mark.parametrize(
    ("states", "labels", "settings", "error", "reason"),
    [
        ({}, [], {}, InvalidValue, "need states"),
        ({"x": np.zeros((2, 1))}, ["a", "b"], {}, InvalidValue, "fewer than two"),
        ({"x": np.zeros((3, 1))}, ["a", "a", "b"], {}, InvalidValue, "fewer than two"),
        ({"x": np.zeros((2, 1))}, ["a"] * 4, {}, InvalidValue, "shape"),
        ({"x": np.zeros((4, 1))}, ["a", "a", "b", "b"], {"probes": ["tree"]}, UnknownName, "tree"),
        ({"x": np.zeros((4, 1))}, ["a", "a", "b", "b"], {"train_shares": [1.0]}, InvalidValue, "between 0 and 1"),
        ({"x": np.full((4, 1), np.nan)}, ["a", "a", "b", "b"], {}, InvalidValue, "fewer than two"),
    ],
)
def test_bad_requests_are_named(states, labels, settings, error: type[Exception], reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=reason):
        probe_table(states, labels, **settings)


def test_unknown_places_to_average_over_are_named() -> None:
    with pytest.raises(UnknownName, match="some"):
        pooled(attended(np.zeros((1, 1, 1, 1, 1)), [[R]]), "some")  # type: ignore[arg-type]
