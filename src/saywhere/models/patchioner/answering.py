"""What a seer's answers are made from: places of a photo with vectors in the space of texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core import Box, InvalidValue, Region, WholeImage
from saywhere.core.types import Floats32
from saywhere.models.common.windows import window_means
from saywhere.models.face import Answer
from saywhere.models.patchioner.eyes import AlignedView
from saywhere.vision.things import NamedThings, covered_means

if TYPE_CHECKING:
    from saywhere.models.region_features import RegionFeatures

KINDS: Final = ("whole", "thing", "window")
"""What a place is, in the order of the last three numbers of its features."""
MOST_THINGS: Final = 20
LEAST_SCORE: Final = 0.15
WINDOWS: Final = 4
"""Rows and columns of windows."""
LEAST_FOUND: Final = 0.1
"""Score of things that an eye with hidden states is told of."""


class SecondPlaces(Protocol):
    """What makes places of a second look."""

    def read(self, seen: Floats32) -> Floats32:
        """(k, a) of a second look → (k, d), as many numbers as other places have."""
        ...


class RegionAnswerer(Protocol):
    """Anything that answers questions about images that are given as regions. region_size: numbers of each."""

    @property
    def region_size(self) -> int: ...

    @property
    def reads_states(self) -> bool:
        """Whether it reads places as `state_places` gives them, or as `answer_regions` does."""
        ...

    @property
    def second(self) -> SecondPlaces | None:
        """What makes places of a second look, if it reads one."""
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
    reads, wanted = answerer.region_size, answer_size(size) + (answerer.second is not None)
    if reads != wanted:
        raise InvalidValue("answerer", f"reads places of {reads} numbers, but this seer's have {wanted}")
    return answerer


def places_for(answerer: RegionAnswerer | None, seen: AlignedView) -> RegionFeatures:
    """The places of a photo that an answerer reads."""
    if answerer is None or not answerer.reads_states:
        return answer_regions(seen)
    if seen.view.states is None:
        raise InvalidValue("view", "has no hidden states", "look at the photo again, with an eye that gives them")
    second = None
    if answerer.second is not None:
        if seen.view.auxiliary is None:
            raise InvalidValue("view", "has no second look", "look at the photo again, with this model")
        second = answerer.second.read(seen.view.auxiliary)
    return state_places(seen.view.whole, seen.view.states, seen.things(MOST_THINGS, LEAST_FOUND), second)


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


def state_places(
    whole: Floats32, states: Floats32, things: NamedThings | None, second: Floats32 | None = None
) -> RegionFeatures:
    """The places of a photo as an eye with hidden states sees it; places have as many numbers as in `answer_regions`.

    First the whole photo by its vector in the space of texts, and the things found by those of their names; then by
    hidden states, which know more than texts say: the whole, 10 × 10 windows, row by row, and the same things again;
    at last, if there was a second look, what that says of the whole and its own windows.

    whole: (d,). states: (1 + n, d), the whole first. second: (1 + k, d), as `SecondReader` gives it. Features, (places,
    d + 4): the vector or the state; the thing's score; and 1 for what the place is, of one kind more if there was a
    second look.
    """
    from saywhere.models.region_features import RegionFeatures

    windows, edges = _state_windows(states)
    everything = np.array([(0.0, 0.0, 1.0, 1.0)], np.float32)
    shown = [_flagged(whole[None] / max(float(np.linalg.norm(whole)), 1e-12), 0)]
    boxes = [everything]
    inside: list[Floats32] = []
    if things:
        shown.append(_flagged(things.vectors, 1, things.scores))
        boxes.append(things.boxes_xyxy)
        inside.append(_flagged(covered_means(_on_grid(windows[1:]), things.boxes_xyxy), 2, things.scores))
    places = [*boxes, everything, edges, *boxes[1:]]
    parts = [*shown, _flagged(windows, 2), *inside]
    if second is not None:
        again = _flagged(second, len(KINDS), kinds=len(KINDS) + 1)
        parts = [*(np.pad(part, ((0, 0), (0, 1))) for part in parts), again]
        places += [everything, _window_edges(math.isqrt(len(second) - 1))]
    return RegionFeatures(np.concatenate(parts), np.concatenate(places))


def _flagged(values: Floats32, kind: int, scores: Floats32 | None = None, kinds: int = len(KINDS)) -> Floats32:
    """(n, d) with the score and the kind of place beside it."""
    beside = np.zeros((len(values), 1 + kinds), np.float32)
    beside[:, 0] = 0 if scores is None else scores
    beside[:, 1 + kind] = 1
    return np.concatenate([values, beside], axis=1)


def _on_grid(windows: Floats32) -> Floats32:
    side = math.isqrt(len(windows))
    placed: Floats32 = windows.reshape(side, side, -1)
    return placed


def _state_windows(states: Floats32) -> tuple[Floats32, Floats32]:
    """(1 + n, s) the whole's state and the mean of those in each window; (n, 4) where these are."""
    windows, side = window_means(states)
    return windows, _window_edges(side)


def _window_edges(side: int) -> Floats32:
    """(side², 4) of windows, row by row."""
    steps = np.linspace(0, 1, side + 1).tolist()
    edges = [(steps[c], steps[r], steps[c + 1], steps[r + 1]) for r in range(side) for c in range(side)]
    return np.array(edges, np.float32).reshape(-1, 4)
