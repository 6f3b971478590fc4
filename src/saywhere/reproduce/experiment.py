"""One experiment: rows that learn with several seeds, what they were measured at, and the report that compares them.

A new experiment is a `TrainedExperiment` with four answers: which `jobs` there are (one for each row and seed), the
`recipe` of a job, what to `measure` of a trained job, and how to `compare` what was measured. All else is here: other
settings are refused, what is done is not done again, jobs run side by side, and the report says what made it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
import torch

import saywhere
from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.learn import train
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.learn.registry import task_class
from saywhere.provenance import git_hash
from saywhere.reproduce.claims import judge_together
from saywhere.reproduce.code_hash import code_hashes
from saywhere.reproduce.pool import run_jobs, steps_done
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import Departure, Results

PLAN, MEASURED = "plan.json", "measured.json"
_UNDECIDED = "A quick run: it shows that everything works. It decides nothing, so no claim is judged."

M = TypeVar("M")
R = TypeVar("R", bound="RowPlan")


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """What is compared, on which data. is_quick: too short a run to judge claims by; so is one with fewer seeds than
    decides_from."""

    seeds: tuple[int, ...] = ()
    is_quick: bool = False
    decides_from: ClassVar[int] = 0

    @property
    def decides(self) -> bool:
        """Whether the run is long enough for a verdict, or for a ratio."""
        return not self.is_quick and len(self.seeds) >= self.decides_from

    def settings(self) -> dict[str, Any]:
        """What the results in a folder depend on; a folder that was begun with others is refused."""
        return {}

    def plan(self) -> dict[str, Any]:
        """Every setting, for people and for the report; by default all that the results depend on."""
        return self.settings()

    def departures(self) -> list[Departure]:
        """Every setting that is not the paper's."""
        return []

    def unused(self) -> tuple[str, ...]:
        """Modules that are imported but have no part in this run, so that a report outlives a change of theirs."""
        return ()

    def opened(self) -> tuple[str, ...]:
        """Modules that a run finds by name, such as those of a model; tasks of recipes need not be said."""
        return ()

    @abstractmethod
    def results(self, out: Path, progress: Progress) -> Results:
        """Do everything that is not done yet in the folder, and compare."""

    def run(self, out: Path, progress: Progress) -> Results:
        """Do everything that is not done yet, and write the report."""
        if out.exists() and not out.is_dir():
            raise InvalidFile(out, "is a file, not a folder")
        if settings := self.settings():
            keep_settings(out, settings)
        found = self.results(out, progress)
        made_by = {"saywhere": saywhere.__version__, "git": git_hash(), **found.made_by}
        results = replace(
            found,
            seeds=self.seeds,
            made_by=made_by,
            settings={**found.settings, "plan": msgspec.to_builtins(self.plan(), enc_hook=str)},
            claims=tuple(judge_together(found.claims)) if self.decides else (),
            remarks=(*(() if self.decides else (_UNDECIDED,)), *found.remarks),
            departures=tuple(self.departures()),
            code={**self.code(), **found.code},
        )
        write_report(results, out)
        return results

    def code(self, tasks: Iterable[str] = ()) -> dict[str, str]:
        """File → hash; of an experiment that somebody wrote elsewhere, what it uses of ours. tasks: names of those that
        are trained."""
        module = type(self).__module__
        own = module if module.startswith("saywhere.") else Experiment.__module__
        return code_hashes(own, self.unused(), (*self.opened(), *(task_class(name).__module__ for name in tasks)))


def keep_settings(out: Path, settings: Mapping[str, Any]) -> None:
    """Keep the settings in out/plan.json; InvalidFile if the folder was begun with others, such as those of --quick."""
    content = msgspec.json.format(msgspec.json.encode(settings))
    path = out / PLAN
    if path.exists() and path.read_bytes() != content:
        hint = "name another folder with --out, or remove this one"
        raise InvalidFile(out, "holds results of a run with other settings, which would be mixed with these", hint)
    if not path.exists():
        with write_atomic(path) as file:
            file.write(content)


@dataclass(frozen=True, kw_only=True)
class RowPlan:
    """One model that is trained. key: its folder. title: as in tables. start: key of the row that it goes on from."""

    key: str
    title: str
    start: str = ""


@dataclass(frozen=True, eq=False)
class TrainingJob(Generic[R]):
    """One row with one seed, which trains in a folder of its own. start: the folder of the job that it goes on from.

    group: which of the experiment's groups of runs it belongs to, if there are several.
    """

    experiment: TrainedExperiment[R, Any]
    row: R
    seed: int
    data: Path
    folder: Path
    start: Path | None = None
    group: str = ""

    @property
    def steps(self) -> int:
        return int(self.experiment.recipe(self)["train"]["steps"])

    @property
    def is_done(self) -> bool:
        return (self.folder / MEASURED).exists()

    @property
    def init_from(self) -> dict[str, str]:
        """What a recipe's [train] says of the start."""
        return {} if self.start is None else {"init_from": str(self.start)}


@dataclass(frozen=True, kw_only=True)
class TrainedExperiment(Experiment, Generic[R, M]):
    """Rows that are trained anew. workers: processes, each of one thread; 0 trains in this one.

    measured_as: the type of what `measure` gives, so that it can be kept as JSON. checks: how often a job validates.
    """

    seeds: tuple[int, ...] = (0, 1, 2)
    workers: int = 2
    measured_as: ClassVar[Any] = dict[str, float]
    checks: ClassVar[int] = 5

    @abstractmethod
    def jobs(self, out: Path, progress: Progress) -> list[TrainingJob[R]]:
        """Make the data ready, unless they are, and say what to train on them."""

    @abstractmethod
    def recipe(self, job: TrainingJob[R]) -> dict[str, Any]:
        """What the job's recipe has beside what all jobs have; see `recipe_of`."""

    @abstractmethod
    def measure(self, job: TrainingJob[R]) -> M:
        """Everything that is compared, of a job that is trained."""

    @abstractmethod
    def compare(self, out: Path, measured: Mapping[TrainingJob[R], M], progress: Progress) -> Results:
        """Tables, claims and pictures."""

    def jobs_of(self, rows: Iterable[R], data: Path, runs: Path, group: str = "") -> list[TrainingJob[R]]:
        """A job for each row and seed."""
        return [
            TrainingJob(
                *(self, row, seed, data, runs / f"{row.key}-{seed}"),
                start=runs / f"{row.start}-{seed}" if row.start else None,
                group=group,
            )
            for row in rows
            for seed in self.seeds
        ]

    def results(self, out: Path, progress: Progress) -> Results:
        jobs = self.jobs(out, progress)
        # Those that go on from another wait for it.
        for begins in (True, False):
            waiting = [job for job in jobs if (job.start is None) == begins and not job.is_done]
            run_jobs(waiting, run_job, self.workers, lambda: progress("training", *steps_done(jobs)))
        measured = {job: load_measured(job.folder / MEASURED, self.measured_as) for job in jobs}
        tasks = sorted({self.recipe(job)["task"] for job in jobs})
        return replace(self.compare(out, measured, progress), code=self.code(tasks))


def recipe_of(job: TrainingJob[Any]) -> Recipe:
    """The recipe that a person could run with `saywhere train` to get the same weights."""
    own, steps = job.experiment.recipe(job), job.steps
    every = max(1, steps // job.experiment.checks)
    table: dict[str, Any] = {
        "name": f"{job.group} {job.row.key}, seed {job.seed}".lstrip(),
        "seed": job.seed,
        "train": {"num_threads": 1, "device": "cpu"},
        "schedule": {"kind": "cosine", "warmup_steps": max(1, steps // 10)},
        "validate": {"every_steps": every, "metric": "loss", "at_start": False},
        "checkpoint": {"every_steps": every, "keep": 1},
        "log": {"plot": False},
    }
    for name, part in own.items():
        table[name] = {**table.get(name, {}), **part} if isinstance(part, dict) else part
    return parse_recipe(table, f"row {job.row.key}")


def run_job(job: TrainingJob[Any]) -> Path:
    """Train, measure, and leave measured.json in the job's folder. What is there already is not done again."""
    torch.set_num_threads(1)
    path = job.folder / MEASURED
    if not job.is_done:
        if train(recipe_of(job), job.folder).status == "interrupted":
            # What half a run made must never be taken for what the whole run makes.
            raise KeyboardInterrupt
        save_measured(job.experiment.measure(job), path)
    return path


def training_minutes(jobs: Iterable[TrainingJob[Any]]) -> float:
    """How long the jobs took to train, added up, whenever that was."""
    ended = [msgspec.json.decode((job.folder / "result.json").read_bytes())["result"] for job in jobs]
    return round(float(sum(one["seconds"] for one in ended)) / 60, 1)


def by_row(measured: Mapping[TrainingJob[R], M], group: str = "") -> dict[tuple[str, int], M]:
    """What the jobs of a group were measured at, by row and seed."""
    return {(job.row.key, job.seed): found for job, found in measured.items() if job.group == group}


def save_measured(measured: Any, path: Path) -> None:
    """For `load_measured`, whole or not at all."""
    with write_atomic(path) as file:
        # Unlike msgspec's, this JSON keeps NaN.
        file.write(json.dumps(msgspec.to_builtins(measured), ensure_ascii=False).encode("utf-8"))


def load_measured(path: Path, kind: Any) -> Any:
    """What a finished run left, so that an interrupted experiment goes on where it was."""
    try:
        return msgspec.convert(json.loads(path.read_bytes()), kind)
    except (OSError, ValueError) as error:
        raise InvalidFile(path, f"holds no measures: {error}") from error


def titles_of(rows: Iterable[RowPlan]) -> dict[str, str]:
    return {row.key: row.title for row in rows}
