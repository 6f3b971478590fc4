"""The colours of time."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.core import Trace, Word
from saywhere.plots import TimeScale
from saywhere.plots.colour import hex_colours, inks, time_colours

# sRGB to OKLab, the published way there; the code holds only the way back.
TO_CONES = np.array(
    [
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    ]
)
TO_LAB = np.array(
    [
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    ]
)


def linear(rgb: np.ndarray) -> np.ndarray:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    return np.cbrt(linear(rgb) @ TO_CONES.T) @ TO_LAB.T


def test_equal_times_look_equally_far_apart_and_grow_lighter():
    lab = oklab(time_colours(np.linspace(0, 1, 256)))
    steps = np.linalg.norm(np.diff(lab, axis=0), axis=1)
    assert steps.max() / steps.min() < 1.05
    assert (np.diff(lab[:, 0]) > 0).all()


def test_times_outside_the_scale_get_the_colour_of_the_nearer_end():
    assert hex_colours([-5, 7]) == hex_colours([0, 1])


def test_text_on_every_colour_has_a_contrast_of_at_least_four_and_a_half():
    shares = np.linspace(0, 1, 256)
    luminance = linear(time_colours(shares)) @ (0.2126, 0.7152, 0.0722)
    ink = np.array([1.0 if name == "#ffffff" else 0.0 for name in inks(shares)])
    lighter, darker = np.maximum(luminance, ink), np.minimum(luminance, ink)
    assert ((lighter + 0.05) / (darker + 0.05)).min() >= 4.5


@pytest.mark.parametrize(
    ("words", "trace", "span"),
    [
        ((), Trace.from_segments([]), (0, 0)),
        ((Word("a", 1, 2), Word("b", 2, 5)), Trace.from_segments([]), (1, 5)),
        ((Word("a", 1, 2),), Trace([(0, 0, 0.5), (0, 0, 7)]), (0.5, 7)),
    ],
)
def test_the_scale_goes_from_the_first_to_the_last_thing_that_happens(words, trace, span):
    scale = TimeScale.of(words, trace)
    assert (scale.start_s, scale.end_s) == span


def test_a_scale_without_length_has_one_colour_and_a_huge_one_does_not_overflow():
    assert TimeScale(3, 3).shares([3, 3]).tolist() == [0, 0]
    assert TimeScale(-1.5e308, 1.5e308).shares([-1.5e308, 0, 1.5e308]).tolist() == [0, 0.5, 1]
