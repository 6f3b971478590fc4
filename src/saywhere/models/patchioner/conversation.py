"""A talk about a photo with a seer: it finds, names, describes and answers, and remembers what was pointed at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saywhere.core import Caption, InvalidValue, Region, WholeImage
from saywhere.language.requests import asks_for_name, is_about_the_whole, refers_back, thing_looked_for
from saywhere.models.face import Conversation, Spoken

if TYPE_CHECKING:
    from saywhere.models.patchioner.look import SeerLook

_HERE = "Here."


class SeerConversation(Conversation):
    """Each question goes to the part of the seer that knows best: where something is, to what finds; what it is, to
    what captions; anything else, to what answers. pointed: what was pointed at last, by either side, which questions
    such as "what colour is it?" are about."""

    def __init__(self, look: SeerLook) -> None:
        self._look = look
        self.pointed: Region | None = None

    def say(self, text: str, region: Region | None = None) -> Spoken:
        if not text.strip():
            raise InvalidValue("question", "has no word")
        if region is not None:
            self.pointed = None if isinstance(region, WholeImage) else region
        if region is None and (what := thing_looked_for(text)):
            return self._point_at(what)
        if is_about_the_whole(text):
            return Spoken(_hedged(self._look.caption()))
        if self.pointed is not None and asks_for_name(text):
            return Spoken(_hedged(self._look.caption(self.pointed)))
        return self._answer(text, region)

    def _point_at(self, what: str) -> Spoken:
        (box,) = self._look.find_all([what])
        if box is None:
            return Spoken(f"I do not see {what}.")
        self.pointed = box
        return Spoken(_HERE, (box,))

    def _answer(self, text: str, region: Region | None) -> Spoken:
        about = self.pointed if region is not None or refers_back(text) else None
        answer = self._look.answer(text, about)
        if answer.reason:
            return Spoken(f"{answer.text}: {answer.reason}.")
        return Spoken(answer.text)


def _hedged(caption: Caption) -> str:
    return caption.text if caption.sure else f"{caption.text}, but I am not sure"
