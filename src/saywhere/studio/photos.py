"""Photos kept by their content: checked, turned upright, written anew without metadata, and named by their hash."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import unicodedata
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from PIL import Image, UnidentifiedImageError

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.studio.errors import Refused, log, too_large
from saywhere.studio.settings import Limits
from saywhere.vision.photo import HEIC, HEIC_HINT, is_heic, read_photo

ID_PATTERN = "^[0-9a-f]{32}$"
KINDS = {"PNG": ("png", "image/png"), "JPEG": ("jpg", "image/jpeg"), "WEBP": ("webp", "image/webp")}
"""Pillow's name of each kind that is taken: the ending of its files, and its media type."""
_HOW: dict[str, dict[str, Any]] = {
    "PNG": {"compress_level": 3},
    "JPEG": {"quality": 95, "subsampling": 0},
    "WEBP": {"quality": 95},
}
NAMELESS = "photo"
"""What a photo is called that came without a name."""
THUMBNAIL_PX = 224
"""The longer side of a thumbnail: twice what the page shows, for fine screens."""
_THUMBNAILS = ".thumbnails"
_MOST_NAME = 200
_SNIFFED = 16
_ENDINGS, _UNREAD = (".png", ".jpg", ".jpeg", ".webp"), (".heic", ".heif")
# What Pillow is known to raise on damaged headers; read_photo knows the rest.
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError)


class PhotoInfo(msgspec.Struct, frozen=True):
    """One photo of the store. id: the first 32 hexadecimal digits of the stored file's SHA-256.

    width, height: in pixels, upright. name: as the file was called, for people to read. kind: Pillow's name of it.
    source_sha256: of the file that was given, so that the same file need not be decoded twice.
    """

    id: str
    width: int
    height: int
    name: str
    kind: str
    source_sha256: str

    @property
    def media_type(self) -> str:
        return KINDS[self.kind][1]

    @property
    def file_name(self) -> str:
        return f"{self.id}.{KINDS[self.kind][0]}"

    def values(self) -> dict[str, Any]:
        """As the API says it."""
        url = f"/api/photos/{self.id}/file"
        small = f"/api/photos/{self.id}/thumbnail"
        size = {"width": self.width, "height": self.height}
        return {"id": self.id, **size, "name": self.name, "url": url, "thumbnail": small}


@dataclass(frozen=True, slots=True)
class CleanPhoto:
    """A photo that was checked. image: RGB, upright, with nothing but its pixels. kind: as it came."""

    image: Image.Image
    kind: str


def clean_photo(data: bytes, limits: Limits) -> CleanPhoto:
    """A file's content as a photo: PNG, JPEG or WebP going by what is in it, one picture, and not too large."""
    if len(data) > limits.photo_bytes:
        raise too_large("the photo", len(data), limits.photo_bytes, " bytes")
    kind = sniffed(data)
    if kind is None and is_heic(data):
        raise Refused(415, "not_a_photo", f"the file {HEIC}", HEIC_HINT)
    if kind is None:
        raise Refused(415, "not_a_photo", "the file is not PNG, JPEG or WebP", "save the photo as one of these")
    width, height, frames = _header(data, kind)
    if width * height > limits.photo_pixels:
        raise too_large(f"the photo of {width}×{height}", width * height, limits.photo_pixels, " pixels")
    # A phone's JPEG may carry previews behind the photo; that is no animation.
    if frames > 1 and kind != "JPEG":
        raise InvalidValue("photo", f"moves: it has {frames} pictures", "save the one you mean")
    image = read_photo(data)
    # Pillow would write some of this into the new file: colour profiles, comments, camera and place.
    image.info.clear()
    return CleanPhoto(image, kind)


def encoded_photo(clean: CleanPhoto) -> bytes:
    """The file that is kept of it."""
    written = io.BytesIO()
    clean.image.save(written, clean.kind, **_HOW[clean.kind])
    return written.getvalue()


def sniffed(data: bytes) -> str | None:
    """Which kind a file is, going by its first bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    return "WEBP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _header(data: bytes, kind: str) -> tuple[int, int, int]:
    """Width, height and number of pictures, without decoding any."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=(kind,)) as image:
                return *image.size, int(getattr(image, "n_frames", 1))
    except Image.DecompressionBombError as error:
        raise Refused(413, "too_large", "the photo has far too many pixels", "shrink it first") from error
    except UnidentifiedImageError as error:
        raise InvalidValue("photo", f"begins like {kind} but cannot be read") from error
    except _DAMAGE as error:
        raise InvalidValue("photo", f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


class PhotoStore:
    """A folder of photos, each with a .json beside it. May be used by several threads of one process."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self._lock = threading.Lock()
        self._photos = {info.id: info for info in _stored(folder)}
        self._sources = {info.source_sha256: info.id for info in self._photos.values()}

    def __len__(self) -> int:
        return len(self._photos)

    def __contains__(self, photo_id: str) -> bool:
        return photo_id in self._photos

    def add(self, data: bytes, name: str) -> PhotoInfo:
        """Keep a photo. One that is here already is not kept twice, and keeps its first name."""
        source = hashlib.sha256(data).hexdigest()
        with self._lock:
            known = self._photos.get(self._sources.get(source, ""))
        if known is not None:
            return known
        if len(self) >= self.limits.photos:
            raise Refused(409, "store_full", f"there are {len(self):,} photos already", "delete some first")
        clean = clean_photo(data, self.limits)
        stored = encoded_photo(clean)
        number = hashlib.sha256(stored).hexdigest()[:32]
        info = PhotoInfo(number, *clean.image.size, plain_name(name), clean.kind, source)
        with write_atomic(self.folder / info.file_name) as file:
            file.write(stored)
        with write_atomic(self.folder / f"{info.id}.json") as file:
            file.write(msgspec.json.encode(info))
        with self._lock:
            self._sources[source] = info.id
            return self._photos.setdefault(info.id, info)

    def get(self, photo_id: str) -> PhotoInfo:
        info = self._photos.get(photo_id)
        if info is None:
            raise UnknownName("photo", photo_id, ())
        return info

    def path(self, photo_id: str) -> Path:
        """The stored file."""
        path = self.folder / self.get(photo_id).file_name
        if not path.is_file():
            raise UnknownName("photo", photo_id, ())
        return path

    def thumbnail(self, photo_id: str) -> Path:
        """A small JPEG of a photo: made when it is first asked for, then kept beside the photos, one for each."""
        path = self._thumbnail(photo_id)
        if not path.is_file():
            with Image.open(self.path(photo_id)) as image:
                # Of a JPEG, only as many pixels are decoded as are needed.
                image.draft("RGB", (THUMBNAIL_PX, THUMBNAIL_PX))
                small = image.convert("RGB")
            small.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX), Image.Resampling.LANCZOS)
            with write_atomic(path) as file:
                small.save(file, "JPEG", quality=82, optimize=True)
        return path

    def _thumbnail(self, photo_id: str) -> Path:
        return self.folder / _THUMBNAILS / f"{self.get(photo_id).id}.jpg"

    def list(self) -> list[PhotoInfo]:
        """All, in the order they came."""
        with self._lock:
            return list(self._photos.values())

    def delete(self, photo_id: str) -> None:
        info, small = self.get(photo_id), self._thumbnail(photo_id)
        with self._lock:
            self._photos.pop(photo_id, None)
            self._sources = {source: number for source, number in self._sources.items() if number != photo_id}
        # The .json first: a photo without it is not listed, so a half-done deletion leaves no half photo.
        for path in (self.folder / f"{info.id}.json", self.folder / info.file_name, small):
            path.unlink(missing_ok=True)


def _stored(folder: Path) -> Iterator[PhotoInfo]:
    """Every photo of a folder, oldest first; what is damaged is said in the log and left alone."""
    found = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns) if folder.is_dir() else []
    for path in found:
        try:
            info = msgspec.json.decode(path.read_bytes(), type=PhotoInfo)
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s is not read: %s", path, error)
            continue
        if info.kind not in KINDS or path.stem != info.id or not (folder / info.file_name).is_file():
            log.warning("%s is not read: its photo is not there", path)
            continue
        yield info


def plain_name(name: str) -> str:
    """A file's name for people to read: without folders and control characters, and not too long."""
    last = PurePosixPath(name.replace("\\", "/")).name
    seen = "".join(character for character in last if unicodedata.category(character)[0] != "C")
    return seen.strip()[:_MOST_NAME] or NAMELESS


def import_folder(store: PhotoStore, folder: Path) -> Iterator[PhotoInfo | InvalidFile]:
    """Take the photos of a folder and those below it, in the order of their names. The originals are only read.

    A file that cannot be taken comes back as an InvalidFile; files that do not end like photos are passed over.
    """
    if not folder.is_dir():
        raise InvalidFile(folder, "is not a folder")
    for path in photo_files(folder):
        yield import_file(store, path)


def import_file(store: PhotoStore, path: Path) -> PhotoInfo | InvalidFile:
    """Take one photo; why it cannot be taken, if it cannot."""
    try:
        with path.open("rb") as file:
            # Before it is read: a file may be larger than any memory, or the end of a pipe.
            size, begin = os.fstat(file.fileno()).st_size, file.read(_SNIFFED)
            if size > store.limits.photo_bytes:
                raise too_large("the photo", size, store.limits.photo_bytes, " bytes")
            return store.add(begin + file.read() if sniffed(begin) else begin, path.name)
    except OSError as error:
        return InvalidFile(path, f"cannot be read: {error.strerror or error}")
    except Refused as error:
        return InvalidFile(path, error.message, error.hint)
    except InvalidValue as error:
        return InvalidFile(path, error.reason, error.hint)


def photo_files(folder: Path) -> list[Path]:
    """The files in a folder, and below it, that end like photos; those that are not read, but are to be named, last."""
    found = [path for path in folder.rglob("*") if path.suffix.lower() in (*_ENDINGS, *_UNREAD) and path.is_file()]
    return sorted(found, key=lambda path: (path.suffix.lower() in _UNREAD, path))
