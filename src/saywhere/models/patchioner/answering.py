"""What a seer's answers are made from: places of a photo with vectors in the space of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core import Box, InvalidValue, Region, WholeImage
from saywhere.models.face import Answer
from saywhere.models.patchioner.eyes import AlignedView

if TYPE_CHECKING:
    from saywhere.models.region_features import RegionFeatures

KINDS: Final = ("whole", "thing", "window")
"""What a place is, in the order of the last three numbers of its features."""
MOST_THINGS: Final = 20
LEAST_SCORE: Final = 0.15
WINDOWS: Final = 4
"""Rows and columns of windows."""


class RegionAnswerer(Protocol):
    """Anything that answers questions about images that are given as regions. region_size: numbers of each."""

    @property
    def region_size(self) -> int: ...

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
