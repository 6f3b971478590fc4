"""Narratives as a page shows them: over one photo, or over the frames of a video one after another."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saywhere.core import Narrative, Word, WordBoxes, word_boxes
from saywhere.core.types import Floats
from saywhere.plots.colour import TimeScale
from saywhere.plots.photo import CANVAS_SIZE, Photo, PhotoLike, load_photo, near_strokes

LONGEST_PX = 1024
"""Photos are shrunk to this."""
WIDTH = 1000.0
"""Of every drawing, in its own units."""
N_COLOURS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """A narrative that points at the frames of a video, one after another.

    narrative: its trace lifts the pen wherever it leaves a frame. title: whom it tells of. names, frames: of the
    video's frames, in their order; a frame may be missing. stroke_frames: the frame of each stroke. word_frames, boxes:
    of each word the frame that was pointed at meanwhile, and where on it. sound: the file of the voice and its media
    type, if it is there.
    """

    narrative: Narrative
    title: str
    names: tuple[str, ...]
    frames: tuple[PhotoLike, ...]
    stroke_frames: tuple[int, ...]
    word_frames: tuple[int | None, ...]
    boxes: WordBoxes
    sound: tuple[Path, str] | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A photo of the page: its name there, empty if it is missing for the reason given; its height in drawing units."""

    name: str
    height: float
    missing: str


class Album:
    """The photos of a page, each once."""

    def __init__(self) -> None:
        self.images: list[str] = []
        self._by_file: dict[str, Picture] = {}
        self._by_content: dict[str, Picture] = {}

    def add(self, photo: PhotoLike) -> Picture:
        if not isinstance(photo, str | Path):
            return self._store(load_photo(photo))
        if str(photo) not in self._by_file:
            self._by_file[str(photo)] = self._store(load_photo(photo))
        return self._by_file[str(photo)]

    def _store(self, photo: Photo) -> Picture:
        width, height = photo.size
        if photo.image is None:
            return Picture("", WIDTH * height / width, photo.missing)
        jpeg = photo.shrunk(LONGEST_PX).jpeg()
        digest = hashlib.sha256(jpeg).hexdigest()
        if digest not in self._by_content:
            picture = Picture(f"photo-{len(self.images)}", WIDTH * height / width, "")
            self.images.append(
                f'<image id="{picture.name}" width="{WIDTH:g}" height="{picture.height:.1f}" '
                f'preserveAspectRatio="none" href="data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"/>'
            )
            self._by_content[digest] = picture
        return self._by_content[digest]


@dataclass(frozen=True, slots=True)
class ShownNarrative:
    """A narrative as it is drawn. pictures: the photo, or the frames of a video. strokes: each (n, 3) x, y in drawing
    units, t in seconds. stroke_frames, word_frames: which picture each is on. film: what it is of, if of a video."""

    narrative: Narrative
    pictures: tuple[Picture, ...]
    words: tuple[Word, ...]
    boxes: WordBoxes
    scale: TimeScale
    strokes: list[Floats]
    stroke_frames: tuple[int, ...]
    word_frames: tuple[int | None, ...]
    film: Film | None = None

    @classmethod
    def of_photo(cls, narrative: Narrative, picture: Picture) -> ShownNarrative:
        words = narrative.words
        boxes = word_boxes(words, narrative.trace)
        frames = tuple(0 if here else None for here in boxes.located.tolist())
        strokes = _strokes(narrative, picture.height)
        scale = TimeScale.of(words, narrative.trace)
        return cls(narrative, (picture,), words, boxes, scale, strokes, (0,) * len(strokes), frames)

    @classmethod
    def of_film(cls, film: Film, album: Album) -> ShownNarrative:
        found = [album.add(frame) for frame in film.frames]
        # What is missing is as large as what is there: frames of one video are alike.
        height = next((one.height for one in found if one.name), WIDTH * CANVAS_SIZE[1] / CANVAS_SIZE[0])
        pictures = tuple(
            one if one.name else Picture("", height, f"{name}: {one.missing}")
            for name, one in zip(film.names, found, strict=True)
        )
        words = film.narrative.words
        scale = TimeScale.of(words, film.narrative.trace)
        strokes = _strokes(film.narrative, height)
        return cls(
            film.narrative, pictures, words, film.boxes, scale, strokes, film.stroke_frames, film.word_frames, film
        )

    @property
    def height(self) -> float:
        """Of the drawing, in its units."""
        return self.pictures[0].height if self.pictures else WIDTH * CANVAS_SIZE[1] / CANVAS_SIZE[0]

    @property
    def frames(self) -> list[int]:
        """The pictures that are pointed at, in that order; the first if none is."""
        return list(dict.fromkeys(self.stroke_frames)) or [0]

    @property
    def who(self) -> str:
        return f"annotator {self.narrative.annotator_id}" if self.narrative.annotator_id else "the speaker"

    def colour(self, time_s: float) -> str:
        """The name of a time's colour in the page's style."""
        return f"c{round(float(self.scale.shares(time_s)) * (N_COLOURS - 1))}"

    def strokes_on(self, frame: int) -> list[Floats]:
        return [stroke for stroke, on in zip(self.strokes, self.stroke_frames, strict=True) if on == frame]


def sound_url(path: Path, media_type: str) -> str:
    """A sound as the page carries it."""
    return f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode()}"


def path_data(points: Floats) -> str:
    """SVG path data through (n, ≥ 2) points; a single point becomes a dot."""
    steps = [f"{x:.1f} {y:.1f}" for x, y in points[:, :2].tolist()]
    return "M" + "L".join(steps if len(steps) > 1 else steps * 2)


def ghost(strokes: Sequence[Floats]) -> str:
    """All strokes as one pale line."""
    return f'<path class="ghost" d="{"".join(path_data(stroke) for stroke in strokes)}"/>'


def _strokes(narrative: Narrative, height: float) -> list[Floats]:
    return [stroke * np.array([WIDTH, height, 1.0]) for stroke in near_strokes(narrative.trace)]
