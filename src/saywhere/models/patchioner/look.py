"""One photo, looked at by a seer: captions of regions, texts found in it, narratives, answers; all from one view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.core import Box, Caption, InvalidValue, Region, WholeImage
from saywhere.core.caption import OBJECT
from saywhere.core.types import Floats32
from saywhere.language.coco_aliases import classes_named, is_bare_name
from saywhere.models.common.overlaps import pointed
from saywhere.models.face import Answer, Look, check_level, words_to_find
from saywhere.models.patchioner.eyes import AlignedView
from saywhere.models.patchioner.writers import Generation

if TYPE_CHECKING:
    from saywhere.core import AttentionMap, Grounded, Mask, Narrative
    from saywhere.models.patchioner.answering import RegionAnswerer
    from saywhere.models.patchioner.candidates import Candidates
    from saywhere.models.patchioner.conversation import SeerConversation
    from saywhere.models.patchioner.grounding import Grounder, PhraseBox
    from saywhere.models.patchioner.referring import Referred
    from saywhere.models.patchioner.seer import Seer
    from saywhere.models.patchioner.why import WordScore
    from saywhere.models.region_features import RegionFeatures
    from saywhere.vision.segmenter import SegmenterView

_MOST_TOLD = 4


class SeerLook(Look):
    """One photo, looked at by a seer. aligned: its view in the space of texts."""

    def __init__(self, seer: Seer, aligned: AlignedView, image: Image.Image | None, image_id: str) -> None:
        super().__init__(seer, aligned.view, image, image_id)
        self.seer, self.aligned = seer, aligned
        self.question_kinds = seer.parts.question_kinds

    def captions(self, regions: Sequence[Region], how: Generation | None = None, level: str = OBJECT) -> list[Caption]:
        """What each region shows. The same, but for rounding, alone and among others. how: by default as the seer does,
        which may take more care with the whole photo and with sets of boxes. level: one of `levels`."""
        check_level(level, self.levels, self.seer.name)
        written = self.seer.writer.captions(self.aligned, regions, how, level)
        sure = not self.why_no_photo
        return [replace(caption, origin=self.seer.name, sure=sure and caption.sure) for caption in written]

    def without_photo(self) -> SeerLook:
        """That a picture is hardly a photograph is still known."""
        kept = SeerLook(self.seer, self.aligned, None, self.image_id)
        kept.why_no_photo = self.why_no_photo
        return kept

    def weighing(self, weighting: str) -> SeerLook:
        """One of `aggregation.WEIGHTINGS`."""
        from saywhere.models.patchioner.aggregation import Aggregation

        return SeerLook(self.seer, self.aligned.by(Aggregation.named(weighting)), self.image, self.image_id)

    @cached_property
    def why_no_photo(self) -> str:
        """Why the picture is hardly a photograph, of which nothing is sure; empty if it may be one, or is not known."""
        from saywhere.vision.photo import why_no_photo

        return "" if self.image is None else why_no_photo(self.image)

    def weights(self, regions: Sequence[Region]) -> NDArray[np.float32]:
        return self.aligned.weights(regions)

    def vector(self) -> Floats32:
        return self.aligned.contrast()

    def similarity(self, text: str) -> AttentionMap:
        """Where a text is: the cosine of every patch with it, above the lowest; even if all patches look the same."""
        cosines = self._grounder.similarity(self.seer.texts([text])[0])
        above = cosines - cosines.min()
        from saywhere.core import AttentionMap

        return AttentionMap(above if above.any() else np.ones_like(above))

    def find_all(self, texts: Sequence[str]) -> list[Box | None]:
        places = map(self.find, texts)
        return [None if place is None else Box(*place.box_xyxy) for place in places]

    def find(self, text: str) -> PhraseBox | None:
        """Where one thing is, such as "a red cup" or "the second horse from the right", and how alike it is; None if it
        seems not to be there. A seer that learnt to find expressions does so; see `Referrer`."""
        if not text.strip():
            raise InvalidValue("text", "has no word")
        return self._find(text, self.seer.texts([text])[0])

    def find_alike(self, text: str, vector: Floats32 | None = None) -> PhraseBox | None:
        """The same by likeness alone: the surest thing of a kind that the text names, or the box that is most like it.
        vector: of the text, if that is known."""
        if not text.strip():
            raise InvalidValue("text", "has no word")
        return self._find_alike(text, self.seer.texts([text])[0] if vector is None else vector)

    def grounded(self, text: str) -> Grounded:
        """Each word of a text with its box. Phrases that name things are looked for; the words between them stay with
        the last thing, see `spread`."""
        return self._placed(words_to_find(text))

    def presence(self, kind: str) -> float:
        """By what eye and detector say together."""
        return self.aligned.presence(kind)

    def narrate(self, most: int = _MOST_TOLD, seed: int = 0) -> Narrative:
        """Words and a trace from the photo alone: the whole first, then at most `most` things that it did not name.
        seed: of the choice among sentences that say the same; no more of them begin alike than must."""
        from saywhere.models.patchioner.narration import compose, worth_telling

        if most < 0:
            raise InvalidValue("most", f"is {most}, not at least 0")
        things = worth_telling(self.view.found, 2 * most)
        whole, *parts = self.captions([WholeImage(), *(Box(*thing.box_xyxy) for thing in things)])
        told = compose(whole.text, [part for part in parts if part.sure][:most], self._placed, seed)
        return told.narrative(self.image_id, origin=self.seer.name)

    def word_score(self, region: Region, text: str, index: int, level: str = OBJECT) -> WordScore:
        """See `Look.word_score`. Of a caption chosen by consensus, too, the vector that the memory made counts."""
        from saywhere.models.patchioner.why import WordScore

        return WordScore(self, region, text, index, level)

    @cached_property
    def places(self) -> RegionFeatures:
        """What answers are made from; see `answer_regions` and `state_places`."""
        from saywhere.models.patchioner.answering import places_for

        return places_for(self.seer.answerer, self.aligned)

    @cached_property
    def region_set(self) -> RegionFeatures:
        """The whole, things and windows, each once, by vectors in the space of texts; see `answer_regions`."""
        from saywhere.models.patchioner.answering import answer_regions

        return answer_regions(self.aligned)

    def chat(self) -> SeerConversation:
        """A talk about the photo, which remembers what was pointed at."""
        from saywhere.models.patchioner.conversation import SeerConversation

        if self.seer.parts.answerer is None:
            self._refuse("chat")
        return SeerConversation(self)

    def answer(self, question: str, region: Region | None = None) -> Answer:
        """The answer to a question about the photo, or about what is pointed at."""
        answerer = self._answerer
        fits = pointed(self.places.boxes_xyxy, region, self.view.frame)
        [answer] = answerer.answer([self.places], [question], [fits])
        return answer

    def answer_score(self, question: str, region: Region | None = None, answer: str = "") -> Any:
        answerer = self._answerer
        fits = pointed(self.places.boxes_xyxy, region, self.view.frame)
        return answerer.score(self.places, question, fits, answer)

    def segment(self, what: Region | str) -> Mask:
        """What is pointed at, cut out; of a text, what `find` finds."""
        if not isinstance(what, str):
            return self._segmenter_view.masks([what])[0]
        (box,) = self.find_all([what])
        if box is None:
            raise InvalidValue(f"{what!r}", "seems not to be in the photo", "point at it with a box")
        return self.segment(box)

    @cached_property
    def _segmenter_view(self) -> SegmenterView:
        segmenter = self.seer.segmenter
        if segmenter is None:
            self._refuse("segment")
        if self.image is None:
            raise InvalidValue("view", "things are cut out of the photo itself, which is not there", "look at it again")
        return segmenter.look(self.image)

    @property
    def _answerer(self) -> RegionAnswerer:
        answerer = self.seer.answerer
        if answerer is None:
            self._refuse("answer")
        return answerer

    @cached_property
    def _grounder(self) -> Grounder:
        from saywhere.models.patchioner.grounding import Grounder

        return Grounder(self.aligned)

    @cached_property
    def _candidates(self) -> Candidates:
        from saywhere.models.patchioner.candidates import candidates_of

        return candidates_of(self.aligned, self.image)

    def _is_there(self, place: PhraseBox) -> bool:
        limits = self.seer.grounding
        return bool(place.thing) or place.cosine >= (limits.least_missed if place.missed else limits.least_cosine)

    def _find_alike(self, text: str, vector: Floats32, place: str = "") -> PhraseBox | None:
        best = self._grounder.find(text, vector, place)
        return best if self._is_there(best) else None

    def _find(self, text: str, vector: Floats32, place: str = "", said: str = "") -> PhraseBox | None:
        """said: the text with all that is said of the place, for a seer that learnt to find expressions."""
        referrer = self.seer.referrer
        # A name alone refers to none of several: the surest thing of that kind is meant. And what has a name that was
        # never read, such as a dinosaur, would be anything.
        if referrer is None or is_bare_name(said or text) or not referrer.understands(said or text):
            return self._find_alike(text, vector, place)
        referred = referrer.refer(self._candidates, said or text, self.seer.texts)
        if referrer.is_there(referred):
            return self._place(referred, vector)
        # What the candidates are not may still be there, if nothing that is looked for among things is named: the sky.
        alike = None if classes_named(text) else self._grounder.candidates(vector, place)[0]
        return alike if alike is not None and self._is_there(alike) else None

    def _place(self, referred: Referred, vector: Floats32) -> PhraseBox:
        from saywhere.models.patchioner.grounding import PhraseBox

        offered, index = self._candidates, referred.place
        left, top, right, bottom = offered.boxes_xyxy[index].tolist()
        return PhraseBox((left, top, right, bottom), float(offered.vectors[index] @ vector), offered.names[index])

    def _placed(self, words: Sequence[str]) -> Grounded:
        from saywhere.models.patchioner.grounding import noun_phrases, spread

        phrases = noun_phrases(words)
        vectors = self.seer.texts([phrase.text for phrase in phrases]) if phrases else ()
        placed = []
        for phrase, vector in zip(phrases, vectors, strict=True):
            said = f"{phrase.text} on the {phrase.place}" if phrase.place else phrase.text
            several = None if phrase.count == 1 else self._grounder.find_several(phrase.text, vector, phrase.count)
            best = several or self._find(phrase.text, vector, phrase.place, said)
            if best is not None:
                placed.append((phrase, best))
        return spread(words, placed)
