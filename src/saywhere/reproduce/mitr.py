"""`saywhere reproduce mitr`: the tables of MITR, trained anew in the world, and a verdict for each claim."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Progress
from saywhere.learn import Validated, read_log
from saywhere.learn.mitr_evaluation import MitrOutputs
from saywhere.models.mitr.batch import GUIDED_BOXES
from saywhere.models.mitr.prepared import Prepared
from saywhere.reproduce.caption_metrics import COLUMNS as CAPTION
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.reproduce.claims import ClaimPlan, judge_plan
from saywhere.reproduce.experiment import TrainingJob, titles_of, training_minutes
from saywhere.reproduce.mitr_bounds import BLIND, CEILING, blind_scores, ceiling_scores
from saywhere.reproduce.mitr_data import GUIDED_FROM, MitrWorld, is_world, prepare_guided, prepare_world
from saywhere.reproduce.mitr_measure import LBM, MitrRow, MitrScale, MitrTraining, Scores, narrative_of
from saywhere.reproduce.results import Departure, Example, Results
from saywhere.reproduce.tables import MeasureColumn, Scoreboard

PAPER = "Connecting What to Say With Where to Look by Modeling Human Attention Traces (CVPR 2021)"
_EXAMPLES = 4
_CIDER, _BLEU4 = (next(c for c in CAPTION if c.name == name) for name in ("CIDEr", "BLEU-4"))
_LIMITS = (
    "The world is drawn and its narrators are simulated: this tests the paper's reasoning, not photographs.",
    "Regions are the true boxes of all things, as from a detector that misses nothing; their features come from a "
    "small eye that learnt to name patches and then stayed as it is.",
    "Traces in these pictures run smoothly through the predicted boxes with even timing; models predict boxes, not "
    "points.",
    "SPICE is not computed: its Java tool is not to be had everywhere. The scene-graph F-score is another measure.",
)
_ABOUT_GUIDED = (
    "Guided captions are of the same scenes as the narratives; the boxes are those of the things that a caption tells "
    f"of, in its order, filled up to {GUIDED_BOXES} by the whole image whatever its length. Each is compared with the "
    "one caption that its boxes were taken from.",
    "The pre-trained row made as many steps as the others after its pre-training, so it learnt for twice as long.",
)


def _learns(trace: float = 0, caption: float = 0, cycle: float = 0, joint: float = 0, **more: Any) -> dict[str, Any]:
    return {"trace": trace, "caption": caption, "cycle": cycle, "joint": joint, **more}


def _paper(captions: Sequence[float] = (), lbm: Sequence[float] = ()) -> dict[str, float]:
    """captions: BLEU-1, BLEU-4, METEOR, ROUGE-L, CIDEr. The paper's SPICE is another measure than ours, so it is not
    here."""
    printed = ((CAPTION, captions), (LBM, lbm))
    return {column.name: value for columns, values in printed for column, value in zip(columns, values, strict=False)}


BOUNDS = {
    BLIND: "blind: each word's mean box, the commonest narration",
    CEILING: "ceiling: simulated narrators, for Task 1 the median of 15",
}
_FASTER = "of a pre-trained Faster R-CNN"
_BOTH = ("trace", "caption")
_GUIDED = _learns(caption=1, guided=GUIDED_BOXES)


def _both(
    key: str, title: str, captions: Sequence[float], lbm: Sequence[float], caption: float = 0.3, **more: Any
) -> MitrRow:
    """A row that learns Tasks 1 and 2."""
    model = _learns(trace=1, caption=caption, **more)
    return MitrRow(key=key, title=title, model=model, tests=_BOTH, paper=_paper(captions, lbm))


def _one(key: str, title: str, model: dict[str, Any], test: str, paper: dict[str, float], **more: Any) -> MitrRow:
    """A row with one test."""
    return MitrRow(key=key, title=title, model=model, tests=(test,), paper=paper, guided=test == "guided", **more)


_CYCLE_B = "task12-cycle-b"
_SEEN = {"trace_mask_rate": 0.0}
_ROWS = (
    _one("baseline-trace", "Baseline, Task 1", {"baseline": "trace"}, "trace", _paper(lbm=(0.208, 0.204))),
    _one(
        *("baseline-caption", "Baseline, Task 2", {"baseline": "caption"}, "caption"),
        _paper((0.563, 0.255, 0.240, 0.453, 0.997)),
    ),
    _one(
        *("baseline-describe", "Baseline, image to caption", {"baseline": "describe"}, "joint"),
        _paper((0.355, 0.087, 0.155, 0.307, 0.310)),
    ),
    _one("task1", "MITR, Task 1", _learns(trace=1), "trace", _paper(lbm=(0.171, 0.159))),
    # As published, with the boxes before in view; the rows above hide as many as the scale says.
    _one("baseline-trace-seen", "Baseline, Task 1", {"baseline": "trace", **_SEEN}, "trace", {}),
    _one("task1-seen", "MITR, Task 1", _learns(trace=1, **_SEEN), "trace", {}),
    _one("task2", "MITR, Task 2", _learns(caption=0.3), "caption", _paper((0.577, 0.257, 0.245, 0.456, 1.213))),
    _both("task12", "MITR, Task 1 + 2", (0.586, 0.272, 0.252, 0.470, 1.329), (0.169, 0.157)),
    _both(
        *("task12-cycle-s", "MITR, Task 1 + 2 + cycle_s", (0.596, 0.282, 0.257, 0.476, 1.390), (0.165, 0.156)),
        cycle=0.1,
        cycle_kind="segments",
    ),
    _both(_CYCLE_B, "MITR, Task 1 + 2 + cycle_b", (0.598, 0.286, 0.258, 0.479, 1.407), (0.166, 0.155), cycle=0.1),
    _both(
        f"{_CYCLE_B}-2",
        *("MITR (2 layers), Task 1 + 2 + cycle_b", (0.607, 0.292, 0.263, 0.487, 1.485), (0.163, 0.154)),
        cycle=0.1,
        layers=2,
    ),
    _one(
        *("task3", "MITR, Task 3", _learns(joint=1, mask_rate=0.0), "joint"),
        _paper((0.387, 0.118, 0.168, 0.316, 0.170), (0.387, 0.369)),
    ),
    _one(
        *("task3-mask", "MITR, Task 3 + random mask", _learns(joint=1), "joint"),
        _paper((0.395, 0.128, 0.184, 0.328, 0.219), (0.308, 0.292)),
    ),
    MitrRow(
        key="task123-mask",
        title="MITR, Task 3 + 1 + 2 + random mask",
        model=_learns(trace=1, caption=0.3, joint=1),
        tests=(*_BOTH, "joint"),
        paper=_paper((0.417, 0.125, 0.178, 0.323, 0.216), (0.283, 0.267)),
    ),
    # With --full: guided captions (Table 6), the number of layers (Table 7), the weight of the caption (Table 8).
    # The paper has no row for a standard transformer here.
    _one("guided-baseline", "Baseline, guided", {**_GUIDED, "baseline": "caption"}, "guided", {}),
    _one(
        *("guided", "MITR, guided, without pre-training", _GUIDED, "guided"),
        _paper((0.463, 0.182, 0.219, 0.466, 1.746)),
    ),
    _one(
        *("guided-pretrained", "MITR, guided, pre-trained on Task 1 + 2 + cycle_b", _GUIDED, "guided"),
        _paper((0.474, 0.189, 0.225, 0.475, 1.819)),
        start=_CYCLE_B,
    ),
    _both(
        f"{_CYCLE_B}-3",
        *("MITR (3 layers), Task 1 + 2 + cycle_b", (0.604, 0.289, 0.261, 0.485, 1.444), (0.197, 0.191)),
        cycle=0.1,
        layers=3,
    ),
    _both("task12-1.0", "MITR, Task 1 + 2, λ2 = 1.0", (0.589, 0.272, 0.254, 0.472, 1.346), (0.187, 0.178), 1.0),
    _both("task12-0.5", "MITR, Task 1 + 2, λ2 = 0.5", (0.595, 0.278, 0.256, 0.476, 1.368), (0.179, 0.169), 0.5),
    _both("task12-0.1", "MITR, Task 1 + 2, λ2 = 0.1", (0.595, 0.279, 0.256, 0.474, 1.375), (0.161, 0.150), 0.1),
)
ROWS = {row.key: row for row in _ROWS}


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One table. tests: which of a row's it shows. rows: keys. full: whether it is made with --full alone."""

    number: int
    title: str
    tests: tuple[str, ...]
    columns: tuple[MeasureColumn, ...]
    rows: tuple[str, ...]
    full: bool = False


_WITH_BOTH = ("task12", "task12-cycle-s", _CYCLE_B, f"{_CYCLE_B}-2")
_ALL = (*CAPTION, *LBM)
_TRACING = ("baseline-trace-seen", "task1-seen", "baseline-trace", "task1", *_WITH_BOTH)
_LAYERS = (_CYCLE_B, f"{_CYCLE_B}-2", f"{_CYCLE_B}-3")
TABLES = (
    TablePlan(5, "Task 1, a trace for a caption", ("trace",), LBM, _TRACING),
    TablePlan(2, "Task 2, a caption along a trace", ("caption",), CAPTION, ("baseline-caption", "task2", *_WITH_BOTH)),
    TablePlan(
        *(3, "Task 3, caption and trace from the image alone", ("joint",), _ALL),
        ("baseline-describe", "task3", "task3-mask", "task123-mask"),
    ),
    TablePlan(
        *(6, "Guided captions, along boxes of what is to be told", ("guided",), CAPTION),
        *(("guided-baseline", "guided", "guided-pretrained"), True),
    ),
    TablePlan(7, "The number of layers", _BOTH, _ALL, _LAYERS, full=True),
    TablePlan(
        *(8, "The weight of the caption, λ2", _BOTH, _ALL),
        *(("task12-1.0", "task12-0.5", "task12", "task12-0.1"), True),
    ),
)
CLAIMS = (
    ("trace", ClaimPlan("MITR finds better traces than a standard transformer", LBM[0], "task1", "baseline-trace")),
    ("trace", ClaimPlan("… with the boxes before in view, as published", LBM[0], "task1-seen", "baseline-trace-seen")),
    ("caption", ClaimPlan("MITR writes better captions along a trace than one", _CIDER, "task2", "baseline-caption")),
    ("trace", ClaimPlan("Learning captions too makes traces better", LBM[0], "task12", "task1")),
    ("caption", ClaimPlan("Learning traces too makes captions better", _CIDER, "task12", "task2")),
    ("trace", ClaimPlan("cycle_s makes traces better", LBM[0], "task12-cycle-s", "task12")),
    ("caption", ClaimPlan("cycle_s makes captions better", _CIDER, "task12-cycle-s", "task12")),
    ("trace", ClaimPlan("cycle_b makes traces better", LBM[0], _CYCLE_B, "task12")),
    ("caption", ClaimPlan("cycle_b makes captions better", _CIDER, _CYCLE_B, "task12")),
    ("joint", ClaimPlan("Pointing while speaking makes captions better", _BLEU4, "task3", "baseline-describe")),
    ("joint", ClaimPlan("Random masking makes joint captions better", _CIDER, "task3-mask", "task3")),
    ("joint", ClaimPlan("Random masking makes joint traces better", LBM[0], "task3-mask", "task3")),
    ("joint", ClaimPlan("Tasks 1 and 2 make joint traces better", LBM[0], "task123-mask", "task3-mask")),
    (
        "guided",
        ClaimPlan("Pre-training on traces makes guided captions better", _CIDER, "guided-pretrained", "guided"),
    ),
)
"""Each with the test that it is about."""
OURS = "this report itself"


def smaller_claims() -> Iterator[tuple[str, ClaimPlan]]:
    """For each claim whose difference the paper prints: that it is smaller here, so that "undecided" says how much."""
    for test, plan in CLAIMS:
        better, worse = (ROWS[key].paper.get(plan.measure.name) for key in (plan.better, plan.worse))
        if better is not None and worse is not None:
            margin = round(abs(better - worse), 6)
            text = f"smaller than the paper's {margin:g}: {plan.text.removeprefix('… ')}"
            yield test, replace(plan, text=text, source=OURS, margin=margin)


@dataclass(frozen=True, kw_only=True)
class MitrExperiment(MitrTraining):
    """full: Tables 6, 7 and 8 too. left_out: keys of rows that are not trained, so that the others can learn longer.
    data: prepared narratives to use, not the world."""

    full: bool = False
    left_out: tuple[str, ...] = ()
    world: MitrWorld = field(default_factory=MitrWorld)
    data: Path | None = None
    decides_from: ClassVar[int] = 3

    def __post_init__(self) -> None:
        for key in self.left_out:
            if key not in ROWS:
                raise UnknownName("row", key, ROWS)
            for row in ROWS.values():
                if self.full and row.start == key and row.key not in self.left_out:
                    raise InvalidValue(f"row {key}", f"cannot be left out: {row.key} starts from it", "leave out both")

    @classmethod
    def quick(cls, **changes: Any) -> MitrExperiment:
        """A few minutes: one seed, a small world, short runs. It shows that everything runs, and decides nothing."""
        world = MitrWorld(train=300, validation=40, test=60, eye_scenes=200, eye_steps=40)
        return cls(seeds=(0,), world=world, scale=MitrScale(steps=60, test=60), is_quick=True, **changes)

    def settings(self) -> dict[str, Any]:
        data = {} if self.data is None else {"data": Prepared(self.data).fingerprint}
        without = {"left_out": self.left_out} if self.left_out else {}
        return {"seeds": self.seeds, "world": self.world, "run": self.scale, **without, **data}

    def tables(self, prepared: Prepared) -> list[TablePlan]:
        """Those that these narratives allow: captions with key boxes are known for scenes of the world alone."""
        asked = [table for table in TABLES if self.full or not table.full]
        allowed = [t for t in asked if is_world(prepared) or not any(ROWS[key].guided for key in t.rows)]
        kept = [replace(t, rows=tuple(key for key in t.rows if key not in self.left_out)) for t in allowed]
        return [table for table in kept if table.rows]

    def jobs(self, out: Path, progress: Progress) -> list[TrainingJob[MitrRow]]:
        folder = self.data or out / "data"
        if self.data is None:
            prepare_world(folder, self.world, progress)
        prepared = Prepared(folder)
        rows = [ROWS[key] for key in dict.fromkeys(key for table in self.tables(prepared) for key in table.rows)]
        guided = [row for row in rows if row.guided]
        if guided:
            prepare_guided(out / "guided", prepared, progress)
        told = self.jobs_of([row for row in rows if not row.guided], folder, out / "runs")
        jobs = [*told, *self.jobs_of(guided, out / "guided", out / "runs")]
        # The longest first.
        return sorted(jobs, key=lambda job: -(job.row.model.get("cycle", 0) > 0) * job.row.model.get("layers", 1))

    def compare(self, out: Path, measured: Mapping[TrainingJob[MitrRow], MitrOutputs], progress: Progress) -> Results:
        prepared = Prepared(self.data or out / "data")
        tables = self.tables(prepared)
        scores, remarks = self.scores(measured, progress)
        rows = {key for key, _ in scores if key in ROWS}
        if self.full and not is_world(prepared):
            remarks.append("Table 6 is left out: these narratives come without captions that are guided by boxes.")
        made, first = [], self.seeds[0]
        for table in tables:
            paper = {key: ROWS[key].paper for key in table.rows}
            board = self._board(scores, table.tests)
            shown = [*table.rows, *(key for key in BOUNDS if set(table.tests) <= set(scores.get((key, first), ())))]
            made.append(board.table(table.number, table.title, table.columns, shown, paper))
        return Results(
            title="MITR in the world" if is_world(prepared) else "MITR",
            paper=PAPER,
            settings=self._facts(prepared, training_minutes(measured)),
            made_by={"data": prepared.fingerprint},
            tables=tuple(made),
            claims=tuple(
                judge_plan(plan, self._board(scores, (test,)))
                for test, plan in (*CLAIMS, *smaller_claims())
                if {plan.better, plan.worse} <= rows
            ),
            examples=self._examples(out, prepared, measured),
            curves=self._curves(measured),
            remarks=(*_LIMITS, *(_ABOUT_GUIDED if any(ROWS[key].guided for key in rows) else ()), *remarks),
        )

    def _board(self, scores: Scores, tests: Sequence[str]) -> Scoreboard:
        """The scores of rows in these tests."""
        joined = {
            name: {measure: value for test in tests for measure, value in found.get(test, {}).items()}
            for name, found in scores.items()
        }
        titles = {row.key: row.title_with(self.scale.hidden) for row in ROWS.values()} if "trace" in tests else {}
        return Scoreboard(titles_of(ROWS.values()) | titles | BOUNDS, self.seeds, joined)

    def bounds(self, prepared: Prepared, metrics: CaptionMetrics) -> dict[str, dict[str, dict[str, float]]]:
        if GUIDED_FROM in prepared.about:
            return {}
        items = prepared.split("test", self.scale.test)
        found = {BLIND: blind_scores(prepared, items, metrics)}
        if is_world(prepared):
            found[CEILING] = ceiling_scores(prepared, items, metrics)
        return found

    def departures(self) -> list[Departure]:
        scale, left_out = self.scale, [ROWS[key].title for key in self.left_out]
        world = self.data is None
        return [
            Departure("images", "drawn scenes" if world else "those of the prepared folder", "COCO photographs"),
            Departure("narrations", "by simulated narrators" if world else "as prepared", "Localized Narratives"),
            Departure("regions", "all things' true boxes, a small eye's features" if world else "as prepared", _FASTER),
            *([Departure("words of a narration", f"at most {self.world.max_words}", "at most 100")] if world else []),
            *scale.departures(),
            Departure("seeds", f"{len(self.seeds)} for each row", "not stated"),
            *([Departure("rows left out", ", ".join(left_out), "none")] if left_out else []),
        ]

    def _facts(self, prepared: Prepared, minutes: float) -> dict[str, Any]:
        scale = self.scale
        return {
            "data": "the simulated world" if is_world(prepared) else "narratives from files",
            "narratives": f"{len(prepared.split('train'))} to learn from, {scale.test} to test on",
            "words known": len(prepared.vocabulary),
            "steps": scale.steps,
            "narratives in a step": scale.batch,
            "width": scale.width,
            "seeds": len(self.seeds),
            "minutes of training, all runs added": minutes,
            **{f"world, {name}": value for name, value in dict(prepared.about.get("world", {})).items()},
        }

    def _curves(self, jobs: Mapping[TrainingJob[MitrRow], MitrOutputs]) -> dict[str, list[tuple[int, float]]]:
        """Validation loss per word of the captions, for the rows of Table 2, first seed."""
        folders = {job.row.key: job.folder for job in jobs if job.seed == self.seeds[0]}
        curves: dict[str, list[tuple[int, float]]] = {}
        for key in next(table for table in TABLES if table.number == 2).rows:
            if key not in folders:
                continue
            logged = read_log(folders[key] / "log.jsonl")
            validated = [(one.step, one.metrics.get("caption")) for one in logged if isinstance(one, Validated)]
            curves[ROWS[key].title] = [(step, value) for step, value in validated if value is not None]
        return curves

    def _examples(
        self, out: Path, prepared: Prepared, measured: Mapping[TrainingJob[MitrRow], MitrOutputs]
    ) -> tuple[Example, ...]:
        """The first test narratives: the truth, the trace that a model gives to its words, and what one says alone."""
        test = prepared.split("test", self.scale.test)
        first = {job.row.key: made for job, made in measured.items() if job.seed == self.seeds[0]}
        alone, paired = first.get("task123-mask") or first.get("task3-mask"), first.get(_CYCLE_B)
        examples = []
        for i in range(min(_EXAMPLES, len(test))):
            one, name = test[i], test.image_name(i)
            photo = prepared.folder / "photos" / f"{name}.png"
            if photo.exists():
                (out / "photos").mkdir(parents=True, exist_ok=True)
                shutil.copyfile(photo, out / "photos" / photo.name)
            truth = np.where(one.located[:, None], one.boxes[:, :4], np.nan)
            words = tuple(one.words.tolist())
            pictures: dict[str, tuple[Sequence[int], Any]] = {}
            if paired is not None:
                pictures["Task 1: MITR's trace for these words"] = words, paired.boxes["trace"][i]
            if alone is not None:
                pictures["Task 3: MITR's own words and trace"] = alone.words["joint"][i], alone.boxes["joint"][i]
            examples.append(
                Example(
                    f"photos/{name}.png",
                    narrative_of(prepared, words, truth, name, "the simulated narrator"),
                    {
                        title: narrative_of(prepared, said, np.array(boxes, np.float64).reshape(-1, 4), name, "MITR")
                        for title, (said, boxes) in pictures.items()
                    },
                )
            )
        return tuple(examples)
