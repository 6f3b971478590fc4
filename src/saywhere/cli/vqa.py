"""`saywhere build vqa` and `build answers`: what UpDn and HINT learn from, and the answers of saywhere-base."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from saywhere.cli.console import err, out, stages

_SHOWN = 20


def vqa(
    split: Annotated[
        list[str],
        typer.Argument(help="NAME=QUESTIONS,ANSWERS for each split; train is required.", show_default=False),
    ],
    features: Annotated[Path, typer.Option(help="Region features of the photos: npz, h5, lmdb or tsv.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write for the tasks updown-vqa and hint-vqa.")],
    attention: Annotated[
        Path | None, typer.Option(help="Human attention: a folder of VQA-HAT maps, or a JSON of boxes to look at.")
    ] = None,
    least_count: Annotated[int, typer.Option(min=1, help="Keep answers that are correct at least this often.")] = 9,
) -> None:
    """Make VQA v2, VQA-CP or other questions ready to learn from.

    Bad records are reported and left out; the exit code is then 1.
    """
    from saywhere.build.vqa import parse_splits, prepare_vqa
    from saywhere.models.region_features import open_features

    splits = parse_splits(split)
    with open_features(features) as seen, stages() as progress:
        made = prepare_vqa(output, splits, seen, attention, progress, least_count)
    counts = made.questions.counts
    out.print(f"{output}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()), markup=False)
    said = [str(record) for record in made.bad]
    said += [f"question {key}: human attention {reason}" for key, reason in made.refused.items()]
    said += [f"question {one.id}: {one.reason}" for one in made.questions.skipped]
    for line in said[:_SHOWN]:
        err.print(f"left out {line}", markup=False, style="yellow")
    if len(said) > _SHOWN:
        err.print(f"left out {len(said) - _SHOWN:,} more", style="yellow")
    if made.unasked:
        err.print(f"{made.unasked:,} attention maps are of questions in no split", style="yellow")
    if said:
        raise typer.Exit(1)


def answers(
    coco: Annotated[Path, typer.Argument(help="Folder with photos/, boxes.json and captions_val2017.json.")],
    output: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for encoded photos, questions, the run and answers/.")
    ],
    workers: Annotated[int, typer.Option(min=1, help="How many processes encode photos.")] = 2,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps; as for saywhere-base by default.")] = None,
) -> None:
    """Make the part of saywhere-base that answers questions; its accuracy on the photos held out."""
    from saywhere.build.answers import AnswerScale, build_answers
    from saywhere.build.coco_regions import CocoFolder

    changes: dict[str, Any] = {} if steps is None else {"steps": steps}
    with stages() as progress:
        found = build_answers(output, CocoFolder.of(coco), AnswerScale(**changes), progress, workers)
    for name, value in found.items():
        out.print(f"{100 * value:5.1f} %  {name}", markup=False)
    out.print(f"{output / 'answers'}: copy it into a model's folder and name it in seer.json", markup=False)
