"""Everything of a Studio as one zip, written as it is read: memory holds one narrative and one piece of a file.

photos/                       every photo under its own name
recordings/                   what was said, as <narrative>.wav
localized_narratives.jsonl    the official form; image_id joins with captions.json
captions.json                 COCO captions, with words in time and place beside them
annotations.jsonld            W3C Web Annotations
studio.jsonl                  every version of every narrative, as the Studio's API has it
videos/                       what was told about videos, if something was: narratives.jsonl, the official form, with
                              the chosen frames and recordings beside it, as `saywhere studio --videos` reads them;
                              studio.jsonl has every version
"""

from __future__ import annotations

import io
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import msgspec

from saywhere.core.errors import UnknownName
from saywhere.formats import localized_narratives, video_narratives, web_annotation
from saywhere.studio import exports, footage_narratives
from saywhere.studio.footage import FootageStore
from saywhere.studio.image_names import image_name
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.photos import KINDS, NAMELESS, PhotoInfo, PhotoStore

_PIECE = 1 << 20
_NOTHING_IS_DATED = (1980, 1, 1, 0, 0, 0)
_encode = msgspec.json.Encoder().encode


class _Pipe(io.RawIOBase):
    """A file that only grows. What was written can be taken out once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


class Archive:
    """What is in the zip. names: the photos' own, each once."""

    def __init__(
        self, photos: PhotoStore, narratives: NarrativeStore, footage: FootageStore, filmed: NarrativeStore
    ) -> None:
        self._photos, self._narratives, self._filmed = photos, narratives, filmed
        self._told_videos = [(one, told) for one in footage.list() if (told := filmed.list(one.id))]
        self._infos = {info.id: info for info in photos.list()}
        self.names = own_names(self._infos.values())
        self.images = image_ids(self._infos.values(), self.names)

    def pieces(self) -> Iterator[bytes]:
        """The zip, piece by piece. What is deleted meanwhile is left out."""
        pipe = _Pipe()
        with ZipFile(pipe, "w", allowZip64=True) as packed:
            for name, content in self._members():
                text = not isinstance(content, Path)
                if not text and not content.is_file():
                    continue
                info = ZipInfo(name, _NOTHING_IS_DATED)
                info.compress_type = ZIP_DEFLATED if text else ZIP_STORED
                info.external_attr = (stat.S_IFREG | 0o644) << 16
                if not text:
                    info.file_size = content.stat().st_size
                with packed.open(info, "w", force_zip64=text) as file:
                    for piece in content if text else _read(content):
                        file.write(piece)
                        if len(taken := pipe.take()):
                            yield taken
        yield pipe.take()

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield "localized_narratives.jsonl", self._lines()
        yield "captions.json", self._captions()
        yield "annotations.jsonld", self._annotations()
        yield "studio.jsonl", _versions(self._narratives)
        for photo_id, name in self.names.items():
            yield f"photos/{name}", self._photos.folder / self._infos[photo_id].file_name
        for narrative_id in self._narratives.ids():
            if (path := self._narratives.audio_path(narrative_id)) is not None:
                yield f"recordings/{narrative_id}.wav", path
        if self._told_videos:
            yield "videos/narratives.jsonl", self._video_lines()
            yield "videos/studio.jsonl", _versions(self._filmed)
        for footage, told in self._told_videos:
            for frame in sorted({name for record in told for name in record["frames"]} & footage.frames.keys()):
                path = footage.frames[frame]
                yield f"videos/frames/{footage.name}/{path.name}", path
            for record in told:
                if (path := self._filmed.audio_path(record["id"])) is not None:
                    yield f"videos/recordings/{record['id']}.wav", path

    def _video_lines(self) -> Iterator[bytes]:
        for footage, told in self._told_videos:
            for video in footage_narratives.videos_of(footage, told):
                yield video_narratives.encoded(video) + b"\n"

    def _told(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Every narrative, and its photo under the name it has in the zip."""
        for narrative_id in self._narratives.ids():
            try:
                record = self._narratives.get(narrative_id)
            except UnknownName:
                continue  # It was deleted meanwhile.
            if record["photo"] in self._infos:
                yield record, self._infos[record["photo"]].values() | {"name": self.names[record["photo"]]}

    def _lines(self) -> Iterator[bytes]:
        for record, photo in self._told():
            voice = f"recordings/{record['id']}.wav" if record["audio"] else ""
            narrative = exports.narrative_of(record, photo, str(self.images[photo["id"]]), voice)
            yield localized_narratives.encoded(narrative) + b"\n"

    def _captions(self) -> Iterator[bytes]:
        yield b'{"info":{"description":"saywhere Studio"},"licenses":[],"type":"captions","images":['
        for i, (photo_id, info) in enumerate(self._infos.items()):
            entry = {"id": self.images[photo_id], "file_name": self.names[photo_id], "photo": photo_id}
            yield b",\n"[: 2 * (i > 0)] + _encode(entry | {"width": info.width, "height": info.height})
        yield b'],"annotations":['
        number = 0
        for record, photo in self._told():
            if not record["text"].strip():
                continue
            number += 1
            caption = {"id": number, "image_id": self.images[photo["id"]], "caption": record["text"]}
            yield b",\n"[: 2 * (number > 1)] + _encode(caption | exports.caption_facts(record, photo))
        yield b"]}\n"

    def _annotations(self) -> Iterator[bytes]:
        yield b'{"@context":' + _encode(web_annotation.CONTEXT) + b',"type":"AnnotationPage","items":['
        for i, (record, photo) in enumerate(self._told()):
            annotation = exports.annotation_of(record, photo, f"photos/{quote(photo['name'], safe='')}")
            yield b",\n"[: 2 * (i > 0)] + _encode({key: annotation[key] for key in annotation if key != "@context"})
        yield b"]}\n"


def _versions(store: NarrativeStore) -> Iterator[bytes]:
    for narrative_id in store.ids():
        try:
            for record in store.versions(narrative_id):
                yield _encode(record) + b"\n"
        except UnknownName:
            continue


def own_names(photos: Iterable[PhotoInfo]) -> dict[str, str]:
    """A file name for each photo: its own, with a number where several are called the same."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for info in photos:
        own = PurePosixPath(info.name if info.name not in ("", NAMELESS, ".", "..") else info.id)
        ending = f".{KINDS[info.kind][0]}"
        whole = own.name if own.suffix.lower() in (".png", ".jpg", ".jpeg", ".webp") else own.name + ending
        stem, suffix = PurePosixPath(whole).stem, PurePosixPath(whole).suffix
        number = 2
        # Some disks do not tell capitals apart.
        while whole.casefold() in taken:
            whole, number = f"{stem} ({number}){suffix}", number + 1
        taken.add(whole.casefold())
        names[info.id] = whole
    return names


def image_ids(photos: Iterable[PhotoInfo], names: dict[str, str]) -> dict[str, int | str]:
    """What each photo is called by in the files: COCO's number where it has one, else its name; each once."""
    found: dict[str, int | str] = {}
    taken: set[int | str] = set()
    for info in photos:
        name = image_name(names[info.id], info.id)
        own: int | str = int(name) if name.isascii() and name.isdecimal() and str(int(name)) == name else name
        found[info.id] = own if own not in taken else names[info.id] if names[info.id] not in taken else info.id
        taken.add(found[info.id])
    return found


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
