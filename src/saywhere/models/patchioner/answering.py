"""What a seer's answers are made from: places of a photo with vectors in the space of texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core import Box, InvalidValue, Region, WholeImage
from saywhere.core.types import Floats32
from saywhere.models.face import Answer
from saywhere.models.patchioner.eyes import AlignedView
from saywhere.vision.things import box_means
from saywhere.vision.view import View

if TYPE_CHECKING:
    from saywhere.models.region_features import RegionFeatures

KINDS: Final = ("whole", "thing", "window")
"""What a place is, in the order of the last three numbers of its features."""
MOST_THINGS: Final = 20
LEAST_SCORE: Final = 0.15
WINDOWS: Final = 4
"""Rows and columns of windows."""
STATE_WINDOWS: Final = 10
"""The same, of windows that show hidden states."""


class RegionAnswerer(Protocol):
    """Anything that answers questions about images that are given as regions. region_size: numbers of each."""

    @property
    def region_size(self) -> int: ...

    @property
    def reads_states(self) -> bool:
        """Whether it reads places as `state_places` gives them, or as `answer_regions` does."""
        ...

    def answer(
        self,
        images: Sequence[RegionFeatures],
        questions: Sequence[str],
        pointed: Sequence[ArrayLike | None] | None = None,
    ) -> list[Answer]:
        """An answer to each question about the image of the same number. pointed: how much at each of its regions."""
        ...

    def score(self, image: RegionFeatures, question: str, pointed: ArrayLike | None, answer: str = "") -> Any:
        """How likely an answer is, as a function of the regions; by default the one that is given."""
        ...


def checked_answerer(answerer: RegionAnswerer, size: int) -> RegionAnswerer:
    """The same, if it reads places with vectors of `size` numbers."""
    reads, wanted = answerer.region_size, answer_size(size)
    if reads != wanted:
        raise InvalidValue("answerer", f"reads places of {reads} numbers, but this seer's have {wanted}")
    return answerer


def places_for(answerer: RegionAnswerer | None, seen: AlignedView) -> RegionFeatures:
    """The places of a photo that an answerer reads."""
    return state_places(seen.view) if answerer is not None and answerer.reads_states else answer_regions(seen)


def answer_size(size: int) -> int:
    """Numbers of each place's features when vectors have `size`."""
    return size + 1 + len(KINDS)


def answer_regions(seen: AlignedView) -> RegionFeatures:
    """The places of a photo that answers are made from, and what each shows.

    First the whole photo; then the detector's things with a score of at least 0.15, at most 20, surest first; then
    4 × 4 windows, row by row. Things and windows that the encoder does not see (it may crop) are left out.

    Features, (places, d + 4): the place's vector, of length 1, in the space of texts; the detector's score, 0 for
    places that are no things; and 1 for what the place is: whole, thing or window.
    """
    from saywhere.models.region_features import RegionFeatures

    frame = seen.view.frame
    sure = sorted((one for one in seen.view.found if one.score >= LEAST_SCORE), key=lambda one: -one.score)
    steps = np.linspace(0, 1, WINDOWS + 1).tolist()
    windows = [(steps[c], steps[r], steps[c + 1], steps[r + 1]) for r in range(WINDOWS) for c in range(WINDOWS)]
    places = [("thing", one.score, one.box_xyxy) for one in sure[:MOST_THINGS]]
    places += [("window", 0.0, box_xyxy) for box_xyxy in windows]
    places = [("whole", 0.0, (0.0, 0.0, 1.0, 1.0)), *(one for one in places if frame.coverage(one[2]).any())]
    regions: list[Region] = [WholeImage(), *(Box(*box_xyxy) for _, _, box_xyxy in places[1:])]
    scores = np.array([score for _, score, _ in places], dtype=np.float32)
    kinds = np.array([[kind == one for one in KINDS] for kind, _, _ in places], dtype=np.float32)
    features = np.concatenate([seen.vectors(regions), scores[:, None], kinds], axis=1)
    return RegionFeatures(features, [box_xyxy for _, _, box_xyxy in places])


def state_places(view: View) -> RegionFeatures:
    """The places of a photo as an eye with hidden states sees it; places have as many numbers as in `answer_regions`.

    First the whole photo and then the things found, at most 20, surest first, by their vectors in the space of texts;
    then the whole again and 10 × 10 windows, row by row, by their hidden states, which know more than texts say.

    Features, (places, d + 4): the vector or the state; the thing's score; and 1 for what the place is.
    """
    from saywhere.models.region_features import RegionFeatures

    if view.states is None:
        raise InvalidValue("view", "has no hidden states", "look at the photo again, with an eye that gives them")
    things = sorted(view.found, key=lambda one: -one.score)[:MOST_THINGS]
    boxes = np.array([one.box_xyxy for one in things], np.float32).reshape(-1, 4)
    shown = box_means(view.patches, boxes) if things else np.zeros((0, len(view.whole)), np.float32)
    windows, edges = _state_windows(view.states)
    whole = np.array([(0.0, 0.0, 1.0, 1.0)], np.float32)
    parts = (
        (0, view.whole[None] / max(float(np.linalg.norm(view.whole)), 1e-12), whole, None),
        (1, shown, boxes, [one.score for one in things]),
        (2, windows, np.concatenate([whole, edges]), None),
    )
    rows = [_flagged(values, kind, scores) for kind, values, _, scores in parts]
    return RegionFeatures(np.concatenate(rows), np.concatenate([some for _, _, some, _ in parts]))


def _flagged(values: Floats32, kind: int, scores: Sequence[float] | None) -> Floats32:
    """(n, d) with the score and the kind of place beside it."""
    beside = np.zeros((len(values), 1 + len(KINDS)), np.float32)
    beside[:, 0] = 0 if scores is None else scores
    beside[:, 1 + kind] = 1
    return np.concatenate([values, beside], axis=1)


def _state_windows(states: Floats32) -> tuple[Floats32, Floats32]:
    """(1 + n, s) the whole's state and the mean of those in each window; (n, 4) where these are."""
    grid = math.isqrt(len(states) - 1)
    if grid**2 != len(states) - 1 or grid < 1:
        raise InvalidValue("view.states", f"are {len(states)}, not one more than a square")
    side = STATE_WINDOWS if grid % STATE_WINDOWS == 0 else grid
    cut = states[1:].reshape(side, grid // side, side, grid // side, -1).mean(axis=(1, 3))
    steps = np.linspace(0, 1, side + 1).tolist()
    edges = [(steps[c], steps[r], steps[c + 1], steps[r + 1]) for r in range(side) for c in range(side)]
    return np.concatenate([states[:1], cut.reshape(side * side, -1)]), np.array(edges, np.float32)
