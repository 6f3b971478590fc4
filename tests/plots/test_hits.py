"""Photos that were found: on a sheet and on a page, with the place lit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from saywhere.plots.hits import ShownHit, draw_hits, hits_page
from saywhere.plots.sheet import save_png

WHITE = Image.new("RGB", (200, 100), "white")


def _pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("L"))


def test_around_the_place_a_photo_is_darker(tmp_path: Path) -> None:
    save_png(draw_hits([ShownHit(WHITE, "a", "0.9 · dog", (0.0, 0.0, 0.5, 1.0))], "a dog"), tmp_path / "lit.png")
    save_png(draw_hits([ShownHit(WHITE, "a", "0.9 · dog")], "a dog"), tmp_path / "plain.png")
    darker = _pixels(tmp_path / "plain.png").astype(int) - _pixels(tmp_path / "lit.png") > 100
    _, cols = np.nonzero(darker)
    middle = darker.shape[1] / 2
    # The right half, but for the line around the left one.
    assert (cols > middle).mean() > 0.97
    assert darker.sum() > 0.2 * darker.size


def test_the_page_needs_nothing_else_and_is_the_same_again(tmp_path: Path) -> None:
    hits = [ShownHit(WHITE, "<a>", "x", (0.1, 0.2, 0.3, 0.4)), ShownHit(None, "gone", "said", None)]
    hits_page(hits, tmp_path / "one.html", "a dog & a cat", "the best of 9")
    hits_page(hits, tmp_path / "two.html", "a dog & a cat", "the best of 9")
    page = (tmp_path / "one.html").read_text()
    assert page == (tmp_path / "two.html").read_text()
    assert "&lt;a&gt;" in page
    assert "<a>" not in page
    assert 'd="M0 0H1000V500.0H0ZM100.0 100.0V200.0H300.0V100.0Z"' in page
    assert "2 photos · the best of 9" in page
    assert "no photo found" in page
    assert "http" not in page.replace("http-equiv", "")


def test_nothing_found_is_a_sheet_and_a_page_too(tmp_path: Path) -> None:
    save_png(draw_hits([], "a dog"), tmp_path / "none.png")
    hits_page([], tmp_path / "none.html", "a dog")
    assert _pixels(tmp_path / "none.png").min() < 100
    assert "0 photos" in (tmp_path / "none.html").read_text()
