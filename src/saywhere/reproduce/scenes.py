"""`saywhere reproduce scenes`: captions above objects in the world, and what changes inside the captioner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import saywhere
from saywhere.core.types import Progress
from saywhere.explain.region_tags import covered_regions
from saywhere.provenance import git_hash
from saywhere.reproduce import scenes_rows as rows
from saywhere.reproduce.plan_file import settle_plan
from saywhere.reproduce.pool import run_jobs, steps_done
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import Results
from saywhere.reproduce.scenes_figures import informative_things, level_examples, scenes_figures
from saywhere.reproduce.scenes_measure import HeldOutScenes, MeasureScale
from saywhere.reproduce.scenes_rows import AFTER, ALL, BEFORE, ROWS
from saywhere.reproduce.scenes_run import MODEL, ScenesJob, ScenesScale, found_of, held_out_scenes, run_scenes_job
from saywhere.reproduce.scenes_tables import FoundBy, scenes_claims, scenes_tables
from saywhere.reproduce.scenes_world import ScenesWorldScale, prepare_scenes_world

"""What is being done, how much of it is done, and out of how much."""


@dataclass(frozen=True, slots=True)
class ScenesPlan:
    """What to run. workers: processes, each of one thread; 0 trains in this one. shown: examples."""

    seeds: tuple[int, ...] = (0, 1, 2)
    workers: int = 2
    world: ScenesWorldScale = field(default_factory=ScenesWorldScale)
    run: ScenesScale = field(default_factory=ScenesScale)
    shown: int = 8

    @classmethod
    def quick(cls, workers: int = 2) -> ScenesPlan:
        """A few minutes: one seed, little of everything. It shows that everything runs, and decides nothing."""
        world = ScenesWorldScale(train=700, validation=60, test=200, eye_scenes=300, eye_steps=80)
        measure = MeasureScale(attended=60, rare_images=4, probe_seeds=1)
        return cls((0,), workers, world, ScenesScale(steps=400, tuning=150, measure=measure), shown=4)


def reproduce_scenes(out: Path, plan: ScenesPlan, progress: Progress) -> Results:
    """Run everything that is not there yet, and write the report."""
    settle_plan(out, {"seeds": plan.seeds, "world": plan.world, "run": plan.run})
    data = out / "data"
    prepare_scenes_world(data, plan.world, progress)
    jobs = _jobs(out, data, plan)
    for begins in (True, False):
        # Those that go on from another wait for it.
        waiting = [job for job in jobs.values() if (job.start is None) == begins and not job.is_done]
        run_jobs(waiting, run_scenes_job, plan.workers, lambda: progress("training", *steps_done(jobs.values())))
    found = {name: found_of(job) for name, job in jobs.items()}
    progress("drawing", 0, 1)
    results = _results(out, plan, held_out_scenes(data, plan.run.measure), jobs, found)
    write_report(results, out)
    progress("drawing", 1, 1)
    return results


def _jobs(out: Path, data: Path, plan: ScenesPlan) -> dict[tuple[str, int], ScenesJob]:
    runs = out / "runs"
    return {
        (row.key, seed): ScenesJob(
            *(row, seed, data, runs / f"{row.key}-{seed}", plan.run),
            start=runs / f"{BEFORE}-{seed}" if row.from_objects else None,
        )
        for row in ROWS
        for seed in plan.seeds
    }


def _results(
    out: Path, plan: ScenesPlan, test: HeldOutScenes, jobs: dict[tuple[str, int], ScenesJob], found: FoundBy
) -> Results:
    seed = plan.seeds[0]
    models = {key: jobs[key, seed].folder / MODEL for key in (BEFORE, AFTER)}
    return Results(
        title="Scenes: captions above objects, and what changes inside",
        paper="Understanding Cross-modal Interactions in V&L Models that Generate Scene Descriptions (UM-IoS 2022)",
        settings=_facts(plan, test, found),
        made_by={
            "saywhere": saywhere.__version__,
            "git": git_hash(),
            "data": test.folder.fingerprint,
        },
        seeds=plan.seeds,
        tables=tuple(scenes_tables(plan.seeds, found)),
        claims=tuple(scenes_claims(plan.seeds, found)),
        remarks=tuple(_remarks(plan, found)),
        figures=tuple(scenes_figures(plan.seeds, found, test, models)),
        levels=tuple(level_examples(out, test, found, seed, plan.shown)),
    )


def _facts(plan: ScenesPlan, test: HeldOutScenes, found: FoundBy) -> dict[str, Any]:
    scale, first = plan.run, found[AFTER, plan.seeds[0]]
    covered = covered_regions(test.ids, test.image).mean
    taken = ", ".join(f"{first.taken_part[str(k)]:,} without {k}" for k in rows.ABLATED)
    return {
        "seeds": len(plan.seeds),
        "images": f"{plan.world.train:,} to learn from, {len(test.ids):,} to test",
        "captions to learn from": ", ".join(
            f"{len(test.folder.split('train', [level])):,} of {level}s" for level in test.folder.levels
        ),
        "network": f"{scale.layers} layers of width {scale.width}, {scale.heads} heads",
        "steps": f"{scale.steps:,} on captions of objects, {scale.tuning:,} of tuning, {scale.batch} captions each",
        "regions with a tag": f"{100 * covered:.0f} % (the paper: 74 %)",
        "images that lose things": taken,
        "rare places of the probe": ", ".join(test.rare),
    }


def _asked(seeds: Sequence[int], found: FoundBy) -> list[str]:
    """The two numbers that this experiment was asked for."""

    def mean(key: str, measure: str) -> float:
        return float(np.mean([found[key, seed].scores[measure] for seed in seeds]))

    accuracy, naming = rows.ACCURACY.name, rows.NAMING.name
    lost = mean(BEFORE, naming) - mean(ALL, naming)
    return [
        f"Scene captions name the true place in {mean(AFTER, accuracy):.1f} % of test images (asked: 95 %); of the one "
        f"network for all levels in {mean(ALL, accuracy):.1f} %.",
        f"Asked for objects, that one network names things that are there in {mean(ALL, naming):.1f} % of its words "
        f"for things; the network before tuning in {mean(BEFORE, naming):.1f} %: {lost:+.1f} points lost (asked: at "
        "most 2). "
        "The paper's way keeps two networks, and loses nothing at either level.",
    ]


def _remarks(plan: ScenesPlan, found: FoundBy) -> list[str]:
    remarks = [
        *_asked(plan.seeds, found),
        "The world is drawn: it tests the reasoning of the paper, not photographs. Tags are the true things of a scene "
        "with their boxes; regions lie nearly there, with nine windows beside them, seen by an eye that learnt to name "
        "things. Captions of objects do not name the place, so that its name is learnt from scene captions alone.",
        "Networks learn every word of a caption at once, each from its own [MASK] that sees the words before it, which "
        "is what is asked of them when they write; hiding at most 3 words a caption, as the paper does, learns the "
        "same more slowly. Captions are written with 5 beams, at most 20 words.",
        "Attention is that of the first layer, the largest share over heads. Standard deviations fall when inputs are "
        "longer; both networks read the same images, so that they can be compared here. Evenness is entropy over that "
        "of equal shares.",
        "AO is average overlap, which the paper calls RBO with p = 1; RBO here has p = 0.9. Summed attention favours "
        "what occurs often: what even attention would give stands beside it. Two of the paper's IoU@7 cannot be.",
        "Ablated: the one, two or three things with the highest mutual information with the place, in images that have "
        "all of them; tag and regions become [PAD]. “Random things” are as many others of the same image.",
        "Things that tell a place best (the paper's Table 3): " + informative_things(found[AFTER, plan.seeds[0]]) + ".",
        "The probe reads mean states of the last layer, without a caption. Rare places are cut to "
        f"{plan.run.measure.rare_images} images each.",
    ]
    if len(plan.seeds) < 3:
        remarks.insert(0, "A quick run: it shows that everything works, and decides nothing.")
    return remarks
