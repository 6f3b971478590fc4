"""`saywhere collect`: people say where pictures are taken, what happens in them and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from saywhere.cli.console import counted, err, out
from saywhere.cli.studio import Browser, Host, Names, Port, TokenFile, bound, page_address, read_token, run
from saywhere.core.errors import InvalidFile, MissingDependency, require

if TYPE_CHECKING:
    from saywhere.studio.collect import Collection
    from saywhere.studio.collect_status import LevelStatus, Status

app = typer.Typer(
    help="Collect captions above objects from people: scene, action, rationale. Export as HL.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Argument(help="Folder of the collection.", metavar="DIR")]


@app.command()
def serve(
    folder: Folder,
    photos: Annotated[Path | None, typer.Option(metavar="PHOTOS", help="Add the photos of this folder.")] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(help="What to ask for: scene (the default), action or rationale. Can be repeated."),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(metavar="LEVEL=TEXT", help="Your own wording of a level's question. Can be repeated."),
    ] = None,
    annotators: Annotated[
        int | None, typer.Option(help="How many people answer each question about each photo; 3 if never set.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title that annotators see.")] = None,
    hold: Annotated[
        float, typer.Option(metavar="MINUTES", help="After this long, a photo that somebody left open goes to others.")
    ] = 15.0,
    port: Port = 8765,
    host: Host = "127.0.0.1",
    token_file: TokenFile = None,
    name: Names = None,
    browser: Browser = True,
) -> None:
    """Serve the collection in the browser, without a network. Each person types a code; answers are saved at once.

    What is not given stays as it was when the folder was served last.
    """
    for package in ("fastapi", "uvicorn", "sqlalchemy"):
        require(package, needed_for="a collection", extra="studio")
    from saywhere.studio.app import create_collect_app
    from saywhere.studio.collect import asked_levels, open_collection, write_collection
    from saywhere.studio.settings import StudioSettings

    token = read_token(token_file)
    settings = StudioSettings(folder, host, port, token, tuple(name or ()), collection=folder, hold_s=60 * hold)
    levels = asked_levels(level or [], question or []) if level or question else None
    collection = open_collection(folder, levels=levels, annotators=annotators, title=title)
    write_collection(_with_photos(collection, photos))
    with bound(settings) as listening:
        settings = replace(settings, port=listening.getsockname()[1])
        server, address = create_collect_app(settings), page_address(settings)
        out.print(f"saywhere collect: {address}", markup=False)
        err.print(f"Answers are kept in {folder}. Ctrl-C ends the collection.", markup=False)
        run(server, listening, settings.limits, address if browser else None)


def _with_photos(collection: Collection, folder: Path | None) -> Collection:
    """With the photos of a folder; what cannot be taken is said."""
    from saywhere.studio.collect_desk import take_photos
    from saywhere.studio.photos import photo_files

    found = dict.fromkeys(collection.photos)
    if folder is not None:
        if not folder.is_dir():
            raise InvalidFile(folder, "is not a folder")
        for one in counted(take_photos(collection, folder), "taking photos", len(photo_files(folder))):
            if isinstance(one, InvalidFile):
                err.print(f"passed over {one}", markup=False)
            else:
                found[one] = None
    if not found:
        raise InvalidFile(collection.folder, "has no photo to ask about", "take some with --photos PHOTOS")
    err.print(f"{len(found):,} photos", markup=False)
    return replace(collection, photos=tuple(found))


@app.command()
def status(folder: Folder) -> None:
    """Show how many photos have how many answers, by whom, how confident people are and how far they agree."""
    require("sqlalchemy", needed_for="what people said", extra="studio")
    from saywhere.language.scene_labels import scene_nouns_of
    from saywhere.studio.collect_status import collection_status

    try:
        found = collection_status(folder, scene_nouns_of)
    except MissingDependency as error:
        err.print(f"agreement is left out: {error}", markup=False)
        found = collection_status(folder)
    _print(found)
    for reason in found.passed_over:
        err.print(f"passed over {reason}", markup=False)


@app.command()
def export(
    folder: Folder,
    target: Annotated[Path, typer.Argument(help="File to write, such as scenes.jsonl.", metavar="OUT")],
    captions: Annotated[
        Path | None, typer.Option(help="COCO captions file whose captions become the level object.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Include photos that lack answers.")] = False,
) -> None:
    """Write the answers as HL: one line per photo, captions and confidences by level, without names."""
    require("sqlalchemy", needed_for="what people said", extra="studio")
    from saywhere.studio.collect_export import export as write

    done = write(folder, target, captions=captions, partial=partial)
    for reason in done.passed_over:
        err.print(f"passed over {reason}", markup=False)
    left_out = [
        (
            done.unfinished,
            "photos without any answer" if partial else "photos that lack answers (--partial takes them)",
        ),
        (done.further, "answers above the number asked for"),
    ]
    for count, what in left_out:
        if count:
            err.print(f"left out: {count:,} {what}", markup=False)
    if done.without_objects:
        err.print(f"{done.without_objects:,} photos have no caption in {captions}", markup=False)
    out.print(f"{target}: {done.rows:,} rows", markup=False)


def _print(found: Status) -> None:
    out.print(f"{found.title}: {found.photos:,} photos, {found.annotators} annotators each", markup=False, style="bold")
    out.print(_level_table(found.levels, found.annotators))
    people = Table("annotator", "answers", "confidence", "words", "seconds", box=None, pad_edge=False)
    for one in found.people:
        pace = "" if one.seconds is None else f"{one.seconds:.1f}"
        people.add_row(one.code, f"{one.answers:,}", f"{one.confidence:.2f}", f"{one.words:.1f}", pace)
    if found.people:
        out.print(people)
    if found.agreement is not None and found.agreement.photos:
        agreed, of = found.agreement.agreed, found.agreement.photos
        said = f"{100 * agreed / of:.0f} % ({agreed:,} of {of:,} photos that several people told)"
        out.print(f"at least two name the same scene: {said}", markup=False)


def _level_table(levels: list[LevelStatus], full: int) -> Table:
    columns = [str(n) for n in range(full)] + [f"{full} answers"]
    table = Table("level", *columns, "in all", "further", "confidence", box=None, pad_edge=False)
    for one in levels:
        sure = "" if one.confidence is None else f"{one.confidence:.2f}"
        table.add_row(one.level, *(f"{n:,}" for n in one.photos), f"{one.answers:,}", f"{one.further:,}", sure)
    return table
