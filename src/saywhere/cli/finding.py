"""`saywhere find`: boxes for referring expressions, by a model or by a simple guess."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saywhere import loading
from saywhere.cli.console import out, stages, tell_left_out
from saywhere.cli.expressions import ExpressionsFile, Instances, Split, photo_opener, read_expressions
from saywhere.cli.seeing import Model, fetch_missing, opened
from saywhere.core.errors import InvalidValue, UnknownName


def find(
    expressions: ExpressionsFile,
    output: Annotated[Path, typer.Option("--out", "-o", help="File for what is found, one JSON object a line.")],
    model: Model = loading.BASE,
    guess: Annotated[
        str,
        typer.Option(help="Ask no model, but guess: centre, whole, or largest (thing of a kind that the words name)."),
    ] = "",
    photos: Annotated[Path | None, typer.Option(help="Folder of the photos, unless a store holds them.")] = None,
    instances: Instances = None,
    split: Split = "",
    most: Annotated[int | None, typer.Option(min=1, help="Photos at most.")] = None,
    masks: Annotated[bool, typer.Option("--masks", help="Also cut out what is found.")] = False,
) -> None:
    """Find what people's expressions mean in their photos, for `saywhere score referring`.

    A run that was stopped goes on where it was. Photos that cannot be read are left out; the exit code is then 1.
    """
    from saywhere.build.finding import GUESSES, by_photo, find_expressions, guess_finder, model_finder

    if guess and guess not in GUESSES:
        raise UnknownName("guess", guess, GUESSES)
    if guess and masks:
        raise InvalidValue("--masks", "a guess cuts nothing out", "leave --guess or --masks out")
    said = by_photo(read_expressions(expressions, instances, split), most)
    open_photo = photo_opener(expressions, photos)
    if masks:
        fetch_missing(loading.needed_for_masks(model))
    asked = opened(model, "ground")
    finder = guess_finder(guess, asked) if guess else model_finder(asked, masks=masks)
    with stages() as progress:
        unread = find_expressions(said, open_photo, finder, output, progress)
    tell_left_out([f"{photo}: {reason}" for photo, reason in unread.items()])
    found = len(said) - sum(one.photo in unread for one in said)
    out.print(f"{output}: {found:,} of {len(said):,} expressions looked for, by {finder.by}", markup=False)
    if unread:
        raise typer.Exit(1)
