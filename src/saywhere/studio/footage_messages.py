"""Messages about footage, and about what was told of it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from saywhere.studio.messages import Message, PhotoId, Reply, ToldReply, ToldSent
from saywhere.studio.routes_videos import FrameReply

FrameNumber = Annotated[int, Field(ge=0, le=1_000_000)]


class FootageBrought(Message):
    """name: of the video's file, or of the folder of its frames."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class FootageReply(Reply):
    """width, height: of its frames, in pixels. file: where the video itself is; null if only frames are here.
    told: how many narratives there are of it."""

    id: str
    name: str
    width: int
    height: int
    frames: list[FrameReply]
    file: str | None
    told: int


class FootageListReply(Reply):
    footage: list[FootageReply]


class VideoNarrativeSent(ToldSent):
    """What was told of one actor of a video. frames: the names of the chosen ones. stroke_frames: for each stroke of
    the trace, the place of its frame among them. word_frames and boxes are the server's to find: what is sent of them
    is not looked at."""

    footage: PhotoId
    actor: Annotated[str, Field(min_length=1, max_length=200)]
    frames: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=1, max_length=1_000)]
    stroke_frames: list[FrameNumber] = Field(default_factory=list)
    word_frames: list[FrameNumber | None] | None = None

    def record(self) -> dict[str, Any]:
        kept = super().record()
        for name in ("word_frames", "boxes"):
            kept.pop(name, None)
        return kept | {"photo": kept.pop("footage")}


class VideoNarrativeReply(ToldReply):
    """word_frames, boxes: of each word the frame that was pointed at meanwhile, its place among `frames`, and where on
    it; null if none was."""

    footage: str
    actor: str
    frames: list[str]
    stroke_frames: list[int]
    word_frames: list[int | None]


class VideoNarrativesReply(Reply):
    narratives: list[VideoNarrativeReply]
