"""The world made ready for scene captions: found things as tags and regions, captions of objects and of scenes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saywhere.core.types import Progress
from saywhere.models.oscar import LevelCaption, save_level_captions
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.reproduce.eyes import WorldRegionEye, box_features, eye_scenes, save_photo, train_region_eye
from saywhere.store import is_finished
from saywhere.world import KINDS, PLACES, Scene, high_level_captions, make_scene, object_captions

OBJECT, SCENE, ACTION, RATIONALE = "object", "scene", "action", "rationale"
LEVELS = (OBJECT, SCENE, ACTION, RATIONALE)
_WINDOWS = 3
_WINDOW_SIDE = 0.4
_JITTER = 0.05
"""How far a region's edges lie from the tag's, as shares of its size: two detectors never agree on a box."""


@dataclass(frozen=True, slots=True)
class ScenesWorld:
    """How much world: scenes of each split, captions of objects for each, and what the eye learns from.

    missed: share of the things whose tag is missing, and, apart, of those whose region is. misnamed: share of the tags
    that name another kind of thing.
    """

    train: int = 3000
    validation: int = 200
    test: int = 1000
    captions: int = 3
    missed: float = 0.3
    misnamed: float = 0.15
    seed: int = 7
    size: int = 128
    eye_scenes: int = 1000
    eye_steps: int = 250
    eye_size: int = 96


def prepare_scenes_world(folder: Path, scale: ScenesWorld, progress: Progress) -> None:
    """Write the captions with what the eye sees, and the photos of the test scenes, unless they are there."""
    if is_finished(folder):
        return
    for_eye = eye_scenes(scale.seed, scale.eye_scenes, scale.size, progress)
    eye = train_region_eye(for_eye, scale.eye_steps, scale.seed, progress, scale.eye_size)
    images: dict[str, TaggedRegions] = {}
    captions: list[LevelCaption] = []
    places: dict[str, str] = {}
    things: dict[str, list[str]] = {}
    index, total = 0, scale.train + scale.validation + scale.test
    for split, count in (("train", scale.train), ("validation", scale.validation), ("test", scale.test)):
        for _ in range(count):
            scene = make_scene(scale.seed, index, scale.size)
            images[scene.image_id] = tagged_regions(eye, scene, scale)
            captions += _captions(scene, split, scale)
            places[scene.image_id] = scene.place
            things[scene.image_id] = sorted({scene.things[i].kind for i in scene.objects})
            if split == "test":
                save_photo(folder / "photos" / f"{scene.image_id}.png", scene)
            index += 1
            progress("drawing scenes", index, total)
    save_level_captions(folder, images, captions, {"world": asdict(scale), "places": places, "things": things})


def tagged_regions(eye: WorldRegionEye, scene: Scene, scale: ScenesWorld) -> TaggedRegions:
    """What two detectors would give that miss and misname things: tags with the true boxes of things (not of walls,
    skies …), largest first, and regions that lie nearly there, then nine windows on the picture, which see what things
    stand on."""
    rng = np.random.default_rng((scale.seed, scene.index))
    things = sorted((scene.things[i] for i in scene.objects), key=lambda thing: -thing.area)
    true = np.array([thing.box_xyxy for thing in things], dtype=np.float32).reshape(-1, 4)
    near = _jittered(true, rng)
    named, seen = (rng.random(len(things)) >= scale.missed for _ in range(2))
    kinds = sorted(KINDS)
    # A wrong name is any other kind's: one that never stands in such a place, too.
    wrong = [rng.choice([kind for kind in kinds if kind != thing.kind]) for thing in things]
    is_wrong = rng.random(len(things)) < scale.misnamed
    tags = [wrong[i] if is_wrong[i] else thing.kind for i, thing in enumerate(things) if named[i]]
    boxes = np.concatenate([near[seen], _windows()])
    return TaggedRegions(box_features(eye, scene, boxes), boxes, tags, true[named])


def _jittered(boxes_xyxy: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    size = np.tile(boxes_xyxy[:, 2:] - boxes_xyxy[:, :2], 2)
    moved: NDArray[np.float32] = boxes_xyxy + _JITTER * size * rng.standard_normal(boxes_xyxy.shape).clip(-2, 2)
    return moved.clip(0, 1).astype(np.float32)


def _windows() -> NDArray[np.float32]:
    starts = np.linspace(0, 1 - _WINDOW_SIDE, _WINDOWS)
    corners = np.array([(x, y) for y in starts for x in starts])
    return np.column_stack([corners, corners + _WINDOW_SIDE]).astype(np.float32)


def _captions(scene: Scene, split: str, scale: ScenesWorld) -> Iterator[LevelCaption]:
    objects = [object_text(one.text, scene.place) for one in object_captions(scene, scale.seed, scale.captions)]
    texts = {OBJECT: tuple(dict.fromkeys(objects)), **high_level_captions(scene, scale.seed).captions}
    for level, said in texts.items():
        for number, text in enumerate(said):
            yield LevelCaption(f"{scene.image_id}-{level}-{number}", scene.image_id, split, level, text)


def object_text(text: str, place: str) -> str:
    """A caption of objects without the place, which it often names at its end or begins with: that a scene caption
    names the place must be learnt from scene captions alone."""
    bare = text.rstrip(".").removesuffix(" " + PLACES[place].where)
    setting, found, rest = bare.partition(" with ")
    # "A kitchen with a table and a chair"; of "A man with a dog" nothing is taken.
    bare = rest if found and _names(setting, place) else bare
    return (bare or text.rstrip(".")).lower()


def named_place(text: str) -> str | None:
    """The place that a caption names; None if it names none, or several."""
    named = [place for place in PLACES if _names(text, place)]
    return named[0] if len(named) == 1 else None


def _names(text: str, place: str) -> bool:
    words = {"sea": ("at sea", "the sea"), "snow": ("snow", "snowy slope")}.get(place, (place,))
    # A street lamp is a thing.
    padded = f" {text.lower().rstrip('.')} ".replace(" street lamp", " lamp")
    return any(f" {word} " in padded for word in words)
