"""Patch-ioner's tables beside what the paper prints, and the verdicts on its claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from saywhere.reproduce.bootstrap import judge_photos
from saywhere.reproduce.class_naming import SMALL, pointing_measures
from saywhere.reproduce.patchioner_data import HeldOut
from saywhere.reproduce.patchioner_looks import BOX_WAYS, FOUND, IMAGE_WAYS, SET_WAYS
from saywhere.reproduce.patchioner_rows import (
    BRIDGE,
    CIDER,
    INSTEAD,
    NAMES,
    NAMES_OTHERS,
    NOTHING,
    OWN,
    Answers,
    Key,
    Task,
    memory_name,
    own_gap,
    said_beams,
)
from saywhere.reproduce.results import Claim, Column, Row, Table

MEMORY = memory_name(0.02)
"""The memory that claims are about: its temperature was fixed beforehand, not chosen on these photos."""
BEAMS = 5
LBM = "LBM (k=0)"
_CAPTION_MEASURES = ("BLEU-4", "METEOR", "ROUGE-L", CIDER, "scene-graph F")
_TITLES: Mapping[Task, str] = {
    "images": "whole photos",
    "boxes": "true boxes",
    "sets": "sets of boxes (COCO Entities)",
}


def _printed(*values: float) -> dict[str, float]:
    """BLEU-4, METEOR, ROUGE-L and CIDEr as the paper has them."""
    return dict(zip(("BLEU-4", "METEOR", "ROUGE-L", CIDER), values, strict=True))


# Table 10. The paper's noise acts while the decoder learns, as ours does: it stands beside our row without a memory.
_MITIGATION: Mapping[str, Mapping[str, dict[str, float]]] = {
    "images": {
        "none": _printed(9.9, 17.7, 36.8, 43.7),
        NOTHING: _printed(19.6, 21.5, 45.4, 65.5),
        MEMORY: _printed(19.5, 21.5, 44.9, 69.2),
    },
    "sets": {
        "none": _printed(5.0, 15.0, 29.4, 59.4),
        NOTHING: _printed(10.5, 18.4, 37.2, 97.5),
        MEMORY: _printed(11.5, 19.3, 38.8, 109.1),
        BRIDGE: {CIDER: 114.4},
    },
    "boxes": {},
}
_NOT_RUN = "a decoder that learnt without noise, and no memory (not run here)"
# Tables 9 and 8.
_AGGREGATION: Mapping[str, Mapping[str, dict[str, float]]] = {
    "images": {
        "uniform": _printed(19.52, 21.49, 44.88, 69.19),
        "gaussian": _printed(21.17, 22.62, 46.62, 76.79),
        "central patch": _printed(15.68, 18.46, 40.84, 55.53),
    },
    "sets": {
        "patch": _printed(11.5, 19.3, 38.8, 109.1),
        INSTEAD: _printed(9.1, 16.9, 35.0, 89.4),
    },
    "boxes": {},
}
_NUMBERS = {"images": 9, "boxes": 7, "sets": 8}


def tasks_of(answers: Answers) -> tuple[Task, ...]:
    return ("images", "boxes") if answers.asked.sets is None else ("images", "boxes", "sets")


def mitigation_tables(answers: Answers) -> list[Table]:
    """Table 10, a task each: every gap with every writer."""
    tables = []
    for task in tasks_of(answers):
        printed = _MITIGATION[task]
        first = next(iter(answers.seers))
        rows = [
            Row(f"{writer} writer · {gap}", (answers.scores(Key(task, writer, gap)),), paper)
            for writer in answers.seers
            for gap in answers.ways
            for paper in [printed.get(gap, {}) if writer == first else {}]
        ]
        rows = [Row(_NOT_RUN, (), printed["none"]), *rows] if printed else rows
        tables.append(
            Table(10, f"Closing the gap: captions of {_TITLES[task]}, greedy", _columns(task, rows), tuple(rows))
        )
    return tables


def aggregation_tables(answers: Answers) -> list[Table]:
    """Tables 9, 7 and 8: every way of weighing patches, with the gap closed as the model does it."""
    ways = {"images": [*IMAGE_WAYS], "boxes": [*BOX_WAYS, INSTEAD], "sets": [*SET_WAYS, INSTEAD]}
    tables = []
    writer, seer = next(iter(answers.seers.items()))
    for task in tasks_of(answers):
        rows = [
            Row(way, (answers.scores(Key(task, writer, own_gap(seer), way)),), _AGGREGATION[task].get(way, {}))
            for way in ways[task]
        ]
        title = f"Weighing patches: captions of {_TITLES[task]}, {writer} writer, greedy"
        tables.append(Table(_NUMBERS[task], title, _columns(task, rows), tuple(rows)))
    return tables


def _columns(task: Task, rows: Sequence[Row]) -> tuple[Column, ...]:
    if task == "boxes":
        return Column(NAMES), Column(NAMES_OTHERS)
    taken = {name for row in rows for scores in row.scores for name in scores}
    return tuple(Column(name) for name in _CAPTION_MEASURES if name in taken)


def further_tables(
    answers: Answers,
    held: HeldOut,
    found: Mapping[str, float],
    classes: Mapping[str, float],
    lbm: Mapping[str, NDArray[np.float64]],
) -> list[Table]:
    """What the paper does not measure. found: R@k. classes: zero-shot classes of boxes. lbm: of each narration."""
    photos, seers = len(held.photos), answers.seers
    name = next(iter(seers.values())).name
    chance = {f"R@{k}": 100 * min(1.0, k / photos) for k in (1, 5, 10)}
    captions = held.counts["captions"]
    tables = [
        _table(
            12, f"a photo found by a caption; {captions:,} captions, {photos:,} photos", {name: found, "chance": chance}
        ),
        _table(13, f"the class of {held.counts['boxes']:,} true boxes by their vectors, among 80", {name: classes}),
        _table(14, "naming the class in the caption of a true box, as shipped", _naming(answers)),
        _pointing(answers, held, name),
        _table(16, "captions of whole photos, by the way to choose words; the gap closed as shipped", _beams(answers)),
    ]
    if lbm:
        rows = {name if who == FOUND else who: {LBM: float(values.mean())} for who, values in lbm.items()}
        about = f"distance to the pseudo-traces of {len(held.narrations):,} real narrations, given their words"
        tables.append(_table(17, about, rows, lower=True))
    return tables


def _table(number: int, about: str, rows: Mapping[str, Mapping[str, float]], lower: bool = False) -> Table:
    columns = tuple(Column(measure, lower) for measure in dict.fromkeys(m for scores in rows.values() for m in scores))
    made = tuple(Row(name, (dict(scores),)) for name, scores in rows.items())
    return Table(number, f"Not in the paper: {about}", columns, made)


def _naming(answers: Answers) -> dict[str, dict[str, float]]:
    rows = {}
    for writer, seer in answers.seers.items():
        gap = own_gap(seer)
        rows[f"{writer} writer, captions of boxes"] = answers.scores(Key("boxes", writer, gap, beams=OWN))
        rows[f"{writer} writer, {INSTEAD}"] = answers.scores(Key("boxes", writer, gap, INSTEAD, OWN))
    return rows


def _pointing(answers: Answers, held: HeldOut, name: str) -> Table:
    measures = pointing_measures(answers.asked.pointed, held.class_boxes)
    few = f"(covers < {SMALL:.0%})"
    own = {kind: 100 * measures[f"pointing{kind}"] for kind in ("", " (non-person)", f" {few}")}
    centre = {kind: 100 * measures[f"centre of the photo{kind}"] for kind in ("", f" {few}")}
    rows = {
        who: {f"pointing{kind}": value for kind, value in values.items() if np.isfinite(value)}
        for who, values in ((name, own), ("the centre of the photo", centre))
    }
    total, small = measures["classes on photos"], measures[f"classes on photos {few}"]
    return _table(
        15, f"pointing at {total:,.0f} classes on photos by their names; {small:,.0f} cover < {SMALL:.0%}", rows
    )


def _beams(answers: Answers) -> dict[str, dict[str, float]]:
    return {
        f"{writer} writer, {said_beams(beams)}": {
            measure: value
            for measure, value in answers.scores(Key("images", writer, own_gap(seer), beams=beams)).items()
            if measure in _CAPTION_MEASURES
        }
        for writer, seer in answers.seers.items()
        for beams in (1, BEAMS, OWN)
    }


def claims(answers: Answers, held: HeldOut, lbm: Mapping[str, NDArray[np.float64]]) -> list[Claim]:
    """The paper's claims for the first writer, and those about pointing, which are ours."""
    writer, seer = next(iter(answers.seers.items()))
    gap = own_gap(seer)
    made = []
    for task in tasks_of(answers):
        closed, left = Key(task, writer, MEMORY), Key(task, writer, NOTHING)
        made.append(_claim(answers, f"A memory helps beyond noise alone: {_TITLES[task]} (Table 10)", closed, left))
        if BRIDGE in answers.ways:
            text = f"A diffusion bridge helps more than a memory: {_TITLES[task]} (Table 2)"
            made.append(_claim(answers, text, Key(task, writer, BRIDGE), closed))
        if task != "images":
            text = f"Patches of the region say more about it than the whole photo: {_TITLES[task]} (Tables 2 and 8)"
            made.append(_claim(answers, text, Key(task, writer, gap), Key(task, writer, gap, INSTEAD)))
    pairs: list[tuple[str, Task, str, str]] = [
        ("The mean of all patches says more than the central patch (Table 9)", "images", "uniform", "central patch"),
        (
            "Patches weighed by a Gaussian say more than their mean: whole photos (Table 9)",
            "images",
            "gaussian",
            "uniform",
        ),
        ("Patches weighed by a Gaussian say more than their mean: boxes (Table 7)", "boxes", "gaussian", "touch"),
    ]
    for text, task, better, worse in pairs:
        made.append(_claim(answers, text, Key(task, writer, gap, better), Key(task, writer, gap, worse)))
    photos = [one.image_id for one in held.narrations]
    for who, values in lbm.items():
        if who != FOUND:
            text = f"Words are found nearer to their pseudo-boxes than by {who} (not a claim of the paper)"
            made.append(judge_photos(text, LBM, seer.name, who, values - lbm[FOUND], photos))
    return made


def _claim(answers: Answers, text: str, better: Key, worse: Key) -> Claim:
    others = better.task == "boxes"
    high, photos = answers.each(better, others=others)
    low, _ = answers.each(worse, others=others)
    names = (better.gap, worse.gap) if better.gap != worse.gap else (better.way, worse.way)
    return judge_photos(text, NAMES_OTHERS if others else CIDER, *names, high - low, photos)
