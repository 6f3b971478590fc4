"""Video narratives for `saywhere data show`: frames, traces and voices on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from saywhere.cli.console import counted, err, out
from saywhere.cli.data import nothing_to_show
from saywhere.formats.video_files import SOUNDS, VideoFiles
from saywhere.formats.video_narratives import ActorNarrative, VideoNarrative
from saywhere.plots.shown import Film


def show_films(
    videos: Sequence[VideoNarrative], file: Path, folder: Path, output: Path, only: str | None, limit: int
) -> None:
    """Write what was told of each actor of some videos. Frames and voices that are missing are named."""
    wanted = [video for video in videos if only in (None, video.video_id)]
    files = VideoFiles(folder)
    films = list(islice((film_of(video, actor, files) for video in wanted for actor in video.actors), limit))
    if not films:
        raise nothing_to_show(file, only)
    if output.suffix.lower() == ".png":
        _draw_first(next(video for video in wanted if video.actors), files, output)
        films = films[:1]
    else:
        from saywhere.plots import narratives_page

        narratives_page(list(counted(films, "drawing", len(films))), output, "Video narratives")
    for video_id, names in _absent(films).items():
        err.print(f"{video_id}: no file for the key frames {', '.join(names)}", markup=False, style="yellow")
    silent = sum(film.sound is None for film in films)
    note = f", {silent:,} without a recording in {folder}" if silent else ""
    out.print(f"{output}: {len(films):,} narratives{note}", markup=False)


def film_of(video: VideoNarrative, actor: ActorNarrative, files: VideoFiles) -> Film:
    """What was told of one actor, as a page shows it."""
    trace, stroke_frames = actor.by_frame()
    word_frames, boxes = actor.word_places()
    narrative = replace(actor.narrative, trace=trace)
    path = files.recording(actor)
    sound = None if path is None else (path, SOUNDS[path.suffix.lower()])
    names, frames = video.keyframe_names, files.frames(video)
    return Film(narrative, actor.name, names, frames, stroke_frames, word_frames, boxes, sound)


def _absent(films: Sequence[Film]) -> dict[str, list[str]]:
    """For each video the names of its key frames that have no file."""
    found = {
        film.narrative.image_id: [name for name, path in zip(film.names, film.frames, strict=True) if path is None]
        for film in films
    }
    return {video: names for video, names in found.items() if names}


def _draw_first(video: VideoNarrative, files: VideoFiles, output: Path) -> None:
    """A picture of the first narrative, on the key frame that was pointed at most."""
    from saywhere.build.riln.sources import video_narratives
    from saywhere.plots import draw_narrative, save_png

    narrative = next(video_narratives(video))
    frames = dict(zip(video.keyframe_names, files.frames(video), strict=True))
    save_png(draw_narrative(frames.get(narrative.image_id.rpartition("/")[2]), narrative), output)
