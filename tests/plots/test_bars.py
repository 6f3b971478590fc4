"""Bars of classes and lines over layers: every number in its place and legible."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from saywhere.core import InvalidValue
from saywhere.plots.bars import draw_bars
from saywhere.plots.lines import draw_lines
from saywhere.plots.palette import DARK

from .legible import unreadable
from .test_figures import texts

SCENES = {"kitchen": 400, "beach": 120, "restaurant with a very long name": 8}
F1 = {
    "before": {"kitchen": [0.9, 1.0], "beach": [0.5, 0.7]},
    "after": {"kitchen": [1.0, 1.0], "beach": [0.8, 0.8], "restaurant with a very long name": [0.25, 0.35]},
}


def bars(figure: object) -> list[Rectangle]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]  # type: ignore[attr-defined]


def test_each_class_has_a_bar_of_each_group_as_long_as_its_mean() -> None:
    found = bars(draw_bars(F1, SCENES, "F1"))
    np.testing.assert_allclose([bar.get_width() for bar in found], [0.95, 1.0, 0.6, 0.8, 0.3])


def test_classes_stand_in_their_order_with_their_support_under_their_name() -> None:
    figure = draw_bars(F1, SCENES, "F1", palette=DARK)
    assert unreadable(figure) == []
    places = {text.get_text(): text.get_position()[1] for text in figure.axes[0].texts}
    names = ["kitchen", "n = 400", "beach", "n = 120", "restaurant with…ong name", "n = 8"]
    assert sorted(names, key=lambda name: places[name]) == names


def test_a_class_without_a_number_gets_a_dash() -> None:
    assert texts(draw_bars(F1, SCENES, "F1")).count("–") == 1
    assert texts(draw_bars({"a": {"x": [np.nan]}}, {"x": 0}, "F1")).count("–") == 1


def test_groups_are_told_apart_by_hatching_in_the_legend_and_the_plot() -> None:
    figure = draw_bars({**F1, "random": {"kitchen": [0.1]}}, SCENES, "F1")
    hatches = {bar.get_hatch() or "" for bar in bars(figure)}
    legend = [patch.get_hatch() or "" for patch in figure.patches + figure.artists if isinstance(patch, Rectangle)]
    assert len(hatches) == 3
    assert hatches <= set(legend)


def test_seeds_are_told_of_only_where_there_are_several() -> None:
    seeds = "Bars end at the mean over seeds; each tick is a seed. n: cases of a class."
    assert seeds in texts(draw_bars(F1, SCENES, "F1"))
    assert "n: cases of a class." in texts(draw_bars({"a": {"kitchen": [0.5]}}, SCENES, "F1"))


@pytest.mark.parametrize(("highest", "end"), [(1.0, 1.0), (None, 5.1)])
def test_the_axis_ends_where_it_should(highest: float | None, end: float) -> None:
    axes = draw_bars({"a": {"x": [5.0]}}, {"x": 1}, "mass", highest).axes[0]
    assert axes.get_xlim() == (0, pytest.approx(end))


@pytest.mark.parametrize(
    ("values", "support", "reason"),
    [
        ({}, {"x": 1}, "no groups"),
        ({"a": {}}, {}, "no classes"),
        ({"a": {"y": [1.0]}}, {"x": 1}, "no support for y"),
        ({"a": {"x": [-1.0]}}, {"x": 1}, "below 0"),
    ],
)
def test_bars_that_mean_nothing_are_refused(
    values: dict[str, dict[str, list[float]]], support: dict[str, int], reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason):
        draw_bars(values, support, "F1")


def test_lines_start_at_layer_one_and_share_their_axes() -> None:
    panels = {"before": {"tags": [0.1, 0.5, 0.9], "regions": [0.2, 0.3]}, "after": {"tags": [0.4]}}
    figure = draw_lines(panels, "attention to [SEP]")
    assert unreadable(figure) == []
    before, after = figure.axes
    assert before.get_ylim() == after.get_ylim()
    assert before.get_xlim() == after.get_xlim() == (0.8, 3.2)
    assert [line.get_xydata().tolist() for line in before.lines] == [
        [[1, 0.1], [2, 0.5], [3, 0.9]],
        [[1, 0.2], [2, 0.3]],
    ]
    assert len({(line.get_marker(), line.get_linestyle()) for line in before.lines}) == 2


@pytest.mark.parametrize("line", [[], [np.nan, np.nan], [0.5], [1.0, np.nan, 1.0]])
def test_lines_with_holes_or_without_length_are_drawn_too(line: list[float]) -> None:
    figure = draw_lines({"a": {"tags": line}, "b": {}, "c": {"tags": line}}, "attention")
    assert unreadable(figure) == []
    assert ("no values" in texts(figure)) == (not np.isfinite(line).any())


def test_lines_of_no_panel_are_refused() -> None:
    with pytest.raises(InvalidValue, match="no panels"):
        draw_lines({}, "attention")
