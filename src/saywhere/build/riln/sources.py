"""Narratives out of every format that has them: of images, of videos, and with tags in place of coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from saywhere.build.photo_boxes import PhotoBoxes, area, photo_name
from saywhere.core.alignment import WordBoxes
from saywhere.core.errors import InvalidFile
from saywhere.core.grounded import Grounded
from saywhere.core.narrative import Narrative
from saywhere.formats import registry
from saywhere.formats.files import read_bytes
from saywhere.formats.record import InvalidRecord
from saywhere.formats.trecs import TaggedNarration
from saywhere.formats.video_narratives import VideoNarrative

PSEUDO_TRACE = "pseudo-trace of tags and boxes"
"""The origin of a narrative whose words a person spoke and whose trace was made of boxes: nobody pointed there."""


def read_told(path: str | Path, boxes: Mapping[str, PhotoBoxes]) -> Iterator[Narrative | InvalidRecord]:
    """Every narrative of a file or of a world's folder; bad records in their place. boxes: for tagged narrations.

    A world says of each image whether it is for training, and not in the names of its data sets: they get it here.
    """
    path = Path(path)
    if path.is_dir() and (path / "narratives.jsonl").is_file():
        path = path / "narratives.jsonl"
    kind = registry.detect(path)
    if kind.holds not in ("narratives", "video narratives", "tagged narrations"):
        raise InvalidFile(path, f"holds {kind.holds} ({kind.title}), and narratives are needed here")
    splits = _splits(path)
    for value in kind.module.read(path):
        if isinstance(value, Narrative) and value.image_id in splits:
            yield replace(value, dataset_id=f"{value.dataset_id}_{splits[value.image_id]}")
        elif isinstance(value, VideoNarrative):
            yield from video_narratives(value)
        elif isinstance(value, TaggedNarration):
            yield pseudo_narrative(value, _dataset(path), boxes.get(photo_name(value.image_id)))
        else:
            yield value


def video_narratives(video: VideoNarrative) -> Iterator[Narrative]:
    """What was said of each actor, with that part of the trace that lies on the key frame where most of it is."""
    for actor in video.actors:
        told = actor.narrative
        if not actor.keyframes:
            yield told
            continue
        frame = Counter(actor.keyframes).most_common(1)[0][0]
        name = f"{video.video_id}/{video.keyframe_names[frame]}"
        yield replace(told, image_id=name, trace=actor.trace_on(frame))


def pseudo_narrative(told: TaggedNarration, dataset_id: str, photo: PhotoBoxes | None) -> Narrative:
    """A narrative with even times, whose trace goes through the largest box of each word's tag; see PSEUDO_TRACE."""
    found = photo.boxes if photo else {}
    largest = {name: max(alike, key=area) for name, alike in found.items()}
    nowhere = (np.nan,) * 4
    boxes = WordBoxes([largest.get(tag.replace("-", " "), nowhere) for tag in told.tags])
    made = Grounded(told.words, boxes).narrative(told.image_id, PSEUDO_TRACE)
    return replace(made, dataset_id=dataset_id, annotator_id=told.annotator_id)


class _WorldImage(msgspec.Struct, frozen=True):
    id: int
    split: str


class _WorldImages(msgspec.Struct, frozen=True):
    images: list[_WorldImage]


def _splits(path: Path) -> dict[str, str]:
    """Image → split, if the file is a world's narratives; else nothing."""
    truth = path.with_name("instances.json")
    if path.name != "narratives.jsonl" or not truth.is_file():
        return {}
    try:
        images = msgspec.json.decode(read_bytes(truth), type=_WorldImages).images
    except msgspec.DecodeError as error:
        raise InvalidFile(truth, f"does not tell the splits of a world's images: {error}") from error
    return {str(image.id): image.split for image in images}


def _dataset(path: Path) -> str:
    return path.name.removesuffix(".ids.txt")
