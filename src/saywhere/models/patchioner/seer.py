"""Look once, ask often: an encoder, its alignment, a memory and a writer, joined.

seer = open_seer("folder")                      # or saywhere.load(…), by name
look = seer.look("kitchen.jpg")                 # heavy, once
look.captions([Box(0.1, 0.2, 0.4, 0.6), trace]) # cheap, often
look.ground("a cup beside a spoon")             # a narrative: a box for every word, a trace through them
look.narrate()                                  # a narrative from the photo alone
look.answer("is there a cup?", Point(0.3, 0.4)) # if the seer has a part that answers
look.scene()                                    # where the photo is taken, if the seer has a writer for that
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.core.types import Floats32
from saywhere.models.patchioner.alignment import Alignment, LinearAlignment
from saywhere.models.patchioner.answering import Answerer, checked_answerer
from saywhere.models.patchioner.consensus import ConsensusConfig, InverseFrequency, consensus
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.gap import Direct, Gap, MemoryGap
from saywhere.models.patchioner.levels import OBJECT, SCENE, check_level, checked_levels
from saywhere.models.patchioner.look import Look, RegionCaption
from saywhere.models.patchioner.memory import MemoryBank, Projected
from saywhere.models.patchioner.seer_config import SeerConfig, read_config, save_config
from saywhere.models.patchioner.sight import Blend
from saywhere.models.patchioner.tags import ClassNames, Tags
from saywhere.models.search import GenerationConfig, Writer, Written
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

SKILLS = ("caption", "ground", "narrate")
"""Of every seer; one with an answerer has "answer", too, and one that tells where photos are taken "scene"."""
_FEWEST_WORDS = 3
"""Of a caption above objects, "in a kitchen"."""
_HEARD_OF = 3
"""So many times more sentences are fetched than are heard, because short ones are not."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How a seer behaves.

    least_similarity: a caption is sure from this cosine with the nearest sentence on. least_grounding: a phrase is
    found from this cosine on; least_missed: if the detector knows such things and surely found none. writing: how
    words are chosen. whole: how they are chosen for scenes (the whole photo, sets of boxes), if otherwise: they are
    worth more time. level: how they are chosen for captions above objects, if otherwise.
    """

    least_similarity: float = 0.0
    least_grounding: float = 0.0
    least_missed: float = 0.0
    writing: GenerationConfig = field(default_factory=GenerationConfig)
    whole: GenerationConfig | ConsensusConfig | None = None
    level: GenerationConfig | ConsensusConfig | None = None


class Seer:
    """Everything that is needed to look at photos and to talk about them.

    detector, tags: both or none. names: what the encoder's own classifier calls things. bank: gives each caption its
    nearest sentences, whatever the gap is closed with. answerer: answers questions from `answer_regions`.
    question_kinds: kinds of questions that it learnt to answer, as people would ask them. level_writer: tells regions
    at `levels` above objects, from what `level_gap` makes of their vectors; both or none.
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
        level_writer: Writer | None = None,
        levels: Sequence[str] = (),
        level_gap: MemoryGap | Direct | None = None,
        name: str = "seer",
    ) -> None:
        if (detector is None) != (tags is None):
            raise InvalidValue("seer", "a detector and tags for what it finds come together")
        self.encoder, self.alignment, self.gap, self.writer, self.bank = encoder, alignment, gap, writer, bank
        self.detector, self.tags, self.classes = detector, tags, classes
        self.blend, self.manners, self.name = blend or Blend(), manners or Manners(), name
        self.answerer = None if answerer is None else checked_answerer(answerer, alignment.size)
        self.question_kinds = tuple(question_kinds)
        self.levels = (OBJECT, *checked_levels(levels, level_writer))
        self.level_writer, self.level_gap = level_writer, level_gap or Direct()
        self._text_encoder = text_encoder

    @property
    def skills(self) -> tuple[str, ...]:
        """What it can do."""
        answers = () if self.answerer is None else ("answer",)
        return (*SKILLS, *answers, *((SCENE,) if SCENE in self.levels else ()))

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
    def rarity(self) -> InverseFrequency:
        """How rare words are in the memory; counted when the first caption is written by consensus."""
        return InverseFrequency(self.bank.sentences)

    def told_at(self, level: str) -> tuple[Writer, Gap]:
        """The writer of a level and how the gap is closed for it. A level that the seer does not know is refused."""
        check_level(level, self.levels, self.name)
        if level == OBJECT or self.level_writer is None:
            return self.writer, self.gap
        return self.level_writer, self.level_gap

    def tell(
        self, vectors: Floats32, way: GenerationConfig | ConsensusConfig, gap: Gap | None = None, level: str = OBJECT
    ) -> tuple[list[Written], Projected]:
        """A text for each of (m, d) vectors of length 1, and what was made of the vectors before. gap: how to close
        it; by default as the level has it."""
        writer, own_gap = self.told_at(level)
        closed = (gap or own_gap).close(vectors)
        prompts = None if level == OBJECT else (level,) * len(vectors)
        if isinstance(way, GenerationConfig):
            return writer.write(closed.vectors, way, prompts), closed
        if not isinstance(writer, PrefixDecoder):
            kind = type(writer).__name__
            raise InvalidValue("consensus", f"needs a writer that draws several texts, not a {kind}")
        careful = [writer.write(rows, way.careful, prompts) for rows in (closed.vectors, vectors)]
        drawn = writer.draw(closed.vectors, way.draws, way.drawing, prompts)
        near_each = self.bank.project(vectors, nearest=_HEARD_OF * way.nearest).nearest
        chosen = []
        for first, second, others, near in zip(*careful, drawn, near_each, strict=True):
            candidates = [first, second, *others]
            best = consensus([text.text for text in candidates], way.references(near), self.rarity, way.softness)
            chosen.append(candidates[best])
        return chosen, closed

    def texts(self, texts: Sequence[str]) -> Floats32:
        """(n, d) vectors of length 1, in the space of regions."""
        return self.alignment.texts(self.text_encoder.embed(list(texts)))


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
    gaps: dict[str, MemoryGap | Direct] = {"memory": MemoryGap(bank, config.temperature), "direct": Direct()}
    return Seer(
        eye,
        LinearAlignment.from_pretrained(root / "alignment"),
        gaps[config.gap],
        PrefixDecoder.from_pretrained(root / config.writers[chosen]),
        bank=bank,
        detector=detector,
        tags=Tags.from_pretrained(root / "tags") if config.detector else None,
        classes=class_names(root / "classes", eye) if config.class_names else None,
        blend=Blend(**config.blend),
        manners=_manners(config),
        answerer=Answerer(UpDnVqa.from_pretrained(root / config.answers)) if config.answers else None,
        question_kinds=config.question_kinds,
        level_writer=PrefixDecoder.from_pretrained(root / config.level_writer) if config.levels else None,
        levels=config.levels,
        level_gap=gaps[config.level_gap],
        name=config.name if chosen == default else f"{config.name}:{chosen}",
    )


def _manners(config: SeerConfig) -> Manners:
    return Manners(
        config.least_similarity,
        config.least_grounding,
        config.least_missed,
        _searching(config.beams, config.no_repeat),
        ConsensusConfig(draws=config.draws, no_repeat=config.no_repeat) if config.draws else None,
        _level_manners(config) if config.levels else None,
    )


def _level_manners(config: SeerConfig) -> GenerationConfig | ConsensusConfig:
    if config.level_draws:
        return ConsensusConfig(
            config.level_beams, config.level_draws, no_repeat=config.no_repeat, min_words=_FEWEST_WORDS
        )
    return _searching(config.level_beams, config.no_repeat)


def _searching(beams: int, no_repeat: int) -> GenerationConfig:
    return GenerationConfig("beam" if beams > 1 else "greedy", beams=beams, no_repeat=no_repeat)


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
