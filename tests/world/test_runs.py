"""Run lengths, against pycocotools."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pycocotools import mask as coco_mask

from saywhere.world import run_lengths


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools' decoder
@given(arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12), elements=st.booleans()))
def test_pycocotools_reads_back_the_same_mask(mask: np.ndarray) -> None:
    runs = run_lengths(mask)
    packed = coco_mask.frPyObjects(runs, *runs["size"])
    np.testing.assert_array_equal(coco_mask.decode(packed).astype(bool), mask)
    assert sum(runs["counts"]) == mask.size
