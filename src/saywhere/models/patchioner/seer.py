"""Look once, ask often: an encoder, its alignment, a memory and a writer, joined.

seer = Seer.from_pretrained("folder")
look = seer.look("kitchen.jpg")                 # heavy, once
look.captions([Box(0.1, 0.2, 0.4, 0.6), trace]) # cheap, often
look.ground("a cup beside a spoon")             # a narrative: a box for every word, a trace through them
look.narrate()                                  # a narrative from the photo alone
look.answer("is there a cup?", Point(0.3, 0.4)) # if the seer has a part that answers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.core import (
    AttentionMap,
    Box,
    InvalidFile,
    InvalidValue,
    Narrative,
    Region,
    UnknownName,
    WholeImage,
)
from saywhere.models.grounded import Grounded
from saywhere.models.patchioner.alignment import Alignment, LinearAlignment
from saywhere.models.patchioner.answering import (
    Answer,
    Answerer,
    AnswerScore,
    answer_regions,
    checked_answerer,
    pointed,
)
from saywhere.models.patchioner.consensus import Agreement, Rarity, agreed
from saywhere.models.patchioner.decode import Writer, Writing, Written
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.gap import Closed, Direct, Gap, MemoryGap
from saywhere.models.patchioner.grounding import Grounder, Place, noun_phrases, spread
from saywhere.models.patchioner.memory import MemoryBank, Nearest
from saywhere.models.patchioner.narration import Told, compose, worth_telling
from saywhere.models.patchioner.seer_config import SeerConfig, read_config, save_config
from saywhere.models.patchioner.sight import Blend, Sight, is_scene
from saywhere.models.patchioner.tags import ClassNames, Tags
from saywhere.models.patchioner.why import WordScore
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.vqa import UpDnVqa
from saywhere.vision import Encoder, Found, PhotoLike, View, read_photo

if TYPE_CHECKING:
    from saywhere.language.embed import TextEncoder

__all__ = [
    "SKILLS",
    "Look",
    "Manners",
    "RegionCaption",
    "Seer",
    "SeerConfig",
    "class_names",
    "open_seer",
    "read_config",
    "replace_found",
    "save_config",
]

Floats = NDArray[np.float32]
SKILLS = ("caption", "ground", "narrate")
"""Of every seer; one with an answerer has "answer", too."""
_MOST_TOLD = 4
_MOST_WORDS = 2000
_HEARD_OF = 3
"""So many times more sentences are fetched than are heard, because short ones are not."""


@dataclass(frozen=True, slots=True)
class RegionCaption:
    """What a region shows.

    text: the caption. score: the mean log-probability of its words. similarity: the cosine of the region with the
    nearest sentence of the memory. sure: whether that is near enough to rely on. nearest: those sentences.
    """

    text: str
    score: float
    similarity: float
    sure: bool
    nearest: tuple[Nearest, ...] = ()

    def __str__(self) -> str:
        return self.text if self.sure else f"{self.text} (unsure)"


@dataclass(frozen=True, slots=True)
class Manners:
    """How a seer behaves.

    least_similarity: a caption is sure from this cosine with the nearest sentence on. least_grounding: a phrase is
    found from this cosine on; least_missed: if the detector knows such things and surely found none. writing: how
    words are chosen. whole: how they are chosen for scenes (the whole photo, sets of boxes), if otherwise: they are
    worth more time.
    """

    least_similarity: float = 0.0
    least_grounding: float = 0.0
    least_missed: float = 0.0
    writing: Writing = field(default_factory=Writing)
    whole: Writing | Agreement | None = None


class Seer:
    """Everything that is needed to look at photos and to talk about them.

    detector, tags: both or none. names: what the encoder's own classifier calls things. bank: gives each caption its
    nearest sentences, whatever the gap is closed with. answerer: answers questions from `answer_regions`.
    question_kinds: kinds of questions that it learnt to answer, as people would ask them.
    """

    def __init__(
        self,
        encoder: Encoder,
        alignment: Alignment,
        gap: Gap,
        writer: Writer,
        *,
        bank: MemoryBank,
        text_encoder: TextEncoder | None = None,
        detector: Any = None,
        tags: Tags | None = None,
        classes: ClassNames | None = None,
        blend: Blend | None = None,
        manners: Manners | None = None,
        answerer: Answerer | None = None,
        question_kinds: Sequence[str] = (),
        name: str = "seer",
    ) -> None:
        if (detector is None) != (tags is None):
            raise InvalidValue("seer", "a detector and tags for what it finds come together")
        self.encoder, self.alignment, self.gap, self.writer, self.bank = encoder, alignment, gap, writer, bank
        self.detector, self.tags, self.classes = detector, tags, classes
        self.blend, self.manners, self.name = blend or Blend(), manners or Manners(), name
        self.answerer = None if answerer is None else checked_answerer(answerer, alignment.size)
        self.question_kinds = tuple(question_kinds)
        self._text_encoder = text_encoder

    @property
    def skills(self) -> tuple[str, ...]:
        """What it can do."""
        return SKILLS if self.answerer is None else (*SKILLS, "answer")

    @property
    def text_encoder(self) -> TextEncoder:
        """What reads texts; opened when the first text is to be found."""
        if self._text_encoder is None:
            from saywhere.language.embed import open_text_encoder

            self._text_encoder = open_text_encoder()
        return self._text_encoder

    def look(self, photo: PhotoLike, image_id: str = "") -> Look:
        """One photo. image_id: what narratives call it; by default the file's name without its ending."""
        image = read_photo(photo)
        name = image_id or (Path(photo).stem if isinstance(photo, str | Path) else "photo")
        view = self.encoder.look(image)
        if self.detector is not None:
            view = replace_found(view, self.detector.find(image))
        return Look(self, image, view, name)

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> Look:
        """Go on with a view that was made before, by this seer's encoder and detector."""
        return Look(self, image, view, image_id)

    @cached_property
    def rarity(self) -> Rarity:
        """How rare words are in the memory; counted when the first caption is written by consensus."""
        return Rarity(self.bank.sentences)

    def tell(self, vectors: Floats, way: Writing | Agreement, gap: Gap | None = None) -> tuple[list[Written], Closed]:
        """A text for each of (m, d) vectors of length 1, and what was made of the vectors before. gap: how to close
        it; by default the seer's own."""
        closed = (gap or self.gap).close(vectors)
        if isinstance(way, Writing):
            return self.writer.write(closed.vectors, way, closed.prompts), closed
        if not isinstance(self.writer, PrefixDecoder):
            kind = type(self.writer).__name__
            raise InvalidValue("consensus", f"needs a writer that draws several texts, not a {kind}")
        careful = [self.writer.write(rows, way.careful, closed.prompts) for rows in (closed.vectors, vectors)]
        drawn = self.writer.draw(closed.vectors, way.draws, way.drawing)
        near_each = self.bank.project(vectors, nearest=_HEARD_OF * way.nearest).nearest
        chosen = []
        for first, second, others, near in zip(*careful, drawn, near_each, strict=True):
            candidates = [first, second, *others]
            best = agreed([text.text for text in candidates], way.heard(near), self.rarity, way.softness)
            chosen.append(candidates[best])
        return chosen, closed

    def texts(self, texts: Sequence[str]) -> Floats:
        """(n, d) vectors of length 1, in the space of regions."""
        return self.alignment.texts(self.text_encoder.embed(list(texts)))


class Look:
    """One photo, looked at. view: what the encoder and the detector saw. image: the photo, upright, if it is there."""

    def __init__(self, seer: Seer, image: Image.Image | None, view: View, image_id: str) -> None:
        self.seer, self.image, self.view, self.image_id = seer, image, view, image_id
        self.sight = Sight(view, seer.alignment, seer.tags, seer.classes, seer.blend)

    def caption(self, region: Region | None = None, how: Writing | Agreement | None = None) -> RegionCaption:
        """What a region shows; the whole photo by default."""
        return self.captions([WholeImage() if region is None else region], how)[0]

    def captions(self, regions: Sequence[Region], how: Writing | Agreement | None = None) -> list[RegionCaption]:
        """What each region shows. The same, but for rounding, alone and among others. how: by default as the seer does,
        which may take more care with the whole photo and with sets of boxes."""
        if not regions:
            return []
        vectors = self.sight.vectors(regions)
        whole = self.seer.manners.whole
        if how is not None or whole is None:
            return self.captions_of(vectors, how)
        careful = np.array([is_scene(region) for region in regions])
        captions: list[RegionCaption | None] = [None] * len(regions)
        for rows, way in ((np.flatnonzero(careful), whole), (np.flatnonzero(~careful), None)):
            if len(rows):
                for row, caption in zip(rows.tolist(), self.captions_of(vectors[rows], way), strict=True):
                    captions[row] = caption
        return [caption for caption in captions if caption is not None]

    def captions_of(self, vectors: Floats, how: Writing | Agreement | None = None) -> list[RegionCaption]:
        """Captions of (m, d) vectors of length 1."""
        manners = self.seer.manners
        written, closed = self.seer.tell(vectors, how or manners.writing)
        nearest = closed.nearest if any(closed.nearest) else self.seer.bank.project(vectors).nearest
        captions = []
        for text, near in zip(written, nearest, strict=True):
            similarity = max(one.cosine for one in near)
            sure = similarity >= manners.least_similarity
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

    def word_score(self, region: Region, text: str, index: int) -> WordScore:
        """How likely the word number `index`, from 0, of a region's caption is, as a function of the patches; for
        `saywhere.explain.seen.why_word`. Of a caption chosen by consensus, too, the vector that the memory made counts.
        """
        return WordScore(self, region, text, index)

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


def replace_found(view: View, found: Sequence[Found]) -> View:
    """The same view with these things found in it."""
    return View(view.frame, view.patches, view.whole, view.attention, tuple(found))


def open_seer(folder: str | Path, writer: str = "", *, encoder: Encoder | None = None, detector: Any = None) -> Seer:
    """A seer from its folder. writer: which of its writers. encoder, detector: instead of those it names."""
    from saywhere.vision import open_encoder

    root = Path(folder)
    config = read_config(root)
    default = next(iter(config.writers))
    chosen = writer or default
    if chosen not in config.writers:
        raise UnknownName("writer", chosen, config.writers)
    eye: Any = encoder or open_encoder(config.encoder, config.input_px)
    if config.detector and detector is None:
        from saywhere.vision.detector import open_detector

        detector = open_detector()
    bank = MemoryBank.load(root / "memory.safetensors")
    gap: Gap = MemoryGap(bank, config.temperature) if config.gap == "memory" else Direct()
    method = "beam" if config.beams > 1 else "greedy"
    writing = Writing(method, beams=config.beams, no_repeat=config.no_repeat)
    whole = Agreement(draws=config.draws, no_repeat=config.no_repeat) if config.draws else None
    return Seer(
        eye,
        LinearAlignment.from_pretrained(root / "alignment"),
        gap,
        PrefixDecoder.from_pretrained(root / config.writers[chosen]),
        bank=bank,
        detector=detector,
        tags=Tags.from_pretrained(root / "tags") if config.detector else None,
        classes=class_names(root / "classes", eye) if config.class_names else None,
        blend=Blend(**config.blend),
        manners=Manners(config.least_similarity, config.least_grounding, config.least_missed, writing, whole),
        answerer=Answerer(UpDnVqa.from_pretrained(root / config.answers)) if config.answers else None,
        question_kinds=config.question_kinds,
        name=config.name if chosen == default else f"{config.name}:{chosen}",
    )


def class_names(folder: Path, encoder: Any) -> ClassNames:
    """Names' vectors from the folder, beside the classifier that came with the encoder's weights."""
    from saywhere.models.folder import load_part

    part = load_part(folder, "patchioner-class-names")
    classifier = getattr(encoder, "classifier", None)
    if classifier is None:
        raise InvalidValue("encoder", "has no classifier, which this seer's class names need")
    if "vectors" not in part.tensors:
        raise InvalidFile(part.folder, "does not hold the vectors of class names")
    weight, bias = classifier
    return ClassNames(weight, bias, part.tensors["vectors"].numpy())
