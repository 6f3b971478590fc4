"""The sample photographs are all credited, and what is named in them is inside them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from PIL import Image

PHOTOS = Path(__file__).resolve().parents[1] / "examples" / "photos"
FREE = ("CC0 1.0", "CC BY 2.0", "CC BY 4.0", "MIT", "public domain")
LONGEST_PX, MOST_BYTES = 640, 1_500_000


def _credits() -> dict[str, tuple[str, ...]]:
    """For every photo the README lists: title, author, licence, and where the licence is stated."""
    rows = re.findall(r"^\| `([^`]+)` \|(.*)\|$", (PHOTOS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len({name for name, _ in rows})
    return {name: tuple(cell.strip() for cell in cells.split("|")) for name, cells in rows}


def _regions() -> list[dict[str, Any]]:
    regions: list[dict[str, Any]] = json.loads((PHOTOS / "regions.json").read_text(encoding="utf-8"))
    return regions


def test_every_photo_is_listed_with_author_licence_and_source() -> None:
    listed = _credits()
    assert set(listed) == {path.name for path in PHOTOS.glob("*.jpg")}
    for name, cells in listed.items():
        assert len(cells) == 4, name
        assert all(cells), name
        assert any(licence in cells[2] for licence in FREE), name


def test_the_photos_are_small() -> None:
    paths = sorted(PHOTOS.glob("*.jpg"))
    for path in paths:
        with Image.open(path) as photo:
            assert max(photo.size) <= LONGEST_PX, path.name
    assert sum(path.stat().st_size for path in paths) < MOST_BYTES


def test_every_region_lies_inside_a_photo_that_is_there_and_has_a_name() -> None:
    for region in _regions():
        assert set(region) == {"photo", "box", "name"}
        assert (PHOTOS / region["photo"]).is_file(), region
        assert region["name"].strip(), region
        x1, y1, x2, y2 = region["box"]
        assert 0 <= x1 < x2 <= 1, region
        assert 0 <= y1 < y2 <= 1, region


def test_there_are_enough_regions_to_count_and_every_photo_has_some() -> None:
    regions = _regions()
    assert len(regions) >= 60
    assert {region["photo"] for region in regions} == {path.name for path in PHOTOS.glob("*.jpg")}
