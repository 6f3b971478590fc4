"""How well expressions are found on photos that nothing was tuned on, beside what needs no learning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.build.referring import LookedPhoto
from saywhere.build.referring_texts import COLOUR, NOUN, TRUE
from saywhere.build.referring_training import ReferringData, ReferringItem, answers
from saywhere.core.errors import InvalidValue
from saywhere.language.coco_aliases import classes_named
from saywhere.models.patchioner.candidates import Candidates, ious
from saywhere.models.patchioner.referring import Referrer
from saywhere.provenance import git_hash

REPORT, TABLE = "report.json", "report.md"
UNSEEN = "unseen photos: "
_FITS, _SURE = 0.5, 0.3
_CENTRE = (0.25, 0.25, 0.75, 0.75)
_SETS = {"unc_val": "RefCOCO", "unc+_val": "RefCOCO+", "gref_umd_val": "RefCOCOg"}


def measure(data: ReferringData, referrer: Referrer, split: str = "test") -> dict[str, float]:
    """Measure → value, in per cent but for counts. Those that begin with UNSEEN are of photos that the eye's store
    keeps for validation: from the others the model's eye and writers may have learnt."""
    asked = data.split(split, TRUE)
    if not asked:
        raise InvalidValue("photos", f"none with expressions is of the split {split!r}", "look at more of them")
    unseen = [one for one in asked if data.photos[one.photo].unseen]
    measures = _found(data, referrer, asked)
    if unseen:
        measures |= {f"{UNSEEN}{name}": value for name, value in _found(data, referrer, unseen).items()}
    return measures | _rates(data, referrer, split, asked)


def _found(data: ReferringData, referrer: Referrer, asked: Sequence[ReferringItem]) -> dict[str, float]:
    overlaps = data.overlaps(asked).numpy()
    chosen, there = answers(data, referrer, asked)
    right = overlaps[np.arange(len(asked)), chosen] >= _FITS
    return {
        "expressions": float(len(asked)),
        "photos": float(len({one.photo for one in asked})),
        "P@0.5": _percent(right),
        "P@0.5, not there counts as wrong": _percent(right & (there >= referrer.config.least_there)),
        "a candidate fits": _percent(overlaps.max(axis=1) >= _FITS),
        **_baselines(data, asked),
        **_by_set(data, asked, right),
    }


def _rates(data: ReferringData, referrer: Referrer, split: str, asked: Sequence[ReferringItem]) -> dict[str, float]:
    """How often it is wrong about being there."""
    least = referrer.config.least_there
    _, right = answers(data, referrer, asked)
    rates = {"threshold of being there": 100 * least, "wrongly not there": _percent(right < least)}
    absent = {"another photo's expression": data.others(split, len(asked), np.random.default_rng(1))}
    absent |= {f"a {kind} replaced": data.split(split, kind) for kind in (NOUN, COLOUR)}
    for name, some in absent.items():
        if some:
            _, there = answers(data, referrer, some)
            rates[f"wrongly there: {name}"] = _percent(there >= least)
    return rates


def _by_set(data: ReferringData, asked: Sequence[ReferringItem], right: NDArray[np.bool_]) -> dict[str, float]:
    sources = np.array([data.texts[one.text].source for one in asked])
    return {
        f"P@0.5, {_SETS.get(source, source)}": _percent(right[sources == source]) for source in sorted(set(sources))
    }


def _baselines(data: ReferringData, asked: Sequence[ReferringItem]) -> dict[str, float]:
    """P@0.5 of what needs no learning. Today's: finding by likeness alone, with the model's own thresholds."""
    guessed: dict[str, list[bool]] = {}
    today, known = [], []
    for one in asked:
        said, photo = data.texts[one.text], data.photos[one.photo]
        box = np.array([said.box_xyxy], np.float32)
        guesses = {
            "largest thing of the named class": largest(photo.offered, classes_named(said.text)),
            "largest thing of the true class": largest(photo.offered, frozenset([said.class_name])),
            "centre": _CENTRE,
        }
        if photo.today:
            place = photo.today[_number(photo, said)]
            known.append(place is not None)
            today.append(place is not None and _fits(box, place))
        for name, guess in guesses.items():
            guessed.setdefault(name, []).append(_fits(box, guess))
    measures = {f"P@0.5, {name}": _percent(np.array(fits)) for name, fits in guessed.items()}
    if today:
        measures["P@0.5, by likeness alone"] = _percent(np.array(today))
        measures["not found, by likeness alone"] = _percent(~np.array(known))
    return measures


def largest(offered: Candidates, kinds: frozenset[str]) -> tuple[float, ...]:
    """The largest of the things that are surely there and of one of these kinds; of all things, if none is."""
    boxes, sizes = offered.boxes_xyxy, (offered.boxes_xyxy[:, 2:] - offered.boxes_xyxy[:, :2]).prod(axis=1)
    things = np.array([bool(name) for name in offered.names])
    sure = things & (offered.scores >= _SURE)
    named = sure & np.array([name in kinds for name in offered.names])
    among = next((some for some in (named, sure, things) if some.any()), ~things)
    return tuple(boxes[int(np.where(among, sizes, -1).argmax())].tolist())


def write_report(folder: Path, measures: dict[str, float], about: dict[str, object]) -> None:
    """report.json and report.md."""
    content = {"about": about | {"commit": git_hash()}, "measures": measures}
    with write_atomic(folder / REPORT) as file:
        file.write(msgspec.json.format(msgspec.json.encode(content), indent=2))
    lines = ["| test photos | |", "|---|---|", *(f"| {name} | {value:.1f} |" for name, value in measures.items())]
    with write_atomic(folder / TABLE) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _number(photo: LookedPhoto, said: object) -> int:
    return next(number for number, one in enumerate(photo.said) if one is said)


def _fits(box_xyxy: NDArray[np.float32], guess: Sequence[float]) -> bool:
    return bool(ious(box_xyxy, np.array([guess], np.float32))[0, 0] >= _FITS)


def _percent(hits: NDArray[np.bool_]) -> float:
    return 100 * float(np.mean(hits))
