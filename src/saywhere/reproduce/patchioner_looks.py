"""One look at each held-out photo, and everything that is asked of it: vectors of all regions, and places of words.

Views are large and vectors small, so a photo is asked everything while its view is at hand, and the view is let go. Of
views with hidden states these stay too, if a writer attends to photos.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saywhere.build.region_texts import BoxXyxy
from saywhere.core import Frame, InvalidValue, Region, WholeImage
from saywhere.core.grounded import Grounded
from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import classes_named
from saywhere.models.patchioner.aggregation import Aggregation, region_weights
from saywhere.models.patchioner.eyes import EncoderEyes
from saywhere.models.patchioner.grounding import NounPhrase, PhraseBox, noun_phrases, spread
from saywhere.models.patchioner.seer import Seer, SeerLook
from saywhere.reproduce.patchioner_data import HeldOut, PlacedNarration, RegionTask
from saywhere.vision import CachedEncoder, Encoder, Found, PhotoLike, View, read_photo
from saywhere.vision.auxiliary import NAME as SECOND_LOOK

FOUND, DETECTED, WHOLE, CENTRE = "found by the model", "the detector alone", "the whole photo", "a box in the centre"
AS_MODEL = "as the model sees it"
"""The vector of a whole photo that the model itself reads: of an eye that learnt one, not the mean of patches."""
ATTENTION = "attention"
IMAGE_WAYS: Mapping[str, Aggregation | None] = {
    AS_MODEL: None,
    "uniform": Aggregation(image="uniform"),
    "gaussian": Aggregation(image="gaussian"),
    ATTENTION: Aggregation(image="attention"),
    "central patch": Aggregation(image="centre"),
}
BOX_WAYS: Mapping[str, Aggregation | None] = {
    "touch": Aggregation(box="touch"),
    "coverage": Aggregation(box="coverage"),
    "gaussian": Aggregation(box="gaussian"),
    ATTENTION: Aggregation(box="attention"),
}
SET_WAYS: Mapping[str, Aggregation | None] = {
    "patch": Aggregation(boxes="patch"),
    "box": Aggregation(boxes="box"),
    "gaussian": Aggregation(boxes="gaussian"),
    ATTENTION: Aggregation(boxes="attention"),
}
UNNAMED = "patches alone, without a detector's names"
"""What patches say told apart from what a detector says, for models that have one."""
_CENTRE_XYXY = (0.25, 0.25, 0.75, 0.75)
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class TaskVectors:
    """A task and what was seen of its items, in their order. vectors: way of weighing → (n, d) of length 1.

    weights: way → (n, k), how much each of the photo's k hidden states counts; empty if no writer attends to photos.
    """

    task: RegionTask
    vectors: Mapping[str, Floats32]
    weights: Mapping[str, Floats32] = field(default_factory=dict)


@dataclass(slots=True)
class LookResults:
    """What all looks gave. pointed: (photo, class) → the box found for the class's name, or None.

    traced: who pointed → for each narration (k, 4) boxes at its located words. shown: a few groundings, for people.
    looks: how many photos the encoder itself had to look at. contrasts: (photos, d), by which texts find photos, in the
    order of the images. states: photo → (1 + k, s) hidden states; empty if no writer attends to photos.
    """

    images: TaskVectors
    boxes: TaskVectors
    sets: TaskVectors | None
    pointed: dict[tuple[str, str], BoxXyxy | None]
    traced: dict[str, list[NDArray[np.float64]]]
    shown: list[tuple[PlacedNarration, Grounded]]
    looks: int
    contrasts: Floats32
    states: dict[str, Floats32]


@dataclass(slots=True)
class _Pointing:
    """What was pointed at so far. traced: who pointed → a narration's number → its boxes; photos come in another order
    than narrations."""

    pointed: dict[tuple[str, str], BoxXyxy | None] = field(default_factory=dict)
    traced: dict[str, dict[int, NDArray[np.float64]]] = field(
        default_factory=lambda: {who: {} for who in (FOUND, DETECTED, WHOLE, CENTRE)}
    )
    shown: list[tuple[PlacedNarration, Grounded]] = field(default_factory=list)


class _Asked:
    """A task, and what was seen of its items so far. with_states: whether a writer attends to photos."""

    def __init__(self, task: RegionTask, ways: Mapping[str, Aggregation | None], *, with_states: bool) -> None:
        self.task, self.ways, self.with_states = task, ways, with_states
        self.items_of = task.by_image
        self._vectors: dict[str, dict[str, Floats32]] = defaultdict(dict)
        self._weights: dict[str, dict[str, Floats32]] = defaultdict(dict)

    def ask(self, look: SeerLook) -> None:
        """All items of a photo."""
        items = self.items_of.get(look.image_id, [])
        if not items:
            return
        for way, vectors, weights in _seen(look, [item.region for item in items], self.ways):
            self._vectors[way] |= {item.item_id: one for item, one in zip(items, vectors, strict=True)}
            if self.with_states:
                by_state = look.aligned.state_weights(weights)
                self._weights[way] |= {item.item_id: one for item, one in zip(items, by_state, strict=True)}

    def vectors(self) -> TaskVectors:
        """Of all items, when every photo was asked."""
        return TaskVectors(self.task, self._ordered(self._vectors), self._ordered(self._weights))

    def _ordered(self, kept: Mapping[str, Mapping[str, Floats32]]) -> dict[str, Floats32]:
        return {way: np.stack([of[item.item_id] for item in self.task.items]) for way, of in kept.items()}


def _seen(
    look: SeerLook, regions: Sequence[Region], ways: Mapping[str, Aggregation | None]
) -> Iterator[tuple[str, Floats32, Floats32]]:
    """Way of weighing, (m, d) vectors of length 1, and the (m, rows, cols) weights of patches."""
    aligned, attention = look.aligned, look.view.attention
    for way, by in ways.items():
        if by is None:
            yield way, aligned.vectors(regions), aligned.weights(regions)
        elif way != ATTENTION or attention is not None:
            weights = region_weights(regions, look.view.frame, by, attention).astype(np.float32)
            yield way, aligned.weighed(weights, regions), weights
    if aligned.tags is not None and not isinstance(regions[0], WholeImage):
        yield UNNAMED, aligned.patch_vectors(regions), aligned.weights(regions)


class _EyesEncoder(Encoder):
    """Eyes as an encoder: its views hold things found and a second look, where the eyes take one."""

    def __init__(self, eyes: EncoderEyes) -> None:
        self.eyes = eyes

    @property
    def fingerprint(self) -> dict[str, str | int]:
        detector = self.eyes.detector
        finding = {} if detector is None else {f"found_by_{key}": one for key, one in detector.fingerprint.items()}
        again = {} if self.eyes.auxiliary is None else {"second_look": SECOND_LOOK}
        return {**self.eyes.encoder.fingerprint, **finding, **again}

    @property
    def size(self) -> int:
        return self.eyes.encoder.size

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        return self.eyes.encoder.frame(photo_size)

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        return [self.eyes.look(read_photo(photo)) for photo in photos]


def eyes_of(seer: Seer) -> EncoderEyes:
    """The seer's eyes, whose views are kept."""
    if not isinstance(seer.eyes, EncoderEyes):
        raise InvalidValue("seer", f"sees with {type(seer.eyes).__name__}, whose views cannot be kept")
    return seer.eyes


def remembering(seer: Seer, folder: Path) -> CachedEncoder:
    """The seer's eyes, whose views are kept in a folder."""
    return CachedEncoder(_EyesEncoder(eyes_of(seer)), folder)


def look_at(held: HeldOut, seer: Seer, views: Path, progress: Progress, *, with_states: bool = False) -> LookResults:
    """Look at every photo once and ask it everything. views: a folder that keeps the looks. with_states: whether hidden
    states are kept, for writers that attend to photos."""
    eye = remembering(seer, views)
    tasks = [(held.images, IMAGE_WAYS), (held.boxes, BOX_WAYS)]
    tasks += [(held.sets, SET_WAYS)] if held.sets is not None else []
    asked = [_Asked(task, ways, with_states=with_states) for task, ways in tasks]
    said: dict[str, list[int]] = defaultdict(list)
    for number, narration in enumerate(held.narrations):
        said[narration.image_id].append(number)
    pointing, contrasts, states = _Pointing(), {}, {}
    for done, (image_id, path) in enumerate(held.photos.items(), 1):
        look = seer.see(eye.look(path), image_id=image_id)
        for one in asked:
            one.ask(look)
        contrasts[image_id] = look.vector()
        if with_states and look.view.states is not None:
            states[image_id] = look.view.states
        classes = {item.references[0] for item in asked[1].items_of.get(image_id, [])}
        pointing.pointed |= _pointed(look, sorted(classes))
        for number in said[image_id]:
            _point(look, number, held.narrations[number], pointing)
        progress("looking at photos and asking", done, len(held.photos))
    found = [one.vectors() for one in asked]
    sets = found[2] if held.sets is not None else None
    traced = {who: [boxes[number] for number in range(len(boxes))] for who, boxes in pointing.traced.items()}
    by_photo = np.stack([contrasts[item.image_id] for item in held.images.items])
    told = (pointing.pointed, traced, pointing.shown)
    return LookResults(found[0], found[1], sets, *told, eye.looked, by_photo, states)


def _pointed(look: SeerLook, names: Sequence[str]) -> dict[tuple[str, str], BoxXyxy | None]:
    """For each class its best box; None if the model would not say that it is there."""
    boxes = dict(zip(names, look.find_all(names), strict=True))
    return {(look.image_id, name): None if box is None else box.xyxy for name, box in boxes.items()}


def _point(look: SeerLook, number: int, narration: PlacedNarration, pointing: _Pointing) -> None:
    grounded = look.grounded(" ".join(narration.words))
    if len(pointing.shown) < _MOST_SHOWN and all(one.image_id != narration.image_id for one, _ in pointing.shown):
        pointing.shown.append((narration, grounded))
    located = narration.placed.located
    detected = spread(narration.words, detected_places(noun_phrases(narration.words), look.view.found))
    everywhere = np.tile([0.0, 0.0, 1.0, 1.0], (int(located.sum()), 1))
    for who, boxes in ((FOUND, grounded.boxes.boxes_xyxy), (DETECTED, detected.boxes.boxes_xyxy)):
        own = boxes[located]
        # A word that has no place is anywhere on the photo.
        pointing.traced[who][number] = np.where(np.isnan(own), everywhere, own)
    pointing.traced[WHOLE][number] = everywhere
    pointing.traced[CENTRE][number] = np.tile(_CENTRE_XYXY, (len(everywhere), 1))


def detected_places(phrases: Sequence[NounPhrase], found: Sequence[Found]) -> list[tuple[NounPhrase, PhraseBox]]:
    """For each phrase that names a class of COCO, the surest thing of that class that the detector found."""
    placed = []
    for phrase in phrases:
        named = classes_named(phrase.text)
        fitting = [one for one in found if one.name in named]
        if fitting:
            best = max(fitting, key=lambda one: one.score)
            placed.append((phrase, PhraseBox(best.box_xyxy, best.score, best.name)))
    return placed
