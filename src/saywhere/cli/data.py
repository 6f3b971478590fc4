"""`saywhere data`: check, convert, describe and show files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from saywhere.cli.console import counted, err, out, plain_table
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.formats import registry
from saywhere.formats.files import find_photo
from saywhere.formats.record import InvalidRecord

app = typer.Typer(help="Check, convert, describe and show data files.", no_args_is_help=True, rich_markup_mode=None)

Files = Annotated[
    list[Path], typer.Argument(help="Data files (or folders, where a format is one).", show_default=False)
]
File = Annotated[Path, typer.Argument(help="A data file (or a folder, where the format is one).", show_default=False)]
FormatOption = Annotated[
    str | None, typer.Option("--format", "-f", help="Format of the input; detected from its content by default.")
]


def format_of(path: Path, name: str | None) -> registry.Format:
    """The format named, or the one that the file looks like."""
    return registry.get(name) if name else registry.detect(path)


def read(path: Path, name: str | None) -> Iterator[Any]:
    """Values and InvalidRecord of a file, with progress."""
    return counted(format_of(path, name).module.read(path), f"reading {path.name}")


def read_good(path: Path, name: str | None) -> Iterator[Any]:
    """Values only; every InvalidRecord is said on standard error and passed over."""
    for value in read(path, name):
        if isinstance(value, InvalidRecord):
            err.print(f"skipped {value}", markup=False, style="yellow")
        else:
            yield value


def read_narratives(path: Path, name: str | None) -> Iterator[Narrative]:
    """The narratives of a file that holds narratives."""
    holds = format_of(path, name)
    if holds.holds != "narratives":
        raise InvalidFile(path, f"holds {holds.holds} ({holds.title}), and narratives are needed here")
    return read_good(path, name)


@app.command()
def formats() -> None:
    """List the formats."""
    table = Table("name", "what it is", "holds", "read", "write", box=None, pad_edge=False)
    for f in registry.FORMATS.values():
        table.add_row(f.name, f.title, f.holds, "yes" if f.name in registry.READABLE else "", "yes" if f.writes else "")
    out.print(table)


@app.command()
def check(files: Files, format: FormatOption = None) -> None:  # noqa: A002 - the option's name
    """List every bad record with its line and reason, and what is odd but valid. Exit code 1 if any record is bad."""
    bad_files = 0
    for path in files:
        bad_files += _check_one(path, format)
    if bad_files:
        raise typer.Exit(1)


def _check_one(path: Path, name: str | None) -> bool:
    try:
        kind = format_of(path, name)
        good, bad, remarks = _tally(path, kind)
    except InvalidFile as error:
        out.print(str(error), markup=False, style="red")
        return True
    verdict = f"{good:,} good, {bad:,} bad" if bad else f"{good:,} good"
    out.print(f"{path}: {kind.title}: {verdict}", markup=False, style="red" if bad else "green")
    for remark, count in sorted(remarks.items(), key=lambda item: (-item[1], item[0])):
        out.print(f"  {count:,} × {remark}", markup=False)
    return bad > 0


def _tally(path: Path, kind: registry.Format) -> tuple[int, int, Counter[str]]:
    """Counts of good and bad records, the bad ones printed, and of remarks about good ones."""
    from saywhere.formats.localized_narratives import remarks as odd

    good = bad = 0
    remarks: Counter[str] = Counter()
    seen: set[str] = set()
    for value in counted(kind.module.read(path), f"checking {path.name}"):
        if isinstance(value, InvalidRecord):
            bad += 1
            out.print(str(value), markup=False)
            continue
        good += 1
        if isinstance(value, Narrative):
            remarks.update(odd(value))
            if value.id in seen:
                remarks["the same data set, image and annotator as a record before"] += 1
            seen.add(value.id)
    return good, bad, remarks


_BY_SUFFIX = {
    ".jsonl": "localized-narratives",
    ".parquet": "parquet",
    ".jsonld": "web-annotation",
    ".json": "coco-captions",
}


@app.command()
def convert(
    source: File,
    target: Annotated[Path, typer.Argument(help="File to write; .gz compresses it.", show_default=False)],
    format: FormatOption = None,  # noqa: A002 - the option's name
    to: Annotated[str | None, typer.Option(help="Format of the output; told by its name by default.")] = None,
) -> None:
    """Write a file in another format. Bad records are reported and left out; the exit code is then 1."""
    suffix = Path(target.stem).suffix if target.suffix == ".gz" else target.suffix
    wanted = registry.get(to or _BY_SUFFIX.get(suffix) or _unknown_suffix(target))
    kind = format_of(source, format)
    bad: list[InvalidRecord] = []
    written = wanted.write(target, _converted(source, kind, wanted, bad))
    for record in bad:
        err.print(f"left out {record}", markup=False, style="yellow")
    out.print(f"{target}: {written:,} {wanted.holds} written, {len(bad):,} records left out", markup=False)
    if bad:
        raise typer.Exit(1)


def _unknown_suffix(target: Path) -> str:
    raise InvalidValue(
        f"output {target.name}", "its name tells no format", f"say which with --to: {', '.join(registry.WRITABLE)}"
    )


def _converted(source: Path, kind: registry.Format, wanted: registry.Format, bad: list[InvalidRecord]) -> Iterator[Any]:
    from saywhere.formats.coco_captions import CaptionRecord

    as_captions = kind.holds == "narratives" and wanted.name == "coco-captions"
    if kind.holds != wanted.holds and not as_captions:
        raise InvalidValue(f"{source.name}", f"holds {kind.holds}, which cannot become {wanted.holds} ({wanted.title})")
    for number, value in enumerate(counted(kind.module.read(source), f"converting {source.name}"), 1):
        if isinstance(value, InvalidRecord):
            bad.append(value)
        elif as_captions:
            yield CaptionRecord(image_id=value.image_id, caption_id=number, caption=value.caption)
        else:
            yield value


@app.command()
def stats(
    file: File,
    format: FormatOption = None,  # noqa: A002 - the option's name
    png: Annotated[Path | None, typer.Option(help="Also draw the distributions into this PNG file.")] = None,
) -> None:
    """Describe a file in numbers, and in a picture if asked."""
    kind = format_of(file, format)
    if kind.holds != "narratives":
        if png:
            raise InvalidValue("--png", f"{file.name} holds {kind.holds}; only narratives have distributions to draw")
        kinds = Counter(
            "bad records" if isinstance(value, InvalidRecord) else kind.holds for value in read(file, format)
        )
        rows = [(name, f"{count:,}") for name, count in kinds.items()]
    else:
        from saywhere.cli.summary import Summary

        summary = Summary()
        for narrative in read_narratives(file, format):
            summary.add(narrative)
        rows = summary.rows()
        if png:
            from saywhere.plots import draw_summary, save_png

            save_png(draw_summary(summary.columns(), title=file.name), png)
    table = plain_table()
    for name, number in rows:
        table.add_row(name, number)
    out.print(table)


@app.command()
def show(
    file: File,
    output: Annotated[
        Path, typer.Option("--out", "-o", help="File to write: an .html page, or a .png of one narrative.")
    ] = Path("narratives.html"),
    photos: Annotated[
        Path | None, typer.Option(help="Folder with the photos; the folder of the file by default.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Show only narratives of this image.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many narratives.")] = 50,
    format: FormatOption = None,  # noqa: A002 - the option's name
) -> None:
    """Draw narratives: the trace coloured by time, a box for each word, and the words in time.

    Of video narratives the page shows the frames as they were pointed at, with the voice.
    """
    if output.suffix.lower() not in (".html", ".htm", ".png"):
        raise InvalidValue("--out", f"{output.name} is neither .html nor .png")
    if photos is not None and not photos.is_dir():
        raise InvalidFile(photos, "is not a folder of photos")
    folder = photos if photos is not None else file.parent
    if format_of(file, format).holds == "video narratives":
        from saywhere.cli.films import show_films

        show_films(list(read_good(file, format)), file, folder, output, only, limit)
        return
    chosen = (n for n in read_narratives(file, format) if only is None or n.image_id == only)
    narratives = list(islice(chosen, limit))
    if not narratives:
        raise nothing_to_show(file, only)
    found = [(narrative, find_photo(folder, narrative.image_id)) for narrative in narratives]
    if output.suffix.lower() == ".png":
        from saywhere.plots import draw_narrative, save_png

        save_png(draw_narrative(found[0][1], found[0][0]), output)
        shown = 1
    else:
        from saywhere.plots import narratives_page

        narratives_page(list(counted(found, "drawing", len(found))), output)
        shown = len(found)
    without = sum(photo is None for _, photo in found[:shown])
    note = f", {without:,} without a photo in {folder}" if without else ""
    out.print(f"{output}: {shown:,} narratives{note}", markup=False)


def nothing_to_show(file: Path, only: str | None) -> InvalidFile:
    """The error of a file without a narrative of the image that is asked for."""
    wanted = f" of image {only!r}" if only else ""
    return InvalidFile(file, f"holds no valid narrative{wanted} to show", "try: saywhere data check")
