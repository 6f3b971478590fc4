"""`saywhere reproduce narrations`: MITR on real narrations with pseudo-traces, against baselines that see no photo."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import saywhere
from saywhere.core import InvalidFile
from saywhere.core.types import Progress
from saywhere.formats import InvalidRecord, trecs
from saywhere.models.mitr.prepared import Prepared
from saywhere.models.region_features import RegionFeatures, view_regions
from saywhere.provenance import git_hash
from saywhere.reproduce.mitr import CaptionJudge
from saywhere.reproduce.mitr_rows import CAPTION, TRACE, RowPlan
from saywhere.reproduce.mitr_run import Job, RunScale, read_made, run_job, training_minutes
from saywhere.reproduce.narrations import NarrationScale, distances, guesses, prepare_narrations, read_boxes
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import Claim, Results, Row, Table, judge
from saywhere.store import is_finished
from saywhere.vision import extract, open_encoder

_ROW = RowPlan(
    "mitr",
    "MITR, Task 1 + 2 + 3",
    # Boxes are hidden from Task 1 while it learns: with a word's neighbours in view it would only copy them.
    {"trace": 1.0, "caption": 0.3, "joint": 1.0, "cycle": 0.0, "trace_mask_rate": 0.9, "input_dropout": 0.5},
    ("trace", "caption", "joint"),
)


@dataclass(frozen=True, slots=True)
class NarrationPlan:
    """What to run on which files. ids: the ids file of tagged narrations. pooled: patches joined in squares of this."""

    ids: Path
    boxes: Path
    photos: Path
    seeds: tuple[int, ...] = (0,)
    encoder: str = "efficientnet-lite0"
    input_px: int = 320
    pooled: int = 2
    data: NarrationScale = field(default_factory=NarrationScale)
    run: RunScale = field(default_factory=lambda: RunScale(steps=1500, batch=16, width=128, lr=1e-3, test=300))


def reproduce_narrations(out: Path, plan: NarrationPlan, progress: Progress) -> Results:
    """Look at the photos, prepare, train, measure, and write the report. What is there already is not done again."""
    folder = out / "data"
    if not is_finished(folder):
        _prepare(out, folder, plan, progress)
    prepared = Prepared(folder)
    jobs = [Job(_ROW, seed, folder, out / "runs" / str(seed), plan.run) for seed in plan.seeds]
    for number, job in enumerate(jobs):
        progress("training, seeds done", number, len(jobs))
        run_job(job)
    progress("training, seeds done", len(jobs), len(jobs))
    results = _results(prepared, jobs, plan)
    write_report(results, out)
    return results


def _prepare(out: Path, folder: Path, plan: NarrationPlan, progress: Progress) -> None:
    photos = sorted(path for path in plan.photos.iterdir() if path.suffix in (".webp", ".jpg", ".jpeg", ".png"))
    if not photos:
        raise InvalidFile(plan.photos, "holds no photographs")
    views = extract(
        photos,
        out / "views",
        open_encoder(plan.encoder, plan.input_px),
        progress=progress,
    )

    def look(image: str) -> RegionFeatures | None:
        return view_regions(views[image], plan.pooled) if image in views else None

    told = [value for value in trecs.read(plan.ids) if not isinstance(value, InvalidRecord)]
    prepare_narrations(folder, told, read_boxes(plan.boxes), look, plan.data)


def _results(prepared: Prepared, jobs: list[Job], plan: NarrationPlan) -> Results:
    test = prepared.split("test", plan.run.test)
    items = [test[i] for i in range(len(test))]
    references = {str(i): [prepared.vocabulary.text(one.words.tolist())] for i, one in enumerate(items)}
    made = [read_made(job.folder / "made.json") for job in jobs]
    rows = [Row(name, (distances(boxes, items),) * len(jobs)) for name, boxes in guesses(prepared, test).items()]
    placed: list[list[NDArray[np.float64]]] = [[np.array(b) for b in one.boxes["trace"]] for one in made]
    ours = Row(_ROW.title, tuple(distances(boxes, items) for boxes in placed))
    claims: list[Claim] = [judge(f"MITR points better than {row.name}", TRACE[0], ours, row) for row in rows]
    with CaptionJudge(references) as captions:
        told = {
            test_name: tuple(
                captions.scores({str(i): prepared.vocabulary.text(ids) for i, ids in enumerate(one.words[test_name])})
                for one in made
            )
            for test_name in ("caption", "joint")
        }
        common = _commonest(prepared)
        frequent = captions.scores(dict.fromkeys(references, common))
    caption_rows = (
        Row("the same narration always: the commonest beginning", (frequent,) * len(jobs)),
        Row("MITR, Task 2: along the pseudo-trace", told["caption"]),
        Row("MITR, Task 3: from the photo alone", told["joint"]),
    )
    return Results(
        title="MITR on real narrations, with pseudo-traces",
        paper="Connecting What to Say With Where to Look by Modeling Human Attention Traces (CVPR 2021)",
        settings={
            "narratives": f"{len(prepared.split('train'))} to learn from, {len(items)} to test on, other photos",
            "words known": len(prepared.vocabulary),
            "encoder": f"{plan.encoder} at {plan.input_px} px, frozen",
            "steps": plan.run.steps,
            "width": plan.run.width,
            "seeds": len(jobs),
            "minutes of training, all runs added": training_minutes(jobs),
        },
        made_by={"saywhere": saywhere.__version__, "git": git_hash(), "data": prepared.fingerprint},
        seeds=plan.seeds,
        tables=(
            Table(5, "Task 1, a pseudo-trace for a real narration", TRACE, (*rows, ours)),
            Table(2, "Tasks 2 and 3, captions", CAPTION, caption_rows),
        ),
        claims=tuple(claims),
        remarks=(
            "A pseudo-trace is made of the boxes of the class that the mouse was on while a word was said. The mouse's "
            "own way is not in these data, so this is no measure of human traces.",
            "Narrations are real, in the lower case and without the marks of the published files.",
            *captions.missing,
        ),
    )


def _commonest(prepared: Prepared) -> str:
    """What narrators say most often, word by word: the likeliest next word given the place, as long as most narrate."""
    train = prepared.split("train")
    lengths = [len(train[i].words) for i in range(len(train))]
    longest = int(np.median(lengths))
    columns = [[int(train[i].words[t]) for i in range(len(train)) if lengths[i] > t] for t in range(longest)]
    return prepared.vocabulary.text([int(np.bincount(column).argmax()) for column in columns])
