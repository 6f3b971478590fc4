"""Earlier versions of narratives, of photos and of videos: seen, and made the newest again."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from saywhere.studio.footage_messages import VideoNarrativeReply
from saywhere.studio.messages import NarrativeReply, Reply
from saywhere.studio.routes_footage import told
from saywhere.studio.routes_narratives import NarrativePath, Nothing
from saywhere.studio.services import StrictRoute, TheStudio, errors

router = APIRouter(prefix="/api/narratives/{narrative_id}/versions", tags=["narratives"], route_class=StrictRoute)
filmed = APIRouter(prefix="/api/video-narratives/{narrative_id}/versions", tags=["footage"], route_class=StrictRoute)
VersionPath = Annotated[int, Path(ge=1, le=10**9, description="The version's number.")]


class VersionReply(Reply):
    """version: from 1. changed: when it was made. words, strokes, points: how many. timed_by, language: as in a
    narrative."""

    version: int
    changed: str
    text: str
    words: int
    strokes: int
    points: int
    timed_by: str | None
    language: str | None


class VersionsReply(Reply):
    versions: list[VersionReply]


@router.get("", responses=errors(404))
def list_versions(narrative_id: NarrativePath, studio: TheStudio) -> VersionsReply:
    """All versions of a narrative, the newest first."""
    return VersionsReply(versions=[_summary(one) for one in studio.narratives.versions(narrative_id)])


@router.get("/{version_number}", responses=errors(404))
def get_version(narrative_id: NarrativePath, version_number: VersionPath, studio: TheStudio) -> NarrativeReply:
    """A narrative as it was."""
    return NarrativeReply.model_validate(studio.narratives.version(narrative_id, version_number))


@router.post("/{version_number}/restore", responses=errors(404))
def restore_version(
    narrative_id: NarrativePath, version_number: VersionPath, studio: TheStudio, _: Nothing | None = None
) -> NarrativeReply:
    """Make an earlier version the newest; the others stay."""
    return NarrativeReply.model_validate(studio.narratives.restore(narrative_id, version_number))


@filmed.get("", responses=errors(404))
def list_video_versions(narrative_id: NarrativePath, studio: TheStudio) -> VersionsReply:
    """All versions of what was told of an actor, the newest first."""
    return VersionsReply(versions=[_summary(one) for one in studio.filmed.versions(narrative_id)])


@filmed.get("/{version_number}", responses=errors(404))
def get_video_version(
    narrative_id: NarrativePath, version_number: VersionPath, studio: TheStudio
) -> VideoNarrativeReply:
    """What was told of an actor, as it was."""
    return told(studio.filmed.version(narrative_id, version_number))


@filmed.post("/{version_number}/restore", responses=errors(404))
def restore_video_version(
    narrative_id: NarrativePath, version_number: VersionPath, studio: TheStudio, _: Nothing | None = None
) -> VideoNarrativeReply:
    """Make an earlier version the newest; the others stay."""
    return told(studio.filmed.restore(narrative_id, version_number))


def _summary(record: dict[str, Any]) -> VersionReply:
    return VersionReply(
        version=record["version"],
        changed=record["changed"],
        text=record["text"],
        words=len(record["words"]),
        strokes=len(record["trace"]["starts"]),
        points=len(record["trace"]["points"]),
        timed_by=record["timed_by"],
        language=record.get("language"),
    )
