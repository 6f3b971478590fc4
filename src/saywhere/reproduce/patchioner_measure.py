"""One look at each held-out photo, everything that is asked of it, and the rows: captions of all items, and scores.

Views are large and vectors small, so a photo is asked everything while its view is at hand, and the view is let go. A
row is a way of weighing patches, of closing the gap, and a writer.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from saywhere.build.region_texts import BoxXyxy
from saywhere.core.errors import InvalidValue
from saywhere.core.grounded import Grounded
from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import classes_named, names_class
from saywhere.metrics import cider, lbm_many
from saywhere.models.patchioner.aggregation import Aggregation, region_weights
from saywhere.models.patchioner.bridge import Bridge, BridgeConfig, BridgeGap, train_bridge
from saywhere.models.patchioner.consensus import ConsensusConfig
from saywhere.models.patchioner.eyes import EncoderEyes
from saywhere.models.patchioner.grounding import NounPhrase, PhraseBox, noun_phrases, spread
from saywhere.models.patchioner.memory import Direct, Gap, MemoryBank, MemoryGap
from saywhere.models.patchioner.seer import Seer, SeerLook
from saywhere.models.patchioner.writers import MemoryWriter
from saywhere.models.search import GenerationConfig
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.reproduce.class_naming import PERSON, class_prompts, naming_measures, zero_shot_measures, zero_shot_ranks
from saywhere.reproduce.patchioner_data import HeldOut, PlacedNarration, RegionTask
from saywhere.vision import CachedEncoder, DetectingEncoder, Encoder, Found

Task = Literal["images", "boxes", "sets"]

NOTHING, BRIDGE, SHIPPED = "nothing", "diffusion bridge", "as shipped"
TEMPERATURES = (0.01, 0.02, 0.05)
_TOP, _TOP_TEMPERATURE = 16, 0.02
NEAREST = f"memory, the {_TOP} nearest, τ {_TOP_TEMPERATURE}"
INSTEAD = "the whole photo's caption"
"""A way of weighing for boxes and sets: say of each what is said of its whole photo."""
FIRST = {"images": "uniform", "boxes": "touch", "sets": "patch"}
"""The way of weighing of the paper's equations, which the model uses."""
NAMES, NAMES_OTHERS = "names its class", "names its class (non-person)"
CIDER = "CIDEr"
OWN = 0
"""Instead of a number of beams: words are chosen as the seer itself chooses them."""
_AT_ONCE = 64
# Width and blocks: small enough to learn in about a minute.
_BRIDGE_SHAPE = 256, 3
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
SET_WAYS = {
    "patch": Aggregation(boxes="patch"),
    "box": Aggregation(boxes="box"),
    "gaussian": Aggregation(boxes="gaussian"),
}
UNNAMED = "patches alone, without a detector's names"
"""What patches say told apart from what a detector says, for models that have one."""
_CENTRE_XYXY = (0.25, 0.25, 0.75, 0.75)
_TEXTS_AT_ONCE = 256
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class TaskVectors:
    """A task and the vectors of its items, in their order. vectors: way of aggregation → (n, d) of length 1."""

    task: RegionTask
    vectors: Mapping[str, Floats32]


@dataclass(slots=True)
class LookResults:
    """What all looks gave. pointed: (photo, class) → the box found for the class's name, or None.

    traced: who pointed → for each narration (k, 4) boxes at its located words. shown: a few groundings, for people.
    looks: how many photos the encoder itself had to look at.
    """

    images: TaskVectors
    boxes: TaskVectors
    sets: TaskVectors | None
    pointed: dict[tuple[str, str], BoxXyxy | None]
    traced: dict[str, list[NDArray[np.float64]]]
    shown: list[tuple[PlacedNarration, Grounded]]
    looks: int


@dataclass(slots=True)
class _Pointing:
    """What was pointed at so far. traced: who pointed → a narration's number → its boxes; photos come in another order
    than narrations."""

    pointed: dict[tuple[str, str], BoxXyxy | None] = field(default_factory=dict)
    traced: dict[str, dict[int, NDArray[np.float64]]] = field(
        default_factory=lambda: {who: {} for who in (FOUND, DETECTED, WHOLE, CENTRE)}
    )
    shown: list[tuple[PlacedNarration, Grounded]] = field(default_factory=list)


def remembering(seer: Seer, folder: Path) -> CachedEncoder:
    """The seer's encoder and detector, whose views are kept in a folder."""
    eyes = eyes_of(seer)
    eye: Encoder = eyes.encoder if eyes.detector is None else DetectingEncoder(eyes.encoder, eyes.detector)
    return CachedEncoder(eye, folder)


def look_at(held: HeldOut, seer: Seer, views: Path, progress: Progress) -> LookResults:
    """Look at every photo once and ask it everything. views: a folder that keeps the looks."""
    eye = remembering(seer, views)
    asked: list[tuple[RegionTask, Mapping[str, Aggregation]]] = [(held.images, IMAGE_WAYS), (held.boxes, BOX_WAYS)]
    asked += [(held.sets, SET_WAYS)] if held.sets is not None else []
    rows: list[dict[str, dict[str, Floats32]]] = [{way: {} for way in ways} for _, ways in asked]
    grouped = [task.by_image for task, _ in asked]
    said: dict[str, list[int]] = defaultdict(list)
    for number, narration in enumerate(held.narrations):
        said[narration.image_id].append(number)
    pointing = _Pointing()
    for done, (image_id, path) in enumerate(held.photos.items(), 1):
        look = seer.see(eye.look(path), image_id=image_id)
        for (_, ways), items_of, kept in zip(asked, grouped, rows, strict=True):
            if not (items := items_of.get(image_id, [])):
                continue
            regions = [item.region for item in items]
            if ways is not IMAGE_WAYS and look.aligned.tags is not None:
                alone = look.aligned.patch_vectors(regions)
                kept.setdefault(UNNAMED, {}).update({item.item_id: one for item, one in zip(items, alone, strict=True)})
            for way, by in ways.items():
                weights = region_weights(regions, look.view.frame, by).astype(np.float32)
                vectors = look.aligned.weighed(weights, regions)
                kept[way] |= {item.item_id: vector for item, vector in zip(items, vectors, strict=True)}
        classes = {item.references[0] for item in grouped[1].get(image_id, [])}
        pointing.pointed |= _pointed(look, sorted(classes))
        for number in said[image_id]:
            _point(look, number, held.narrations[number], pointing)
        progress("looking at photos and asking", done, len(held.photos))
    found = [
        TaskVectors(
            task, {way: np.stack([vectors[item.item_id] for item in task.items]) for way, vectors in kept.items()}
        )
        for (task, _), kept in zip(asked, rows, strict=True)
    ]
    sets = found[2] if held.sets is not None else None
    traced = {who: [boxes[number] for number in range(len(boxes))] for who, boxes in pointing.traced.items()}
    return LookResults(found[0], found[1], sets, pointing.pointed, traced, pointing.shown, eye.looked)


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


def distances(
    traced: Mapping[str, Sequence[Any]], narrations: Sequence[PlacedNarration]
) -> dict[str, NDArray[np.float64]]:
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


def named_by_vector(of: TaskVectors, seer: Seer) -> dict[str, float]:
    """The zero-shot class of true boxes, in %."""
    prompts = class_prompts()
    classes = [item.references[0] for item in of.task.items]
    ranks = zero_shot_ranks(of.vectors["touch"], seer.texts(prompts.texts), prompts, classes)
    return {name: 100 * value for name, value in zero_shot_measures(ranks, classes).items()}


def memory_name(temperature: float) -> str:
    return f"memory, τ {temperature:g}"


@dataclass(frozen=True, slots=True)
class Key:
    """One row for one task. gap: a name of `gaps`. way: of weighing patches; `FIRST` by default.

    beams: 1 is greedy; or `OWN`.
    """

    task: Task
    writer: str
    gap: str
    way: str = ""
    beams: int = 1

    def __post_init__(self) -> None:
        # The same row has one key, whether its usual way is said or not.
        object.__setattr__(self, "way", self.way or FIRST[self.task])


def beams_title(beams: int) -> str:
    return {OWN: "as shipped", 1: "greedy"}.get(beams, f"{beams} beams")


def gaps(seer: Seer, bridge: Bridge | None) -> dict[str, Gap]:
    """Every way to close the gap that can be had without learning a decoder anew, and the seer's own if it differs."""
    bank = writer_of(seer).bank
    ways: dict[str, Gap] = {NOTHING: Direct()}
    ways |= {memory_name(temperature): MemoryGap(bank, temperature, nearest=0) for temperature in TEMPERATURES}
    ways[NEAREST] = MemoryGap(bank, _TOP_TEMPERATURE, top=_TOP, nearest=0)
    if bridge is not None:
        ways[BRIDGE] = BridgeGap(bridge)
    if own_gap(seer) not in ways:
        ways[own_gap(seer)] = writer_of(seer).objects.gap
    return ways


def eyes_of(seer: Seer) -> EncoderEyes:
    """The seer's eyes, whose views are kept."""
    if not isinstance(seer.eyes, EncoderEyes) or seer.eyes.alignment is None:
        raise InvalidValue("seer", "sees with eyes whose views cannot be kept")
    return seer.eyes


def writer_of(seer: Seer) -> MemoryWriter:
    """The seer's writer, whose parts the tables exchange."""
    if not isinstance(seer.writer, MemoryWriter):
        raise InvalidValue("seer", f"writes with a {type(seer.writer).__name__}, whose parts cannot be exchanged")
    return seer.writer


def own_gap(seer: Seer) -> str:
    """The name of the gap that the seer itself closes."""
    gap = writer_of(seer).objects.gap
    if isinstance(gap, Direct):
        return NOTHING
    if isinstance(gap, MemoryGap) and gap.top is None:
        return memory_name(gap.temperature)
    return SHIPPED


def bridge_for(bank: MemoryBank, looked: LookResults, folder: Path, steps: int, progress: Progress) -> Bridge:
    """A bridge learnt from the bank's texts and the mean of the photos' vectors, without their captions; kept."""
    mean = looked.images.vectors["uniform"].mean(axis=0)
    digest = hashlib.sha256(bank.vectors.tobytes() + mean.tobytes() + str(steps).encode()).hexdigest()[:16]
    kept = folder / digest
    if (kept / "config.json").exists():
        return Bridge.load(kept)
    bridge = train_bridge(
        np.asarray(bank.vectors, dtype=np.float32),
        mean,
        steps,
        torch.Generator().manual_seed(0),
        progress,
        config=BridgeConfig(bank.size, *_BRIDGE_SHAPE),
    )
    bridge.save(kept)
    return bridge


def references_of(of: TaskVectors) -> dict[str, list[str]]:
    return {item.item_id: list(item.references) for item in of.task.items}


@dataclass(slots=True)
class CaptionRows:
    """Captions and scores, each made once.

    seers: by the writer's name; all with the same eyes. ways: to close the gap. judges: of all tasks with references.
    """

    looked: LookResults
    seers: Mapping[str, Seer]
    ways: Mapping[str, Gap]
    judges: Mapping[Task, CaptionMetrics]
    progress: Progress
    _captions: dict[Key, dict[str, str]] = field(default_factory=dict)
    _scores: dict[Key, dict[str, float]] = field(default_factory=dict)

    def vectors(self, task: Task) -> TaskVectors:
        found = {"images": self.looked.images, "boxes": self.looked.boxes, "sets": self.looked.sets}[task]
        if found is None:
            raise KeyError(task)
        return found

    @property
    def captions_made(self) -> dict[str, dict[str, str]]:
        """For the record: the row in words → item → caption."""
        return {
            f"{key.task}, {key.way}, {key.gap}, {key.writer}, {beams_title(key.beams)}": dict(made)
            for key, made in self._captions.items()
        }

    def captions(self, key: Key) -> dict[str, str]:
        """Item → caption."""
        if key not in self._captions:
            self._captions[key] = self._instead(key) if key.way == INSTEAD else self._written(key)
        return self._captions[key]

    def _instead(self, key: Key) -> dict[str, str]:
        whole = self.captions(Key("images", key.writer, key.gap, beams=key.beams))
        of_photo = {item.image_id: whole[item.item_id] for item in self.looked.images.task.items}
        return {item.item_id: of_photo[item.image_id] for item in self.vectors(key.task).task.items}

    def _written(self, key: Key) -> dict[str, str]:
        of = self.vectors(key.task)
        how: GenerationConfig | ConsensusConfig = (
            GenerationConfig("beam", beams=key.beams) if key.beams > 1 else GenerationConfig()
        )
        if key.beams == OWN:
            own = writer_of(self.seers[key.writer]).objects
            how = (key.task != "boxes" and own.scenes) or own.generation
        doing = f"captions of {key.task}: {key.way}, {key.gap}, {key.writer}"
        texts = self._texts(of.vectors[key.way], self.seers[key.writer], self.ways[key.gap], how, doing)
        return {item.item_id: text for item, text in zip(of.task.items, texts, strict=True)}

    def _texts(
        self, vectors: Floats32, seer: Seer, gap: Gap, how: GenerationConfig | ConsensusConfig, doing: str
    ) -> list[str]:
        texts: list[str] = []
        for start in range(0, len(vectors), _AT_ONCE):
            written, _ = writer_of(seer).write(vectors[start : start + _AT_ONCE], how, gap)
            texts += [one.text for one in written]
            self.progress(doing, len(texts), len(vectors))
        return texts

    def scores(self, key: Key) -> dict[str, float]:
        """All measures in %, CIDEr as papers print it."""
        if key not in self._scores:
            task, captions = self.vectors(key.task).task, self.captions(key)
            if key.task == "boxes":
                classes = [item.references[0] for item in task.items]
                measures = naming_measures([captions[item.item_id] for item in task.items], classes)
            else:
                measures = self.judges[key.task].scores(captions)
            self._scores[key] = {name: 100 * value for name, value in measures.items()}
        return self._scores[key]

    def each(self, key: Key, *, others: bool = False) -> tuple[NDArray[np.float64], list[str]]:
        """(n,) the value of each item, in % (CIDEr, or whether the class is named), and its photo. others: no person"""
        task, captions = self.vectors(key.task).task, self.captions(key)
        if key.task == "boxes":
            items = [item for item in task.items if not (others and item.references[0] == PERSON)]
            values = [100.0 * names_class(captions[item.item_id], item.references[0]) for item in items]
        else:
            items = list(task.items)
            table = cider(captions, references_of(self.vectors(key.task)))["per_item"]
            values = [100 * table[item.item_id][CIDER] for item in items]
        return np.array(values), [item.image_id for item in items]
