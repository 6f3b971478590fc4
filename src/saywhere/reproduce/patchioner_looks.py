"""One look at each held-out photo, and everything that is asked of it: vectors of regions, where classes and words are.

Views are large and vectors small, so a photo is asked everything while its view is at hand, and the view is let go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.build.region_texts import BoxXyxy
from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import classes_named
from saywhere.metrics import lbm_many
from saywhere.models.grounded import Grounded
from saywhere.models.patchioner.aggregation import Aggregation, region_weights
from saywhere.models.patchioner.grounding import NounPhrase, Place, noun_phrases, spread
from saywhere.models.patchioner.seer import Look, Seer
from saywhere.reproduce.class_naming import class_prompts, zero_shot_measures, zero_shot_ranks
from saywhere.reproduce.patchioner_data import HeldOut, Narration
from saywhere.reproduce.region_tasks import RegionTask
from saywhere.vision import CachedEncoder, DetectingEncoder, Encoder, Found

FOUND, DETECTED, WHOLE, CENTRE = "found by the model", "the detector alone", "the whole photo", "a box in the centre"
IMAGE_WAYS = {
    "uniform": Aggregation(image="uniform"),
    "gaussian": Aggregation(image="gaussian"),
    "central patch": Aggregation(image="centre"),
}
BOX_WAYS = {
    "touch": Aggregation(box="touch"),
    "coverage": Aggregation(box="coverage"),
    "gaussian": Aggregation(box="gaussian"),
}
SET_WAYS = {"patch": Aggregation(boxes="patch"), "box": Aggregation(boxes="box")}
_CENTRE_XYXY = (0.25, 0.25, 0.75, 0.75)
_TEXTS_AT_ONCE = 256
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A task and the vectors of its items, in their order. vectors: way of aggregation → (n, d) of length 1."""

    task: RegionTask
    vectors: Mapping[str, Floats32]


@dataclass(slots=True)
class Asked:
    """What all looks gave. pointed: (photo, class) → the box found for the class's name, or None.

    traced: who pointed → for each narration (k, 4) boxes at its located words. shown: a few groundings, for people.
    looks: how many photos the encoder itself had to look at.
    """

    images: Question
    boxes: Question
    sets: Question | None
    pointed: dict[tuple[str, str], BoxXyxy | None]
    traced: dict[str, list[NDArray[np.float64]]]
    shown: list[tuple[Narration, Grounded]]
    looks: int


@dataclass(slots=True)
class _Heard:
    """What was pointed at so far. traced: who pointed → a narration's number → its boxes; photos come in another order
    than narrations."""

    pointed: dict[tuple[str, str], BoxXyxy | None] = field(default_factory=dict)
    traced: dict[str, dict[int, NDArray[np.float64]]] = field(
        default_factory=lambda: {who: {} for who in (FOUND, DETECTED, WHOLE, CENTRE)}
    )
    shown: list[tuple[Narration, Grounded]] = field(default_factory=list)


def remembering(seer: Seer, folder: Path) -> CachedEncoder:
    """The seer's encoder and detector, whose views are kept in a folder."""
    eye: Encoder = seer.encoder
    if seer.detector is not None:
        eye = DetectingEncoder(seer.encoder, seer.detector)
    return CachedEncoder(eye, folder)


def ask(held: HeldOut, seer: Seer, views: Path, progress: Progress) -> Asked:
    """Look at every photo once and ask it everything. views: a folder that keeps the looks."""
    eye = remembering(seer, views)
    asked: list[tuple[RegionTask, Mapping[str, Aggregation]]] = [(held.images, IMAGE_WAYS), (held.boxes, BOX_WAYS)]
    asked += [(held.sets, SET_WAYS)] if held.sets is not None else []
    rows: list[dict[str, dict[str, Floats32]]] = [{way: {} for way in ways} for _, ways in asked]
    grouped = [task.by_image for task, _ in asked]
    said: dict[str, list[int]] = defaultdict(list)
    for number, narration in enumerate(held.narrations):
        said[narration.image_id].append(number)
    heard = _Heard()
    for done, (image_id, path) in enumerate(held.photos.items(), 1):
        look = seer.see(eye.look(path), image_id=image_id)
        for (_, ways), items_of, kept in zip(asked, grouped, rows, strict=True):
            if not (items := items_of.get(image_id, [])):
                continue
            for way, by in ways.items():
                regions = [item.region for item in items]
                weights = region_weights(regions, look.view.frame, by).astype(np.float32)
                vectors = look.sight.weighed(weights, regions)
                kept[way] |= {item.item_id: vector for item, vector in zip(items, vectors, strict=True)}
        classes = {item.references[0] for item in grouped[1].get(image_id, [])}
        heard.pointed |= _pointed(look, sorted(classes))
        for number in said[image_id]:
            _point(look, number, held.narrations[number], heard)
        progress("looking at photos and asking", done, len(held.photos))
    questions = [
        Question(task, {way: np.stack([vectors[item.item_id] for item in task.items]) for way, vectors in kept.items()})
        for (task, _), kept in zip(asked, rows, strict=True)
    ]
    sets = questions[2] if held.sets is not None else None
    traced = {who: [boxes[number] for number in range(len(boxes))] for who, boxes in heard.traced.items()}
    return Asked(questions[0], questions[1], sets, heard.pointed, traced, heard.shown, eye.looked)


def _pointed(look: Look, names: Iterable[str]) -> dict[tuple[str, str], BoxXyxy | None]:
    """For each class its best box; None if the model would not say that it is there."""
    places = {name: look.find(name) for name in names}
    return {(look.image_id, name): place.box_xyxy if place else None for name, place in places.items()}


def _point(look: Look, number: int, narration: Narration, heard: _Heard) -> None:
    grounded = look.grounded(" ".join(narration.words))
    if len(heard.shown) < _MOST_SHOWN and all(one.image_id != narration.image_id for one, _ in heard.shown):
        heard.shown.append((narration, grounded))
    located = narration.placed.located
    detected = spread(narration.words, detected_places(noun_phrases(narration.words), look.view.found))
    everywhere = np.tile([0.0, 0.0, 1.0, 1.0], (int(located.sum()), 1))
    for who, boxes in ((FOUND, grounded.boxes.boxes_xyxy), (DETECTED, detected.boxes.boxes_xyxy)):
        own = boxes[located]
        # A word that has no place is anywhere on the photo.
        heard.traced[who][number] = np.where(np.isnan(own), everywhere, own)
    heard.traced[WHOLE][number] = everywhere
    heard.traced[CENTRE][number] = np.tile(_CENTRE_XYXY, (len(everywhere), 1))


def detected_places(phrases: Sequence[NounPhrase], found: Sequence[Found]) -> list[tuple[NounPhrase, Place]]:
    """For each phrase that names a class of COCO, the surest thing of that class that the detector found."""
    placed = []
    for phrase in phrases:
        named = classes_named(phrase.text)
        fitting = [one for one in found if one.name in named]
        if fitting:
            best = max(fitting, key=lambda one: one.score)
            placed.append((phrase, Place(best.box_xyxy, best.score, best.name)))
    return placed


def distances(traced: Mapping[str, Sequence[Any]], narrations: Sequence[Narration]) -> dict[str, NDArray[np.float64]]:
    """Who pointed → (narrations,) LBM (k=0) to the pseudo-traces, at located words."""
    truths = [one.placed.located_xyxy for one in narrations]
    return {who: np.asarray(lbm_many(boxes, truths, 0)) for who, boxes in traced.items()}


def recalls(held: HeldOut, whole: Floats32, seer: Seer, progress: Progress) -> dict[str, float]:
    """Text → photo: the share of captions, in %, whose photo is among the first 1, 5 or 10 of all held-out photos.

    whole: (photos, d) vectors of length 1, in the order of the task.
    """
    captions = [(row, text) for row, item in enumerate(held.images.items) for text in item.references]
    ranks = []
    for start in range(0, len(captions), _TEXTS_AT_ONCE):
        part = captions[start : start + _TEXTS_AT_ONCE]
        likeness = seer.texts([text for _, text in part]) @ whole.T
        own = likeness[np.arange(len(part)), [row for row, _ in part]]
        ranks += (likeness > own[:, None]).sum(axis=1).tolist()
        progress("finding photos by captions", start + len(part), len(captions))
    ranked = np.array(ranks)
    return {f"R@{k}": 100 * float((ranked < k).mean()) for k in (1, 5, 10)}


def named_by_vector(question: Question, seer: Seer) -> dict[str, float]:
    """The zero-shot class of true boxes, in %."""
    prompts = class_prompts()
    classes = [item.references[0] for item in question.task.items]
    ranks = zero_shot_ranks(question.vectors["touch"], seer.texts(prompts.texts), prompts, classes)
    return {name: 100 * value for name, value in zero_shot_measures(ranks, classes).items()}
