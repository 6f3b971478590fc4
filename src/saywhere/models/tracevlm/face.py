"""TraceVLM as a model that looks at photos: it captions, grounds, narrates, answers, cuts out, and talks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saywhere.core import (
    Box,
    Caption,
    Grounded,
    InvalidValue,
    Mask,
    Narrative,
    Region,
    Trace,
    UnknownName,
    Utterance,
    WholeImage,
)
from saywhere.core.caption import OBJECT
from saywhere.core.grounded import WORDS_PER_S
from saywhere.models.common.modes import eval_mode
from saywhere.models.face import (
    Answer,
    Look,
    Spoken,
    StreamingConversation,
    check_level,
    check_skill,
    name_of,
    words_to_find,
)
from saywhere.models.search import GenerationConfig
from saywhere.models.tracevlm import decode
from saywhere.models.tracevlm.decode import WrittenAnswer
from saywhere.models.tracevlm.examples import ASSISTANT, Exchange, asked
from saywhere.models.tracevlm.network import TraceVLM
from saywhere.models.tracevlm.parsing import AnswerPiece, AnswerText, ParsedAnswer, parse
from saywhere.models.tracevlm.qwen import VisualFeatures
from saywhere.models.tracevlm.segmentation import resized
from saywhere.models.tracevlm.trajectory import of_region
from saywhere.vision import PhotoLike, View, read_photo

_SURE = 0.5


class TraceVlmModel:
    """A TraceVLM, ready to look."""

    levels = (OBJECT,)
    generation = GenerationConfig(max_words=decode.MOST_WORDS)

    def __init__(self, network: TraceVLM, name: str = "tracevlm") -> None:
        self.network, self.name = network.eval(), name

    @property
    def skills(self) -> tuple[str, ...]:
        cuts = () if self.network.segmentation is None else ("segment",)
        return ("caption", "ground", "narrate", "answer", *cuts, "chat")

    def look(self, photo: PhotoLike, image_id: str = "") -> TraceVlmLook:
        image = read_photo(photo)
        seen = self.features(image)
        return TraceVlmLook(self, self._view(image, seen), image, name_of(photo, image_id), seen)

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> TraceVlmLook:
        return TraceVlmLook(self, view, image, image_id)

    def features(self, image: Image.Image) -> VisualFeatures:
        """What the eye sees, before anybody points."""
        pixels, grids = self.network.reader.inputs.prepare([image])
        with eval_mode(self.network):
            return self.network.body.see(pixels.to(self.network.device), grids.to(self.network.device))

    def _view(self, image: Image.Image, seen: VisualFeatures) -> View:
        frame = self.network.reader.inputs.frame(image.size, seen.grids[0])
        patches = seen.merged[0].float().cpu().numpy().reshape(*frame.grid, -1)
        return View(frame, patches, patches.mean(axis=(0, 1)))


class TraceVlmLook(Look):
    """A photo, seen once; whatever is asked goes through perception and the language model alone."""

    model: TraceVlmModel

    def __init__(
        self,
        model: TraceVlmModel,
        view: View,
        image: Image.Image | None = None,
        image_id: str = "photo",
        seen: VisualFeatures | None = None,
    ) -> None:
        super().__init__(model, view, image, image_id)
        self._given = seen

    @cached_property
    def seen(self) -> VisualFeatures:
        if self._given is not None:
            return self._given
        if self.image is None:
            raise InvalidValue("view", f"the model {self.model.name} needs the photo itself", "look at it again")
        return self.model.features(self.image)

    def without_photo(self) -> TraceVlmLook:
        return TraceVlmLook(self.model, self.view, None, self.image_id, self.seen)

    def captions(
        self, regions: Sequence[Region], how: GenerationConfig | None = None, level: str = OBJECT
    ) -> list[Caption]:
        check_level(level, self.levels, self.model.name)
        drawn = [of_region(region, self.view.frame) for region in regions]
        tasks = [self.caption_task(region) for region in regions]
        talks = [
            [asked("describe") if one is None else asked(task, one)] for task, one in zip(tasks, drawn, strict=True)
        ]
        return [
            Caption(self.parsed(said).text, said.score, region, origin=self.model.name)
            for said, region in zip(self.write(talks, how), regions, strict=True)
        ]

    def caption_task(self, region: Region) -> str:  # noqa: ARG002 - for bodies that were taught otherwise
        """Which task asks for the caption of a region."""
        return "caption"

    def ground(self, text: str) -> Narrative:
        words = words_to_find(text)
        length_s = len(words) / WORDS_PER_S
        said = self.write([[asked("trajectory", " ".join(words))]])[0]
        traces = [piece.trace for piece in self.parsed(said).pieces if piece.trace is not None]
        points = np.concatenate([trace.xy for trace in traces]) if traces else np.empty((0, 2))
        trace = Trace(np.column_stack([points, np.linspace(0, length_s, len(points))]))
        spoken = (Utterance(" ".join(words), 0.0, length_s),)
        return Narrative(self.image_id, " ".join(words), spoken, trace, origin=self.model.name)

    def grounded(self, text: str) -> Grounded:
        told = self.ground(text)
        return Grounded(tuple(word.text for word in told.words), told.word_boxes())

    def find_all(self, texts: Sequence[str]) -> list[Box | None]:
        return self.draw(texts)

    def draw(self, texts: Sequence[str]) -> list[Box | None]:
        """The box that the model draws by itself around what each text names; None where it cannot be read."""
        said = self.write([[asked("box", " ".join(words_to_find(text)))] for text in texts]) if texts else []
        boxes = [self.parsed(one).boxes for one in said]
        return [some[0] if some else None for some in boxes]

    def narrate(self, most: int = 4, seed: int = 0) -> Narrative:  # noqa: ARG002 - it tells the photo in one go
        said = self.write([[asked("narrate")]])[0]
        return told(self.parsed(said).pieces, self.image_id, self.model.name)

    def answer(self, question: str, region: Region | None = None) -> Answer:
        said = self.write([[self._said("reason", question, region)]])[0]
        text = self.parsed(said).text
        probability = math.exp(said.score * max(1, len(said.tokens)))
        nowhere = np.zeros(self.view.frame.rows * self.view.frame.cols, dtype=np.float32)
        return Answer(text, probability, ((text, probability),), nowhere)

    def segment(self, what: Region | str) -> Mask:
        check_skill(self.model, "segment")
        if isinstance(what, str):
            question = asked("mask", " ".join(words_to_find(what)))
        else:
            drawn = of_region(what, self.view.frame)
            if drawn is None:
                raise InvalidValue("region", "is the whole photo: point at what to cut out")
            question = asked("segment", drawn)
        logits = decode.segment(self.model.network, self.seen, [question])
        found = self.masks(logits)
        if not found:
            raise InvalidValue("mask", "is empty: the model finds nothing there to cut out", "point at something else")
        return found[0]

    def chat(self) -> TraceVlmConversation:
        return TraceVlmConversation(self)

    def write(
        self,
        talks: Sequence[Sequence[Exchange]],
        how: GenerationConfig | None = None,
        hear: Callable[[str], None] | None = None,
    ) -> list[WrittenAnswer]:
        """What the model says in each of some talks about the photo. hear: see `decode.write`."""
        return decode.write(self.model.network, self.seen, talks, how or self.model.generation, hear)

    @property
    def images(self) -> int:
        """How many the talks are about: one, or the frames of a video."""
        return len(self.seen.grids)

    def parsed(self, said: WrittenAnswer) -> ParsedAnswer:
        """What an answer holds."""
        return parse(said.text, self.images)

    def masks(self, logits: Sequence[Tensor]) -> list[Mask]:
        """What was cut out, in the photo's own resolution; without masks that are empty."""
        width, height = self.view.frame.photo_size
        shares = [resized(one[None], (height, width))[0].sigmoid().cpu().numpy() for one in logits]
        return [Mask(one > _SURE) for one in shares if (one > _SURE).any()]

    def _said(self, task: str, text: str, region: Region | None) -> Exchange:
        if not text.strip():
            raise InvalidValue("question", "has no word")
        drawn = of_region(WholeImage() if region is None else region, self.view.frame)
        return asked(task, text.strip()) if drawn is None else asked(task, drawn, " ", text.strip())


class TraceVlmConversation(StreamingConversation):
    """turns: all that was said so far."""

    def __init__(self, look: TraceVlmLook) -> None:
        self._look = look
        self.turns: list[Exchange] = []

    def say(self, text: str, region: Region | None = None) -> Spoken:
        return self._say(text, region, None)

    def stream(self, text: str, region: Region | None, hear: Callable[[str], None]) -> Spoken:
        heard = AnswerText(hear, self._look.images)
        spoken = self._say(text, region, heard.write)
        heard.end(spoken.text)
        return spoken

    def _say(self, text: str, region: Region | None, hear: Callable[[str], None] | None) -> Spoken:
        talk = [*self.turns, self._look._said("dialogue", text, region)]
        said = self._look.write([talk], hear=hear)[0]
        parsed = self._look.parsed(said)
        masks = self._masks(talk, said, parsed.segments)
        traces = [piece.trace for piece in parsed.pieces if piece.trace is not None]
        self.turns = [*talk, Exchange(ASSISTANT, parsed.parts or (" ",))]
        lost = [*parsed.lost, *([] if said.ended else ["the end: there was no room for more"])]
        empty = len(parsed.segments) - len(masks)
        lost += [f"{empty} empty {'mask' if empty == 1 else 'masks'}"] if empty else []
        return Spoken(parsed.text, (*traces, *parsed.boxes, *masks), said.forgotten, tuple(lost))

    def _masks(self, talk: Sequence[Exchange], said: WrittenAnswer, images: Sequence[int]) -> list[Mask]:
        """images: which one each thing that is cut out is in."""
        network = self._look.model.network
        if not images or network.segmentation is None:
            return []
        return self._look.masks(decode.segment(network, self._look.seen, talk, said.tokens, images, said.forgotten))


def told(pieces: Sequence[AnswerPiece], image_id: str, origin: str) -> Narrative:
    """Words and trajectories as a narrative that is spoken at an even pace."""
    said: list[Utterance] = []
    strokes = []
    now_s = 0.0
    for piece in pieces:
        start_s, now_s = now_s, now_s + len(piece.words.split()) / WORDS_PER_S
        said += [Utterance(piece.words, start_s, now_s)] if piece.words else []
        if piece.trace is not None:
            strokes.append(np.column_stack([piece.trace.xy, np.linspace(start_s, now_s, len(piece.trace))]))
    text = " ".join(utterance.text for utterance in said)
    return Narrative(image_id, text, tuple(said), Trace.from_segments(strokes), origin=origin)


def open_tracevlm(folder: str | Path, part: str = "") -> TraceVlmModel:
    """What `TraceVLM.save_pretrained` wrote, ready to look."""
    if part:
        raise UnknownName("part of a TraceVLM", part, ())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = TraceVLM.from_pretrained(folder, dtype="bfloat16" if device == "cuda" else "float32")
    return TraceVlmModel(network.to(device), Path(folder).resolve().name)
