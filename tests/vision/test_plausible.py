"""Pictures that are no photographs are told as such, and photographs are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from saywhere.vision.photo import why_no_photo

PHOTOS = sorted((Path(__file__).resolve().parents[2] / "examples" / "photos").glob("*.jpg"))


def page() -> Image.Image:
    image = Image.new("RGB", (400, 300), "white")
    for line in range(12):
        ImageDraw.Draw(image).text((10, 10 + 22 * line), "The quick brown fox jumps over the lazy dog", fill="black")
    return image


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (Image.new("RGB", (300, 200), (128, 128, 128)), "one colour"),
        (Image.new("RGB", (1, 4000), (20, 90, 200)), "1 × 4000"),
        (page(), "one colour"),
        (Image.fromarray(np.random.default_rng(0).integers(0, 256, (240, 320, 3), dtype=np.uint8)), "noise"),
    ],
    ids=["one colour", "a line", "text", "noise"],
)
def test_what_is_no_photograph_is_told_with_a_reason(image: Image.Image, reason: str) -> None:
    assert reason in why_no_photo(image)


@pytest.mark.parametrize("path", PHOTOS, ids=lambda path: path.stem)
def test_photographs_are_taken_for_photographs(path: Path) -> None:
    assert why_no_photo(Image.open(path)) == ""
