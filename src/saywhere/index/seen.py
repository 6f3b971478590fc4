"""What is kept of a photo: its vector, the words for what is in it, and regions with a vector each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

import saywhere
from saywhere.core import Box, Frame, InvalidFile, InvalidValue, SaywhereError
from saywhere.core.types import Floats32
from saywhere.index.files import FileState, content_id
from saywhere.vision import photo_reader
from saywhere.vision.photo_reader import PhotoReader
from saywhere.vision.things import suppressed
from saywhere.vision.view import View

if TYPE_CHECKING:
    from PIL import Image

    from saywhere.models.patchioner.eyes import Eyes
    from saywhere.models.patchioner.look import SeerLook
    from saywhere.models.patchioner.seer import Seer

_LEAST_SCORE, _SAME_THING, _MOST_THINGS = 0.2, 0.6, 12
"""Things are kept from this score on; of two that overlap by more (IoU) the surer one; so many of a photo."""
_SURE = 0.4
"""A word stands for a photo if a thing of that name was found with this score, or is in it with this probability."""
_WINDOWS = ((0.5, 3), (1 / 3, 3))
"""Squares that may draw the eye: their side, and how many there are each way."""
_APART, _MOST_WINDOWS = 0.2, 4


class Seeing(Protocol):
    """What a library needs of a model: a `Seer`, or one that is shared with others and waits its turn."""

    @property
    def name(self) -> str: ...

    @property
    def eyes(self) -> Eyes: ...

    def look(self, photo: Image.Image, image_id: str) -> SeerLook: ...

    def texts(self, texts: Sequence[str]) -> Floats32:
        """(n, d) vectors of length 1, in the space of regions."""
        ...


@dataclass(frozen=True, slots=True)
class SeenRegion:
    """name: of a thing that was found; empty for a part of the photo that draws the eye. score: how sure it is, or how
    much more of the attention it gets than its share."""

    name: str
    score: float
    box_xyxy: tuple[float, float, float, float]
    vector: Floats32


@dataclass(frozen=True, slots=True)
class SeenPhoto:
    """One photo as a library keeps it. error: why it could not be looked at; then there is nothing else."""

    name: str
    state: FileState
    error: str = ""
    words: tuple[str, ...] = ()
    vector: Floats32 | None = None
    regions: tuple[SeenRegion, ...] = ()

    @property
    def id(self) -> int:
        return content_id(self.name, self.state.digest)

    @property
    def image_id(self) -> str:
        return image_id_of(self.name)


def image_id_of(name: str) -> str:
    """What narratives call a photo: its name without folders and ending; COCO's numbers without zeros before them.

    >>> image_id_of("train2017/000000000139.jpg"), image_id_of("my/kitchen.png")
    ('139', 'kitchen')
    """
    stem = Path(name).stem
    return stem.lstrip("0") or stem


@dataclass
class LookAtPhotos:
    """A stage for engines: some names of photos → a `SeenPhoto` of each. root: their folder. model: name or folder.

    seer: that model, if it is open already; with other processes it is opened in each. timeout_s: for reading one
    photo; reader: the module that reads them.
    """

    root: str
    model: str
    seer: Seeing | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    reader: str = photo_reader.__name__
    photos: PhotoReader | None = field(default=None, init=False, repr=False)

    def setup(self) -> None:
        self.photos = PhotoReader(self.timeout_s, self.reader)
        if self.seer is None:
            self.seer = open_seeing(self.model)

    def __call__(self, wanted: Sequence[tuple[str, str]], /) -> list[SeenPhoto | FileState]:
        """wanted: names, each with the digest that its content had before, or none. A state: nothing has changed but
        the time of the file."""
        return [self._one(name, digest) for name, digest in wanted]

    def _one(self, name: str, digest: str) -> SeenPhoto | FileState:
        path, state = Path(self.root, name), FileState(0, 0)
        try:
            state = FileState.of(path)
            content = path.read_bytes()
            state = FileState(state.size, state.mtime_ns, hashlib.sha256(content).hexdigest())
            if state.digest == digest:
                return state
            seer, photos = self._opened()
            return look_at(name, state, seer.look(photos.read(content), name))
        except OSError as error:
            return SeenPhoto(name, state, f"cannot be read: {error.strerror or error}")
        except (InvalidFile, InvalidValue) as error:
            return SeenPhoto(name, state, error.reason)

    def _opened(self) -> tuple[Seeing, PhotoReader]:
        if self.seer is None or self.photos is None:
            raise InvalidValue("stage", "has not been set up")
        return self.seer, self.photos


def open_seeing(model: str) -> Seer:
    """The model of this name, whose regions and texts have vectors in one space; any other is refused."""
    return checked_seeing(saywhere.load(model))


def checked_seeing(model: object) -> Seer:
    """A model whose regions and texts have vectors in one space; NoTextVectors for any other."""
    from saywhere.models.patchioner.seer import Seer

    if not isinstance(model, Seer):
        raise NoTextVectors(getattr(model, "name", str(model)))
    return model


class NoTextVectors(SaywhereError):
    """A model that has no vectors of regions and texts in one space was asked to search."""

    def __init__(self, model: str) -> None:
        self.model = model
        super().__init__(f"the model {model} has no vectors of regions and texts in one space: take saywhere-base")


def look_at(name: str, state: FileState, look: SeerLook) -> SeenPhoto:
    """What is kept of a look."""
    view = look.view
    kept = [*_things(view), *_windows(view)]
    vectors = look.aligned.vectors([Box(*box) for _, _, box in kept]) if kept else ()
    regions = tuple(SeenRegion(*one, vector) for one, vector in zip(kept, vectors, strict=True))
    sure = {one.name: one.score for one in reversed(view.found)} | dict(view.present)
    words = tuple(sorted(word for word, chance in sure.items() if chance >= _SURE))
    return SeenPhoto(name, state, "", words, look.aligned.contrast(), regions)


_Kept = tuple[str, float, tuple[float, float, float, float]]


def _things(view: View) -> list[_Kept]:
    sure = [one for one in view.found if one.score >= _LEAST_SCORE]
    if not sure:
        return []
    boxes = np.array([one.box_xyxy for one in sure], np.float32)
    scores = np.array([one.score for one in sure], np.float32)
    best = suppressed(boxes, scores, _SAME_THING)[:_MOST_THINGS]
    return [(sure[number].name, sure[number].score, sure[number].box_xyxy) for number in best]


def _windows(view: View) -> list[_Kept]:
    """Squares that get the most attention for their size, apart from one another; evenly spread without attention."""
    boxes = np.array(
        [
            (x, y, x + side, y + side)
            for side, count in _WINDOWS
            for y in np.linspace(0, 1 - side, count)
            for x in np.linspace(0, 1 - side, count)
        ],
        np.float32,
    ).clip(0, 1)
    rows, cols = view.frame.grid
    shares = np.full((rows, cols), 1 / (rows * cols)) if view.attention is None else view.attention
    along_y, along_x = Frame.of_grid(rows, cols).coverages(boxes.astype(np.float64))
    held = np.einsum("mr,rc,mc->m", along_y, shares, along_x)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    scores = (held / areas).astype(np.float32)
    best = suppressed(boxes, scores, _APART)[:_MOST_WINDOWS]
    return [("", float(scores[number]), tuple(boxes[number].tolist())) for number in best]
