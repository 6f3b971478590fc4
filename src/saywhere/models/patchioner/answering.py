"""What a seer's answers are made from: places of a photo with vectors in the space of texts, and what is pointed at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import Tensor

from saywhere.core import Box, InvalidValue, Point, Region, Trace, WholeImage
from saywhere.core.types import Floats32
from saywhere.language.words import plain_words
from saywhere.models.patchioner.tags import overlaps
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.answering import Answer, Answerer
from saywhere.vision import Found

if TYPE_CHECKING:
    from saywhere.models.patchioner.seer import Look


KINDS: Final = ("whole", "thing", "window")
"""What a place is, in the order of the last three numbers of its features."""
MOST_THINGS: Final = 20
LEAST_SCORE: Final = 0.15
WINDOWS: Final = 4
"""Rows and columns of windows."""
_LINE_FIT: Final = 0.5
"""A point or a line means all of the thing under it, so how little of the thing it covers matters less."""


def checked_answerer(answerer: Answerer, size: int) -> Answerer:
    """The same, if it reads places with vectors of `size` numbers."""
    reads, wanted = answerer.network.config.region_size, answer_size(size)
    if reads != wanted:
        raise InvalidValue("answerer", f"reads places of {reads} numbers, but this seer's have {wanted}")
    return answerer


def answer_size(size: int) -> int:
    """Numbers of each place's features when vectors have `size`."""
    return size + 1 + len(KINDS)


def answer_regions(look: Look) -> RegionFeatures:
    """The places of a photo that answers are made from, and what each shows.

    First the whole photo; then the detector's things with a score of at least 0.15, at most 20, surest first; then
    4 × 4 windows, row by row. Things and windows that the encoder does not see (it may crop) are left out.

    Features, (places, d + 4): the place's vector, of length 1, in the space of texts; the detector's score, 0 for
    places that are no things; and 1 for what the place is: whole, thing or window.
    """
    frame = look.view.frame
    sure = sorted((one for one in look.view.found if one.score >= LEAST_SCORE), key=lambda one: -one.score)
    steps = np.linspace(0, 1, WINDOWS + 1).tolist()
    windows = [(steps[c], steps[r], steps[c + 1], steps[r + 1]) for r in range(WINDOWS) for c in range(WINDOWS)]
    places = [("thing", one.score, one.box_xyxy) for one in sure[:MOST_THINGS]]
    places += [("window", 0.0, box_xyxy) for box_xyxy in windows]
    seen = [("whole", 0.0, (0.0, 0.0, 1.0, 1.0)), *(one for one in places if frame.coverage(one[2]).any())]
    regions: list[Region] = [WholeImage(), *(Box(*box_xyxy) for _, _, box_xyxy in seen[1:])]
    scores = np.array([score for _, score, _ in seen], dtype=np.float32)
    kinds = np.array([[kind == one for one in KINDS] for kind, _, _ in seen], dtype=np.float32)
    features = np.concatenate([look.sight.vectors(regions), scores[:, None], kinds], axis=1)
    return RegionFeatures(features, [box_xyxy for _, _, box_xyxy in seen])


def pointed(look: Look, places: RegionFeatures, region: Region | None) -> Floats32 | None:
    """(places,) how much each place is pointed at, within [0, 1]; None if nothing or the whole photo is.

    The share of what is pointed at that lies in the place × the share of the place that is pointed at, so that a place
    must fit: the whole photo holds every point, but a point is little of it. For points and lines the second share
    counts by its square root, see `_LINE_FIT`. A box is compared exactly, other regions patch by patch.
    """
    if region is None or isinstance(region, WholeImage):
        return None
    frame = look.view.frame
    weights = region.weights(frame)[None].astype(np.float32)
    boxes = [Found(tuple(box), "place", 1.0) for box in places.boxes_xyxy.tolist()]
    lying = overlaps(boxes, ("place",), weights, frame, [region])
    power = _LINE_FIT if isinstance(region, Point | Trace) else 1.0
    fits: Floats32 = np.clip(lying.of_region[0] * lying.of_thing[0] ** power, 0, 1)
    if not fits.any():
        raise InvalidValue("region", "lies in none of the places that answers are made from")
    return fits


class AnswerScore:
    """The logit of an answer to a question as a function of the features of a photo's places.

    features: (r, f). boxes_xyxy: (r, 4). attention: (r,) how much the network looks at each place. word: the answer.
    """

    def __init__(
        self, answerer: Answerer, places: RegionFeatures, question: str, fits: Floats32 | None, answer: str
    ) -> None:
        """fits: see `pointed`. answer: empty for the one that is given."""
        [given] = answerer.answer([places], [question], [fits])
        self.word = answer or given.text
        if self.word not in answerer.answers:
            raise InvalidValue("answer", f"{answer!r} is none that the model knows")
        self.answer = int(answerer.answers.targets([self.word]).argmax())
        self.network = answerer.network
        device = self.network.device
        words = plain_words(question)[: self.network.config.max_words]
        self.question = torch.tensor([answerer.vocabulary.encode(words).ids], device=device)
        self.features, boxes = (torch.tensor(one, device=device) for one in (places.features, places.boxes_xyxy))
        self.boxes, self.boxes_xyxy = boxes, places.boxes_xyxy
        self.pointed = None if fits is None else torch.tensor(fits, device=device)
        self.attention = torch.from_numpy(given.attention)

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:  # noqa: ARG002 - as the protocol has it
        """(n,) the logit for each of (n, r, f) versions of the features, of which (n, r) are present."""
        rows = len(features)
        answered = self.network(
            features,
            present,
            self.question.expand(rows, -1),
            boxes=self.boxes.expand(rows, -1, -1),
            pointed=None if self.pointed is None else self.pointed.expand(rows, -1),
        )
        logits: Tensor = answered.logits[:, self.answer]
        return logits


__all__ = ["Answer", "AnswerScore", "Answerer", "answer_regions", "answer_size", "checked_answerer", "pointed"]
