"""Where a model, or a simple guess, finds what people's expressions mean: predictions for `saywhere score referring`.

Every photo is looked at once. Results are kept as they come, so that a run that is stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image

from saywhere.core import Box
from saywhere.core.errors import InvalidFile, SaywhereError
from saywhere.core.types import Bools, Progress
from saywhere.formats import referring_results
from saywhere.formats.record import InvalidRecord
from saywhere.formats.referring_results import ReferringResult, RunLengths
from saywhere.language.coco_aliases import classes_named

if TYPE_CHECKING:
    from saywhere.models.face import Look, Model

BoxXyxy = tuple[float, float, float, float]
CENTRE: Final[BoxXyxy] = (0.25, 0.25, 0.75, 0.75)
WHOLE: Final[BoxXyxy] = (0.0, 0.0, 1.0, 1.0)
GUESSES: Final = ("centre", "whole", "largest")
"""A box in the centre; the whole photo; the largest thing found of a kind that is named. They ask no model."""
_KEEP_EVERY = 20


@dataclass(frozen=True, slots=True)
class SaidExpression:
    """What somebody said of a photo, and what is meant. box_xyxy: fractions. mask: made when it is asked for."""

    id: str
    photo: str
    split: str
    text: str
    box_xyxy: BoxXyxy
    mask: Callable[[], Bools] | None = None


@dataclass(frozen=True, slots=True)
class ExpressionFinder:
    """by: its name. find: a photo and texts → the box of each and, if it cuts things out, the mask."""

    by: str
    find: Callable[[Image.Image, Sequence[str]], list[tuple[BoxXyxy | None, Bools | None]]]


def model_finder(model: Model, *, masks: bool = False) -> ExpressionFinder:
    """What a model finds. masks: also cut out what lies in each box."""

    def find(photo: Image.Image, texts: Sequence[str]) -> list[tuple[BoxXyxy | None, Bools | None]]:
        look = model.look(photo)
        return [_found(look, box, masks) for box in look.find_all(texts)]

    return ExpressionFinder(model.name, find)


def guess_finder(name: str, model: Model) -> ExpressionFinder:
    """One of `GUESSES`. model: whose detector finds the things of `largest`."""

    def find(photo: Image.Image, texts: Sequence[str]) -> list[tuple[BoxXyxy | None, Bools | None]]:
        if name != "largest":
            return [(CENTRE if name == "centre" else WHOLE, None) for _ in texts]
        look = model.look(photo)
        return [(largest_named(look, text), None) for text in texts]

    return ExpressionFinder(name, find)


def largest_named(look: Look, text: str) -> BoxXyxy:
    """The largest thing that the detector found of a kind that a text names; the centre where there is none."""
    named = classes_named(text)
    boxes = [one.box_xyxy for one in look.view.found if one.name in named]
    return max(boxes, key=lambda box: (box[2] - box[0]) * (box[3] - box[1])) if boxes else CENTRE


def find_expressions(
    said: Iterable[SaidExpression],
    open_photo: Callable[[str], Image.Image],
    finder: ExpressionFinder,
    out: Path,
    progress: Progress,
) -> dict[str, str]:
    """Write what is found to a file, or go on with it; photos that could not be read, with the reason."""
    kept = _kept(out, finder.by)
    waiting: dict[str, list[SaidExpression]] = {}
    for one in said:
        if one.id not in kept:
            waiting.setdefault(one.photo, []).append(one)
    unread: dict[str, str] = {}
    for number, (photo, some) in enumerate(waiting.items(), 1):
        try:
            found = finder.find(open_photo(photo), [one.text for one in some])
        except (SaywhereError, OSError) as error:
            unread[photo] = str(error)
            continue
        for one, (box, mask) in zip(some, found, strict=True):
            cut = None if mask is None else RunLengths.of(mask)
            kept[one.id] = ReferringResult(one.id, box, cut, finder.by)
        progress("finding", number, len(waiting))
        if number % _KEEP_EVERY == 0:
            referring_results.write(out, kept.values())
    referring_results.write(out, kept.values())
    return unread


def _kept(path: Path, by: str) -> dict[str, ReferringResult]:
    if not path.exists():
        return {}
    kept: dict[str, ReferringResult] = {}
    for one in referring_results.read(path):
        if isinstance(one, InvalidRecord):
            raise InvalidFile(path, f"cannot be gone on with: {one}", "give another --out")
        if one.by != by:
            raise InvalidFile(path, f"holds what {one.by or 'somebody else'} found, not {by}", "give another --out")
        kept[str(one.expression_id)] = one
    return kept


def _found(look: Look, box: Box | None, masks: bool) -> tuple[BoxXyxy | None, Bools | None]:
    if box is None:
        return None, None
    left, top, right, bottom = box.xyxy
    return (left, top, right, bottom), look.segment(box).values > 0 if masks else None


def by_photo(said: Sequence[SaidExpression], most: int | None) -> list[SaidExpression]:
    """The expressions of the first `most` photos, in the order of the photos."""
    photos: Mapping[str, None] = dict.fromkeys(one.photo for one in said)
    wanted = set(list(photos)[:most])
    return [one for one in said if one.photo in wanted]
