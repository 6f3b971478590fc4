"""Referring expressions out of files and stores, for the commands that find them and score what was found."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.data import format_of, read_good
from saywhere.core.errors import InvalidFile

if TYPE_CHECKING:
    from PIL import Image

    from saywhere.build.finding import SaidExpression

ExpressionsFile = Annotated[
    Path,
    typer.Argument(
        help="RefCOCO's refs as JSON, with --instances; expressions with boxes as TSV; or a store of `saywhere build "
        "coco`, of which the photos count that nothing learnt from."
    ),
]
Instances = Annotated[
    Path | None, typer.Option(help="COCO instances: the objects of RefCOCO's refs, with their masks.")
]
Split = Annotated[str, typer.Option(help="Take this split alone, such as val or testA.")]


def read_expressions(path: Path, instances: Path | None, split: str = "") -> list[SaidExpression]:
    """All expressions of a file or a store that are of a split; at least one."""
    said = [one for one in _expressions(path, instances) if not split or one.split == split]
    if not said:
        raise InvalidFile(path, f"has no expression{f' of the split {split!r}' if split else ''}")
    return said


def photo_opener(path: Path, photos: Path | None) -> Callable[[str], Image.Image]:
    """How the photo of an expression is opened: out of the store, or from a folder, by COCO's number in its name."""
    from PIL import Image

    from saywhere.vision import read_photo

    if path.is_dir():
        from saywhere.store import Store

        store = Store(path)
        return lambda key: read_photo(Image.open(io.BytesIO(bytes(store.by_key(key)["jpeg"]))))
    if photos is None:
        raise InvalidFile(path, "holds no photos", "give their folder with --photos")
    from saywhere.cli.look import photos_in

    names = {_number(one.stem): one for one in photos_in(photos)}

    def opened(key: str) -> Image.Image:
        if key not in names:
            raise InvalidFile(photos, f"has no photo {key}")
        return read_photo(names[key])

    return opened


def _number(stem: str) -> str:
    """COCO's number in the name of a photo, without zeros before it; the name if it ends in none."""
    digits = stem[len(stem.rstrip("0123456789")) :]
    return str(int(digits)) if digits else stem


def _expressions(path: Path, instances: Path | None) -> Iterator[SaidExpression]:
    from saywhere.build.finding import SaidExpression
    from saywhere.formats import refcoco
    from saywhere.formats.record import InvalidRecord

    if path.is_dir():
        yield from _stored(path)
        return
    kind = format_of(path, None).name
    if kind == "referring-lines":
        for line in read_good(path, kind):
            yield SaidExpression(str(line.line), str(line.image_id), line.split, line.text, line.box_xyxy)
        return
    if kind != "refcoco":
        raise InvalidFile(path, "holds no referring expressions", "give RefCOCO's refs as JSON, or a TSV")
    if instances is None:
        raise InvalidFile(path, "names its objects by number alone", "give the file of their boxes with --instances")
    for ref in refcoco.read(path, instances):
        if isinstance(ref, InvalidRecord) or ref.instance is None:
            raise InvalidFile(path, f"a ref cannot be read: {ref}")
        mask = ref.instance.mask if ref.instance.segmentation is not None else None
        for one in ref.expressions:
            place = ref.instance.box_xyxy
            yield SaidExpression(str(one.sentence_id), str(ref.image_id), ref.split, one.text, place, mask)


def _stored(folder: Path) -> Iterator[SaidExpression]:
    from saywhere.build.coco import KIND
    from saywhere.build.finding import SaidExpression
    from saywhere.store import Store

    for row in Store(folder, KIND):
        for number, one in enumerate((row["split"] == "validation" and row["referring"]) or ()):
            left, top, right, bottom = one["box_xyxy"]
            text = " ".join(one["expression"].split())
            if text:
                yield SaidExpression(f"{row.key}#{number}", row.key, one["split"], text, (left, top, right, bottom))
