"""Why a seer said a word of a caption, or gave an answer: which parts of the photo it came from.

    reason = why_word(look, Box(0.1, 0.2, 0.4, 0.6), "a cup on a table", 1)
    reason.weights          (rows, cols), one number for each patch
    reason.faithfulness     how well their order agrees with what really happens without each patch

gradient    gradient × input, to first order what the score loses without the patch. HINT's own α, the gradient alone,
            would be the same for all patches that a region weighs alike, because their mean is all that is read.
attention   how much the model lets each part count: for a word, as the region weighs the patches.
occlusion   how far the score falls without the part. A patch that is not there looks like the photo on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saywhere.core import Region
from saywhere.core.attention import DEFAULT_SHAPE
from saywhere.core.errors import UnknownName
from saywhere.core.types import Floats
from saywhere.explain.curves import deletion
from saywhere.explain.faithfulness import rank_agreement
from saywhere.explain.gradients import gradient_times_input
from saywhere.explain.heat import region_heat
from saywhere.explain.occlusion import occlusion
from saywhere.models.face import Look

Method = Literal["gradient", "attention", "occlusion"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
_STEPS: Final = 10
"""Of the deletion curve."""
_MOST_NUMBERS: Final = 16_000_000
"""Of versions of a photo's features that are held at once."""


class PartScore(Protocol):
    """The score of something a model said, as a function of the features of parts of a photo; a `Score`, too.

    word: what was said. features: (r, f). attention: (r,) how much the model lets each part count.
    """

    @property
    def word(self) -> str: ...

    @property
    def features(self) -> Tensor: ...

    @property
    def attention(self) -> Tensor: ...

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor: ...


class PatchScore(PartScore, Protocol):
    """A word of a caption; its parts are patches. grid: rows and columns. cells: (r,) which patches, row by row."""

    @property
    def grid(self) -> tuple[int, int]: ...

    @property
    def cells(self) -> Tensor: ...

    def without_names(self) -> float | None:
        """The score if the detector had named nothing; None if there is no detector."""
        ...


class PlaceScore(PartScore, Protocol):
    """An answer; its parts are places. boxes_xyxy: (r, 4), fractions of the photo."""

    @property
    def boxes_xyxy(self) -> NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Reason:
    """Where a word or an answer came from.

    said: the word or the answer. weights: (rows, cols) over the photo. For a word, one number for each patch, below 0
    where it speaks against the word. For an answer each place of a fine grid is as hot as the place most in favour of
    the answer that covers it, the hottest 1.
    score: the word's log-probability, or the answer's logit.
    faithfulness: the rank correlation, within [−1, 1], of the parts' importances with what occluding each of them does;
    None for occlusion, which is the yardstick itself, and where all parts count the same, so that there is no order.
    fall: how far the score falls on average while the parts go, the most important first; more is better.
    from_names: the share of the word's probability that is lost if the detector names nothing; 0 if none is. Names
    follow from boxes, not from patches, so no weight shows them. None for answers, and without a detector.
    blind_faithfulness: the same rank correlation of a map that does not know what was said: how far each part stands
    out from a blank one. A faithfulness that is not above it explains nothing. None where faithfulness is.
    """

    said: str
    method: Method
    weights: Floats
    score: float
    faithfulness: float | None
    fall: float
    from_names: float | None
    blind_faithfulness: float | None = None


def why_word(
    look: Look, region: Region, text: str, index: int, method: Method = "gradient", level: str = "object"
) -> Reason:
    """Why the word number `index`, from 0, of a region's caption was said, with the words before it given.

    text: the caption, or any other text in words that the model knows. level: which the caption is of.
    """
    _check(method)
    score: PatchScore = look.word_score(region, text, index, level)
    found = _Importance.of(score, method)
    weights = np.zeros(score.grid)
    weights.ravel()[score.cells.cpu().numpy()] = found.importance
    quiet = score.without_names()
    # Never −0: names that spoke against the word took nothing away.
    from_names = None if quiet is None else max(0.0, -math.expm1(min(quiet - found.score, 0.0)))
    return Reason(score.word, method, weights, found.score, found.faithfulness, found.fall, from_names, found.blind)


def why_answer(
    look: Look, question: str, region: Region | None = None, method: Method = "gradient", answer: str = ""
) -> Reason:
    """Why a question was answered so. answer: another one that the model knows, to ask why that was thought of."""
    _check(method)
    score: PlaceScore = look.answer_score(question, region, answer)
    found = _Importance.of(score, method)
    weights = region_heat(found.importance, score.boxes_xyxy, DEFAULT_SHAPE)
    return Reason(score.word, method, weights, found.score, found.faithfulness, found.fall, None, found.blind)


@dataclass(frozen=True, slots=True, eq=False)
class _Importance:
    """importance: (r,). The rest as in `Reason`."""

    importance: Floats
    score: float
    faithfulness: float | None
    fall: float
    blind: float | None

    @classmethod
    def of(cls, part_score: PartScore, method: Method) -> _Importance:
        features = part_score.features[None]
        present = torch.ones(features.shape[:2], dtype=torch.bool, device=features.device)
        chunk = max(1, _MOST_NUMBERS // features.numel())
        falls = occlusion(part_score, features, present, chunk=chunk)
        if method == "gradient":
            importance = gradient_times_input(part_score, features, present).detach()
        else:
            importance = falls if method == "occlusion" else part_score.attention[None].to(falls)
        curve = deletion(part_score, features, present, importance, steps=_STEPS, chunk=chunk)
        found, measured = (one.double().cpu().numpy() for one in (importance, falls))
        score = float(curve.scores[0, 0])
        faithfulness = None if method == "occlusion" else _agreed(found, measured)
        stands_out = (features.norm(dim=2) * part_score.attention[None].to(features)).double().cpu().numpy()
        blind = None if faithfulness is None else _agreed(stands_out, measured)
        return cls(found[0], score, faithfulness, score - float(curve.area[0]), blind)


def _agreed(importance: Floats, falls: Floats) -> float | None:
    """The rank correlation of (1, r) importances with what occlusion does; None where there is no order."""
    agreed = float(rank_agreement(importance, falls, np.ones(importance.shape, dtype=bool)).each[0])
    return None if math.isnan(agreed) else agreed


def _check(method: str) -> None:
    if method not in METHODS:
        raise UnknownName("method", method, METHODS)
