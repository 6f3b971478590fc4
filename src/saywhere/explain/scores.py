"""What is explained: a score of a model as a function of the features of an image's regions or patches.

Each model here gets a class that holds the rest of its input (a question, a caption so far …) and is a `Score`.
Shapes: b items of the batch, n rows, r regions or patches, f numbers in a feature, t words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import END_ID, PAD_ID
from saywhere.models.mitr.layers import nowhere, rows_of
from saywhere.models.mitr.network import MITR
from saywhere.models.patchioner.aggregation import LearnedAggregation
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.updown.captioner import CaptionerOutput, UpDnCaptioner
from saywhere.models.updown.objective import answer_score
from saywhere.models.updown.vqa import UpDnVqa, VqaOutput


class Score(Protocol):
    """One number for each row of region features: an answer's logit, a word's logit at its place …"""

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        """(n,) scores. Row i must depend on row i alone, and be the same whatever rows stand beside it.

        features: (n, r, f). present: (n, r) booleans, which regions there are. items: (n,) int64, of which item of the
        batch each row is a version; several rows may be of one item.
        """
        ...


@runtime_checkable
class Attends(Protocol):
    """A score whose model shares out attention over the regions on the way to it."""

    def attention(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        """(n, r) shares, 0 where no region is present. Arguments as for `Score`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class CorrectAnswerScore:
    """The sum of an UpDn network's logits over correct answers: o_gt of HINT.

    questions: (b, t) ids. targets: (b, answers), correct are those above 0. boxes: (b, r, 4), for networks that read
    them. pointed: (b, r), what the user points at.
    """

    model: UpDnVqa
    questions: Tensor
    targets: Tensor
    boxes: Tensor | None = None
    pointed: Tensor | None = None

    @classmethod
    def of_best(
        cls,
        model: UpDnVqa,
        features: Tensor,
        present: Tensor,
        questions: Tensor,
        boxes: Tensor | None = None,
        pointed: Tensor | None = None,
    ) -> CorrectAnswerScore:
        """The logit of the answer that the network itself gives to each question about these regions."""
        with torch.no_grad():
            logits = model(features, present, questions, boxes=boxes, pointed=pointed).logits
        chosen = functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits)
        return cls(model, questions, chosen, boxes, pointed)

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        return answer_score(self._answered(features, present, items).logits, self.targets[items])

    def attention(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        """(n, r) the network's shares of attention."""
        return self._answered(features, present, items).attention

    def _answered(self, features: Tensor, present: Tensor, items: Tensor) -> VqaOutput:
        boxes, pointed = _taken(self.boxes, items), _taken(self.pointed, items)
        answered: VqaOutput = self.model(features, present, self.questions[items], boxes=boxes, pointed=pointed)
        return answered


@dataclass(frozen=True, slots=True, eq=False)
class UpDnWordScore:
    """The logit of one word of each caption, at its place, of an UpDn captioner that has read the words before it.

    words: (b, t) ids, BEGIN_ID first. places: (b,) int64 ≥ 1, which of `words` is explained. boxes, pointed: as for
    `CorrectAnswerScore`.
    """

    model: UpDnCaptioner
    words: Tensor
    places: Tensor
    boxes: Tensor | None = None
    pointed: Tensor | None = None

    def __post_init__(self) -> None:
        _check_places(self.words, self.places)

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        logits = self._spoken(features, present, items).logits
        return _at(_at_place(logits, self.places[items]), _target_ids(self.words, self.places)[items])

    def attention(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        """(n, r) where the network looks as it says the word."""
        return _at_place(self._spoken(features, present, items).attention, self.places[items])

    def _spoken(self, features: Tensor, present: Tensor, items: Tensor) -> CaptionerOutput:
        read = self.words[items][:, : int(self.places.max())]
        boxes, pointed = _taken(self.boxes, items), _taken(self.pointed, items)
        spoken: CaptionerOutput = self.model(features, present, read, boxes=boxes, pointed=pointed)
        return spoken


@dataclass(frozen=True, slots=True, eq=False)
class MitrWordScore:
    """The logit of one word of each caption, at its place, of a MITR that writes along a trace.

    region_boxes: (b, r, 5) x1, y1, x2, y2, area. words, places: as for `UpDnWordScore`. trace: (b, m, 5) boxes that the
    caption is written along, and trace_mask: (b, m) which of them are real; None: boxes that tell nothing.
    """

    model: MITR
    region_boxes: Tensor
    words: Tensor
    places: Tensor
    trace: Tensor | None = None
    trace_mask: Tensor | None = None

    def __post_init__(self) -> None:
        _check_places(self.words, self.places)
        if (self.trace is None) != (self.trace_mask is None):
            raise InvalidValue("trace", "needs its mask, and the mask its trace")

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        read = self.words[items][:, : int(self.places.max())]
        real = read != PAD_ID
        trace, trace_mask = _taken(self.trace, items), _taken(self.trace_mask, items)
        if trace is None or trace_mask is None:
            trace, trace_mask = nowhere(read), torch.ones_like(real)
        memory = self.model.encode(features, self.region_boxes[items], present)
        logits = self.model.caption(memory, read, real, trace, trace_mask)
        return _at(_at_place(logits, self.places[items]), rows_of(_target_ids(self.words, self.places)[items]))


@dataclass(frozen=True, slots=True, eq=False)
class PatchWordScore:
    """The logit of one word of each caption, at its place, of a decoder that reads aggregated patches.

    weights: (b, p) of the patches for the region that is told, each row summing to 1. A patch that is not present
    weighs nothing and the others share its weight; so give as present only patches that have some.
    words, places: as for `UpDnWordScore`. between: what the vectors go through before the decoder, (n, d) to (n, d).

    Both parts of a learned aggregation are blind to what HINT's Eq. 2 sums up: the mean passes every patch the same
    gradient times its weight, and the layer norm before the attention passes gradients that sum to 0 over the feature.
    So `gradient_importance` only returns the weights here; `gradient_times_input` and `grad_cam` tell patches apart.
    """

    aggregation: LearnedAggregation
    decoder: PrefixDecoder
    weights: Tensor
    words: Tensor
    places: Tensor
    between: Callable[[Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        _check_places(self.words, self.places)

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        weights = self.weights[items] * present
        total = weights.sum(dim=1, keepdim=True)
        if bool((total <= 0).any()):
            raise InvalidValue("patches", "none of those present has a weight", "give as present those with weight > 0")
        shared = (weights / total)[:, None]
        # One photo a row: the aggregation shares keys and values between the regions of one photo only.
        vectors = torch.cat([self.aggregation(*row) for row in zip(features, shared, strict=True)])
        vectors = vectors if self.between is None else self.between(vectors)
        read = self.words[items][:, : int(self.places.max())]
        logits = self.decoder(vectors, read)
        return _at(_at_place(logits, self.places[items]), _target_ids(self.words, self.places)[items] - END_ID)


def _check_places(words: Tensor, places: Tensor) -> None:
    if words.ndim != 2 or places.shape != words.shape[:1]:
        raise InvalidValue("words", f"have shape {tuple(words.shape)} and their places {tuple(places.shape)}")
    if len(places) and (int(places.min()) < 1 or int(places.max()) >= words.shape[1]):
        raise InvalidValue("places", f"are not all from 1 to {words.shape[1] - 1}", "place 0 is the begin")
    if bool((_target_ids(words, places) < END_ID).any()):
        raise InvalidValue("places", "point at padding or a begin, which is never said")


def _target_ids(words: Tensor, places: Tensor) -> Tensor:
    """(b,) the id of the word that each place is about."""
    return words.gather(1, places[:, None])[:, 0]


def _at_place(outputs: Tensor, places: Tensor) -> Tensor:
    """(n, …) of outputs (n, t, …) what was put out just before each place, that is, for the word there."""
    return outputs[torch.arange(len(outputs), device=outputs.device), places - 1]


def _at(values: Tensor, columns: Tensor) -> Tensor:
    """(n,) of values (n, m), one column of each row."""
    return values.gather(1, columns[:, None])[:, 0]


def _taken(values: Tensor | None, items: Tensor) -> Tensor | None:
    return None if values is None else values[items]
