"""The photos that `saywhere-base` is made with, and what is seen in them: whole, and in boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saywhere.atomic import write_atomic
from saywhere.build.region_texts import BoxNames
from saywhere.core import Box, Frame, InvalidFile
from saywhere.core.types import Floats32, Progress
from saywhere.formats import coco_captions
from saywhere.formats.record import InvalidRecord
from saywhere.models.common.overlaps import overlaps
from saywhere.models.patchioner.alignment import LinearAlignment
from saywhere.models.patchioner.eyes import AlignedView, Blend
from saywhere.models.patchioner.seer import class_names
from saywhere.models.patchioner.tags import Tags, tag_features
from saywhere.vision import Encoder
from saywhere.vision.detector import Detector


@dataclass(frozen=True, slots=True)
class PhotoSet:
    """Photos with captions. photos: files. captions: by the file's name without its ending; at least five each.

    weight: how much each photo counts for the alignment.
    """

    photos: tuple[Path, ...]
    captions: dict[str, list[str]]
    weight: float = 1.0


def coco_set(photos: Path, captions: Path, left_out: frozenset[str], weight: float) -> tuple[PhotoSet, list[list[str]]]:
    """COCO's photos that are here, and the captions of those that are not, photo by photo.

    left_out: names of photos to never see.
    """
    told: dict[str, list[str]] = {}
    for record in coco_captions.read(captions):
        if isinstance(record, InvalidRecord):
            raise InvalidFile(captions, f"record {record.line}: {record.reason}")
        told.setdefault(f"{int(record.image_id):012d}", []).append(record.caption)
    here = tuple(path for path in sorted(photos.iterdir()) if path.stem in told)
    kept = tuple(path for path in here if path.stem not in left_out)
    names = {path.stem for path in here}
    others = [texts for name, texts in told.items() if name not in names | left_out]
    return PhotoSet(kept, {path.stem: told[path.stem] for path in kept}, weight), others


def flickr_set(photos: Path, tokens: Path, weight: float = 1.0) -> PhotoSet:
    """Flickr8k: lines of "name.jpg#number<tab>caption"."""
    told: dict[str, list[str]] = {}
    for line in tokens.read_text(encoding="utf-8").splitlines():
        name, _, caption = line.partition("\t")
        told.setdefault(name.partition(".")[0], []).append(caption)
    return PhotoSet(tuple(path for path in sorted(photos.iterdir()) if path.stem in told), told, weight)


def look_at(
    sets: Sequence[PhotoSet], work: Path, encoder: Encoder, detector: Detector, progress: Progress
) -> tuple[Floats32, Floats32]:
    """(n, d) mean features and (n, 3 × kinds) tag features of all photos, kept in work/looked.npz."""
    paths = [path for one in sets for path in one.photos]
    stored = work / "looked.npz"
    if stored.exists():
        with np.load(stored) as arrays:
            if arrays["names"].tolist() == [path.name for path in paths]:
                return arrays["features"], arrays["tags"]
    features = np.empty((len(paths), encoder.size), dtype=np.float32)
    tags = np.empty((len(paths), 3 * len(detector.names)), dtype=np.float32)
    for number, path in enumerate(paths):
        view = encoder.look(path)
        features[number] = view.patches.mean(axis=(0, 1))
        tags[number] = whole_tags(detector, path, view.frame)
        progress("looking at photos", number + 1, len(paths))
    work.mkdir(parents=True, exist_ok=True)
    with write_atomic(stored) as file:
        np.savez(file, features=features, tags=tags, names=np.array([path.name for path in paths]))
    return features, tags


def whole_tags(detector: Detector, path: Path, frame: Frame) -> Floats32:
    """(3 × kinds,) what the detector says of a whole photo; see `tag_features`."""
    everywhere = np.ones((1, *frame.grid), dtype=np.float32)
    lying = overlaps(detector.find(path).found, detector.names, everywhere, frame)
    one: Floats32 = tag_features(lying, len(detector.names))[0]
    return one


def look_at_boxes(
    called: Sequence[BoxNames],
    photos: Sequence[Path],
    out: Path,
    work: Path,
    encoder: Encoder,
    detector: Detector,
    blend: Blend,
    progress: Progress,
) -> Floats32:
    """(boxes, d) the vectors that the model in `out` has for boxes, kept in work/regions.npy."""
    stored = work / "regions.npy"
    if stored.exists() and len(kept := np.load(stored)) == len(called):
        return np.asarray(kept, dtype=np.float32)
    alignment, tags = LinearAlignment.from_pretrained(out / "alignment"), Tags.from_pretrained(out / "tags")
    classes = class_names(out / "classes", encoder)
    rows: dict[str, list[int]] = {}
    for number, box in enumerate(called):
        rows.setdefault(box.image_id, []).append(number)
    vectors = np.zeros((len(called), alignment.size), dtype=np.float32)
    for done, path in enumerate([path for path in photos if path.stem in rows], 1):
        view, mine = encoder.look(path), rows[path.stem]
        seen = AlignedView(view.with_found(detector.find(path).found), alignment, tags, classes, blend)
        vectors[mine] = seen.vectors([Box(*called[number].box_xyxy) for number in mine])
        progress("looking at boxes", done, len(rows))
    with write_atomic(stored) as file:
        np.save(file, vectors)
    return vectors
