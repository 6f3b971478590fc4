"""The world made ready for MITR: scenes, an eye, regions, narrations that are not too long, three splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.atomic import write_atomic
from saywhere.core import Frame
from saywhere.core.types import Progress
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr.batch import example_of
from saywhere.models.mitr.image import GRID
from saywhere.models.mitr.prepared import PreparedNarrative, save_prepared
from saywhere.models.region_features import RegionFeatures
from saywhere.reproduce.eye import see, train_eye
from saywhere.world import Narration, Scene, make_scene, narrate

"""What is being done, how much of it is done, and out of how much."""

_FIRST_EYE_SCENE = 10_000_000
"""The eye learns from scenes that no narrative is about."""


@dataclass(frozen=True, slots=True)
class WorldScale:
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


def prepare_world(folder: Path, scale: WorldScale, progress: Progress) -> None:
    """Write a folder of prepared narratives, and photos/ of the test scenes."""
    eye_scenes = []
    for i in range(scale.eye_scenes):
        eye_scenes.append(make_scene(scale.seed, _FIRST_EYE_SCENE + i, scale.size))
        progress("drawing scenes for the eye", i + 1, scale.eye_scenes)
    eye = train_eye(
        eye_scenes,
        scale.eye_steps,
        scale.seed,
        scale.eye_size,
        on_step=lambda step: progress("teaching the eye to name patches", step + 1, scale.eye_steps),
    )
    total = scale.train + scale.validation + scale.test
    pairs: list[tuple[Scene, Narration]] = []
    for pair in _short_narrations(scale):
        pairs.append(pair)
        progress("drawing and narrating scenes", len(pairs), total)
        if len(pairs) == total:
            break
    features = see(eye, [scene for scene, _ in pairs])
    splits = ["train"] * scale.train + ["validation"] * scale.validation + ["test"] * scale.test
    told = [narration.narrative for _, narration in pairs]
    vocabulary = Vocabulary.of_words([n.caption for n, s in zip(told, splits, strict=True) if s == "train"])
    images = {scene.image_id: regions_of(scene, seen) for (scene, _), seen in zip(pairs, features, strict=True)}
    narratives = []
    for narrative, split in zip(told, splits, strict=True):
        one = example_of(images[narrative.image_id], narrative, vocabulary)
        narratives.append(PreparedNarrative(narrative.image_id, split, one.words, one.boxes, one.located, narrative.id))
    for (scene, _), split in zip(pairs, splits, strict=True):
        if split == "test":
            save_photo(folder / "photos" / f"{scene.image_id}.png", scene.photo)
    save_prepared(folder, images, narratives, vocabulary, {"world": asdict(scale)})


def _short_narrations(scale: WorldScale) -> Iterator[tuple[Scene, Narration]]:
    """Scenes with a narration that is short enough, in the order of their numbers."""
    index = 0
    while True:
        scene = make_scene(scale.seed, index, scale.size)
        narration = narrate(scene, scale.seed)
        index += 1
        located = narration.narrative.word_boxes().located
        if 0 < len(narration.narrative.words) <= scale.max_words and located.any():
            yield scene, narration


def regions_of(scene: Scene, patches: NDArray[np.float16]) -> RegionFeatures:
    """What a detector that misses nothing would give: every thing's box, and the whole image, with the mean of the
    patches it covers."""
    frame = Frame.of_grid(GRID, GRID)
    boxes = [(0.0, 0.0, 1.0, 1.0), *(thing.box_xyxy for thing in scene.things)]
    weights = np.stack([frame.coverage(box).ravel() for box in boxes])
    pooled = weights / weights.sum(axis=1, keepdims=True) @ patches.astype(np.float64)
    return RegionFeatures(pooled.astype(np.float32), np.array(boxes, dtype=np.float32))


def save_photo(path: Path, photo: NDArray[np.uint8]) -> None:
    """As PNG, whole or not at all."""
    with write_atomic(path) as file:
        Image.fromarray(photo).save(file, format="PNG")
