"""`saywhere build masks`: masks of COCO's things, for TraceVLM to learn from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.console import out, plain_table, stages
from saywhere.cli.seeing import fetch_missing

if TYPE_CHECKING:
    from saywhere.core.types import Bools
    from saywhere.store import Store

_SHOWN = 12


def masks(
    store: Annotated[Path, typer.Argument(help="Store of COCO's photos, as `saywhere build coco` makes it.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write. A run that was stopped goes on there.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many photos, the first by number.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Masks of a photo: named ones first, then the largest.")] = 8,
    least_area: Annotated[
        float, typer.Option(min=0, max=0.99, help="Leave out boxes smaller than this share of the photo.")
    ] = 0.005,
    expressions: Annotated[
        bool, typer.Option("--expressions", help="Use only photos with referring expressions.")
    ] = False,
    least_score: Annotated[
        float, typer.Option(min=0, max=1, help="Make instructions of masks whose expected IoU reaches this.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulated pointing.")] = 0,
) -> None:
    """Cut the things of COCO's photos out by their true boxes, and write instructions for TraceVLM.

    The folder gets a store of masks as run lengths, train.jsonl and validation.jsonl for recipes, and masks.png to look
    at.
    """
    from saywhere.assets import MOBILE_SAM
    from saywhere.build.mask_instructions import write_mask_instructions
    from saywhere.build.masks import KIND, MaskSettings, build_masks
    from saywhere.plots.cut_out import draw_cut_outs
    from saywhere.plots.sheet import save_png
    from saywhere.store import Store
    from saywhere.vision.segmenter import open_segmenter

    photos = Store(store)
    settings = MaskSettings(most, least_area, expressions)
    fetch_missing([MOBILE_SAM])
    with stages() as progress:
        made = build_masks(photos, output, open_segmenter(), settings, progress, limit)
        found = Store(output, KIND)
        counts = write_mask_instructions(found, output, progress, seed=seed, least_score=least_score)
    save_png(draw_cut_outs(_shown(photos, found)), output / "masks.png")
    table = plain_table()
    rows = {"photos": made.photos, "masks": made.masks, "boxes with nothing found": made.empty, "bad photos": made.bad}
    rows |= {f"instructions: {name}": count for name, count in sorted(counts.items())}
    for name, count in rows.items():
        table.add_row(name, f"{count:,}")
    out.print(table)


def _shown(photos: Store, found: Store) -> list[tuple[bytes, list[Bools]]]:
    """Photos from all over the store, with their masks."""
    from saywhere.core.run_lengths import mask_of_runs

    shown = []
    for number in range(0, len(found), max(1, len(found) // _SHOWN)):
        row = found[number]
        masks = [mask_of_runs(one["counts"], *one["size"]) for one in row["masks"] if one is not None]
        shown.append((photos.by_key(row.key)["jpeg"], masks))
    return shown[:_SHOWN]
