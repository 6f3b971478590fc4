"""A talk with a seer: who is asked what, and what is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from saywhere.core import Box, Caption, InvalidValue, Point, Region, WholeImage
from saywhere.models.face import Answer, MissingSkill
from saywhere.models.patchioner.conversation import SeerConversation
from tests.models.patchioner_seeing import photo, seer

CUP = Box(0.1, 0.2, 0.3, 0.4)


class Listener:
    """A look that knows one cup, and writes down what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def find_all(self, texts: Sequence[str]) -> list[Box | None]:
        self.asked += [("find", text) for text in texts]
        return [CUP if "cup" in text else None for text in texts]

    def caption(self, region: Region | None = None) -> Caption:
        self.asked.append(("caption", region))
        return Caption("a cup", 0.0, region or WholeImage(), sure=region is None)

    def answer(self, question: str, region: Region | None = None) -> Answer:
        self.asked.append((question, region))
        nowhere = np.zeros(1, np.float32)
        if "olor" in question:
            return Answer("red", 0.7, (("red", 0.7),), nowhere)
        return Answer("I cannot know that", 0.0, (), nowhere, reason="nobody taught me that")


def talk() -> tuple[SeerConversation, Listener]:
    listener: Any = Listener()
    return SeerConversation(listener), listener


def test_what_it_points_at_is_what_follows_is_about() -> None:
    conversation, listener = talk()
    spoken = conversation.say("Where is the red cup?")
    assert spoken.regions == (CUP,)
    assert conversation.say("What color is it?").text == "red"
    assert listener.asked == [("find", "the red cup"), ("What color is it?", CUP)]


def test_what_is_not_there_is_said_not_to_be_and_not_remembered() -> None:
    conversation, listener = talk()
    spoken = conversation.say("show me a dinosaur")
    assert (spoken.text, spoken.regions) == ("I do not see a dinosaur.", ())
    conversation.say("What color is it?")
    assert listener.asked[-1] == ("What color is it?", None)


def test_names_come_from_captions_and_doubt_is_said() -> None:
    conversation, listener = talk()
    assert conversation.say("What is in the photo?").text == "a cup"
    assert conversation.say("What is this?", Point(0.5, 0.5)).text == "a cup, but I am not sure"
    assert [one[0] for one in listener.asked] == ["caption", "caption"]
    assert listener.asked[1][1] == Point(0.5, 0.5)


def test_a_question_of_its_own_is_about_the_whole_photo_again() -> None:
    conversation, listener = talk()
    conversation.say("What color is this?", CUP)
    conversation.say("What color are the walls?")
    conversation.say("What color is that?", WholeImage())
    assert [region for _, region in listener.asked] == [CUP, None, None]
    assert conversation.say("Why?").text == "I cannot know that: nobody taught me that."
    with pytest.raises(InvalidValue, match="no word"):
        conversation.say("  ")


def test_a_seer_that_cannot_answer_does_not_talk() -> None:
    with pytest.raises(MissingSkill):
        seer().look(photo()).chat()
