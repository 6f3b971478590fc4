"""What is seen in COCO's photos, and COCO folders with and without faults."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.build import coco_regions
from saywhere.build.coco_regions import CocoFolder, box_importance, see_photos
from saywhere.build.held_out import held_out
from saywhere.core import InvalidFile
from saywhere.models.prepared import REGION_FIELDS
from saywhere.models.region_features import REGIONS, RegionFeatures
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.store import StoreWriter

DOG, CAT = (0.1, 0.1, 0.5, 0.5), (0.6, 0.2, 0.9, 0.8)


def quiet(what: str, done: int, total: int) -> None:
    """Says nothing."""


def _random_look(photo: Path) -> TaggedRegions:
    rng = np.random.default_rng(int(photo.stem))
    return TaggedRegions(rng.normal(size=(4, 6)), [(0, 0, 1, 1), DOG, CAT, (0, 0, 0.5, 1)])


@pytest.fixture
def coco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CocoFolder:
    """Photos with a dog, or a dog and a cat, some of them held out; what is seen in them is made up."""
    monkeypatch.setattr(coco_regions, "_see", _random_look)
    folder = tmp_path / "coco"
    (folder / "photos").mkdir(parents=True)
    held = [*sorted(held_out("test"))[:6], *sorted(held_out("validation"))[:6]]
    names = [*held, *(f"{900_000_000_000 + i}" for i in range(20))]
    boxes, captions = {}, []
    for i, name in enumerate(names):
        Image.new("RGB", (8, 8)).save(folder / "photos" / f"{name}.png")
        boxes[name] = [[16, 0.3, 0.3, 0.4, 0.4], *([[15, 0.75, 0.5, 0.3, 0.6]] if i % 2 else [])]
        captions.append({"id": i, "image_id": int(name), "caption": "a brown dog beside a cat" if i % 2 else "a dog"})
    (folder / "boxes.json").write_text(json.dumps(boxes))
    images = [{"id": int(name), "file_name": f"{name}.png"} for name in names]
    (folder / "captions_val2017.json").write_text(json.dumps({"images": images, "annotations": captions}))
    return CocoFolder.of(folder)


def test_no_photo_is_looked_at_twice(coco: CocoFolder, tmp_path: Path) -> None:
    paths = sorted(coco.photos.iterdir())[:3]
    told: list[int] = []
    see_photos(paths[:2], tmp_path, quiet, workers=0)
    seen = see_photos(paths, tmp_path, lambda what, done, total: told.append(done), workers=0)
    assert told == [3]
    assert list(seen) == [path.stem for path in paths]


def test_looks_of_another_set_of_regions_are_not_gone_on_with(coco: CocoFolder, tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "looks", REGIONS, REGION_FIELDS, {"model": "saywhere-base"}) as writer:
        writer.add("000000000001", regions=np.zeros((1, 6)), boxes=[(0, 0, 1, 1)])
    with pytest.raises(InvalidFile, match="region_set"):
        see_photos(sorted(coco.photos.iterdir())[:1], tmp_path / "looks", quiet, workers=0)


@pytest.mark.parametrize("missing", ["photos", "boxes.json", "captions_val2017.json"])
def test_a_folder_that_lacks_something_is_named(coco: CocoFolder, missing: str) -> None:
    path = coco.photos.parent / missing
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(InvalidFile, match=f"{missing}.*is not there"):
        CocoFolder.of(coco.photos.parent)


def test_importance_is_highest_where_the_box_is() -> None:
    image = RegionFeatures(np.zeros((3, 2)), [(0, 0, 1, 1), DOG, CAT])
    whole, dog, cat = box_importance(np.array([DOG]), image).tolist()
    assert dog == 1
    assert np.isnan(whole)
    assert cat == 0
