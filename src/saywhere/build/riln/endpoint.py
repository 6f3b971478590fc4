"""Generation by language models: one role each for phrases, questions, answers with their trees, and dialogues.

Each role is asked once for a narrative, and once more with what was wrong if its answer cannot be used. Every answer is
in the cache before it is read, so that nothing is paid twice. What fails is a rejection with a name; a model that keeps
silent several times in a row is not asked again in this run.
"""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from PIL import Image

from saywhere.build.llm import Chat, EndpointFailed, Message
from saywhere.build.riln.drafts import CELLS, DialogueDraft, Ledger, QuestionDraft
from saywhere.build.riln.example import FEWEST_DIALOGUES, MOST_DIALOGUES, DialogueTurn
from saywhere.build.riln.grounding import Groundwork
from saywhere.build.riln.replies import (
    NO_ANSWER,
    WRONG_SCHEMA,
    DialogueItem,
    PhraseReplies,
    QuestionReply,
    ReasonedReply,
    Unusable,
    read_items,
    read_reply,
)
from saywhere.build.riln.roles import ROLES
from saywhere.core.narrative import Narrative
from saywhere.language.phrases import PhraseSpan

SILENT_IN_A_ROW = 8
"""After so many questions without any answer a role is given up for the rest of the run."""
_SENT_PX = 768
_Read = TypeVar("_Read")

_SYSTEM = (
    "You make training data for a model that understands where people point while they describe an image. Paths are "
    "written <traj>(x,y),(x,y)</traj> with integers from 0 to 999, x to the right, y down. Use only points that you "
    "are given. Answer with one JSON object and nothing else."
)
_PHRASES = (
    "Cut these words, spoken while pointing at the image, into phrases that mean something, in their order and without "
    "leaving any out. Give each the number of its words, and its importance for where the speaker points, from 1 "
    '(function words) to 5 (the things themselves). Form: {"phrases": [{"words": 2, "importance": 5}, …]}'
)
_QUESTIONS = (
    "Write questions about this narrative: %d for each of the levels global (the whole), object (one thing), paragraph "
    "(one sentence), local (one word or point), each in the kinds interpretation (a path is given, words are asked), "
    "grounding (words are given, a path is asked) and reasoning (something must be inferred from where things are). "
    "Vary style, structure and detail. An interpretation must contain its path. Name the phrases that a question is "
    "about by their numbers; for the global level name none. "
    'Form: {"items": [{"level": "object", "kind": "grounding", "question": "…", "phrases": [3]}, …]}'
)
_ANSWERS = (
    "Answer these questions about the narrative. A grounding is answered with a path. To a reasoning belongs a tree of "
    "claims, each resting on those in `because`, from what is seen to what follows; others have none. "
    'Form: {"items": [{"question": 0, "answer": "…", "reasoning": {"claim": "…", "level": "object", "because": '
    '[{"claim": "…", "level": "local"}]}}, …]}'
)
_DIALOGUES = (
    f"Write {FEWEST_DIALOGUES} to {MOST_DIALOGUES} dialogues about the image that use these questions and answers in a "
    "natural flow, each in another order. A dialogue has 4, 6 or 8 turns, user and assistant in turn. The last one "
    "asks for a synthesis, and its answer joins the things spoken of with the path. "
    'Form: {"items": [{"turns": [{"role": "user", "text": "…"}, {"role": "assistant", "text": "…"}, …]}, …]}'
)
_PROMPTS = (_SYSTEM, _PHRASES, _QUESTIONS, _ANSWERS, _DIALOGUES)


class EndpointGenerator:
    """chats: one for each role. photo: an image's picture to send along, or None. Safe to use from several threads."""

    def __init__(self, chats: Mapping[str, Chat], photo: Callable[[str], Image.Image | None] | None = None) -> None:
        self._chats, self._photo = dict(chats), photo
        self._silent = dict.fromkeys(ROLES, 0)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return ", ".join(f"{role}: {self._chats[role].endpoint.model}" for role in ROLES)

    @property
    def key(self) -> str:
        asked = [self._chats[role].endpoint for role in ROLES]
        return repr([*((one.url, one.model, one.max_tokens, one.temperature) for one in asked), _PROMPTS])

    def phrases(self, narrative: Narrative, rule: Sequence[PhraseSpan], ledger: Ledger) -> list[PhraseSpan]:
        words = narrative.words
        said = json.dumps([word.text for word in words])
        question = [self._instructed(narrative.image_id, f"{_PHRASES}\n\nWords ({len(words)}): {said}")]
        return self._ask("phrases", question, lambda text: _spans(text, len(words), rule), ledger) or []

    def questions(
        self,
        ground: Groundwork,
        per_cell: int,
        rng: np.random.Generator,  # noqa: ARG002 - the model has its own chance
        ledger: Ledger,
    ) -> list[QuestionDraft]:
        image, about = ground.narrative.image_id, _described(ground)
        asked = self._items("questions", image, f"{_QUESTIONS % per_cell}\n\n{about}", QuestionReply, ledger)
        asked = _wanted(asked, per_cell, len(ground.phrases), ledger)
        if not asked:
            return []
        listed = json.dumps([{"number": i, **_plain(one)} for i, one in enumerate(asked)])
        prompt = f"{_ANSWERS}\n\n{about}\n\nQuestions: {listed}"
        answers = {one.question: one for one in self._items("answers", image, prompt, ReasonedReply, ledger)}
        ledger.reject(
            "answers: a question without an answer", len(asked) - len(answers.keys() & set(range(len(asked))))
        )
        return [_draft(ground, one, answers[i]) for i, one in enumerate(asked) if i in answers]

    def dialogues(
        self,
        ground: Groundwork,
        asked: Sequence[QuestionDraft],
        rng: np.random.Generator,  # noqa: ARG002 - the model has its own chance
        ledger: Ledger,
    ) -> list[DialogueDraft]:
        if not asked:
            return []
        listed = json.dumps([{"question": one.question, "answer": one.answer} for one in asked])
        prompt = f"{_DIALOGUES}\n\n{_described(ground)}\n\nQuestions and answers: {listed}"
        found = self._items("dialogues", ground.narrative.image_id, prompt, DialogueItem, ledger)
        ledger.reject("dialogues: more than were asked for", max(0, len(found) - MOST_DIALOGUES))
        return [
            DialogueDraft(tuple(DialogueTurn(turn.role, turn.text) for turn in one.turns), ground.everything)
            for one in found[:MOST_DIALOGUES]
        ]

    def _items(self, role: str, image_id: str, prompt: str, kind: Any, ledger: Ledger) -> list[Any]:
        """What a role answers, item by item; the bad ones are counted."""
        answered = self._ask(role, [self._instructed(image_id, prompt)], lambda text: read_items(text, kind), ledger)
        if answered is None:
            return []
        good, bad = answered
        ledger.reject(f"{role}: an item {WRONG_SCHEMA}", bad)
        return list(good)

    def _ask(self, role: str, messages: list[Message], read: Callable[[str], _Read], ledger: Ledger) -> _Read | None:
        """The answer as `read` reads it; the model is told once what was wrong with its first one."""
        messages = [{"role": "system", "content": _SYSTEM}, *messages]
        for last in (False, True):
            try:
                text = self._answer(role, messages, ledger)
                return read(text)
            except EndpointFailed:
                ledger.reject(f"{role}: {NO_ANSWER}")
                ledger.unanswered += 1
                return None
            except Unusable as unusable:
                if last:
                    ledger.reject(f"{role}: {unusable.kind}")
                    return None
                wrong = f"That was {unusable.kind}: {unusable.detail[:300]} Answer again with the JSON object alone."
                messages = [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": wrong}]
        return None

    def _answer(self, role: str, messages: Sequence[Message], ledger: Ledger) -> str:
        chat = self._chats[role]
        if self._silent[role] >= SILENT_IN_A_ROW and chat.known(messages) is None:
            raise EndpointFailed(chat.endpoint.url, f"gave no answer {SILENT_IN_A_ROW} times in a row")
        try:
            answer = chat.complete(messages)
        except EndpointFailed:
            with self._lock:
                self._silent[role] += 1
            raise
        with self._lock:
            self._silent[role] = 0
        ledger.calls[role] += 1
        ledger.prompt_tokens[role] += answer.prompt_tokens
        ledger.answer_tokens[role] += answer.answer_tokens
        return answer.text

    def _instructed(self, image_id: str, prompt: str) -> Message:
        photo = self._photo(image_id) if self._photo else None
        if photo is None:
            return {"role": "user", "content": prompt}
        picture = {"type": "image_url", "image_url": {"url": _data_url(photo)}}
        return {"role": "user", "content": [{"type": "text", "text": prompt}, picture]}


def _data_url(photo: Image.Image) -> str:
    small = photo.convert("RGB")
    small.thumbnail((_SENT_PX, _SENT_PX))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _spans(text: str, n_words: int, rule: Sequence[PhraseSpan]) -> list[PhraseSpan]:
    """Phrases as the model cuts them; which noun each is about is told by the rules."""
    found = read_reply(text, PhraseReplies).phrases
    counted = sum(one.words for one in found)
    if counted != n_words:
        raise Unusable(WRONG_SCHEMA, f"the phrases have {counted} words, not {n_words}")
    nouns = {span.head: span.noun for span in rule if span.head >= 0}
    spans, first = [], 0
    for one in found:
        heads = [head for head in nouns if first <= head < first + one.words]
        head = heads[0] if heads else -1
        spans.append(PhraseSpan(first, first + one.words, one.importance, head, nouns.get(head, "")))
        first += one.words
    return spans


def _described(ground: Groundwork) -> str:
    """The narrative as models are told of it."""
    phrases = [
        {"number": i, "text": phrase.text, "importance": phrase.importance, "path": ground.path([i])}
        for i, phrase in enumerate(ground.phrases)
        if phrase.points[0] < phrase.points[1]
    ]
    sentences = [{"text": text, "phrases": list(range(first, stop))} for text, first, stop in ground.sentences]
    whole = {"caption": ground.narrative.caption, "path": ground.path(ground.everything)}
    return f"Narrative: {json.dumps({**whole, 'sentences': sentences, 'phrases': phrases})}"


def _wanted(asked: Sequence[QuestionReply], per_cell: int, n_phrases: int, ledger: Ledger) -> list[QuestionReply]:
    """The first per_cell of each level and kind whose phrases exist; what is missing or too much is counted."""
    left = dict.fromkeys(CELLS, per_cell)
    kept = []
    for one in asked:
        if any(not 0 <= i < n_phrases for i in one.phrases) or (one.level != "global" and not one.phrases):
            ledger.reject("questions: about phrases that are not there")
        elif left[one.level, one.kind] == 0:
            ledger.reject("questions: more than were asked for")
        else:
            left[one.level, one.kind] -= 1
            kept.append(one)
    ledger.reject("questions: fewer than were asked for", sum(left.values()) if asked else 0)
    return kept


def _plain(one: QuestionReply) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(one)
    return plain


def _draft(ground: Groundwork, one: QuestionReply, answer: ReasonedReply) -> QuestionDraft:
    phrases = ground.everything if one.level == "global" else tuple(sorted(set(one.phrases)))
    return QuestionDraft(one.level, one.kind, one.question, answer.answer, phrases, answer.reasoning)
