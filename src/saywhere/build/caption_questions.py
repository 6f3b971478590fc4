"""Questions about photos with their answers, out of what people wrote of the photos.

Five captions of a photo answer what other people ask of it: a parse says which colour, how many, who does what where,
and what the captions rule out is asked for as well, to be answered by no. After VQ2A (Changpinyo et al., 2022), by
rules instead of a language model:

    captions → caption_reading (facts of each) → caption_scene (what all say) → rules, which make drafts
        caption_things · caption_acts · caption_views: answers that captions say
        caption_yes_no · caption_yes_no_views: pairs of a yes and a no

Photos give at most so many questions of each type and in all, drawn by chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.build import caption_drafts as drafts
from saywhere.build.caption_acts import ACTS
from saywhere.build.caption_drafts import CaptionDraft, Pair, PhotoAsking, UsualCaptions
from saywhere.build.caption_facts import Facts
from saywhere.build.caption_reading import facts_of
from saywhere.build.caption_scene import CaptionScene
from saywhere.build.caption_things import THINGS
from saywhere.build.caption_views import VIEWS
from saywhere.build.caption_yes_no import THING_PAIRS
from saywhere.build.caption_yes_no_views import VIEW_PAIRS
from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Progress

YES_NO, NUMBER, OTHER = "yes/no", "number", "other"
TYPES: Mapping[str, str] = {
    **dict.fromkeys((drafts.COLOUR, drafts.MADE_OF, drafts.KIND, drafts.ANIMAL, drafts.VEHICLE, drafts.FOOD_IS), OTHER),
    **dict.fromkeys((drafts.DOING, drafts.WHAT_VERB, drafts.WHO, drafts.WEARING, drafts.WHERE, drafts.WHAT_AT), OTHER),
    **dict.fromkeys((drafts.ROOM, drafts.PLACE, drafts.SPORT, drafts.WHEN, drafts.WEATHER), OTHER),
    drafts.HOW_MANY: NUMBER,
    **dict.fromkeys((drafts.IS_THERE, drafts.IS_COLOUR, drafts.IS_VERB, drafts.IS_AT, drafts.IS_THIS), YES_NO),
    **dict.fromkeys((drafts.IS_IT, drafts.ARE_THERE_N, drafts.IS_WORN, drafts.IS_SPORT), YES_NO),
}
"""Question type → its answer type: "yes/no", "number" or "other"."""
MOST: Mapping[str, int] = dict.fromkeys(TYPES, 2) | {drafts.WHERE: 1, drafts.WHO: 1, drafts.IS_IT: 1}
"""Question type → how many one photo gives at most."""
MOST_IN_ALL = 12
_LONGEST_ANSWER = 3


@dataclass(frozen=True, slots=True)
class CaptionQuestion:
    """One question about one photo.

    question_type: one of TYPES. answer_type: "yes/no", "number" or "other". answers: right ones, the best first.
    """

    text: str
    question_type: str
    answer_type: str
    answers: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.question_type not in TYPES:
            raise UnknownName("question type", self.question_type, TYPES)
        if self.answer_type != TYPES[self.question_type]:
            raise InvalidValue(f"question {self.text!r}", f"has answers of type {self.answer_type!r}")
        if not self.answers:
            raise InvalidValue(f"question {self.text!r}", "has no answers")


def ask_captions(
    photos: Iterable[tuple[str, Sequence[str]]],
    rng: np.random.Generator,
    most: Mapping[str, int] | None = None,
    most_in_all: int = MOST_IN_ALL,
    progress: Progress | None = None,
) -> Iterator[tuple[str, CaptionQuestion]]:
    """Photo and question, photo by photo in their order; the same for the same photos, captions and generator.

    photos: photo → its captions. most: question type → how many one photo gives at most, none of those left out;
    `MOST` by default. Each caption is parsed once; what all of them say is counted before the first question is made,
    because the wrong colours and things that are asked for are to be usual ones: give all photos at once.
    """
    _check(most, most_in_all)
    return _ask(photos, rng, MOST if most is None else most, most_in_all, progress)


def _check(most: Mapping[str, int] | None, most_in_all: int) -> None:
    for name, number in (most or {}).items():
        if name not in TYPES:
            raise UnknownName("question type", name, TYPES)
        if number < 0:
            raise InvalidValue(f"most of {name!r}", f"is {number}, not at least 0")
    if most_in_all < 0:
        raise InvalidValue("most in all", f"is {most_in_all}, not at least 0")


def _ask(
    photos: Iterable[tuple[str, Sequence[str]]],
    rng: np.random.Generator,
    most: Mapping[str, int],
    most_in_all: int,
    progress: Progress | None,
) -> Iterator[tuple[str, CaptionQuestion]]:
    read: list[tuple[str, Facts]] = []
    usual = UsualCaptions()
    for photo, facts in facts_of(photos):
        read.append((photo, facts))
        usual.add(CaptionScene(facts))
        if progress is not None:
            progress("reading captions", len(read), 0)
    for photo, facts in read:
        made = _questions(PhotoAsking(CaptionScene(facts), usual, rng), most)
        for i in sorted(rng.permutation(len(made))[:most_in_all].tolist()):
            yield photo, made[i]


def _questions(asking: PhotoAsking, most: Mapping[str, int]) -> list[CaptionQuestion]:
    """All that one photo gives, each text once."""
    opened = [draft for rule in (*THINGS, *ACTS, *VIEWS) for draft in rule(asking)]
    paired = [both for rule in (*THING_PAIRS, *VIEW_PAIRS) for both in rule(asking)]
    chosen = (*_some_of(opened, most, asking.rng), *_halves_of(paired, most, asking.rng))
    return list({one.text: one for one in map(_question, chosen) if one}.values())


def _some_of(some: Sequence[CaptionDraft], most: Mapping[str, int], rng: np.random.Generator) -> Iterator[CaptionDraft]:
    """At most so many of each type, by chance."""
    by_type: dict[str, list[CaptionDraft]] = defaultdict(list)
    for draft in some:
        by_type[draft.question_type].append(draft)
    for name, alike in by_type.items():
        for i in rng.permutation(len(alike))[: most.get(name, 0)]:
            yield alike[i]


def _halves_of(some: Sequence[Pair], most: Mapping[str, int], rng: np.random.Generator) -> Iterator[CaptionDraft]:
    """Of each pair that is chosen both questions; where one more is wanted one of another pair, by a coin."""
    by_type: dict[str, list[Pair]] = defaultdict(list)
    for both in some:
        by_type[both[0].question_type].append(both)
    for name, alike in by_type.items():
        mixed = [alike[i] for i in rng.permutation(len(alike))]
        wanted = most.get(name, 0)
        for both in mixed[: wanted // 2]:
            yield from both
        if wanted % 2 and len(mixed) > wanted // 2:
            yield mixed[wanted // 2][int(rng.random() < 0.5)]


def _question(draft: CaptionDraft) -> CaptionQuestion | None:
    answers = tuple(dict.fromkeys(one for one in draft.answers if len(one.split()) <= _LONGEST_ANSWER))
    if not answers:
        return None
    return CaptionQuestion(draft.text, draft.question_type, TYPES[draft.question_type], answers)
