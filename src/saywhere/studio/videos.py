"""Videos that somebody told about: narratives of a file, with the frames and voices that lie beside it. Only read.

What is told here is kept elsewhere: `footage`, `footage_narratives`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.formats import registry
from saywhere.formats.record import InvalidRecord
from saywhere.formats.video_files import VideoFiles
from saywhere.formats.video_narratives import VideoNarrative
from saywhere.studio.errors import log
from saywhere.studio.photos import KINDS

_EMPTY = (16, 9)


@dataclass(frozen=True, slots=True)
class VideoFrame:
    """One key frame. media_type: empty if there is no such picture; then missing says why."""

    name: str
    path: Path | None
    size: tuple[int, int] = _EMPTY
    media_type: str = ""
    missing: str = ""


class VideoStore:
    """The video narratives of a file. skipped: records that are not valid.

    file: none for a Studio without videos; a folder has videos to tell about, and nothing told yet."""

    def __init__(self, file: Path | None) -> None:
        found = [] if file is None or file.is_dir() else list(_checked(file).module.read(file))
        self.videos = [one for one in found if isinstance(one, VideoNarrative)]
        self.skipped = len(found) - len(self.videos)
        self.files = VideoFiles(file.parent if file is not None else Path())
        for one in found:
            if isinstance(one, InvalidRecord):
                log.warning("a video narrative is passed over: %s", one)

    def __len__(self) -> int:
        return len(self.videos)

    def get(self, number: int) -> VideoNarrative:
        if not 0 <= number < len(self.videos):
            raise UnknownName("video", str(number), ())
        return self.videos[number]

    def frames(self, number: int) -> list[VideoFrame]:
        """Every key frame of a video, in order."""
        video = self.get(number)
        return [_frame(name, path) for name, path in zip(video.keyframe_names, self.files.frames(video), strict=True)]

    def frame(self, number: int, index: int) -> VideoFrame:
        video = self.get(number)
        if not 0 <= index < len(video.keyframe_names):
            raise UnknownName("frame", str(index), ())
        found = _frame(video.keyframe_names[index], self.files.frames(video)[index])
        if found.missing:
            raise UnknownName("frame", f"{index}: {found.missing}", ())
        return found

    def recording(self, number: int, index: int) -> Path | None:
        """The voice that tells of an actor, if it is there."""
        actors = self.get(number).actors
        if not 0 <= index < len(actors):
            raise UnknownName("actor", str(index), ())
        return self.files.recording(actors[index])


def _checked(file: Path) -> registry.Format:
    kind = registry.detect(file)
    if kind.holds != "video narratives":
        raise InvalidFile(file, f"holds {kind.holds} ({kind.title}), and video narratives are needed here")
    return kind


def _frame(name: str, path: Path | None) -> VideoFrame:
    if path is None:
        return VideoFrame(name, None, missing="it has no file")
    try:
        with Image.open(path, formats=tuple(KINDS)) as image:
            return VideoFrame(name, path, image.size, KINDS[str(image.format)][1])
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        return VideoFrame(name, None, missing=f"{path.name} is no PNG, JPEG or WebP")
