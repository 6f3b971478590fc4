"""The built-in generator: questions and dialogues by rule, true of what was said and pointed at, without any model.

Every cell of level and kind has several wordings, drawn by chance. Nothing is said that the narrative does not hold:
what things are called comes from the words, where they are from the points, how long they were pointed at from both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saywhere.build.riln.drafts import CELLS, DialogueDraft, Ledger, QuestionDraft
from saywhere.build.riln.example import (
    FEWEST_DIALOGUES,
    LEVELS,
    MOST_DIALOGUES,
    MOST_TURNS,
    DialogueTurn,
    Thought,
)
from saywhere.build.riln.geometry import capital, direction, listed, manner, place
from saywhere.build.riln.grounding import SMALL_WORDS, Groundwork, path_text
from saywhere.core.narrative import Narrative
from saywhere.language.phrases import PhraseSpan

NO_THING = "nothing that has a name was pointed at"
_MOST_NAMED = 5
"""Things that one answer goes through."""


class TemplateGenerator:
    """Rules and chance alone; the same random numbers give the same examples."""

    @property
    def name(self) -> str:
        return "templates"

    @property
    def key(self) -> str:
        return self.name

    def phrases(self, narrative: Narrative, rule: Sequence[PhraseSpan], ledger: Ledger) -> list[PhraseSpan]:  # noqa: ARG002
        """The rules' own."""
        return list(rule)

    def questions(
        self, ground: Groundwork, per_cell: int, rng: np.random.Generator, ledger: Ledger
    ) -> list[QuestionDraft]:
        """per_cell of each level and kind; a cell that has fewer different ones gets fewer."""
        if not ground.things:
            ledger.reject(NO_THING)
            return []
        made: dict[tuple[str, str], QuestionDraft] = {}
        for level, kind in CELLS:
            for _ in range(per_cell):
                draft = _WRITERS[level, kind](_Writing(ground, rng))
                made.setdefault((level + kind, str(draft.phrases)), draft)
        return list(made.values())

    def dialogues(
        self,
        ground: Groundwork,
        asked: Sequence[QuestionDraft],
        rng: np.random.Generator,
        ledger: Ledger,  # noqa: ARG002
    ) -> list[DialogueDraft]:
        """Three to five, each in another order of levels, time or things."""
        if not asked:
            return []
        count = int(rng.integers(FEWEST_DIALOGUES, MOST_DIALOGUES + 1))
        orders = [_ORDERS[i] for i in rng.permutation(len(_ORDERS))[:count].tolist()]
        hands = _dealt(asked, count, rng)
        return [_dialogue(_Writing(ground, rng), hand, order) for hand, order in zip(hands, orders, strict=True)]


@dataclass(frozen=True, slots=True)
class _Writing:
    """Facts about one narrative, and chance."""

    ground: Groundwork
    rng: np.random.Generator

    def one(self, *wordings: str) -> str:
        return wordings[int(self.rng.integers(len(wordings)))]

    def thing(self) -> int:
        things = self.ground.things
        return things[int(self.rng.integers(len(things)))]

    def fine_thing(self) -> int:
        """A thing one of whose words has some of its points and not all; any thing if there is none."""
        able = [i for i in self.ground.things if _word(self.ground, i)[1] != self.ground.path([i])]
        return able[int(self.rng.integers(len(able)))] if able else self.thing()

    def text(self, i: int) -> str:
        return self.ground.phrases[i].text

    def where(self, i: int) -> str:
        return place(self.ground.middle(i))

    def named(self, phrases: Sequence[int]) -> list[int]:
        """Things among these phrases, evenly chosen if there are many, with no name said twice in a row."""
        things = [i for i in phrases if i in self.ground.things]
        fresh = [i for at, i in enumerate(things) if not at or self.text(i) != self.text(things[at - 1])]
        if len(fresh) <= _MOST_NAMED:
            return fresh
        return [fresh[round(k * (len(fresh) - 1) / (_MOST_NAMED - 1))] for k in range(_MOST_NAMED)]

    def sentence(self) -> tuple[str, tuple[int, ...]]:
        """A sentence during which a thing was pointed at, and its phrases."""
        things = set(self.ground.things)
        able = [(text, a, b) for text, a, b in self.ground.sentences if things & set(range(a, b))]
        able = able or [(_said(self.ground), 0, len(self.ground.phrases))]
        text, first, stop = able[int(self.rng.integers(len(able)))]
        return text, tuple(range(first, stop))

    def seen(self, i: int) -> Thought:
        """Where a thing was pointed at, as a leaf of a tree."""
        spot = path_text(self.ground.middle(i)[None])
        return Thought(f"The pointer is on {self.text(i)} {self.where(i)}, around {spot}.", "object")

    def order(self, named: Sequence[int]) -> str:
        """Which thing comes after which, and where."""
        steps = [f"{self.text(i)} {self.where(i)}" for i in named]
        if len(steps) == 1:
            return f"it is about {steps[0]}"
        return f"it begins with {steps[0]} and goes on to {listed(steps[1:])}"


def _global_interpretation(w: _Writing) -> QuestionDraft:
    path = w.ground.path(w.ground.everything)
    question = w.one(
        f"Somebody described this image while pointing along {path}. What did they say?",
        f"Put the pointer's path into words: {path}",
        f"A speaker's pointer went {path}. Describe the image in that order.",
    )
    return QuestionDraft("global", "interpretation", question, _said(w.ground), w.ground.everything)


def _global_grounding(w: _Writing) -> QuestionDraft:
    said, path = _said(w.ground), w.ground.path(w.ground.everything)
    question = w.one(
        f"Where does a pointer go that follows this description? “{said}”",
        f"Draw the path of somebody who says: “{said}”",
        f"Trace the whole of this description on the image: “{said}”",
    )
    return QuestionDraft("global", "grounding", question, path, w.ground.everything)


def _global_reasoning(w: _Writing) -> QuestionDraft:
    named = w.named(w.ground.things)
    path, longest = w.ground.path(w.ground.everything), max(w.ground.things, key=lambda i: _seconds(w.ground, i))
    order, spent = w.order(named), f"{_seconds(w.ground, longest):.1f} s"
    most = f"most time, {spent}, goes to {w.text(longest)}" if len(w.ground.things) > 1 else f"that takes {spent}"
    question = w.one(
        f"Follow {path}. What does the speaker care about, in which order, and about what the longest?",
        f"How does attention move over the image along {path}, and where does it stay the longest?",
    )
    tree = Thought(
        f"{capital(order)}; {most}.",
        "global",
        (*(w.seen(i) for i in named), Thought(f"While saying “{w.text(longest)}” the pointer takes {spent}.", "local")),
    )
    return QuestionDraft("global", "reasoning", question, tree.claim, w.ground.everything, tree)


def _object_interpretation(w: _Writing) -> QuestionDraft:
    i = w.thing()
    path = w.ground.path([i])
    question = w.one(f"What is at {path}?", f"What does the speaker point at with {path}?", f"Name what {path} is on.")
    answer = w.one(f"{capital(w.text(i))}.", f"The pointer is on {w.text(i)}, {w.where(i)}.")
    return QuestionDraft("object", "interpretation", question, answer, (i,))


def _object_grounding(w: _Writing) -> QuestionDraft:
    i = w.thing()
    path = w.ground.path([i])
    question = w.one(f"Point at {w.text(i)}.", f"Show {w.text(i)} on the image.", f"Find {w.text(i)}.")
    answer = w.one(path, f"Here: {path}", f"{capital(w.where(i))}: {path}")
    return QuestionDraft("object", "grounding", question, answer, (i,))


def _object_reasoning(w: _Writing) -> QuestionDraft:
    i = w.thing()
    others = [j for j in w.ground.things if j != i and w.text(j) != w.text(i)]
    j = max(others, key=lambda j: float(np.linalg.norm(w.ground.middle(j) - w.ground.middle(i))), default=-1)
    way = direction(w.ground.middle(j) - w.ground.middle(i)) if others else ""
    if not way:
        return _side(w, i)
    question = w.one(
        f"Which way is it from {w.text(i)} to {w.text(j)}?",
        f"If the pointer is on {w.text(i)}, how must it move to come to {w.text(j)}?",
    )
    tree = Thought(f"From {w.text(i)} to {w.text(j)} the pointer has to go {way}.", "object", (w.seen(i), w.seen(j)))
    return QuestionDraft("object", "reasoning", question, _argued(tree), tuple(sorted((i, j))), tree)


def _side(w: _Writing, i: int) -> QuestionDraft:
    across = float(w.ground.middle(i)[0])
    side, share = ("left", across) if across < 0.5 else ("right", 1 - across)
    leaf = w.seen(i)
    tree = Thought(f"The {side} edge is nearer, {100 * share:.0f} % of the width away.", "object", (leaf,))
    question = f"Is {w.text(i)} nearer to the left or to the right edge of the image?"
    return QuestionDraft("object", "reasoning", question, _argued(tree), (i,), tree)


def _paragraph_interpretation(w: _Writing) -> QuestionDraft:
    text, phrases = w.sentence()
    path = w.ground.path(phrases)
    question = w.one(f"Which sentence belongs to {path}?", f"What is said along {path}? Answer in one sentence.")
    return QuestionDraft("paragraph", "interpretation", question, capital(text), phrases)


def _paragraph_grounding(w: _Writing) -> QuestionDraft:
    text, phrases = w.sentence()
    question = w.one(f"Where does the pointer go during “{text}”?", f"Trace this sentence: “{text}”")
    return QuestionDraft("paragraph", "grounding", question, w.ground.path(phrases), phrases)


def _paragraph_reasoning(w: _Writing) -> QuestionDraft:
    text, phrases = w.sentence()
    named = w.named(phrases)
    question = w.one(
        f"“{text}” What is pointed at during this sentence, in which order, and where?",
        f"Explain how the path {w.ground.path(phrases)} fits the sentence “{text}”",
    )
    tree = Thought(f"{capital(w.order(named))}.", "paragraph", tuple(w.seen(i) for i in named))
    return QuestionDraft("paragraph", "reasoning", question, _argued(tree), phrases, tree)


def _local_interpretation(w: _Writing) -> QuestionDraft:
    i = w.fine_thing()
    word, path = _word(w.ground, i)
    question = w.one(f"Which word is said at {path}?", f"The pointer is at {path}. Which word goes with it?")
    return QuestionDraft("local", "interpretation", question, f"“{word}”.", (i,))


def _local_grounding(w: _Writing) -> QuestionDraft:
    i = w.fine_thing()
    word, path = _word(w.ground, i)
    question = w.one(
        f"{capital(w.text(i))} is traced by {w.ground.path([i])}. Which part of it belongs to the word “{word}”?",
        f"Within “{w.text(i)}”, where exactly is the pointer during “{word}”?",
    )
    return QuestionDraft("local", "grounding", question, path, (i,))


def _local_reasoning(w: _Writing) -> QuestionDraft:
    i = w.thing()
    first, stop = w.ground.phrases[i].points
    moves, marks = manner(np.clip(w.ground.trace.xy[first:stop], 0, 1))
    question = w.one(
        f"How does the pointer move along {w.ground.path([i])}, and what does it mark?",
        f"What does the movement during “{w.text(i)}” tell about where it is?",
    )
    because = (w.seen(i), Thought(f"The path {moves}.", "local"))
    tree = Thought(f"The pointer marks {marks} {w.where(i)} for {w.text(i)}.", "local", because)
    return QuestionDraft("local", "reasoning", question, _argued(tree), (i,), tree)


_WRITERS: dict[tuple[str, str], Callable[[_Writing], QuestionDraft]] = {
    ("global", "interpretation"): _global_interpretation,
    ("global", "grounding"): _global_grounding,
    ("global", "reasoning"): _global_reasoning,
    ("object", "interpretation"): _object_interpretation,
    ("object", "grounding"): _object_grounding,
    ("object", "reasoning"): _object_reasoning,
    ("paragraph", "interpretation"): _paragraph_interpretation,
    ("paragraph", "grounding"): _paragraph_grounding,
    ("paragraph", "reasoning"): _paragraph_reasoning,
    ("local", "interpretation"): _local_interpretation,
    ("local", "grounding"): _local_grounding,
    ("local", "reasoning"): _local_reasoning,
}


def _argued(tree: Thought) -> str:
    """The tree as an answer: what is seen first, what follows last."""
    return " ".join([*(one.claim for one in tree.because), f"So {tree.claim[:1].lower()}{tree.claim[1:]}"])


def _said(ground: Groundwork) -> str:
    told = ground.narrative
    return " ".join(told.caption.split()) or " ".join(word.text for word in told.words)


def _seconds(ground: Groundwork, i: int) -> float:
    return ground.phrases[i].end_s - ground.phrases[i].start_s


def _word(ground: Groundwork, i: int) -> tuple[str, str]:
    """The last word of a phrase that has points of its own and says something, and its path; else the phrase's."""
    able = [word for word in ground.phrases[i].words if word.first < word.stop and word.text]
    able = [word for word in able if word.text.lower() not in SMALL_WORDS]
    if not able:
        return ground.phrases[i].text, ground.path([i])
    word = able[-1]
    return word.text, path_text(ground.trace.points[word.first : word.stop])


# How a dialogue goes on: from the whole to the part, back, along time, by kind, or from thing to thing.
_ORDERS: tuple[Callable[[QuestionDraft], tuple[Any, ...]], ...] = (
    lambda draft: (LEVELS.index(draft.level),),
    lambda draft: (-LEVELS.index(draft.level),),
    lambda draft: (draft.phrases[0], len(draft.phrases)),
    lambda draft: (("grounding", "interpretation", "reasoning").index(draft.kind),),
    lambda draft: (len(draft.phrases), draft.phrases),
)
_GOES_ON = ("", "And now: ", "Thank you. ", "Good. ", "Next. ")


def _dealt(asked: Sequence[QuestionDraft], count: int, rng: np.random.Generator) -> list[list[QuestionDraft]]:
    """Two or three questions for each of `count` dialogues; none comes again before all others have come."""
    most = min(MOST_TURNS // 2 - 1, len(asked))
    deck: list[int] = []
    hands = []
    for _ in range(count):
        hand: list[int] = []
        for _ in range(int(rng.integers(min(2, most), most + 1))):
            if not deck:
                deck = [i for i in rng.permutation(len(asked)).tolist() if i not in hand]
            hand.append(deck.pop())
        hands.append([asked[i] for i in hand])
    return hands


def _dialogue(
    w: _Writing, drawn: Sequence[QuestionDraft], order: Callable[[QuestionDraft], tuple[Any, ...]]
) -> DialogueDraft:
    turns: list[DialogueTurn] = []
    for number, draft in enumerate(sorted(drawn, key=order)):
        before = w.one(*_GOES_ON) if number else ""
        turns += [DialogueTurn("user", before + draft.question), DialogueTurn("assistant", draft.answer)]
    question, tree = _synthesis(w, drawn)
    turns += [DialogueTurn("user", question), DialogueTurn("assistant", tree.claim)]
    return DialogueDraft(tuple(turns), w.ground.everything, tree)


def _synthesis(w: _Writing, drawn: Sequence[QuestionDraft]) -> tuple[str, Thought]:
    """The last question and what follows from all before it, for the whole path."""
    about = sorted({i for draft in drawn for i in draft.phrases if i in w.ground.things})
    spoken = w.named(about)
    # One thing alone is nothing to put together: then it is put among the others.
    named = spoken if len(spoken) > 1 else w.named(w.ground.things)
    path = path_text(np.array([w.ground.middle(i) for i in named]))
    whole = np.clip(w.ground.trace.xy, 0, 1)
    moves, marks = manner(whole)
    question = w.one(
        "Put all of this together: what does the whole path tell about the image?",
        "Sum up our conversation: how do the things we spoke of and the pointer's path fit together?",
        f"Taken together, what does {w.ground.path(w.ground.everything)} say about the image?",
    )
    claim = (
        f"We spoke of {listed([w.text(i) for i in spoken or named])}. "
        f"In the order of the pointer {w.order(named)}: {path}. As a whole the path {moves} and covers {marks}."
    )
    return question, Thought(claim, "global", tuple(w.seen(i) for i in named))
