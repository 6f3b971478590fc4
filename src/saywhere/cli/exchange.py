"""`saywhere studio import` and `saywhere studio export`: what a Studio exchanges with other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.atomic import write_atomic
from saywhere.cli.console import MB, counted, err, out
from saywhere.cli.studio import studio
from saywhere.core.errors import InvalidFile, require

if TYPE_CHECKING:
    from saywhere.studio.narratives import NarrativeStore
    from saywhere.studio.photos import PhotoStore

app = typer.Typer(no_args_is_help=False)
app.callback(invoke_without_command=True)(studio)

_MOST_NAMED = 20
Folder = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder where photos and narratives are kept.")]


@app.command("import")
def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(help="Localized Narratives, COCO captions or instances, or Web Annotation. Plain or gzipped."),
    ],
    photos: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take photos that the files name from this folder.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Take files of other programs into the Studio's folder. Bad records are named and passed over."""
    store, narratives = _stores(folder, new=True)
    from saywhere.formats.record import InvalidRecord
    from saywhere.studio.image_names import PhotoNames
    from saywhere.studio.imports import Tally, import_narratives

    if photos is not None and not photos.is_dir():
        raise InvalidFile(photos, "is not a folder")
    names = PhotoNames(store, photos)
    for path in files:
        tally = Tally()
        found = import_narratives(path, names, narratives, recordings=True)
        for one in counted(found, f"taking {path.name}"):
            tally.count(one)
            if isinstance(one, InvalidRecord) and tally.bad <= _MOST_NAMED:
                err.print(f"passed over {one}", markup=False)
        if tally.bad > _MOST_NAMED:
            err.print(f"passed over {tally.bad - _MOST_NAMED:,} more", markup=False)
        out.print(f"{path}: {tally}", markup=False)
    if names.taken:
        out.print(f"{names.taken:,} photos taken from {photos}", markup=False)


@app.command("export")
def export_all(
    target: Annotated[Path, typer.Argument(help="The zip to write.")],
    folder: Folder = None,
) -> None:
    """Write everything as one zip: photos, recordings, Localized Narratives (of videos, too), COCO captions, Web
    Annotations."""
    store, narratives = _stores(folder)
    from saywhere.studio.archive import Archive
    from saywhere.studio.footage import FootageStore
    from saywhere.studio.narratives import NarrativeStore

    home = store.folder.parent
    filmed = NarrativeStore(home / "video_narratives")
    archive = Archive(store, narratives, FootageStore(home / "footage", None, (), store.limits), filmed)
    size = 0
    with write_atomic(target) as file:
        for piece in counted(archive.pieces(), "packing"):
            file.write(piece)
            size += len(piece)
    told = len(narratives.ids()) + len(filmed.ids())
    out.print(f"{target}: {len(archive.names):,} photos, {told:,} narratives, {size / MB:.1f} MB", markup=False)


def _stores(folder: Path | None, *, new: bool = False) -> tuple[PhotoStore, NarrativeStore]:
    """new: an empty folder may become a Studio's, and so may the one among the user's data if it is not there."""
    require("fastapi", needed_for="the Studio", extra="studio")
    from saywhere.studio.narratives import NarrativeStore
    from saywhere.studio.photos import PhotoStore
    from saywhere.studio.settings import Limits, default_folder

    home = folder or default_folder()
    begun = (home / "narratives").is_dir() or (home / "photos").is_dir()
    fresh = not any(home.iterdir()) if home.is_dir() else folder is None
    if not (begun or (new and fresh)):
        hint = f"give the folder that the Studio names when it starts, or begin one: saywhere studio --folder {home}"
        raise InvalidFile(home, "is not a Studio's folder", hint)
    return PhotoStore(home / "photos", Limits()), NarrativeStore(home / "narratives")
