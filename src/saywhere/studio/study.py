"""A trust study on disk: photos, what was asked or said, and two models' explanations of each.

    STUDY/study.json      {title, question, models: {a, b}, items: [{id, photo, prompt, word or answer, maps: {a, b}}]}
    STUDY/photos/…        PNG, JPEG or WebP
    STUDY/maps/…          8-bit grey PNG, laid evenly over the whole photo; study.json may hold rows of numbers instead
    STUDY/saywhere.sqlite what people said; see study_ratings and database

A study is refused as a whole if any item is wrong: leaving items out would change what is compared.
This module needs no web server.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, UnidentifiedImageError

from saywhere.atomic import write_atomic
from saywhere.core.attention import AttentionMap
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.limits import read_whole
from saywhere.studio.participants import check_shown, has_database
from saywhere.vision.photo import PhotoLike, read_photo

Side = Literal["a", "b"]
SIDES: tuple[Side, Side] = ("a", "b")
QUESTION = "Which of the two looks at more reasonable places?"
STUDY = "study.json"
ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
MOST_ITEMS = 10_000
MOST_SIDE = 128
"""A map has at most this many rows and columns; `write_study` makes larger ones smaller, by area."""
LARGEST_SIDE = 4_096
MOST_TITLE, MOST_QUESTION, MOST_PROMPT, MOST_WORD = 200, 1_000, 2_000, 200

_KINDS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
_MOST_SAID = 3
Levels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class StudyItem:
    """One pair, as `write_study` takes it.

    prompt: the question, or the caption. Then either answer, or word: the word of the caption that is explained.
    maps: for "a" and "b", (h, w) numbers >= 0 over the whole photo, both of one shape; only ratios mean something.
    Parts of an explanation that speak against the answer have to be left out or turned around before.
    """

    id: str
    photo: PhotoLike
    prompt: str
    maps: Mapping[str, ArrayLike]
    word: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class StudyPhoto:
    """id: the first 32 hexadecimal digits of the file's SHA-256. width, height: in pixels, upright."""

    id: str
    path: Path
    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One pair, read and checked. levels: for "a" and "b", (h, w) over the whole photo, 255 is most."""

    id: str
    photo: StudyPhoto
    prompt: str
    word: str
    answer: str
    levels: Mapping[Side, Levels]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """A study, read and checked. models: the names of "a" and "b", which participants never see."""

    folder: Path
    title: str
    question: str
    models: Mapping[Side, str]
    items: Mapping[str, Item]

    @property
    def key(self) -> str:
        """What orders and sides are drawn from: another one if items come, go or change places, or models change."""
        said = json.dumps([self.title, [self.models[side] for side in SIDES], list(self.items)])
        return hashlib.sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Turn:
    """One pair for one participant. left: whose explanation is on the left."""

    item: str
    left: Side

    @property
    def right(self) -> Side:
        return "b" if self.left == "a" else "a"


def turns(study: Study, participant: str) -> tuple[Turn, ...]:
    """The items in a participant's own random order, each model on the left as often as the other, or once more.

    The same study and participant give the same turns.
    """
    digest = hashlib.sha256(f"{study.key}\0{participant}".encode()).digest()
    draw = np.random.default_rng(int.from_bytes(digest[:16], "big"))
    count = len(study.items)
    first: Side = SIDES[draw.integers(2)]
    left = [SIDES[(i + SIDES.index(first)) % 2] for i in range(count)]
    items = list(study.items)
    order, sides = draw.permutation(count), draw.permutation(count)
    return tuple(Turn(items[i], left[j]) for i, j in zip(order, sides, strict=True))


class _Maps(msgspec.Struct, forbid_unknown_fields=True):
    a: str | list[list[float]]
    b: str | list[list[float]]


class _Item(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    photo: str
    prompt: str
    maps: _Maps
    word: str = ""
    answer: str = ""


class _Models(msgspec.Struct, forbid_unknown_fields=True):
    a: str
    b: str


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    models: _Models
    items: list[_Item]
    question: str = QUESTION


def read_study(folder: str | Path) -> Study:
    """The study of a folder. InvalidFile if anything is wrong with it; what is wrong with an item names the item."""
    path = Path(folder) / STUDY
    written = _written(path)
    try:
        _check(written)
    except InvalidValue as error:
        raise InvalidFile(path, f"{error.what}: {error.reason}", error.hint) from error
    items: dict[str, Item] = {}
    wrong: list[str] = []
    for one in written.items:
        try:
            items[one.id] = _item(one, Path(folder))
        except InvalidValue as error:
            wrong.append(f"item {one.id}: {error.what} {error.reason}")
    if wrong:
        more = f"; and {len(wrong) - _MOST_SAID:,} more items" if len(wrong) > _MOST_SAID else ""
        raise InvalidFile(path, "; ".join(wrong[:_MOST_SAID]) + more)
    models: dict[Side, str] = {"a": written.models.a, "b": written.models.b}
    return Study(Path(folder), written.title, written.question, models, items)


def write_study(
    folder: str | Path,
    title: str,
    models: Mapping[str, str],
    items: Sequence[StudyItem],
    *,
    question: str = QUESTION,
) -> Path:
    """Write a study; the path of its study.json, which comes last, so that a study is whole or not there.

    models: the names of "a" and "b". Photos are written upright, as JPEG. InvalidValue names an item that is wrong.
    """
    place = Path(folder)
    if is_rated(place):
        raise InvalidFile(place, "people have rated a study here", "write the new study into another folder")
    _both(models, "models")
    kept = [_Item(one.id, "", one.prompt, _Maps("", ""), one.word, one.answer) for one in items]
    written = _Written(title, _Models(models["a"], models["b"]), kept, question)
    _check(written)
    for entry, one in zip(kept, items, strict=True):
        try:
            entry.maps = _Maps(*(_write_map(place, levels) for levels in _pair(_drawn(one.maps)).values()))
            entry.photo = _write_photo(place, one.photo)
        except (InvalidValue, InvalidFile) as error:
            raise InvalidValue(f"item {one.id}", str(error)) from error
    with write_atomic(place / STUDY) as file:
        file.write(msgspec.json.format(msgspec.json.encode(written), indent=1) + b"\n")
    return place / STUDY


def is_rated(folder: Path) -> bool:
    """Whether people have begun to rate the study of a folder."""
    return has_database(folder) or (folder / "ratings.jsonl").exists()


def _written(path: Path) -> _Written:
    try:
        # Python's reader takes NaN, so that the map that holds it can be named.
        return msgspec.convert(json.loads(path.read_bytes()), _Written)
    except FileNotFoundError as error:
        hint = f"a study is a folder with {STUDY}; write_study makes one"
        raise InvalidFile(path, "was not found", hint) from error
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidFile(path, f"is not a study: {error}") from error


def _check(written: _Written) -> None:
    """Everything but photos and maps."""
    check_shown("title", written.title, MOST_TITLE)
    check_shown("question", written.question, MOST_QUESTION)
    for side, name in (("a", written.models.a), ("b", written.models.b)):
        check_shown(f"model {side}", name, MOST_TITLE)
    if written.models.a == written.models.b:
        raise InvalidValue("models", f"are both called {written.models.a}")
    if not 1 <= len(written.items) <= MOST_ITEMS:
        raise InvalidValue("items", f"are {len(written.items):,}, not 1 … {MOST_ITEMS:,}")
    seen: set[str] = set()
    for number, one in enumerate(written.items, 1):
        if not re.fullmatch(ID_PATTERN, one.id):
            reason = f"has the id {one.id!r}"
            raise InvalidValue(f"item number {number}", reason, "letters, digits, . _ and -, at most 80, no sign first")
        if one.id in seen:
            raise InvalidValue(f"item {one.id}", "comes twice")
        seen.add(one.id)
        check_shown(f"item {one.id}: prompt", one.prompt, MOST_PROMPT)
        if bool(one.word.strip()) == bool(one.answer.strip()):
            raise InvalidValue(f"item {one.id}", "needs a word or an answer, and not both")
        check_shown(f"item {one.id}: word or answer", one.word or one.answer, MOST_WORD)


def _both(named: Mapping[str, object], what: str) -> None:
    if set(named) != set(SIDES):
        raise InvalidValue(what, f"are of {', '.join(sorted(map(str, named))) or 'none'}, not of a and b")


def _item(one: _Item, folder: Path) -> Item:
    photo = _photo(_inside(folder, one.photo, "photo"), one.photo)
    maps: dict[Side, Levels] = {"a": _stored(folder, one.maps.a, "a"), "b": _stored(folder, one.maps.b, "b")}
    return Item(one.id, photo, one.prompt, one.word, one.answer, _pair(maps))


def _inside(folder: Path, name: str, what: str) -> Path:
    """The file that a study names; nothing outside the study's folder."""
    try:
        path = (folder / name).resolve()
        inside, there = path.is_relative_to(folder.resolve()), path.is_file()
    except (OSError, ValueError) as error:
        raise InvalidValue(what, f"{name!r} is not the name of a file") from error
    if not inside:
        raise InvalidValue(what, f"{name} is not inside the study's folder")
    if not there:
        raise InvalidValue(what, f"{name} was not found")
    return path


def _photo(path: Path, name: str) -> StudyPhoto:
    """The photo is decoded once, so that nobody meets a broken one half-way."""
    try:
        data = read_whole(path, "bytes of a description")
        width, height = read_photo(data).size
        with Image.open(io.BytesIO(data)) as image:
            kind = image.format or "of no kind"
    except (OSError, InvalidFile) as error:
        reason = error.reason if isinstance(error, InvalidFile) else f"cannot be read: {error.strerror or error}"
        raise InvalidValue("photo", f"{name} {reason}") from error
    except InvalidValue as error:
        raise InvalidValue("photo", f"{name} {error.reason}") from error
    if kind not in _KINDS:
        raise InvalidValue("photo", f"{name} is {kind}, not PNG, JPEG or WebP")
    return StudyPhoto(hashlib.sha256(data).hexdigest()[:32], path, _KINDS[kind], width, height)


def _stored(folder: Path, given: str | list[list[float]], side: Side) -> Levels:
    what = f"map {side}"
    if isinstance(given, str):
        values = _grey(_inside(folder, given, what), given, what)
    else:
        values = _numbers(given, what)
    if max(values.shape) > MOST_SIDE:
        rows, cols = values.shape
        raise InvalidValue(what, f"is {rows} × {cols}, more than {MOST_SIDE} × {MOST_SIDE}")
    return _levels(values)


def _grey(path: Path, name: str, what: str) -> NDArray[np.float64]:
    try:
        with Image.open(path, formats=("PNG",)) as image:
            kind, small = image.mode, max(image.size) <= LARGEST_SIDE
            values = np.asarray(image, np.float64) if kind == "L" and small else None
    except UnidentifiedImageError as error:
        raise InvalidValue(what, f"{name} is not a PNG") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidValue(what, f"{name} cannot be read: {error}") from error
    if values is None:
        raise InvalidValue(what, f"{name} is not a small 8-bit grey PNG")
    return values


def _numbers(given: ArrayLike, what: str) -> NDArray[np.float64]:
    """(h, w) float64, finite and >= 0."""
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidValue(what, "is not rows of as many numbers each") from error
    if values.ndim != 2 or values.size == 0:
        raise InvalidValue(what, f"has the shape {values.shape}, not (rows, columns)")
    if max(values.shape) > LARGEST_SIDE:
        raise InvalidValue(what, f"has the shape {values.shape}; at most {LARGEST_SIDE:,} rows and columns are taken")
    if not np.isfinite(values).all():
        raise InvalidValue(what, "holds NaN or infinity")
    if (values < 0).any():
        raise InvalidValue(what, "holds negative values, which have no colour")
    return values


def _levels(values: NDArray[np.float64]) -> Levels:
    return np.rint(255 * _unit(values)).astype(np.uint8)


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """So that the most is 1, unless all is 0."""
    most = values.max()
    return values / most if most > 0 else values


def _pair(levels: Mapping[Side, Levels]) -> Mapping[Side, Levels]:
    """Both maps, if they are equally fine: a coarser one could be told from the other wherever it looks."""
    a, b = levels["a"].shape, levels["b"].shape
    if a != b:
        raise InvalidValue("maps", f"have different shapes: {a[0]} × {a[1]} and {b[0]} × {b[1]}")
    return levels


def _drawn(maps: Mapping[str, ArrayLike]) -> dict[Side, Levels]:
    _both(maps, "maps")
    return {side: _levels(_smaller(_unit(_numbers(maps[side], f"map {side}")))) for side in SIDES}


def _smaller(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most MOST_SIDE rows and columns, in the same proportion, by area."""
    shrink = MOST_SIDE / max(values.shape)
    if shrink >= 1:
        return values
    shape = (max(1, round(values.shape[0] * shrink)), max(1, round(values.shape[1] * shrink)))
    # A map that is zero everywhere is no attention map, but it can be shown.
    return AttentionMap(values).resized(shape).values if values.any() else np.zeros(shape)


def _write_map(folder: Path, levels: Levels) -> str:
    return _write_picture(folder, "maps", Image.fromarray(levels), "PNG", "png")


def _write_photo(folder: Path, photo: PhotoLike) -> str:
    return _write_picture(folder, "photos", read_photo(photo), "JPEG", "jpg")


def _write_picture(folder: Path, kind: str, image: Image.Image, form: str, ending: str) -> str:
    """Written under the hash of its content, so that a photo of many items is there once."""
    content = io.BytesIO()
    image.info.clear()
    image.save(content, form, **({"quality": 92, "subsampling": 0} if form == "JPEG" else {}))
    name = f"{kind}/{hashlib.sha256(content.getvalue()).hexdigest()[:16]}.{ending}"
    if not (folder / name).exists():
        with write_atomic(folder / name) as file:
            file.write(content.getvalue())
    return name
