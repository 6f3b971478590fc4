"""`saywhere video`: caption, ground and segment frame by frame: a folder of frames, or what was told of videos."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saywhere import loading
from saywhere.cli.console import counted, err, out
from saywhere.cli.data import read_good
from saywhere.cli.look import photos_in
from saywhere.cli.seeing import AsJson, Model, opened
from saywhere.core import InvalidFile, InvalidValue, Trace, WholeImage
from saywhere.formats import registry
from saywhere.formats.video_files import VideoFiles

if TYPE_CHECKING:
    from saywhere.models.face import Look
    from saywhere.models.face import Model as LoadedModel

app = typer.Typer(help="Caption, ground and segment the frames of videos.", no_args_is_help=True, rich_markup_mode=None)
Source = Annotated[
    Path,
    typer.Argument(
        help="A folder of frames, or a file of video narratives: then the frames that were pointed at.",
        show_default=False,
    ),
]
Frames = Annotated[
    Path | None, typer.Option("--photos", help="Folder with the frames of the videos; that of the file by default.")
]
Only = Annotated[str | None, typer.Option(help="Only this video.")]


@dataclass(frozen=True, slots=True)
class FrameShot:
    """One frame. trace: where somebody pointed on it, telling of an actor with these words; none in a plain folder."""

    path: Path
    video: str
    trace: Trace | None = None
    actor: str = ""
    words: str = ""

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.video, self.path.stem, self.actor) if part)

    def values(self, **found: Any) -> str:
        """As a line of JSON."""
        return json.dumps({"video": self.video, "frame": self.path.stem, "actor": self.actor, **found})


@app.command()
def caption(
    source: Source, photos: Frames = None, only: Only = None, model: Model = loading.BASE, as_json: AsJson = False
) -> None:
    """Say what each frame shows, or what the trace on it points at."""
    loaded, shots = opened(model, "caption", texts=False), _shots(source, photos, only)
    for shot, look in _looked(loaded, shots):
        said = look.caption(WholeImage() if shot.trace is None else shot.trace)
        _say(shot, f"{shot.name}: {said}", as_json, text=said.text, score=said.score, sure=said.sure)


@app.command()
def ground(
    source: Source,
    text: Annotated[
        str, typer.Argument(help="What to find in every frame; by default what was told of each actor.")
    ] = "",
    photos: Frames = None,
    only: Only = None,
    model: Model = loading.BASE,
    as_json: AsJson = False,
) -> None:
    """Find where each phrase of a text is, in every frame."""
    shots = _shots(source, photos, only)
    if not text.strip() and not all(shot.words.strip() for shot in shots):
        raise InvalidValue("text", "has no word", "say what to find")
    for shot, look in _looked(opened(model, "ground"), shots):
        phrases = look.grounded(text or shot.words).phrases()
        found = [(phrase.text, None if phrase.box_xyxy is None else list(phrase.box_xyxy)) for phrase in phrases]
        places = "; ".join(f"{words} {_place(box)}" for words, box in found)
        values = [{"text": words, "box_xyxy": box} for words, box in found]
        _say(shot, f"{shot.name}: {places}", as_json, phrases=values)


@app.command()
def segment(
    source: Source,
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write a mask for each frame into, as PNG.")],
    photos: Frames = None,
    only: Only = None,
    model: Model = loading.BASE,
    as_json: AsJson = False,
) -> None:
    """Cut out what was pointed at in each frame."""
    shots = _shots(source, photos, only)
    if any(shot.trace is None for shot in shots):
        raise InvalidFile(source, "is a folder of frames, and nobody points there", "give a file of video narratives")
    for shot, look in _looked(opened(model, "segment", texts=False), shots):
        try:
            mask = look.segment(shot.trace or WholeImage()).values > 0
        except InvalidValue as error:
            _skip(shot, error)
            continue
        path = output / shot.video / f"{shot.path.stem}-{_plain(shot.actor)}.png"
        _write_mask(path, mask)
        _say(shot, f"{shot.name}: {mask.mean():.1%} of the frame, {path}", as_json, mask=str(path))


def _shots(source: Path, photos: Path | None, only: str | None) -> list[FrameShot]:
    """The frames to look at. Those that are missing are named and left out."""
    if source.is_dir():
        return [FrameShot(path, source.name) for path in photos_in(source)]
    kind = registry.detect(source)
    if kind.holds != "video narratives":
        raise InvalidFile(source, f"holds {kind.holds} ({kind.title}), and video narratives are needed here")
    files = VideoFiles(photos if photos is not None else source.parent)
    shots = []
    for video in read_good(source, kind.name):
        if only not in (None, video.video_id):
            continue
        paths = files.frames(video)
        for actor in video.actors:
            for frame in dict.fromkeys(actor.keyframes):
                path, words = paths[frame], actor.narrative.caption
                if path is None:
                    missing = f"{video.video_id} {video.keyframe_names[frame]} {actor.name}"
                    err.print(f"skipped {missing}: the frame has no file", markup=False, style="yellow")
                else:
                    shots.append(FrameShot(path, video.video_id, actor.trace_on(frame), actor.name, words))
    if not shots:
        raise InvalidFile(source, "has no frame to look at", "say where the frames are with --photos")
    return shots


def _looked(model: LoadedModel, shots: list[FrameShot]) -> Iterator[tuple[FrameShot, Look]]:
    """Each frame, looked at; one that several actors were shown on once. Bad frames are said and passed over."""
    look = lru_cache(maxsize=16)(lambda path: model.look(path))
    for shot in counted(shots, "looking", len(shots)):
        try:
            seen = look(shot.path)
            if shot.trace is not None:
                shot.trace.weights(seen.view.frame)
        except (InvalidValue, InvalidFile) as error:
            _skip(shot, error)
            continue
        yield shot, seen


def _skip(shot: FrameShot, why: Exception) -> None:
    err.print(f"skipped {shot.name}: {why}", markup=False, style="yellow")


def _say(shot: FrameShot, line: str, as_json: bool, **found: Any) -> None:
    if as_json:
        typer.echo(shot.values(**found))
    else:
        out.print(line, markup=False)


def _place(box: list[float] | None) -> str:
    return "not found" if box is None else ",".join(f"{value:.3f}" for value in box)


def _plain(name: str) -> str:
    """An actor's name as part of a file's."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split()) or "actor"


def _write_mask(path: Path, mask: Any) -> None:
    from PIL import Image

    from saywhere.atomic import write_atomic

    with write_atomic(path) as file:
        Image.fromarray((mask * 255).astype("uint8")).save(file, "PNG")
