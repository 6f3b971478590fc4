"""What the small body of TraceVLM learns: talks about photos, made of what people said and marked of them.

A talk has some turns on one photo; only its first question may point, so that no question knows where a later one will.
Trajectories are made of boxes in the order in which captions name things: nobody drew them, and they are called
pseudo-trajectories wherever they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saywhere.build.region_texts import BoxXyxy, with_article
from saywhere.core import Box, Trace
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.language.coco_aliases import classes_named
from saywhere.models.tracevlm.examples import Exchange, Instruction, Part, answered, asked
from saywhere.models.tracevlm.trajectory import Trajectory

_STEP_S = 0.3
_SMALLEST = 0.004
"""Things of less than this share of the photo are not pointed at."""
_PRESENCE = (
    "Is there {}?",
    "Is there {} in the photo?",
    "Is there {} in the image?",
    "Is there {} here?",
    "Do you see {}?",
    "Can you see {} in the photo?",
)
Turns = tuple[Exchange, Exchange]


@dataclass(frozen=True, slots=True)
class CaptionMention:
    """A thing that a caption names: the caption's first `stop` words name it and no earlier ones do."""

    stop: int
    box_xyxy: BoxXyxy


@dataclass(frozen=True, slots=True, eq=False)
class ToldPhoto:
    """What is known of a photo. boxes: class → its boxes, largest first. expressions: text and box. questions: with
    the answer that most people gave. elsewhere: classes that another photo has, to ask for those that this one lacks:
    so each class is asked for as often where it is as where it is not, and its name alone tells nothing."""

    key: str
    boxes: Mapping[str, Sequence[BoxXyxy]]
    captions: Sequence[str] = ()
    expressions: Sequence[tuple[str, BoxXyxy]] = ()
    questions: Sequence[tuple[str, str]] = ()
    elsewhere: Sequence[str] = ()

    @classmethod
    def of_row(cls, row: Mapping[str, Any], key: str, other: Mapping[str, Any] | None = None) -> ToldPhoto:
        """A row of a store that `saywhere build coco` wrote. other: the row of another photo."""
        boxes: dict[str, list[BoxXyxy]] = {}
        marked = np.asarray(row["boxes_xyxy"], np.float64).reshape(-1, 4).tolist()
        for box, number in zip(marked, np.asarray(row["classes"]).tolist(), strict=True):
            boxes.setdefault(COCO_CLASSES[number], []).append((box[0], box[1], box[2], box[3]))
        by_size = {name: sorted(some, key=lambda one: -_area(one)) for name, some in boxes.items()}
        said = [(one["expression"], tuple(one["box_xyxy"])) for one in row["referring"] or ()]
        asking = [(one["question"], one["answer"]) for one in row["questions"] or () if one["split"] == "train"]
        asking += [(_question(one["question"]), one["answer"]) for one in row["cocoqa"] or ()]
        beside = () if other is None else sorted({COCO_CLASSES[number] for number in np.asarray(other["classes"])})
        return cls(key, by_size, tuple(row["captions"] or ()), tuple(said), tuple(asking), tuple(beside))

    def absent(self) -> list[str]:
        """Classes of the other photo that are not in this one, as far as boxes and people's words tell."""
        texts = [*self.captions, *(text for text, _ in self.expressions)]
        there = frozenset(self.boxes).union(*(classes_named(text) for text in texts))
        return [name for name in self.elsewhere if name not in there]


def _question(text: str) -> str:
    text = text.strip().rstrip("?").strip()
    return f"{text[:1].upper()}{text[1:]}?"


def mentions(caption: str, boxes: Mapping[str, Sequence[BoxXyxy]]) -> list[CaptionMention]:
    """The things of a photo that a caption names, in its order, each class once, by its largest box.

    >>> [one.stop for one in mentions("A dog on a couch", {"couch": [(0, 0, 1, 1)], "dog": [(0, 0, 0.5, 0.5)]})]
    [2, 5]
    """
    words, known, found = caption.split(), frozenset[str](), []
    for stop in range(1, len(words) + 1):
        named = classes_named(" ".join(words[:stop]))
        found += [CaptionMention(stop, boxes[name][0]) for name in sorted(named - known) if boxes.get(name)]
        known |= named
    return found


def through(boxes: Sequence[BoxXyxy], rng: np.random.Generator) -> Trajectory:
    """A pseudo-trajectory that passes boxes in their order: two to four points in each, near its middle."""
    points: list[tuple[float, float]] = []
    for left, top, right, bottom in boxes:
        places = np.clip(rng.normal(0.5, 0.17, (int(rng.integers(2, 5)), 2)), 0.05, 0.95)
        points += [(left + x * (right - left), top + y * (bottom - top)) for x, y in places.tolist()]
    return Trajectory(Trace([(x, y, _STEP_S * number) for number, (x, y) in enumerate(points)]))


def pointed_out(box: BoxXyxy, rng: np.random.Generator) -> Trajectory:
    """A thing as people point it out: an outline, a point, or some strokes."""
    left, top, right, bottom = box
    kind = rng.random()
    if kind < 0.4:
        corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        return Trajectory(Trace([(x, y, 0.1 * number) for number, (x, y) in enumerate(corners)]))
    if kind < 0.6:
        x, y = np.clip(rng.normal(0.5, 0.12, 2), 0.1, 0.9).tolist()
        return Trajectory(Trace([(left + x * (right - left), top + y * (bottom - top), 0.0)]))
    return through([box], rng)


def talks_of(photo: ToldPhoto, count: int, rng: np.random.Generator) -> Iterator[Instruction]:
    """Some talks about a photo."""
    first = _offers(photo, _POINTING)
    others = _offers(photo, _ASKING)
    for number in range(count):
        turns: list[Exchange] = []
        used: set[str] = set()
        if first and rng.random() < 0.65:
            turns += _drawn(first, photo, rng, used)
        for _ in range(int(rng.integers(2, 6))):
            turns += _drawn(others, photo, rng, used) if others else ()
        if turns:
            yield Instruction("dialogue", (photo.key,), tuple(turns), id=f"{photo.key}#{number}")


Maker = Callable[[ToldPhoto, np.random.Generator, set[str]], Turns | None]


def _offers(
    photo: ToldPhoto, makers: Sequence[tuple[float, Callable[[ToldPhoto], Any], Maker]]
) -> list[tuple[float, Maker]]:
    return [(weight, make) for weight, needs, make in makers if needs(photo)]


def _drawn(
    offers: Sequence[tuple[float, Maker]], photo: ToldPhoto, rng: np.random.Generator, used: set[str]
) -> Sequence[Exchange]:
    weights = np.array([weight for weight, _ in offers])
    made = offers[int(rng.choice(len(offers), p=weights / weights.sum()))][1](photo, rng, used)
    return () if made is None else made


def _one(some: Sequence[Any], rng: np.random.Generator) -> Any:
    return some[int(rng.integers(len(some)))]


def _new(text: str, used: set[str]) -> bool:
    """Whether nothing was said in these words before in the talk; then it is now."""
    fresh = text not in used
    used.add(text)
    return fresh


def _caption_along(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    caption = _one(photo.captions, rng)
    named = mentions(caption, photo.boxes)
    if not named or not _new(caption, used):
        return None
    return asked("caption", through([one.box_xyxy for one in named], rng)), answered(caption)


def _phrase_of_pointed(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    text, box = _one(photo.expressions, rng)
    if not _new(text, used):
        return None
    return asked("interpret", pointed_out(box, rng)), answered(text)


def _class_of_pointed(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    name, box = _thing(photo, rng)
    if box is None or not _new(name, used):
        return None
    drawn, called = pointed_out(box, rng), with_article(name)
    if rng.random() < 0.4:
        return asked("reason", drawn, " ", "What is this?"), answered(called)
    return asked("interpret", drawn), answered(called)


def _describe(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    caption = _one(photo.captions, rng)
    return (asked("describe"), answered(caption)) if _new(caption, used) else None


def _draw(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    caption = _one(photo.captions, rng)
    named = mentions(caption, photo.boxes)
    if not named or not _new(caption, used):
        return None
    return asked("trajectory", caption), answered(through([one.box_xyxy for one in named], rng))


def _narrate(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    caption = _one(photo.captions, rng)
    named = mentions(caption, photo.boxes)
    if not named or not _new(caption, used):
        return None
    words, parts, start = caption.split(), list[Part](), 0
    for one in named:
        if one.stop > start:
            parts += [" ".join(words[start : one.stop]) + " ", through([one.box_xyxy], rng), " "]
        start = max(start, one.stop)
    return asked("narrate"), answered(*parts, " ".join(words[start:]))


def _find_expression(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    text, box = _one(photo.expressions, rng)
    return _found(text, box, rng) if _new(text, used) else None


def _find_class(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    single = [(name, some[0]) for name, some in photo.boxes.items() if len(some) == 1 and _area(some[0]) > _SMALLEST]
    if not single:
        return None
    name, box = _one(single, rng)
    return _found(with_article(name), box, rng) if _new(name, used) else None


def _found(text: str, box: BoxXyxy, rng: np.random.Generator) -> Turns:
    if rng.random() < 0.75:
        return asked("box", text), answered(Box(*box))
    return asked("ground", text), answered(through([box], rng))


def _question_of_people(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    question, answer = _one(photo.questions, rng)
    return (asked("reason", question), answered(answer)) if _new(question, used) else None


def _presence(photo: ToldPhoto, rng: np.random.Generator, used: set[str]) -> Turns | None:
    """Whether something is there: as often yes as no. Where only one of both could be asked, nothing is."""
    clear = [name for name, some in photo.boxes.items() if _area(some[0]) > _SMALLEST]
    absent = photo.absent()
    if not clear or not absent:
        return None
    answer = str(rng.choice(["yes", "no"]))
    name = _one(clear if answer == "yes" else absent, rng)
    question = _one(_PRESENCE, rng).format(with_article(name))
    return (asked("reason", question), answered(answer)) if _new(f"is there {name}", used) else None


def _thing(photo: ToldPhoto, rng: np.random.Generator) -> tuple[str, BoxXyxy | None]:
    large = [(name, box) for name, some in photo.boxes.items() for box in some if _area(box) > _SMALLEST]
    return _one(large, rng) if large else ("", None)


def _area(box_xyxy: Sequence[float]) -> float:
    return (box_xyxy[2] - box_xyxy[0]) * (box_xyxy[3] - box_xyxy[1])


_POINTING = (
    (4.0, lambda photo: photo.captions and photo.boxes, _caption_along),
    (3.0, lambda photo: photo.expressions, _phrase_of_pointed),
    (1.5, lambda photo: photo.boxes, _class_of_pointed),
)
_ASKING = (
    (1.5, lambda photo: photo.captions, _describe),
    (0.2, lambda photo: photo.captions and photo.boxes, _draw),
    (0.3, lambda photo: photo.captions and photo.boxes, _narrate),
    (3.5, lambda photo: photo.expressions, _find_expression),
    (0.8, lambda photo: photo.boxes, _find_class),
    (1.5, lambda photo: photo.questions, _question_of_people),
    (2.0, lambda photo: photo.boxes and photo.elsewhere, _presence),
)
"""How often each is drawn, what it needs, and how it is made."""
