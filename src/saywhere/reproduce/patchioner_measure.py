"""The rows of Patch-ioner's tables: captions of all items, and scores.

A row is a way of weighing patches, of closing the gap, and a writer. A writer that attends to photos reads their hidden
states beside the vector, whatever was made of that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import names_class
from saywhere.metrics import cider, lbm_many
from saywhere.models.patchioner.bridge import Bridge, BridgeConfig, BridgeGap, train_bridge
from saywhere.models.patchioner.consensus import ConsensusConfig
from saywhere.models.patchioner.decoder import PhotoStates
from saywhere.models.patchioner.memory import Direct, Gap, MemoryBank, MemoryGap
from saywhere.models.patchioner.seer import Seer
from saywhere.models.patchioner.writers import MemoryWriter, reads_photos
from saywhere.models.search import GenerationConfig
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.reproduce.class_naming import PERSON, class_prompts, naming_measures, zero_shot_measures, zero_shot_ranks
from saywhere.reproduce.patchioner_data import HeldOut, PlacedNarration
from saywhere.reproduce.patchioner_looks import AS_MODEL, LookResults, TaskVectors

Task = Literal["images", "boxes", "sets"]

NOTHING, BRIDGE, SHIPPED = "nothing", "diffusion bridge", "as shipped"
TEMPERATURES = (0.01, 0.02, 0.05)
_TOP, _TOP_TEMPERATURE = 16, 0.02
NEAREST = f"memory, the {_TOP} nearest, τ {_TOP_TEMPERATURE}"
INSTEAD = "the whole photo's caption"
"""A way of weighing for boxes and sets: say of each what is said of its whole photo."""
FIRST = {"images": AS_MODEL, "boxes": "touch", "sets": "patch"}
"""The way of weighing that the model uses; of regions that of the paper's equations."""
NAMES, NAMES_OTHERS = "names its class", "names its class (non-person)"
CIDER = "CIDEr"
OWN = 0
"""Instead of a number of beams: words are chosen as the seer itself chooses them."""
_AT_ONCE = 64
# Width and blocks: small enough to learn in about a minute.
_BRIDGE_SHAPE = 256, 3
_TEXTS_AT_ONCE = 256


def distances(
    traced: Mapping[str, Sequence[Any]], narrations: Sequence[PlacedNarration]
) -> dict[str, NDArray[np.float64]]:
    """Who pointed → (narrations,) LBM (k=0) to the pseudo-traces, at located words."""
    truths = [one.placed.located_xyxy for one in narrations]
    return {who: np.asarray(lbm_many(boxes, truths, 0)) for who, boxes in traced.items()}


def recalls(held: HeldOut, contrasts: Floats32, seer: Seer, progress: Progress) -> dict[str, float]:
    """Text → photo: the share of captions, in %, whose photo is among the first 1, 5 or 10 of all held-out photos.

    contrasts: (photos, d) vectors of length 1, by which texts find photos, in the order of the task.
    """
    captions = [(row, text) for row, item in enumerate(held.images.items) for text in item.references]
    ranks = []
    for start in range(0, len(captions), _TEXTS_AT_ONCE):
        part = captions[start : start + _TEXTS_AT_ONCE]
        likeness = seer.queries([text for _, text in part]) @ contrasts.T
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


def text_only_first(seers: Mapping[str, Seer]) -> dict[str, Seer]:
    """The same, those whose writers read nothing but vectors before those that attend to photos."""
    return dict(sorted(seers.items(), key=lambda one: attends(one[1])))


def attends(seer: Seer) -> bool:
    """Whether its writer attends to photos."""
    return reads_photos(writer_of(seer).objects.decoder)


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
    mean = looked.images.vectors[AS_MODEL].mean(axis=0)
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
        seer, gap = self.seers[key.writer], self.ways[key.gap]
        texts: list[str] = []
        for rows, photo_states in self._parts(of, key.way, attends(seer)):
            written, _ = writer_of(seer).write(of.vectors[key.way][rows], how, gap, photo_states=photo_states)
            texts += [one.text for one in written]
            self.progress(doing, len(texts), len(of.task.items))
        return {item.item_id: text for item, text in zip(of.task.items, texts, strict=True)}

    def _parts(self, of: TaskVectors, way: str, with_states: bool) -> Iterator[tuple[slice, PhotoStates | None]]:
        """The items in order, a few at a time; those of one photo with its hidden states, if these are read."""
        if not with_states:
            for start in range(0, len(of.task.items), _AT_ONCE):
                yield slice(start, start + _AT_ONCE), None
            return
        start = 0
        for image_id, items in groupby(of.task.items, lambda item: item.image_id):
            rows = slice(start, start := start + len(list(items)))
            states = torch.from_numpy(np.array(self.looked.states[image_id]))
            yield rows, PhotoStates(states[None], torch.from_numpy(of.weights[way][rows]))

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
