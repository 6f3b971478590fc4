"""The rows of Patch-ioner's tables: captions of all items of a task, by way of weighing, gap and writer, and scores."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import names_class
from saywhere.metrics import cider
from saywhere.models.patchioner.bridge import Bridge, BridgeConfig, train_bridge
from saywhere.models.patchioner.consensus import ConsensusConfig
from saywhere.models.patchioner.gap import BridgeGap, Direct, Gap, MemoryGap
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.seer import Seer
from saywhere.models.search import GenerationConfig
from saywhere.reproduce.class_naming import PERSON, naming_measures
from saywhere.reproduce.mitr import CaptionJudge
from saywhere.reproduce.patchioner_looks import Asked, Question

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


def said_beams(beams: int) -> str:
    return {OWN: "as shipped", 1: "greedy"}.get(beams, f"{beams} beams")


def gaps(seer: Seer, bridge: Bridge | None) -> dict[str, Gap]:
    """Every way to close the gap that can be had without learning a decoder anew, and the seer's own if it differs."""
    bank = seer.bank
    ways: dict[str, Gap] = {NOTHING: Direct()}
    ways |= {memory_name(temperature): MemoryGap(bank, temperature, nearest=0) for temperature in TEMPERATURES}
    ways[NEAREST] = MemoryGap(bank, _TOP_TEMPERATURE, top=_TOP, nearest=0)
    if bridge is not None:
        ways[BRIDGE] = BridgeGap(bridge)
    if own_gap(seer) not in ways:
        ways[own_gap(seer)] = seer.gap
    return ways


def own_gap(seer: Seer) -> str:
    """The name of the gap that the seer itself closes."""
    if isinstance(seer.gap, Direct):
        return NOTHING
    if isinstance(seer.gap, MemoryGap) and seer.gap.top is None:
        return memory_name(seer.gap.temperature)
    return SHIPPED


def bridge_for(bank: MemoryBank, asked: Asked, folder: Path, steps: int, progress: Progress) -> Bridge:
    """A bridge learnt from the bank's texts and the mean of the photos' vectors, without their captions; kept."""
    mean = asked.images.vectors["uniform"].mean(axis=0)
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


def references_of(question: Question) -> dict[str, list[str]]:
    return {item.item_id: list(item.references) for item in question.task.items}


@dataclass(slots=True)
class Answers:
    """Captions and scores, each made once.

    seers: by the writer's name; all with the same eyes. ways: to close the gap. judges: of all tasks with references.
    """

    asked: Asked
    seers: Mapping[str, Seer]
    ways: Mapping[str, Gap]
    judges: Mapping[Task, CaptionJudge]
    progress: Progress
    _captions: dict[Key, dict[str, str]] = field(default_factory=dict)
    _scores: dict[Key, dict[str, float]] = field(default_factory=dict)

    def question(self, task: Task) -> Question:
        found = {"images": self.asked.images, "boxes": self.asked.boxes, "sets": self.asked.sets}[task]
        if found is None:
            raise KeyError(task)
        return found

    @property
    def captions_made(self) -> dict[str, dict[str, str]]:
        """For the record: the row in words → item → caption."""
        return {
            f"{key.task}, {key.way}, {key.gap}, {key.writer}, {said_beams(key.beams)}": dict(made)
            for key, made in self._captions.items()
        }

    def captions(self, key: Key) -> dict[str, str]:
        """Item → caption."""
        if key not in self._captions:
            self._captions[key] = self._instead(key) if key.way == INSTEAD else self._written(key)
        return self._captions[key]

    def _instead(self, key: Key) -> dict[str, str]:
        whole = self.captions(Key("images", key.writer, key.gap, beams=key.beams))
        of_photo = {item.image_id: whole[item.item_id] for item in self.asked.images.task.items}
        return {item.item_id: of_photo[item.image_id] for item in self.question(key.task).task.items}

    def _written(self, key: Key) -> dict[str, str]:
        question = self.question(key.task)
        how: GenerationConfig | ConsensusConfig = (
            GenerationConfig("beam", beams=key.beams) if key.beams > 1 else GenerationConfig()
        )
        if key.beams == OWN:
            manners = self.seers[key.writer].manners
            how = (key.task != "boxes" and manners.whole) or manners.writing
        doing = f"captions of {key.task}: {key.way}, {key.gap}, {key.writer}"
        texts = self._texts(question.vectors[key.way], self.seers[key.writer], self.ways[key.gap], how, doing)
        return {item.item_id: text for item, text in zip(question.task.items, texts, strict=True)}

    def _texts(
        self, vectors: Floats32, seer: Seer, gap: Gap, how: GenerationConfig | ConsensusConfig, doing: str
    ) -> list[str]:
        texts: list[str] = []
        for start in range(0, len(vectors), _AT_ONCE):
            written, _ = seer.tell(vectors[start : start + _AT_ONCE], how, gap)
            texts += [one.text for one in written]
            self.progress(doing, len(texts), len(vectors))
        return texts

    def scores(self, key: Key) -> dict[str, float]:
        """All measures in %, CIDEr as papers print it."""
        if key not in self._scores:
            task, captions = self.question(key.task).task, self.captions(key)
            if key.task == "boxes":
                classes = [item.references[0] for item in task.items]
                measures = naming_measures([captions[item.item_id] for item in task.items], classes)
            else:
                measures = self.judges[key.task].scores(captions)
            self._scores[key] = {name: 100 * value for name, value in measures.items()}
        return self._scores[key]

    def each(self, key: Key, *, others: bool = False) -> tuple[NDArray[np.float64], list[str]]:
        """(n,) the value of each item, in % (CIDEr, or whether the class is named), and its photo. others: no person"""
        task, captions = self.question(key.task).task, self.captions(key)
        if key.task == "boxes":
            items = [item for item in task.items if not (others and item.references[0] == PERSON)]
            values = [100.0 * names_class(captions[item.item_id], item.references[0]) for item in items]
        else:
            items = list(task.items)
            table = cider(captions, references_of(self.question(key.task)))["per_item"]
            values = [100 * table[item.item_id][CIDER] for item in items]
        return np.array(values), [item.image_id for item in items]
