"""TraceVLM on the small body as a model that looks at photos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from saywhere.core import Box, Grounded, Region, Trace, UnknownName, Word
from saywhere.core.alignment import WordBoxes
from saywhere.language.phrases import phrase_spans
from saywhere.language.requests import is_about_the_whole, thing_looked_for
from saywhere.models.common.modes import eval_mode
from saywhere.models.face import Spoken, name_of, words_to_find
from saywhere.models.search import GenerationConfig
from saywhere.models.tracevlm.decode import rate
from saywhere.models.tracevlm.examples import TASKS, answered, asked
from saywhere.models.tracevlm.face import TraceVlmConversation, TraceVlmLook, TraceVlmModel
from saywhere.models.tracevlm.small_input import photo_features
from saywhere.models.tracevlm.small_model import SmallTraceVLM
from saywhere.vision import PhotoLike, View, read_photo

MOST_TOKENS: Final = 120
_HERE = "Here."


class SmallTraceModel(TraceVlmModel):
    """A small TraceVLM, ready to look."""

    network: SmallTraceVLM
    generation = GenerationConfig(max_words=MOST_TOKENS, no_repeat=3)

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

    def caption_task(self, region: Region) -> str:
        """A trace is told along; of anything else it learnt to say what it is."""
        return "caption" if isinstance(region, Trace) else "interpret"

    def chat(self) -> SmallTraceConversation:
        return SmallTraceConversation(self)

    def find(self, texts: Sequence[str]) -> list[Box | None]:
        """Of the things found, the one whose box the model would likeliest draw. Where nothing was found, the box that
        it draws, or None if that cannot be read."""
        things = [Box(*box) for box in photo_features(self.view).boxes.tolist()]
        if not things:
            return self.draw(texts)
        model, found = self.model.network, list[Box | None]()
        for text in texts:
            talks = [[asked("box", " ".join(words_to_find(text))), answered(box)] for box in things]
            found.append(things[int(rate(model, self.seen, talks).argmax())])
        return found

    def grounded(self, text: str) -> Grounded:
        """Each noun phrase is looked for; the words between stay with the one before."""
        words = words_to_find(text)
        spans = [span for span in phrase_spans([Word(word, 0.0, 0.0) for word in words]) if span.noun]
        boxes = self.find([" ".join(words[span.first : span.stop]) for span in spans])
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
        return super()._say(TASKS["describe"] if is_about_the_whole(text) else text, None, hear)

    def _point_at(self, what: str, hear: Callable[[str], None] | None) -> Spoken:
        """The box that it would likeliest draw among those of things found: it chooses better than it draws."""
        (box,) = self._look.find([what])
        if box is None:
            return super()._say(f"{TASKS['box']}{what}", None, hear)
        self.turns = [*self.turns, asked("box", what), answered(box)]
        if hear is not None:
            hear(_HERE)
        return Spoken(_HERE, (box,))


def open_small(folder: str | Path, part: str = "") -> SmallTraceModel:
    """What `SmallTraceVLM.save_pretrained` wrote, ready to look."""
    from saywhere.models.registry import TRACE, embedded_name

    if part:
        raise UnknownName("part of a TraceVLM", part, ())
    shipped = embedded_name(Path(folder)) == TRACE
    return SmallTraceModel(SmallTraceVLM.from_pretrained(folder), TRACE if shipped else Path(folder).resolve().name)
