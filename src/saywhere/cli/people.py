"""`saywhere people`: annotators and reviewers with codes, who tells what, how far they are, how far they agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.console import err, out
from saywhere.cli.studio import Browser, Host, Names, Port, TokenFile, bound, page_address, read_token, run, take_photos
from saywhere.core.errors import InvalidFile, InvalidValue, require

if TYPE_CHECKING:
    from saywhere.studio.people_agreement import AgreementReport, Estimate
    from saywhere.studio.people_desk import PeopleDesk

app = typer.Typer(
    help="Annotators and reviewers with codes: who tells which photos, reviews, agreement.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Argument(help="The Studio's folder, with photos and narratives.", metavar="DIR")]


@app.command()
def serve(
    folder: Folder,
    photos: Annotated[Path | None, typer.Option(metavar="PHOTOS", help="Add the photos of this folder first.")] = None,
    port: Port = 8765,
    host: Host = "127.0.0.1",
    token_file: TokenFile = None,
    name: Names = None,
    browser: Browser = True,
) -> None:
    """Serve the pages for annotators (/) and reviewers (/review), without a network and without a model."""
    for package in ("fastapi", "uvicorn", "sqlalchemy"):
        require(package, needed_for="the pages for people", extra="studio")
    from saywhere.studio.app import create_people_app
    from saywhere.studio.settings import StudioSettings

    settings = StudioSettings(folder, host, port, read_token(token_file), tuple(name or ()), photos=photos)
    folder.mkdir(parents=True, exist_ok=True)
    if photos is not None:
        take_photos(photos, settings)
    with bound(settings) as listening:
        settings = replace(settings, port=listening.getsockname()[1])
        address = page_address(settings)
        out.print(f"saywhere people: {address}", markup=False)
        err.print(f"Reviewers add /review to the address. All is kept in {folder}. Ctrl-C ends it.", markup=False)
        run(create_people_app(settings), listening, settings.limits, address if browser else None)


@app.command()
def add(
    folder: Folder,
    code: Annotated[list[str] | None, typer.Argument(help="Codes of your own, such as P07.", metavar="[CODE]…")] = None,
    count: Annotated[int, typer.Option(min=0, max=10_000, help="Make so many new codes.")] = 0,
    reviewer: Annotated[bool, typer.Option("--reviewer", help="They review instead of telling.")] = False,
) -> None:
    """Let people take part, and print their codes. No names are kept: who has which code is yours to know."""
    if not code and not count:
        raise InvalidValue("people add", "was given no code", "name codes, such as P07, or make new ones: --count 10")
    with _desk(folder, made=True) as desk:
        for one in desk.add("reviewer" if reviewer else "annotator", code or (), count):
            out.print(one, markup=False)


@app.command()
def retire(folder: Folder, code: Annotated[str, typer.Argument(help="Whose code.", metavar="CODE")]) -> None:
    """Let somebody take part no more. What was told stays; the rest goes to others at the next `assign`."""
    with _desk(folder) as desk:
        desk.retire(code)


@app.command()
def assign(
    folder: Folder,
    each: Annotated[int, typer.Option(min=1, help="How many annotators tell each photo.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the lot: the same seed gives the same plan.")] = 0,
) -> None:
    """Give every photo to so many annotators, everybody about as many. Again later for new photos and new people."""
    with _desk(folder) as desk:
        given = desk.assign(each, seed)
        out.print(f"{given:,} places given: {len(desk.photos):,} photos, {each} annotators each", markup=False)


@app.command()
def status(folder: Folder) -> None:
    """Show how far everybody is."""
    with _desk(folder) as desk:
        for one in desk.status():
            said = f"{one.reviews:,} reviews"
            if one.role == "annotator":
                counts = (f"{state} {count:,}" for state, count in sorted(one.counts.items()))
                said = f"{one.done:,} of {one.assigned:,} done: {', '.join(counts) or 'nothing assigned'}"
            out.print(f"{one.code}  {one.role}{', left' if one.left else ''}  {said}", markup=False)
        for line in desk.log.given.bad_lines:
            err.print(f"passed over {line}", markup=False)


@app.command()
def agreement(
    folder: Folder,
    json: Annotated[Path | None, typer.Option(help="Also write it to this file.", metavar="FILE")] = None,
) -> None:
    """Show how far annotators agree on photos that several told, with 95 % intervals, and what chance would give."""
    import msgspec

    from saywhere.atomic import write_atomic

    with _desk(folder) as desk:
        from saywhere.studio.people_agreement import agreement_of

        with err.status("comparing what people told"):
            found = agreement_of(desk)
    _print(found)
    if json is not None:
        with write_atomic(json) as file:
            file.write(msgspec.json.format(msgspec.json.encode(asdict(found)), indent=1) + b"\n")


def _print(found: AgreementReport) -> None:
    out.print(f"{found.photos:,} photos that several people told, {found.narratives:,} narratives", markup=False)
    if found.unplaced:
        err.print(f"{found.unplaced:,} narratives have no word with a place; LBM is taken without them", markup=False)
    # A table of rich would cut long lines to the width of the terminal.
    for one in found.measures:
        better = "lower" if one.lower_is_better else "higher"
        of = f"people {_shown(one.people)}, chance {_shown(one.chance)}; {one.photos:,} photos, {better} is better"
        out.print(f"{one.name:<10}  {of}", markup=False)
    for each in found.annotators:
        said = f"LBM, k = 0: {_number(each.lbm)}, ROUGE-L: {_number(each.rouge_l)}, {each.photos:,} photos"
        out.print(f"{each.code} against the others  {said}", markup=False)


def _shown(one: Estimate | None) -> str:
    if one is None:
        return "none"
    return f"{one.mean:.3f}" + ("" if one.low is None else f" [{one.low:.3f}, {one.high:.3f}]")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


@contextmanager
def _desk(folder: Path, made: bool = False) -> Iterator[PeopleDesk]:
    """made: the folder is made if it is not there."""
    require("sqlalchemy", needed_for="people", extra="studio")
    from saywhere.studio.narratives import NarrativeStore
    from saywhere.studio.people_desk import PeopleDesk
    from saywhere.studio.photos import PhotoStore
    from saywhere.studio.settings import Limits

    if made:
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        raise InvalidFile(folder, "is not a folder", "begin with: saywhere people serve DIR --photos PHOTOS")
    desk = PeopleDesk(folder, NarrativeStore(folder / "narratives"), PhotoStore(folder / "photos", Limits()))
    try:
        yield desk
    finally:
        desk.log.close()
