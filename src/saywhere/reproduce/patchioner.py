"""`saywhere reproduce patchioner`: a model on photos that no training saw, in the form of Patch-ioner's tables.

Nothing is learnt anew but the diffusion bridge. Each photo is looked at once; looks and the bridge are kept in the
output folder, so a second run needs only to write and to score.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core import InvalidValue
from saywhere.core.types import Progress
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.seer import Seer
from saywhere.plots.gallery import gallery_page
from saywhere.reproduce import patchioner_looks as looks
from saywhere.reproduce import patchioner_measure as m
from saywhere.reproduce.caption_bounds import BLIND, CEILING, caption_bounds
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.reproduce.claims import DRAWS, Claim, judge_photos
from saywhere.reproduce.class_naming import SMALL, pointing_measures
from saywhere.reproduce.experiment import Experiment
from saywhere.reproduce.patchioner_data import HeldOut, listed_photos, read_held_out
from saywhere.reproduce.patchioner_looks import LookResults, TaskVectors
from saywhere.reproduce.patchioner_measure import CaptionRows, Key, Task, own_gap, references_of
from saywhere.reproduce.patchioner_pages import narration_examples, shown_photos
from saywhere.reproduce.patchioner_paper import AGGREGATION, MEMORY, MITIGATION, NOT_RUN, NUMBERS
from saywhere.reproduce.results import Departure, Results
from saywhere.reproduce.tables import MeasureColumn, ModelRow, Table

_QUICK_PHOTOS, _QUICK_BRIDGE_STEPS = 60, 300
PHOTOS_PAGE = "photos.html"
BEAMS = 5
LBM = "LBM (k=0)"
_CAPTION_MEASURES = ("BLEU-4", "METEOR", "ROUGE-L", m.CIDER, "scene-graph F")
_TITLES: Mapping[Task, str] = {
    "images": "whole photos",
    "boxes": "true boxes",
    "sets": "sets of boxes (COCO Entities)",
}
_REMARKS = (
    "Measures are in %, CIDEr as papers print it.",
    f"Pairs are of the same photo, and there is one run, no seed: intervals come from {DRAWS:,} draws of whole "
    "photos, with all that is on them, put back after each draw.",
    "The text-only writer of saywhere-base learnt on vectors moved across the measured gap, which is noise of a kind. "
    f"So the row “{m.NOTHING}” is like the paper's noise, and its “no mitigation” is not run here.",
    "Claims are about the first writer, which reads vectors alone, as the paper's does. A writer that attends to "
    "photos learnt from photos with their captions; it reads their hidden states in every row.",
    f"“{looks.AS_MODEL}”: an eye whose vectors are those of texts already has one of its own for the whole photo; with "
    "an alignment it is the mean of patches.",
    "The bridge learnt on the memory's texts; the mean of the images that it needs is that of these photos, "
    "without their captions.",
    "Beside the whole photo's caption for sets of boxes stands the paper's row of the CLS token; ours is the photo "
    f"{looks.AS_MODEL}.",
    "Boxes have no human captions here; a caption is right if it names the box's class by any usual name.",
    "Attention is where the eye takes people to look, or what its class token attends to, as the paper has it; of an "
    "eye that gives neither such rows are left out. Crops, which need a look for each box, stand in the report of "
    "`saywhere reproduce dense`.",
    "Trace captioning is left out: the real narrations at hand have no marks that part their sentences, and no "
    "coordinates. A pseudo-trace is made of the boxes of the class that the mouse was on; nobody drew it.",
    "RefPAC-S and CLIP-S are left out: they need weights of CLIP. So is SPICE; the scene-graph F is of its kind.",
)


@dataclass(frozen=True, kw_only=True)
class PatchionerExperiment(Experiment):
    """seers: the model, by its writer's name; they share eyes and memory; text-only writers come first. data: see
    `patchioner_data`.

    photos: a list instead of the package's own. limit: of photos. bridge_steps: how long the diffusion bridge learns; 0
    leaves it out. shown: photos on the page with captions.
    """

    seers: Mapping[str, Seer]
    data: Path
    photos: Path | None = None
    limit: int | None = None
    bridge_steps: int = 1500
    shown: int = 8

    def __post_init__(self) -> None:
        if not self.seers:
            raise InvalidValue("seers", "there are none")
        if min(self.bridge_steps, self.shown) < 0 or (self.limit is not None and self.limit < 1):
            raise InvalidValue("plan", f"{self.bridge_steps} steps, {self.shown} photos shown, limit {self.limit}")
        object.__setattr__(self, "seers", m.text_only_first(self.seers))

    @classmethod
    def quick(cls, *, limit: int | None = None, **changes: Any) -> PatchionerExperiment:
        """Few photos and a short bridge: it shows that everything runs."""
        few = min(limit or _QUICK_PHOTOS, _QUICK_PHOTOS)
        return cls(limit=few, bridge_steps=_QUICK_BRIDGE_STEPS, is_quick=True, **changes)

    def plan(self) -> dict[str, Any]:
        asked = {
            "photos": self.photos and self.photos.name,
            "limit": self.limit,
            "bridge_steps": self.bridge_steps,
            "shown": self.shown,
        }
        return {"data": self.data.name, "writers": [*self.seers], **asked, "draws of photos": DRAWS, "beams": BEAMS}

    def departures(self) -> list[Departure]:
        seer = next(iter(self.seers.values()))
        encoder = looks.eyes_of(seer).encoder.fingerprint
        return [
            Departure("encoder", str(encoder.get("name", encoder)), "DINOv2-reg ViT-B/14 at 518 px with Talk2DINO"),
            Departure("memory", f"{len(m.writer_of(seer).bank):,} sentences", "566,747 captions of COCO train"),
            Departure("writers", ", ".join(self.seers), "DeCap's decoder of 4 layers, learnt from text alone"),
            Departure("photos", "held-out COCO val2017, at most 384 px", "COCO Karpathy test; Visual Genome for boxes"),
            Departure("captions of boxes", "judged by the class that they name", "mAP and CIDEr on Visual Genome"),
        ]

    def results(self, out: Path, progress: Progress) -> Results:
        began_s = time.monotonic()
        seer = next(iter(self.seers.values()))
        held = read_held_out(self.data, listed_photos(self.photos), self.limit)
        with_states = any(m.attends(one) for one in self.seers.values())
        looked = looks.look_at(held, seer, out / "views", progress, with_states=with_states)
        found = m.recalls(held, looked.contrasts, seer, progress)
        bridge = (
            m.bridge_for(m.writer_of(seer).bank, looked, out / "bridge", self.bridge_steps, progress)
            if self.bridge_steps
            else None
        )
        lbm = m.distances(looked.traced, held.narrations) if held.narrations else {}
        with ExitStack() as stack:
            metrics: dict[Task, CaptionMetrics] = {
                task: stack.enter_context(CaptionMetrics(references_of(of))) for task, of in _referred(looked).items()
            }
            answers = CaptionRows(looked, self.seers, m.gaps(seer, bridge), metrics, progress)
            tables = [*mitigation_tables(answers), *aggregation_tables(answers)]
            tables += bounds_table(held, m.writer_of(seer).bank)
            tables += further_tables(answers, held, found, m.named_by_vector(looked.boxes, seer), lbm)
            judged = claims(answers, held, lbm)
        with write_atomic(out / "captions.json") as file:
            file.write(msgspec.json.format(msgspec.json.encode(answers.captions_made)))
        shown = shown_photos(held, seer, looks.remembering(seer, out / "views"), self.shown)
        gallery_page(shown, out / PHOTOS_PAGE, "Captions of true boxes", f"by {seer.name}")
        no_sets = ["Sets of boxes are left out: there are no entities of these photos beside the data folder."]
        missing = dict.fromkeys(reason for one in metrics.values() for reason in one.missing)
        return Results(
            title="Patch-ioner's tables on photos that no training saw",
            paper="One Patch to Caption Them All: A Unified Zero-Shot Captioning Framework (2025)",
            settings={**self._facts(held, looked), "minutes": round((time.monotonic() - began_s) / 60, 1)},
            made_by={},
            tables=tuple(tables),
            claims=tuple(judged),
            examples=tuple(narration_examples(held, looked, seer)),
            remarks=(*_REMARKS, *(no_sets if held.sets is None else ()), *missing),
            paired="Pairs are of the same item; intervals come from drawing whole photos again.",
        )

    def _facts(self, held: HeldOut, looked: LookResults) -> dict[str, Any]:
        seer = next(iter(self.seers.values()))
        regions = len(looked.boxes.task.items) + (len(looked.sets.task.items) if looked.sets is not None else 0)
        return {
            "model": seer.name,
            "writers": [*self.seers],
            "encoder": dict(looks.eyes_of(seer).encoder.fingerprint),
            "gap, as shipped": own_gap(seer),
            "sentences of the memory": len(m.writer_of(seer).bank),
            "least cosine to be found": float(seer.grounding.least_cosine),
            "steps of the bridge": self.bridge_steps,
            "looks in this run": f"{looked.looks:,} for {len(held.photos):,} photos and {regions:,} regions",
            "data": held.counts,
        }


_BOUNDS = {
    BLIND: "blind: the sentence in the middle of the memory",
    CEILING: "ceiling: one person's caption",
}


def _referred(looked: LookResults) -> dict[Task, TaskVectors]:
    """The tasks for which people wrote captions."""
    found: dict[Task, TaskVectors] = {"images": looked.images}
    if looked.sets is not None:
        found["sets"] = looked.sets
    return found


def tasks_of(answers: CaptionRows) -> tuple[Task, ...]:
    return ("images", "boxes") if answers.looked.sets is None else ("images", "boxes", "sets")


def mitigation_tables(answers: CaptionRows) -> list[Table]:
    """Table 10, a task each: every gap with every writer."""
    tables = []
    for task in tasks_of(answers):
        printed = MITIGATION[task]
        first = next(iter(answers.seers))
        rows = [
            ModelRow(f"{writer} writer · {gap}", (answers.scores(Key(task, writer, gap)),), paper)
            for writer in answers.seers
            for gap in answers.ways
            for paper in [printed.get(gap, {}) if writer == first else {}]
        ]
        rows = [ModelRow(NOT_RUN, (), printed["none"]), *rows] if printed else rows
        tables.append(
            Table(10, f"Closing the gap: captions of {_TITLES[task]}, greedy", _columns(task, rows), tuple(rows))
        )
    return tables


def aggregation_tables(answers: CaptionRows) -> list[Table]:
    """Tables 9, 7 and 8: every way of weighing patches, with the gap closed as the model does it."""
    ways = {task: [*answers.vectors(task).vectors] for task in tasks_of(answers)}
    for task in ways:
        ways[task] += [m.INSTEAD] if task != "images" else []
    tables = []
    writer, seer = next(iter(answers.seers.items()))
    for task in ways:
        rows = [
            ModelRow(way, (answers.scores(Key(task, writer, own_gap(seer), way)),), AGGREGATION[task].get(way, {}))
            for way in ways[task]
        ]
        title = f"Weighing patches: captions of {_TITLES[task]}, {writer} writer, greedy"
        tables.append(Table(NUMBERS[task], title, _columns(task, rows), tuple(rows)))
    return tables


def _columns(task: Task, rows: Sequence[ModelRow]) -> tuple[MeasureColumn, ...]:
    if task == "boxes":
        return MeasureColumn(m.NAMES), MeasureColumn(m.NAMES_OTHERS)
    taken = {name for row in rows for scores in row.scores for name in scores}
    return tuple(MeasureColumn(name) for name in _CAPTION_MEASURES if name in taken)


def further_tables(
    answers: CaptionRows,
    held: HeldOut,
    found: Mapping[str, float],
    classes: Mapping[str, float],
    lbm: Mapping[str, NDArray[np.float64]],
) -> list[Table]:
    """What the paper does not measure. found: R@k. classes: zero-shot classes of boxes. lbm: of each narration."""
    photos, seers = len(held.photos), answers.seers
    name = next(iter(seers.values())).name
    chance = {f"R@{k}": 100 * min(1.0, k / photos) for k in (1, 5, 10)}
    captions = held.counts["captions"]
    tables = [
        _table(
            12, f"a photo found by a caption; {captions:,} captions, {photos:,} photos", {name: found, "chance": chance}
        ),
        _table(13, f"the class of {held.counts['boxes']:,} true boxes by their vectors, among 80", {name: classes}),
        _table(14, "naming the class in the caption of a true box, as shipped", _naming(answers)),
        _pointing(answers, held, name),
        _table(16, "captions of whole photos, by the way to choose words; the gap closed as shipped", _beams(answers)),
    ]
    if lbm:
        rows = {name if who == looks.FOUND else who: {LBM: float(values.mean())} for who, values in lbm.items()}
        about = f"distance to the pseudo-traces of {len(held.narrations):,} real narrations, given their words"
        tables.append(_table(17, about, rows, lower=True))
    return tables


def bounds_table(held: HeldOut, bank: MemoryBank) -> list[Table]:
    """What bounds captions of whole photos: the sentence in the middle of the memory, and a person."""
    vectors = np.asarray(bank.vectors, dtype=np.float32)
    central = bank.sentences[int(np.argmax(vectors @ vectors.mean(axis=0)))]
    told = {item.item_id: item.references for item in held.images.items}
    rows = {_BOUNDS[key]: scores for key, (_, scores) in caption_bounds(central, told).items()}
    return (
        [_table(0, "what bounds captions of whole photos, scored against the other references", rows)] if rows else []
    )


def _table(number: int, about: str, rows: Mapping[str, Mapping[str, float]], lower: bool = False) -> Table:
    columns = tuple(
        MeasureColumn(measure, lower) for measure in dict.fromkeys(name for scores in rows.values() for name in scores)
    )
    made = tuple(ModelRow(name, (dict(scores),)) for name, scores in rows.items())
    return Table(number, f"Not in the paper: {about}", columns, made)


def _naming(answers: CaptionRows) -> dict[str, dict[str, float]]:
    rows = {}
    for writer, seer in answers.seers.items():
        gap = own_gap(seer)
        rows[f"{writer} writer, captions of boxes"] = answers.scores(Key("boxes", writer, gap, beams=m.OWN))
        rows[f"{writer} writer, {m.INSTEAD}"] = answers.scores(Key("boxes", writer, gap, m.INSTEAD, m.OWN))
    return rows


def _pointing(answers: CaptionRows, held: HeldOut, name: str) -> Table:
    measures = pointing_measures(answers.looked.pointed, held.class_boxes)
    few = f"(covers < {SMALL:.0%})"
    own = {kind: 100 * measures[f"pointing{kind}"] for kind in ("", " (non-person)", f" {few}")}
    centre = {kind: 100 * measures[f"centre of the photo{kind}"] for kind in ("", f" {few}")}
    rows = {
        who: {f"pointing{kind}": value for kind, value in values.items() if np.isfinite(value)}
        for who, values in ((name, own), ("the centre of the photo", centre))
    }
    total, small = measures["classes on photos"], measures[f"classes on photos {few}"]
    return _table(
        15, f"pointing at {total:,.0f} classes on photos by their names; {small:,.0f} cover < {SMALL:.0%}", rows
    )


def _beams(answers: CaptionRows) -> dict[str, dict[str, float]]:
    return {
        f"{writer} writer, {m.beams_title(beams)}": {
            measure: value
            for measure, value in answers.scores(Key("images", writer, own_gap(seer), beams=beams)).items()
            if measure in _CAPTION_MEASURES
        }
        for writer, seer in answers.seers.items()
        for beams in (1, BEAMS, m.OWN)
    }


def claims(answers: CaptionRows, held: HeldOut, lbm: Mapping[str, NDArray[np.float64]]) -> list[Claim]:
    """The paper's claims for the first writer, and those about pointing, which are ours."""
    writer, seer = next(iter(answers.seers.items()))
    gap = own_gap(seer)
    made = []
    for task in tasks_of(answers):
        closed, left = Key(task, writer, MEMORY), Key(task, writer, m.NOTHING)
        made.append(_claim(answers, f"A memory helps beyond noise alone: {_TITLES[task]} (Table 10)", closed, left))
        if m.BRIDGE in answers.ways:
            text = f"A diffusion bridge helps more than a memory: {_TITLES[task]} (Table 2)"
            made.append(_claim(answers, text, Key(task, writer, m.BRIDGE), closed))
        if task != "images":
            text = f"Patches of the region say more about it than the whole photo: {_TITLES[task]} (Tables 2 and 8)"
            made.append(_claim(answers, text, Key(task, writer, gap), Key(task, writer, gap, m.INSTEAD)))
    pairs: list[tuple[str, Task, str, str]] = [
        ("The mean of all patches says more than the central patch (Table 9)", "images", "uniform", "central patch"),
        (
            "Patches weighed by a Gaussian say more than their mean: whole photos (Table 9)",
            "images",
            "gaussian",
            "uniform",
        ),
        ("Patches weighed by a Gaussian say more than their mean: boxes (Table 7)", "boxes", "gaussian", "touch"),
    ]
    if looks.ATTENTION in answers.vectors("images").vectors:
        text = "Patches weighed by attention say more than by a Gaussian: whole photos (Table 9)"
        pairs.append((text, "images", looks.ATTENTION, "gaussian"))
    for text, task, better, worse in pairs:
        made.append(_claim(answers, text, Key(task, writer, gap, better), Key(task, writer, gap, worse)))
    photos = [one.image_id for one in held.narrations]
    for who, values in lbm.items():
        if who != looks.FOUND:
            text = f"Words are found nearer to their pseudo-boxes than by {who} (not a claim of the paper)"
            made.append(judge_photos(text, LBM, seer.name, who, values - lbm[looks.FOUND], photos))
    return made


def _claim(answers: CaptionRows, text: str, better: Key, worse: Key) -> Claim:
    others = better.task == "boxes"
    high, photos = answers.each(better, others=others)
    low, _ = answers.each(worse, others=others)
    names = (better.gap, worse.gap) if better.gap != worse.gap else (better.way, worse.way)
    return judge_photos(text, m.NAMES_OTHERS if others else m.CIDER, *names, high - low, photos)
