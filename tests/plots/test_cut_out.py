from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from saywhere.core import Box, Mask, Point, Region, Trace
from saywhere.plots.cut_out import draw_cut_out, draw_cut_outs
from saywhere.plots.pointed import draw_pointed
from saywhere.plots.sheet import save_png

RED = Image.new("RGB", (60, 40), (200, 30, 30))


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def test_what_is_cut_out_keeps_its_colours_and_the_rest_is_grey(tmp_path: Path) -> None:
    inside = np.zeros((40, 60), dtype=bool)
    inside[:, :30] = True
    save_png(draw_cut_out(RED, Mask(inside)), tmp_path / "cut.png", dpi=50)
    image = pixels(tmp_path / "cut.png")
    left, right = image[image.shape[0] // 2, image.shape[1] // 4], image[image.shape[0] // 2, 3 * image.shape[1] // 4]
    assert np.abs(left - (200, 30, 30)).max() < 6
    assert np.ptp(right) < 6


def test_what_was_pointed_at_is_drawn_and_a_mask_at_the_edge_has_a_closed_outline(tmp_path: Path) -> None:
    whole = Mask(np.ones((4, 6), dtype=bool))
    regions: list[Region | None] = [
        None,
        Point(0.5, 0.5),
        Trace([(0.1, 0.1, 0), (0.9, 0.9, 1)]),
        Box(0.2, 0.2, 0.8, 0.8),
    ]
    drawn = []
    for number, region in enumerate(regions):
        save_png(draw_cut_out(RED, whole, region), tmp_path / f"{number}.png", dpi=200)
        drawn.append(pixels(tmp_path / f"{number}.png"))
    assert all(not np.array_equal(one, drawn[0]) for one in drawn[1:])
    pink = np.abs(drawn[0] - (224, 33, 138)).max(axis=2) < 40
    assert pink.any(axis=0).sum() > 0.8 * pink.shape[1]


def test_all_that_an_answer_points_out_is_drawn_where_it_is(tmp_path: Path) -> None:
    left = np.zeros((4, 6), dtype=bool)
    left[:, :3] = True
    regions: list[Region] = [
        Mask(left),
        Trace([(0.6, 0.1, 0), (0.9, 0.9, 1)]),
        Box(0.6, 0.2, 0.8, 0.8),
        Point(0.75, 0.5),
    ]
    save_png(draw_pointed(RED, []), tmp_path / "nothing.png", dpi=100)
    plain = pixels(tmp_path / "nothing.png")
    for number, region in enumerate(regions):
        save_png(draw_pointed(RED, [region]), tmp_path / f"{number}.png", dpi=100)
        changed = (np.abs(pixels(tmp_path / f"{number}.png") - plain).max(axis=2) > 30).any(axis=0)
        halves = changed[: len(changed) * 9 // 20].any(), changed[len(changed) * 11 // 20 :].any()
        assert halves == (number == 0, number > 0)
    save_png(draw_pointed(RED, regions), tmp_path / "all.png", dpi=100)
    assert (np.abs(pixels(tmp_path / "all.png") - plain).max(axis=2) > 30).any(axis=0).sum() > 0.5 * plain.shape[1]


def test_photos_stand_side_by_side_with_their_masks(tmp_path: Path) -> None:
    figure = draw_cut_outs([(RED, [np.eye(8, dtype=bool)]), (RED, []), *[(RED, [])] * 3])
    assert len(figure.axes) == 5
    width, height = figure.get_size_inches()
    assert 0.4 * width < height < 0.7 * width
