"""What a captioner of the scenes experiment says, attends to, needs and knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from saywhere.explain.ablation import (
    Comparison,
    Removal,
    compared,
    control_removals,
    qualifying,
    removal,
    removed,
    write_many,
)
from saywhere.explain.attention_blocks import SpecialAttention, measure_blocks, special_attention
from saywhere.explain.diagnosticity import By, diagnosticity, measure_objects
from saywhere.explain.informative import SceneObjects
from saywhere.explain.probing import ProbeResult, pooled_many, probe_table
from saywhere.explain.rounds import attend_rounds
from saywhere.metrics import caption_scores
from saywhere.models.attended import TokenKind
from saywhere.models.oscar import LevelCaptions, Oscar
from saywhere.models.search import BEAM, Written
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.reproduce.scenes_data import OBJECT, SCENE, named_place
from saywhere.reproduce.tables import MeasureColumn
from saywhere.world import kinds_named

Measured = dict[str, float]
_BLOCKS = {"all the relations": "all"}
_AT_ONCE = 50

DEPTHS = (3, 5, 7)
ABLATED = (1, 2, 3)
SPLITS = ("90/10", "70/30", "50/50")
F1S = ("micro", "macro", "weighted")
BLOCKS = ("all", "vision→vision", "vision→tag", "tag→vision")

ACCURACY = MeasureColumn("scene named, %", digits=1)
CAPTIONS = (ACCURACY, *(MeasureColumn(name) for name in ("BLEU-4", "ROUGE-L", "CIDEr")))
NAMING = MeasureColumn("named things are there, %", digits=1)
RECALL = MeasureColumn("told things named, %", digits=1)
NAMING_F1 = MeasureColumn("naming F1", digits=1)
OBJECT_CIDER = MeasureColumn("CIDEr, objects")
OBJECTS = (NAMING, RECALL, NAMING_F1, OBJECT_CIDER)
STD = MeasureColumn("std, all", lower_is_better=True, digits=4)
EVENNESS = MeasureColumn("evenness, all", digits=4)
ATTENTION = tuple(
    MeasureColumn(f"{measure}, {block}", lower_is_better=measure == "std", digits=2 if measure == "mass" else 4)
    for measure in ("std", "mass", "evenness")
    for block in BLOCKS
)
OVERLAP = MeasureColumn("AO@5, mean")
OVERLAP_CHANCE = MeasureColumn("AO@5, mean, shuffled attention")
OVERLAP_PER_IMAGE = MeasureColumn("AO@5, mean, attention per image")
OVERLAP_PER_IMAGE_CHANCE = MeasureColumn("AO@5, mean, attention per image, shuffled")
PER_IMAGE = ", per image"
"""Marks measures of the mean of attention over the images with a thing, not of its sum."""
EVEN, SHUFFLED, P = ", even", ", shuffled", ", p"
"""Mark what even attention gives, what shuffled attention does, and how often that is at least as high."""
DIAGNOSTIC = tuple(
    MeasureColumn(f"{measure}@{depth}", digits=2) for measure in ("AO", "RBO", "IoU") for depth in DEPTHS
)
CHANGED = MeasureColumn("changed, %", lower_is_better=True, digits=1)
CHANGED_RANDOM = MeasureColumn("changed, random things, %", lower_is_better=True, digits=1)
CHANGED_BY = tuple(MeasureColumn(f"changed without {k}, %", lower_is_better=True, digits=1) for k in ABLATED)
CONFIDENCE = MeasureColumn("confidence")
SHIFT = MeasureColumn("shift", digits=4)
SHIFT_SPREAD = MeasureColumn("spread of shifts", lower_is_better=True, digits=4)
LABEL_CHANGED = MeasureColumn("place or things changed, %", lower_is_better=True, digits=1)
ABLATION = (CHANGED, *CHANGED_BY, LABEL_CHANGED, CHANGED_RANDOM, CONFIDENCE, SHIFT, SHIFT_SPREAD)


def probe_column(probe: str, split: str, f1: str, ablated: bool = False) -> MeasureColumn:
    """The name of a probe's measure, such as "forest 50/50 macro-F1 (A)"."""
    return MeasureColumn(f"{probe} {split} {f1}-F1{' (A)' if ablated else ''}", digits=2)


RARE = MeasureColumn("forest 50/50 F1, rare scenes")
MACRO = probe_column("forest", "50/50", "macro")
MACRO_ABLATED = probe_column("forest", "50/50", "macro", ablated=True)
SEP_FIRST, SEP_LAST = MeasureColumn("[SEP], first layer"), MeasureColumn("[SEP], last layer")


class AblatedCaption(msgspec.Struct, frozen=True):
    """A caption before and after things were taken away."""

    image: str
    objects: tuple[str, ...]
    before: str
    after: str
    confidence_before: float
    confidence_after: float


class SceneMeasures(msgspec.Struct, frozen=True):
    """All that one network was measured at. Lists have a value for each image, or layer.

    blocks: block → "std" and "mass". special: who asks → attention to [SEP] by layer. confidences, shifts: of captions
    that stayed as they were, by how many things were taken away. classes: probe's F1 by scene, without and with
    ablation. scenes: Table 2, scene → measure → value. informative: scene → the things taken away.
    """

    scores: dict[str, float]
    blocks: dict[str, dict[str, list[float]]]
    special: dict[str, list[float]]
    confidences: dict[str, list[float]]
    shifts: dict[str, list[float]]
    classes: dict[str, dict[str, float]]
    support: dict[str, int]
    scenes: dict[str, dict[str, float]]
    informative: dict[str, list[str]]
    taken_part: dict[str, int]
    ablated: list[AblatedCaption]


@dataclass(frozen=True, slots=True)
class MeasureScale:
    """How much is measured. attended: images whose attention is looked at (the paper: 100). rare: places of which the
    probe sees few images, and how many those are. probe_seeds: splits. shuffles: of attention, to see what chance
    gives."""

    attended: int = 100
    rare: int = 3
    rare_images: int = 8
    probe_seeds: int = 2
    shuffles: int = 999


@dataclass(frozen=True)
class HeldOutScenes:
    """The images to measure on, with their places and what is there, found or not, and what training images tell about
    places and things."""

    folder: LevelCaptions
    places: dict[str, str]
    things: dict[str, list[str]]
    scale: MeasureScale = field(default_factory=MeasureScale)

    @classmethod
    def of(cls, data: Path, scale: MeasureScale) -> HeldOutScenes:
        """The test images of a prepared folder."""
        folder = LevelCaptions(data)
        return cls(folder, folder.about["places"], folder.about["things"], scale)

    @cached_property
    def ids(self) -> list[str]:
        return self.folder.image_names("test")

    @cached_property
    def _kept(self) -> dict[str, TaggedRegions]:
        return {one: self.folder.image(one) for one in self.ids}

    def image(self, name: str) -> TaggedRegions:
        return self._kept[name]

    @cached_property
    def informative(self) -> dict[str, list[str]]:
        """Place → the things that tell it best, from training images."""
        train = self.folder.image_names("train")
        tags = [set(self.folder.image(one).tags) for one in train]
        counts = SceneObjects.of(tags, [self.places[one] for one in train])
        return {scene: counts.most_informative(scene, max(ABLATED)) for scene in counts.scenes}

    def references(self, level: str) -> dict[str, list[str]]:
        """Image → what people said of it at a level."""
        found: dict[str, list[str]] = {}
        for caption in self.folder.split("test", [level]).captions:
            found.setdefault(caption.image, []).append(caption.text)
        return found

    @cached_property
    def rare(self) -> list[str]:
        """The places with the fewest test images."""
        counts = {place: sum(self.places[one] == place for one in self.ids) for place in set(self.places.values())}
        return sorted(counts, key=lambda place: (counts[place], place))[: self.scale.rare]

    @cached_property
    def probe_labels(self) -> list[str | None]:
        """The place of each test image; None for images of rare places beyond the first few."""
        left = dict.fromkeys(self.rare, self.scale.rare_images)
        labels: list[str | None] = []
        for one in self.ids:
            place = self.places[one]
            labels.append(place if left.get(place, 1) > 0 else None)
            if place in left:
                left[place] -= 1
        return labels


def measure_scenes(model: Oscar, test: HeldOutScenes, levels: Sequence[str], asked: str, seed: int) -> SceneMeasures:
    """Everything. levels: those that the network was taught. asked: the level of ablated captions."""
    told = {
        level: write_many(model, test.ids, test.image, level=level, batch=_AT_ONCE)
        for level in (OBJECT, SCENE)
        if level in levels
    }
    scores: Measured = {}
    if SCENE in told:
        scores |= scene_scores(told[SCENE], test)
    if OBJECT in told:
        scores |= object_scores(told[OBJECT], test)
    blocks = measure_blocks(model, test.ids[: test.scale.attended], test.image)
    for name, stats in blocks.items():
        for measure in ("std", "mass", "evenness"):
            scores[f"{measure}, {_BLOCKS.get(name, name)}"] = float(np.nanmean(getattr(stats, measure)))
    special = _special(model, test)
    scores |= {SEP_FIRST.name: float(special.mean[0].mean()), SEP_LAST.name: float(special.mean[-1].mean())}
    overlaps = scene_overlaps(model, test, scores, seed)
    ablation = _Ablation(model, test, told[asked], asked, seed)
    scores |= ablation.scores
    classes = probe_scores(model, test, scores)
    return SceneMeasures(
        scores={name: float(value) for name, value in scores.items()},
        blocks={
            _BLOCKS.get(name, name): {m: getattr(stats, m).tolist() for m in ("std", "mass")}
            for name, stats in blocks.items()
        },
        special={part.name.lower(): special.mean[:, i].tolist() for i, part in enumerate(special.parts)},
        confidences={str(k): one.unchanged_confidences.tolist() for k, one in ablation.compared.items()},
        shifts={str(k): one.unchanged_shifts.tolist() for k, one in ablation.compared.items()},
        classes=classes,
        support={place: test.probe_labels.count(place) for place in sorted({one for one in test.probe_labels if one})},
        scenes=overlaps,
        informative=test.informative,
        taken_part={str(k): len(one.pairs) for k, one in ablation.compared.items()},
        ablated=ablation.shown(),
    )


def _special(model: Oscar, test: HeldOutScenes) -> SpecialAttention:
    """What [SEP] receives from tags and regions (Fig. 10)."""
    looked = attend_rounds(model, test.ids[: test.scale.attended], test.image)
    return SpecialAttention.joined(
        [special_attention(some.attended, askers=(TokenKind.TAG, TokenKind.REGION)) for some in looked]
    )


def scene_scores(said: dict[str, Written], test: HeldOutScenes) -> Measured:
    """How many captions name the true place, in percent, and how near they are to what people say."""
    right = [named_place(text.text) == test.places[one] for one, text in said.items()]
    found = _caption_scores(said, test.references(SCENE))
    return {ACCURACY.name: 100 * float(np.mean(right)), **{c.name: found[c.name] for c in CAPTIONS[1:]}}


def object_scores(said: dict[str, Written], test: HeldOutScenes) -> Measured:
    """Of the kinds that captions name, how many are there; of those that people tell, how many are named."""
    references = test.references(OBJECT)
    there, named, told, both = 0, 0, 0, 0
    for one, text in said.items():
        kinds = kinds_named(text.text)
        people = frozenset().union(*(kinds_named(other) for other in references[one]))
        named, told = named + len(kinds), told + len(people)
        there += len(kinds & set(test.things[one]))
        both += len(kinds & people)
    precision, recall = there / max(named, 1), both / max(told, 1)
    return {
        NAMING.name: 100 * precision,
        RECALL.name: 100 * recall,
        NAMING_F1.name: 200 * precision * recall / max(precision + recall, 1e-9),
        OBJECT_CIDER.name: _caption_scores(said, references)["CIDEr"],
    }


def _caption_scores(said: dict[str, Written], references: dict[str, list[str]]) -> Measured:
    texts = {one: text.text for one, text in said.items()}
    found: Measured = caption_scores(texts, references, ["bleu", "rouge_l", "cider"])["corpus"]
    return found


def scene_overlaps(model: Oscar, test: HeldOutScenes, scores: Measured, seed: int) -> dict[str, dict[str, float]]:
    """Table 2; its means go into `scores`."""
    looked = measure_objects(model, test.ids, test.image)
    places = [test.places[one] for one in test.ids]
    found: dict[str, dict[str, float]] = {}
    ways: dict[By, str] = {"sum": "", "mean": PER_IMAGE}
    for by, mark in ways.items():
        rng = np.random.default_rng(seed)
        table = diagnosticity(looked, places, rng, by=by, depths=DEPTHS, shuffles=test.scale.shuffles)
        for row in table.scenes:
            measures = found.setdefault(row.scene, {})
            for k, at in row.at.items():
                for name, value in (("AO", "average_overlap"), ("RBO", "rbo"), ("IoU", "iou")):
                    for kind, overlap in (("", at.found), (EVEN, at.uniform), (SHUFFLED, at.shuffled), (P, at.as_high)):
                        measures[f"{name}@{k}{mark}{kind}"] = float(getattr(overlap, value))
    for column, name in (
        (OVERLAP, "AO@5"),
        (OVERLAP_CHANCE, f"AO@5{SHUFFLED}"),
        (OVERLAP_PER_IMAGE, f"AO@5{PER_IMAGE}"),
        (OVERLAP_PER_IMAGE_CHANCE, f"AO@5{PER_IMAGE}{SHUFFLED}"),
    ):
        scores[column.name] = float(np.nanmean([one[name] for one in found.values()]))
    return found


class _Ablation:
    """Captions before and after the things that tell a place best are taken away, and as many others."""

    def __init__(self, model: Oscar, test: HeldOutScenes, before: dict[str, Written], level: str, seed: int) -> None:
        self.compared: dict[int, Comparison] = {}
        self._removals: dict[int, dict[str, Removal]] = {}
        controls: list[Comparison] = []
        rng = np.random.default_rng(seed)
        label = (
            (lambda text: named_place(text) or "")
            if level == SCENE
            else lambda text: ",".join(sorted(kinds_named(text)))
        )
        for k in ABLATED:
            chosen = qualifying(test.ids, test.image, test.places, test.informative, k).removals
            others = control_removals(chosen, test.image, rng).removals
            self._removals[k] = chosen
            for removals, kept in ((chosen, self.compared), (others, None)):
                after = write_many(
                    model, list(removals), removed(test.image, removals), level=level, how=BEAM, batch=_AT_ONCE
                )
                found = compared(before, after, label=label)
                if kept is not None:
                    kept[k] = found
                else:
                    controls.append(found)
        self._controls = controls

    @property
    def scores(self) -> Measured:
        pairs = [pair for one in self.compared.values() for pair in one.pairs]
        control = [pair.changed for one in self._controls for pair in one.pairs]
        stayed = [pair for pair in pairs if not pair.changed]
        shifts = [pair.shift for pair in stayed]
        return {
            CHANGED.name: _percent([pair.changed for pair in pairs]),
            LABEL_CHANGED.name: _percent([bool(pair.label_changed) for pair in pairs]),
            CHANGED_RANDOM.name: _percent(control),
            CONFIDENCE.name: _mean([pair.confidence_after for pair in stayed]),
            SHIFT.name: _mean(shifts),
            SHIFT_SPREAD.name: float(np.std(shifts)) if shifts else float("nan"),
            **{
                column.name: _percent([pair.changed for pair in self.compared[k].pairs])
                for k, column in zip(ABLATED, CHANGED_BY, strict=True)
            },
        }

    def shown(self) -> list[AblatedCaption]:
        """Images of which most is taken away, a few of each number of things."""
        found = []
        for k in reversed(ABLATED):
            for pair in self.compared[k].pairs[:40]:
                objects = self._removals[k][pair.id].objects
                sure = (pair.confidence_before, pair.confidence_after)
                found.append(AblatedCaption(pair.id, objects, pair.before, pair.after, *sure))
        return found


def probe_scores(model: Oscar, test: HeldOutScenes, scores: Measured) -> dict[str, dict[str, float]]:
    """Tables 4, 6 and 7 into `scores`; F1 by place of the forest at 50/50, without and with ablation."""
    removals = {one: _informative_removal(test, one) for one in test.ids}
    states = {
        "": pooled_many(model, test.ids, test.image, batch=_AT_ONCE),
        "(A)": pooled_many(model, test.ids, removed(test.image, removals), batch=_AT_ONCE),
    }
    names: dict[Any, str] = {"forest": "forest", "mlp": "MLP", "random": "chance", "majority": "commonest"}
    classes: dict[str, dict[str, float]] = {}
    for result in probe_table(states, test.probe_labels, seeds=tuple(range(test.scale.probe_seeds))):
        split = f"{round(100 * result.train_share)}/{round(100 * (1 - result.train_share))}"
        for f1 in F1S:
            column = probe_column(names[result.probe], split, f1, result.states == "(A)")
            scores[column.name] = getattr(result, f1)
        if result.probe == "forest" and split == "50/50":
            classes[result.states] = {name: score.f1 for name, score in result.classes.items()}
            if not result.states:
                scores[RARE.name] = _rare(result, test.rare)
    return classes


def _rare(result: ProbeResult, rare: Sequence[str]) -> float:
    return _mean([score.f1 for name, score in result.classes.items() if name in rare])


def _informative_removal(test: HeldOutScenes, name: str) -> Removal:
    """Everything of the things that tell the image's place best, as far as they are there."""
    return removal(test.image(name), test.informative.get(test.places[name], ()))


def _percent(flags: Sequence[bool]) -> float:
    return 100 * _mean([float(flag) for flag in flags])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
