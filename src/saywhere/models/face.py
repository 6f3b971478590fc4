"""The one face of every model: look at a photo once, then ask what the model can do.

    model = saywhere.load("runs/mine")        # of any family
    model.skills                              # ("caption", "ground", "narrate")
    look = model.look("kitchen.jpg")          # heavy, once
    look.captions([Box(0.1, 0.2, 0.4, 0.6)])  # cheap, often

A `View` is what an encoder saw; a `Look` is a model's look at one photo. What a model has no skill for, its looks
refuse with one error, `MissingSkill`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.core import Box, Caption, Region, WholeImage
from saywhere.core.caption import OBJECT, SCENE
from saywhere.core.errors import InvalidValue, SaywhereError, UnknownName
from saywhere.vision.view import View

if TYPE_CHECKING:
    from saywhere.core import Grounded, Mask, Narrative
    from saywhere.core.description import Description
    from saywhere.models.region_features import RegionFeatures
    from saywhere.models.search import GenerationConfig
    from saywhere.vision import PhotoLike

SKILLS: Final = {
    "caption": "say what a region shows",
    "ground": "show where a sentence is",
    "narrate": "tell a photo and point along",
    "answer": "answer questions about a photo",
    "segment": "cut out what is pointed at",
    "scene": "say where a photo is taken",
    "chat": "talk about a photo",
    "why": "say which patches a word of a caption rests on",
}
"""What a model may be able to do, by name."""
MOST_WORDS: Final = 2000
"""Of a text that is to be found in a photo."""


class MissingSkill(SaywhereError):
    """Something was asked of a model that it cannot do. has_it: models and kinds of models that can."""

    def __init__(self, skill: str, model: str, has_it: Sequence[str]) -> None:
        self.skill, self.model, self.has_it = skill, model, tuple(has_it)
        self.hint = f"models that can: {', '.join(has_it)}" if has_it else "no model of this version can"
        super().__init__(f"the model {model} cannot {SKILLS[skill]}; it has no skill {skill!r} ({self.hint})")


class Model(Protocol):
    """Anything that looks at photos. levels: that captions can be asked at. generation: how it chooses words unless it
    is told otherwise."""

    @property
    def name(self) -> str: ...

    @property
    def skills(self) -> tuple[str, ...]: ...

    @property
    def levels(self) -> tuple[str, ...]: ...

    @property
    def generation(self) -> GenerationConfig: ...

    def look(self, photo: PhotoLike, image_id: str = "") -> Look:
        """One photo. image_id: what narratives call it; by default the file's name without its ending."""
        ...

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> Look:
        """Go on with a view that was made before, by this model."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """text: the likeliest answer; or, if there is a reason to give none, that it cannot be known.

    probability: that the likeliest answer is right; those of all answers need not sum to 1.
    ranked: the likeliest with their probabilities, best first. attention: (r,) over the image's regions.
    unknown: words of the question that the model does not know. unread: its words beyond the limit, if any.
    reason: why no answer is given; empty if one is.
    """

    text: str
    probability: float
    ranked: tuple[tuple[str, float], ...]
    attention: NDArray[np.float32] = field(repr=False)
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """What a model says in a conversation.

    text: its words. regions: traces, boxes and masks that it points out. forgotten: how many of the earliest messages,
    of both sides, it had to leave out, because there is room for so much only. lost: what of its answer was malformed.
    """

    text: str
    regions: tuple[Region, ...] = ()
    forgotten: int = 0
    lost: tuple[str, ...] = ()


class Conversation(Protocol):
    """A talk about one photo, which remembers what was said."""

    def say(self, text: str, region: Region | None = None) -> Spoken:
        """What the model answers. region: what is pointed at meanwhile."""
        ...


@runtime_checkable
class StreamingConversation(Conversation, Protocol):
    """A talk whose answers can be heard while they are written; not every model can."""

    def stream(self, text: str, region: Region | None, hear: Callable[[str], None]) -> Spoken:
        """The same as `say`. hear: called with each further piece of the answer; together they are its text."""
        ...


class Look:
    """One photo, looked at by a model; a family's own does what the family can, the rest is refused here.

    view: what the model's encoder saw. image: the photo, upright, if it is there. question_kinds: kinds of questions
    that the model learnt to answer, as people would ask them.
    """

    question_kinds: tuple[str, ...] = ()

    def __init__(self, model: Model, view: View, image: Image.Image | None = None, image_id: str = "photo") -> None:
        self.model, self.view, self.image, self.image_id = model, view, image, image_id

    def without_photo(self) -> Look:
        """The same look without the photo's pixels, for those who keep many looks: a photo is large."""
        return self.model.see(self.view, None, self.image_id)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that captions can be asked at: "object", what is there, and those above it that the model has."""
        return self.model.levels

    def caption(
        self, region: Region | None = None, how: Any = None, level: str = OBJECT, weighting: str = ""
    ) -> Caption:
        """What a region shows; the whole photo by default. level: one of `levels`. weighting: see `weighing`."""
        look = self.weighing(weighting) if weighting else self
        return look.captions([WholeImage() if region is None else region], how, level)[0]

    def weighing(self, weighting: str) -> Look:
        """The same look with the patches of regions weighed in another way, such as "gaussian" or "attention"."""
        reason = f"is {weighting!r}, but {self.model.name} does not mix a region's patches"
        raise InvalidValue("weighting", reason, "leave it out")

    def captions(self, regions: Sequence[Region], how: Any = None, level: str = OBJECT) -> list[Caption]:  # noqa: ARG002 - for those that can
        """What each region shows. The same, but for rounding, alone and among others. how: words are chosen; a
        `GenerationConfig`, by default the model's own. level: one of `levels`."""
        self._refuse("caption")

    def scene(self) -> Caption:
        """Where the photo is taken."""
        check_skill(self.model, SCENE)
        return self.caption(level=SCENE)

    def ground(self, text: str) -> Narrative:
        """Where each word of a text is, as a narrative with even timings and a smooth trace through the boxes.

        Words that seem not to be there have no place; if none is there, the trace is empty.
        """
        return self.grounded(text).narrative(self.image_id, origin=self.model.name)

    def grounded(self, text: str) -> Grounded:  # noqa: ARG002 - for those that can
        """The same as `ground` without times: each word with its box, exactly as it was found."""
        self._refuse("ground")

    def find_all(self, texts: Sequence[str]) -> list[Box | None]:
        """A box around the one thing that each text means, such as "the second horse from the right"; None where it
        seems not to be there. Of a model that places words alone, the box around all words of a text."""
        return [_hull(self.grounded(text)) for text in texts]

    def narrate(self, most: int = 4, seed: int = 0) -> Narrative:  # noqa: ARG002 - for those that can
        """Words and a trace from the photo alone. For models that tell thing by thing, most: things to tell after the
        whole; seed: of the choice among sentences that say the same."""
        self._refuse("narrate")

    def describe(self) -> Description:
        """The photo for people who do not see it: nothing but what the model is sure of, in the order in which people
        look, with what is beside what. Made once, when it is first asked for."""
        return self._description

    @cached_property
    def _description(self) -> Description:
        from saywhere.models.describing import describe

        check_skill(self.model, "caption")
        return describe(self)

    def presence(self, kind: str) -> float:
        """How likely a kind of thing is in the photo, 0 … 1; 1 for a kind of which the model cannot tell."""
        return self.view.present.get(kind, 1.0)

    def answer(self, question: str, region: Region | None = None) -> Answer:  # noqa: ARG002 - for those that can
        """The answer to a question about the photo, or about what is pointed at."""
        self._refuse("answer")

    def segment(self, what: Region | str) -> Mask:  # noqa: ARG002 - for those that can
        """What is pointed at, or named in a few words, cut out."""
        self._refuse("segment")

    def chat(self) -> Conversation:
        """A new conversation about the photo."""
        self._refuse("chat")

    def word_score(self, region: Region, text: str, index: int, level: str = OBJECT) -> Any:  # noqa: ARG002 - for those that can
        """How likely the word number `index`, from 0, of a region's caption is, as a function of the patches; for
        `saywhere.explain.seen.why_word`."""
        self._refuse("why")

    def answer_score(self, question: str, region: Region | None = None, answer: str = "") -> Any:  # noqa: ARG002 - for those that can
        """How likely an answer is, as a function of the regions; for `saywhere.explain.seen.why_answer`.

        answer: by default the one that is given.
        """
        self._refuse("answer")

    def weights(self, regions: Sequence[Region]) -> NDArray[np.float32]:
        """(m, rows, cols) how much each patch counts for each region; they sum to 1."""
        return np.stack([region.weights(self.view.frame) for region in regions]).astype(np.float32)

    def vector(self) -> NDArray[np.float32]:
        """(d,) what tells the photo from others."""
        return self.view.contrast

    @cached_property
    def places(self) -> RegionFeatures:
        """The photo as regions with a feature each, for networks that read regions."""
        from saywhere.models.region_features import view_regions

        return view_regions(self.view)

    @cached_property
    def region_set(self) -> RegionFeatures:
        """The regions that other networks learn to read; `places`, unless a network of the model's own has these."""
        return self.places

    def _refuse(self, skill: str) -> NoReturn:
        raise missing_skill(self.model.name, skill)


def _hull(grounded: Grounded) -> Box | None:
    places = grounded.boxes.located_xyxy
    return Box(*places[:, :2].min(axis=0), *places[:, 2:].max(axis=0)) if len(places) else None


def missing_skill(model: str, skill: str) -> MissingSkill:
    """The error of a model without a skill."""
    from saywhere.models.registry import with_skill

    return MissingSkill(skill, model, with_skill(skill))


def check_skill(model: Model, skill: str) -> None:
    """Refuse a model without a skill."""
    if skill not in model.skills:
        raise missing_skill(model.name, skill)


def check_level(level: str, known: Sequence[str], model: str) -> None:
    """Refuse a level that is none of those that a model knows."""
    if level in known:
        return
    if len(known) == 1:
        reason = f"the model {model} has captions of the level {known[0]!r} alone, none of {level!r}"
        raise InvalidValue("level", reason, f"ask for {known[0]!r}, or use a model with more levels")
    raise UnknownName("level", level, known)


def words_to_find(text: str) -> list[str]:
    """The words of a text that is to be found in a photo; none and too many are refused."""
    words = text.split()
    if not words:
        raise InvalidValue("text", "has no word")
    if len(words) > MOST_WORDS:
        raise InvalidValue("text", f"has {len(words):,} words, more than {MOST_WORDS:,}", "ground it in parts")
    return words


def name_of(photo: PhotoLike, image_id: str = "") -> str:
    """What narratives call a photo."""
    return image_id or (Path(photo).stem if isinstance(photo, str | PathLike) else "photo")
