"""Blocks of attention: their numbers on matrices worked out by hand, and what is empty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, UnknownName
from saywhere.explain import (
    RELATIONS,
    TAG_TO_VISION,
    VISION_TO_TAG,
    VISION_TO_VISION,
    BlockStats,
    Span,
    SpecialAttention,
    attention_matrix,
    block_stats,
    measure_blocks,
    relation_stats,
    special_attention,
)
from saywhere.models.attended import TokenKind
from tests.explain.laboratory import C, Even, P, R, S, T, attended, image

# One head, one special token, one tag, two regions.
HAND = [
    [0.4, 0.2, 0.2, 0.2],
    [0.1, 0.3, 0.6, 0.0],
    [0.1, 0.1, 0.4, 0.4],
    [0.0, 0.2, 0.8, 0.0],
]
PARTS = [S, T, R, R]


@pytest.mark.parametrize(
    ("relation", "numbers", "evenness", "rows"),
    [
        (VISION_TO_VISION, [0.4, 0.4, 0.8, 0.0], 0.5, 2),
        (VISION_TO_TAG, [0.1, 0.2], np.nan, 2),
        (TAG_TO_VISION, [0.6, 0.0], 0.0, 1),
        ((TokenKind.SPECIAL, TokenKind.REGION), [0.2, 0.2], 1.0, 1),
    ],
)
def test_a_block_of_a_matrix_has_the_numbers_worked_out_by_hand(
    relation: tuple[TokenKind, TokenKind], numbers: list[float], evenness: float, rows: int
) -> None:
    stats = block_stats(attended([[[HAND]]], [PARTS]), [relation])
    np.testing.assert_allclose(stats.std, [np.std(numbers)], atol=1e-7)
    np.testing.assert_allclose(stats.mass, [np.sum(numbers)], rtol=1e-6)
    np.testing.assert_allclose(stats.evenness, [evenness], atol=1e-6)
    assert stats.rows.tolist() == [rows]
    assert stats.empty == 0


def test_all_the_relations_are_the_three_blocks_taken_together() -> None:
    stats = relation_stats(attended([[[HAND]]], [PARTS]))
    assert list(stats) == list(RELATIONS)
    numbers = [0.4, 0.4, 0.8, 0.0, 0.1, 0.2, 0.6, 0.0]
    together = stats["all the relations"]
    np.testing.assert_allclose(together.std, [np.std(numbers)], atol=1e-7)
    np.testing.assert_allclose(together.mass, [2.5], rtol=1e-6)

    def entropy(*shares: float) -> float:
        return -sum(share * np.log(share) for share in shares)

    rows = [entropy(1 / 9, 4 / 9, 4 / 9) / np.log(3), entropy(0.2, 0.8) / np.log(3), 0.0]
    np.testing.assert_allclose(together.evenness, [np.mean(rows)], rtol=1e-6)


def test_heads_are_joined_by_their_maximum_or_their_mean_in_the_layer_asked_for() -> None:
    one, other = [[0.75, 0.25], [0.5, 0.5]], [[0.25, 0.75], [0.5, 0.5]]
    seen = attended([[[one, one]], [[one, other]]], [[R, R]])
    pair = [VISION_TO_VISION]
    assert block_stats(seen, pair, layer=0).mass.tolist() == [2.0]
    assert block_stats(seen, pair, layer=1).mass.tolist() == [2.5]
    assert block_stats(seen, pair, layer=-1, heads="mean").mass.tolist() == [2.0]
    assert block_stats(seen, pair, layer=1, heads="mean").std.tolist() == [0.0]


@pytest.mark.parametrize("parts", [[S, R, R, R], [S, T, T, P], [P, P, P, P]])
def test_an_empty_block_is_nan_and_counted(parts: list[TokenKind]) -> None:
    stats = relation_stats(attended([[[HAND], [HAND]]], [parts, PARTS]))["vision→tag"]
    assert np.isnan(stats.std).tolist() == [True, False]
    assert np.isnan(stats.mass).tolist() == [True, False]
    assert stats.empty == 1
    assert stats.rows[0] == 0


def test_a_row_that_gives_nothing_to_the_block_is_neither_even_nor_uneven() -> None:
    half, none = [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]
    seen = attended([[[[half, none, none]], [[none, none, none]]]], [[R, R, T], [R, R, T]])
    stats = block_stats(seen, [VISION_TO_VISION])
    np.testing.assert_allclose(stats.evenness, [1.0, np.nan])
    np.testing.assert_allclose(stats.mass, [1.0, 0.0])
    assert stats.empty == 0


@given(n=st.integers(2, 9), peak=st.floats(0, 0.9), padding=st.integers(0, 3))
def test_evenness_does_not_fall_with_length_as_the_standard_deviation_does(n: int, peak: float, padding: int) -> None:
    def stats(count: int) -> BlockStats:
        row = [peak + (1 - peak) / count, *[(1 - peak) / count] * (count - 1)]
        matrix = np.zeros((count + padding, count + padding))
        matrix[:count, :count] = row
        return block_stats(attended(matrix[None, None, None], [[R] * count + [P] * padding]), [VISION_TO_VISION])

    shorter, longer = stats(n), stats(2 * n)
    assert 0 <= float(shorter.evenness[0]) <= 1
    if peak == 0:
        np.testing.assert_allclose([shorter.evenness, longer.evenness], 1.0, atol=1e-6)
    elif peak > 1e-3:
        # The same share on one place: the standard deviation says "more even", though nothing of the kind happened.
        assert float(longer.std[0]) < float(shorter.std[0])
    np.testing.assert_allclose([shorter.mass[0], longer.mass[0]], [n, 2 * n], rtol=1e-5)


def test_many_images_are_measured_in_rounds_and_in_their_order() -> None:
    images = {"a": image(["cup"], [0, 0]), "b": image([]), "c": image(["cup", "cat"], [1]), "d": image([], [3, 3])}
    model, told = Even(), []
    found = measure_blocks(model, list(images), images.__getitem__, batch=3, progress=lambda _, *at: told.append(at))
    assert model.most == 3
    assert told == [(3, 4), (4, 4)]
    assert found["vision→vision"].rows.tolist() == [2, 0, 1, 2]
    np.testing.assert_allclose(found["vision→vision"].mass, [1.0, np.nan, 0.25, 4 / 3], rtol=1e-6)
    assert found["tag→vision"].empty == 2
    assert len(measure_blocks(model, [], images.__getitem__)["vision→tag"]) == 0


def test_what_special_tokens_receive_is_told_by_layer_and_asker() -> None:
    # [CLS], a tag, [SEP], a region; the second image has no tag.
    first = [[0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 1.0, 0.0]]
    second = np.full((4, 4), 0.25)
    seen = attended([[[first], [second]], [[second], [second]]], [[S, T, S, R], [S, P, S, R]])
    found = special_attention(seen)
    assert found.parts == (TokenKind.CAPTION, TokenKind.TAG, TokenKind.REGION, TokenKind.SPECIAL)
    assert found.share.shape == (2, 2, 4)
    np.testing.assert_allclose(found.share[0, 0], [np.nan, 0.5, 1.0, 0.275], rtol=1e-6)
    np.testing.assert_allclose(found.mean[0], [np.nan, 0.5, 0.625, 0.2625], rtol=1e-6)
    np.testing.assert_allclose(found.mean[1], [np.nan, 0.25, 0.25, 0.25], rtol=1e-6)
    every = special_attention(seen, asked=np.array([[True, False, True, False]] * 2))
    np.testing.assert_allclose(every.share[0, 0, 2:], [1.0, 0.45], rtol=1e-6)
    both = SpecialAttention.joined([found, every])
    assert both.share.shape == (4, 2, 4)


def test_a_matrix_comes_with_the_names_of_its_places_and_its_parts() -> None:
    seen = attended(np.arange(49.0).reshape(1, 1, 1, 7, 7), [[S, C, T, S, P, R, R]], [[-1, -1, 1, -1, -1, 0, 2]])
    shown = image(["cup", "cat"], [0, 0, 1])
    drawn = attention_matrix(seen, 0, shown, words=["hello"])
    assert drawn.labels == ("[CLS]", "hello", "cat", "[SEP]", "0", "2")
    assert drawn.values[0].tolist() == [0, 1, 2, 3, 5, 6]
    assert drawn.spans == (Span(S, 0, 1), Span(C, 1, 2), Span(T, 2, 3), Span(S, 3, 4), Span(R, 4, 6))
    whole = attention_matrix(seen, 0, shown, padding=True)
    assert whole.labels == ("[CLS]", "1", "cat", "[SEP]", "[PAD]", "0", "2")
    assert whole.values.shape == (7, 7)


def test_the_matrix_of_an_image_that_is_all_padding_is_empty() -> None:
    drawn = attention_matrix(attended(np.zeros((1, 1, 1, 2, 2)), [[P, P]]), 0, image([]))
    assert drawn.values.shape == (0, 0)
    assert drawn.labels == drawn.spans == ()


@pytest.mark.parametrize(
    ("ask", "error", "reason"),
    [
        (lambda seen: block_stats(seen, [VISION_TO_TAG], layer=1), InvalidValue, "1 is not one of 1"),
        (lambda seen: block_stats(seen, [VISION_TO_TAG], heads="most"), UnknownName, "most"),
        (lambda seen: attention_matrix(seen, 1, image(["cup"], [0, 0])), InvalidValue, "1 is not one of 1"),
        (lambda seen: special_attention(seen, asked=np.ones((1, 3), bool)), InvalidValue, "shape"),
        (lambda seen: SpecialAttention.joined([]), InvalidValue, "there is none"),
        (lambda seen: measure_blocks(Even(), ["a"], {}.__getitem__, batch=0), InvalidValue, "0 is not at least 1"),
    ],
)
def test_bad_requests_are_named(ask, error: type[Exception], reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=reason):
        ask(attended([[[HAND]]], [PARTS]))
