"""Where photos come from: folders, tar files (WebDataset), Parquet, and narratives with a folder of their photos.

A source is listed without opening a photo, and cut into parts; a part is small, can be sent anywhere, and reads its
items one by one. The same sources give the same parts in the same order.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO, Protocol

from saywhere.build.batch.remote import is_folder, is_url, names_beneath, open_source, working
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.formats import InvalidRecord, detect
from saywhere.formats import read as read_file
from saywhere.vision.photo import PHOTO_ENDINGS

_PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
_AT_ONCE, _ROWS_AT_ONCE = 1 << 20, 16
"""Bytes and rows that are read together."""
_TEXT_ENDINGS = (".txt", ".caption")
_KEYS, _IMAGES, _TEXTS = (
    ("key", "image_id", "id", "__key__"),
    ("image", "jpeg", "jpg", "png", "bytes"),
    ("text", "caption"),
)


@dataclass(frozen=True, slots=True)
class SourceItem:
    """A photo: a file or its content. key: what results call it. text: that comes with it. error: why there is none."""

    key: str
    photo: bytes | str = b""
    text: str = ""
    error: str = ""


class SourcePart(Protocol):
    """Some photos of a source. It can be pickled, and its repr says what it is of."""

    def __len__(self) -> int: ...

    def items(self) -> Iterator[SourceItem]:
        """Every photo, one by one. InvalidFile if the source cannot be read at all."""
        ...


@dataclass(frozen=True, slots=True)
class FolderPart:
    """Photos of a folder and its subfolders. names: beneath the folder."""

    root: str
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def items(self) -> Iterator[SourceItem]:
        return (SourceItem(name, str(Path(self.root, name))) for name in self.names)


@dataclass(frozen=True, slots=True)
class TarPart:
    """Photos of a tar file. members: key, then where its photo and its text begin and how long they are, in bytes."""

    path: str
    members: tuple[tuple[str, tuple[int, int], tuple[int, int]], ...]

    def __len__(self) -> int:
        return len(self.members)

    def items(self) -> Iterator[SourceItem]:
        with open_source(self.path) as file:
            for key, photo, text in self.members:
                with working(self.path):
                    content, said = (_cut(file, *place) for place in (photo, text))
                yield SourceItem(key, content, said.decode("utf-8", "replace").strip())


@dataclass(frozen=True, slots=True)
class UrlPart:
    """Photos beneath a URL. names: beneath it."""

    url: str
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def items(self) -> Iterator[SourceItem]:
        for name in self.names:
            try:
                with open_source(f"{self.url.rstrip('/')}/{name}") as file, working(self.url):
                    content = file.read()
            except InvalidFile as error:
                yield SourceItem(name, error=error.reason)
            else:
                yield SourceItem(name, content)


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """Rows of a row group of a Parquet file, which may be far larger than they."""

    path: str
    row_group: int
    first: int
    count: int
    columns: tuple[str, str, str]

    def __len__(self) -> int:
        return self.count

    def items(self) -> Iterator[SourceItem]:
        key, image, text = self.columns
        for number, row in enumerate(self._rows(), self.first):
            content = row[image]
            # As the datasets library keeps images.
            content = content.get("bytes") if isinstance(content, dict) else content
            said = (row[text] or "") if text else ""
            if row[key] is None:
                yield SourceItem(f"{Path(self.path).name}#{self.row_group}.{number}", text=said, error="has no key")
            elif isinstance(content, bytes):
                yield SourceItem(str(row[key]), content, said)
            else:
                yield SourceItem(str(row[key]), text=said, error="has no image")

    def _rows(self) -> Iterator[dict[str, Any]]:
        """A few at a time, or a page of the file, are in memory; those before them are read and let go."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        wanted = [column for column in self.columns if column]
        try:
            with open_source(self.path) as opened:
                # Without a buffer a whole column of the row group is read at once.
                file = pq.ParquetFile(opened, buffer_size=_AT_ONCE)
                before, end = self.first, self.first + self.count
                for batch in file.iter_batches(_ROWS_AT_ONCE, [self.row_group], wanted):
                    yield from batch[min(before, len(batch)) : max(end, 0)].to_pylist()
                    before, end = max(before - len(batch), 0), end - len(batch)
                    if end <= 0:
                        return
        except (OSError, pa.ArrowException) as error:
            raise InvalidFile(self.path, f"row group {self.row_group} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class NarrativePart:
    """Narratives with their photos. narratives: key, file of the photo, what was said, why there is nothing to do."""

    path: str
    narratives: tuple[tuple[str, str, str, str], ...]

    def __len__(self) -> int:
        return len(self.narratives)

    def items(self) -> Iterator[SourceItem]:
        return (SourceItem(*one) for one in self.narratives)


@dataclass(frozen=True, slots=True)
class DamagedPart:
    """What a damaged source should hold, and nobody can find in it. Among others it is one part that is lost."""

    path: str
    reason: str

    def __len__(self) -> int:
        return 0

    def items(self) -> Iterator[SourceItem]:
        raise InvalidFile(self.path, self.reason)


def list_parts(sources: Sequence[str | Path], size: int = 64, photos: str | Path | None = None) -> list[SourcePart]:
    """All parts of some sources, each of at most `size` photos. sources: paths, or URLs as fsspec takes them. photos:
    the folder of the photos of narratives."""
    if size < 1:
        raise InvalidValue("size of a part", f"is {size}, not at least 1")
    parts = [part for source in sources for part in _parts(source, size, photos)]
    if not parts:
        raise InvalidValue("sources", "hold no photos", f"known endings: {', '.join(sorted(PHOTO_ENDINGS))}")
    if all(isinstance(part, DamagedPart) for part in parts):
        parts[0].items()
    _check_keys(parts)
    return parts


def _check_keys(parts: Iterable[SourcePart]) -> None:
    """See that no two photos are called the same, as far as that is known before they are read."""
    seen: dict[str, str] = {}
    for part in parts:
        source, keys = _named(part)
        for key in keys:
            if key in seen:
                reason = f"hold two photos called {key}, in {seen[key]} and in {source}"
                raise InvalidValue("sources", reason, "name a folder above both, or do one after the other")
            seen[key] = source


def _named(part: SourcePart) -> tuple[str, Iterable[str]]:
    match part:
        case FolderPart(source, keys) | UrlPart(source, keys):
            return source, keys
        case TarPart(source, members):
            return source, (key for key, *_ in members)
        case NarrativePart(source, narratives):
            return source, (key for key, *_ in narratives)
        case _:
            return "", ()


def _parts(where: str | Path, size: int, photos: str | Path | None) -> Iterator[SourcePart]:
    if is_url(where):
        return _url_parts(str(where), size)
    source = Path(where)
    if source.is_dir():
        names = sorted(
            path.relative_to(source).as_posix()
            for path in source.rglob("*")
            if path.suffix.lower() in PHOTO_ENDINGS and not _is_hidden(path.relative_to(source)) and path.is_file()
        )
        return (FolderPart(str(source.absolute()), some) for some in _cut_up(names, size))
    if not source.is_file():
        raise InvalidFile(source, "was not found")
    if source.name.endswith(_PACKED):
        raise InvalidFile(source, "is packed: a worker cannot go to the middle of it", "unpack it to a plain .tar")
    if source.suffix == ".tar":
        return _tar_parts(str(source.absolute()), size)
    if source.suffix == ".parquet" and not _holds_narratives(source):
        return _parquet_parts(str(source.absolute()), size)
    return _narrative_parts(source, size, photos)


def _is_hidden(beneath: PurePath) -> bool:
    """Whether a file, or a folder above it within the source, is not meant to be seen."""
    return any(name.startswith(".") for name in beneath.parts)


def _url_parts(url: str, size: int) -> Iterator[SourcePart]:
    if is_folder(url):
        beneath = map(PurePosixPath, names_beneath(url))
        names = [str(one) for one in beneath if one.suffix.lower() in PHOTO_ENDINGS and not _is_hidden(one)]
        return (UrlPart(url, some) for some in _cut_up(names, size))
    if url.endswith(".tar"):
        return _tar_parts(url, size)
    if url.endswith(".parquet"):
        return _parquet_parts(url, size)
    raise InvalidFile(url, "is neither a folder nor a .tar or .parquet file", "copy it here first")


def _tar_parts(path: str, size: int) -> Iterator[SourcePart]:
    members, damage = _members(path)
    yield from (TarPart(path, some) for some in _cut_up(members, size))
    if damage:
        what = (
            f"is damaged or cut off after {len(members):,} photos" if members else "is not a tar file that can be read"
        )
        yield DamagedPart(path, f"{what}: {damage}")


def _cut_up(values: Iterable[Any], size: int) -> Iterator[tuple[Any, ...]]:
    rest = iter(values)
    while some := tuple(islice(rest, size)):
        yield some


def _cut(file: Any, start: int, length: int) -> bytes:
    file.seek(start)
    content: bytes = file.read(length)
    return content


def _members(path: str) -> tuple[list[tuple[str, tuple[int, int], tuple[int, int]]], str]:
    """The photos that are found, and why there may be more; empty for a whole tar file."""
    photos: dict[str, tuple[int, int]] = {}
    texts: dict[str, tuple[int, int]] = {}
    damage = ""
    with open_source(path) as file, working(path):
        try:
            with tarfile.open(fileobj=file, mode="r:") as tar:
                for member in tar:
                    # WebDataset: what stands before the first dot of the last name is one sample.
                    folder, _, name = member.name.rpartition("/")
                    stem, ending = f"{folder}/{name.partition('.')[0]}".lstrip("/"), Path(name).suffix.lower()
                    place = (member.offset_data, member.size)
                    if member.isfile() and ending in PHOTO_ENDINGS:
                        photos[stem] = place
                    elif member.isfile() and ending in _TEXT_ENDINGS:
                        texts[stem] = place
                damage = _after_members(file, tar.offset)
        except tarfile.TarError as error:
            damage = str(error)
    return [(stem, place, texts.get(stem, (0, 0))) for stem, place in photos.items()], damage


def _after_members(file: BinaryIO, end: int) -> str:
    """What is wrong with the end of a tar file: there should be zeros, and nothing else. tarfile takes any header that
    it cannot read for the end."""
    file.seek(end)
    if len(content := file.read(tarfile.BLOCKSIZE)) < tarfile.BLOCKSIZE:
        return "it has no end"
    while content:
        if content.strip(b"\0"):
            return f"there is no member at byte {end:,}, nor the end"
        content = file.read(_AT_ONCE)
    return ""


def _parquet_parts(path: str, size: int) -> Iterator[SourcePart]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_source(path) as opened:
            file = pq.ParquetFile(opened)
    except pa.ArrowException as error:
        yield DamagedPart(path, f"is not a Parquet file that can be read: {error}")
        return
    names = file.schema_arrow.names
    key, image, text = (next((name for name in known if name in names), "") for known in (_KEYS, _IMAGES, _TEXTS))
    if not key or not image:
        reason = f"has the columns {', '.join(names)}, but none of {', '.join(_IMAGES if key else _KEYS)}"
        raise InvalidFile(path, reason, "rename the columns of keys and images")
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        for first in range(0, rows, size):
            yield ParquetPart(path, group, first, min(size, rows - first), (key, image, text))


def _holds_narratives(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return "utterances" in pq.read_schema(path).names
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error}") from error
    except pa.ArrowException:
        return False  # whoever reads its photos says what it is


def _narrative_parts(path: Path, size: int, photos: str | Path | None) -> Iterator[SourcePart]:
    found = detect(path)
    if found.holds != "narratives":
        raise InvalidFile(path, f"holds {found.holds} ({found.title}), neither photos nor narratives")
    if photos is None:
        raise InvalidValue(
            "photos", f"of the narratives in {path.name} are not given", "name their folder: --photos DIR"
        )
    folder = Path(photos)
    if not folder.is_dir():
        raise InvalidFile(folder, "is not a folder")
    files = {file.stem: file for file in sorted(folder.iterdir()) if file.suffix.lower() in PHOTO_ENDINGS}
    bare = {stem.lstrip("0"): file for stem, file in files.items()}

    def entry(number: int, one: Narrative | InvalidRecord) -> tuple[str, str, str, str]:
        if isinstance(one, InvalidRecord):
            return (f"{path.name}#{number}", "", "", one.reason)
        photo = files.get(one.image_id) or bare.get(one.image_id.lstrip("0"))
        if photo is None:
            return (f"{one.id}#{number}", "", one.caption, "has no photo in the folder")
        return (f"{one.id}#{number}", str(photo.absolute()), one.caption, "")

    entries = (entry(number, one) for number, one in enumerate(read_file(path, found.name)))
    return (NarrativePart(str(path.absolute()), some) for some in _cut_up(entries, size))
