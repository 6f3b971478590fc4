"""Heat maps side by side: the photo first, every text on the sheet, each map on its own scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from saywhere.core import AttentionMap, InvalidValue
from saywhere.plots.heats import MOST_WORDS, HeatPanel, draw_heats, draw_panel
from saywhere.plots.photo import load_photo

from .conftest import ODD_WORDS
from .test_figures import pixels, texts

PEAK = np.zeros((6, 6))
PEAK[0, 5] = 1
SPOT = AttentionMap(PEAK)
NOWHERE = HeatPanel("human", None)


def pictures(figure: Figure) -> list[tuple[float, float]]:
    """Left and lower edges of the panels; the strip of the scale is left out."""
    return [axes.get_position().p0 for axes in figure.axes if axes.get_position().height > 0.1]


def test_the_photo_comes_first_and_all_stand_in_one_row(photo: Path) -> None:
    figure = draw_heats(photo, [HeatPanel("base", SPOT, note="no ✗"), HeatPanel("HINT", SPOT), NOWHERE], "Is it? yes")
    lefts, bottoms = zip(*pictures(figure), strict=True)
    assert list(lefts) == sorted(set(lefts))
    assert len(lefts) == 4
    assert len(set(bottoms)) == 1
    assert {"Is", "it?", "yes", "photo", "base", "HINT", "human", "no ✗", "most attention"} <= set(texts(figure))


def test_more_panels_than_a_row_holds_go_to_the_next() -> None:
    figure = draw_heats(None, [HeatPanel(str(i), SPOT) for i in range(6)], "")
    assert len({round(bottom, 6) for _, bottom in pictures(figure)}) == 2
    assert len(pictures(figure)) == 7


def test_the_photo_keeps_its_colours_and_the_maps_lie_over_grey(tmp_path: Path) -> None:
    red = np.full((40, 40, 3), (200, 30, 30), np.uint8)
    own = pixels(draw_panel(load_photo(red), None, 1), tmp_path / "a.png")
    under = pixels(draw_panel(load_photo(red), HeatPanel("m", SPOT), 1), tmp_path / "b.png")
    middle = (20, 20)
    assert own[middle].tolist() == [200, 30, 30]
    assert under[35, 5].tolist() == [under[35, 5, 0]] * 3
    assert under[2, -3, 0] > under[2, -3, 2] + 60


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_each_map_is_relative_to_its_own_highest_value(scale: float, tmp_path: Path) -> None:
    one = pixels(draw_panel(load_photo(None), HeatPanel("m", SPOT), 1), tmp_path / "a.png")
    other = pixels(draw_panel(load_photo(None), HeatPanel("m", AttentionMap(PEAK * scale)), 1), tmp_path / "b.png")
    assert np.array_equal(one, other)


def test_a_panel_without_attention_says_so(photo: Path) -> None:
    assert texts(draw_heats(photo, [NOWHERE], "")).count("no attention") == 2  # On the panel, and on the scale.
    assert NOWHERE.described() == "human: no attention"


def test_boxes_are_outlined_within_the_photo() -> None:
    figure = draw_panel(load_photo(None), HeatPanel("m", SPOT, [(0.2, 0.2, 0.4, 0.4), (-1, 0.5, 3, 2)]), 2)
    outlines = [patch.get_xy() for patch in figure.axes[0].patches if isinstance(patch, Polygon)]
    assert len(outlines) == 4  # Each has a casing.
    assert all(((outline > 0) & (outline < 1)).all() for outline in outlines)


@pytest.mark.parametrize("boxes", [[(0, 0, 1)], [(0, 0, 1, np.nan)], (0, 0, 1, 1)])
def test_boxes_that_are_none_are_refused(boxes: object) -> None:
    with pytest.raises(InvalidValue, match="boxes to outline"):
        HeatPanel("m", SPOT, boxes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attention", "seen"),
    [
        (SPOT, "most attention at the top right, half of it on 3 % of the photo"),
        (AttentionMap(np.ones((10, 10))), "most attention in the middle, half of it on 50 % of the photo"),
        (AttentionMap(np.eye(1, 300, 150).T), "most attention in the middle, half of it on less than 1 % of the photo"),
        (AttentionMap.from_boxes([(0, 0.8, 1, 1)]), "most attention at the bottom, half of it on 10 % of the photo"),
        (AttentionMap.from_boxes([(0, 0, 0.25, 1)]), "most attention at the left, half of it on 12 % of the photo"),
    ],
)
def test_a_map_is_told_in_words(attention: AttentionMap, seen: str) -> None:
    assert HeatPanel("HINT", attention).described() == f"HINT: {seen}"


def test_only_the_marked_words_are_bold() -> None:
    figure = draw_heats(None, [], "a cat and a cat", marked=range(4, 5))
    bold = [t.get_text() for t in figure.texts if "Bold" in str(t.get_fontproperties().get_file())]
    assert bold == ["cat", "photo"]


@pytest.mark.parametrize("marked", [range(-1, 1), range(2, 3), range(1, 3)])
def test_a_marked_word_must_be_one_of_the_heading(marked: range) -> None:
    with pytest.raises(InvalidValue, match="marked word"):
        draw_heats(None, [], "a cat", marked=marked)


def test_odd_texts_and_a_missing_photo_can_be_drawn(tmp_path: Path) -> None:
    odd = " ".join(ODD_WORDS)
    figure = draw_heats(tmp_path / "gone.png", [HeatPanel(odd, SPOT, note=odd * 9)], f"{odd} {'word ' * 99}")
    assert pixels(figure, tmp_path / "h.png").std() > 5
    assert texts(figure).count("gone.png was not found") == 2
    assert texts(figure).count("word") == MOST_WORDS - len(odd.split())
