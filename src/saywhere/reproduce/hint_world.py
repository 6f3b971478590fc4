"""The world made ready for HINT: questions whose priors turn round, and captions, with what one must look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saywhere.core import AttentionMap
from saywhere.core.types import Progress
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown import PreparedCaption, PreparedQuestion, save_captions, save_questions
from saywhere.reproduce.mitr_world import save_photo
from saywhere.reproduce.region_eye import see_regions, taught_eye
from saywhere.store import is_finished
from saywhere.world import CHANGED_PRIORS, ObjectCaption, Scene, candidates, choose, make_scene, object_captions

"""What is being done, how much of it is done, and out of how much."""

TESTS = ("same", "changed")
"""Splits to test on: with the priors of training, and with those turned round, about the same scenes."""
_MAP_PX = (48, 48)


@dataclass(frozen=True, slots=True)
class HintWorldScale:
    """How much world: scenes of each split, questions and captions of each, and what the eye learns from."""

    train: int = 3000
    validation: int = 250
    test: int = 800
    questions: int = 8
    captions: int = 2
    seed: int = 3
    size: int = 128
    eye_scenes: int = 1400
    eye_steps: int = 300
    eye_size: int = 128


def prepare_hint_world(folder: Path, scale: HintWorldScale, progress: Progress) -> None:
    """Write folder/questions, folder/captions and the photos of the test scenes, unless they are there."""
    if is_finished(folder / "captions"):
        return
    eye = taught_eye(scale.seed, scale.eye_scenes, scale.eye_steps, scale.eye_size, scale.size, progress)
    counts = {"train": scale.train, "validation": scale.validation, "test": scale.test}
    images: dict[str, RegionFeatures] = {}
    questions: list[PreparedQuestion] = []
    captions: list[PreparedCaption] = []
    first, total = 0, sum(counts.values())
    for split, count in counts.items():
        scenes = []
        for index in range(first, first + count):
            scene = make_scene(scale.seed, index, scale.size)
            images[scene.image_id] = see_regions(eye, scene)
            scenes.append(scene)
            if split == "test":
                save_photo(folder / "photos" / f"{scene.image_id}.png", scene.photo)
            progress("drawing scenes", index + 1, total)
        questions += _questions(scenes, split, images, scale, progress)
        captions += _captions(scenes, split, images, scale)
        first += count
    about = {"world": asdict(scale)}
    save_questions(folder / "questions", images, questions, about, least_count=5)
    save_captions(folder / "captions", images, captions, about, least_word_count=3)


def _questions(
    scenes: Sequence[Scene], split: str, images: dict[str, RegionFeatures], scale: HintWorldScale, progress: Progress
) -> Iterator[PreparedQuestion]:
    """Of one split of scenes; a test asks twice about the same scenes, with two priors."""
    pools = [candidates(scene, scale.seed) for scene in scenes]
    by_index = {scene.index: scene for scene in scenes}
    priors = {"same": "train", "changed": "test"} if split == "test" else {split: "train"}
    for name, prior in priors.items():
        asked = choose(pools, scale.seed, CHANGED_PRIORS[prior], scale.questions)
        for number, one in enumerate(asked):
            scene = by_index[one.scene]
            yield PreparedQuestion(
                *(f"{name}-{number}", scene.image_id, name, one.text, one.question_type, one.answer_type, one.answers),
                importance=_importance(scene, one.things, images[scene.image_id]),
            )
            progress(f"asking questions ({name})", number + 1, len(asked))


def _captions(
    scenes: Sequence[Scene], split: str, images: dict[str, RegionFeatures], scale: HintWorldScale
) -> Iterator[PreparedCaption]:
    for scene in scenes:
        for number, one in enumerate(dict.fromkeys(object_captions(scene, scale.seed, scale.captions))):
            told = ((word, _importance(scene, one.word_things[word], images[scene.image_id])) for word in _visual(one))
            visual = tuple((word, importance) for word, importance in told if importance is not None)
            yield PreparedCaption(f"{scene.image_id}-{number}", scene.image_id, split, one.text, visual)


def _visual(caption: ObjectCaption) -> list[int]:
    """The words that name things: of words about the same things, such as "a red cup", the last."""
    things = caption.word_things
    return [i for i, these in enumerate(things) if these and (i + 1 == len(things) or things[i + 1] != these)]


def _importance(scene: Scene, things: Sequence[int], image: RegionFeatures) -> NDArray[np.float64] | None:
    """(r,) human importance of regions when people look at these things; None if there is nothing to look at."""
    if not things:
        return None
    looked = AttentionMap.from_boxes([scene.things[i].box_xyxy for i in things], _MAP_PX)
    return looked.importance(image.boxes_xyxy)
