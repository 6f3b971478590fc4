"""How the part of `saywhere-base` that answers questions is made: questions from COCO's boxes, asked with and without
pointing, and an UpDn that reads what the seer sees.

Photos that the rest of `saywhere-base` never saw are left for its test, here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.build.base_photos import held_out
from saywhere.build.box_questions import PEOPLE, AskSettings, BoxQuestion, ask
from saywhere.build.coco_regions import CocoFolder, box_importance, read_captions, see_photos
from saywhere.build.photo_boxes import PhotoBoxes, read_photo_boxes
from saywhere.core import InvalidValue
from saywhere.core.types import Floats, Progress
from saywhere.language.coco_aliases import coco_aliases
from saywhere.learn import train_to_end
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown import PreparedQuestion, Questions, UpDnVqa, save_questions
from saywhere.models.updown.task import answer_sums
from saywhere.store import is_finished

"""What is being done, how much of it is done, and out of how much."""

THIS, IS_THIS = "what is this", "is this a"
"""Types of the questions that point."""

MOST = {
    "is there a": 10,
    "how many": 6,
    "which is larger": 4,
    "is the": 4,
    "what is to the": 3,
    "what is on the": 2,
    "what color is the": 3,
}


@dataclass(frozen=True, slots=True)
class AnswerScale:
    """pointing: boxes of each photo that are pointed at. passes: times that every photo is asked about, with other
    draws. steps, width …: of the training."""

    pointing: int = 5
    passes: int = 3
    seed: int = 0
    steps: int = 4000
    batch: int = 96
    lr: float = 1.5e-3
    width: int = 256
    embedding: int = 128
    dropout: float = 0.3
    smallest: float = 0.004
    most: Mapping[str, int] = field(default_factory=lambda: dict(MOST))


def build_answers(
    out: Path, coco: CocoFolder, scale: AnswerScale, progress: Progress, workers: int = 2
) -> dict[str, float]:
    """Train into out/run and save the network into out/answers; its accuracy on the test photos, by answer type."""
    questions = prepare_answers(out, coco, scale, progress, workers)
    network = train_to_end(answer_recipe(out / "questions", scale), out / "run", UpDnVqa)
    network.save_pretrained(out / "answers")
    return test_accuracies(network, questions)


def test_accuracies(network: Any, questions: Questions) -> dict[str, float]:
    """Accuracy on the test photos, by answer type and by question type."""
    from saywhere.models.updown.prepared import QuestionItems

    test = questions.split("test")
    found = {name: value for name, value in answer_sums(network, test).means().items() if name != "loss"}
    by_type: dict[str, list[int]] = {}
    for i, index in enumerate(test.indices):
        by_type.setdefault(test.question(i).question_type, []).append(index)
    for name, indices in by_type.items():
        found[f"{name} ({len(indices)})"] = answer_sums(network, QuestionItems(questions, indices)).means()["accuracy"]
    return found


def prepare_answers(out: Path, coco: CocoFolder, scale: AnswerScale, progress: Progress, workers: int) -> Questions:
    """Write out/questions, unless it is there."""
    if not is_finished(out / "questions"):
        files = {path.stem: path for path in sorted(coco.photos.iterdir()) if path.is_file()}
        listed, _ = read_photo_boxes(coco.boxes)
        known = {photo.image: photo for photo in listed if photo.image in files}
        if not known:
            raise InvalidValue("photos", f"none of the {len(listed):,} photos with boxes is in {coco.photos}")
        seen = see_photos([files[image] for image in known], out / "regions", progress, workers)
        asked = list(_asked(known, read_captions(coco.captions), seen, scale))
        save_questions(out / "questions", seen, asked, {"photos": len(known)}, least_count=8)
    return Questions(out / "questions")


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """A question about one photo. looked_xyxy: (n, 4) what one must look at. pointed_xyxy: (4,) what the one who asks
    points at, or nothing."""

    image: str
    text: str
    question_type: str
    answer_type: str
    answer: str
    looked_xyxy: Floats
    pointed_xyxy: Floats | None = None

    @property
    def key(self) -> tuple[str, str, bytes]:
        """Tells questions apart."""
        return self.image, self.text, b"" if self.pointed_xyxy is None else self.pointed_xyxy.tobytes()


def _asked(
    known: Mapping[str, PhotoBoxes],
    told: Mapping[str, list[str]],
    seen: Mapping[str, RegionFeatures],
    scale: AnswerScale,
) -> Iterator[PreparedQuestion]:
    """Training photos are asked about several times, the others once; no question comes twice."""
    tests, validation = held_out("test"), held_out("validation")
    rng = np.random.default_rng(scale.seed)
    ways = AskSettings(most=scale.most, smallest=scale.smallest)
    asked_before: set[tuple[str, str, bytes]] = set()
    for again in range(scale.passes):
        free = [_free(one) for one in ask(known.values(), rng, told, ways)]
        pointing = [one for photo in known.values() for one in pointing_questions(photo, scale, rng)]
        for one in (*free, *pointing):
            split = "test" if one.image in tests else "validation" if one.image in validation else "train"
            if one.key in asked_before or (again and split != "train"):
                continue
            asked_before.add(one.key)
            yield _prepared(one, split, f"{split}-{len(asked_before)}", seen[one.image])


def _free(one: BoxQuestion) -> Asking:
    return Asking(one.image, one.text, one.question_type, one.answer_type, one.answer, one.boxes_xyxy)


def pointing_questions(photo: PhotoBoxes, scale: AnswerScale, rng: np.random.Generator) -> Iterator[Asking]:
    """ "What is this?" and "Is this a dog?" of some boxes of a photo."""
    clear = photo.clear(scale.smallest)
    boxes = [(name, np.array(box)) for name, alike in clear.items() for box in alike]
    for place in rng.permutation(len(boxes))[: scale.pointing].tolist():
        name, box = boxes[place]
        yield Asking(photo.image, "What is this?", THIS, "other", name, box[None], box)
        # Half of the wrong names are of things that are there as well, so that the photo alone does not give it away.
        beside = [other for other in clear if other != name]
        wrong = beside if beside and rng.random() < 0.5 else [other for other in coco_aliases() if other != name]
        is_it = bool(rng.random() < 0.5)
        asked = name if is_it else wrong[int(rng.integers(len(wrong)))]
        text = f"Is this {'an' if asked[0] in 'aeiou' else 'a'} {asked}?"
        yield Asking(photo.image, text, IS_THIS, "yes/no", "yes" if is_it else "no", box[None], box)


def _prepared(one: Asking, split: str, name: str, image: RegionFeatures) -> PreparedQuestion:
    importance = box_importance(one.looked_xyxy, image) if len(one.looked_xyxy) else None
    pointed = None if one.pointed_xyxy is None else box_fits(one.pointed_xyxy, image.boxes_xyxy)
    kinds = (one.question_type, one.answer_type)
    return PreparedQuestion(name, one.image, split, one.text, *kinds, (one.answer,) * PEOPLE, importance, pointed)


def box_fits(box_xyxy: Floats, places_xyxy: Any) -> Floats:
    """(r,) how much each place is pointed at by a box: share of the box in the place × share of the place in the box.

    As `saywhere.models.common.overlaps.pointed` has it for boxes.
    """
    places = np.asarray(places_xyxy, dtype=np.float64)
    sides = np.minimum(places[:, 2:], box_xyxy[2:]) - np.maximum(places[:, :2], box_xyxy[:2])
    shared = np.prod(np.clip(sides, 0, None), axis=1)
    areas = np.prod(places[:, 2:] - places[:, :2], axis=1) * np.prod(box_xyxy[2:] - box_xyxy[:2])
    fits: Floats = np.clip(shared**2 / areas, 0, 1)
    return fits


def answer_recipe(data: Path, scale: AnswerScale) -> Recipe:
    """The recipe that a person could run with `saywhere train` to get the same weights."""
    table: dict[str, Any] = {
        "name": "answers of saywhere-base",
        "task": "updown-vqa",
        "seed": scale.seed,
        "model": {
            "width": scale.width,
            "embedding": scale.embedding,
            "dropout": scale.dropout,
            "answer_dropout": scale.dropout,
            "activation": "gelu",
            "use_boxes": True,
        },
        "data": {"folder": str(data)},
        "train": {
            "steps": scale.steps,
            "batch_size": scale.batch,
            "lr": scale.lr,
            "optimizer": "adamw",
            "weight_decay": 0.01,
            "clip_norm": 10.0,
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, scale.steps // 10)},
        "validate": {"every_steps": max(1, scale.steps // 10), "metric": "accuracy", "mode": "max", "at_start": False},
        "checkpoint": {"every_steps": max(1, scale.steps // 10), "keep": 1},
    }
    return parse_recipe(table, "answers of saywhere-base")
