"""Footage: the videos that can be told about. Each is a folder of frames, a video file, or both.

What was given (a folder, or a file of video narratives) is only read. Frames that somebody picks out of a video in the
browser, and those that something is told about, are kept in the Studio's folder, laid out as the official videos are:
a folder for each video, a file for each frame.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from PIL import Image

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.formats.video_files import FRAME_FOLDERS, VideoFiles
from saywhere.formats.video_narratives import VideoNarrative
from saywhere.limits import read_whole
from saywhere.studio.errors import Refused
from saywhere.studio.photos import KINDS, clean_photo, encoded_photo, plain_name, sniffed
from saywhere.studio.settings import Limits

VIDEOS = {".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".ogv": "video/ogg"}
"""The media type of each kind of video that browsers play, by its ending."""
MOST_FRAMES = 1_000
_PICTURES = (".png", ".jpg", ".jpeg", ".webp")
_UNSAFE = re.compile(r"[^\w .()+-]")


@dataclass(frozen=True, slots=True)
class Footage:
    """One video. frames: the file of each, by its name, in the order of time. file: the video itself, if it is here."""

    name: str
    frames: dict[str, Path] = field(default_factory=dict)
    file: Path | None = None

    @property
    def id(self) -> str:
        """The first 32 hexadecimal digits of its name's SHA-256.

        >>> Footage("cat").id
        '77af778b51abd4a3c51c5ddd97204a9c'
        """
        return hashlib.sha256(self.name.encode()).hexdigest()[:32]

    def frame(self, name: str) -> Path:
        if name not in self.frames:
            raise UnknownName("frame", name, ())
        return self.frames[name]

    def size(self) -> tuple[int, int]:
        """Of its frames, in pixels; that of a usual screen before there are any."""
        for path in self.frames.values():
            with Image.open(path, formats=tuple(KINDS)) as image:
                return image.size
        return 16, 9


class FootageStore:
    """All footage of one Studio. given: a folder of videos, or a file of video narratives, whose videos `told` are."""

    def __init__(self, folder: Path, given: Path | None, told: Sequence[VideoNarrative], limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        found: list[Footage] = []
        if given is not None:
            found = list(_in_folder(given)) if given.is_dir() else list(_of_narratives(given.parent, told))
            if not found and given.is_dir():
                raise InvalidFile(given, "has no videos", "put a folder of frames for each, or .mp4 and .webm, into it")
        self._given = {one.name: one for one in found}

    def list(self) -> list[Footage]:
        """What was given, in its order, then what people brought, by name; of each the frames that there are now."""
        return [self._joined(name) for name in self._names()]

    def _names(self) -> dict[str, None]:
        return dict.fromkeys([*self._given, *(path.name for path in _subfolders(self.folder))])

    def _name(self, footage_id: str) -> str:
        for name in self._names():
            if Footage(name).id == footage_id:
                return name
        raise UnknownName("footage", footage_id, ())

    def _joined(self, name: str, frame: str | None = None) -> Footage:
        """frame: of those that were taken, only this one is looked for."""
        given = self._given.get(name, Footage(name))
        frames = given.frames | _pictures(self.folder / name, frame)
        return Footage(name, {frame: frames[frame] for frame in sorted(frames)}, given.file)

    def get(self, footage_id: str) -> Footage:
        """The footage of this id. UnknownName if there is none."""
        return self._joined(self._name(footage_id))

    def frame(self, footage_id: str, name: str) -> Path:
        """The file of one frame. UnknownName if there is none of this name."""
        return self._joined(self._name(footage_id), name).frame(name)

    def add(self, name: str) -> Footage:
        """Make room for the frames of a video, called by its file's name; the one of that name, if it is here."""
        called = safe_name(name)
        here = self._names()
        if called not in here:
            if len(here) >= self.limits.photos:
                raise Refused(409, "store_full", f"there are {len(here):,} videos already", "delete some first")
            (self.folder / called).mkdir(parents=True, exist_ok=True)
        return self.get(Footage(called).id)

    def add_frame(self, footage_id: str, data: bytes, name: str) -> str:
        """Keep a frame; what it is called. One of that name that is here already is left as it is."""
        footage, called = self.get(footage_id), safe_name(name)
        if called in footage.frames:
            return called
        if len(footage.frames) >= MOST_FRAMES:
            raise Refused(409, "store_full", f"this video has {MOST_FRAMES:,} frames already", "choose among them")
        self._write(footage, called, data)
        return called

    def keep(self, footage_id: str, names: Iterable[str]) -> None:
        """Keep these frames, which something is told about: what was given may be gone the next time."""
        footage = self.get(footage_id)
        for name, path in [(name, footage.frame(name)) for name in names]:
            if path.parent != self.folder / footage.name:
                self._write(footage, name, read_whole(path))

    def _write(self, footage: Footage, name: str, data: bytes) -> None:
        clean = clean_photo(data, self.limits)
        with write_atomic(self.folder / footage.name / f"{name}.{KINDS[clean.kind][0]}") as file:
            file.write(encoded_photo(clean))


def safe_name(name: str) -> str:
    """What a video or a frame is called: its file's name without the ending, good for a folder on any disk.

    >>> safe_name("my cat: day 1.webm"), safe_name("../frame_000120.jpg")
    ('my cat_ day 1', 'frame_000120')
    """
    stem = _UNSAFE.sub("_", PurePosixPath(plain_name(name)).stem).strip(" .")
    if not stem:
        raise InvalidValue("name", f"is {name[:100]!r}, and no file can be called that")
    return stem


def _in_folder(folder: Path) -> Iterator[Footage]:
    for above in FRAME_FOLDERS:
        for path in _subfolders(folder / above):
            if frames := _pictures(path):
                yield Footage(path.name, frames)
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in VIDEOS and path.is_file():
            yield Footage(path.stem, file=path)


def _of_narratives(folder: Path, told: Sequence[VideoNarrative]) -> Iterator[Footage]:
    files = VideoFiles(folder)
    for video in told:
        paths = dict(zip(video.keyframe_names, files.frames(video), strict=True))
        there = {name: path for name, path in paths.items() if path is not None and _is_picture(path)}
        if there:
            yield Footage(video.video_id, there)


def _subfolders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _pictures(folder: Path, stem: str | None = None) -> dict[str, Path]:
    """All frames in a folder, or the one that is called so."""
    if not folder.is_dir():
        return {}
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in _PICTURES)
    return {path.stem: path for path in found[:MOST_FRAMES] if stem in (None, path.stem) and _is_picture(path)}


def _is_picture(path: Path) -> bool:
    """Whether the file begins like one that browsers show; what ends so may be anything."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return sniffed(file.read(16)) is not None
