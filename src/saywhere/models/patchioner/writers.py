"""What a seer writes with: regions of a photo become captions.

    region → vector → the gap between images and texts closed → decoder → text

What is there is the level "object". All other levels, such as "scene", are written by one second decoder, which reads
the same vector of a region and, as its prompt, the level's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
import torch

from saywhere.core import Caption, InvalidValue, Nearest, Region, WholeImage
from saywhere.core.caption import OBJECT
from saywhere.core.types import Floats32
from saywhere.language.coco_aliases import classes_named
from saywhere.models.face import check_level
from saywhere.models.patchioner.consensus import ConsensusConfig, InverseFrequency, consensus
from saywhere.models.patchioner.decoder import PhotoStates, PrefixDecoder
from saywhere.models.patchioner.eyes import AlignedView, is_scene
from saywhere.models.patchioner.memory import Direct, Gap, MemoryBank, Projected
from saywhere.models.search import GenerationConfig, Writer, Written

Generation = GenerationConfig | ConsensusConfig
"""How words are chosen."""
_ECHO = re.compile(r"\b(\w+) (?:and|with) (?:an? |the )?\1\b")
"""Says a thing twice: a hat and a hat."""
ABOUT_PEOPLE = ("action", "rationale")
"""Levels that suppose that someone is to be seen; all of HL's photos show people."""
PERSON = "person"
"""What the detector calls people."""
_LEAST_PERSON = 0.5
"""What people do is sure only if people are rather there than not."""
_HARDLY = 0.2
"""A kind is hardly there whose presence is below this share of what makes a caption sure."""
_PHRASE_WORDS, _PHRASES_FETCHED = 4, 400
_ROUNDED = 1e-6
_FETCHED = 3
"""So many times more sentences are fetched than are references, because short ones are none."""


class RegionWriter(Protocol):
    """Anything that captions regions of a photo that a seer has seen. generation: how it chooses words by default."""

    @property
    def levels(self) -> tuple[str, ...]: ...

    @property
    def generation(self) -> GenerationConfig: ...

    def captions(
        self, seen: AlignedView, regions: Sequence[Region], how: Generation | None = None, level: str = OBJECT
    ) -> list[Caption]:
        """What each region shows; the same, but for rounding, alone and among others."""
        ...


@dataclass(frozen=True, slots=True)
class VectorWriter:
    """A decoder, and how to use it. gap: how a vector of an image becomes one of a text. generation: how words are
    chosen. scenes, scene_gap: the same for the whole photo and for sets of boxes, if otherwise: they are worth more
    time, and a decoder may have learnt to read what the eye sees of them as it is."""

    decoder: Writer
    gap: Gap = field(default_factory=Direct)
    generation: Generation = field(default_factory=GenerationConfig)
    scenes: Generation | None = None
    scene_gap: Gap | None = None

    def gap_for(self, region: Region) -> Gap:
        """How the vector of a region becomes one of a text."""
        return self.scene_gap if self.scene_gap is not None and is_scene(region) else self.gap

    def generation_for(self, region: Region) -> Generation:
        """How the words for a region are chosen."""
        return self.scenes if self.scenes is not None and is_scene(region) else self.generation


class MemoryWriter:
    """Captions from the vectors of regions, each with the sentences of a memory that are nearest to it.

    objects: writes what is there. levels, above: the levels above that, and what opens their writer when the first of
    them is asked for; both or none. least_similarity: a caption is sure from this cosine with the nearest sentence on.
    least_presence: and if all kinds of things that it names are in the photo with at least this probability. Of several
    captions one is chosen that is, if there is one.
    """

    def __init__(
        self,
        bank: MemoryBank,
        objects: VectorWriter,
        levels: Sequence[str] = (),
        above: Callable[[], VectorWriter] | None = None,
        least_similarity: float = 0.0,
        least_presence: float = 0.0,
    ) -> None:
        check_names(levels)
        if bool(levels) != (above is not None):
            raise InvalidValue("levels", "levels above objects and a writer for them come together")
        self.bank, self.objects = bank, objects
        self.least_similarity, self.least_presence = least_similarity, least_presence
        self.levels = (OBJECT, *levels)
        self._open_above = above

    @property
    def generation(self) -> GenerationConfig:
        chosen = self.objects.generation
        return chosen if isinstance(chosen, GenerationConfig) else chosen.careful

    @cached_property
    def above(self) -> VectorWriter | None:
        """What writes the levels above objects; opened when the first of them is asked for."""
        if self._open_above is None:
            return None
        writer = self._open_above()
        check_prompts(self.levels[1:], writer.decoder)
        return writer

    def at(self, level: str) -> VectorWriter:
        """What writes a level. One that the writer does not know is refused."""
        check_level(level, self.levels, "")
        return self.objects if level == OBJECT or self.above is None else self.above

    @cached_property
    def rarity(self) -> InverseFrequency:
        """How rare words are in the memory; counted when the first caption is written by consensus."""
        return InverseFrequency(self.bank.sentences)

    def captions(
        self, seen: AlignedView, regions: Sequence[Region], how: Generation | None = None, level: str = OBJECT
    ) -> list[Caption]:
        writer = self.at(level)
        ways = [(how or writer.generation_for(region), writer.gap_for(region)) for region in regions]
        vectors = seen.vectors(regions) if regions else None
        captions: dict[int, Caption] = {}
        for way in dict.fromkeys(ways):
            rows = [row for row, one in enumerate(ways) if one == way]
            if vectors is not None:
                chosen = self._captions(seen, vectors[rows], [regions[row] for row in rows], *way, level)
                captions |= zip(rows, chosen, strict=True)
        return [captions[row] for row in range(len(regions))]

    def _captions(
        self, seen: AlignedView, vectors: Floats32, regions: Sequence[Region], how: Generation, gap: Gap, level: str
    ) -> list[Caption]:
        decoder = self.at(level).decoder
        photo_states = photo_states_of(seen, seen.weights(regions)) if reads_photos(decoder) else None
        believable = partial(self.believable, seen)
        wholes = {row: seen.contrast() for row, region in enumerate(regions) if isinstance(region, WholeImage)}
        written, closed = self.write(
            vectors, how, gap, level, photo_states=photo_states, believable=believable, remembered=wholes
        )
        nearest = closed.nearest if any(closed.nearest) else self.bank.project(vectors).nearest
        supposed = level not in ABOUT_PEOPLE or may_have_people(seen)
        if level == OBJECT:
            written = [self._believed(seen, *one) for one in zip(regions, written, strict=True)]
        captions = []
        for region, text, near in zip(regions, written, nearest, strict=True):
            similarity = max(one.cosine for one in near)
            sure = supposed and similarity >= self.least_similarity and believable(text.text)
            sure = sure and not seen.unlikely(region, classes_named(text.text))
            captions.append(
                Caption(text.text, text.score, region, level, sure=sure, similarity=similarity, nearest=tuple(near))
            )
        return captions

    def _believed(self, seen: AlignedView, region: Region, text: Written) -> Written:
        """The text of a region; if it names a kind that is hardly in the photo, or hardly in the region, the phrase of
        the memory that is nearest to what its patches show instead."""
        hardly, named = _HARDLY * self.least_presence, classes_named(text.text)
        if is_scene(region):
            return text
        if all(seen.presence(kind) >= hardly for kind in named) and not seen.unlikely(region, named):
            return text
        near = self.bank.project(seen.patch_vectors([region]), nearest=_PHRASES_FETCHED).nearest[0]
        for one in near:
            if len(one.sentence.split()) > _PHRASE_WORDS or not self.believable(seen, one.sentence):
                continue
            if not seen.unlikely(region, classes_named(one.sentence)):
                return replace(text, text=one.sentence.lower())
        return text

    def believable(self, seen: AlignedView, text: str) -> bool:
        """Whether all kinds of things that a text names may be in the photo."""
        if not self.least_presence:
            return True
        return all(seen.presence(kind) >= self.least_presence for kind in classes_named(text))

    def write(
        self,
        vectors: Floats32,
        how: Generation,
        gap: Gap | None = None,
        level: str = OBJECT,
        photo_states: PhotoStates | None = None,
        believable: Callable[[str], bool] | None = None,
        remembered: Mapping[int, Floats32] | None = None,
    ) -> tuple[list[Written], Projected]:
        """A text for each of (m, d) vectors of length 1, and what was made of the vectors before. gap: how to close
        it; by default as the level has it. photo_states: the photo, for a decoder that attends to it. believable:
        which texts are chosen before others. remembered: row → what tells a photo from others, to fetch the memory's
        sentences by instead of by the vector."""
        writer = self.at(level)
        decoder, closed = writer.decoder, (gap or writer.gap).close(vectors)
        prompts = None if level == OBJECT else (level,) * len(vectors)
        if isinstance(how, GenerationConfig):
            if isinstance(decoder, PrefixDecoder):
                return decoder.write(closed.vectors, how, prompts, photo_states=photo_states), closed
            return decoder.write(closed.vectors, how, prompts), closed
        if not isinstance(decoder, PrefixDecoder):
            kind = type(decoder).__name__
            raise InvalidValue("consensus", f"needs a writer that draws several texts, not a {kind}")
        first, drawn = decoder.write_and_draw(
            closed.vectors, how.careful, how.draws, how.drawing, prompts, photo_states
        )
        # A vector whose length was made 1 twice may differ from itself in the last digit.
        same = np.allclose(closed.vectors, vectors, rtol=0, atol=_ROUNDED)
        second = [] if same else [decoder.write(vectors, how.careful, prompts, photo_states=photo_states)]
        careful = zip(first, *second, strict=True)
        near_each = self._remembered(vectors, remembered or {}, _FETCHED * how.nearest)
        chosen = []
        for some, others, near in zip(careful, drawn, near_each, strict=True):
            every = [*some, *others]
            plain = [one for one in every if not _ECHO.search(one.text)] or every
            candidates = [one for one in plain if believable is None or believable(one.text)] or plain
            texts = [text.text for text in candidates]
            best = consensus(texts, how.references(near), self.rarity, how.softness, how.among)
            chosen.append(candidates[best])
        return chosen, closed

    def _remembered(self, vectors: Floats32, photos: Mapping[int, Floats32], count: int) -> Iterator[list[Nearest]]:
        """For each vector the memory's nearest sentences; for rows of `photos` those that find the photo best."""
        queries = self.bank.queries or self.bank
        for row, vector in enumerate(vectors):
            bank, asked = (queries, photos[row]) if row in photos else (self.bank, vector)
            yield bank.project(asked[None], nearest=count).nearest[0]


def reads_photos(decoder: Writer) -> bool:
    """Whether a decoder attends to the photo's hidden states."""
    return isinstance(decoder, PrefixDecoder) and decoder.config.states_size > 0


def photo_states_of(seen: AlignedView, weights: Floats32) -> PhotoStates:
    """What such a decoder reads, for regions of (m, rows, cols) weights."""
    by_state = seen.state_weights(weights)
    return PhotoStates(torch.from_numpy(np.array(seen.view.states))[None], torch.from_numpy(by_state))


def may_have_people(seen: AlignedView) -> bool:
    """Whether a person may be there, or could not have been found."""
    return seen.presence(PERSON) > _LEAST_PERSON


def check_names(levels: Sequence[str]) -> None:
    """Refuse names that cannot be levels above objects."""
    if OBJECT in levels:
        raise InvalidValue("levels", f"{OBJECT!r} is told by the model's own writer", "name only those above it")
    if len(set(levels)) < len(levels):
        raise InvalidValue("levels", f"one comes twice: {', '.join(levels)}")
    if any(not level.strip() for level in levels):
        raise InvalidValue("levels", "one has no name")


def check_prompts(levels: Sequence[str], writer: Writer) -> None:
    """Refuse a writer that cannot read the levels' names."""
    if not isinstance(writer, PrefixDecoder):
        return
    begins = writer.begins(levels, len(levels))
    # A word that it does not know would be the same prompt as any other.
    strange = [level for level, begin in zip(levels, begins, strict=True) if writer.vocabulary.unknown_id in begin]
    if strange:
        raise InvalidValue("levels", f"their writer does not know the word {strange[0]!r}")
