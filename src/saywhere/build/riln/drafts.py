"""What generators give: questions and dialogues before they are checked, and what became of the asking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from saywhere.build.riln.example import DialogueTurn, Kind, Level, Thought
from saywhere.build.riln.grounding import Groundwork
from saywhere.core.narrative import Narrative
from saywhere.language.phrases import PhraseSpan

CELLS: tuple[tuple[Level, Kind], ...] = tuple(
    (level, kind)
    for level in ("global", "object", "paragraph", "local")
    for kind in ("interpretation", "grounding", "reasoning")
)


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """phrases: indices of the groundwork's phrases that the question is about."""

    level: Level
    kind: Kind
    question: str
    answer: str
    phrases: tuple[int, ...]
    reasoning: Thought | None = None


@dataclass(frozen=True, slots=True)
class DialogueDraft:
    """turns: in turn, the last one a synthesis. phrases: those that were talked about."""

    turns: tuple[DialogueTurn, ...]
    phrases: tuple[int, ...]
    reasoning: Thought | None = None


@dataclass(slots=True)
class Ledger:
    """What was asked and what was lost over one narrative.

    rejections: reason → examples, or narratives if nothing came of them. unanswered: questions without any answer,
    which a later run may ask again. calls, prompt_tokens, answer_tokens: by role.
    """

    rejections: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    prompt_tokens: Counter[str] = field(default_factory=Counter)
    answer_tokens: Counter[str] = field(default_factory=Counter)

    def reject(self, reason: str, count: int = 1) -> None:
        if count:
            self.rejections[reason] += count


class Generator(Protocol):
    """Writes phrases, questions and dialogues. What it cannot is told to the ledger, never raised.

    key: differs where anything does that its drafts depend on.
    """

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...

    def phrases(self, narrative: Narrative, rule: Sequence[PhraseSpan], ledger: Ledger) -> list[PhraseSpan]:
        """How to cut the words. rule: as the built-in rules do it. Empty if there was no usable answer."""
        ...

    def questions(
        self, ground: Groundwork, per_cell: int, rng: np.random.Generator, ledger: Ledger
    ) -> list[QuestionDraft]: ...

    def dialogues(
        self, ground: Groundwork, asked: Sequence[QuestionDraft], rng: np.random.Generator, ledger: Ledger
    ) -> list[DialogueDraft]: ...
