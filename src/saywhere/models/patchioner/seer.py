"""Look once, ask often: eyes that see a photo in the space of texts, and a writer that puts regions into words.

seer = open_seer("folder")                      # or saywhere.load(…), by name
look = seer.look("kitchen.jpg")                 # heavy, once
look.captions([Box(0.1, 0.2, 0.4, 0.6), trace]) # cheap, often
look.ground("a cup beside a spoon")             # a narrative: a box for every word, a trace through them
look.narrate()                                  # a narrative from the photo alone
look.answer("is there a cup?", Point(0.3, 0.4)) # if the seer has a part that answers
look.segment(Point(0.3, 0.4))                   # what is there, cut out, if the asset mobile-sam is at hand
look.scene()                                    # where the photo is taken, if the seer has a writer for that
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from saywhere.assets import MOBILE_SAM, is_cached
from saywhere.assets.checkpoint import CONFIG as PART
from saywhere.assets.checkpoint import read_json
from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.core.caption import SCENE
from saywhere.core.types import Floats32
from saywhere.models.face import name_of
from saywhere.models.patchioner.aggregation import Aggregation
from saywhere.models.patchioner.consensus import ConsensusConfig
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.eyes import Blend, EncoderEyes, Eyes
from saywhere.models.patchioner.look import SeerLook
from saywhere.models.patchioner.memory import Direct, Gap, MemoryBank, MemoryGap
from saywhere.models.patchioner.seer_config import EYE, MEMORY, SeerConfig, read_config, save_config
from saywhere.models.patchioner.tags import ClassNames, Tags
from saywhere.models.patchioner.writers import Generation, MemoryWriter, RegionWriter, VectorWriter, reads_photos
from saywhere.models.registry import embedded, open_answerer
from saywhere.models.search import GenerationConfig, Writer
from saywhere.provenance import sha256_of
from saywhere.vision import Encoder, PhotoLike, View, read_photo

if TYPE_CHECKING:
    from saywhere.language.embed import TextEncoder
    from saywhere.models.patchioner.alignment import Alignment
    from saywhere.models.patchioner.answering import RegionAnswerer
    from saywhere.models.patchioner.matching import Matcher
    from saywhere.models.patchioner.naming import BoxNaming
    from saywhere.models.patchioner.referring import Referrer
    from saywhere.vision.auxiliary import Auxiliary
    from saywhere.vision.segmenter import Segmenter

__all__ = [
    "GroundingConfig",
    "OptionalParts",
    "Seer",
    "SeerConfig",
    "SeerLook",
    "class_names",
    "open_seer",
    "open_with_writer",
    "read_config",
    "save_config",
]

SKILLS = ("caption", "ground", "narrate")
"""Of every seer; one with an answerer has "answer" and "chat", too, one that tells where photos are taken "scene", and
one whose segmenter is in the cache of assets "segment"."""
RELEASED = "patchioner-released-decoder"
"""What a decoder of the published form calls itself; `released` is opened for it alone."""
_FEWEST_WORDS = 3
"""Of a caption above objects, "in a kitchen"."""


@dataclass(frozen=True, slots=True)
class GroundingConfig:
    """When a phrase is found: from this cosine on. least_missed: if the detector knows such things and surely found
    none."""

    least_cosine: float = 0.0
    least_missed: float = 0.0


def _open_text_encoder() -> TextEncoder:
    from saywhere.language.embed import open_text_encoder

    return open_text_encoder()


@dataclass(frozen=True, slots=True)
class OptionalParts:
    """What a seer opens when it is first asked for. text_encoder: reads texts that are to be found. answerer: answers
    questions from `answer_regions`. question_kinds: that it learnt to answer, as people would ask them. referrer: finds
    what expressions mean; without it texts are found by likeness. segmenter: cuts things out, with an asset of the name
    segmenter_asset."""

    text_encoder: Callable[[], TextEncoder] = _open_text_encoder
    answerer: Callable[[], RegionAnswerer] | None = None
    question_kinds: tuple[str, ...] = ()
    referrer: Callable[[], Referrer] | None = None
    segmenter: Callable[[], Segmenter] | None = None
    segmenter_asset: str = ""


class Seer:
    """Everything that is needed to look at photos and to talk about them."""

    def __init__(
        self,
        eyes: Eyes,
        writer: RegionWriter,
        parts: OptionalParts | None = None,
        grounding: GroundingConfig | None = None,
        name: str = "seer",
    ) -> None:
        self.eyes, self.writer, self.name = eyes, writer, name
        self.parts, self.grounding = parts or OptionalParts(), grounding or GroundingConfig()

    @property
    def skills(self) -> tuple[str, ...]:
        """What it can do."""
        answers, talks = ((), ()) if self.parts.answerer is None else (("answer",), ("chat",))
        segments = ("segment",) if self._has_segmenter else ()
        return (*SKILLS, *answers, *segments, *((SCENE,) if SCENE in self.levels else ()), *talks)

    @property
    def _has_segmenter(self) -> bool:
        asset = self.parts.segmenter_asset
        return self.parts.segmenter is not None and (not asset or is_cached(asset))

    @property
    def levels(self) -> tuple[str, ...]:
        return self.writer.levels

    @property
    def generation(self) -> GenerationConfig:
        return self.writer.generation

    @cached_property
    def text_encoder(self) -> TextEncoder:
        """What reads texts; opened when the first text is to be found."""
        return self.parts.text_encoder()

    @cached_property
    def answerer(self) -> RegionAnswerer | None:
        """What answers questions, if there is such a part; opened when the first question is asked."""
        from saywhere.models.patchioner.answering import checked_answerer

        return None if self.parts.answerer is None else checked_answerer(self.parts.answerer(), self.eyes.size)

    @cached_property
    def referrer(self) -> Referrer | None:
        """What finds expressions, if there is such a part; opened when the first text is to be found."""
        return None if self.parts.referrer is None else self.parts.referrer().check(self.eyes.size)

    @cached_property
    def segmenter(self) -> Segmenter | None:
        """What cuts things out, if there is such a part; opened when the first thing is to be cut out. An asset that is
        not in the cache is an error that says how to get it."""
        return None if self.parts.segmenter is None else self.parts.segmenter()

    def look(self, photo: PhotoLike, image_id: str = "") -> SeerLook:
        """One photo. image_id: what narratives call it; by default the file's name without its ending."""
        image = read_photo(photo)
        return self.see(self.eyes.look(image), image, name_of(photo, image_id))

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> SeerLook:
        """Go on with a view that was made before, by this seer's eyes."""
        return SeerLook(self, self.eyes.align(view), image, image_id)

    def texts(self, texts: Sequence[str]) -> Floats32:
        """(n, d) vectors of length 1, in the space of regions."""
        return self.eyes.texts(self.text_encoder.embed(list(texts)))

    def queries(self, texts: Sequence[str]) -> Floats32:
        """(n, d) vectors of length 1, by which texts find whole photos: beside `SeerLook.vector`. Those of `texts`, for
        a seer that did not learn to read texts in another way for this."""
        return self.eyes.queries(list(texts), self.text_encoder)


def open_seer(folder: str | Path, writer: str = "", *, eyes: Eyes | None = None) -> Seer:
    """A seer from its folder. writer: which of its writers. eyes: instead of those it names."""
    root = Path(folder)
    config = read_config(root)
    default = next(iter(config.writers))
    chosen = writer or default
    if chosen not in config.writers:
        raise UnknownName("writer", chosen, config.writers)
    memory = root / MEMORY
    # Who made an index beside a bank wants it to be used: see docs/scale.md.
    bank = MemoryBank.load(memory, approximate=memory.with_suffix(".lance").exists())
    decoder = open_decoder(root / config.writers[chosen])
    generation = _searching(config.beams, config.no_repeat), _agreeing(config) if config.draws else None
    if reads_photos(decoder):
        # One that attends to photos learnt from their own vectors, across no gap.
        objects = VectorWriter(decoder, Direct(), *generation)
    else:
        scene_gap = _open_gap(config.scene_gap, bank, config, root) if config.scene_gap else None
        objects = VectorWriter(decoder, _open_gap(config.gap, bank, config, root), *generation, scene_gap)

    def above() -> VectorWriter:
        decoder = PrefixDecoder.from_pretrained(root / config.level_writer)
        return VectorWriter(decoder, _open_gap(config.level_gap, bank, config, root), _level_generation(config))

    return Seer(
        eyes or open_eyes(root, config),
        MemoryWriter(
            bank,
            objects,
            config.levels,
            above if config.levels else None,
            config.least_similarity,
            config.least_presence,
        ),
        OptionalParts(
            partial(_named_text_encoder, config.text_encoder, root) if config.text_encoder else _open_text_encoder,
            answerer=partial(open_answerer, root / config.answers) if config.answers else None,
            question_kinds=tuple(config.question_kinds),
            referrer=partial(_open_referrer, root / config.referring) if config.referring else None,
            segmenter=_open_segmenter,
            segmenter_asset=MOBILE_SAM,
        ),
        GroundingConfig(config.least_grounding, config.least_missed),
        config.name if chosen == default else f"{config.name}:{chosen}",
    )


def open_decoder(folder: Path) -> Writer:
    """A decoder of ours, or of the published form, whichever is in a folder."""
    if read_json(folder / PART).get("model") == RELEASED:
        from saywhere.models.patchioner.released import ReleasedDecoder

        return ReleasedDecoder.from_pretrained(folder)
    return PrefixDecoder.from_pretrained(folder)


def _open_gap(name: str, bank: MemoryBank, config: SeerConfig, folder: Path) -> Gap:
    if name == "bridge":
        from saywhere.models.patchioner.bridge import Bridge, BridgeGap

        return BridgeGap(Bridge.load(folder / "bridge"))
    return MemoryGap(bank, config.temperature) if name == "memory" else Direct()


def _named_text_encoder(name: str, folder: Path) -> TextEncoder:
    from saywhere.language.embed import open_text_encoder

    start, plus, file = name.rpartition("+")
    return open_text_encoder(f"{start}+{folder / file}" if plus and (folder / file).is_file() else name)


def _open_alignment(folder: Path, kind: str, size: int) -> Alignment:
    from saywhere.models.patchioner.alignment import LinearAlignment, SharedSpace, Talk2DinoAlignment

    if kind == "shared":
        return SharedSpace(size)
    return (LinearAlignment if kind == "linear" else Talk2DinoAlignment).from_pretrained(folder)


def _open_referrer(folder: Path) -> Referrer:
    from saywhere.models.patchioner.referring import Referrer

    return Referrer.from_pretrained(folder)


def _open_matcher(folder: Path) -> Matcher:
    from saywhere.models.patchioner.matching import Matcher

    return Matcher.from_pretrained(folder)


def _open_auxiliary() -> Auxiliary:
    from saywhere.vision.auxiliary import open_auxiliary

    return open_auxiliary()


def _open_naming(folder: Path) -> BoxNaming:
    from saywhere.models.patchioner.naming import BoxNaming

    return BoxNaming.from_pretrained(folder)


def _open_segmenter() -> Segmenter:
    from saywhere.vision.segmenter import open_segmenter

    return open_segmenter()


def open_eyes(folder: Path, config: SeerConfig, *, encoder: Encoder | None = None, detector: Any = None) -> EncoderEyes:
    """The eyes of a seer's folder. encoder, detector: instead of those it names."""
    from saywhere.vision import open_encoder

    tags = Tags.from_pretrained(folder / "tags") if config.detector else None
    if config.detector and detector is None:
        from saywhere.vision.detector import open_detector

        detector = open_detector(tags.names if tags else ())
    weighting = Aggregation(**config.weighting)  # type: ignore[arg-type]  # checked when it was read
    if config.encoder == EYE and encoder is None:
        from saywhere.models.eye.encoder import open_eye

        eye = open_eye(folder / EYE, finds=detector is None)
        matcher = cache(partial(_open_matcher, folder / config.matching)) if config.matching else None
        auxiliary = cache(_open_auxiliary) if config.auxiliary else None
        blend = Blend(**config.blend)
        naming = cache(partial(_open_naming, folder / config.naming)) if config.naming else None
        named = (detector, tags, None, blend, eye.namer)
        parts = _parts(folder, config)
        return EncoderEyes(eye, None, *named, weighting, matcher, auxiliary, naming, parts)
    looking: Any = encoder or open_encoder(config.encoder, config.input_px)
    return EncoderEyes(
        looking,
        _open_alignment(folder / "alignment", config.alignment, looking.size),
        detector,
        tags,
        class_names(folder / "classes", looking) if config.class_names else None,
        Blend(**config.blend),
        weighting=weighting,
        parts=_parts(folder, config),
    )


def _parts(folder: Path, config: SeerConfig) -> dict[str, str]:
    """See `EncoderEyes.parts`. What describes a part has the SHA-256 of its weights."""
    told = {"alignment": "alignment", "classes": "classes", "tags": "tags"}
    told |= {"matching": config.matching, "naming": config.naming}
    described = {part: folder / name / PART for part, name in told.items() if name}
    used = [config.blend, config.weighting, config.text_encoder, config.input_px, config.detector, config.auxiliary]
    digests = {part: sha256_of(path)[:16] for part, path in described.items() if path.is_file()}
    return digests | {"settings": hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest()[:16]}


def open_with_writer(folder: str | Path, part: str = "", *, base: Seer | None = None) -> Seer:
    """A decoder that somebody trained, with the eyes and the memory of the model that comes with the package.

    base: a seer to take them from instead. The decoder must have learnt from vectors of the same text encoder.
    """
    if part:
        raise UnknownName("writer", part, ())
    seer = base or open_seer(embedded())
    decoder = PrefixDecoder.from_pretrained(folder)
    reads, sees = decoder.config.vector_size, seer.eyes.size
    if reads != sees:
        raise InvalidFile(folder, f"reads vectors of {reads} numbers, but those of {seer.name} have {sees}")
    if not isinstance(seer.writer, MemoryWriter):
        raise InvalidFile(folder, f"reads vectors of texts, which the writer of {seer.name} has no memory of")
    own = VectorWriter(decoder, seer.writer.objects.gap, seer.writer.generation)
    writer = MemoryWriter(seer.writer.bank, own, least_similarity=seer.writer.least_similarity)
    parts = OptionalParts(seer.parts.text_encoder)
    return Seer(seer.eyes, writer, parts, seer.grounding, Path(folder).resolve().name)


def _agreeing(config: SeerConfig) -> ConsensusConfig:
    return ConsensusConfig(
        draws=config.draws, temperature=config.draw_temperature, no_repeat=config.no_repeat, among=config.among
    )


def _level_generation(config: SeerConfig) -> Generation:
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
