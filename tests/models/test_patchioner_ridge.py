"""The alignment in closed form, and the model of the gap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID
from saywhere.models.patchioner.gap_model import GapModel
from saywhere.models.patchioner.objective import TextBatch, TextObjective, seen_as
from saywhere.models.patchioner.ridge import fit_ridge, out_of_fold


def _pairs(n: int = 400, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs, weight = rng.normal(size=(n, d)), rng.normal(size=(d, 4))
    return inputs, inputs @ weight + 0.5, weight


def test_without_noise_and_hardly_any_penalty_the_true_weight_is_found() -> None:
    inputs, targets, weight = _pairs()
    inputs = inputs - inputs.mean(axis=0)
    found, offset = fit_ridge(inputs, targets, penalty=1e-4)
    np.testing.assert_allclose(found, weight, atol=1e-4)
    np.testing.assert_allclose(offset, targets.mean(axis=0), atol=1e-5)


def test_ridge_agrees_with_the_textbook_formula() -> None:
    inputs, targets, _ = _pairs(30)
    found, offset = fit_ridge(inputs, targets, penalty=7.0)
    by_hand = np.linalg.inv(inputs.T @ inputs + 7 * np.eye(6)) @ inputs.T @ (targets - targets.mean(axis=0))
    np.testing.assert_allclose(found, by_hand, atol=1e-5)
    np.testing.assert_allclose(offset, targets.mean(axis=0), atol=1e-6)


def test_a_row_of_weight_three_counts_like_three_rows() -> None:
    inputs, targets, _ = _pairs(20)
    weights = np.ones(20)
    weights[4] = 3
    three_times = np.concatenate([np.arange(20), [4, 4]])
    for a, b in zip(
        fit_ridge(inputs, targets, 2.0, weights), fit_ridge(inputs[three_times], targets[three_times], 2.0), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_an_out_of_fold_prediction_does_not_know_its_own_target() -> None:
    inputs, targets, _ = _pairs(50)
    before = out_of_fold(inputs, targets, 1.0, folds=5)
    changed = targets.copy()
    changed[7] += 100
    after = out_of_fold(inputs, changed, 1.0, folds=5)
    np.testing.assert_allclose(after[7], before[7], atol=1e-6)
    assert np.abs(after - before).max() > 1


@pytest.mark.parametrize(
    ("inputs", "targets", "penalty", "weights", "reason"),
    [
        (np.ones((3, 2)), np.ones((2, 2)), 1.0, None, "shapes"),
        (np.ones((3, 2)), np.ones((3, 2)), 0.0, None, "above 0"),
        (np.ones((3, 2)), np.ones((3, 2)), 1.0, np.ones(2), "for 3 rows"),
        (np.ones((3, 2)), np.ones((3, 2)), 1.0, np.zeros(3), "all zero"),
        (np.full((3, 2), np.nan), np.ones((3, 2)), 1.0, None, "NaN"),
    ],
)
def test_what_cannot_be_fitted_is_refused(inputs, targets, penalty, weights, reason) -> None:
    with pytest.raises(InvalidValue, match=reason):
        fit_ridge(inputs, targets, penalty, weights)


def test_more_folds_than_rows_are_refused() -> None:
    with pytest.raises(InvalidValue, match="folds"):
        out_of_fold(np.ones((3, 2)), np.ones((3, 2)), 1.0, folds=4)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _gap(n: int = 4000, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Texts, and images that keep the first half of the directions and add noise."""
    rng = np.random.default_rng(0)
    texts = _unit(rng.normal(size=(n, d)))
    kept = texts * (np.arange(d) < d / 2)
    return texts, _unit(kept + np.array([1.0] + [0] * (d - 1)) + 0.2 * rng.normal(size=(n, d)))


def test_imagined_photos_are_as_far_from_their_texts_as_real_ones() -> None:
    texts, images = _gap()
    model = GapModel.fit(texts, images)
    imagined = model.imagine(torch.from_numpy(texts).float(), (1.0, 1.0), torch.Generator().manual_seed(0)).numpy()
    real, made = ((texts * other).sum(axis=1).mean() for other in (images, imagined))
    # Near, not equal: bringing rows to length 1 is not linear, and the toy's gap is wide.
    assert made == pytest.approx(real, abs=0.05)
    np.testing.assert_allclose(imagined.mean(axis=0), images.mean(axis=0), atol=0.06)
    np.testing.assert_allclose(np.linalg.norm(imagined, axis=1), 1, atol=1e-5)


def test_directions_that_photos_do_not_show_do_not_come_through() -> None:
    texts, images = _gap()
    model = GapModel.fit(texts, images)
    strengths = model.map.diagonal().numpy()
    assert strengths[1:4].min() > 5 * np.abs(strengths[4:]).max()


def test_no_strength_means_no_noise() -> None:
    texts, images = _gap(200)
    model = GapModel.fit(texts, images)
    rows = torch.from_numpy(texts[:3]).float()
    first, second = (model.imagine(rows, (0.0, 0.0), torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert torch.equal(first, second)


def test_a_gap_is_the_same_after_saving_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    model = GapModel.fit(*_gap(200))
    model.save(tmp_path / "gap")
    assert torch.equal(GapModel.load(tmp_path / "gap").noise, model.noise)
    config = tmp_path / "gap" / "config.json"
    config.write_text(config.read_text().replace('"size": 8', '"size": 9'))
    with pytest.raises(InvalidFile, match="does not hold the gap"):
        GapModel.load(tmp_path / "gap")


def test_texts_of_another_width_are_refused() -> None:
    model = GapModel.fit(*_gap(200))
    with pytest.raises(InvalidValue, match="numbers each"):
        model.imagine(torch.ones(2, 5), (1, 1), torch.Generator())
    with pytest.raises(InvalidValue, match="shapes"):
        GapModel.fit(np.ones((3, 2)), np.ones((3, 3)))
    with pytest.raises(InvalidValue, match="all 3 are the same"):
        GapModel.fit(np.ones((3, 2)), np.eye(3)[:, :2])


def test_names_of_things_are_told_by_their_own_vectors_and_longer_texts_across_the_gap() -> None:
    texts, images = _gap(200)
    rows = torch.from_numpy(texts[:2]).float()
    words = torch.tensor([[BEGIN_ID, 5, 6, END_ID, PAD_ID], [BEGIN_ID, 5, 6, 7, END_ID]])
    batch = TextBatch(rows, words, torch.arange(2), None)
    objective = TextObjective(noise=(0.0, 0.0), gap=GapModel.fit(texts, images), name_pieces=2)
    moved = seen_as(batch, objective, None, torch.Generator().manual_seed(0))
    torch.testing.assert_close(moved[0], rows[0])
    assert float(moved[1] @ rows[1]) < 0.95
