"""Occlusion, deletion and insertion."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from saywhere.core import InvalidValue, UnknownName
from saywhere.explain import deletion, insertion, occlusion, without_top
from saywhere.explain.occlusion import places
from tests.explain.test_gradients import FEATURES, PRESENT, SCALE
from tests.explain.tiny import Counted, fresh


def _score(features: Tensor, present: Tensor, items: Tensor) -> Tensor:
    """Attention, so that regions matter to each other."""
    with torch.no_grad():
        scores: Tensor = fresh(4)(features, present)
    return scores * SCALE[items]


@pytest.mark.parametrize("how", ["blank", "remove"])
def test_occlusion_is_what_taking_each_region_away_by_hand_gives(how: str) -> None:
    found = occlusion(_score, FEATURES, PRESENT, how=how, chunk=4)  # type: ignore[arg-type]
    items = torch.arange(5)
    whole = _score(FEATURES, PRESENT, items)
    for region in range(3):
        seen, here = FEATURES.clone(), PRESENT.clone()
        seen[:, region] = 0
        if how == "remove":
            here[:, region] = False
        fall = (whole - _score(seen, here, items)).masked_fill(~PRESENT[:, region], 0.0)
        torch.testing.assert_close(found[:, region], fall)
    assert found[0].abs().min() > 0


def test_the_two_ways_of_occluding_differ() -> None:
    blank, removed = (occlusion(_score, FEATURES, PRESENT, how=how) for how in ("blank", "remove"))
    assert not torch.allclose(blank, removed)


def test_an_items_only_region_cannot_be_removed_but_can_be_blank() -> None:
    alone = torch.tensor([[False, True, False]])
    removed = occlusion(_score, FEATURES[:1], alone, how="remove")
    assert removed.isnan().tolist() == [[False, True, False]]
    assert occlusion(_score, FEATURES[:1], alone).isfinite().all()


@pytest.mark.parametrize("chunk", [1, 3, 512])
def test_no_more_rows_than_the_chunk_are_held(chunk: int) -> None:
    for run in (
        lambda score: occlusion(score, FEATURES, PRESENT, chunk=chunk),
        lambda score: deletion(score, FEATURES, PRESENT, FEATURES.sum(dim=2), chunk=chunk).scores,
        lambda score: insertion(score, FEATURES, PRESENT, FEATURES.sum(dim=2), chunk=chunk).scores,
    ):
        score = Counted(SCALE)
        torch.testing.assert_close(run(score), run(Counted(SCALE)))
        assert 0 < score.most <= chunk
    score = Counted(SCALE)
    occlusion(score, FEATURES, PRESENT, chunk=chunk)
    assert score.rows == len(FEATURES) + int(PRESENT.sum())


def test_an_unknown_way_to_occlude_is_refused() -> None:
    with pytest.raises(UnknownName, match="blank"):
        occlusion(_score, FEATURES, PRESENT, how="blnk")  # type: ignore[arg-type]


def _sum(features: Tensor, present: Tensor, items: Tensor) -> Tensor:
    return (features[:, :, 0] * present).sum(dim=1)


_VALUES = torch.tensor([[[4.0], [1.0], [2.0]], [[3.0], [5.0], [99.0]]])
_HERE = torch.tensor([[True, True, True], [True, True, False]])


def test_curves_and_areas_by_hand() -> None:
    gone = deletion(_sum, _VALUES, _HERE, _VALUES[:, :, 0])
    assert gone.shares.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    # The second item has two regions: a third of them is 0.67, rounded to one; two thirds are 1.33, one again.
    assert gone.scores.tolist() == [[7, 3, 1, 0], [8, 3, 3, 0]]
    assert gone.area.tolist() == pytest.approx([(3.5 + 3 + 1) / 3, (4 + 3 + 3) / 3])
    come = insertion(_sum, _VALUES, _HERE, _VALUES[:, :, 0])
    assert come.scores.tolist() == [[0, 4, 6, 7], [0, 5, 5, 8]]
    assert come.area.tolist() == pytest.approx([(4 + 6 + 3.5) / 3, (5 + 5 + 4) / 3])


def test_curves_run_between_the_score_of_all_regions_and_that_of_blank_ones() -> None:
    items = torch.arange(5)
    whole, blank = _score(FEATURES, PRESENT, items), _score(torch.zeros_like(FEATURES), PRESENT, items)
    importance = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for steps in (None, 1, 2, 7):
        gone = deletion(_score, FEATURES, PRESENT, importance, steps=steps)
        come = insertion(_score, FEATURES, PRESENT, importance, steps=steps)
        for curve, ends in ((gone, (whole, blank)), (come, (blank, whole))):
            torch.testing.assert_close(curve.scores[:, 0], ends[0])
            torch.testing.assert_close(curve.scores[:, -1], ends[1])
            assert curve.scores.shape == (5, (steps or 3) + 1)


def test_a_better_order_deletes_with_less_and_inserts_with_more_area() -> None:
    good, bad = _VALUES[:, :, 0], -_VALUES[:, :, 0]
    assert (deletion(_sum, _VALUES, _HERE, good).area < deletion(_sum, _VALUES, _HERE, bad).area).all()
    assert (insertion(_sum, _VALUES, _HERE, good).area > insertion(_sum, _VALUES, _HERE, bad).area).all()


def test_the_most_important_regions_are_blanked_and_ties_go_by_place() -> None:
    importance = torch.tensor([[1.0, 2.0, 2.0], [0.0, -1.0, 9.0]])
    left = without_top(_VALUES, importance, _HERE, torch.tensor([1, 1]))
    assert left[:, :, 0].tolist() == [[4, 0, 2], [0, 5, 99]]


def test_an_importance_that_is_nan_has_no_place() -> None:
    with pytest.raises(InvalidValue, match="NaN"):
        places(torch.full((1, 2), torch.nan), torch.tensor([[True, False]]))
    assert places(torch.tensor([[1.0, torch.nan]]), torch.tensor([[True, False]])).tolist() == [[0, 1]]


@pytest.mark.parametrize(("importance", "steps"), [(torch.zeros(2, 2), None), (torch.zeros(2, 3), 0)])
def test_curves_refuse_what_does_not_fit(importance: Tensor, steps: int | None) -> None:
    with pytest.raises(InvalidValue):
        deletion(_sum, _VALUES, _HERE, importance, steps=steps)
