"""Dense captioning mAP (Johnson, Karpathy and Fei-Fei 2016): are the regions found and well described at once?

True regions that overlap by IoU >= 0.7 become one region (the mean box) with several reference captions. In each image,
detections claim true regions by falling score: each takes the region it overlaps most, and whoever comes second to a
region is wrong. A detection is right at thresholds (t, m) when it was first, its IoU is >= t and its caption's
similarity to the references is > m. Average precision is the mean over recalls 0, 0.01 … 1 of the best precision at
that recall or more; mAP is its mean over the 5 x 6 thresholds.

Three details differ from the released Lua on purpose: IoU is of areas, without the +1 of whole pixels, since boxes here
are fractions; recall 1 is on the grid (rounding makes the Lua loop stop at 0.99); and a detection that overlaps nothing
claims nothing (there it claims the last region).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Bools, Floats, owned
from saywhere.metrics.referring import box_iou, checked_boxes

IOU_THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)
LANGUAGE_THRESHOLDS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)
MERGE_IOU = 0.7

Similarity = Callable[[list[str], list[list[str]]], Sequence[float]]
"""Scores candidate i against its references i. METEOR in the paper; anything that gives one number each will do."""


@dataclass(frozen=True, slots=True, eq=False)
class TrueRegions:
    """The annotated regions of one image. boxes_xyxy: (n, 4). captions: n."""

    boxes_xyxy: Floats
    captions: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "boxes_xyxy", checked_boxes(self.boxes_xyxy, "true boxes"))
        object.__setattr__(self, "captions", _checked_captions(self.captions, len(self.boxes_xyxy), "true captions"))


@dataclass(frozen=True, slots=True, eq=False)
class DetectedRegions:
    """The regions a model found in one image. boxes_xyxy: (n, 4). captions: n. scores: (n,), higher is surer."""

    boxes_xyxy: Floats
    captions: Sequence[str]
    scores: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "boxes_xyxy", checked_boxes(self.boxes_xyxy, "detected boxes"))
        object.__setattr__(self, "scores", owned(self.scores, "scores", (len(self.boxes_xyxy),)))
        captions = _checked_captions(self.captions, len(self.boxes_xyxy), "detected captions")
        object.__setattr__(self, "captions", captions)


@dataclass(frozen=True, slots=True, eq=False)
class DenseScores:
    """mean_ap: mean of `grid`. grid: (5, 6), rows IOU_THRESHOLDS, columns LANGUAGE_THRESHOLDS.

    detection_ap: mean over the IoU thresholds when captions do not count. All NaN when there is no true region.
    """

    mean_ap: float
    detection_ap: float
    grid: Floats
    true_regions: int
    detections: int


def dense_map(images: Iterable[tuple[DetectedRegions, TrueRegions]], similarity: Similarity) -> DenseScores:
    """Dense captioning mAP over images."""
    metric = DenseMAP(similarity)
    for detected, true in images:
        metric.update(detected, true)
    return metric.compute()


class DenseMAP:
    """`dense_map` image by image. Captions are scored once, in `compute`."""

    higher_is_better = True

    def __init__(self, similarity: Similarity) -> None:
        self.similarity = similarity
        self._claims = _Claims()

    def update(self, detected: DetectedRegions, true: TrueRegions) -> None:
        """Add one image; either side may be empty."""
        _tally(detected, true, self._claims)

    def compute(self) -> DenseScores:
        """The scores over all images."""
        return _finish(self._claims, self.similarity)

    def reset(self) -> None:
        """Forget every image."""
        self._claims = _Claims()


@dataclass(slots=True)
class _Claims:
    """One entry per detection seen; references is empty for a detection that claimed no region."""

    scores: list[float] = field(default_factory=list)
    ious: list[float] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    references: list[list[str]] = field(default_factory=list)
    true_regions: int = 0


def _tally(detected: DetectedRegions, true: TrueRegions, claims: _Claims) -> None:
    boxes, references = _merged(true)
    claims.true_regions += len(boxes)
    n = len(detected.scores)
    ious = box_iou(detected.boxes_xyxy, boxes) if len(boxes) else np.zeros((n, 1))
    taken: set[int] = set()
    for i in np.argsort(-detected.scores, kind="stable").tolist():
        region = int(ious[i].argmax())
        iou = float(ious[i, region])
        first = iou > 0 and region not in taken
        if first:
            taken.add(region)
        claims.scores.append(float(detected.scores[i]))
        claims.ious.append(iou)
        claims.candidates.append(detected.captions[i])
        claims.references.append(references[region] if first else [])


def _merged(true: TrueRegions) -> tuple[Floats, list[list[str]]]:
    """Mean boxes (m, 4) and captions of the groups: again and again the box with most neighbours takes them all."""
    near = box_iou(true.boxes_xyxy, true.boxes_xyxy) >= MERGE_IOU
    # A box without area has IoU 0 with itself, and is a region all the same.
    np.fill_diagonal(near, True)
    boxes: list[Floats] = []
    captions: list[list[str]] = []
    while near.any():
        members = np.flatnonzero(near[near.sum(axis=1).argmax()]).tolist()
        boxes.append(true.boxes_xyxy[members].mean(axis=0))
        captions.append([true.captions[i] for i in members])
        near[members] = False
        near[:, members] = False
    return np.array(boxes).reshape(-1, 4), captions


def _finish(claims: _Claims, similarity: Similarity) -> DenseScores:
    order = np.argsort(-np.array(claims.scores), kind="stable")
    ious = np.array(claims.ious)[order]
    first = np.array([bool(references) for references in claims.references], np.bool_)[order]
    language = _language(claims, similarity)[order]
    grid = np.array(
        [
            [_average_precision(first & (ious >= t) & (language > m), claims.true_regions) for m in LANGUAGE_THRESHOLDS]
            for t in IOU_THRESHOLDS
        ]
    )
    found = [_average_precision(first & (ious >= t), claims.true_regions) for t in IOU_THRESHOLDS]
    return DenseScores(float(grid.mean()), float(np.mean(found)), grid, claims.true_regions, len(order))


def _language(claims: _Claims, similarity: Similarity) -> Floats:
    """The similarity of each detection (n,); 0 for those that no threshold can make right, which are not scored."""
    scored = [i for i, refs in enumerate(claims.references) if refs and claims.ious[i] >= min(IOU_THRESHOLDS)]
    language: Floats = np.zeros(len(claims.scores))
    if scored:
        values = similarity([claims.candidates[i] for i in scored], [claims.references[i] for i in scored])
        language[scored] = owned(values, "similarities", (len(scored),))
    return language


def _average_precision(right: Bools, true_regions: int) -> float:
    """right: (n,) by falling score."""
    if not true_regions:
        return float("nan")
    hits = right.cumsum()
    precision = hits / np.arange(1, len(right) + 1)
    best_from_here = np.maximum.accumulate(precision[::-1])[::-1]
    # Whole numbers: hits / true_regions >= k / 100 must not depend on rounding.
    reached = np.searchsorted(100 * hits, np.arange(101) * true_regions)
    return float(np.append(best_from_here, 0.0)[reached].mean())


def _checked_captions(captions: Sequence[str], n: int, what: str) -> tuple[str, ...]:
    if isinstance(captions, str) or not all(isinstance(caption, str) for caption in captions):
        raise InvalidValue(what, "are not a list of strings")
    if len(captions) != n:
        raise InvalidValue(what, f"{len(captions)} for {n} boxes")
    return tuple(captions)
