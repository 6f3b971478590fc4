"""CLIP-S and PAC-S on vectors whose cosines are known."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.core import InvalidValue
from saywhere.metrics.photo_captions import PAC_WEIGHT, photo_caption_scores

PHOTOS = np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
SAID = np.array([[1.0, 1.0], [0.0, 5.0], [-1.0, 0.0]])


def test_the_score_is_the_cosine_times_a_weight_and_never_below_0() -> None:
    np.testing.assert_allclose(photo_caption_scores(PHOTOS, SAID).by_photo, [2.5 * np.sqrt(0.5), 2.5, 0])
    np.testing.assert_allclose(photo_caption_scores(PHOTOS, SAID, weight=PAC_WEIGHT).by_photo[1], 2)


def test_references_count_by_the_nearest_in_a_harmonic_mean() -> None:
    references = [[[1.0, 1.0], [-1.0, -1.0]], [[1.0, 0.0]], [[-2.0, 0.0]]]
    found = photo_caption_scores(PHOTOS, SAID, references).with_references
    assert found is not None
    first = 2.5 * np.sqrt(0.5)
    # Of the second no reference is near, of the third the photo is not: both are worth nothing.
    np.testing.assert_allclose(found, [2 * first / (first + 1), 0, 0])


@pytest.mark.parametrize(
    ("photos", "said", "references", "reason"),
    [
        (PHOTOS, SAID[:2], None, "have shape"),
        (PHOTOS, np.zeros((3, 2)), None, "length 0"),
        (PHOTOS, SAID, [[[1.0, 0.0]]], "are of 1 photos, not of 3"),
        (np.zeros((0, 2)), SAID, None, "not one or more vectors"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(photos: object, said: object, references: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        photo_caption_scores(photos, said, references)  # type: ignore[arg-type]
