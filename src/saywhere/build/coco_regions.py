"""COCO's photographs as the seer sees them, place by place, with the boxes and captions that people gave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import saywhere
from saywhere.build.photo_boxes import photo_name
from saywhere.core import InvalidFile
from saywhere.core.types import Floats, Progress
from saywhere.engine import Engine, Function, open_engine, results_of
from saywhere.explain.human import overlap_importance
from saywhere.formats import coco_captions
from saywhere.formats.record import InvalidRecord
from saywhere.models.prepared import REGION_FIELDS, StoredImages, region_features, region_row, tagged_regions
from saywhere.models.region_features import REGIONS, RegionFeatures
from saywhere.models.region_source import REGION_SET
from saywhere.models.tagged_regions import TaggedRegions, of_found
from saywhere.store import Store, StoreWriter


@dataclass(frozen=True, slots=True)
class CocoFolder:
    """photos: a folder of photographs. boxes: COCO's instances, or image → [[class, cx, cy, w, h], …].

    captions: COCO's. pope: POPE's questions, if they are there.
    """

    photos: Path
    boxes: Path
    captions: Path
    pope: tuple[Path, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> CocoFolder:
        """From a folder with photos/, boxes.json and captions_val2017.json, and beside it perhaps pope/."""
        found = cls(
            folder / "photos",
            folder / "boxes.json",
            folder / "captions_val2017.json",
            tuple(sorted((folder.parent / "pope").glob("*.json*"))),
        )
        for path in (found.photos, found.boxes, found.captions):
            if not path.exists():
                raise InvalidFile(path, "is not there", "name a folder with photos/, boxes.json, captions_val2017.json")
        return found


def read_captions(path: Path) -> dict[str, list[str]]:
    """Photo → its captions."""
    told: dict[str, list[str]] = {}
    for record in coco_captions.read(path):
        if not isinstance(record, InvalidRecord):
            told.setdefault(photo_name(record.image_id), []).append(record.caption)
    return told


def see_photos(paths: Sequence[Path], folder: Path, progress: Progress, workers: int) -> Mapping[str, RegionFeatures]:
    """The regions that a seer's looks give, photo by photo; kept in the folder, so that nothing is looked at twice.

    workers: processes; 0 looks in this one. By the photos' names without their endings.
    """
    return StoredImages(_seen(paths, folder, progress, open_engine(workers)), region_features)


def see_tagged(paths: Sequence[Path], folder: Path, progress: Progress, engine: Engine) -> Mapping[str, TaggedRegions]:
    """The same with what the detector found as tags, surest first."""
    return StoredImages(_seen(paths, folder, progress, engine), tagged_regions)


def _seen(paths: Sequence[Path], folder: Path, progress: Progress, engine: Engine) -> Store:
    about = {"model": "saywhere-base", "region_set": REGION_SET}
    with StoreWriter(folder, REGIONS, REGION_FIELDS, about) as writer:
        waiting = [path for path in paths if path.stem not in writer]
        seeing = results_of(engine.map(Function(_see), waiting))
        for done, (path, image) in enumerate(zip(waiting, seeing, strict=True), len(paths) - len(waiting) + 1):
            writer.add(path.stem, **region_row(image))
            progress("looking at photos", done, len(paths))
    return Store(folder)


def _see(photo: Path) -> TaggedRegions:
    """What is in a photo."""
    look = _seer().look(photo)
    return of_found(look.region_set, look.view.found)


@cache
def _seer():  # type: ignore[no-untyped-def]  # its type is imported with torch, when a process needs it
    import torch

    from saywhere.vision.freed import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    return saywhere.load()


def box_importance(boxes_xyxy: Floats, image: RegionFeatures) -> Floats:
    """(r,) human importance of an image's regions when people look at these boxes; NaN for the whole image."""
    return overlap_importance(image.boxes_xyxy, boxes_xyxy)
