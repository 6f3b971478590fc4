"""What a seer sees with: a photo becomes a view in the space of texts, with a vector for any region of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from PIL import Image

from saywhere.core import Box, BoxSet, InvalidValue, Region, WholeImage
from saywhere.core.types import Floats32
from saywhere.models.common.overlaps import overlaps
from saywhere.models.patchioner.aggregation import PAPER, Aggregation, region_weights
from saywhere.models.patchioner.tags import ClassNames, Tags, claims
from saywhere.vision.things import NamedThings, Namer
from saywhere.vision.view import Encoder, Found, View

_TRUST_AROUND = 0.1
"""How far the detector is believed where the eye sees surroundings."""
_FIT = 2.0
"""How much a place that the detector weighed must fit a box to name it: IoU to this power."""

_MOST_PLACES = 16
"""Places of a kind among which the likeliest is chosen, the surest by the detector."""
_LIKELY_NONE, _HARDLY_SHOWN = 0.5, 0.15
"""Chances from which a box likely shows none of the detector's kinds, and up to which it then hardly shows one."""
_PRESENT = (1.54, 0.53, 1.07)
"""Logistic regression of presence on the log-odds of encoder and detector: 250 validation photos, 80 kinds each."""
_LEAST_ODDS = 0.01

if TYPE_CHECKING:
    from saywhere.language.embed import TextEncoder
    from saywhere.models.patchioner.alignment import Alignment
    from saywhere.models.patchioner.matching import Matcher
    from saywhere.models.patchioner.naming import BoxNaming
    from saywhere.vision.auxiliary import Auxiliary


@dataclass(frozen=True, slots=True)
class Blend:
    """How loud the names are beside what the alignment sees, whose vector has length 1.

    whole: the detector's names when the region is the whole photo or a set of boxes. region: when it is one patch; in
    between, by size.
    classes: the names of the encoder's own classes. doubt: see `shared`; box_doubt: of boxes, whose edges are known.
    """

    whole: float = 0.0
    region: float = 0.0
    classes: float = 0.0
    doubt: float = 0.01
    box_doubt: float = 0.0004

    def __post_init__(self) -> None:
        for name, value in (("doubt", self.doubt), ("box_doubt", self.box_doubt)):
            if not value > 0:
                raise InvalidValue(f"blend {name}", f"is {value}, not above 0")


def is_scene(region: Region) -> bool:
    """Whether a region is meant to show several things: the whole photo, or several boxes together."""
    return isinstance(region, WholeImage) or (isinstance(region, BoxSet) and len(region.boxes) > 1)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """What the detector's names add to the vectors of regions. They follow from boxes, not from patches.

    learnt: (m, d) added to the aligned features. named: (m, d) added after these were brought to length 1.
    """

    learnt: Floats32
    named: Floats32


class AlignedView:
    """A view in the space of texts. tags: for views with things found. classes: for encoders with a classifier.

    alignment: of the encoder's patches with texts; None for an encoder whose patches are such vectors already.
    namer: of such an encoder; where it sees surroundings, what the detector says counts little.
    weighting: how the patches of a region are weighed. matcher: opens what tells the photo from others better than the
    encoder alone. naming: opens what says which kind a box shows, in place of the detector's claims.
    """

    def __init__(
        self,
        view: View,
        alignment: Alignment | None = None,
        tags: Tags | None = None,
        classes: ClassNames | None = None,
        blend: Blend | None = None,
        namer: Namer | None = None,
        weighting: Aggregation = PAPER,
        matcher: Callable[[], Matcher] | None = None,
        naming: Callable[[], BoxNaming] | None = None,
    ) -> None:
        self.weighting, self._matcher, self._naming = weighting, matcher, naming
        self.view, self.alignment, self.tags, self.classes = view, alignment, tags, classes
        self.blend, self.namer = blend or Blend(), namer
        # Of boxes that were asked about: each is asked about several times, and together is faster than one by one.
        self._chances: dict[tuple[float, ...], Floats32] = {}
        # Of things that may have been found: by the detector, or by an encoder that tells what is there.
        self.kinds = tuple(view.present) if tags is None else tags.names
        aligned = view.patches if alignment is None else alignment.patches(view.patches)
        self._aligned = aligned.reshape(-1, aligned.shape[-1])

    def vectors(self, regions: Sequence[Region]) -> Floats32:
        """(m, d) a vector of length 1 for each region. Of the whole photo, an encoder whose vectors are texts' already
        has one by itself."""
        if self.alignment is not None or self.weighting.image != PAPER.image:
            return self.weighed(self.weights(regions), regions)
        vectors: Floats32 = np.repeat(_unit(self.view.whole[None]), len(regions), axis=0)
        parts = [row for row, region in enumerate(regions) if not isinstance(region, WholeImage)]
        if parts:
            asked = [regions[row] for row in parts]
            vectors[parts] = self.weighed(self.weights(asked), asked)
        return vectors

    def presence(self, kind: str) -> float:
        """How likely a kind of thing is in the photo: by what the encoder says and the best score of what was found
        together, see `_PRESENT`, or by the one that can tell; 1 for a kind of which neither can."""
        seen = self.view.present.get(kind)
        if kind not in self.kinds:
            return 1.0 if seen is None else seen
        found = max((one.score for one in self.view.found if one.name == kind), default=0.0)
        if self.tags is None or seen is None:
            return found if seen is None else seen
        bias, by_eye, by_detector = _PRESENT
        return 1 / (1 + math.exp(-(bias + by_eye * _log_odds(seen) + by_detector * _log_odds(found))))

    def things(self, most: int, least: float) -> NamedThings | None:
        """What the detector found, at most so many things, each at least as sure as that. None without a detector, or
        with an encoder that cannot say what its names mean."""
        if self.tags is None or self.namer is None:
            return None
        return self.namer.things(self.view.found).surest(most, least)

    def contrast(self) -> Floats32:
        """(d,) of length 1: what tells the photo from others, to find it by a text."""
        return self._contrast

    @cached_property
    def _contrast(self) -> Floats32:
        if self.alignment is not None:
            own: Floats32 = self.vectors([WholeImage()])[0]
            return own
        if self._matcher is None or self.view.states is None:
            told: Floats32 = _unit(self.view.contrast[None])[0]
            return told
        matcher = self._matcher()
        things = self.things(matcher.most, matcher.least)
        return matcher.vector(self.view.states, self.view.contrast, things, self.view.auxiliary)

    def state_weights(self, weights: Floats32) -> Floats32:
        """(m, n) how much each of the view's n hidden states of patches counts, from (m, rows, cols) weights."""
        if self.view.states is None:
            raise InvalidValue("view", "has no hidden states", "look at the photo again, with an eye that gives them")
        side = math.isqrt(len(self.view.states) - 1)
        count, rows, cols = weights.shape
        parts = weights.reshape(count, side, rows // side, side, cols // side)
        summed: Floats32 = parts.sum(axis=(2, 4)).reshape(count, -1)
        return summed

    def weights(self, regions: Sequence[Region]) -> Floats32:
        """(m, rows, cols) how much each patch counts for each region; they sum to 1."""
        attention = self.view.attention
        return region_weights(regions, self.view.frame, self.weighting, attention).astype(np.float32)

    def by(self, weighting: Aggregation) -> AlignedView:
        """The same view with patches weighed in another way."""
        other = copy(self)
        other.weighting = weighting
        return other

    def weighed(self, weights: Floats32, regions: Sequence[Region] | None = None) -> Floats32:
        """(m, d) vectors of length 1 for (m, rows, cols) weights. regions: what they are the weights of, if that is
        known; names then follow the regions' own shapes instead of the grid's."""
        flat = weights.reshape(len(weights), -1)
        seen: Floats32 = flat @ self._aligned
        names = self.names(weights, regions)
        if names is None:
            return self._with_classes(_unit(seen), flat)
        return self._with_classes(_unit(seen + names.learnt) + names.named, flat)

    def patch_vectors(self, regions: Sequence[Region]) -> Floats32:
        """(m, d) vectors of length 1 of what the patches of regions show, without the detector's names."""
        return _unit(self.weights(regions).reshape(len(regions), -1) @ self._aligned)

    def names(self, weights: Floats32, regions: Sequence[Region] | None = None) -> Names | None:
        """What the detector's names add for (m, rows, cols) weights; None without tags. regions: as in `weighed`."""
        if self.tags is None:
            return None
        lying = overlaps(self.view.found, self.tags.names, weights, self.view.frame, regions)
        flat = weights.reshape(len(weights), -1)
        # How much of the grid a region spreads over: 1 for the whole photo, 1 / cells for one patch.
        spread = 1 / (flat**2).sum(axis=1) / flat.shape[1]
        # A scene of several things has no one name.
        scenes = np.array([is_scene(one) for one in regions or ()] or [False] * len(flat))
        spread[scenes] = 1
        loudness = self.blend.region + (self.blend.whole - self.blend.region) * spread
        claimed, doubt = self._claims(claims(lying, len(self.tags.names)), regions)
        named = loudness[:, None] * self.tags.named(claimed * self._trust(flat)[:, None], doubt)
        return Names(self.tags.learnt(lying), named.astype(np.float32))

    def _claims(self, of_found: Floats32, regions: Sequence[Region] | None) -> tuple[Floats32, Floats32]:
        """(m, names) claims of what was found, and (m, 1) how much doubt they meet. Boxes, whose edges are known, are
        claimed by all that the detector weighed, whether it was found in the end or not; or as a naming says, whose
        chance that they show none of its kinds is the doubt."""
        claimed, doubt = of_found, np.full((len(of_found), 1), self.blend.doubt, np.float32)
        proposals = self.view.proposals
        if proposals is None or self.tags is None or proposals.names != self.tags.names:
            return claimed, doubt
        boxes = {row: np.clip(one.xyxy, 0, 1) for row, one in enumerate(regions or ()) if isinstance(one, Box)}
        if not boxes:
            return claimed, doubt
        if self._naming is not None:
            chances = self.chances(np.array(list(boxes.values()), np.float32))
            likely = chances ** self._naming().config.sharpness
            claimed[list(boxes)], doubt[list(boxes)] = likely[:, :-1], likely[:, -1:]
            return claimed, doubt
        for row, box in boxes.items():
            claimed[row], doubt[row] = proposals.claims(box.tolist(), _FIT) ** 2, self.blend.box_doubt
        return claimed, doubt

    def chances(self, boxes_xyxy: Floats32) -> Floats32:
        """(m, kinds + 1) which of the detector's kinds (m, 4) boxes show, the last: none of them. For a view with a
        naming."""
        if self._naming is None or self.namer is None:
            raise InvalidValue("view", "has no part that names boxes")
        places = [tuple(box) for box in boxes_xyxy.tolist()]
        new = [number for number, place in enumerate(places) if place not in self._chances]
        if new:
            told = self._naming().chances(boxes_xyxy[new], self.view, self.namer)
            self._chances |= {places[number]: row for number, row in zip(new, told, strict=True)}
        return np.array([self._chances[place] for place in places], np.float32)

    def unlikely(self, region: Region, kinds: Set[str]) -> set[str]:
        """Those of some kinds which a box hardly shows, because it likely shows none that the detector knows; none
        without a naming, or of a region that is no box."""
        proposals = self.view.proposals
        if self._naming is None or proposals is None or not kinds or not isinstance(region, Box):
            return set()
        chances = self.chances(np.clip(region.xyxy, 0, 1)[None].astype(np.float32))[0]
        if chances[-1] < _LIKELY_NONE:
            return set()
        shown = dict(zip(proposals.names, chances.tolist(), strict=False))
        return {kind for kind in kinds if shown.get(kind, 1.0) < _HARDLY_SHOWN}

    def likeliest_place(self, kind: str) -> Found | None:
        """Of all places that the detector weighed, the one that likeliest shows a kind, whether it was found in the end
        or not: score × the root of the chance. None without a naming, or if no place may show it."""
        proposals = self.view.proposals
        if self._naming is None or proposals is None or kind not in proposals.names:
            return None
        number = proposals.names.index(kind)
        scores = proposals.scores[:, number]
        surest = np.argsort(-scores, kind="stable")[:_MOST_PLACES]
        surest = surest[scores[surest] > 0]
        if not len(surest):
            return None
        boxes = proposals.boxes_xyxy[surest]
        best = int(np.argmax(scores[surest] * np.sqrt(self.chances(boxes)[:, number])))
        left, top, right, bottom = boxes[best].tolist()
        return Found((left, top, right, bottom), kind, float(scores[surest[best]]))

    def _trust(self, flat: Floats32) -> Floats32:
        """(m,) how far the detector is believed, for (m, n) weights."""
        if self.namer is None:
            return np.ones(len(flat), np.float32)
        around = self.namer.shows_surroundings(_unit(flat @ self._aligned))
        return np.where(around, _TRUST_AROUND, 1).astype(np.float32)

    def cell_vectors(self) -> Floats32:
        """(rows, cols, d) a vector of length 1 for each patch alone."""
        rows, cols = self.view.frame.grid
        one_each = np.eye(rows * cols, dtype=np.float32).reshape(-1, rows, cols)
        return self.weighed(one_each).reshape(rows, cols, -1)

    def _with_classes(self, seen: Floats32, flat: Floats32) -> Floats32:
        if self.classes is not None and self.blend.classes:
            features = flat @ self.view.patches.reshape(flat.shape[1], -1)
            seen = seen + self.blend.classes * self.classes.named(features)
        return _unit(seen)


class Eyes(Protocol):
    """What a seer needs to see: from a photo to a view in the space of texts."""

    @property
    def size(self) -> int:
        """Of the vectors."""
        ...

    def look(self, photo: Image.Image) -> View:
        """A photo that `read_photo` has read, with the things found in it."""
        ...

    def align(self, view: View) -> AlignedView: ...

    def texts(self, vectors: Floats32) -> Floats32:
        """(n, d) vectors of length 1, in the space of regions, from a text encoder's."""
        ...

    def queries(self, texts: Sequence[str], encoder: TextEncoder) -> Floats32:
        """(n, d) vectors of length 1, by which texts find whole photos."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EncoderEyes:
    """An encoder with an alignment learnt for it, and with what names things.

    alignment: None for an encoder whose vectors are those of texts already; see `saywhere.vision.eye`. detector, tags:
    what finds and names things, both or none. classes: what the encoder's own classifier calls things. blend: how loud
    names are. namer, weighting, matcher, naming: see `AlignedView`. auxiliary: opens what looks a second time, for a
    matcher that reads that. parts: what tells the weights of these parts and how they are used from others.
    """

    encoder: Encoder
    alignment: Alignment | None = None
    detector: Any = None
    tags: Tags | None = None
    classes: ClassNames | None = None
    blend: Blend = Blend()
    namer: Namer | None = None
    weighting: Aggregation = PAPER
    matcher: Callable[[], Matcher] | None = None
    auxiliary: Callable[[], Auxiliary] | None = None
    naming: Callable[[], BoxNaming] | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.detector is None) != (self.tags is None):
            raise InvalidValue("eyes", "a detector and tags for what it finds come together")

    @property
    def fingerprint(self) -> dict[str, str | int]:
        """What vectors of photos, regions and texts depend on."""
        return {**self.encoder.fingerprint, **self.parts}

    @property
    def size(self) -> int:
        return self.encoder.size if self.alignment is None else self.alignment.size

    def look(self, photo: Image.Image) -> View:
        if self.detector is None:
            return self.encoder.look(photo)
        # One after the other: each uses all cores, and two at once take longer than in turn.
        view, seen = self.encoder.look(photo), self.detector.find(photo)
        return view.with_found(
            seen.found, seen.proposals, None if self.auxiliary is None else self.auxiliary().look(photo)
        )

    def align(self, view: View) -> AlignedView:
        named = (self.tags, self.classes, self.blend, self.namer)
        return AlignedView(view, self.alignment, *named, self.weighting, self.matcher, self.naming)

    def texts(self, vectors: Floats32) -> Floats32:
        return _unit(vectors) if self.alignment is None else self.alignment.texts(vectors)

    def queries(self, texts: Sequence[str], encoder: TextEncoder) -> Floats32:
        matcher = None if self.matcher is None else self.matcher()
        if matcher is None or not matcher.reads_queries:
            return self.texts(encoder.embed(texts))
        return matcher.queries(texts, encoder)


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, _LEAST_ODDS), 1 - _LEAST_ODDS)
    return math.log(bounded / (1 - bounded))


def _unit(vectors: Floats32) -> Floats32:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Floats32 = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return scaled
