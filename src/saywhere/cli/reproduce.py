"""`saywhere reproduce`: the papers' tables, made anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from saywhere import loading
from saywhere.cli import kept_reports
from saywhere.cli.console import out, plain_table, stages, tell_claims, tell_plan

if TYPE_CHECKING:
    from saywhere.models.patchioner.seer import Seer
    from saywhere.reproduce.experiment import Experiment
    from saywhere.reproduce.patchioner_data import RegionItem
    from saywhere.reproduce.results import Results

E = TypeVar("E", bound="Experiment")
S = TypeVar("S")

app = typer.Typer(
    help="Run a paper's experiments anew and write a report.", no_args_is_help=True, rich_markup_mode=None
)

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the runs and the report.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Run everything in a few minutes with one seed: a check, not a result.")
]
Seeds = Annotated[int | None, typer.Option(min=1, help="How many seeds each row learns with.")]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(help="Key of a row not to train, so that others can learn longer; may be given several times."),
]
Workers = Annotated[int, typer.Option(min=1, help="How many processes to use, each with one thread.")]


def _seeded(experiment: E, seeds: int | None) -> E:
    """With so many seeds, if any number is given."""
    return experiment if seeds is None else replace(experiment, seeds=tuple(range(seeds)))


def _given(scale: S, values: dict[str, Any]) -> S:
    """With those values that are given."""
    changed: S = replace(scale, **{name: value for name, value in values.items() if value is not None})  # type: ignore[type-var]
    return changed


def _run(experiment: Experiment, output: Path) -> Results:
    """Say the plan, run, and say each verdict and where the report is."""
    tell_plan(experiment.departures(), experiment.plan())
    with stages() as progress:
        results = experiment.run(output, progress)
    tell_claims(results.claims)
    if not experiment.decides:
        out.print("no claim is judged: the run is too short to decide one", markup=False)
    out.print(f"report: {output / 'report.html'} and {output / 'report.md'}", markup=False)
    return results


@app.command()
def mitr(
    output: Out = Path("out/mitr"),
    quick: Quick = False,
    full: Annotated[bool, typer.Option("--full", help="Also run Tables 6, 7 and 8, which takes hours.")] = False,
    workers: Workers = 2,
    data: Annotated[
        Path | None, typer.Option(help="Use this folder of `saywhere prepare` instead of the simulated world.")
    ] = None,
    seeds: Seeds = None,
    steps: Annotated[int | None, typer.Option(min=1, help="How many steps each row learns.")] = None,
    batch: Annotated[int | None, typer.Option(min=2, help="How many narratives a step learns from.")] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Width of the networks.")] = None,
    heads: Annotated[int | None, typer.Option(min=1, help="Heads of attention.")] = None,
    lr: Annotated[float | None, typer.Option(min=0, help="Learning rate.")] = None,
    beams: Annotated[int | None, typer.Option(min=1, help="How many beams write captions.")] = None,
    test: Annotated[int | None, typer.Option(min=1, help="How many narratives to test on.")] = None,
    hidden: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of the boxes before that Task 1 does not see.")
    ] = None,
    leave_out: LeaveOut = None,
) -> None:
    """MITR's Tables 2, 3 and 5 (with --full also 6, 7 and 8) in the simulated world, with a verdict for each claim.

    What is done already in the output folder is not done again, so an interrupted run goes on where it was.
    """
    from saywhere.reproduce.mitr import MitrExperiment

    made = (MitrExperiment.quick if quick else MitrExperiment)(workers=workers, full=full, data=data)
    made = replace(made, left_out=tuple(leave_out or ()))
    given: dict[str, Any] = {"steps": steps, "batch": batch, "width": width, "heads": heads, "lr": lr, "beams": beams}
    given |= {"test": test, "hidden": hidden}
    _run(_seeded(replace(made, scale=_given(made.scale, given)), seeds), output)


@app.command()
def narrations(
    ids: Annotated[Path, typer.Argument(help="The ids file of tagged narrations (TReCS).", show_default=False)],
    boxes: Annotated[Path, typer.Option(help="Boxes as JSON: image → [[class, cx, cy, w, h], …] in fractions.")],
    photos: Annotated[Path | None, typer.Option(help="Folder with the photos.")] = None,
    features: Annotated[
        Path | None, typer.Option(help="What was seen in the photos already, as a store or any file of features.")
    ] = None,
    output: Out = Path("out/narrations"),
    seeds: Annotated[
        int, typer.Option(min=1, help="How many seeds to train; about ten minutes each on two cores.")
    ] = 1,
    steps: Annotated[int | None, typer.Option(min=1, help="How many steps each learns.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="How many processes to use; 0 trains in this one.")] = 0,
) -> None:
    """MITR on real narrations whose words carry a tag, with pseudo-traces made of the tags' boxes."""
    from saywhere.reproduce.narrations import NarrationsExperiment

    planned = NarrationsExperiment(ids=ids, boxes=boxes, photos=photos, features=features, workers=workers)
    scale = planned.scale if steps is None else replace(planned.scale, steps=steps)
    for row in _run(_seeded(replace(planned, scale=scale), seeds), output).tables[0].rows:
        out.print(f"LBM (k=0) {row.mean('LBM (k=0)'):.4f}  {row.name}", markup=False)


@app.command()
def tracevlm(
    output: Out = Path("out/tracevlm"),
    quick: Quick = False,
    coco: Annotated[
        Path | None, typer.Option(help="Store of `saywhere build coco`, for the part on real photographs.")
    ] = None,
    photos: Annotated[int | None, typer.Option(min=2, help="Photographs; 300 by default, 20 with --quick.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds; 3 by default, 1 with --quick.")] = None,
    workers: Workers = 2,
) -> None:
    """TraceVLM's ablations on a tiny body in the world, and saywhere-trace on photographs that nothing learnt from.

    What is done already in the output folder is not done again, so an interrupted run goes on where it was.
    """
    from saywhere.reproduce.tracevlm import TraceExperiment
    from saywhere.reproduce.tracevlm_photos import TracePhotos

    made = TraceExperiment.quick if quick else TraceExperiment
    real = None if coco is None else TracePhotos(coco, photos or (20 if quick else 300))
    experiment = made(workers=workers, photos=real)
    _run(experiment if seeds is None else replace(experiment, seeds=tuple(range(seeds))), output)


@app.command("tracevlm-photos")
def tracevlm_photos(
    coco: Annotated[Path, typer.Argument(help="Store of `saywhere build coco`.", show_default=False)],
    output: Out = Path("out/tracevlm-photos"),
    model: Annotated[
        Path | None, typer.Option(help="Folder of a small TraceVLM; by default saywhere-trace.", show_default=False)
    ] = None,
    photos: Annotated[int, typer.Option(min=2, help="Photographs.")] = 300,
    base: Annotated[bool, typer.Option(help="Measure saywhere-base beside it.")] = True,
) -> None:
    """A small TraceVLM on photographs that nothing learnt from: along trajectories and without, expressions, presence.

    The part on photographs of `saywhere reproduce tracevlm`, without its training in the world.
    """
    from saywhere.reproduce.tracevlm_photos import TracePhotos, TracePhotosExperiment

    results = _run(TracePhotosExperiment(photos=TracePhotos(coco, photos, base=base, model=model)), output)
    for table in results.tables:
        shown = plain_table()
        out.print(table.title, markup=False)
        shown.add_row("", *(column.name for column in table.columns))
        for row in table.rows:
            shown.add_row(row.name, *(f"{row.mean(column.name):.{column.digits}f}" for column in table.columns))
        out.print(shown)


@app.command()
def hint(
    output: Out = Path("out/hint"),
    quick: Quick = False,
    coco: Annotated[
        Path | None,
        typer.Option(help="Also run on real photos: a folder with photos/, boxes.json and captions_val2017.json."),
    ] = None,
    workers: Workers = 2,
    seeds: Seeds = None,
    leave_out: LeaveOut = None,
    base_steps: Annotated[int | None, typer.Option(min=1, help="Steps of the base that answers questions.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of tuning it.")] = None,
    show_photos: Annotated[
        bool, typer.Option(help="Show photographs in the report. Leave them out to publish it.")
    ] = True,
) -> None:
    """HINT against attention alignment and hints that mean nothing, in the simulated world and on real photos.

    What is done already in the output folder is not done again, so an interrupted run goes on where it was. Beside the
    report, a study for `saywhere study serve` is written: whose explanations do people trust?
    """
    from saywhere.build.coco_regions import CocoFolder
    from saywhere.reproduce.hint import HintExperiment

    made = HintExperiment.quick if quick else HintExperiment
    folder = None if coco is None else CocoFolder.of(coco)
    planned = made(workers=workers, show_photos=show_photos, coco=folder, left_out=tuple(leave_out or ()))
    given = {"base_steps": base_steps, "steps": steps}
    runs = {kind: _given(scale, given) if kind.endswith("vqa") else scale for kind, scale in planned.runs.items()}
    _write_study(_run(_seeded(replace(planned, runs=runs), seeds), output), output)


@app.command("hint-vqa")
def hint_vqa(
    coco: Annotated[Path, typer.Argument(help="Store of `saywhere build coco`.", show_default=False)],
    places: Annotated[
        Path, typer.Option(help="What an eye saw: data/places of `saywhere build answers`.", show_default=False)
    ],
    output: Out = Path("out/hint-vqa"),
    quick: Quick = False,
    workers: Workers = 2,
    seeds: Seeds = None,
    leave_out: LeaveOut = None,
    show_photos: Annotated[
        bool, typer.Option(help="Show photographs in the report. Leave them out to publish it.")
    ] = True,
) -> None:
    """HINT on people's questions (VQA v2) split so that priors change; also with looks without a question (SALICON).

    What is done already in the output folder is not done again, so an interrupted run goes on where it was.
    """
    from saywhere.reproduce.hint_vqa import HintVqaExperiment

    made = HintVqaExperiment.quick if quick else HintVqaExperiment
    planned = made(coco=coco, places=places, workers=workers, left_out=tuple(leave_out or ()))
    _run(_seeded(planned if show_photos else replace(planned, shown=0), seeds), output)


def _write_study(results: Results, output: Path) -> None:
    """The report's examples as a study, unless people have begun to rate one there."""
    from saywhere.studio.study import StudyItem, is_rated, write_study

    folder = output / "study"
    if is_rated(folder):
        out.print(f"{folder} stays as it is: people have rated it", markup=False)
        return
    items: list[StudyItem] = []
    for one in results.heats:
        shown = {panel.title: panel.attention for panel in one.panels}
        base, tuned = shown["base"], shown["HINT"]
        if base is None or tuned is None:
            continue
        place = -1 if one.word is None else one.word
        told = {"answer": one.answer} if one.answer else {"word": one.text.split()[place]}
        maps = {"a": base.values, "b": tuned.values}
        items.append(StudyItem(f"item-{len(items) + 1}", output / one.photo, one.text, maps, **told))
    write_study(folder, "Whose explanation is more reasonable?", {"a": "base", "b": "HINT"}, items)
    out.print(f"study:  saywhere study serve {folder}", markup=False)


@app.command()
def scenes(
    output: Out = Path("out/scenes"),
    quick: Quick = False,
    workers: Workers = 2,
    seeds: Seeds = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of captions of objects.")] = None,
    tuning: Annotated[int | None, typer.Option(min=1, help="Steps of what comes after.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="How many captions a step learns from.")] = None,
    test: Annotated[int | None, typer.Option(min=1, help="How many images to test on.")] = None,
    leave_out: LeaveOut = None,
) -> None:
    """Captions of objects, then of scenes, in the simulated world: attention, ablation and probes before and after.

    What is done already in the output folder is not done again, so an interrupted run goes on where it was.
    """
    from saywhere.reproduce.scenes import ScenesExperiment

    made = (ScenesExperiment.quick if quick else ScenesExperiment)(workers=workers)
    scale = _given(made.scale, {"steps": steps, "tuning": tuning, "batch": batch})
    world = made.world if test is None else replace(made.world, test=test)
    _run(_seeded(replace(made, scale=scale, world=world, left_out=tuple(leave_out or ())), seeds), output)


@app.command()
def patchioner(
    data: Annotated[
        Path,
        typer.Option(
            help="A folder with photos/, captions_val2017.json, boxes.json and val_coco.{ids,words,cleaned_tags}.txt; "
            "entities/coco_entities_test.json beside it is used if it is there.",
            show_default=False,
        ),
    ],
    output: Out = Path("out/patchioner"),
    photos: Annotated[
        Path | None, typer.Option(help="List of photos to use instead of the 500 held out: a 12-digit name per line.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many photos, the first of the list.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run everything on 60 photos: a check, not a result.")] = False,
    model: Annotated[str, typer.Option("--model", "-m", help="Model: a name, a folder, or owner/name on the hub.")] = (
        loading.BASE
    ),
) -> None:
    """Patch-ioner's tables with a model as it is, on photos that no training saw, and a verdict for each claim.

    Photos of the page and the report stay in the output folder. A second run does not look again.
    """
    from saywhere.reproduce.patchioner import PHOTOS_PAGE, PatchionerExperiment

    made = PatchionerExperiment.quick if quick else PatchionerExperiment
    _run(made(seers=open_writers(model), data=data, photos=photos, limit=limit), output)
    out.print(f"photos: {output / PHOTOS_PAGE}", markup=False)


@app.command()
def dense(
    regions: Annotated[
        Path,
        typer.Argument(
            help="Described boxes: Visual Genome's regions, RefCOCO's refs, or JSON: image → [{box_xyxy, caption}, …].",
            show_default=False,
        ),
    ],
    photos: Annotated[Path, typer.Option(help="Folder with the photos.")],
    beside: Annotated[
        Path | None, typer.Option(help="Visual Genome's image data, or the COCO instances that refs are about.")
    ] = None,
    output: Out = Path("out/dense"),
    model: Annotated[str, typer.Option("--model", "-m", help="Model: a name, a folder, or owner/name on the hub.")] = (
        loading.BASE
    ),
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many boxes, the first ones.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Caption 60 boxes: a check, not a result.")] = False,
) -> None:
    """Dense captioning: mAP and caption measures of true boxes, by every way to weigh patches, and of crops."""
    from saywhere.reproduce.region_captions import read_dense

    read = partial(read_dense, regions, beside)
    _caption_regions("dense", read, photos, output, model, limit, quick)


@app.command()
def traces(
    benchmark: Annotated[Path, typer.Argument(help="What `saywhere build trace-benchmark` wrote.", show_default=False)],
    photos: Annotated[Path, typer.Option(help="Folder with the photos.")],
    output: Out = Path("out/traces"),
    model: Annotated[str, typer.Option("--model", "-m", help="Model: a name, a folder, or owner/name on the hub.")] = (
        loading.BASE
    ),
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many traces, the first ones.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Caption 60 traces: a check, not a result.")] = False,
) -> None:
    """Trace captioning: caption measures of traces and their sentences, by every way to weigh patches, and of crops."""
    from saywhere.reproduce.region_captions import read_traces

    _caption_regions("traces", partial(read_traces, benchmark), photos, output, model, limit, quick)


def _caption_regions(
    kind: Literal["dense", "traces"],
    read: Callable[..., tuple[list[RegionItem], dict[str, int]]],
    photos: Path,
    output: Path,
    model: str,
    limit: int | None,
    quick: bool,
) -> None:
    from saywhere.cli.seeing import opened
    from saywhere.formats.files import find_photo
    from saywhere.reproduce.region_captions import RegionCaptionExperiment, first_regions

    items, left_out = read(lambda image: find_photo(photos, image) is not None)
    chosen = first_regions(items, limit, quick)
    files = {item.image_id: path for item in chosen if (path := find_photo(photos, item.image_id)) is not None}
    experiment = RegionCaptionExperiment(
        kind=kind, model=opened(model, "caption"), items=chosen, photos=files, left_out=left_out, is_quick=quick
    )
    [table] = _run(experiment, output).tables
    for row in table.rows:
        said = "  ".join(f"{column.name} {row.mean(column.name):.3f}" for column in table.columns)
        out.print(f"{said}  {row.name}", markup=False)


def open_writers(model: str) -> dict[str, Seer]:
    """A seer for each writer of a model, all with the same eyes; only the one that is named, if one is."""
    from saywhere.core.errors import require

    found = loading.find(model)
    require("torch", needed_for=f"the model {model!r}", extra="models")
    from saywhere.models.patchioner.seer import open_eyes, open_seer, read_config

    config = read_config(found.folder)
    eyes = open_eyes(found.folder, config)
    names = [found.writer] if found.writer else [*config.writers]
    return {name: open_seer(found.folder, name, eyes=eyes) for name in names}


for _command in (kept_reports.card, kept_reports.render, kept_reports.check):
    app.command()(_command)
