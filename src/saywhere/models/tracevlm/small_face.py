"""TraceVLM on the small body as a model that looks at photos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image

from saywhere.assets import MOBILE_SAM, is_cached
from saywhere.core import Box, Grounded, InvalidValue, Mask, Region, Trace, UnknownName, Word
from saywhere.core.alignment import WordBoxes
from saywhere.language.coco_aliases import first_named, is_bare_name
from saywhere.language.phrases import phrase_spans
from saywhere.language.requests import is_about_the_whole, thing_asked_after, thing_looked_for
from saywhere.models.common.modes import eval_mode
from saywhere.models.face import Answer, Spoken, name_of, words_to_find
from saywhere.models.search import GenerationConfig
from saywhere.models.tracevlm.decode import rate
from saywhere.models.tracevlm.examples import TASKS, Exchange, Part, answered, asked
from saywhere.models.tracevlm.face import TraceVlmConversation, TraceVlmLook, TraceVlmModel
from saywhere.models.tracevlm.small_input import photo_features
from saywhere.models.tracevlm.small_model import SmallTraceVLM
from saywhere.models.tracevlm.small_photos import CLASSES
from saywhere.vision import PhotoLike, View, read_photo

if TYPE_CHECKING:
    from saywhere.vision.segmenter import Segmenter, SegmenterView

MOST_TOKENS: Final = 120
_HERE = "Here."
_SURE_OF: Final = {"yes": 0.995, "no": 0.84}
"""How often such an answer is right: of 1,026 questions about 513 validation photos, half of them with yes as truth."""


class SmallTraceModel(TraceVlmModel):
    """A small TraceVLM, ready to look."""

    network: SmallTraceVLM
    generation = GenerationConfig(max_words=MOST_TOKENS, no_repeat=3)

    @property
    def skills(self) -> tuple[str, ...]:
        """Things can be cut out where MobileSAM is in the cache of assets."""
        cuts = ("segment",) if is_cached(MOBILE_SAM) else ()
        return ("caption", "ground", "narrate", "answer", *cuts, "chat")

    @cached_property
    def segmenter(self) -> Segmenter:
        """Opened when the first thing is to be cut out; an asset that is not in the cache is an error."""
        from saywhere.vision.segmenter import open_segmenter

        return open_segmenter()

    def look(self, photo: PhotoLike, image_id: str = "") -> SmallTraceLook:
        image = read_photo(photo)
        return self.see(self.network.body.inputs.look(image), image, name_of(photo, image_id))

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> SmallTraceLook:
        places, grids = self.network.body.inputs.places([photo_features(view)])
        with eval_mode(self.network):
            seen = self.network.body.see(places.to(self.network.device), grids)
        return SmallTraceLook(self, view, image, image_id, seen)


class SmallTraceLook(TraceVlmLook):
    """A photo, seen once. It also puts boxes around what words name."""

    model: SmallTraceModel

    def caption_task(self, region: Region) -> str:
        """A trace is told along; of anything else it learnt to say what it is."""
        return "caption" if isinstance(region, Trace) else "interpret"

    def chat(self) -> SmallTraceConversation:
        return SmallTraceConversation(self)

    def find_all(self, texts: Sequence[str]) -> list[Box | None]:
        """Of the things found, the one whose box the model would likeliest draw; where some are of the kind that a text
        names first, one of those. None where a text names a kind and says no more, and none of it was found. Where
        nothing at all was found, the box that it draws, or None if that cannot be read."""
        seen, said = photo_features(self.view), [" ".join(words_to_find(text)) for text in texts]
        things = [(Box(*box), CLASSES[kind]) for box, kind in zip(seen.boxes.tolist(), seen.classes, strict=True)]
        if things:
            return [self._likeliest(text, things) for text in said]
        drawn = iter(self.draw([text for text in said if not is_bare_name(text)]))
        return [None if is_bare_name(text) else next(drawn) for text in said]

    def _likeliest(self, text: str, things: Sequence[tuple[Box, str]]) -> Box | None:
        meant = first_named(text)
        boxes = [box for box, kind in things if kind in meant]
        if not boxes and is_bare_name(text):
            return None
        boxes = boxes or [box for box, _ in things]
        if len(boxes) == 1:
            return boxes[0]
        talks = [[asked("box", text), answered(box)] for box in boxes]
        return boxes[int(rate(self.model.network, self.seen, talks).argmax())]

    def answer(self, question: str, region: Region | None = None) -> Answer:
        """Whether a kind of things is there, the detector tells: the body learnt that badly. The rest it answers."""
        said = self.is_there(question) if region is None else ""
        if not said:
            return super().answer(question, region)
        nowhere = np.zeros(self.view.frame.rows * self.view.frame.cols, dtype=np.float32)
        return Answer(said, _SURE_OF[said], ((said, _SURE_OF[said]),), nowhere)

    def is_there(self, question: str) -> str:
        """ "yes" or "no" to a question whether a kind of things is there, by what was found; "" to any other."""
        what = thing_asked_after(question)
        if not is_bare_name(what):
            return ""
        there = photo_features(self.view).classes
        return "yes" if first_named(what).intersection(CLASSES[kind] for kind in there) else "no"

    def segment(self, what: Region | str) -> Mask:
        """What is pointed at, cut out by MobileSAM; of a text, what `find` finds. The body itself learnt no masks."""
        if isinstance(what, str):
            (box,) = self.find_all([what])
            if box is None:
                raise InvalidValue(f"{what!r}", "seems not to be in the photo", "point at it with a box")
            what = box
        return self._segmenter_view.masks([what])[0]

    @cached_property
    def _segmenter_view(self) -> SegmenterView:
        if self.image is None:
            raise InvalidValue("view", "things are cut out of the photo itself, which is not there", "look at it again")
        return self.model.segmenter.look(self.image)

    def grounded(self, text: str) -> Grounded:
        """Each noun phrase is looked for; the words between stay with the one before."""
        words = words_to_find(text)
        spans = [span for span in phrase_spans([Word(word, 0.0, 0.0) for word in words]) if span.noun]
        boxes = self.find_all([" ".join(words[span.first : span.stop]) for span in spans])
        placed = np.full((len(words), 4), np.nan)
        for span, box in zip(spans, boxes, strict=True):
            placed[span.first :] = np.nan if box is None else box.xyxy
        return Grounded(tuple(words), WordBoxes(placed))


class SmallTraceConversation(TraceVlmConversation):
    """People ask in their own words for what the small body learnt to do in a few: those are put for theirs."""

    _look: SmallTraceLook

    def _say(self, text: str, region: Region | None, hear: Callable[[str], None] | None) -> Spoken:
        if region is not None:
            return super()._say(text, region, hear)
        if what := thing_looked_for(text):
            return self._point_at(what, hear)
        if said := self._look.is_there(text):
            return self._told(asked("dialogue", text.strip()), Spoken(said), hear)
        return super()._say(TASKS["describe"] if is_about_the_whole(text) else text, None, hear)

    def _point_at(self, what: str, hear: Callable[[str], None] | None) -> Spoken:
        """The box that it would likeliest draw among those of things found: it chooses better than it draws."""
        (box,) = self._look.find_all([what])
        if box is None:
            return self._told(asked("box", what), Spoken(f"I do not see {what}."), hear)
        return self._told(asked("box", what), Spoken(_HERE, (box,)), hear)

    def _told(self, question: Exchange, spoken: Spoken, hear: Callable[[str], None] | None) -> Spoken:
        """What others than the body answered, kept in the conversation as if it had."""
        boxes: list[Part] = [region for region in spoken.regions if isinstance(region, Box)]
        self.turns = [*self.turns, question, answered(*(boxes or [spoken.text]))]
        if hear is not None:
            hear(spoken.text)
        return spoken


def open_small(folder: str | Path, part: str = "") -> SmallTraceModel:
    """What `SmallTraceVLM.save_pretrained` wrote, ready to look."""
    from saywhere.models.registry import TRACE, embedded_name

    if part:
        raise UnknownName("part of a TraceVLM", part, ())
    shipped = embedded_name(Path(folder)) == TRACE
    return SmallTraceModel(SmallTraceVLM.from_pretrained(folder), TRACE if shipped else Path(folder).resolve().name)
