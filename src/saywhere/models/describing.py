"""What a model is sure of in a photo, in the order in which people look: for those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from saywhere.core import Box, Caption, WholeImage
from saywhere.core.description import Description
from saywhere.core.places import BoxXyxy, overlap
from saywhere.language.coco_aliases import classes_named
from saywhere.language.describing import SureThing, description_of, named
from saywhere.vision.view import Found, View

if TYPE_CHECKING:
    from saywhere.models.face import Look

MOST_THINGS = 24
_LEAST_SCORE, _LEAST_PRESENCE = 0.5, 0.5
"""On 110 validation photos 90 % of what is found with this score, and called so by the caption, fits a true box of
its kind (IoU ≥ 0.5); from 0.4 on 85 %."""
_SAME_THING = 0.5
"""Boxes that share more than this of their union are one thing."""
_LEAST_ANSWER = 0.5
_PERSON = "person"
"""Nobody asks for the colour of one."""
_COLOURS = frozenset(
    ("black", "white", "gray", "grey", "brown", "red", "orange", "yellow", "green", "blue", "purple", "pink", "tan")
)


def describe(look: Look, most: int = MOST_THINGS, seed: int = 0) -> Description:
    """Everything a look is sure of. most: things. seed: see `description_of`."""
    things = by_attention(_likely(look, most), look.view)
    whole, *captions = look.captions([WholeImage(), *(Box(*one.box_xyxy) for one in things)])
    sure = [
        SureThing(one.name, one.box_xyxy, _quality(look, one, caption))
        for one, caption in zip(things, captions, strict=True)
        if caption.sure and one.name in classes_named(caption.text)
    ]
    return description_of(whole.text if whole.sure else "", sure, look.model.name, seed)


def _likely(look: Look, most: int) -> list[Found]:
    """The surest things that were found, none twice."""
    chosen: list[Found] = []
    for one in sorted(look.view.found, key=lambda found: -found.score):
        if one.score < _LEAST_SCORE or len(chosen) == most:
            break
        if look.presence(one.name) >= _LEAST_PRESENCE and not _is_among(one.box_xyxy, chosen):
            chosen.append(one)
    return chosen


def _is_among(box_xyxy: BoxXyxy, others: Sequence[Found]) -> bool:
    return any(overlap(box_xyxy, other.box_xyxy) >= _SAME_THING for other in others)


def by_attention(things: Sequence[Found], view: View) -> list[Found]:
    """Things in the order in which people look at them: by the share of all looking that falls on each. As they are if
    the encoder does not know where people look."""
    attention = view.attention
    if attention is None:
        return list(things)

    def looked_at(one: Found) -> float:
        inside = Box(*one.box_xyxy).weights(view.frame)
        return float((attention * (inside / inside.max())).sum())

    return sorted(things, key=lambda one: -looked_at(one))


def _quality(look: Look, one: Found, caption: Caption) -> str:
    """How a thing looks, as far as that is sure: "a white truck"; empty if there is no more to say than its name."""
    if caption.text.lower() != named(one.name):
        return caption.text
    if one.name == _PERSON or "answer" not in look.model.skills:
        return ""
    answer = look.answer(f"What color is the {one.name}?", Box(*one.box_xyxy))
    is_sure = not answer.reason and answer.probability >= _LEAST_ANSWER and answer.text in _COLOURS
    return named(f"{answer.text} {one.name}") if is_sure else ""
