"""What a data set holds and what was lost on the way; adds up over shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from saywhere.build.riln.drafts import Ledger
from saywhere.build.riln.example import RilnExample
from saywhere.build.riln.grounding import Groundwork


class RilnStatistics(msgspec.Struct):
    """records: that were read, unreadable ones, too. narratives: that gave at least one example. grounded: that went
    through stage 1. with_photo: of these, where the photo's size was known.

    questions: "level/kind" → how many. turns: messages of a dialogue → dialogues. importance: 1 … 5 → phrases.
    grams, shared: 5-grams of all examples that passed the other checks, and those that evaluation text has; kept_…:
    of the examples that stayed. rejections: reason → how many. split: as `Checks` names it → narratives. unanswered:
    questions to models that got no answer. decided: decisions of people that were applied.
    """

    records: int = 0
    narratives: int = 0
    grounded: int = 0
    with_photo: int = 0
    images: list[str] = []
    questions: dict[str, int] = {}
    dialogues: int = 0
    dialogue_images: int = 0
    turns: dict[str, int] = {}
    trees: int = 0
    words: int = 0
    answer_words: int = 0
    points_before: int = 0
    points_after: int = 0
    importance: dict[str, int] = {}
    grams: int = 0
    shared: int = 0
    kept_grams: int = 0
    kept_shared: int = 0
    split: dict[str, int] = {}
    rejections: dict[str, int] = {}
    unanswered: int = 0
    calls: dict[str, int] = {}
    prompt_tokens: dict[str, int] = {}
    answer_tokens: dict[str, int] = {}
    review: dict[str, int] = {}
    decided: int = 0

    def count_ground(self, ground: Groundwork, has_photo: bool) -> None:
        """A narrative after stage 1."""
        self.grounded += 1
        self.with_photo += has_photo
        self.points_before += ground.points_before
        self.points_after += len(ground.trace)
        self.importance = _sum(self.importance, Counter(str(phrase.importance) for phrase in ground.phrases))

    def count_examples(self, examples: Sequence[RilnExample]) -> None:
        """The examples of one narrative that stay."""
        if examples:
            self.narratives += 1
            self.images = sorted({*self.images, f"{examples[0].narrative.dataset_id}/{examples[0].image}"})
            self.split = _sum(self.split, {examples[0].checks.split: 1})
        spoken = [one for one in examples if one.task == "dialogue"]
        self.questions = _sum(self.questions, Counter(f"{x.level}/{x.kind}" for x in examples if x.task == "question"))
        self.dialogues += len(spoken)
        self.dialogue_images += bool(spoken)
        self.turns = _sum(self.turns, Counter(str(len(one.turns)) for one in spoken))
        for example in examples:
            said = [len(turn.text.split("<traj>")[0].split()) + _after_paths(turn.text) for turn in example.turns]
            self.words += sum(said)
            self.answer_words += sum(said[1::2])
            self.trees += example.reasoning is not None
            self.review = _sum(self.review, {example.checks.review: 1})

    def count_ledger(self, ledger: Ledger) -> None:
        """What was asked and lost over one narrative."""
        self.rejections = _sum(self.rejections, ledger.rejections)
        self.unanswered += ledger.unanswered
        self.calls = _sum(self.calls, ledger.calls)
        self.prompt_tokens = _sum(self.prompt_tokens, ledger.prompt_tokens)
        self.answer_tokens = _sum(self.answer_tokens, ledger.answer_tokens)

    @property
    def examples(self) -> int:
        return sum(self.questions.values()) + self.dialogues

    @property
    def overlap(self) -> float | None:
        """Share of the 5-grams of what was generated that evaluation text has; None if there are none."""
        return self.shared / self.grams if self.grams else None

    @property
    def kept_overlap(self) -> float | None:
        """The same of what stayed."""
        return self.kept_shared / self.kept_grams if self.kept_grams else None


def total(parts: Iterable[RilnStatistics]) -> RilnStatistics:
    """All of them together; an image in two parts counts once."""
    sums = RilnStatistics()
    for part in parts:
        for name in RilnStatistics.__struct_fields__:
            here, more = getattr(sums, name), getattr(part, name)
            if isinstance(more, dict):
                setattr(sums, name, _sum(here, more))
            elif isinstance(more, list):
                setattr(sums, name, sorted({*here, *more}))
            else:
                setattr(sums, name, here + more)
    return sums


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    sums = Counter(one)
    sums.update(other)
    return dict(sorted(sums.items()))


def _after_paths(text: str) -> int:
    """Words after the first path; paths count as none."""
    return sum(len(part.rpartition("</traj>")[2].split()) for part in text.split("<traj>")[1:])
