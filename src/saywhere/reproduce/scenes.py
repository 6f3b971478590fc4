"""`saywhere reproduce scenes`: captions above objects in the world, and what changes inside the captioner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saywhere.core.errors import UnknownName
from saywhere.core.types import Progress
from saywhere.explain.region_tags import covered_regions
from saywhere.learn import load_run
from saywhere.models.oscar.task import as_oscar
from saywhere.reproduce import scenes_measure as m
from saywhere.reproduce.caption_bounds import BLIND, CEILING
from saywhere.reproduce.claims import PAPER, Claim, ClaimPlan, judge_measures, judge_plan
from saywhere.reproduce.experiment import RowPlan, TrainedExperiment, TrainingJob, by_row, titles_of
from saywhere.reproduce.results import Departure, Results
from saywhere.reproduce.scenes_bounds import scene_bounds
from saywhere.reproduce.scenes_data import LEVELS, OBJECT, SCENE, ScenesWorld, prepare_scenes_world
from saywhere.reproduce.scenes_figures import (
    AFTER,
    BEFORE,
    LONGER,
    Measured,
    informative_things,
    level_examples,
    scenes_figures,
)
from saywhere.reproduce.scenes_measure import HeldOutScenes, MeasureScale, SceneMeasures, measure_scenes
from saywhere.reproduce.tables import MeasureColumn, ModelRow, Scoreboard, Table

CONTROL = "a control that the paper does not have"
MODEL = "model"
"""Folder of a run with the network that it keeps."""


@dataclass(frozen=True, kw_only=True)
class SceneRow(RowPlan):
    """One network. taught: the levels whose captions it learns from. asked: the level at which it is measured first."""

    taught: tuple[str, ...]
    asked: str = SCENE


ALL, SCRATCH = "levels", "scratch"
_MAY_BE_LEFT_OUT = (ALL, SCRATCH)
ROWS = (
    SceneRow(key=BEFORE, title="before: captions of objects", taught=(OBJECT,), asked=OBJECT),
    SceneRow(key=AFTER, title="after: then captions of scenes", taught=(SCENE,), start=BEFORE),
    SceneRow(key=LONGER, title="control: then more captions of objects", taught=(OBJECT,), asked=OBJECT, start=BEFORE),
    SceneRow(key=ALL, title="one network for all levels", taught=LEVELS, start=BEFORE),
    SceneRow(key=SCRATCH, title="control: captions of scenes alone", taught=(SCENE,)),
)
TITLES = titles_of(ROWS)
BOUNDS = {
    BLIND: "blind: the commonest caption of training",
    CEILING: "ceiling: a simulated person's caption, against the others'",
}

_PAPER_CAPTIONS = {"BLEU-4": 0.491, "ROUGE-L": 0.677, "CIDEr": 1.680}
_PAPER_ABLATION = {BEFORE: {m.CHANGED.name: 41.0}, AFTER: {m.CHANGED.name: 13.0}}

# Table 2: average overlap and IoU at 3, 5 and 7. Two of its IoU@7, 0.18 (room) and 0.53 (restaurant), cannot be: two
# sets of seven that share m have m / (14 − m), which is 0.17, 0.27, 0.4, 0.56 …
_PAPER_SCENES = {
    "station": (0.88, 0.84, 0.87, 0.5, 0.66, 1.0),
    "street": (1.0, 0.9, 0.91, 1.0, 0.66, 1.0),
    "living room": (0.27, 0.25, 0.24, 0.2, 0.11, 0.18),
    "sea": (0.88, 0.84, 0.8, 0.5, 0.66, 0.55),
}
_PAPER_SCENE_NAMES = {"street": "road", "living room": "room"}


_PAPER_PROBES = {
    # Tables 4, 6 and 7: micro, macro, weighted; before and after, without and with ablation.
    ("forest", "90/10"): ((0.96, 0.71, 0.94), (1.0, 1.0, 1.0), (0.95, 0.69, 0.94), (0.99, 0.99, 0.99)),
    ("forest", "70/30"): ((0.94, 0.67, 0.92), (0.99, 0.97, 0.99), (0.93, 0.66, 0.91), (0.98, 0.94, 0.98)),
    ("forest", "50/50"): ((0.94, 0.67, 0.92), (0.99, 0.96, 0.99), (0.92, 0.66, 0.90), (0.98, 0.88, 0.97)),
    ("MLP", "50/50"): ((0.94, 0.67, 0.91), (0.98, 0.91, 0.98), (0.92, 0.66, 0.90), (0.98, 0.85, 0.97)),
}

CLAIMS = (
    ClaimPlan("after scene tuning attention is spread more evenly (lower std)", m.STD, AFTER, BEFORE),
    ClaimPlan("the same by normalised entropy, which does not fall with length", m.EVENNESS, AFTER, BEFORE, CONTROL),
    ClaimPlan("more evenly than after as much more training on objects", m.STD, AFTER, LONGER, CONTROL),
    ClaimPlan("scene captions change less when diagnostic things are taken away", m.CHANGED, AFTER, BEFORE),
    ClaimPlan("less than after as much more training on objects", m.CHANGED, AFTER, LONGER, CONTROL),
    ClaimPlan("captions of objects are told with more confidence", m.CONFIDENCE, BEFORE, AFTER),
    ClaimPlan("the confidence of scene captions shifts less under ablation", m.SHIFT_SPREAD, AFTER, BEFORE),
    ClaimPlan("probes find scenes better after scene tuning", m.MACRO, AFTER, BEFORE),
    ClaimPlan("… rare scenes, too", m.RARE, AFTER, BEFORE),
    ClaimPlan("… better than after as much more training on objects", m.MACRO, AFTER, LONGER, CONTROL),
    ClaimPlan("… with diagnostic things taken away, too", m.MACRO_ABLATED, AFTER, BEFORE),
    ClaimPlan("captions of objects first help scene captions", m.ACCURACY, AFTER, SCRATCH, CONTROL),
)
# Two measures of the same networks: sentence, source, what both are, and the better and the worse.
_WITHIN = (
    (
        *("scene captions rest on frequent things more than shuffled attention would", PAPER, MeasureColumn("AO@5")),
        {"attention after tuning": m.OVERLAP, "shuffled within each image": m.OVERLAP_CHANCE},
    ),
    (
        *("… also by attention per image, which frequency does not raise", CONTROL, MeasureColumn("AO@5, per image")),
        {"attention per image": m.OVERLAP_PER_IMAGE, "shuffled within each image": m.OVERLAP_PER_IMAGE_CHANCE},
    ),
    (
        *("attention gathers on [SEP] in higher layers", PAPER, MeasureColumn("attention to [SEP]")),
        {"the last layer": m.SEP_LAST, "the first layer": m.SEP_FIRST},
    ),
    (
        "taking diagnostic things away costs the probe something",
        *(CONTROL, MeasureColumn("F1 of the forest, 50/50, macro")),
        {"all things there": m.MACRO, "without them": m.MACRO_ABLATED},
    ),
)
_LIMITS = (
    "The world is drawn: it tests the reasoning of the paper, not photographs. Tags are things of a scene with their "
    "boxes, some missed and some misnamed; regions lie nearly there, some missed, with nine windows beside them, seen "
    "by an eye that learnt to name things. Captions of objects do not name the place, so that its name is learnt from "
    "scene captions alone.",
    "Networks learn every word of a caption at once, each from its own [MASK] that sees the words before it, which "
    "is what is asked of them when they write; hiding at most 3 words a caption, as the paper does, learns the "
    "same more slowly. Captions are written with 5 beams, at most 20 words.",
    "Attention is that of the first layer, the largest share over heads. Standard deviations fall when inputs are "
    "longer; both networks read the same images, so that they can be compared here. Evenness is entropy over that "
    "of equal shares.",
    "AO is average overlap, which the paper calls RBO with p = 1; RBO here has p = 0.9. Summed attention favours "
    "what occurs often: beside it stands what attention shuffled within each image gives, and the mean of attention "
    "over the images with a thing, which frequency does not raise. Two of the paper's IoU@7 cannot be.",
    "That attention gathers on [SEP] is said of 12 layers; with few layers this says little.",
    "Ablated: the one, two or three things with the highest mutual information with the place, in images that have "
    "all of them; tag and regions become [PAD]. “Random things” are as many others of the same image.",
)


@dataclass(frozen=True, slots=True)
class ScenesScale:
    """How long networks learn, and their shape. steps: of captions of objects. tuning: of what comes after, or of
    captions of scenes alone. every_word: learn from every word of a caption at once, not from at most 3 hidden ones."""

    steps: int = 1200
    tuning: int = 400
    batch: int = 48
    lr: float = 1e-3
    tuning_lr: float = 5e-4
    width: int = 128
    layers: int = 3
    heads: int = 4
    dropout: float = 0.1
    every_word: bool = True
    measure: MeasureScale = field(default_factory=MeasureScale)


@dataclass(frozen=True, kw_only=True)
class ScenesExperiment(TrainedExperiment[SceneRow, SceneMeasures]):
    """shown: examples in the report. left_out: keys of rows that are not trained."""

    world: ScenesWorld = field(default_factory=ScenesWorld)
    scale: ScenesScale = field(default_factory=ScenesScale)
    shown: int = 8
    left_out: tuple[str, ...] = ()
    measured_as: ClassVar[Any] = SceneMeasures
    decides_from: ClassVar[int] = 3

    def __post_init__(self) -> None:
        for key in self.left_out:
            if key not in _MAY_BE_LEFT_OUT:
                raise UnknownName("row to leave out", key, _MAY_BE_LEFT_OUT)

    @classmethod
    def quick(cls, **changes: Any) -> ScenesExperiment:
        """A few minutes: one seed, little of everything. It shows that everything runs, and decides nothing."""
        world = ScenesWorld(train=700, validation=60, test=200, eye_scenes=300, eye_steps=80)
        few = MeasureScale(attended=60, rare_images=4, probe_seeds=1, shuffles=99)
        scale = ScenesScale(steps=400, tuning=150, measure=few)
        return cls(seeds=(0,), world=world, scale=scale, shown=4, is_quick=True, **changes)

    def settings(self) -> dict[str, Any]:
        without = {"left_out": self.left_out} if self.left_out else {}
        return {"seeds": self.seeds, "world": self.world, "run": self.scale, **without}

    def departures(self) -> list[Departure]:
        scale, world = self.scale, self.world
        noise = f"{100 * world.missed:.0f} % missed and {100 * world.misnamed:.0f} % of tags misnamed"
        learnt = "every word at once, each from its own [MASK]" if scale.every_word else "at most 3 hidden words"
        return [
            Departure("images", "drawn scenes", "COCO photographs; scene captions of HL"),
            Departure("regions and tags", f"things' true boxes and names, {noise}; nine windows", "VinVL's detector"),
            Departure("network", f"{scale.layers} layers of width {scale.width}, from nothing", "VinVL, pre-trained"),
            Departure("captions learnt from", learnt, "15 % of words hidden, at most 3"),
            Departure("tuning", f"{scale.tuning:,} steps of {scale.batch}", "10 epochs of 32"),
            Departure("seeds", str(len(self.seeds)), "not stated"),
        ]

    def jobs(self, out: Path, progress: Progress) -> list[TrainingJob[SceneRow]]:
        prepare_scenes_world(out / "data", self.world, progress)
        rows = [row for row in ROWS if row.key not in self.left_out]
        return self.jobs_of(rows, out / "data", out / "runs")

    def recipe(self, job: TrainingJob[SceneRow]) -> dict[str, Any]:
        scale, levels = self.scale, list(job.row.taught)
        model: dict[str, Any] = {"levels": levels, "every_word": scale.every_word}
        model |= {"dropout": scale.dropout, "attention_dropout": 0.0}
        if job.start is None:
            sizes = {"width": scale.width, "layers": scale.layers, "heads": scale.heads}
            model |= {**sizes, "feed_forward": 4 * scale.width}
        else:
            model["start"] = str(job.start / MODEL)
        return {
            "task": "oscar",
            "model": model,
            "data": {"folder": str(job.data), "levels": levels},
            "train": {
                "steps": scale.steps if job.row.key == BEFORE else scale.tuning,
                "batch_size": scale.batch,
                "lr": scale.lr if job.start is None else scale.tuning_lr,
                "weight_decay": 0.05,
                "clip_norm": 1.0,
            },
            "validate": {"mode": "min"},
        }

    def measure(self, job: TrainingJob[SceneRow]) -> SceneMeasures:
        model = as_oscar(load_run(job.folder, "best").model).eval()
        model.save_pretrained(job.folder / MODEL)
        test = HeldOutScenes.of(job.data, self.scale.measure)
        return measure_scenes(model, test, job.row.taught, job.row.asked, job.seed)

    def compare(
        self, out: Path, measured: Mapping[TrainingJob[SceneRow], SceneMeasures], progress: Progress
    ) -> Results:
        progress("drawing", 0, 1)
        test, found = HeldOutScenes.of(out / "data", self.scale.measure), by_row(measured)
        bounds = {(key, s): scores for key, scores in scene_bounds(test).items() for s in self.seeds}
        scored = {name: one.scores for name, one in found.items()} | bounds
        board = Scoreboard(TITLES | BOUNDS, self.seeds, scored)
        seed = self.seeds[0]
        models = {key: out / "runs" / f"{key}-{seed}" / MODEL for key in (BEFORE, AFTER)}
        best = informative_things(found[AFTER, seed])
        results = Results(
            title="Scenes: captions above objects, and what changes inside",
            paper="Understanding Cross-modal Interactions in V&L Models that Generate Scene Descriptions (UM-IoS 2022)",
            settings=self._facts(test, found[AFTER, seed]),
            made_by={"data": test.folder.fingerprint},
            tables=tuple(scenes_tables(board, found)),
            claims=tuple(scenes_claims(board)),
            remarks=(
                *(*_asked(board), *_LIMITS),
                f"Things that tell a place best (the paper's Table 3): {best}.",
                "The probe reads mean states of the last layer, without a caption. Rare places are cut to "
                f"{self.scale.measure.rare_images} images each, so that of 50/50 it learns from half as many.",
            ),
            figures=tuple(scenes_figures(self.seeds, found, test, models)),
            levels=tuple(level_examples(out, test, found, seed, self.shown)),
        )
        progress("drawing", 1, 1)
        return results

    def _facts(self, test: HeldOutScenes, first: SceneMeasures) -> dict[str, Any]:
        scale, folder = self.scale, test.folder
        covered = covered_regions(test.ids, test.image).mean
        taken = ", ".join(f"{first.taken_part[str(k)]:,} without {k}" for k in m.ABLATED)
        return {
            "seeds": len(self.seeds),
            "images": f"{self.world.train:,} to learn from, {len(test.ids):,} to test",
            "captions to learn from": ", ".join(
                f"{len(folder.split('train', [level])):,} of {level}s" for level in folder.levels
            ),
            "network": f"{scale.layers} layers of width {scale.width}, {scale.heads} heads",
            "steps": f"{scale.steps:,} on captions of objects, {scale.tuning:,} of tuning, {scale.batch} captions each",
            "regions with a tag": f"{100 * covered:.0f} % (the paper: 74 %)",
            "images that lose things": taken,
            "rare places of the probe": ", ".join(test.rare),
        }


def _asked(board: Scoreboard) -> list[str]:
    """The two numbers that this experiment was asked for."""
    place = board.mean(AFTER, m.ACCURACY.name)
    said = [f"Scene captions name the true place in {place:.1f} % of test images (asked: 95 %)."]
    if _there([ALL], board):
        naming = {key: board.mean(key, m.NAMING.name) for key in (BEFORE, ALL)}
        said.append(
            f"Those of the one network for all levels do in {board.mean(ALL, m.ACCURACY.name):.1f} %. Asked for "
            f"objects, it names things that are there in {naming[ALL]:.1f} % of its words for things; the network "
            f"before tuning in {naming[BEFORE]:.1f} %: {naming[BEFORE] - naming[ALL]:+.1f} points lost (asked: at most "
            "2). The paper's way keeps two networks, and loses nothing at either level."
        )
    return said


def scenes_claims(board: Scoreboard) -> list[Claim]:
    """The paper's claims and their controls, judged over seeds."""
    within = (judge_measures(text, measure, sides, AFTER, board, source) for text, source, measure, sides in _WITHIN)
    plans = [plan for plan in CLAIMS if len(_there([plan.better, plan.worse], board)) == 2]
    return [*(judge_plan(plan, board) for plan in plans), *within]


def _there(keys: Iterable[str], board: Scoreboard) -> list[str]:
    """Those of the rows that were trained."""
    return [key for key in keys if (key, board.seeds[0]) in board.scores]


def _told(board: Scoreboard) -> list[str]:
    """Rows of captions of scenes, with what bounds them."""
    return _there([AFTER, ALL, SCRATCH, *BOUNDS], board)


def scenes_tables(board: Scoreboard, found: Measured) -> list[Table]:
    """In the paper's order: captions, attention, diagnosticity, ablation, probes."""
    attention = _there(TITLES, board)
    tables = [
        board.table(1, "captions of scenes", m.CAPTIONS, _told(board), {AFTER: _PAPER_CAPTIONS}),
        board.table(0, "captions of objects", m.OBJECTS, _there([BEFORE, LONGER, ALL], board)),
    ]
    for measure in ("std", "evenness", "mass"):
        columns = [column for column in m.ATTENTION if column.name.startswith(measure)]
        title = f"attention in the first layer: {measure}"
        # More attention is neither better nor worse.
        tables.append(board.table(0, title, columns, attention, compete=measure != "mass"))
    return [
        *tables,
        *(_scene_table(board.seeds, found, key) for key in (AFTER, BEFORE)),
        board.table(0, "captions after things are taken away", m.ABLATION, attention, _PAPER_ABLATION),
        *(_probe_table(probe, split, board) for probe in ("forest", "MLP") for split in reversed(m.SPLITS)),
    ]


_CHANCES = {
    "mean over places": "",
    "… if attention were even": m.EVEN,
    "… if it were shuffled within each image": m.SHUFFLED,
    "… share of shuffles that reach it (p)": m.P,
    "mean over places, of attention per image": m.PER_IMAGE,
    "… if it were shuffled": m.PER_IMAGE + m.SHUFFLED,
    "… share of shuffles that reach that (p)": m.PER_IMAGE + m.P,
}


def _scene_table(seeds: Sequence[int], found: Measured, key: str) -> Table:
    """One row for each place: the most attended things against the most frequent ones."""
    printed = [column.name for column in m.DIAGNOSTIC if not column.name.startswith("RBO")]
    rows = []
    for place in found[key, seeds[0]].scenes:
        measured = tuple(found[key, seed].scenes[place] for seed in seeds)
        given = _PAPER_SCENES.get(place, ()) if key == AFTER else ()
        called = _PAPER_SCENE_NAMES.get(place)
        name = f"{place} (the paper's {called})" if called and given else place
        rows.append(ModelRow(name, measured, dict(zip(printed, given, strict=False))))
    if key == AFTER:
        for name, kind in _CHANCES.items():
            rows.append(ModelRow(name, tuple(_means(found[key, seed], kind) for seed in seeds)))
    title = f"most attended against most frequent things, {'after' if key == AFTER else 'before'} scene tuning"
    number = 2 if key == AFTER else 0
    return Table(number, title, m.DIAGNOSTIC, tuple(rows), rows_are="Scene", compete=False)


def _means(found: SceneMeasures, kind: str) -> dict[str, float]:
    """Means over those places where a measure is known."""
    values = {column.name: [one[column.name + kind] for one in found.scenes.values()] for column in m.DIAGNOSTIC}
    known = {name: [value for value in some if not np.isnan(value)] for name, some in values.items()}
    return {name: sum(some) / len(some) if some else float("nan") for name, some in known.items()}


def _probe_table(probe: str, split: str, board: Scoreboard) -> Table:
    paper = _PAPER_PROBES.get((probe, split), ((), (), (), ()))
    given = dict(zip([(BEFORE, False), (AFTER, False), (BEFORE, True), (AFTER, True)], paper, strict=True))
    rows = [
        _probed(
            TITLES[key] + (", ablated" if ablated else ""), probe, split, ablated, key, board, given.get((key, ablated))
        )
        for ablated in (False, True)
        for key in _there([BEFORE, AFTER, LONGER, SCRATCH], board)
    ]
    chance = (0.16, 0.12, 0.16) if (probe, split) == ("forest", "50/50") else None
    rows.append(_probed("labels drawn by chance", "chance", split, False, BEFORE, board, chance))
    rows.append(_probed("always the commonest place", "commonest", split, False, BEFORE, board, None))
    name = {"forest": "a random forest", "MLP": "an MLP"}[probe]
    columns = tuple(MeasureColumn(f"{f1}-F1", digits=2) for f1 in m.F1S)
    number = {"forest": 7, "MLP": 6}[probe] if any(paper) else 0
    return Table(number, f"{name} tells the place from mean states, {split}", columns, tuple(rows))


def _probed(
    title: str, probe: str, split: str, ablated: bool, key: str, board: Scoreboard, paper: Sequence[float] | None
) -> ModelRow:
    names = {f"{f1}-F1": m.probe_column(probe, split, f1, ablated).name for f1 in m.F1S}
    measured = tuple({shown: one[name] for shown, name in names.items()} for one in board.row(key).scores)
    return ModelRow(title, measured, dict(zip(names, paper or (), strict=False)))
