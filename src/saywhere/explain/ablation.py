"""Taking away the objects that tell a scene: does the caption change, and how sure is the model? (Sec. 6 of the paper.)

    informative = {scene: counts.most_informative(scene, 3) for scene in counts.scenes}      # explain.informative
    chosen = qualifying(ids, image_of, scene_of, informative, k=2)
    before = write_many(model, chosen.ids, image_of)
    after = write_many(model, chosen.ids, removed(image_of, chosen.removals))
    compared(before, after).changed                     # the paper: 0.41 for object captions, 0.13 for scene captions

An object goes with its tag and with every region that shows it: both become [PAD], which keeps the other places.
The paper has no control; here `control_removals` takes away as many other objects, so that "the caption changed" can be
told from "less was seen".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Bools, Floats, Progress
from saywhere.explain.region_tags import UnusableRecord, Which, region_tags
from saywhere.explain.rounds import ROUND, ImageOf, rounds
from saywhere.models.attended import Speaking
from saywhere.models.search import BEAM, GenerationConfig, Written
from saywhere.models.tagged_regions import TaggedRegions

_MOST_SETS: Final = 256
"""Sets of other objects that are compared for a control: all of them, or as many random ones."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What is taken away of one image. objects: their names. tags, regions: indices, rising."""

    objects: tuple[str, ...]
    tags: tuple[int, ...]
    regions: tuple[int, ...]

    def __call__(self, image: TaggedRegions) -> TaggedRegions:
        """The image without them."""
        return image.without(self.tags, self.regions)


def removal(image: TaggedRegions, objects: Collection[str], *, which: Which = "all") -> Removal:
    """Everything of these objects that is present: tags of their names, and the regions that show one of those tags.

    which: see `region_tags`. With "all", a region that shows an object goes, whatever else it shows; a tag whose box is
    the whole image takes all regions with it.
    """
    return _removal(image, region_tags(image, which=which), tuple(dict.fromkeys(objects)))


def removed(image_of: ImageOf, removals: Mapping[str, Removal]) -> ImageOf:
    """Images by name, without what is to be taken away of them; those that are not named stay whole."""

    def without(name: str) -> TaggedRegions:
        image = image_of(name)
        return removals[name](image) if name in removals else image

    return without


@dataclass(frozen=True, slots=True)
class Removals:
    """Images that take part in an ablation, and those that do not (Table 5). Each image is in one of the two."""

    removals: dict[str, Removal]
    refused: tuple[UnusableRecord, ...]

    @property
    def ids(self) -> list[str]:
        return list(self.removals)


def qualifying(
    ids: Sequence[str],
    image_of: ImageOf,
    scene_of: Mapping[str, str | None],
    informative: Mapping[str, Sequence[str]],
    k: int,
    *,
    which: Which = "all",
) -> Removals:
    """What to take away of each image that has all of its scene's k most informative objects (App. C).

    informative: by scene, the best first. Refused, with the reason: images without a scene, of a scene that is not in
    `informative` or has fewer than k objects there, that lack one of them, or whose tags have no boxes.
    """
    if k < 1:
        raise InvalidValue("k", f"{k} is not at least 1")
    removals: dict[str, Removal] = {}
    refused: list[UnusableRecord] = []
    for name in ids:
        found = _qualified(image_of(name), scene_of.get(name), informative, k, which)
        if isinstance(found, Removal):
            removals[name] = found
        else:
            refused.append(UnusableRecord(name, found))
    return Removals(removals, tuple(refused))


def _qualified(
    image: TaggedRegions, scene: str | None, informative: Mapping[str, Sequence[str]], k: int, which: Which
) -> Removal | str:
    """What to take away, or why not."""
    if scene is None:
        return "has no scene"
    if scene not in informative:
        return f"is of the scene {scene!r}, whose objects are not told"
    objects = tuple(informative[scene][:k])
    if len(objects) < k:
        return f"is of the scene {scene!r}, which has {len(objects)} informative objects"
    here = {tag for tag, present in zip(image.tags, image.tag_present, strict=True) if present}
    lacking = [one for one in objects if one not in here]
    if lacking:
        return f"lacks {', '.join(lacking)}"
    try:
        return removal(image, objects, which=which)
    except InvalidValue as error:
        return f"{error.what} {error.reason}"


def control_removals(
    chosen: Mapping[str, Removal],
    image_of: ImageOf,
    generator: np.random.Generator,
    *,
    which: Which = "all",
) -> Removals:
    """For each removal one of as many other objects of the same image, as near to it in tags and regions as can be.

    What a removal takes away its control leaves whole: a region that shows an object of both stays. Of the sets of
    other objects (all, or 256 random ones) the nearest by |difference in tags| + |difference in regions| is taken, a
    random one of equals. Images with too few other objects are refused.
    """
    removals: dict[str, Removal] = {}
    refused: list[UnusableRecord] = []
    for name, one in chosen.items():
        found = _control(image_of(name), one, generator, which)
        if found is None:
            refused.append(UnusableRecord(name, f"has fewer than {len(one.objects)} other objects"))
        else:
            removals[name] = found
    return Removals(removals, tuple(refused))


def _control(image: TaggedRegions, one: Removal, generator: np.random.Generator, which: Which) -> Removal | None:
    shown = region_tags(image, which=which)
    here = [tag for tag, present in zip(image.tags, image.tag_present, strict=True) if present]
    others = sorted(set(here) - set(one.objects))
    if len(others) < len(one.objects):
        return None
    # What shows an object of the removal is out of reach of its control.
    shown[list(one.regions)] = False
    sets = _some_sets(others, len(one.objects), generator)
    found = [_removal(image, shown, objects) for objects in sets]

    def far(other: Removal) -> int:
        return abs(len(other.tags) - len(one.tags)) + abs(len(other.regions) - len(one.regions))

    nearest = min(far(other) for other in found)
    near = [other for other in found if far(other) == nearest]
    return near[int(generator.integers(len(near)))]


def _some_sets(names: Sequence[str], size: int, generator: np.random.Generator) -> list[tuple[str, ...]]:
    if math.comb(len(names), size) <= _MOST_SETS:
        return list(combinations(names, size))
    drawn = [generator.choice(len(names), size, replace=False) for _ in range(_MOST_SETS)]
    return [tuple(names[i] for i in sorted(some)) for some in drawn]


def _removal(image: TaggedRegions, shown: Bools, objects: tuple[str, ...]) -> Removal:
    """shown: (r, t), see `region_tags`."""
    named = np.array([tag in objects for tag in image.tags], np.bool_) & image.tag_present
    regions = shown[:, named].any(axis=1)
    return Removal(objects, tuple(np.flatnonzero(named).tolist()), tuple(np.flatnonzero(regions).tolist()))


def write_many(
    model: Speaking,
    ids: Sequence[str],
    image_of: ImageOf,
    *,
    level: str | None = None,
    how: GenerationConfig = BEAM,
    batch: int = ROUND,
    progress: Progress | None = None,
) -> dict[str, Written]:
    """A caption for each image by name, `batch` of them at a time. level: as the model has them."""
    texts: dict[str, Written] = {}
    for some in rounds(ids, batch):
        written = model.write([image_of(name) for name in some], level, how)
        texts.update(zip(some, written, strict=True))
        if progress is not None:
            progress("captioning", len(texts), len(ids))
    return texts


@dataclass(frozen=True, slots=True)
class CaptionPair:
    """One image's captions. confidence: exp of the mean log-probability, in (0, 1].

    content_changed, label_changed: None where that was not asked, or a caption has no label.
    """

    id: str
    before: str
    after: str
    confidence_before: float
    confidence_after: float
    content_changed: bool | None
    label_changed: bool | None

    @property
    def changed(self) -> bool:
        """Whether the text differs at all."""
        return self.before != self.after

    @property
    def shift(self) -> float:
        """Confidence before minus after: below 0 the model is surer without the objects (Fig. 7)."""
        return self.confidence_before - self.confidence_after


@dataclass(frozen=True, slots=True)
class Comparison:
    """Captions before and after an ablation, in the order given. Shares are NaN of nothing."""

    pairs: tuple[CaptionPair, ...]

    @property
    def changed(self) -> float:
        """The share whose text differs."""
        return _share([pair.changed for pair in self.pairs])

    @property
    def content_changed(self) -> float:
        """The share whose content words differ; most changes the paper found were of function words."""
        return _share([pair.content_changed for pair in self.pairs if pair.content_changed is not None])

    @property
    def label_changed(self) -> float:
        """The share whose scene label differs, of those that have one both times."""
        return _share([pair.label_changed for pair in self.pairs if pair.label_changed is not None])

    @property
    def unchanged(self) -> tuple[CaptionPair, ...]:
        return tuple(pair for pair in self.pairs if not pair.changed)

    @property
    def unchanged_confidences(self) -> Floats:
        """(m,) after the ablation, of captions that stayed (Fig. 6)."""
        return np.array([pair.confidence_after for pair in self.unchanged], np.float64)

    @property
    def unchanged_shifts(self) -> Floats:
        """(m,) of captions that stayed (Fig. 7)."""
        return np.array([pair.shift for pair in self.unchanged], np.float64)


def compared(
    before: Mapping[str, Written],
    after: Mapping[str, Written],
    *,
    content: Callable[[str], Collection[str]] | None = None,
    label: Callable[[str], str | None] | None = None,
) -> Comparison:
    """Captions of the same images without and with an ablation; those of `after` must all be in `before`.

    content: the content words of a text, whose order and repetition do not count. label: the scene that a text names.
    """
    missing = [name for name in after if name not in before]
    if missing:
        raise InvalidValue("captions before", f"there is none of {missing[0]!r}, nor of {len(missing) - 1} others")
    return Comparison(tuple(_pair(name, before[name], text, content, label) for name, text in after.items()))


def _pair(
    name: str,
    before: Written,
    after: Written,
    content: Callable[[str], Collection[str]] | None,
    label: Callable[[str], str | None] | None,
) -> CaptionPair:
    other_content = None if content is None else set(content(before.text)) != set(content(after.text))
    labels = (None, None) if label is None else (label(before.text), label(after.text))
    other_label = None if None in labels else labels[0] != labels[1]
    sure = math.exp(before.score), math.exp(after.score)
    return CaptionPair(name, before.text, after.text, *sure, other_content, other_label)


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else math.nan
