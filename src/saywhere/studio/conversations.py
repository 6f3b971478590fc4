"""Conversations about photos that can be gone on with.

Clients send all that was asked so far, as OpenAI's form does, so a conversation has no number and none is lost with the
server. What was just talked about is kept; any other conversation is held again, turn by turn, before its next one.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from saywhere.core import InvalidValue, Region
from saywhere.models.face import Conversation, Look, Spoken, StreamingConversation

Hear = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What a person says at once. region: what is pointed at meanwhile."""

    text: str
    region: Region | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a model says. retold: how many earlier turns it had to answer again before."""

    spoken: Spoken
    retold: int


class Conversations:
    """Those held last, by photo and turns. Used by the model's thread alone. most: kept in memory."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[str, Conversation] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def say(self, photo: str, look: Look, turns: Sequence[UserTurn], hear: Hear | None = None) -> Told:
        """The answer to the last of some turns. photo: the same for the same photo. hear: gets the answer piece by
        piece if the model can, and else at once."""
        _check(turns, look)
        *before, last = turns
        conversation = self._kept.pop(_key(photo, before), None) if before else look.chat()
        retold = 0
        if conversation is None:
            conversation, retold = look.chat(), len(before)
            for turn in before:
                conversation.say(turn.text, turn.region)
        spoken = _spoken(conversation, last, hear)
        self._kept[_key(photo, turns)] = conversation
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
        return Told(spoken, retold)

    def drop(self, photo: str) -> None:
        """Forget what was said about a photo."""
        for key in [key for key in self._kept if key.startswith(f"{photo} ")]:
            del self._kept[key]


def _spoken(conversation: Conversation, turn: UserTurn, hear: Hear | None) -> Spoken:
    if hear is None:
        return conversation.say(turn.text, turn.region)
    if isinstance(conversation, StreamingConversation):
        return conversation.stream(turn.text, turn.region, hear)
    spoken = conversation.say(turn.text, turn.region)
    hear(spoken.text)
    return spoken


def _check(turns: Sequence[UserTurn], look: Look) -> None:
    """Refuse turns without words, and places that are not on the photo."""
    for number, turn in enumerate(turns, 1):
        if not turn.text.strip():
            raise InvalidValue(f"turn {number}", "has no word", "say what you want to know")
        if turn.region is not None:
            try:
                turn.region.weights(look.view.frame)
            except InvalidValue as error:
                raise InvalidValue(f"turn {number}, {error.what}", error.reason, error.hint) from error


def _key(photo: str, turns: Sequence[UserTurn]) -> str:
    said = [(turn.text, None if turn.region is None else turn.region.to_json()) for turn in turns]
    return f"{photo} {hashlib.sha256(json.dumps(said).encode()).hexdigest()}"
