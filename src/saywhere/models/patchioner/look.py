"""One photo, looked at: captions of regions, texts found in it, narratives, answers; all from the same look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from saywhere.core import AttentionMap, Box, InvalidValue, Narrative, Region, WholeImage
from saywhere.core.types import Floats32
from saywhere.models.grounded import Grounded
from saywhere.models.patchioner.answering import Answer, Answerer, AnswerScore, answer_regions, pointed
from saywhere.models.patchioner.consensus import ConsensusConfig
from saywhere.models.patchioner.grounding import Grounder, Place, noun_phrases, spread
from saywhere.models.patchioner.levels import ABOUT_PEOPLE, OBJECT, PERSON, SCENE
from saywhere.models.patchioner.memory import Nearest
from saywhere.models.patchioner.narration import Told, compose, worth_telling
from saywhere.models.patchioner.sight import Sight, is_scene
from saywhere.models.patchioner.why import WordScore
from saywhere.models.region_features import RegionFeatures
from saywhere.models.search import GenerationConfig
from saywhere.vision import View

if TYPE_CHECKING:
    from saywhere.models.patchioner.seer import Seer

_MOST_TOLD = 4
_MOST_WORDS = 2000


@dataclass(frozen=True, slots=True)
class RegionCaption:
    """What a region shows.

    text: the caption. score: the mean log-probability of its words. similarity: the cosine of the region with the
    nearest sentence of the memory. sure: whether that is near enough to rely on and, of what people do and why, a
    person was found. nearest: those sentences.
    """

    text: str
    score: float
    similarity: float
    sure: bool
    nearest: tuple[Nearest, ...] = ()

    @property
    def confidence(self) -> float:
        """The geometric mean of its words' probabilities, 0 … 1."""
        return math.exp(self.score)

    def __str__(self) -> str:
        return self.text if self.sure else f"{self.text} (unsure)"


class Look:
    """One photo, looked at. view: what the encoder and the detector saw. image: the photo, upright, if it is there."""

    def __init__(self, seer: Seer, image: Image.Image | None, view: View, image_id: str) -> None:
        self.seer, self.image, self.view, self.image_id = seer, image, view, image_id
        self.sight = Sight(view, seer.alignment, seer.tags, seer.classes, seer.blend)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that captions can be asked at: "object", what is there, and those above it that the seer has."""
        return self.seer.levels

    def caption(
        self, region: Region | None = None, how: GenerationConfig | ConsensusConfig | None = None, level: str = OBJECT
    ) -> RegionCaption:
        """What a region shows; the whole photo by default. level: one of `levels`."""
        return self.captions([WholeImage() if region is None else region], how, level)[0]

    def scene(self) -> RegionCaption:
        """Where the photo is taken. A seer without the level "scene" refuses."""
        return self.caption(level=SCENE)

    def captions(
        self, regions: Sequence[Region], how: GenerationConfig | ConsensusConfig | None = None, level: str = OBJECT
    ) -> list[RegionCaption]:
        """What each region shows. The same, but for rounding, alone and among others. how: by default as the seer does,
        which may take more care with the whole photo and with sets of boxes. level: one of `levels`."""
        self.seer.told_at(level)
        if not regions:
            return []
        vectors = self.sight.vectors(regions)
        whole = self.seer.manners.whole
        if how is not None or whole is None or level != OBJECT:
            return self.captions_of(vectors, how, level)
        careful = np.array([is_scene(region) for region in regions])
        captions: list[RegionCaption | None] = [None] * len(regions)
        for rows, way in ((np.flatnonzero(careful), whole), (np.flatnonzero(~careful), None)):
            if len(rows):
                for row, caption in zip(rows.tolist(), self.captions_of(vectors[rows], way), strict=True):
                    captions[row] = caption
        return [caption for caption in captions if caption is not None]

    def captions_of(
        self, vectors: Floats32, how: GenerationConfig | ConsensusConfig | None = None, level: str = OBJECT
    ) -> list[RegionCaption]:
        """Captions of (m, d) vectors of length 1."""
        manners = self.seer.manners
        own = manners.writing if level == OBJECT else manners.level or manners.writing
        written, closed = self.seer.tell(vectors, how or own, level=level)
        nearest = closed.nearest if any(closed.nearest) else self.seer.bank.project(vectors).nearest
        supposed = level not in ABOUT_PEOPLE or self._may_have_people
        captions = []
        for text, near in zip(written, nearest, strict=True):
            similarity = max(one.cosine for one in near)
            sure = supposed and similarity >= manners.least_similarity
            captions.append(RegionCaption(text.text, text.score, similarity, sure, tuple(near)))
        return captions

    def similarity(self, text: str) -> AttentionMap:
        """Where a text is: the cosine of every patch with it, above the lowest; even if all patches look the same."""
        cosines = self._grounder.similarity(self.seer.texts([text])[0])
        above = cosines - cosines.min()
        return AttentionMap(above if above.any() else np.ones_like(above))

    def find(self, text: str) -> Place | None:
        """Where one thing is, such as "a red cup"; None if it seems not to be there."""
        if not text.strip():
            raise InvalidValue("text", "has no word")
        best = self._grounder.find(text, self.seer.texts([text])[0])
        return best if self._is_there(best) else None

    def ground(self, text: str) -> Narrative:
        """Where each word of a text is, as a narrative with even timings and a smooth trace through the boxes.

        Phrases that name things are looked for; the words between them stay with the last thing, see `spread`. A phrase
        that seems not to be there has no place; if none is there, the trace is empty.
        """
        return self.grounded(text).narrative(self.image_id, origin=self.seer.name)

    def grounded(self, text: str) -> Grounded:
        """The same as `ground` without times: each word with its box, exactly as it was found."""
        words = text.split()
        if not words:
            raise InvalidValue("text", "has no word")
        if len(words) > _MOST_WORDS:
            raise InvalidValue("text", f"has {len(words):,} words, more than {_MOST_WORDS:,}", "ground it in parts")
        return self._placed(words)

    def narrate(self, most: int = _MOST_TOLD) -> Narrative:
        """Words and a trace from the photo alone: the whole first, then at most `most` things that it did not name."""
        if most < 0:
            raise InvalidValue("most", f"is {most}, not at least 0")
        things = worth_telling(self.view.found, 2 * most)
        regions: list[Region] = [WholeImage(), *(Box(*thing.box_xyxy) for thing in things)]
        whole, *parts = self.captions(regions)
        sure = [Told(part.text, thing.box_xyxy) for part, thing in zip(parts, things, strict=True) if part.sure]
        told = compose(whole.text, sure[:most], self._placed)
        return told.narrative(self.image_id, origin=self.seer.name)

    def word_score(self, region: Region, text: str, index: int, level: str = OBJECT) -> WordScore:
        """How likely the word number `index`, from 0, of a region's caption is, as a function of the patches; for
        `saywhere.explain.seen.why_word`. Of a caption chosen by consensus, too, the vector that the memory made counts.
        """
        return WordScore(self, region, text, index, level)

    @property
    def question_kinds(self) -> tuple[str, ...]:
        """Kinds of questions that the seer learnt to answer."""
        return self.seer.question_kinds

    @cached_property
    def places(self) -> RegionFeatures:
        """What answers are made from; see `answer_regions`."""
        return answer_regions(self)

    def answer(self, question: str, region: Region | None = None) -> Answer:
        """The answer to a question about the photo, or about what is pointed at. A seer without an answerer refuses."""
        [answer] = self._answerer.answer([self.places], [question], [pointed(self, self.places, region)])
        return answer

    def answer_score(self, question: str, region: Region | None = None, answer: str = "") -> AnswerScore:
        """How likely an answer is, as a function of the places; for `saywhere.explain.seen.why_answer`.

        answer: by default the one that is given.
        """
        return AnswerScore(self._answerer, self.places, question, pointed(self, self.places, region), answer)

    @property
    def _answerer(self) -> Answerer:
        if self.seer.answerer is None:
            raise InvalidValue("question", f"the model {self.seer.name} cannot answer any", "use one that can")
        return self.seer.answerer

    @property
    def _may_have_people(self) -> bool:
        """Whether a person was found, or could not have been."""
        tags = self.seer.tags
        return tags is None or PERSON not in tags.names or any(one.name == PERSON for one in self.view.found)

    @cached_property
    def _grounder(self) -> Grounder:
        return Grounder(self.sight)

    def _is_there(self, place: Place) -> bool:
        manners = self.seer.manners
        return bool(place.thing) or place.cosine >= (manners.least_missed if place.missed else manners.least_grounding)

    def _placed(self, words: Sequence[str]) -> Grounded:
        phrases = noun_phrases(words)
        vectors = self.seer.texts([phrase.text for phrase in phrases]) if phrases else ()
        placed = []
        for phrase, vector in zip(phrases, vectors, strict=True):
            best = self._grounder.find(phrase.text, vector, phrase.place)
            if self._is_there(best):
                placed.append((phrase, best))
        return spread(words, placed)
