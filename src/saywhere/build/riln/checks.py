"""What an example must pass: its own schema, its coordinates, its form, and the boxes of what it names."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from saywhere.build.photo_boxes import PhotoBoxes
from saywhere.build.riln.example import (
    DEEPEST,
    FEWEST_TURNS,
    MOST_TURNS,
    PointedPhrase,
    RilnExample,
    decoded,
    encoded,
)
from saywhere.build.riln.grounding import SMALL_WORDS
from saywhere.core.trajectory import BINS, from_text
from saywhere.language.visual_words import visual_words_in, words_of

SLACK = 10
"""Bins by which a point may leave what was pointed at: one per cent of the photo."""
NEAR = 0.1
"""How far beyond a box, in shares of the photo, points still belong to it: hands lag and overshoot."""

BAD_SCHEMA = "schema: it does not read back"
BAD_PATH = "coordinates: a path is malformed or empty"
OUTSIDE = "coordinates: outside what was pointed at"
NO_PATH = "coordinates: an answer that points has no path"
BAD_FORM = "form: turns that do not alternate, or too few or too many"
NO_SYNTHESIS = "form: the last turn is no synthesis of what was spoken of"
BAD_TREE = "form: the reasoning tree is missing or too deep"
UNSAID = "consistency: the answer names nothing of what was said there"
NO_BOX = "boxes: no box of what was named"
OFF_BOX = "boxes: pointed at no box of what was named"

_TAG = re.compile(r"<\s*/?\s*traj\s*>", re.IGNORECASE)


def fault_of(example: RilnExample) -> str:
    """What is wrong with an example, or nothing. Boxes and overlap are checked on their own."""
    try:
        if decoded(encoded(example)) != example:
            return BAD_SCHEMA
    except (msgspec.DecodeError, UnicodeEncodeError):
        return BAD_SCHEMA
    return _form(example) or _coordinates(example) or _consistency(example)


def box_fault(example: RilnExample, photo: PhotoBoxes) -> str:
    """Whether what the example names was pointed at where the photo's boxes have it.

    A question about few things fails with its first; one about a sentence, the whole or a dialogue only if most fail.
    """
    faults = [_phrase_fault(phrase, example, photo) for phrase in example.phrases if phrase.noun]
    checked = [fault for fault in faults if fault is not None]
    wrong = [fault for fault in checked if fault]
    strict = example.level in ("object", "local")
    return wrong[0] if wrong and (strict or 2 * len(wrong) > len(checked)) else ""


def _form(example: RilnExample) -> str:
    roles = [turn.role for turn in example.turns]
    if roles != ["user", "assistant"] * (len(roles) // 2):
        return BAD_FORM
    if example.reasoning is not None and example.reasoning.depth > DEEPEST:
        return BAD_TREE
    if example.task == "question":
        if example.kind == "reasoning" and (example.reasoning is None or not example.reasoning.because):
            return BAD_TREE
        return "" if len(roles) == 2 and example.level is not None else BAD_FORM
    if not FEWEST_TURNS <= len(roles) <= MOST_TURNS:
        return BAD_FORM
    return _synthesis(example)


def _synthesis(example: RilnExample) -> str:
    """The last answer must name two of the things spoken of before, or one where there was one alone."""
    before = set(words_of(" ".join(turn.text for turn in example.turns[:-2])))
    last = set(words_of(example.turns[-1].text))
    pointed = [phrase for phrase in example.phrases if phrase.noun and phrase.points[0] < phrase.points[1]]
    spoken = {name for phrase in pointed if (name := _head(phrase)) in before}
    return "" if len(spoken & last) >= min(2, len(spoken)) else NO_SYNTHESIS


def _coordinates(example: RilnExample) -> str:
    """Every path is well formed and lies within the bounds of the trajectory that the example is about."""
    points = np.array([point[:2] for point in example.trajectory])
    low, high = points.min(axis=0) - SLACK, points.max(axis=0) + SLACK
    for turn in example.turns:
        paths = from_text(turn.text)
        if any(path.problems for path in paths) or len(_TAG.findall(turn.text)) != 2 * len(paths):
            return BAD_PATH
        for path in paths:
            cells = np.floor(path.points_xy * BINS)
            if (cells < low).any() or (cells > high).any():
                return OUTSIDE
    if example.kind == "grounding" and not from_text(example.turns[-1].text):
        return NO_PATH
    return ""


def _consistency(example: RilnExample) -> str:
    """An interpretation must use a word of what was said there, and not only a small one."""
    if example.kind != "interpretation":
        return ""
    said = {word for phrase in example.phrases for word in words_of(phrase.text)} - SMALL_WORDS
    answered = set(words_of(example.turns[-1].text))
    return UNSAID if said and not said & answered else ""


def _head(phrase: PointedPhrase) -> str:
    """The word of a phrase that names its thing."""
    words = words_of(phrase.text)
    return next((word for word in words if word.startswith(phrase.noun[:3])), words[-1] if words else "")


def _phrase_fault(phrase: PointedPhrase, example: RilnExample, photo: PhotoBoxes) -> str | None:
    """None where boxes tell nothing: no class of COCO's, a crowd, or no points."""
    classes = {name for _, _, name in visual_words_in(phrase.text)}
    first, stop = phrase.points
    if len(classes) != 1 or classes & photo.crowds or first >= stop:
        return None
    boxes = photo.boxes.get(classes.pop())
    if not boxes:
        return NO_BOX
    xy = (np.array([point[:2] for point in example.trajectory[first:stop]]) + 0.5) / BINS
    corners = np.array(boxes)[:, None]
    inside = (xy >= corners[..., :2] - NEAR) & (xy <= corners[..., 2:] + NEAR)
    return "" if inside.all(axis=-1).any() else OFF_BOX
