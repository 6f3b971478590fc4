"""Guided captioning in the world, for MITR's Table 6: short captions, each with the boxes of what it tells of.

The scenes, their regions, the splits and the vocabulary are those of the prepared narratives, so that a model which
learnt from these can start here with all its weights, and has seen no test scene.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.models.mitr.batch import guided_example
from saywhere.models.mitr.prepared import SPLITS, Prepared, PreparedNarrative, save_prepared
from saywhere.models.region_features import RegionFeatures
from saywhere.store import is_finished
from saywhere.world import ObjectCaption, Scene, make_scene, object_captions

"""What is being done, how much of it is done, and out of how much."""

CAPTIONS = {"train": 5, "validation": 1, "test": 1}
"""Captions of each scene. Five to learn from, as COCO has; one to be compared with, which is about these very boxes."""


def is_world(prepared: Prepared) -> bool:
    """Whether these narratives are of scenes that can be drawn again."""
    return "world" in prepared.about


def prepare_guided(folder: Path, narratives: Prepared, progress: Progress) -> None:
    """Write a folder of guided captions of the scenes that the narratives are about, unless it is there already."""
    if is_finished(folder):
        if Prepared(folder).about.get("narratives") != narratives.fingerprint:
            raise InvalidFile(folder, f"belongs to other narratives than {narratives.folder}", "remove it")
        return
    splits = {name: narratives.split(name) for name in SPLITS}
    total = sum(len(items) for items in splits.values())
    images: dict[str, RegionFeatures] = {}
    kept: list[PreparedNarrative] = []
    for split, items in splits.items():
        for i in range(len(items)):
            progress("writing guided captions", len(images), total)
            name = items.image_name(i)
            images[name] = items[i].image
            kept += _guided(narratives, name, images[name], split)
    progress("writing guided captions", total, total)
    about = {"captions": CAPTIONS, "narratives": narratives.fingerprint}
    save_prepared(folder, images, kept, narratives.vocabulary, about)


def _guided(narratives: Prepared, name: str, image: RegionFeatures, split: str) -> Iterator[PreparedNarrative]:
    """The captions of one scene. image: its regions, the whole image first, then every thing."""
    world: dict[str, Any] = narratives.about["world"]
    scene = make_scene(int(world["seed"]), int(name), int(world["size"]))
    if not np.array_equal(_boxes(scene, range(len(scene.things))), image.boxes_xyxy[1:]):
        reason = f"scene {name} is no longer drawn as it was for these narratives"
        raise InvalidFile(narratives.folder, reason, "remove the folder, so that the world is drawn anew")
    told = dict.fromkeys(object_captions(scene, int(world["seed"]), CAPTIONS[split]))
    for number, caption in enumerate(told):
        keys = key_boxes(scene, caption)
        # A caption of the place alone ("A view of the sea.") has nothing to be guided by.
        if len(keys):
            label = f"{name}, caption {number}"
            one = guided_example(image, caption.text.split(), keys, narratives.vocabulary, name=label)
            yield PreparedNarrative(name, split, one.words, one.boxes, one.located, label)


def key_boxes(scene: Scene, caption: ObjectCaption) -> NDArray[np.float32]:
    """(n, 4) xyxy, the boxes of the things that a caption tells of, in the order in which it first does."""
    return _boxes(scene, dict.fromkeys(thing for things in caption.word_things for thing in things))


def _boxes(scene: Scene, things: Iterable[int]) -> NDArray[np.float32]:
    return np.array([scene.things[i].box_xyxy for i in things], dtype=np.float32).reshape(-1, 4)
