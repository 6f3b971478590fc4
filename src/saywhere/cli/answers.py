"""`saywhere build answers`: the part of saywhere-base that answers questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from saywhere.cli.console import out, stages


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
