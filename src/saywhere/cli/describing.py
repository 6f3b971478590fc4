"""`saywhere describe`: a photo for people who do not see it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saywhere import loading
from saywhere.cli.console import out
from saywhere.cli.seeing import AsJson, Model, Photo, busy, looked, opened, read_first, say_json
from saywhere.core import InvalidValue

if TYPE_CHECKING:
    from saywhere.core.description import Description
    from saywhere.models.face import Look

PAGES, TEXTS = (".html", ".htm"), (".txt",)


def describe(
    photo: Photo,
    model: Model = loading.BASE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Also write it: alt text and description as .txt, or a page as .html."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a photo for people who do not see it, in the order in which people look at things.

    Only what the model is sure of is told.
    """
    _check_ending(output)
    image = read_first(photo)
    look = looked(opened(model, "caption", texts=False), photo, image)
    with busy("describing"):
        described = look.describe()
    if as_json:
        say_json(look, photo, **description_values(described))
    else:
        out.print(described.text, markup=False)
    if output is not None:
        _write(look, described, photo, output)


def description_values(described: Description) -> dict[str, Any]:
    """A description as JSON has it."""
    return {
        "alt_text": described.alt_text,
        "text": described.text,
        "things": [
            {
                "name": one.name,
                "box_xyxy": list(one.box_xyxy),
                "about": list(one.about),
                "neighbours": dict(one.neighbours),
            }
            for one in described.things
        ],
    }


def _check_ending(output: Path | None) -> None:
    if output is not None and output.suffix.lower() not in (*PAGES, *TEXTS):
        raise InvalidValue("--out", f"{output.name} ends neither in .txt nor in .html")


def _write(look: Look, described: Description, photo: Path, output: Path) -> None:
    if output.suffix.lower() in PAGES:
        from saywhere.plots.description import description_page

        description_page(look.image, described, output, photo.name)
        return
    from saywhere.atomic import write_atomic
    from saywhere.core.description import labelled

    by = f"machine-written, by {described.origin}"
    with write_atomic(output) as file:
        file.write(labelled(photo.name, by, described.alt_text, described.text).encode())
