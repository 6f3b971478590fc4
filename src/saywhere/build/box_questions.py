"""Questions about real photos, generated from the boxes of their things, with the boxes that one must look at.

Every question is true of the boxes and of a kind that a box can answer; `box_drafts` says when. Photos give at most so
many questions of each type, drawn by chance, so that a crowded photo does not drown the others. The questions of POPE
become the same value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from saywhere.build.box_colours import colours
from saywhere.build.box_drafts import Draft, larger, numbers, on_what, presence, sides, what_is_beside
from saywhere.build.photo_boxes import PhotoBoxes, Usual
from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Floats, owned
from saywhere.formats.pope import PopeQuestion
from saywhere.formats.record import InvalidRecord
from saywhere.language.coco_aliases import classes_named

TYPES: dict[str, str] = {
    "is there a": "yes/no",
    "how many": "number",
    "which is larger": "other",
    "is the": "yes/no",
    "what is to the": "other",
    "what is on the": "other",
    "what color is the": "other",
}
"""Question types with their answer types."""

MOST = {
    "is there a": 4,
    "how many": 3,
    "which is larger": 2,
    "is the": 2,
    "what is to the": 2,
    "what is on the": 1,
    "what color is the": 2,
}
"""Question type → how many one photo gives at most."""

PEOPLE = 10
"""As many answers as VQA v2 has."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxQuestion:
    """One question about one photo.

    image: the photo's name. answer: the true one. answers: as people would have given them, ten that agree.
    boxes_xyxy: (n, 4) float64, fractions of the photo, what one must look at to answer; none where the thing asked for
    is not there, so that such questions have no human attention. classes: of COCO, those the question names first.
    """

    image: str
    text: str
    question_type: str
    answer_type: str
    answer: str
    answers: tuple[str, ...]
    boxes_xyxy: Floats
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        boxes = owned(self.boxes_xyxy, "boxes_xyxy", (None, 4))
        if not (boxes[:, :2] < boxes[:, 2:]).all():
            raise InvalidValue("boxes_xyxy", "holds a box without area")
        if self.question_type not in TYPES:
            raise UnknownName("question type", self.question_type, TYPES)
        if not self.answers:
            raise InvalidValue(f"question {self.text!r}", "has no answers")
        object.__setattr__(self, "boxes_xyxy", boxes)


@dataclass(frozen=True, slots=True)
class AskSettings:
    """most: question type → how many one photo gives at most; types that are not in it are not asked.

    likely: share of the absent things asked for that would be usual beside what is there. smallest: boxes of less than
    this share of the photo are too small to ask about. ratio: of two areas, for one to be clearly larger.
    """

    most: Mapping[str, int] = field(default_factory=lambda: dict(MOST))
    likely: float = 0.5
    smallest: float = 0.004
    ratio: float = 1.5

    def __post_init__(self) -> None:
        for name, most in self.most.items():
            if name not in TYPES:
                raise UnknownName("question type", name, TYPES)
            if most < 0:
                raise InvalidValue(f"most of {name!r}", f"is {most}, not at least 0")
        if not 0 <= self.likely <= 1:
            raise InvalidValue("likely", f"is {self.likely:g}, not a share from 0 to 1")
        if not 0 <= self.smallest < 1:
            raise InvalidValue("smallest", f"is {self.smallest:g}, not a share of the photo")
        if not self.ratio > 1:
            raise InvalidValue("ratio", f"is {self.ratio:g}, not above 1")


def ask(
    photos: Iterable[PhotoBoxes],
    rng: np.random.Generator,
    captions: Mapping[str, Sequence[str]] | None = None,
    settings: AskSettings | None = None,
) -> Iterator[BoxQuestion]:
    """Questions about all photos, photo by photo in their order; the same for the same photos, captions and generator.

    captions: photo → sentences about it. They bring the colours, and nothing that they name is taken for absent.
    """
    wanted = settings or AskSettings()
    listed = list(photos)
    usual = Usual.of(listed)
    for photo in listed:
        said = tuple((captions or {}).get(photo.image, ()))
        for draft in _chosen(_drafts(photo, usual, said, wanted, rng), wanted.most, rng):
            yield _question(photo.image, draft)


def _drafts(
    photo: PhotoBoxes, usual: Usual, said: Sequence[str], wanted: AskSettings, rng: np.random.Generator
) -> list[Draft]:
    clear = photo.clear(wanted.smallest)
    named = frozenset().union(*(classes_named(caption) for caption in said))
    likely, absent = usual.absent(photo, named)
    return [
        *presence(clear, likely, absent, wanted.likely, wanted.most.get("is there a", 0), rng),
        *numbers(clear, likely, rng),
        *larger(photo, clear, wanted.ratio, rng),
        *sides(photo, clear, rng),
        *what_is_beside(photo, clear),
        *on_what(photo, clear),
        *colours(clear, said),
    ]


def _chosen(drafts: Sequence[Draft], most: Mapping[str, int], rng: np.random.Generator) -> Iterator[Draft]:
    """At most so many of each type, by chance; of one type, answers that the photo has not given yet go first."""
    by_type: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        by_type[draft.question_type].append(draft)
    for name in TYPES:
        mixed = [by_type[name][i] for i in rng.permutation(len(by_type[name]))]
        seen: dict[str, int] = defaultdict(int)
        rounds = []
        for draft in mixed:
            rounds.append(seen[draft.answer])
            seen[draft.answer] += 1
        order = sorted(range(len(mixed)), key=rounds.__getitem__)
        yield from (mixed[i] for i in order[: most.get(name, 0)])


def _question(image: str, draft: Draft) -> BoxQuestion:
    return BoxQuestion(
        image,
        draft.text,
        draft.question_type,
        TYPES[draft.question_type],
        draft.answer,
        (draft.answer,) * PEOPLE,
        np.asarray(draft.boxes_xyxy, dtype=np.float64).reshape(-1, 4),
        draft.classes,
    )


_POPE_TEXT = re.compile(r"Is there an? (.+) in the image\?")
_NUMBER = re.compile(r"[0-9]{12}")


def from_pope(
    questions: Iterable[PopeQuestion | InvalidRecord], photos: Mapping[str, PhotoBoxes], path: str = "POPE"
) -> Iterator[BoxQuestion | InvalidRecord]:
    """POPE's questions about these photos (by name: the number in POPE's file name), boxes from the photos.

    Count in = count out. Bad records are also: a photo that is not among these, a thing that is no class of COCO, and
    a label that the boxes contradict.
    """
    for line, question in enumerate(questions, 1):
        if isinstance(question, InvalidRecord):
            yield question
            continue
        made = _of_pope(question, photos)
        yield InvalidRecord(path, line, made) if isinstance(made, str) else made


def _of_pope(question: PopeQuestion, photos: Mapping[str, PhotoBoxes]) -> BoxQuestion | str:
    """The question, or what is wrong with it."""
    number, asked = _NUMBER.search(question.file_name), _POPE_TEXT.fullmatch(question.text)
    photo = photos.get(number.group() if number else question.file_name)
    if photo is None:
        return f"the photo {question.file_name} is not here"
    if asked is None:
        return f"is not of POPE's form: {question.text!r}"
    classes = classes_named(asked.group(1))
    if len(classes) != 1:
        return f"{asked.group(1)!r} is no class of COCO"
    name = next(iter(classes))
    boxes = photo.boxes.get(name, ())
    if (question.label == "yes") != bool(boxes) and name not in photo.crowds:
        return f"says {question.label}, the photo has {len(boxes)} boxes of {name}"
    return _question(photo.image, Draft(question.text, "is there a", question.label, boxes, (name,)))
