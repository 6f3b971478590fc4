from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as coco

from saywhere.core.errors import InvalidValue
from saywhere.core.run_lengths import mask_of_runs, runs_of
from saywhere.formats.coco_instances import RunLengths

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@given(SHAPES.flatmap(lambda shape: arrays(np.bool_, shape)))
def test_a_mask_survives_its_run_lengths_and_cocos_own_tool_gives_the_same(inside: np.ndarray) -> None:
    runs = runs_of(inside)
    np.testing.assert_array_equal(mask_of_runs(runs, *inside.shape), inside)
    theirs = coco.encode(np.asfortranarray(inside, dtype=np.uint8))["counts"].decode()
    assert RunLengths(inside.shape, theirs).runs() == tuple(runs)
    assert RunLengths.of(inside) == RunLengths(inside.shape, tuple(runs))


def test_runs_go_down_the_columns_and_begin_outside() -> None:
    assert runs_of(np.array([[1, 0, 0], [1, 1, 0]], dtype=bool)) == [0, 2, 1, 1, 2]


@pytest.mark.parametrize(("runs", "shape"), [([3], (2, 2)), ([-1, 5], (2, 2)), ([], (2, 2)), ([0], (0, 4))])
def test_runs_that_do_not_fill_the_mask_are_refused(runs: list[int], shape: tuple[int, int]) -> None:
    with pytest.raises(InvalidValue, match="has runs of"):
        mask_of_runs(runs, *shape)
