"""The numbers of a model's card, on photos that it never saw: captions, invented things, retrieval, boxes, pointing.

Any model of `saywhere.load` that captions regions can be measured; what it has no skill for is left out. Several models
are measured on the same photos in one run, so that their times can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from saywhere.atomic import write_atomic
from saywhere.build.region_texts import BoxXyxy
from saywhere.core import InvalidValue, WholeImage
from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import classes_named, coco_aliases
from saywhere.metrics import caption_scores
from saywhere.models.common.recalls import recalls
from saywhere.provenance import git_hash
from saywhere.reproduce.class_naming import naming_measures, pointing_measures
from saywhere.reproduce.patchioner_data import HeldOut
from saywhere.reproduce.saliency import saliency_measures
from saywhere.store import Store

RESULTS, TABLE = "card.json", "card.md"
_RECALLS = (1, 5, 10)


@dataclass(slots=True)
class _Seen:
    """What a model said of all photos. wholes: (d,) vectors of photos, if it has such. seconds: by what was done."""

    captions: dict[str, str] = field(default_factory=dict)
    boxes: list[str] = field(default_factory=list)
    pointed: dict[tuple[str, str], BoxXyxy | None] = field(default_factory=dict)
    wholes: list[Floats32] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def timed(self, what: str, started: float, count: int = 1) -> None:
        self.seconds.setdefault(what, []).append((time.perf_counter() - started) / max(count, 1))


def measure(model: Any, held: HeldOut, progress: Progress) -> dict[str, float]:
    """Measure → value, shares in per cent and CIDEr times 100."""
    seen = _look(model, held, progress)
    references = {item.image_id: list(item.references) for item in held.images.items}
    true_classes = [item.references[0] for item in held.boxes.items]
    corpus = caption_scores(seen.captions, references, ["bleu", "cider"])["corpus"]
    measures = {
        "CIDEr": 100 * corpus["CIDEr"],
        "BLEU-4": 100 * corpus["BLEU-4"],
        **invented(seen.captions, true_things(held)),
        **{f"box caption {name}": 100 * value for name, value in naming_measures(seen.boxes, true_classes).items()},
    }
    if seen.pointed:
        measures |= {
            name: 100 * value
            for name, value in pointing_measures(seen.pointed, held.class_boxes).items()
            if name.startswith("pointing")
        }
    if seen.wholes:
        measures |= _recalls(model, np.stack(seen.wholes), held)
    return measures | {f"{what}, ms (median)": 1000 * float(np.median(all_)) for what, all_ in seen.seconds.items()}


def true_things(held: HeldOut) -> dict[str, set[str]]:
    """For each photo the COCO classes that boxes mark on it or its captions name."""
    things: dict[str, set[str]] = {}
    for item in held.images.items:
        things[item.image_id] = {one for text in item.references for one in classes_named(text)}
    for box in held.class_boxes:
        things[box.image_id].add(box.class_name)
    return things


def invented(captions: Mapping[str, str], things: Mapping[str, set[str]]) -> dict[str, float]:
    """CHAIR (Rohrbach et al. 2018): of the COCO things that captions name, and of the captions, the share that names
    one which is not there."""
    named = {name: classes_named(text) for name, text in captions.items()}
    wrong = {name: some - things[name] for name, some in named.items()}
    if not named:
        raise InvalidValue("captions", "there are none")
    said = sum(map(len, named.values()))
    return {
        "CHAIR-i": 100 * sum(map(len, wrong.values())) / max(said, 1),
        "CHAIR-s": 100 * sum(map(bool, wrong.values())) / len(wrong),
        "things named a caption": said / len(named),
    }


def write_card(out: Path, results: Mapping[str, Mapping[str, float]], held: HeldOut) -> None:
    """card.json and card.md: a row for each measure, a column for each model."""
    about = {"photos": len(held.photos), "boxes": len(held.class_boxes), "commit": git_hash()}
    with write_atomic(out / RESULTS) as file:
        file.write(msgspec.json.format(msgspec.json.encode({"about": about, "results": results}), indent=2))
    names = list(dict.fromkeys(name for one in results.values() for name in one))
    lines = [f"| {len(held.photos)} photos | {' | '.join(results)} |", "|---|" + "---|" * len(results)]
    for name in names:
        values = (f"{one[name]:.1f}" if name in one else "–" for one in results.values())
        lines.append(f"| {name} | {' | '.join(values)} |")
    with write_atomic(out / TABLE) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _look(model: Any, held: HeldOut, progress: Progress) -> _Seen:
    seen = _Seen()
    boxes = held.boxes.by_image
    classes: dict[str, list[str]] = {}
    for box in held.class_boxes:
        classes.setdefault(box.image_id, []).append(box.class_name)
    for done, (name, path) in enumerate(held.photos.items(), 1):
        started = time.perf_counter()
        look = model.look(path)
        seen.timed("a look", started)
        started = time.perf_counter()
        seen.captions[name] = look.caption(WholeImage()).text
        seen.timed("caption of the whole", started)
        regions = [item.region for item in boxes.get(name, ())]
        started = time.perf_counter()
        seen.boxes += [caption.text for caption in look.captions(regions)]
        if regions:
            seen.timed("caption of a region, among others", started, len(regions))
        if "ground" in model.skills:
            kinds = list(dict.fromkeys(classes.get(name, ())))
            for kind, box in zip(kinds, look.find_all([f"a {coco_aliases()[kind][0]}" for kind in kinds]), strict=True):
                seen.pointed[name, kind] = None if box is None else box.xyxy
        # Not every family has vectors of photos in the space of texts.
        with suppress(AttributeError):
            seen.wholes.append(look.aligned.contrast())
        progress("measuring", done, len(held.photos))
    return seen


def _recalls(model: Any, wholes: Floats32, held: HeldOut) -> dict[str, float]:
    """How often a caption's own photo is among the nearest."""
    order = {name: number for number, name in enumerate(held.photos)}
    pairs = [(order[item.image_id], text) for item in held.images.items for text in item.references]
    texts = torch.from_numpy(model.queries([text for _, text in pairs]))
    found = recalls(torch.from_numpy(wholes), texts, [number for number, _ in pairs], _RECALLS)
    return {f"text → photo R@{most}": 100 * found[f"r{most}"] for most in _RECALLS}


def measure_models(
    models: Mapping[str, Any],
    held: HeldOut,
    out: Path,
    progress: Progress,
    looks: Store | None = None,
    fixations: Path | None = None,
) -> dict[str, dict[str, float]]:
    """All models, one after another; the files are written after each, so that nothing is lost. looks: a COCO store
    with SALICON's maps, to measure on as many of its photos where people look; fixations: see `saliency_measures`."""
    results: dict[str, dict[str, float]] = {}
    for name, model in models.items():
        results[name] = measure(model, held, progress)
        if looks is not None:
            results[name] |= saliency_measures(model, looks, len(held.photos), progress, fixations)
        write_card(out, results, held)
    return results
