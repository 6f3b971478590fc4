from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from saywhere.core.errors import InvalidValue
from saywhere.formats import salicon
from saywhere.formats.record import InvalidRecord
from saywhere.formats.salicon import Gaze


def write(path: Path, *annotations: object) -> Path:
    images = [{"id": 9, "width": 640, "height": 480}]
    path.write_text(json.dumps({"images": images, "annotations": annotations}))
    return path


def test_the_official_examples_are_read_whole_and_lie_on_their_images(shared: Callable[[str], Path]) -> None:
    path = shared("data/salicon/fixations_train2014examples.json")
    values = [value for value in salicon.read(path) if isinstance(value, Gaze)]
    assert len(values) == 610
    assert len({value.image_id for value in values}) == 10
    for value, entry in zip(values, json.loads(path.read_bytes())["annotations"], strict=True):
        assert value.points_xy.min() > 0
        assert value.points_xy.max() < 1
        pixels = np.floor(value.points_xy * (640, 480)).astype(int)[:, ::-1] + 1
        np.testing.assert_array_equal(pixels, entry["fixations"])
        assert (value.kind, value.durations_s) == ("mouse", None)


def test_the_first_and_last_pixel_lie_half_a_pixel_from_the_edges(tmp_path: Path) -> None:
    (value,) = salicon.read(
        write(tmp_path / "s.json", {"image_id": 9, "worker_id": 3, "fixations": [[1, 1], [480, 640]]})
    )
    assert isinstance(value, Gaze)
    np.testing.assert_allclose(value.points_xy, [[0.5 / 640, 0.5 / 480], [639.5 / 640, 479.5 / 480]])
    assert value.subject == "3"


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ({"image_id": 9, "worker_id": 3, "fixations": []}, "are none"),
        ({"image_id": 9, "worker_id": 3, "fixations": [[5, 5], [0, 5]]}, "fixation 1 is row 0"),
        ({"image_id": 9, "worker_id": 3, "fixations": [[481, 5]]}, "outside the image of 480 rows"),
        ({"image_id": 9, "worker_id": 3, "fixations": [[5, 641]]}, "column 641"),
        ({"image_id": 9, "worker_id": 3, "fixations": [[5]]}, "fixations[0]"),
        ({"image_id": 8, "worker_id": 3, "fixations": [[5, 5]]}, "image 8 is not listed"),
    ],
)
def test_a_bad_annotation_is_a_bad_record_with_its_reason(
    annotation: dict[str, object], words: str, tmp_path: Path
) -> None:
    good = {"image_id": 9, "worker_id": 3, "fixations": [[5, 5]]}
    bad, value = salicon.read(write(tmp_path / "s.json", annotation, good))
    assert isinstance(bad, InvalidRecord)
    assert bad.where.startswith("annotations[0]")
    assert words in f"{bad.where} {bad.reason}"
    assert isinstance(value, Gaze)


def test_times_come_only_from_the_rate_that_the_caller_states() -> None:
    gaze = Gaze(9, "3", "mouse", [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    np.testing.assert_allclose(gaze.trace(rate_hz=20).points, [[0.1, 0.2, 0], [0.3, 0.4, 0.05], [0.5, 0.6, 0.1]])
    for rate_hz in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidValue, match="rate_hz"):
            gaze.trace(rate_hz)
    with pytest.raises(InvalidValue, match="durations"):
        Gaze(9, "3", "eye", [[0.1, 0.2]], [0.3]).trace(20)


@pytest.mark.parametrize(
    ("points", "durations", "words"),
    [
        (np.empty((0, 2)), None, "none"),
        ([[0.1, np.nan]], None, "NaN"),
        ([[0.1, 0.2]], [-1.0], "negative"),
        ([[0.1, 0.2]], [1.0, 2.0], "shape"),
    ],
)
def test_gaze_that_cannot_be_is_refused(points: object, durations: object, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        Gaze(9, "3", "eye", points, durations)  # type: ignore[arg-type]
