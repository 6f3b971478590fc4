"""`saywhere build trace`: what the small body of TraceVLM learns from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere.cli.console import out, stages
from saywhere.core.errors import InvalidValue


def trace(
    coco: Annotated[Path, typer.Argument(help="Store that `saywhere build coco` wrote.", show_default=False)],
    features: Annotated[Path, typer.Option(help="Folder that `saywhere build eye` wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for photos, talks and tokenizer.json.")],
    eye: Annotated[
        Path | None, typer.Option(help="Folder of a trained eye; that of saywhere-base by default.", show_default=False)
    ] = None,
    photos: Annotated[int, typer.Option(min=1, help="Photos at most; those that people told most of come first.")] = (
        20_000
    ),
    talks: Annotated[int, typer.Option(min=1, help="Talks about each photo.")] = 5,
    pieces: Annotated[int, typer.Option(min=257, help="Pieces of words in the tokenizer.")] = 6000,
    instructions: Annotated[
        Path | None, typer.Option(help="More talks: a folder of `saywhere build riln --instructions`.")
    ] = None,
    instruction_photos: Annotated[Path | None, typer.Option(help="Folder with the photos of those talks.")] = None,
    bf16: Annotated[bool, typer.Option(help="Compute in bf16, faster where the processor has it.")] = True,
) -> None:
    """Make the folder that recipes/trace-small.toml trains on. Goes on where it stopped."""
    from saywhere.build.trace import MoreTalks, TraceScale, build_trace
    from saywhere.models.eye.encoder import SHIPPED
    from saywhere.store import Store

    if (instructions is None) != (instruction_photos is None):
        raise InvalidValue("--instructions, --instruction-photos", "belong together: give both, or neither")
    more = MoreTalks(instructions, instruction_photos) if instructions and instruction_photos else None
    scale = TraceScale(photos, talks, pieces, bf16=bf16)
    with stages() as progress:
        made = build_trace(Store(coco), features, eye or SHIPPED, output, scale, progress, more)
    left = f", {made.absent:,} photos without features left out" if made.absent else ""
    counts = f"{made.photos:,} photos, {made.train:,} talks to learn from, {made.validation:,} to validate with"
    out.print(f"{output}: {counts}{left}", markup=False)
