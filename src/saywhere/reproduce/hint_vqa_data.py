"""People's questions about photos (VQA v2) made ready for HINT: split so that priors change, with what to look at.

What to look at to answer: the boxes of what the question or its answer names. What people look at who were not asked:
SALICON's maps. Training questions have the first only where there is the second, so that all rows are given hints for
the same questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from saywhere.build.changing_priors import CHANGED, Asked, PriorSettings, split_by_priors
from saywhere.build.coco import KIND
from saywhere.build.coco_labels import VQA
from saywhere.core import AttentionMap, Frame
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats, Floats32, Progress
from saywhere.explain.human import TIE, overlap_importance, patch_boxes, whole_image
from saywhere.language.visual_words import visual_words_in
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.patchioner.answering import KINDS
from saywhere.models.region_features import REGIONS, RegionFeatures
from saywhere.models.updown import PreparedQuestion, save_questions
from saywhere.reproduce.hint_data import BALANCED, CHANGED_TYPES, DEVELOPMENT, SPLITS
from saywhere.store import Row, Store, is_finished
from saywhere.vision.things import covered_means

_SHARES = {"train": 0.6, "validation": 0.04, DEVELOPMENT: 0.08, "test_same": 0.1, CHANGED: 0.18}
_MAKE_AGAIN = "make them again with `saywhere build answers`"
_FITTED = 500
"""Photos of training that principal directions are found in."""


@dataclass(frozen=True, slots=True)
class VqaPhotos:
    """photos: at most so many; None for all. odds: of the most frequent answer against the rarest.

    answer_types: only questions whose answers are of these types. To yes/no questions of people, networks of this size
    give no better answers than a table of the questions' texts, so nothing could be learnt about where they look.

    shares: of the photos, by side. directions: principal ones that vectors and states are given by. least_count: how
    often an answer must be the commonest one in training to be given at all.
    """

    photos: int | None = None
    odds: float = 2.0
    answer_types: tuple[str, ...] = ("number", "other")
    shares: Mapping[str, float] = field(default_factory=lambda: dict(_SHARES))
    directions: int = 64
    least_count: int = 6
    seed: int = 3


class PeoplesQuestion(msgspec.Struct, frozen=True):
    """A question as a COCO store has it. answers: of ten people; answer: what most of them gave. source: of VQA v2, or
    of another set whose questions lie beside."""

    id: int | str
    question: str
    question_type: str
    answer_type: str
    answer: str
    answers: tuple[str, ...]
    source: str = VQA


def prepare_vqa_photos(folder: Path, coco: Path, places: Path, scale: VqaPhotos, progress: Progress) -> None:
    """Write folder/questions, unless it is there. coco: what `saywhere build coco` wrote. places: data/places of what
    `saywhere build answers` wrote."""
    if is_finished(folder / "questions"):
        return
    seen, store = Store(places, REGIONS), Store(coco, KIND)
    asked: dict[str, tuple[Row, list[PeoplesQuestion]]] = {}
    for row in store.having("questions"):
        if row.key in seen and (told := peoples_questions(row)):
            asked[row.key] = row, told
    if not asked:
        raise InvalidFile(places, f"has none of the photos that {coco} has questions about")
    rng = np.random.default_rng(scale.seed)
    sides = _sides(sorted(asked), scale, rng)
    learnt = [image for image, side in sides.items() if side == "train"]
    reader = PrincipalPlaces.of([seen.by_key(image) for image in learnt[:_FITTED]], scale.directions)
    every = ((image, one) for image in sides for one in asked[image][1])
    questions = [(image, one) for image, one in every if one.answer_type in scale.answer_types]
    named, changed = _splits(questions, sides, scale, rng)
    prepared = []
    images: dict[str, RegionFeatures] = {}
    for number, (split, place) in enumerate(named):
        image, one = questions[place]
        if image not in images:
            images[image] = reader(seen.by_key(image))
        prepared.append(_prepared(one, asked[image][0], split, images[image].boxes_xyxy.astype(np.float64)))
        progress("asking people's questions", number + 1, len(named))
    about: dict[str, Any] = {"photos": asdict(scale), CHANGED_TYPES: changed, "eye": seen.about}
    save_questions(folder / "questions", images, prepared, about, least_count=scale.least_count, least_word_count=2)


def peoples_questions(row: Row) -> list[PeoplesQuestion]:
    """The questions of VQA v2 about one photo of a COCO store."""
    told = msgspec.convert(row["questions"] or [], list[PeoplesQuestion])
    return [one for one in told if one.source == VQA]


@dataclass(frozen=True, slots=True, eq=False)
class PrincipalPlaces:
    """Places of a photo as UpDn reads them: the whole, things, and windows, two by two of the eye's joined.

    Features: the vector in the space of texts, 0 for windows; the thing's score; what the place is; the eye's hidden
    state there, of a thing the mean of the windows that it covers. Vectors and states are given by their first
    principal directions. said, seen: (mean (d,), directions (d, k)) of each.
    """

    said: tuple[Floats32, Floats32]
    seen: tuple[Floats32, Floats32]

    @classmethod
    def of(cls, rows: Iterable[Row], size: int) -> PrincipalPlaces:
        """Directions in which the places of some photos differ most; size: how many."""
        parts = [_parts(row) for row in rows]
        return cls(*(_directions(np.concatenate([part[i] for part in parts]), size) for i in (0, 1)))

    def __call__(self, row: Row) -> RegionFeatures:
        vectors, states, flags, boxes = _parts(row)
        (mean, said), (middle, seen) = self.said, self.seen
        told = (vectors - mean) @ said
        there = ((states - middle) @ seen).astype(np.float32, copy=False)
        grid = there[1:].reshape(*[math.isqrt(len(there) - 1)] * 2, -1)
        windows, edges = _joined(grid)
        features = np.zeros((len(told) + len(windows), told.shape[1] + flags.shape[1] + there.shape[1]), np.float32)
        features[: len(told), : told.shape[1]] = told
        features[: len(told), told.shape[1] : -there.shape[1]] = flags
        features[len(told) :, -there.shape[1] - 1] = 1
        features[:, -there.shape[1] :] = np.concatenate([there[:1], covered_means(grid, boxes[1:]), windows])
        return RegionFeatures(features, np.concatenate([boxes, edges]))


def _parts(row: Row) -> tuple[Floats32, Floats32, Floats32, Floats32]:
    """Vectors of the whole and of things, hidden states of the whole and of windows, flags and boxes of the first.

    Of `state_places`; the states of things follow from those of windows, and a second look is left out.
    """
    values, boxes = row["regions"].astype(np.float32), np.asarray(row["boxes"])
    size = values.shape[1] - 1 - _kinds(row.key, values)
    whole, thing, window = values[:, size + 1 : size + 1 + len(KINDS)].T == 1
    things, windows = int(thing.sum()), np.flatnonzero(window)
    by_state, again = windows[: len(windows) - things], windows[len(windows) - things :]
    cut = math.isqrt(max(len(by_state) - 1, 0)) ** 2
    if not cut or cut != len(by_state) - 1 or not np.array_equal(boxes[again], boxes[thing]):
        reason = f"are {things} things and {len(windows)} states, not those of the whole, of a square and of the things"
        raise InvalidValue(f"places of photo {row.key}", reason, _MAKE_AGAIN)
    told = whole | thing
    return values[told, :size], values[by_state, :size], values[told, size : size + 1 + len(KINDS)], boxes[told]


def _kinds(photo: str, values: Floats32) -> int:
    """How many kinds of places the last columns tell apart: one more if there was a second look. The first place is the
    whole, the first kind."""
    for kinds in (len(KINDS), len(KINDS) + 1):
        if values[0, -kinds:].tolist() == [1] + [0] * (kinds - 1):
            return kinds
    raise InvalidValue(f"places of photo {photo}", "do not begin with the whole photo and its kind", _MAKE_AGAIN)


def _directions(values: Floats32, size: int) -> tuple[Floats32, Floats32]:
    """The mean of (n, d) values and (d, size) directions in which they differ most, scaled to a spread of 1."""
    mean = values.mean(axis=0)
    spreads, directions = np.linalg.eigh(np.cov(values - mean, rowvar=False))
    kept = directions[:, ::-1][:, :size] / math.sqrt(spreads[::-1][:size].mean())
    return mean, kept.astype(np.float32)


def _joined(grid: Floats32) -> tuple[Floats32, Floats32]:
    """(n, s) windows of a (side, side, s) grid, two by two of them joined if they can be; (n, 4) where these are."""
    side, size = grid.shape[1:]
    by = 2 if side % 2 == 0 else 1
    means = grid.reshape(side // by, by, side // by, by, size).mean(axis=(1, 3))
    where = patch_boxes(Frame.of_grid(side // by, side // by)).astype(np.float32)
    return means.reshape(-1, size), where


def _sides(photos: Sequence[str], scale: VqaPhotos, rng: np.random.Generator) -> dict[str, str]:
    """Photo → its side, by chance; of those that are wanted."""
    chosen = [photos[place] for place in rng.permutation(len(photos))[: scale.photos].tolist()]
    ends = np.round(np.cumsum(list(scale.shares.values())) * len(chosen)).astype(int)
    names = list(scale.shares)
    place_of = np.searchsorted(ends, np.arange(len(chosen)), side="right")
    return dict(sorted((photo, names[place]) for photo, place in zip(chosen, place_of.tolist(), strict=True)))


def _splits(
    questions: Sequence[tuple[str, PeoplesQuestion]],
    sides: Mapping[str, str],
    scale: VqaPhotos,
    rng: np.random.Generator,
) -> tuple[list[tuple[str, int]], list[str]]:
    """(split, place among the questions) of all that are kept, and the types whose priors change."""
    asked = [Asked(image, one.question_type, one.answer) for image, one in questions]
    # Development has the test's priors, too, so that weights can be chosen on it.
    side_of = {image: CHANGED if side == DEVELOPMENT else side for image, side in sides.items()}
    split = split_by_priors(asked, rng, PriorSettings(odds=scale.odds), side_of=side_of)
    named = [
        (DEVELOPMENT if sides[asked[place].image] == DEVELOPMENT else SPLITS[side], place)
        for side, chosen in split.sides.items()
        for place in chosen
    ]
    changed = sorted(report.question_type for report in split.types if report.changed)
    learnt = [place for place, one in enumerate(asked) if sides[one.image] == "train"]
    even = split_by_priors(
        [asked[place] for place in learnt],
        rng,
        PriorSettings(odds=1.0),
        side_of=dict.fromkeys((asked[place].image for place in learnt), "train"),
    ).sides["train"]
    # The ceiling learns from as many questions as the others, and knows the same answers.
    train = split.sides["train"]
    answers = AnswerVocabulary.of((questions[place][1].answers for place in train), scale.least_count)
    known = [learnt[place] for place in even if answers.targets(questions[learnt[place]][1].answers).any()]
    most = sum(bool(answers.targets(questions[place][1].answers).any()) for place in train)
    balanced = [(BALANCED, known[place]) for place in sorted(rng.permutation(len(known))[:most].tolist())]
    return named + balanced, changed


def _prepared(one: PeoplesQuestion, photo: Row, split: str, places_xyxy: Floats) -> PreparedQuestion:
    named, free_view = _named_boxes(one, photo), None
    importance = overlap_importance(places_xyxy, named) if len(named) else None
    if photo["saliency"] is not None:
        free_view = np.round(AttentionMap(photo["saliency"]).importance(places_xyxy) / TIE) * TIE
        free_view[whole_image(places_xyxy)] = np.nan
    learns = split in ("train", BALANCED)
    return PreparedQuestion(
        *(f"{split}-{one.id}", photo.key, split, one.question, one.question_type, one.answer_type, one.answers),
        importance=None if learns and free_view is None else importance,
        free_view=free_view,
    )


def _named_boxes(one: PeoplesQuestion, photo: Row) -> Floats:
    """(n, 4) boxes of the things that the question or what most people answered names."""
    names = {name for text in (one.question, one.answer) for _, _, name in visual_words_in(text)}
    kinds = [COCO_CLASSES[kind] in names for kind in photo["classes"].tolist()]
    boxes: Floats = np.asarray(photo["boxes_xyxy"], np.float64).reshape(-1, 4)[np.array(kinds, dtype=bool)]
    return boxes
