"""Narratives made by hand, and a model that answers as the prompts of RILN ask it to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from saywhere.build.llm import AnswerCache, Chat, Endpoint
from saywhere.build.riln.drafts import CELLS
from saywhere.build.riln.endpoint import EndpointGenerator
from saywhere.build.riln.grounding import Groundwork, ground
from saywhere.build.riln.roles import ROLES
from saywhere.core import Narrative, Trace, Utterance
from saywhere.language.phrases import PhraseSpan
from tests.build.endpoint import Reply

SAID = "A dog lies on the grass. Behind it there is a red house."
SPANS = [
    PhraseSpan(0, 2, 5, 1, "dog"),
    PhraseSpan(2, 4, 3),
    PhraseSpan(4, 6, 5, 5, "grass"),
    PhraseSpan(6, 10, 1),
    PhraseSpan(10, 13, 5, 12, "house"),
]
# Where the pointer circles during each word: the dog is low on the left, the grass low, the house high on the right.
_AT = [(0.2, 0.8)] * 2 + [(0.4, 0.8)] * 2 + [(0.5, 0.9)] * 2 + [(0.6, 0.5)] * 4 + [(0.8, 0.2)] * 3
_CIRCLE = ((-0.05, 0.0), (0.0, 0.05), (0.05, 0.0), (0.0, -0.05))


def told(image_id: str = "7", dataset_id: str = "made_up_train", caption: str = SAID) -> Narrative:
    """The caption at a word a second, with four points for each."""
    words = caption.split()
    said = tuple(Utterance(word, float(i), i + 1.0) for i, word in enumerate(words))
    points = [
        (x + dx, y + dy, i + k / 4) for i, (x, y) in enumerate(_AT[: len(words)]) for k, (dx, dy) in enumerate(_CIRCLE)
    ]
    return Narrative(image_id, caption, said, Trace(points), dataset_id, "3")


def grounded() -> Groundwork:
    return ground(told(), SPANS, (640, 480))


def chats(url: str, cache: Path, chat: Callable[..., Chat] = Chat, **settings: Any) -> dict[str, Chat]:
    """A chat for each role, whose model is called like it. They share one cache and never wait."""
    answers = AnswerCache(cache)
    endpoints = {role: Endpoint(url, f"{role}-model", **settings) for role in ROLES}
    return {role: chat(endpoint, answers, lambda seconds: None) for role, endpoint in endpoints.items()}


def generator(url: str, cache: Path, **settings: Any) -> EndpointGenerator:
    return EndpointGenerator(chats(url, cache, **settings))


def answer_well(question: dict[str, Any], number: int = 0) -> Reply:
    """What a model that does as it is told would say, with the tokens that it took."""
    prompt = question["messages"][1]["content"]
    made = _MAKERS[question["model"].removesuffix("-model")](prompt)
    body = {
        "choices": [{"message": {"role": "assistant", "content": f"Sure!\n```json\n{json.dumps(made)}\n```"}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    }
    return Reply(raw=json.dumps(body).encode())


def _phrases(prompt: str) -> Any:
    assert "Words (13)" in prompt
    return {"phrases": [{"words": span.stop - span.first, "importance": span.importance} for span in SPANS]}


def _questions(prompt: str) -> Any:
    path = _path(prompt)
    return {
        "items": [
            {"level": level, "kind": kind, "question": f"What of {level} {kind} is at {path}?", "phrases": [0]}
            for level, kind in CELLS
        ]
    }


def _answers(prompt: str) -> Any:
    leaf = {"claim": "The pointer circles.", "level": "local"}
    items = []
    for i, (_, kind) in enumerate(CELLS):
        text = _path(prompt) if kind == "grounding" else "It is a dog."
        tree = {"claim": "A dog.", "level": "object", "because": [leaf]} if kind == "reasoning" else None
        items.append({"question": i, "answer": text, "reasoning": tree})
    return {"items": items}


def _dialogues(prompt: str) -> Any:
    first = ["What is there?", "A dog and a red house."]
    last = ["Put it together.", f"A dog lies low and a house stands high: {_path(prompt)}"]
    roles = ["user", "assistant"] * 2
    turns = [{"role": role, "text": text} for role, text in zip(roles, first + last, strict=True)]
    return {"items": [{"turns": turns}] * 3}


def _path(prompt: str) -> str:
    """Of the first phrase."""
    found = re.search(r'"number": 0, "text": "a dog", "importance": 5, "path": "([^"]+)"', prompt)
    assert found is not None
    return found.group(1)


_MAKERS: dict[str, Callable[[str], Any]] = {
    "phrases": _phrases,
    "questions": _questions,
    "answers": _answers,
    "dialogues": _dialogues,
}
