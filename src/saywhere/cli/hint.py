"""`saywhere reproduce hint`: HINT with its controls, and a study of whom people trust."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.console import out, stages, tell_claims

if TYPE_CHECKING:
    from saywhere.reproduce.results import Results


def hint(
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the runs and the report.")] = Path("out/hint"),
    quick: Annotated[
        bool, typer.Option(help="Run everything in a few minutes with one seed: a check, not a result.")
    ] = False,
    coco: Annotated[
        Path | None,
        typer.Option(help="Also run on real photos: a folder with photos/, boxes.json and captions_val2017.json."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="How many processes to use, each with one thread.")] = 2,
    show_photos: Annotated[
        bool, typer.Option(help="Show photographs in the report. Leave them out to publish it.")
    ] = True,
) -> None:
    """HINT against attention alignment and hints that mean nothing, in the simulated world and on real photos.

    What is done already in the output folder is not done again, so an interrupted run goes on where it was. Beside the
    report, a study for `saywhere study serve` is written: whose explanations do people trust?
    """
    from dataclasses import replace

    from saywhere.build.coco_regions import CocoFolder
    from saywhere.reproduce.hint import HintPlan, reproduce_hint

    plan = replace(HintPlan.quick(workers) if quick else HintPlan(workers=workers), show_photos=show_photos)
    with stages() as progress:
        results = reproduce_hint(output, plan, progress, None if coco is None else CocoFolder.of(coco))
    tell_claims(results.claims)
    _write_study(results, output)
    out.print(f"report: {output / 'report.html'} and {output / 'report.md'}", markup=False)
    out.print(f"study:  saywhere study serve {output / 'study'}", markup=False)


def _write_study(results: Results, output: Path) -> None:
    """The report's examples as a study, unless people have begun to rate one there."""
    from saywhere.reproduce.hint_examples import pairs
    from saywhere.studio.study import RATINGS, StudyItem, write_study

    folder = output / "study"
    if (folder / RATINGS).exists():
        out.print(f"{folder} stays as it is: people have rated it", markup=False)
        return
    items = []
    for number, (one, base, tuned) in enumerate(pairs(results.heats), 1):
        words = one.heading.split()
        word = words[one.marked] if one.marked is not None else words[-1]
        is_question = one.marked == len(words) - 1 and words[-2].endswith("?")
        prompt = " ".join(words[:-1]) if is_question else one.heading
        told = {"answer": word} if is_question else {"word": word}
        maps = {"a": base.values, "b": tuned.values}
        items.append(StudyItem(f"item-{number}", output / one.photo, prompt, maps, **told))
    write_study(folder, "Whose explanation is more reasonable?", {"a": "base", "b": "HINT"}, items)
