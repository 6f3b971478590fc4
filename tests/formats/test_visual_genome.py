from __future__ import annotations

import json
from pathlib import Path

import pytest

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats import visual_genome
from saywhere.formats.record import InvalidRecord
from saywhere.formats.visual_genome import RegionDescription

GOOD = {"region_id": 1, "image_id": 5, "x": 10, "y": 20, "width": 30, "height": 40, "phrase": "a clock"}
SIZES = [{"image_id": 5, "width": 100, "height": 200, "url": "…"}]


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_regions_are_in_pixels_alone_and_in_fractions_with_the_file_of_sizes(tmp_path: Path) -> None:
    regions = write(tmp_path / "regions.json", [{"id": 5, "regions": [GOOD]}, {"id": 6, "regions": []}])
    (alone,) = visual_genome.read(regions)
    assert alone == RegionDescription(5, 1, "a clock", (10, 20, 30, 40))
    assert alone.box_xyxy_px == (10, 20, 40, 60)
    with pytest.raises(InvalidValue, match="unknown size"):
        _ = alone.box_xyxy
    (sized,) = visual_genome.read(regions, write(tmp_path / "sizes.json", SIZES))
    assert isinstance(sized, RegionDescription)
    assert sized.box_xyxy == (0.1, 0.1, 0.4, 0.3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"width": 0}, "no area"),
        ({"height": -3}, "no area"),
        ({"x": 100}, "outside the image"),
        ({"phrase": "  "}, "phrase is empty"),
        ({"image_id": 6}, "listed under 5"),
        ({"x": "10"}, ".x"),
        ({"x": 1e200}, "not a place"),
    ],
)
def test_a_bad_region_is_a_bad_record_with_its_reason(change: dict[str, object], words: str, tmp_path: Path) -> None:
    regions = write(tmp_path / "regions.json", [{"id": 5, "regions": [GOOD, GOOD | change]}])
    good, bad = visual_genome.read(regions, write(tmp_path / "sizes.json", SIZES))
    assert isinstance(good, RegionDescription)
    assert isinstance(bad, InvalidRecord)
    assert bad.where.startswith("[0].regions[1]")
    assert words in f"{bad.where} {bad.reason}"


@pytest.mark.parametrize(
    "image", [7, {}, {"id": 5}, {"regions": [GOOD]}, {"id": 5, "regions": {}}, {"id": [], "regions": [GOOD]}]
)
def test_a_bad_image_is_one_bad_record(image: object, tmp_path: Path) -> None:
    bad, good = visual_genome.read(write(tmp_path / "regions.json", [image, {"id": 5, "regions": [GOOD]}]))
    assert isinstance(bad, InvalidRecord)
    assert bad.where.startswith("[0]")
    assert isinstance(good, RegionDescription)


def test_bad_sizes_are_reported_and_their_regions_are_not_guessed(tmp_path: Path) -> None:
    regions = write(tmp_path / "regions.json", [{"id": 5, "regions": [GOOD]}])
    size, region = visual_genome.read(
        regions, write(tmp_path / "sizes.json", [{"image_id": 5, "width": 0, "height": 1}])
    )
    assert isinstance(size, InvalidRecord)
    assert size.path.endswith("sizes.json")
    assert isinstance(region, InvalidRecord)
    assert "has no size" in region.reason


def test_an_object_is_not_a_list_of_images(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="a list of images"):
        list(visual_genome.read(write(tmp_path / "regions.json", {})))
