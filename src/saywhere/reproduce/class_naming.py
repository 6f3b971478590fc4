"""Does a model know what is in a box? Three measures against the boxes and classes of COCO.

* zero-shot class: the class whose names are most like the box's vector;
* naming: the caption of a box names its class, by any usual name;
* pointing: the centre of the box found for a class name lies in a true box of that class.

Each comes for all classes and without "person", who is so frequent that a model could say nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.build.region_texts import BoxXyxy, ClassBox
from saywhere.core import InvalidValue
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.language.coco_aliases import coco_aliases, names_class

PERSON = "person"
SMALL = 0.3
"""A class that covers less of a photo than this has to be looked for."""


@dataclass(frozen=True, slots=True)
class ClassPrompts:
    """texts: names of the classes, put into a template. classes: for each text, its class's index in COCO_CLASSES."""

    texts: tuple[str, ...]
    classes: tuple[int, ...]


def class_prompts(template: str = "a {}", most: int | None = None) -> ClassPrompts:
    """Every name that means one class only, at most `most` for each, the best names first."""
    if template.count("{}") != 1:
        raise InvalidValue("template", f"{template!r} has not one place {{}} for the name")
    aliases = coco_aliases()
    meanings: dict[str, int] = defaultdict(int)
    for names in aliases.values():
        for alias in names:
            meanings[alias] += 1
    texts, classes = [], []
    for index, name in enumerate(COCO_CLASSES):
        for alias in [a for a in aliases[name] if meanings[a] == 1][:most]:
            texts.append(template.format(alias))
            classes.append(index)
    return ClassPrompts(tuple(texts), tuple(classes))


def zero_shot_ranks(
    box_vectors: ArrayLike, prompt_vectors: ArrayLike, prompts: ClassPrompts, true_classes: Sequence[str]
) -> NDArray[np.int64]:
    """(n,) rank of each box's true class, 0 the best. A class is as like a box as the most like of its prompts.

    box_vectors: (n, d). prompt_vectors: (len(prompts.texts), d). Rows need not be of length 1; cosines are compared.
    """
    boxes, names = _unit_rows(box_vectors, "box vectors"), _unit_rows(prompt_vectors, "prompt vectors")
    if len(names) != len(prompts.texts) or len(boxes) != len(true_classes) or boxes.shape[1] != names.shape[1]:
        shapes = f"{boxes.shape} and {names.shape}"
        raise InvalidValue("vectors", f"{shapes} do not fit {len(true_classes)} boxes and {len(prompts.texts)} prompts")
    likeness = boxes @ names.T
    best = np.full((len(boxes), len(COCO_CLASSES)), -np.inf)
    for column, index in enumerate(prompts.classes):
        best[:, index] = np.maximum(best[:, index], likeness[:, column])
    true = best[np.arange(len(boxes)), [COCO_CLASSES.index(name) for name in true_classes]]
    return np.asarray((best > true[:, None]).sum(axis=1), dtype=np.int64)


def zero_shot_measures(ranks: ArrayLike, true_classes: Sequence[str]) -> dict[str, float]:
    """Share of boxes whose true class is the first, or among the first five."""
    ranked = np.asarray(ranks)
    return {
        **_shares("top-1", ranked < 1, true_classes),
        **_shares("top-5", ranked < 5, true_classes),
    }


def naming_measures(captions: Sequence[str], true_classes: Sequence[str]) -> dict[str, float]:
    """Share of boxes whose caption names their class. captions: one for each box."""
    if len(captions) != len(true_classes):
        raise InvalidValue("captions", f"{len(captions)} for {len(true_classes)} boxes")
    named = [names_class(caption, name) for caption, name in zip(captions, true_classes, strict=True)]
    return _shares("names its class", np.array(named, dtype=np.bool_), true_classes)


def pointing_measures(
    predicted: Mapping[tuple[str, str], BoxXyxy | None], boxes: Iterable[ClassBox], small: float = SMALL
) -> dict[str, float]:
    """How often the centre of the box found for (image, class) lies in a true box of that class.

    predicted: one for each class on each photo; None, or none at all, where nothing was found, which counts as wrong.
    Beside it: the centre of the photo as a guess, and both where the class covers less than `small` of the photo.
    """
    true: dict[tuple[str, str], list[BoxXyxy]] = defaultdict(list)
    for box in boxes:
        true[box.image_id, box.class_name].append(box.box_xyxy)
    if not true:
        raise InvalidValue("boxes", "there are none")
    if strange := set(predicted) - set(true):
        raise InvalidValue("predicted boxes", f"{len(strange)} are of classes that are not on the photo")
    hits = np.array([_points_into(predicted.get(key), own) for key, own in true.items()])
    centre = np.array([_points_into((0.0, 0.0, 1.0, 1.0), own) for own in true.values()])
    few = np.array([covered(own) < small for own in true.values()])
    other = np.array([name != PERSON for _, name in true])
    where = f"(covers < {small:.0%})"
    return {
        "pointing": _mean(hits),
        "centre of the photo": _mean(centre),
        "pointing (non-person)": _mean(hits[other]),
        f"pointing {where}": _mean(hits[few]),
        f"centre of the photo {where}": _mean(centre[few]),
        "classes on photos": float(len(true)),
        f"classes on photos {where}": float(few.sum()),
    }


def covered(boxes_xyxy: Sequence[BoxXyxy]) -> float:
    """Share of the photo under any of the boxes."""
    corners = np.clip(np.array(boxes_xyxy, dtype=np.float64).reshape(-1, 4), 0, 1)
    xs, ys = np.unique(corners[:, [0, 2]]), np.unique(corners[:, [1, 3]])
    inside = np.zeros((len(ys), len(xs)), dtype=np.bool_)
    for x1, y1, x2, y2 in corners.tolist():
        rows, cols = np.searchsorted(ys, [y1, y2]), np.searchsorted(xs, [x1, x2])
        inside[rows[0] : rows[1], cols[0] : cols[1]] = True
    heights, widths = np.diff(ys, append=ys[-1:]), np.diff(xs, append=xs[-1:])
    return float((inside * heights[:, None] * widths[None, :]).sum())


def _points_into(box: BoxXyxy | None, own: Sequence[BoxXyxy]) -> bool:
    if box is None:
        return False
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return any(x1 <= x <= x2 and y1 <= y <= y2 for x1, y1, x2, y2 in own)


def _shares(measure: str, right: NDArray[np.bool_], true_classes: Sequence[str]) -> dict[str, float]:
    if len(right) != len(true_classes) or not len(right):
        raise InvalidValue(measure, f"{len(right)} results for {len(true_classes)} boxes")
    other = np.array([name != PERSON for name in true_classes])
    return {measure: _mean(right), f"{measure} (non-person)": _mean(right[other])}


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _unit_rows(vectors: ArrayLike, what: str) -> NDArray[np.float64]:
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InvalidValue(what, f"have shape {rows.shape} or hold NaN; (n, d) finite numbers are needed")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not lengths.all():
        raise InvalidValue(what, "a row is all zeros")
    unit: NDArray[np.float64] = rows / lengths
    return unit
