"""The world made ready for MITR: narrations that are not too long, with regions of their scenes; and guided captions.

Guided captions (Table 6) are short and come with the boxes of what they tell of. Their scenes, regions, splits and
vocabulary are those of the narrations, so that a model which learnt from these can start there with all its weights,
and has seen no test scene.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.core import Frame, InvalidFile
from saywhere.core.types import Progress
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr.batch import example_of, guided_example
from saywhere.models.mitr.image import GRID
from saywhere.models.mitr.prepared import SPLITS, Prepared, PreparedNarrative, save_prepared
from saywhere.models.region_features import RegionFeatures
from saywhere.reproduce.eyes import eye_scenes, patch_features, region_boxes, save_photo, train_patch_eye
from saywhere.store import is_finished
from saywhere.world import Narration, ObjectCaption, Scene, make_scene, narrate, object_captions

CAPTIONS = {"train": 5, "validation": 1, "test": 1}
"""Guided captions of each scene. Five to learn from, as COCO has; one to be compared with, about these very boxes."""


GUIDED_FROM = "narratives"
"""Where a folder of guided captions names the narratives that it was made from."""


@dataclass(frozen=True, slots=True)
class MitrWorld:
    """How much world: narratives of each split, the longest to keep (words), and what the eye learns from."""

    train: int = 2400
    validation: int = 150
    test: int = 300
    max_words: int = 30
    seed: int = 1
    size: int = 128
    eye_scenes: int = 1500
    eye_steps: int = 250
    eye_size: int = 128


def prepare_world(folder: Path, world: MitrWorld, progress: Progress) -> None:
    """Write a folder of prepared narratives, and photos/ of the test scenes, unless it is there."""
    if is_finished(folder):
        return
    for_eye = eye_scenes(world.seed, world.eye_scenes, world.size, progress)
    eye = train_patch_eye(for_eye, world.eye_steps, world.seed, progress, world.eye_size)
    total = world.train + world.validation + world.test
    pairs: list[tuple[Scene, Narration]] = []
    for pair in _short_narrations(world):
        pairs.append(pair)
        progress("drawing and narrating scenes", len(pairs), total)
        if len(pairs) == total:
            break
    features = patch_features(eye, [scene for scene, _ in pairs])
    splits = ["train"] * world.train + ["validation"] * world.validation + ["test"] * world.test
    told = [narration.narrative for _, narration in pairs]
    vocabulary = Vocabulary.of_words([n.caption for n, s in zip(told, splits, strict=True) if s == "train"])
    images = {scene.image_id: regions_of(scene, seen) for (scene, _), seen in zip(pairs, features, strict=True)}
    narratives = []
    for (scene, _), narrative, split in zip(pairs, told, splits, strict=True):
        one = example_of(images[narrative.image_id], narrative, vocabulary)
        narratives.append(PreparedNarrative(narrative.image_id, split, one.words, one.boxes, one.located, narrative.id))
        if split == "test":
            save_photo(folder / "photos" / f"{scene.image_id}.png", scene)
    save_prepared(folder, images, narratives, vocabulary, {"world": asdict(world)})


def _short_narrations(world: MitrWorld) -> Iterator[tuple[Scene, Narration]]:
    """Scenes with a narration that is short enough, in the order of their numbers."""
    index = 0
    while True:
        scene = make_scene(world.seed, index, world.size)
        narration = narrate(scene, world.seed)
        index += 1
        located = narration.narrative.word_boxes().located
        if 0 < len(narration.narrative.words) <= world.max_words and located.any():
            yield scene, narration


def regions_of(scene: Scene, patches: NDArray[np.float16]) -> RegionFeatures:
    """What a detector that misses nothing would give, with the mean of the patches that each region covers."""
    frame = Frame.of_grid(GRID, GRID)
    boxes = [(0.0, 0.0, 1.0, 1.0), *(thing.box_xyxy for thing in scene.things)]
    weights = np.stack([frame.coverage(box).ravel() for box in boxes])
    pooled = weights / weights.sum(axis=1, keepdims=True) @ patches.astype(np.float64)
    return RegionFeatures(pooled.astype(np.float32), region_boxes(scene))


def is_world(prepared: Prepared) -> bool:
    """Whether these narratives are of scenes that can be drawn again."""
    return "world" in prepared.about


def prepare_guided(folder: Path, narratives: Prepared, progress: Progress) -> None:
    """Write a folder of guided captions of the scenes that the narratives are about, unless it is there already."""
    if is_finished(folder):
        if Prepared(folder).about.get(GUIDED_FROM) != narratives.fingerprint:
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
    about = {"captions": CAPTIONS, GUIDED_FROM: narratives.fingerprint}
    save_prepared(folder, images, kept, narratives.vocabulary, about)


def _guided(narratives: Prepared, name: str, image: RegionFeatures, split: str) -> Iterator[PreparedNarrative]:
    """The captions of one scene. image: its regions, the whole image first, then every thing."""
    world: dict[str, Any] = narratives.about["world"]
    scene = make_scene(int(world["seed"]), int(name), int(world["size"]))
    if not np.array_equal(region_boxes(scene), image.boxes_xyxy):
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
    things: Iterable[int] = dict.fromkeys(thing for things in caption.word_things for thing in things)
    return np.array([scene.things[i].box_xyxy for i in things], dtype=np.float32).reshape(-1, 4)
