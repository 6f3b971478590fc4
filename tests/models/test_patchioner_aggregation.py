"""From patches to regions: weights by hand, errors that name the region, and the learnt refinement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import (
    Box,
    BoxSet,
    Frame,
    InvalidFile,
    InvalidValue,
    Mask,
    Patch,
    Point,
    Region,
    Trace,
    UnknownName,
    WholeImage,
)
from saywhere.models.patchioner.aggregation import Aggregation, LearnedAggregation, aggregate, region_weights

FRAME = Frame.of_grid(4, 4)
PATCHES = np.random.default_rng(0).standard_normal((4, 4, 8)).astype(np.float32)
ATTENTION = np.arange(16.0).reshape(4, 4) / 120
TRACE = Trace([[0.1, 0.1, 0.0], [0.9, 0.1, 1.0], [0.9, 0.12, 5.0], [1.4, 0.1, 5.5]])
LEFT_TOP, WIDE = Box(0, 0, 0.25, 0.25), Box(0, 0, 1, 0.5)


def flat(rows: list[list[float]]) -> np.ndarray:
    grid = np.zeros((4, 4))
    grid[: len(rows), : len(rows[0])] = rows
    return grid / grid.sum()


SMALL_BELL = np.exp(-np.add.outer(np.array([1.0, 1.0]), np.linspace(-1, 1, 4) ** 2))
BELL = np.exp(-np.add.outer(*(np.linspace(-1, 1, 4) ** 2,) * 2))


@pytest.mark.parametrize(
    ("region", "by", "expected"),
    [
        (WholeImage(), Aggregation(), np.full((4, 4), 1 / 16)),
        (WholeImage(), Aggregation(image="gaussian"), BELL / BELL.sum()),
        (WholeImage(), Aggregation(image="attention"), ATTENTION),
        # One patch of one box, and eight of the other: each box's patches weigh as a bell, and boxes by their patches.
        (
            BoxSet((LEFT_TOP, WIDE)),
            Aggregation(boxes="gaussian"),
            (flat([[1]]) + 8 * np.vstack([SMALL_BELL / SMALL_BELL.sum(), np.zeros((2, 4))])) / 9,
        ),
        (BoxSet((LEFT_TOP, Box(0, 0, 0.5, 0.25))), Aggregation(boxes="attention"), flat([[0, 1]])),
        # Points at both ends of the first row, twice as many at the right: as far from the middle, so as before.
        (TRACE, Aggregation(trace="gaussian"), flat([[1, 0, 0, 2]])),
        (Trace([(0.1, 0.1, 0), (0.3, 0.1, 1), (0.6, 0.1, 2)]), Aggregation(trace="gaussian"), flat([[1, np.e, 1]])),
        (TRACE, Aggregation(trace="attention"), flat([[0, 0, 0, 1]])),
        (WholeImage(), Aggregation(image="centre"), np.eye(4)[2][:, None] * np.eye(4)[2]),
        (Box(0, 0, 0.3, 0.25), Aggregation(), flat([[1, 1]])),
        (Box(0, 0, 0.3, 0.25), Aggregation(box="coverage"), flat([[0.25, 0.05]])),
        (Box(0, 0, 0.3, 0.25), Aggregation(box="attention"), flat([[0, 1]])),
        (Box(0, 0, 0.75, 0.25), Aggregation(box="gaussian"), flat([[np.exp(-1), 1, np.exp(-1)]])),
        (BoxSet((LEFT_TOP, WIDE)), Aggregation(), flat([[2, 1, 1, 1], [1, 1, 1, 1]])),
        (BoxSet((LEFT_TOP, WIDE)), Aggregation(boxes="box"), flat([[9, 1, 1, 1], [1, 1, 1, 1]])),
        (TRACE, Aggregation(), flat([[1, 0, 0, 2]])),
        (TRACE, Aggregation(trace="dwell"), flat([[0.5, 0, 0, 2.5 + 2.25]])),
        (Patch(0, 1), Aggregation(), flat([[0, 1]])),
        (Point(0.3, 0.1), Aggregation(), flat([[0, 1]])),
        (Mask([[1, 0], [0, 0]]), Aggregation(), flat([[1, 1], [1, 1]])),
    ],
)
def test_regions_weigh_the_patches_as_asked(region: Region, by: Aggregation, expected: np.ndarray) -> None:
    np.testing.assert_allclose(region_weights([region], FRAME, by, ATTENTION)[0], expected, atol=1e-12)
    found = aggregate(PATCHES, [region], FRAME, by, ATTENTION)
    np.testing.assert_allclose(found, np.tensordot(expected, PATCHES, 2)[None], atol=1e-6)


BOXES = st.tuples(*[st.floats(0, 0.9)] * 2, *[st.floats(0.01, 0.5)] * 2).map(
    lambda b: Box(b[0], b[1], b[0] + b[2], b[1] + b[3])
)


@given(st.lists(BOXES, min_size=1, max_size=4), st.sampled_from(["touch", "coverage", "gaussian"]))
def test_many_regions_are_what_each_is_alone(boxes: list[Box], by: str) -> None:
    together = aggregate(PATCHES, boxes, FRAME, Aggregation(box=by))  # type: ignore[arg-type]
    weights = region_weights(boxes, FRAME, Aggregation(box=by))  # type: ignore[arg-type]
    np.testing.assert_allclose(weights.sum(axis=(1, 2)), 1)
    for row, box in zip(together, boxes, strict=True):
        np.testing.assert_allclose(row, aggregate(PATCHES, [box], FRAME, Aggregation(box=by))[0], atol=1e-6)  # type: ignore[arg-type]


def test_no_regions_give_no_vectors() -> None:
    assert aggregate(PATCHES, [], FRAME).shape == (0, 8)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: aggregate(PATCHES, [LEFT_TOP, Trace(np.empty((0, 3)))], FRAME), "^region 2 of 2: trace: is empty"),
        (lambda: aggregate(PATCHES, [Box(1.5, 0, 2, 1)], FRAME), "^box .* covers nothing"),
        (lambda: aggregate(PATCHES, [LEFT_TOP, Point(2, 2)], FRAME), "^region 2 of 2: point"),
        (lambda: aggregate(PATCHES, [WholeImage()], FRAME, Aggregation(image="attention")), "the encoder gave none"),
        (lambda: aggregate(PATCHES, [WholeImage()], FRAME, attention=np.ones((3, 3))), "shape .3, 3., not .4, 4."),
        (
            lambda: aggregate(PATCHES, [LEFT_TOP], FRAME, Aggregation(box="attention"), ATTENTION),
            "^box .* none of the encoder's attention",
        ),
        (lambda: aggregate(PATCHES[0], [LEFT_TOP], FRAME), "patches: have shape"),
        (lambda: Aggregation(box="cover"), "'cover', not one of touch"),  # type: ignore[arg-type]
        (lambda: LearnedAggregation(8, 3), "do not divide"),
        (lambda: LearnedAggregation(4).aggregate(PATCHES, [LEFT_TOP], FRAME), "patches: have shape"),
    ],
)
def test_what_cannot_be_is_named(work: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        work()


def learned(seed: int = 0) -> LearnedAggregation:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LearnedAggregation(8, heads=2)


def test_learned_aggregation_starts_near_the_mean_and_sees_the_region_alone() -> None:
    model = learned()
    assert float(model.alpha.detach()) == pytest.approx(0.1)
    mean, found = aggregate(PATCHES, [WIDE], FRAME), model.aggregate(PATCHES, [WIDE], FRAME)
    assert 0 < np.abs(found - mean).max() < 0.2
    moved = PATCHES.copy()
    moved[2:] += 5
    np.testing.assert_allclose(model.aggregate(moved, [WIDE], FRAME), found, atol=1e-6)
    assert np.abs(model.aggregate(moved, [WholeImage()], FRAME) - found).max() > 0.1


def test_a_patch_with_twice_the_weight_counts_as_two() -> None:
    model, patches = learned(), torch.from_numpy(PATCHES.reshape(16, 8)[:3])
    weighed = model(patches, torch.tensor([[0.5, 0.25, 0.25]]))
    doubled = model(patches[[0, 0, 1, 2]], torch.full((1, 4), 0.25))
    torch.testing.assert_close(weighed, doubled)


def test_everything_in_learned_aggregation_can_be_learnt() -> None:
    model = learned()
    weights = torch.from_numpy(region_weights([WIDE, LEFT_TOP], FRAME).reshape(2, 16)).float()
    model(torch.from_numpy(PATCHES.reshape(16, 8)), weights).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        assert bool(parameter.grad.any()), name


def test_a_saved_aggregation_comes_back(tmp_path: Path) -> None:
    model = learned()
    model.save_pretrained(tmp_path)
    again = LearnedAggregation.from_pretrained(tmp_path)
    np.testing.assert_array_equal(
        *(one.aggregate(PATCHES, [WIDE, TRACE], FRAME) for one in (model, again)), strict=True
    )
    (tmp_path / "config.json").write_text((tmp_path / "config.json").read_text().replace('"heads": 2', '"head": 2'))
    with pytest.raises(InvalidFile, match="does not describe an aggregation"):
        LearnedAggregation.from_pretrained(tmp_path)


def test_ways_have_names_for_all_kinds_of_regions() -> None:
    assert Aggregation.named("uniform") == Aggregation()
    assert Aggregation.named("dwell") == Aggregation(trace="dwell")
    attended = Aggregation.named("attention")
    assert {attended.image, attended.box, attended.boxes, attended.trace} == {"attention"}
    with pytest.raises(UnknownName, match="gaussian"):
        Aggregation.named("gausian")
