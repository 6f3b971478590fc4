"""Real photos made ready for HINT: questions made from their boxes, captions, and what the seer sees in regions.

The eye is that of `saywhere-base`, which learnt from captions of photos like these; so tests are about the 500 photos
that it never saw, and validation about the 250 that were held out to tune it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from saywhere.build.base_photos import held_out
from saywhere.build.box_questions import BoxQuestion, ask, from_pope
from saywhere.build.changing_priors import CHANGED, asked_of, split_by_priors
from saywhere.build.coco_regions import CocoFolder, box_importance, read_told, see_photos
from saywhere.build.photo_boxes import PhotoBoxes, read_photo_boxes
from saywhere.core import InvalidValue
from saywhere.core.types import Progress
from saywhere.formats import pope
from saywhere.language.visual_words import visual_words_in, words_of
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown import PreparedCaption, PreparedQuestion, save_captions, save_questions
from saywhere.store import is_finished

"""What is being done, how much of it is done, and out of how much."""

SPLITS = {"train": "train", "validation": "validation", "test_same": "same", CHANGED: "changed"}
"""Side of the splitter → split of the prepared questions."""
POPE = "pope"
_CHANGED_SHARE = 0.65
"""Of the test photos; the rest tests with the priors of training."""
_CAPTIONS = {"train": 5, "validation": 1, "test": 5}


@dataclass(frozen=True, slots=True)
class HintPhotoScale:
    """photos: at most so many of each split; None for all."""

    photos: int | None = None
    seed: int = 3


def prepare_hint_photos(
    folder: Path, coco: CocoFolder, scale: HintPhotoScale, progress: Progress, workers: int = 2
) -> None:
    """Write folder/questions and folder/captions, unless they are there."""
    if is_finished(folder / "captions"):
        return
    files = {path.stem: path for path in sorted(coco.photos.iterdir()) if path.is_file()}
    listed, bad = read_photo_boxes(coco.boxes)
    told = read_told(coco.captions)
    rng = np.random.default_rng(scale.seed)
    side_of = _sides([photo.image for photo in listed if photo.image in files], scale.photos, rng)
    known = {photo.image: photo for photo in listed if photo.image in side_of}
    if not known:
        raise InvalidValue("photos", f"none of the {len(listed):,} photos with boxes is in {coco.photos}")
    seen = see_photos([files[image] for image in known], folder / "regions", progress, workers)
    questions = _questions(known, told, side_of, seen, rng)
    questions += _of_pope(coco.pope, known, side_of, seen)
    captions = list(_captions(known, told, side_of, seen))
    missing = len(listed) - len(known)
    about = {"photos": {**asdict(scale), "kept": len(known), "without a photo or not wanted": missing}}
    about["photos"]["bad boxes"] = len(bad)
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
        for number, name in enumerate(chosen):
            found[name] = side if side != "test" else CHANGED if number < changed else "test_same"
    return dict(sorted(found.items()))


def _questions(
    known: Mapping[str, PhotoBoxes],
    told: Mapping[str, Sequence[str]],
    side_of: Mapping[str, str],
    seen: Mapping[str, RegionFeatures],
    rng: np.random.Generator,
) -> list[PreparedQuestion]:
    asked = list(ask(known.values(), rng, told))
    split = split_by_priors([asked_of(one) for one in asked], rng, side_of=side_of)
    return [
        _prepared(asked[i], SPLITS[side], f"{SPLITS[side]}-{number}", seen)
        for side, chosen in split.sides.items()
        for number, i in enumerate(chosen)
    ]


def _of_pope(
    paths: Iterable[Path],
    known: Mapping[str, PhotoBoxes],
    side_of: Mapping[str, str],
    seen: Mapping[str, RegionFeatures],
) -> list[PreparedQuestion]:
    """POPE's questions about the test photos."""
    tested = {image: photo for image, photo in known.items() if side_of[image] in ("test_same", CHANGED)}
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
        for number, text in enumerate(told.get(image, ())[: _CAPTIONS[split]]):
            words = words_of(text)
            named = [(end - 1, photo.boxes[name]) for _, end, name in visual_words_in(words) if name in photo.boxes]
            visual = tuple((place, box_importance(np.array(boxes), seen[image])) for place, boxes in named)
            yield PreparedCaption(f"{image}-{number}", image, split, " ".join(words), visual)
