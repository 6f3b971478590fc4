"""`saywhere report`: pages that show what a model makes of photos."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere import loading
from saywhere.cli.console import counted, err, out
from saywhere.cli.look import photos_in
from saywhere.cli.seeing import Model, opened, shown_caption
from saywhere.core import Box, InvalidFile, InvalidValue, WholeImage

if TYPE_CHECKING:
    from saywhere.models.patchioner.seer import Look
    from saywhere.plots.seen import Seen
    from saywhere.vision import Found

app = typer.Typer(help="Pages that show what a model makes of photos.", no_args_is_help=True, rich_markup_mode=None)

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

    A model with captions above objects also tells the scene, and whatever other levels it has.
    Photos that cannot be read are named on the page, and the exit code is then 1.
    """
    from saywhere.plots.gallery import gallery_page

    if output.suffix.lower() not in (".html", ".htm"):
        raise InvalidValue("--out", f"{output.name} does not end in .html")
    paths = photos_in(photos)[:limit]
    seer = opened(model)
    entries: list[Seen] = []
    failed: dict[str, str] = {}
    for path in counted(paths, "looking", len(paths)):
        try:
            entries.append(seen_in(seer.look(path), path))
        except InvalidFile as error:
            failed[path.name] = error.reason
    if not entries:
        raise InvalidFile(
            photos, f"none of {len(paths):,} photos could be read; {paths[0].name} {failed[paths[0].name]}"
        )
    gallery_page(entries, output, title, f"looked at by {seer.name}", failed)
    out.print(f"{output}: {len(entries):,} photos", markup=False)
    for name, reason in failed.items():
        err.print(f"{photos / name}: {reason}", markup=False)
    if failed:
        raise typer.Exit(1)


def seen_in(look: Look, path: Path) -> Seen:
    """Everything that the page shows of one photo."""
    from saywhere.plots.seen import Placed, Seen

    regions = regions_of(look.view.found)
    whole, *parts = look.captions([WholeImage(), *regions])
    grounded = look.grounded(whole.text)
    width, height = look.view.frame.photo_size
    return Seen(
        path,
        path.name,
        f"{width} × {height} pixels",
        shown_caption(WholeImage(), whole),
        tuple(shown_caption(region, part) for region, part in zip(regions, parts, strict=True)),
        Placed(grounded.words, grounded.boxes),
        look.narrate(),
        tuple(shown_caption(WholeImage(), look.caption(level=level), level) for level in look.levels[1:]),
    )


def regions_of(found: tuple[Found, ...]) -> list[Box]:
    """Regions worth a caption: what a detector found, then the quarters and the middle that this covers least."""
    from saywhere.models.patchioner.narration import overlap, worth_telling

    things = [Box(*one.box_xyxy) for one in worth_telling(found, _MOST_THINGS)]
    likeness = {
        part: max((overlap(part.xyxy, thing.xyxy) for thing in things), default=0.0) for part in (*_CORNERS, _MIDDLE)
    }
    rest = sorted(likeness, key=lambda part: likeness[part])
    return [*things, *rest[: _MOST_REGIONS - max(len(things), 2)]]
