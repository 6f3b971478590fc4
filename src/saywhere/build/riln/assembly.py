"""Drafts with their part of the narrative become examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saywhere.build.riln.drafts import DialogueDraft, QuestionDraft
from saywhere.build.riln.example import (
    AlignedWord,
    DialogueTurn,
    PointedPhrase,
    RilnExample,
)
from saywhere.build.riln.grounding import Groundwork, bins


def question_example(ground: Groundwork, draft: QuestionDraft, number: int, generator: str) -> RilnExample:
    """number: how many of its level and kind came before it."""
    trajectory, phrases = _part(ground, draft.phrases)
    source = ground.source
    return RilnExample(
        id=f"{source.image_id}-{source.digest[:8]}-{draft.level}-{draft.kind}-{number}",
        image=source.image_id,
        task="question",
        level=draft.level,
        kind=draft.kind,
        turns=(DialogueTurn("user", draft.question), DialogueTurn("assistant", draft.answer)),
        trajectory=trajectory,
        phrases=phrases,
        reasoning=draft.reasoning,
        narrative=source,
        generator=generator,
    )


def dialogue_example(ground: Groundwork, draft: DialogueDraft, number: int, generator: str) -> RilnExample:
    """number: how many dialogues of the image came before it."""
    trajectory, phrases = _part(ground, draft.phrases)
    source = ground.source
    return RilnExample(
        id=f"{source.image_id}-{source.digest[:8]}-dialogue-{number}",
        image=source.image_id,
        task="dialogue",
        level=None,
        kind="synthesis",
        turns=draft.turns,
        trajectory=trajectory,
        phrases=phrases,
        reasoning=draft.reasoning,
        narrative=source,
        generator=generator,
    )


def _part(
    ground: Groundwork, chosen: Sequence[int]
) -> tuple[tuple[tuple[int, int, float], ...], tuple[PointedPhrase, ...]]:
    """The points of some phrases, and the phrases with indices that count them."""
    rows = ground.rows(chosen)
    points = ground.trace.points[rows]
    times = points[:, 2].round(3).tolist()
    trajectory = tuple((x, y, t) for (x, y), t in zip(bins(points), times, strict=True))
    return trajectory, tuple(_rebased(ground.phrases[i], np.array(rows)) for i in sorted(chosen))


def _rebased(phrase: PointedPhrase, rows: np.ndarray) -> PointedPhrase:
    def at(first: int, stop: int) -> tuple[int, int]:
        a, b = np.searchsorted(rows, [first, stop]).tolist()
        return a, b

    words = tuple(AlignedWord(word.text, *at(word.first, word.stop)) for word in phrase.words)
    return PointedPhrase(
        phrase.text, phrase.importance, phrase.start_s, phrase.end_s, at(*phrase.points), words, phrase.noun
    )
