"""`saywhere report`: pages that show what a model makes of photos."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere import loading
from saywhere.cli.console import counted, err, out
from saywhere.cli.look import photos_in
from saywhere.cli.seeing import Model, opened
from saywhere.core import Box, InvalidFile, InvalidValue, WholeImage
from saywhere.models.face import SKILLS, check_skill

if TYPE_CHECKING:
    from saywhere.models.face import Look
    from saywhere.models.face import Model as LoadedModel
    from saywhere.plots.seen import ShownPhoto
    from saywhere.vision import Found

app = typer.Typer(help="Pages that show what a model makes of photos.", no_args_is_help=True, rich_markup_mode=None)

_SHOWN = ("caption", "ground", "narrate", "scene")
"""The skills that the page shows."""
_MOST_THINGS = 4
_MOST_REGIONS = 6
# A little apart, so that their outlines can be told apart, too.
_CORNERS = tuple(Box(x, y, x + 0.46, y + 0.46) for y in (0.02, 0.52) for x in (0.02, 0.52))
_MIDDLE = Box(0.25, 0.25, 0.75, 0.75)


# Without a second command, typer would not ask for the first one's name.
@app.callback()
def _report() -> None:
    pass


@app.command()
def gallery(
    photos: Annotated[Path, typer.Argument(help="Folder with the photos.", metavar="DIR", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="The page to write (.html).")] = Path("gallery.html"),
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many photos, the first by name.")] = None,
    model: Model = loading.BASE,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Gallery",
) -> None:
    """One page for a folder: of each photo its caption, captions of regions, where that is found, a narrative.

    A model with captions above objects also tells the scene, and whatever other levels it has. What the model cannot
    do is left out, and said at the top.
    Photos that cannot be read are named on the page, and the exit code is then 1.
    """
    from saywhere.plots.gallery import gallery_page

    if output.suffix.lower() not in (".html", ".htm"):
        raise InvalidValue("--out", f"{output.name} does not end in .html")
    paths = photos_in(photos)[:limit]
    loaded = opened(model)
    able = [skill for skill in _SHOWN if skill in loaded.skills]
    if not able:
        check_skill(loaded, "caption")
    entries: list[ShownPhoto] = []
    failed: dict[str, str] = {}
    for path in counted(paths, "looking", len(paths)):
        try:
            entries.append(seen_in(loaded.look(path), path))
        except InvalidFile as error:
            failed[path.name] = error.reason
    if not entries:
        raise InvalidFile(
            photos, f"none of {len(paths):,} photos could be read; {paths[0].name} {failed[paths[0].name]}"
        )
    gallery_page(entries, output, title, _about(loaded, able), failed)
    out.print(f"{output}: {len(entries):,} photos", markup=False)
    for name, reason in failed.items():
        err.print(f"{photos / name}: {reason}", markup=False)
    if failed:
        raise typer.Exit(1)


def _about(model: LoadedModel, able: Sequence[str]) -> str:
    """Who looked, and what is therefore not on the page."""
    cannot = [SKILLS[skill] for skill in _SHOWN if skill not in able]
    return f"looked at by {model.name}" + (f", which cannot {' or '.join(cannot)}" if cannot else "")


def seen_in(look: Look, path: Path) -> ShownPhoto:
    """Everything that the page shows of one photo: what the model can do."""
    from saywhere.plots.seen import ShownPhoto

    width, height = look.view.frame.photo_size
    skills, first = look.model.skills, look.levels[0]
    whole, *parts = (
        look.captions([WholeImage(), *regions_of(look.view.found)], level=first) if "caption" in skills else [None]
    )
    above = [level for level in look.levels if whole is None or level != first]
    return ShownPhoto(
        path,
        path.name,
        f"{width} × {height} pixels",
        whole,
        tuple(part for part in parts if part is not None),
        look.grounded(whole.text) if whole is not None and "ground" in skills else None,
        look.narrate() if "narrate" in skills else None,
        tuple(look.caption(level=level) for level in above) if {"caption", "scene"} & {*skills} else (),
    )


def regions_of(found: tuple[Found, ...]) -> list[Box]:
    """Regions worth a caption: what a detector found, then the quarters and the middle that this covers least."""
    from saywhere.core.places import overlap
    from saywhere.models.patchioner.narration import worth_telling

    things = [Box(*one.box_xyxy) for one in worth_telling(found, _MOST_THINGS)]
    likeness = {
        part: max((overlap(part.xyxy, thing.xyxy) for thing in things), default=0.0) for part in (*_CORNERS, _MIDDLE)
    }
    rest = sorted(likeness, key=lambda part: likeness[part])
    return [*things, *rest[: _MOST_REGIONS - max(len(things), 2)]]
