"""`saywhere reproduce patchioner`: a model on held-out photos, in the form of the paper's tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere import loading
from saywhere.cli.console import out, stages

if TYPE_CHECKING:
    from saywhere.models.patchioner.seer import Seer


def patchioner(
    data: Annotated[
        Path,
        typer.Option(
            help="A folder with photos/, captions_val2017.json, boxes.json and val_coco.{ids,words,cleaned_tags}.txt; "
            "entities/coco_entities_test.json beside it is used if it is there.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for encoded photos and the report.")] = Path(
        "out/patchioner"
    ),
    photos: Annotated[
        Path | None, typer.Option(help="List of photos to use instead of the 500 held out: a 12-digit name per line.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many photos, the first of the list.")] = None,
    quick: Annotated[bool, typer.Option(help="Run everything on 60 photos: a check, not a result.")] = False,
    model: Annotated[
        str,
        typer.Option("--model", "-m", help="Model: a name, a folder, or owner/name on the hub."),
    ] = (loading.BASE),
) -> None:
    """Patch-ioner's tables with a model as it is, on photos that no training saw, and a verdict for each claim.

    Photos of the page and the report stay in the output folder. A second run does not look again.
    """
    from saywhere.reproduce.patchioner import (
        PHOTOS_PAGE,
        QUICK_BRIDGE_STEPS,
        QUICK_PHOTOS,
        PatchionerPlan,
        reproduce_patchioner,
    )

    plan = PatchionerPlan(data, photos, limit)
    if quick:
        plan = PatchionerPlan(data, photos, min(limit or QUICK_PHOTOS, QUICK_PHOTOS), QUICK_BRIDGE_STEPS)
    with stages() as progress:
        results = reproduce_patchioner(output, plan, open_writers(model), progress)
    for claim in results.claims:
        sign = {"held": "✓", "not held": "✗"}.get(claim.verdict, "?")
        mean = claim.differences[0]
        interval = f"{mean:+.3g}, 95 % {claim.low:+.3g} to {claim.high:+.3g}"
        out.print(f"{sign} {claim.text}: {claim.verdict} ({claim.measure} {interval})", markup=False)
    out.print(f"report: {output / 'report.html'} and {output / 'report.md'}", markup=False)
    out.print(f"photos: {output / PHOTOS_PAGE}", markup=False)


def open_writers(model: str) -> dict[str, Seer]:
    """A seer for each writer of a model, all with the same eyes; only the one that is named, if one is."""
    from saywhere.core.errors import require

    found = loading.find(model)
    require("torch", needed_for=f"the model {model!r}", extra="models")
    from saywhere.models.patchioner.seer import open_seer, read_config

    names = [found.writer] if found.writer else [*read_config(found.folder).writers]
    first = open_seer(found.folder, names[0])
    others = {name: open_seer(found.folder, name, encoder=first.encoder, detector=first.detector) for name in names[1:]}
    return {names[0]: first, **others}
