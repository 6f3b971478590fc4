"""Does a model attend most to the objects that are typical of a scene? (Sec. 5 of the paper, Table 2.)

For each scene type, the ranking of the most attended objects against that of the most frequent ones, by IoU@k, average
overlap and rank-biased overlap. What the paper calls "RBO with p = 1" is average overlap: at p = 1 the formula of RBO
gives 0. IoU@k of two k-item sets can only be m / (2k − m) for m = 0 … k: at 7 that is 0, 0.08, 0.17, 0.27, 0.4, 0.56,
0.75 or 1, so that the paper's 0.18 and 0.53 need ties or lists of other lengths.

A weakness of the measure: attention that is summed over images favours frequent objects by construction, because what
occurs twice is attended to twice. A mean can be ranked instead of the sum; but where images differ in the number of
their objects even a mean favours what has an image nearly for itself. So every overlap comes with what chance gives:
attention shared out evenly within each image, and attention shuffled within each image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Floats, Ints, Progress
from saywhere.explain.attention_blocks import Heads, joined_heads, parts_of
from saywhere.explain.region_tags import region_tags
from saywhere.explain.rounds import ROUND, ImageOf, attend_rounds
from saywhere.metrics.ranking import Ranking, average_overlap, iou_at, rank_biased_overlap, ranking_from_scores
from saywhere.models.attended import Attended, Attending, TokenKind
from saywhere.models.tagged_regions import TaggedRegions

Places = Literal["tags", "regions", "both"]
By = Literal["sum", "mean", "each"]
Count = Literal["images", "instances"]
_PLACES: Final[tuple[Places, ...]] = get_args(Places)
_BY: Final[tuple[By, ...]] = get_args(By)
_COUNT: Final[tuple[Count, ...]] = get_args(Count)

DEPTHS: Final = (3, 5, 7)
PERSISTENCE: Final = 0.9
"""p of RBO: the first ten ranks then have 86 % of the weight."""


@dataclass(frozen=True, slots=True, eq=False)
class ObjectAttention:
    """What the places of one image received, and which objects they show.

    received: (m,) for each place, the mean over the askers of what each gives it, so that images with many askers do
        not weigh more. names: for each place the names of the objects it shows: a tag's own, those of a region's tags;
        none for a region without tags. kinds: (m,) of `TokenKind`: tags or regions. owners: (m,) which tag or region; a
        tag of several pieces has several places, and receives at all of them. objects: the names of the image's tags,
        one for each.
    """

    received: Floats
    names: tuple[tuple[str, ...], ...]
    kinds: Ints
    owners: Ints
    objects: tuple[str, ...]


def object_attention(
    attended: Attended,
    images: Sequence[TaggedRegions],
    *,
    places: Places = "tags",
    askers: Sequence[TokenKind] = (TokenKind.REGION, TokenKind.TAG),
    layer: int = 0,
    heads: Heads = "max",
) -> list[ObjectAttention]:
    """What the objects of each image receive.

    places: where an object is attended to. "tags": at its tag, which is the plainest reading of the paper. "regions":
    at the regions that show it (see `region_tags`; a region that shows several objects counts for each of them).
    "both": at either. askers: whose attention counts; vision and tags by default, or the caption's words.
    """
    if places not in _PLACES:
        raise UnknownName("places of objects", str(places), _PLACES)
    if len(images) != len(attended.parts):
        raise InvalidValue("images", f"there are {len(images)}, but attention is of {len(attended.parts)}")
    values, parts, index = joined_heads(attended, layer, heads), parts_of(attended), attended.index.cpu().numpy()
    asks = np.isin(parts, [int(asker) for asker in askers])
    counted = {"tags": (TokenKind.TAG,), "regions": (TokenKind.REGION,), "both": (TokenKind.TAG, TokenKind.REGION)}[
        places
    ]
    found = []
    for number, image in enumerate(images):
        rows = values[number][asks[number]]
        received = rows.mean(axis=0) if len(rows) else np.zeros(parts.shape[1])
        # The image as a whole (index −1) shows no object of its own.
        kept = np.flatnonzero(np.isin(parts[number], counted) & (index[number] >= 0))
        shown = region_tags(image) if TokenKind.REGION in counted else None
        names = tuple(
            (image.tags[own],)
            if shown is None or kind == TokenKind.TAG
            else tuple(sorted({image.tags[tag] for tag in np.flatnonzero(shown[own])}))
            for kind, own in zip(parts[number][kept], index[number][kept], strict=True)
        )
        owners = index[number][kept].astype(np.int64)
        found.append(ObjectAttention(received[kept], names, parts[number][kept], owners, _objects(image)))
    return found


def measure_objects(
    model: Attending,
    ids: Sequence[str],
    image_of: ImageOf,
    *,
    places: Places = "tags",
    askers: Sequence[TokenKind] = (TokenKind.REGION, TokenKind.TAG),
    layer: int = 0,
    heads: Heads = "max",
    batch: int = ROUND,
    progress: Progress | None = None,
) -> list[ObjectAttention]:
    """`object_attention` of any number of images in their order, `batch` of them at a time."""
    return [
        one
        for some in attend_rounds(model, ids, image_of, batch=batch, progress=progress)
        for one in object_attention(some.attended, some.images, places=places, askers=askers, layer=layer, heads=heads)
    ]


def attended_objects(looked: Iterable[ObjectAttention], by: By = "sum", min_images: int = 1) -> dict[str, float]:
    """How much each object is attended to in these images, by name.

    by: "sum" over images, as the paper has it; "mean" over the images in which it is seen; "each", the mean over its
    tags or regions (three cups in an image are three). min_images: objects seen in fewer are left out: a mean of one
    image is mostly chance. Names of several pieces receive more, as they have more places; so they do under chance.
    """
    if by not in _BY:
        raise UnknownName("way to sum up attention", str(by), _BY)
    total: dict[str, float] = {}
    images: Counter[str] = Counter()
    each: Counter[str] = Counter()
    for one in looked:
        seen = set()
        for share, names, kind, owner in zip(one.received, one.names, one.kinds, one.owners, strict=True):
            for name in names:
                total[name] = total.get(name, 0.0) + float(share)
                seen.add((name, int(kind), int(owner)))
        each.update(name for name, _, _ in seen)
        images.update({name for name, _, _ in seen})
    parts = {"sum": dict.fromkeys(total, 1), "mean": images, "each": each}[by]
    return {name: total[name] / parts[name] for name in total if images[name] >= min_images}


def frequent_objects(objects: Iterable[Sequence[str]], count: Count = "images") -> dict[str, int]:
    """How often each object occurs: in how many images, or how many of it. objects: of each image, its tags' names."""
    if count not in _COUNT:
        raise UnknownName("way to count objects", str(count), _COUNT)
    counts: Counter[str] = Counter()
    for names in objects:
        counts.update(set(names) if count == "images" else names)
    return dict(counts)


@dataclass(frozen=True, slots=True)
class Overlap:
    """How alike two rankings are at their tops, each in [0, 1]; NaN if one of them is empty.

    iou: IoU@k. average_overlap: what the paper calls RBO. rbo: rank-biased overlap with p < 1, extrapolated.
    """

    iou: float
    average_overlap: float
    rbo: float


NO_OVERLAP: Final = Overlap(float("nan"), float("nan"), float("nan"))


def overlap_at(a: Ranking, b: Ranking, k: int, p: float = PERSISTENCE) -> Overlap:
    """The overlaps of the tops k. Ties are sets (see `saywhere.metrics.ranking`), and may be cut by no k.

    A ranking shorter than k gives all it has to IoU; for average overlap its missing places agree with nothing.
    """
    if not a or not b:
        return NO_OVERLAP
    return Overlap(
        iou_at(a, b, k), average_overlap(a, b, k), rank_biased_overlap(_top(a, k), _top(b, k), p).extrapolated
    )


@dataclass(frozen=True, slots=True)
class AtDepth:
    """Overlaps of one scene at one k, and what chance gives.

    found: of the model's attention. uniform: of attention shared out evenly within each image. shuffled: the mean over
    attention shuffled within each image. as_high: the share of shuffles, this one counted, whose overlap is at least
    the one found: 0.05 or less is hardly chance.
    """

    found: Overlap
    uniform: Overlap
    shuffled: Overlap
    as_high: Overlap


@dataclass(frozen=True, slots=True, eq=False)
class SceneDiagnosticity:
    """One row of Table 2. attended, frequent: rankings, ties as sets. at: by k."""

    scene: str
    images: int
    attended: tuple[object, ...]
    frequent: tuple[object, ...]
    at: dict[int, AtDepth]


@dataclass(frozen=True, slots=True)
class Diagnosticity:
    """Table 2. scenes: by falling number of images. unlabelled: images without a scene. empty: scenes without objects,
    whose overlaps are NaN."""

    scenes: tuple[SceneDiagnosticity, ...]
    unlabelled: int
    empty: tuple[str, ...]


def diagnosticity(
    looked: Sequence[ObjectAttention],
    scenes: Sequence[str | None],
    generator: np.random.Generator,
    *,
    by: By = "sum",
    count: Count = "images",
    min_images: int = 1,
    depths: Sequence[int] = DEPTHS,
    p: float = PERSISTENCE,
    shuffles: int = 999,
) -> Diagnosticity:
    """Most attended against most frequent objects, scene by scene, beside chance.

    looked, scenes: of each image what it received, and its scene; None if that is not known.
    """
    if len(looked) != len(scenes):
        raise InvalidValue("scenes", f"there are {len(scenes)} for {len(looked)} images")
    if shuffles < 1:
        raise InvalidValue("shuffles", f"{shuffles} is not at least 1")
    of_scene: dict[str, list[ObjectAttention]] = {}
    for one, scene in zip(looked, scenes, strict=True):
        if scene is not None:
            of_scene.setdefault(scene, []).append(one)
    rows = []
    for scene in sorted(of_scene, key=lambda name: (-len(of_scene[name]), name)):
        some = of_scene[scene]
        frequent = _ranked(frequent_objects((one.objects for one in some), count))
        null = _ShuffleNull(some, by, min_images)
        chance = [_ranked(null.draw(generator)) for _ in range(shuffles)]
        found = _ranked(attended_objects(some, by, min_images))
        even = _ranked(attended_objects((uniform(one) for one in some), by, min_images))
        at = {k: _at_depth(frequent, found, even, chance, k, p) for k in depths}
        rows.append(SceneDiagnosticity(scene, len(some), tuple(found), tuple(frequent), at))
    empty = tuple(row.scene for row in rows if not row.frequent or not row.attended)
    return Diagnosticity(tuple(rows), sum(scene is None for scene in scenes), empty)


def uniform(one: ObjectAttention) -> ObjectAttention:
    """The same image with what its tags received shared out evenly among them, and so with its regions."""
    return _with(one, lambda shares: np.full(len(shares), shares.mean()))


def shuffled(one: ObjectAttention, generator: np.random.Generator) -> ObjectAttention:
    """The same image with what its tags received shuffled among them, and so with its regions."""
    return _with(one, generator.permutation)


class _ShuffleNull:
    """What `attended_objects` gives of images that are `shuffled`, hundreds of times over: names, and in how many
    images each is seen, stay as they are, so that only shares are drawn and added."""

    def __init__(self, looked: Sequence[ObjectAttention], by: By, min_images: int) -> None:
        usual = attended_objects(looked, by, min_images)
        total = attended_objects(looked, "sum")
        self._names = [*total]
        number = {name: i for i, name in enumerate(self._names)}
        self._received = np.concatenate([one.received for one in looked]) if looked else np.zeros(0)
        groups, places, names, first = [], [], [], 0
        for image, one in enumerate(looked):
            groups.append(image * len(TokenKind) + one.kinds)
            for place, shown in enumerate(one.names):
                places += [first + place] * len(shown)
                names += [number[name] for name in shown]
            first += len(one.names)
        self._groups = np.concatenate(groups).astype(np.int64) if groups else np.zeros(0, np.int64)
        self._by_group = np.argsort(self._groups, kind="stable")
        self._places, self._shown = np.array(places, np.int64), np.array(names, np.int64)
        # The sum over what is asked for is in how many parts it is divided; 0 leaves the name out.
        self._share = np.array([usual[name] / total[name] if usual.get(name) else 0.0 for name in self._names])
        self._kept = [name in usual for name in self._names]

    def draw(self, generator: np.random.Generator) -> dict[str, float]:
        """Attention by name, with shares shuffled among the tags of each image, and among its regions."""
        shares = np.empty_like(self._received)
        shares[self._by_group] = self._received[np.lexsort((generator.random(len(shares)), self._groups))]
        totals = np.bincount(self._shown, weights=shares[self._places], minlength=len(self._names)) * self._share
        return {name: float(value) for name, value, kept in zip(self._names, totals, self._kept, strict=True) if kept}


def _with(one: ObjectAttention, change: Callable[[Floats], Floats]) -> ObjectAttention:
    received = one.received.copy()
    for kind in np.unique(one.kinds):
        received[one.kinds == kind] = change(received[one.kinds == kind])
    return ObjectAttention(received, one.names, one.kinds, one.owners, one.objects)


def _at_depth(frequent: Ranking, found: Ranking, even: Ranking, chance: Sequence[Ranking], k: int, p: float) -> AtDepth:
    real = overlap_at(found, frequent, k, p)
    drawn = np.array([_numbers(overlap_at(one, frequent, k, p)) for one in chance])
    # Rounding must not make a shuffle that gives the same ranking look lower.
    reached = (drawn >= np.array(_numbers(real)) - 1e-12).sum(axis=0)
    as_high = Overlap(*((1 + reached) / (1 + len(drawn))).tolist()) if found and frequent else NO_OVERLAP
    return AtDepth(real, overlap_at(even, frequent, k, p), Overlap(*drawn.mean(axis=0).tolist()), as_high)


def _ranked(scores: Mapping[str, float]) -> list[object]:
    """By falling score. Sums of the same numbers in another order differ in their last digits: they are ties."""
    return ranking_from_scores({name: float(f"{score:.12g}") for name, score in scores.items()})


def _numbers(overlap: Overlap) -> tuple[float, float, float]:
    return overlap.iou, overlap.average_overlap, overlap.rbo


def _objects(image: TaggedRegions) -> tuple[str, ...]:
    return tuple(tag for tag, here in zip(image.tags, image.tag_present, strict=True) if here)


def _top(ranking: Ranking, k: int) -> list[object]:
    """The entries that begin within the first k places."""
    kept: list[object] = []
    place = 1
    for entry in ranking:
        if place > k:
            break
        kept.append(entry)
        place += len(entry) if isinstance(entry, set | frozenset) else 1
    return kept
