"""`saywhere index` and `search`: a folder of photos becomes a library, in which photos and places are found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import saywhere
from saywhere import loading
from saywhere.cli.batch_options import EngineName, PhotoTimeout, RayAddress, RetryFailed, Workers, chosen_engine
from saywhere.cli.console import err, out, rated, stages, tell_left_out
from saywhere.cli.pointing import Pointing
from saywhere.cli.seeing import AsJson, Model, busy, opened
from saywhere.core import InvalidValue, Trace, WholeImage

if TYPE_CHECKING:
    from saywhere.core.types import Floats32
    from saywhere.index import Hit
    from saywhere.models.patchioner.seer import Seer

Place = Annotated[
    str | None,
    typer.Option(
        "--index", metavar="FOLDER|URL", help="The index, DIR/.saywhere by default; URLs are s3://, gs:// and az://."
    ),
]


def index(
    photos: Annotated[Path, typer.Argument(help="Folder with the photos.", metavar="DIR", show_default=False)],
    narratives: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Recorded narratives to take in, too. Can be repeated.")
    ] = None,
    folder: Place = None,
    model: Model = loading.BASE,
    engine: EngineName = "local",
    workers: Workers = 0,
    address: RayAddress = "",
    timeout: PhotoTimeout = 60.0,
    retry_failed: RetryFailed = False,
    break_lock: Annotated[
        bool, typer.Option("--break-lock", help="A writer of an index at a URL was killed on another machine.")
    ] = False,
) -> None:
    """Look at every photo of a folder once and keep what is needed to search them.

    Called again, it looks at new and changed photos only, and forgets those that are gone. A run that was stopped goes
    on where it was. Photos that cannot be read are named, and the exit code is then 1.
    """
    from saywhere.index import Library, update

    seer = _seeing(model)
    with stages() as show:
        done = update(
            photos,
            seer,
            opens=model,
            folder=folder,
            narratives=narratives or (),
            engine=chosen_engine(engine, workers, address),
            timeout_s=timeout,
            retry_failed=retry_failed,
            break_lock=break_lock,
            progress=rated(show),
        )
    library = Library(photos, folder)
    counts = library.counts
    tell_left_out([f"{photos / name}: {reason}" for name, reason in library.failed().items()])
    if done.bad_records:
        err.print(f"left out {done.bad_records:,} bad records of narratives", style="yellow")
    out.print(
        f"{library.place}: {counts['photos']:,} photos ({done.new:,} new, {done.changed:,} changed, "
        f"{done.deleted:,} gone), {counts['regions']:,} regions, {counts['said']:,} pieces of narratives",
        markup=False,
    )
    if done.failed:
        raise typer.Exit(1)


def search(
    text: Annotated[str, typer.Argument(help="What to look for.", show_default=False)] = "",
    library: Annotated[
        str, typer.Option("--library", "-l", metavar="DIR|URL", help="Folder with the photos, or the URL of an index.")
    ] = ".",
    region: Annotated[bool, typer.Option("--region", help="Rank places in photos, not whole photos.")] = False,
    near: Annotated[str, typer.Option(metavar="TEXT", help="Something else that is to be beside it.")] = "",
    trace: Annotated[
        str, typer.Option(metavar="FILE|X,Y;X,Y;…", help="Where in the photo it is to be; with --like, what to find.")
    ] = "",
    like: Annotated[
        Path | None, typer.Option(metavar="PHOTO", help="Find what this photo shows, or its --box or --trace.")
    ] = None,
    box: Annotated[str, typer.Option(metavar="X1,Y1,X2,Y2", help="A rectangle of the photo of --like.")] = "",
    said: Annotated[bool, typer.Option("--said", help="Find what people said in recorded narratives.")] = False,
    word: Annotated[str, typer.Option(metavar="NAME", help="Only photos where a thing of this name was found.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many photos.")] = 12,
    folder: Place = None,
    model: Model = loading.BASE,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write the photos to a .html or .png file.")
    ] = None,
) -> None:
    """Find photos, and the place in each, by a text, by an example or by what people said.

    Coordinates are fractions of the photo's width and height, x to the right, y down.
    """
    from saywhere.index import Library, Query
    from saywhere.index import search as find
    from saywhere.index.library import read_about, tables_place
    from saywhere.language.coco_aliases import classes_named

    if output is not None and output.suffix.lower() not in (".html", ".png"):
        raise InvalidValue("--out", f"{output.name} ends neither in .html nor in .png")
    if bool(text.strip()) == (like is not None):
        raise InvalidValue("search", "needs a text or --like PHOTO, one of them")
    if box and like is None:
        raise InvalidValue("--box", "is a region of the photo of --like, which is not given")
    photos, folder = _photos_and_index(library, folder)
    if output is not None and photos is None:
        raise InvalidValue("--out", "shows the photos, whose folder is not given", f"-l DIR --index {folder}")
    read_about(tables_place(photos or ".", folder))
    place = _trace(trace, like) if trace else None
    seer = _seeing(model)
    with busy("searching"):
        vector = seer.texts([text])[0] if like is None else _example(seer, like, box, place)
        query = Query(
            vector,
            regions=region or bool(box) or (like is not None and place is not None),
            near=seer.texts([near])[0] if near.strip() else None,
            trace=place if like is None else None,
            said=said,
            word=word,
            names=classes_named(text),
            query=seer.queries([text])[0] if like is None else None,
        )
        # After the model, which may begin processes: LanceDB has threads.
        opened_library = Library(photos or ".", folder)
        hits = find(opened_library, query, limit)
    if output is not None and photos is not None:
        _show(hits, photos, output, text or f"like {like.name if like else ''}", opened_library.counts["photos"])
    if as_json:
        made_by = {"saywhere": saywhere.__version__, "model": seer.name}
        typer.echo(json.dumps({"hits": [asdict(hit) for hit in hits], "made_by": made_by}, allow_nan=False))
        return
    _tell(hits)


def _photos_and_index(library: str, index: str | None) -> tuple[Path | None, str | None]:
    """The folder of the photos, which need not be here to be found, and the place of the index."""
    from saywhere.index.stores import is_store

    if not is_store(library):
        return Path(library), index
    if index is not None:
        raise InvalidValue("--index", f"and -l {library} both name an index", "-l DIR is then the folder of the photos")
    return None, library


def _seeing(model: str) -> Seer:
    from saywhere.index import checked_seeing

    return checked_seeing(opened(model))


def _trace(text: str, like: Path | None) -> Trace:
    [trace, *more] = Pointing(like or Path("photo")).regions([], [], [], [text])
    if more or not isinstance(trace, Trace):
        raise InvalidValue("--trace", f"{text} holds {1 + len(more)} traces, not one")
    return trace


def _example(seer: Seer, photo: Path, box: str, trace: Trace | None) -> Floats32:
    """The vector of a photo, of a box of it, or of what a trace on it goes over."""
    if box and trace is not None:
        raise InvalidValue("--box", "and --trace are both given", "one region is looked for")
    look = seer.look(photo)
    if not box and trace is None:
        contrast: Floats32 = look.aligned.contrast()
        return contrast
    [region] = [trace] if trace is not None else Pointing(photo).regions([box], [], [], [])
    vector: Floats32 = look.aligned.vectors([region or WholeImage()])[0]
    return vector


def _tell(hits: Sequence[Hit]) -> None:
    if not hits:
        out.print("nothing found")
        return
    table = Table("score", "photo", "where", "what", box=None, pad_edge=False)
    for hit in hits:
        where = "" if hit.box_xyxy is None else ",".join(f"{value:.2f}" for value in hit.box_xyxy)
        table.add_row(f"{hit.score:.3f}", hit.photo or f"({hit.image_id})", where, _what(hit))
    out.print(table, markup=False)


def _what(hit: Hit) -> str:
    if not hit.said:
        return hit.name
    who = f", annotator {hit.who}" if hit.who else ""
    return f"“{hit.said}” at {hit.start_s:.1f} s{who}"


def _show(hits: Sequence[Hit], root: Path, output: Path, title: str, photos: int) -> None:
    from saywhere.plots.hits import ShownHit, draw_hits, hits_page
    from saywhere.plots.sheet import save_png

    shown = [
        ShownHit(root / hit.photo if hit.photo else None, hit.photo or hit.image_id, _about(hit), hit.box_xyxy)
        for hit in hits
    ]
    if output.suffix.lower() == ".png":
        save_png(draw_hits(shown, title), output)
    else:
        hits_page(shown, output, title, f"the best of {photos:,}")


def _about(hit: Hit) -> str:
    what = _what(hit)
    return f"{hit.score:.2f} · {what}" if what else f"{hit.score:.2f}"
