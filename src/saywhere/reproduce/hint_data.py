"""The world and real photos made ready for HINT: questions whose priors turn round, captions, and what to look at.

On real photos, questions are made from boxes. The eye there is that of `saywhere-base`, which learnt from captions of
photos like these; so tests are about the 500 photos that it never saw, and validation about the 250 that were held out
to tune it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.build.box_questions import BoxQuestion, ask, from_pope
from saywhere.build.changing_priors import CHANGED, PriorSettings, asked_of, split_by_priors
from saywhere.build.coco_regions import CocoFolder, box_importance, read_captions, see_photos
from saywhere.build.held_out import held_out
from saywhere.build.photo_boxes import PhotoBoxes, read_photo_boxes
from saywhere.core import InvalidValue
from saywhere.core.types import Progress
from saywhere.explain.human import overlap_importance
from saywhere.formats import pope
from saywhere.language.visual_words import visual_words_in, words_of
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown import PreparedCaption, PreparedQuestion, save_captions, save_questions
from saywhere.reproduce.eyes import eye_scenes, region_features, save_photo, train_region_eye
from saywhere.store import is_finished
from saywhere.world import (
    CHANGED_PRIORS,
    MILD_PRIORS,
    ObjectCaption,
    Scene,
    balanced,
    candidates,
    choose,
    make_scene,
    object_captions,
)

PRIORS = {"mild": MILD_PRIORS, "strong": CHANGED_PRIORS}
CHANGED_TYPES = "changed_types"
"""Where a folder of questions lists the question types whose priors change."""
DEVELOPMENT, BALANCED = "development", "balanced"
"""Splits of questions: validation's images with the test's priors, and training's images with both."""
SPLITS = {"train": "train", "validation": "validation", "test_same": "same", CHANGED: "changed"}
"""Side of the splitter → split of the prepared questions."""
POPE = "pope"
_CHANGED_SHARE = 0.65
"""Of the test photos; the rest tests with the priors of training."""
_CAPTIONS = {"train": 5, "validation": 1, "test": 5}


@dataclass(frozen=True, slots=True)
class HintWorld:
    """How much world: scenes of each split, questions and captions of each, and what the eye learns from.

    priors: "mild" (at most two thirds of one answer to a yes/no question) or "strong" (four fifths).
    """

    train: int = 3000
    validation: int = 250
    test: int = 800
    questions: int = 8
    captions: int = 2
    priors: str = "mild"
    seed: int = 3
    size: int = 128
    eye_scenes: int = 1400
    eye_steps: int = 300
    eye_size: int = 128


def prepare_hint_world(folder: Path, scale: HintWorld, progress: Progress) -> None:
    """Write folder/questions, folder/captions and the photos of the test scenes, unless they are there."""
    if is_finished(folder / "captions"):
        return
    for_eye = eye_scenes(scale.seed, scale.eye_scenes, scale.size, progress)
    eye = train_region_eye(for_eye, scale.eye_steps, scale.seed, progress, scale.eye_size)
    counts = {"train": scale.train, "validation": scale.validation, "test": scale.test}
    images: dict[str, RegionFeatures] = {}
    questions: list[PreparedQuestion] = []
    captions: list[PreparedCaption] = []
    first, total = 0, sum(counts.values())
    for split, count in counts.items():
        scenes = []
        for index in range(first, first + count):
            scene = make_scene(scale.seed, index, scale.size)
            images[scene.image_id] = region_features(eye, scene)
            scenes.append(scene)
            if split == "test":
                save_photo(folder / "photos" / f"{scene.image_id}.png", scene)
            progress("drawing scenes", index + 1, total)
        questions += _world_questions(scenes, split, images, scale, progress)
        captions += _world_captions(scenes, split, images, scale)
        first += count
    about = {"world": asdict(scale), CHANGED_TYPES: sorted(PRIORS[scale.priors]["train"])}
    save_questions(folder / "questions", images, questions, about, least_count=5)
    save_captions(folder / "captions", images, captions, about, least_word_count=3)


def _world_questions(
    scenes: Sequence[Scene], split: str, images: dict[str, RegionFeatures], scale: HintWorld, progress: Progress
) -> Iterator[PreparedQuestion]:
    """Of one split of scenes, each asked about twice, with two priors."""
    pools = [candidates(scene, scale.seed) for scene in scenes]
    by_index = {scene.index: scene for scene in scenes}
    both = PRIORS[scale.priors]
    priors = {
        "train": {"train": both["train"], BALANCED: balanced(both)},
        "validation": {"validation": both["train"], DEVELOPMENT: both["test"]},
        "test": {"same": both["train"], "changed": both["test"]},
    }
    for name, prior in priors[split].items():
        asked = choose(pools, scale.seed, prior, scale.questions)
        for number, one in enumerate(asked):
            scene = by_index[one.scene]
            yield PreparedQuestion(
                *(f"{name}-{number}", scene.image_id, name, one.text, one.question_type, one.answer_type, one.answers),
                importance=_importance(scene, one.things, images[scene.image_id]),
            )
            progress(f"asking questions ({name})", number + 1, len(asked))


def _world_captions(
    scenes: Sequence[Scene], split: str, images: dict[str, RegionFeatures], scale: HintWorld
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
    return overlap_importance(image.boxes_xyxy, [scene.things[i].box_xyxy for i in things])


@dataclass(frozen=True, slots=True)
class HintPhotos:
    """photos: at most so many of each split; None for all. odds: of the most frequent answer against the rarest."""

    photos: int | None = None
    odds: float = 3.0
    seed: int = 3


def prepare_hint_photos(
    folder: Path, coco: CocoFolder, scale: HintPhotos, progress: Progress, workers: int = 2
) -> None:
    """Write folder/questions and folder/captions, unless they are there."""
    if is_finished(folder / "captions"):
        return
    files = {path.stem: path for path in sorted(coco.photos.iterdir()) if path.is_file()}
    listed, bad = read_photo_boxes(coco.boxes)
    told = read_captions(coco.captions)
    rng = np.random.default_rng(scale.seed)
    side_of = _sides([photo.image for photo in listed if photo.image in files], scale.photos, rng)
    known = {photo.image: photo for photo in listed if photo.image in side_of}
    if not known:
        raise InvalidValue("photos", f"none of the {len(listed):,} photos with boxes is in {coco.photos}")
    seen = see_photos([files[image] for image in known], folder / "regions", progress, workers)
    questions, changed = _questions(known, told, side_of, seen, rng, scale.odds)
    questions += _of_pope(coco.pope, known, side_of, seen)
    captions = list(_captions(known, told, side_of, seen))
    missing = len(listed) - len(known)
    about: dict[str, Any] = {"photos": {**asdict(scale), "kept": len(known), "without a photo or not wanted": missing}}
    about["photos"]["bad boxes"] = len(bad)
    about[CHANGED_TYPES] = changed
    save_questions(folder / "questions", seen, questions, about, least_count=5)
    save_captions(folder / "captions", seen, captions, about, least_word_count=4)


def _sides(images: Sequence[str], most: int | None, rng: np.random.Generator) -> dict[str, str]:
    """Photo → its side: what the eye never saw is for tests."""
    tests, validation = held_out("test"), held_out("validation")
    by_side: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    for image in images:
        by_side["test" if image in tests else "validation" if image in validation else "train"].append(image)
    found: dict[str, str] = {}
    for side, names in by_side.items():
        chosen = [names[i] for i in rng.permutation(len(names))][:most]
        changed = round(_CHANGED_SHARE * len(chosen))
        kept = "test_same" if side == "test" else side
        for number, name in enumerate(chosen):
            # A part of validation's photos has the test's priors, so that weights can be chosen on it.
            found[name] = CHANGED if number < changed and side != "train" else kept
    return dict(sorted(found.items()))


def _questions(
    known: Mapping[str, PhotoBoxes],
    told: Mapping[str, Sequence[str]],
    side_of: Mapping[str, str],
    seen: Mapping[str, RegionFeatures],
    rng: np.random.Generator,
    odds: float,
) -> tuple[list[PreparedQuestion], list[str]]:
    """The questions, and the types whose priors change."""
    asked = list(ask(known.values(), rng, told))
    split = split_by_priors([asked_of(one) for one in asked], rng, PriorSettings(odds=odds), side_of=side_of)
    named = [
        (asked[i], DEVELOPMENT if side == CHANGED and asked[i].image in held_out("validation") else SPLITS[side])
        for side, chosen in split.sides.items()
        for i in chosen
    ]
    prepared = [_prepared(one, name, f"{name}-{number}", seen) for number, (one, name) in enumerate(named)]
    return prepared, sorted(report.question_type for report in split.types if report.changed)


def _of_pope(
    paths: Iterable[Path],
    known: Mapping[str, PhotoBoxes],
    side_of: Mapping[str, str],
    seen: Mapping[str, RegionFeatures],
) -> list[PreparedQuestion]:
    """POPE's questions about the test photos."""
    asked = {image for image, side in side_of.items() if side in ("test_same", CHANGED)} - held_out("validation")
    tested = {image: photo for image, photo in known.items() if image in asked}
    found = [one for path in paths for one in from_pope(pope.read(path), tested) if isinstance(one, BoxQuestion)]
    return [_prepared(one, POPE, f"{POPE}-{number}", seen) for number, one in enumerate(found)]


def _prepared(one: BoxQuestion, split: str, name: str, seen: Mapping[str, RegionFeatures]) -> PreparedQuestion:
    importance = box_importance(one.boxes_xyxy, seen[one.image]) if len(one.boxes_xyxy) else None
    return PreparedQuestion(
        name, one.image, split, one.text, one.question_type, one.answer_type, one.answers, importance
    )


def _captions(
    known: Mapping[str, PhotoBoxes],
    told: Mapping[str, Sequence[str]],
    side_of: Mapping[str, str],
    seen: Mapping[str, RegionFeatures],
) -> Iterator[PreparedCaption]:
    """Captions in plain words; a visual word whose class has boxes on the photo is looked for there."""
    for image, photo in known.items():
        split = side_of[image] if side_of[image] in _CAPTIONS else "test"
        if image in held_out("validation"):
            split = "validation"
        for number, text in enumerate(told.get(image, ())[: _CAPTIONS[split]]):
            words = words_of(text)
            named = [(end - 1, photo.boxes[name]) for _, end, name in visual_words_in(words) if name in photo.boxes]
            visual = tuple((place, box_importance(np.array(boxes), seen[image])) for place, boxes in named)
            yield PreparedCaption(f"{image}-{number}", image, split, " ".join(words), visual)
