"""Where the key frames and the voices of video narratives lie, beside their file or in a folder of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from saywhere.formats.files import find_photo
from saywhere.formats.video_narratives import ActorNarrative, VideoNarrative

SOUNDS = {".webm": "audio/webm", ".wav": "audio/wav", ".ogg": "audio/ogg", ".mp3": "audio/mpeg", ".m4a": "audio/mp4"}
"""The media type of each kind of recording that browsers play, by its ending."""
FRAME_FOLDERS = ("", "frames", "JPEGImages")
"""Where the folders of videos lie, as the official ones and ours are laid out: one folder for each video."""


@dataclass(frozen=True, slots=True)
class VideoFiles:
    """folder: with a folder of frames for each video, itself or below `frames`; and the recordings.

    >>> VideoFiles(Path("no-such-folder")).frames(VideoNarrative("1", ("img_5",), ()))
    (None,)
    """

    folder: Path

    def frames(self, video: VideoNarrative) -> tuple[Path | None, ...]:
        """The file of each key frame, None where it is missing."""
        if not _is_name(video.video_id):
            return (None,) * len(video.keyframe_names)
        folders = [self.folder / above / video.video_id for above in FRAME_FOLDERS]
        return tuple(
            next((path for folder in folders if (path := find_photo(folder, name))), None)
            for name in video.keyframe_names
        )

    def recording(self, actor: ActorNarrative) -> Path | None:
        """The file of an actor's voice recording, of a kind that can be played: as it is named, or by its last name
        alone."""
        named = PurePosixPath(actor.narrative.audio)
        if named.suffix.lower() not in SOUNDS or named.is_absolute() or not all(map(_is_name, named.parts)):
            return None
        places = (self.folder / named, self.folder / "recordings" / named.name)
        return next((path for path in places if path.is_file()), None)


def _is_name(text: str) -> bool:
    """Whether this is the name of a file or folder, and leads nowhere else."""
    return Path(text).name == text and "\\" not in text and text not in ("", ".", "..")
