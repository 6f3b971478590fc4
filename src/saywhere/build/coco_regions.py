"""COCO's photographs as the seer sees them, place by place, with the boxes and captions that people gave them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import saywhere
from saywhere.atomic import write_atomic
from saywhere.build.photo_boxes import photo_name
from saywhere.core import AttentionMap, InvalidFile
from saywhere.core.types import Floats, Progress
from saywhere.formats import coco_captions
from saywhere.formats.record import InvalidRecord
from saywhere.models.region_features import RegionFeatures
from saywhere.models.tagged_regions import TaggedRegions, of_found

"""What is being done, how much of it is done, and out of how much."""

_MAP_PX = (48, 48)


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


def read_told(path: Path) -> dict[str, list[str]]:
    """Photo → its captions."""
    told: dict[str, list[str]] = {}
    for record in coco_captions.read(path):
        if not isinstance(record, InvalidRecord):
            told.setdefault(photo_name(record.image_id), []).append(record.caption)
    return told


def see_photos(paths: Sequence[Path], folder: Path, progress: Progress, workers: int) -> dict[str, RegionFeatures]:
    """What the seer's answers are made from, photo by photo; kept in the folder, so that nothing is looked at twice.

    workers: processes; 0 looks in this one. By the photos' names without their endings.
    """
    _look_at(paths, folder, progress, workers)
    return {path.stem: _read(_kept(folder, path)) for path in paths}


def see_tagged(paths: Sequence[Path], folder: Path, progress: Progress, workers: int) -> dict[str, TaggedRegions]:
    """The same with what the detector found as tags, surest first."""
    _look_at(paths, folder, progress, workers)
    return {path.stem: _read_tagged(_kept(folder, path)) for path in paths}


def _look_at(paths: Sequence[Path], folder: Path, progress: Progress, workers: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [path for path in paths if not _kept(folder, path).exists()]
    done = len(paths) - len(waiting)
    with ExitStack() as stack:
        seeing: Iterable[Path] = (_see(path, folder) for path in waiting)
        if workers and waiting:
            pool = stack.enter_context(ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")))
            seeing = pool.map(_see, waiting, [folder] * len(waiting), chunksize=8)
        for _ in seeing:
            done += 1
            progress("looking at photos", done, len(paths))


def _kept(folder: Path, photo: Path) -> Path:
    return folder / f"{photo.stem}.npz"


def _see(photo: Path, folder: Path) -> Path:
    """Look at a photo and keep what was seen; where."""
    from saywhere.models.patchioner.answering import answer_regions

    look = _seer().look(photo)
    seen = of_found(answer_regions(look), look.view.found)
    tag_boxes = np.zeros((0, 4), np.float32) if seen.tag_boxes_xyxy is None else seen.tag_boxes_xyxy
    with write_atomic(_kept(folder, photo)) as file:
        np.savez(
            file,
            features=seen.features.astype(np.float16),
            boxes=seen.boxes_xyxy,
            tags=np.array(seen.tags, dtype=np.str_),
            tag_boxes=tag_boxes,
        )
    return _kept(folder, photo)


@cache
def _seer():  # type: ignore[no-untyped-def]  # its type is imported with torch, when a process needs it
    import torch

    from saywhere.vision.freed import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    return saywhere.load()


def _read(path: Path) -> RegionFeatures:
    with np.load(path) as kept:
        return RegionFeatures(kept["features"], kept["boxes"])


def _read_tagged(path: Path) -> TaggedRegions:
    with np.load(path) as kept:
        if "tags" not in kept:
            raise InvalidFile(path, "was kept by an older version, without tags", "remove it to look again")
        return TaggedRegions(kept["features"], kept["boxes"], kept["tags"].tolist(), kept["tag_boxes"])


def box_importance(boxes_xyxy: Floats, image: RegionFeatures) -> Floats:
    """(r,) human importance of an image's regions when people look at these boxes."""
    return AttentionMap.from_boxes(boxes_xyxy, _MAP_PX).importance(image.boxes_xyxy)
