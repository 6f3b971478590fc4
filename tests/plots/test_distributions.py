"""Densities and boxes: groups told apart without colours, nothing odd breaks them, all texts legible."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from saywhere.core import InvalidValue
from saywhere.plots.distributions import FEWEST, MASSES, draw_densities, draw_spreads
from saywhere.plots.palette import DARK, LIGHT

from .conftest import ODD_WORDS
from .legible import unreadable
from .test_figures import texts

RANDOM = np.random.default_rng(0)
BEFORE = RANDOM.normal((0.12, 60), (0.03, 14), (100, 2))
AFTER = RANDOM.normal((0.06, 55), (0.01, 12), (100, 2))
PAIR = {"before": BEFORE, "after": AFTER}
ON_A_LINE = np.column_stack([np.linspace(0, 1, 30)] * 2)


def contours(figure: Figure, panel: int = 0) -> list[ContourSet]:
    return [part for part in figure.axes[panel].collections if isinstance(part, ContourSet)]


def said(figure: Figure, part: str) -> bool:
    return any(part in text for text in texts(figure))


@pytest.mark.parametrize("panels", [1, 2, 3, 4])
def test_every_panel_has_contours_of_each_group_and_can_be_read(panels: int) -> None:
    names = [f"regions → tags {i}" for i in range(panels)]
    figure = draw_densities(dict.fromkeys(names, PAIR), "standard deviation", "attention mass", DARK)
    assert unreadable(figure) == []
    assert len(figure.axes) == panels
    assert [len(contours(figure, i)) for i in range(panels)] == [2] * panels
    assert {*names, "before", "after"} <= set(texts(figure))


def test_groups_differ_by_mark_and_line_not_by_colour_alone() -> None:
    before, after = contours(draw_densities({"": PAIR}, "x", "y"))
    assert before.get_linestyle() != after.get_linestyle()
    figure = draw_densities({"": PAIR}, "x", "y")
    samples = [line for line in figure.findobj() if line in figure.lines or line in figure.artists]
    assert len({line.get_marker() for line in samples}) == 2


def test_contours_hold_the_shares_they_name() -> None:
    (lines,) = contours(draw_densities({"": {"before": BEFORE}}, "x", "y"))
    from scipy.stats import gaussian_kde

    standard = (BEFORE - BEFORE.mean(axis=0)) / BEFORE.std(axis=0)
    own = gaussian_kde(standard.T)(standard.T)
    held = [float(np.mean(own >= level)) for level in lines.levels]
    np.testing.assert_allclose(held, sorted(MASSES, reverse=True), atol=0.011)


def test_the_large_mark_stands_at_the_medians() -> None:
    axes = draw_densities({"": {"before": BEFORE}}, "x", "y").axes[0]
    marks = [line.get_xydata().tolist() for line in axes.lines]
    x, y = np.median(BEFORE, axis=0)
    assert marks == [[[x, y]], [[x, 0]], [[0, y]]]


@pytest.mark.parametrize(
    ("points", "note"),
    [
        (np.ones((40, 2)), "40 points, all alike or on one line, so no contours."),
        (ON_A_LINE, "30 points, all alike or on one line, so no contours."),
        (ON_A_LINE * (1, 0), "30 points, all alike or on one line, so no contours."),
        (BEFORE[: FEWEST - 1], "4 points, too few for contours."),
        (BEFORE[:1], "1 point, too few for contours."),
        (np.empty((0, 2)), "no points, too few for contours."),
        ([], "no points, too few for contours."),
        (np.full((3, 2), np.nan), "3 points without a number left out."),
    ],
    ids=["one place", "a line", "a level line", "few", "one", "none", "nothing", "no numbers"],
)
def test_points_without_a_density_are_drawn_alone_and_that_is_said(points: np.ndarray, note: str) -> None:
    figure = draw_densities({"mass": {"odd": points, "before": BEFORE}}, "x", "y")
    assert f"mass, odd: {note}" in texts(figure)
    assert len(contours(figure)) == 1
    assert unreadable(figure) == []


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_density_does_not_depend_on_units(scale: float) -> None:
    (lines,) = contours(draw_densities({"": {"a": BEFORE * scale}}, "x", "y"))
    (plain,) = contours(draw_densities({"": {"a": BEFORE}}, "x", "y"))
    np.testing.assert_allclose(lines.levels, plain.levels, rtol=1e-6)


def test_a_panel_of_nothing_says_so() -> None:
    figure = draw_densities({"mass": {}, "other": {"a": []}}, "x", "y")
    assert texts(figure).count("no values") == 2
    assert unreadable(figure) == []


@pytest.mark.parametrize("points", [np.ones((3, 3)), np.ones(4), "abc"])
def test_what_is_no_pairs_of_numbers_is_refused(points: object) -> None:
    with pytest.raises(InvalidValue, match="points of a density"):
        draw_densities({"": {"a": points}}, "x", "y")  # type: ignore[dict-item]


def test_no_panels_and_no_categories_are_refused() -> None:
    with pytest.raises(InvalidValue, match="no panels"):
        draw_densities({}, "x", "y")
    with pytest.raises(InvalidValue, match="no categories"):
        draw_spreads({}, "y")


def shifts(n_groups: int = 2) -> dict[str, dict[str, np.ndarray]]:
    return {
        f"{k} removed": {f"model {g}": RANDOM.normal(0.01 * k, 0.03, 60 // k) for g in range(n_groups)}
        for k in (1, 2, 3)
    }


@pytest.mark.parametrize("n_groups", [1, 2, 4])
def test_every_category_has_a_box_of_each_group_and_can_be_read(n_groups: int) -> None:
    figure = draw_spreads(shifts(n_groups), "shift of confidence", "objects removed", LIGHT)
    assert unreadable(figure) == []
    assert len([patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]) == 3 * n_groups
    assert texts(figure).count("30") == n_groups
    assert {"1 removed", "2 removed", "3 removed", "objects removed"} <= set(texts(figure))


def test_a_box_has_its_quartiles_and_its_median() -> None:
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 100.0]
    axes = draw_spreads({"": {"a": values}}, "y").axes[0]
    (box,) = axes.patches
    assert (box.get_y(), box.get_y() + box.get_height()) == (1.25, 3.75)
    down, up, median = (sorted({y for _, y in line.get_xydata().tolist()}) for line in axes.lines)
    assert (down, up, median) == ([0.0, 1.25], [3.75, 4.0], [2.5])
    assert sorted(y for _, y in axes.collections[0].get_offsets().tolist()) == values


def test_few_values_have_points_and_a_median_but_no_box() -> None:
    figure = draw_spreads({"a": {"x": [], "y": [1.0], "z": [1.0, 2.0, np.nan]}, "b": {"x": [2.0] * 9}}, "y", "odd")
    assert len(figure.axes[0].patches) == 1
    assert [texts(figure).count(count) for count in ("0", "1", "2", "9")] == [1, 1, 1, 1]
    assert texts(figure).count("no values") == 1
    assert unreadable(figure) == []


def test_a_line_marks_zero_only_where_values_lie_on_both_sides() -> None:
    def level(values: list[float]) -> int:
        axes = draw_spreads({"": {"a": values}}, "y").axes[0]
        return sum(line.get_ydata()[0] == line.get_ydata()[-1] == 0 for line in axes.lines)

    assert level([-2.0, -1.0, 0.5, 1.0, 2.0]) == 1
    assert level([1.0, 2.0, 3.0, 4.0, 5.0]) == 0


def test_odd_names_are_drawn_as_they_are() -> None:
    odd = {word: {word: [1.0, 2.0] for word in ODD_WORDS[:3]} for word in ODD_WORDS[:4]}
    figure = draw_spreads(odd, "$up_1$", "$across$")
    assert {"$up_1$", "$across$", "$x_1$"} <= set(texts(figure))
    assert said(draw_densities({"$t_1$": {"$x_1$": BEFORE}}, "$x$", "$y$"), "$t_1$")
