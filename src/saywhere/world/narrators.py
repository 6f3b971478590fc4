"""Narrators: people who describe a scene aloud, each in a manner of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from saywhere.core.alignment import WordBoxes
from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.world.chance import between, stream
from saywhere.world.english import Token, written
from saywhere.world.plan import Manner, describe
from saywhere.world.pointer import Habits, Mention, point
from saywhere.world.scene import Scene
from saywhere.world.speech import speak, transcribe

DATASET_ID = "saywhere_world"
NARRATORS = 24
"""How many different narrators there are; their ids start at 1."""


@dataclass(frozen=True, slots=True)
class Narration:
    """A narrative and what its words truly refer to.

    word_things: for each of `narrative.words`, the indices of the scene's things; empty for words like "there is".
    """

    narrative: Narrative
    word_things: tuple[tuple[int, ...], ...]

    def true_boxes(self, scene: Scene) -> WordBoxes:
        """A box around what each word refers to, whatever the pointer did; unlocated where it refers to nothing."""
        boxes = np.full((len(self.word_things), 4), np.nan)
        for i, things in enumerate(self.word_things):
            if things:
                corners = np.array([scene.things[k].box_xyxy for k in things])
                boxes[i] = (*corners[:, :2].min(axis=0), *corners[:, 2:].max(axis=0))
        return WordBoxes(boxes)


@dataclass(frozen=True, slots=True)
class _Narrator:
    manner: Manner
    habits: Habits
    tempo: float


@lru_cache(maxsize=NARRATORS)
def _narrator(number: int) -> _Narrator:
    rng = np.random.default_rng([number, 30])
    manner = Manner(
        thoroughness=between(rng, 0.65, 0.97),
        scans=between(rng, 0.1, 0.7),
        colour=between(rng, 0.35, 0.85),
        opens_with_place=between(rng, 0.0, 0.35),
    )
    return _Narrator(manner, Habits.drawn(rng), between(rng, 0.8, 1.25))


def narrator_habits(number: int) -> Habits:
    """How narrator `number` points."""
    return _narrator(number).habits


def narrate(scene: Scene, seed: int = 0, narrator: int | None = None, part: int = 0) -> Narration:
    """What a narrator says about the scene while pointing at it.

    narrator: 1 … NARRATORS; drawn by chance if not given. part: another number gives another narration.
    """
    if narrator is not None and not 1 <= narrator <= NARRATORS:
        raise InvalidValue("narrator", f"is {narrator}, not 1 to {NARRATORS}")
    rng = stream(seed, scene.index, "narrator", part)
    drawn = 1 + int(rng.random() * NARRATORS)
    number = narrator if narrator is not None else drawn
    person = _narrator(number)
    tokens = describe(rng, scene, person.manner)
    times_s = speak(rng, [token.text for token in tokens], person.tempo)
    trace = point(rng, person.habits, scene, _mentions(tokens, times_s))
    narrative = Narrative(
        image_id=scene.image_id,
        caption=written(tokens),
        utterances=transcribe(rng, tokens, times_s),
        trace=trace,
        dataset_id=DATASET_ID,
        annotator_id=str(number),
        origin=DATASET_ID,
    )
    return Narration(narrative, tuple(token.things for token in tokens))


def point_again(scene: Scene, narration: Narration, seed: int, part: int) -> Narrative:
    """The same words, spoken and pointed at anew by a narrator drawn by chance. part: another number gives another.

    >>> from saywhere.world import make_scene
    >>> scene = make_scene(0, 3)
    >>> told = narrate(scene)
    >>> point_again(scene, told, 0, 1).caption == told.narrative.caption
    True
    """
    rng = stream(seed, scene.index, "pointing again", part)
    number = 1 + int(rng.random() * NARRATORS)
    person = _narrator(number)
    words = (word.text for word in narration.narrative.words)
    tokens = [Token(text, things) for text, things in zip(words, narration.word_things, strict=True)]
    times_s = speak(rng, [token.text for token in tokens], person.tempo)
    return Narrative(
        image_id=scene.image_id,
        caption=narration.narrative.caption,
        utterances=transcribe(rng, tokens, times_s),
        trace=point(rng, person.habits, scene, _mentions(tokens, times_s)),
        dataset_id=DATASET_ID,
        annotator_id=str(number),
        origin=DATASET_ID,
    )


def _mentions(tokens: list[Token], times_s: list[tuple[float, float]]) -> list[Mention]:
    """Neighbouring words about the same things are one mention."""
    mentions: list[Mention] = []
    before: tuple[int, ...] = ()
    for token, (start_s, end_s) in zip(tokens, times_s, strict=True):
        if token.things and token.things == before:
            mentions[-1] = Mention(mentions[-1].start_s, end_s, token.things)
        elif token.things:
            mentions.append(Mention(start_s, end_s, token.things))
        before = token.things
    return mentions
