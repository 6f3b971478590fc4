"""A small TraceVLM on real photographs that nothing learnt from: captions with and without a trajectory, expressions as
boxes, and whether things are there."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from saywhere.build.finding import CENTRE, WHOLE, largest_named
from saywhere.build.referring_texts import split_of_photo
from saywhere.build.region_texts import BoxXyxy, with_article
from saywhere.build.trace_talks import ToldPhoto, mentions, through
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.metrics import caption_scores, points_into
from saywhere.models.registry import BASE, TRACE, embedded, open_model
from saywhere.models.tracevlm.examples import asked
from saywhere.models.tracevlm.parsing import parse
from saywhere.models.tracevlm.small_face import SmallTraceLook, SmallTraceModel
from saywhere.models.tracevlm.small_photos import overlap
from saywhere.provenance import sha256_of
from saywhere.reproduce.claims import Claim, judge_photos
from saywhere.reproduce.experiment import Experiment
from saywhere.reproduce.results import Results
from saywhere.reproduce.tables import MeasureColumn, ModelRow, Table
from saywhere.store import Row, Store

PAPER = (
    "Connecting Where You Look With What You Understand: Trajectory-Driven Localized Understanding for Interactive "
    "Vision-Language Models (TraceVLM)"
)
SECTION = "real photographs"
_SOURCE = "this report itself"
"""Whose the claims about photographs are: the paper has none of them."""
_FITS = 0.5
_DRAWN = "saywhere-trace, the box that it draws by itself"
_OURS, _LARGEST = TRACE, "the largest thing found of a kind that is named"
_CENTRE, _WHOLE, _ALWAYS = "a box in the centre", "the whole photo", "always yes"
_SIMPLE = (_LARGEST, _WHOLE, _CENTRE)
_CAPTIONS = tuple(MeasureColumn(name) for name in ("BLEU-4", "ROUGE-L", "CIDEr"))
_FOUND = (MeasureColumn("P@0.5, %", digits=1), MeasureColumn("pointing, %", digits=1))
_ANSWERED = (MeasureColumn("right, %", digits=1), MeasureColumn("yes, %", digits=1))
_REMARKS = (
    "Photographs: those that the store keeps for validation. Neither the eye nor the small model learnt from them; the "
    "detector, an asset, learnt COCO's kinds from all of train2017, and they are of it.",
    "Trajectories of photographs are pseudo-trajectories: they pass the true boxes of what one of the photo's captions "
    "names, in its order. The caption along it is compared with that caption alone, as is the caption without it.",
    "Pointing: the middle of the box lies in the true one.",
    "Of each photo one thing is asked for that is there, the largest, and one that is in another photo instead, as far "
    "as boxes and people's words tell: saying yes to everything is right in half of all cases.",
)


@dataclass(frozen=True, slots=True)
class TracePhotos:
    """coco: a store of `saywhere build coco`. photos: held out, with captions or expressions, at most. expressions: of
    each. base: whether saywhere-base is measured beside it. model: a folder of a small TraceVLM, by default the shipped
    one."""

    coco: Path
    photos: int = 300
    expressions: int = 3
    base: bool = True
    model: Path | None = None

    def settings(self) -> dict[str, Any]:
        model = TRACE if self.model is None else str(self.model)
        return {"photos": self.photos, "expressions": self.expressions, "base": self.base, "model": model}


@dataclass(frozen=True, slots=True)
class PhotoMeasures:
    """What the report takes over."""

    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    remarks: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    made_by: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Told:
    """Captions of photos. along, alone: with the trajectory and without; truth: whose trajectory it was."""

    along: dict[str, str] = field(default_factory=dict)
    alone: dict[str, str] = field(default_factory=dict)
    truth: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Finding:
    """Boxes for expressions, by who found them; None where nothing was found."""

    photos: list[str] = field(default_factory=list)
    truths: list[BoxXyxy] = field(default_factory=list)
    found: dict[str, list[BoxXyxy | None]] = field(default_factory=dict)

    def right(self, name: str) -> np.ndarray:
        pairs = zip(self.found[name], self.truths, strict=True)
        return np.array([box is not None and overlap(box, truth) >= _FITS for box, truth in pairs], float)

    def pointed(self, name: str) -> np.ndarray:
        pairs = zip(self.found[name], self.truths, strict=True)
        return np.array([box is not None and points_into(box, truth) for box, truth in pairs], float)


@dataclass(slots=True)
class _Presence:
    """Questions whether something is there. truths: yes or no, as often. said: answers, by who gave them."""

    photos: list[str] = field(default_factory=list)
    truths: list[str] = field(default_factory=list)
    said: dict[str, list[str]] = field(default_factory=dict)

    def right(self, name: str) -> np.ndarray:
        return np.array([said == truth for said, truth in zip(self.said[name], self.truths, strict=True)], float)


def held_out(coco: Store, most: int) -> list[Row]:
    """Photos that nothing learnt from, with captions or expressions; those with both first."""
    rows = [
        row
        for row in coco
        if row["split"] == "validation"
        and split_of_photo(row.key, row["split"]) == "test"
        and (row["captions"] or row["referring"])
    ]
    if not rows:
        raise InvalidFile(coco.folder, "keeps no photo with captions or expressions for validation")
    return sorted(rows, key=lambda row: (not (row["captions"] and row["referring"]), row.key))[:most]


def measure_photos(settings: TracePhotos, progress: Progress) -> PhotoMeasures:
    """Look at every photo once with each model, and compare."""
    rows = held_out(Store(settings.coco), settings.photos)
    folder = settings.model or embedded(TRACE)
    model = open_model(folder)
    if not isinstance(model, SmallTraceModel):
        raise InvalidFile(folder, "is not a small TraceVLM")
    base: Any = open_model(embedded(BASE)) if settings.base else None
    told, finding, presence = _Told(), _Finding(), _Presence()
    for number, row in enumerate(rows, 1):
        image = Image.open(io.BytesIO(bytes(row["jpeg"]))).convert("RGB")
        look, photo = model.look(image, row.key), ToldPhoto.of_row(row, row.key, rows[number % len(rows)])
        beside = None if base is None else base.look(image, row.key)
        _captions(look, photo, told)
        _expressions(look, row, settings.expressions, finding, beside)
        _presence(look, photo, presence, beside)
        progress("looking at photographs", number, len(rows))
    parts = [
        *(_caption_results(told) if told.truth else ()),
        *(_found_results(finding) if finding.truths else ()),
        *(_presence_results(presence) if presence.truths else ()),
    ]
    return PhotoMeasures(
        tuple(one for one in parts if isinstance(one, Table)),
        tuple(one for one in parts if isinstance(one, Claim)),
        _REMARKS,
        {
            "photographs": f"{len(rows):,}: {len(told.truth):,} trajectories, {len(finding.truths):,} expressions, "
            f"{len(presence.truths):,} questions whether something is there"
        },
        {"weights of saywhere-trace": sha256_of(folder / "model.safetensors")[:12]},
    )


@dataclass(frozen=True, kw_only=True)
class TracePhotosExperiment(Experiment):
    """A trained small TraceVLM on photographs alone; nothing is trained."""

    photos: TracePhotos

    def settings(self) -> dict[str, Any]:
        return self.photos.settings()

    def results(self, out: Path, progress: Progress) -> Results:  # noqa: ARG002 - nothing is kept between runs
        real = measure_photos(self.photos, progress)
        return Results(
            title="TraceVLM on the small body, on photographs",
            paper=PAPER,
            settings=dict(real.settings),
            made_by=dict(real.made_by),
            tables=real.tables,
            claims=real.claims,
            remarks=real.remarks,
        )


def _captions(look: SmallTraceLook, photo: ToldPhoto, told: _Told) -> None:
    """The first caption that names two things or more, with a pseudo-trajectory through them and without."""
    for caption in photo.captions:
        named = mentions(caption, photo.boxes)
        if len(named) > 1:
            drawn = through([one.box_xyxy for one in named], np.random.default_rng(int(photo.key)))
            along, alone = look.write([[asked("caption", drawn)], [asked("describe")]])
            told.along[photo.key], told.alone[photo.key] = parse(along.text).text, parse(alone.text).text
            told.truth[photo.key] = [caption]
            return


def _expressions(look: SmallTraceLook, row: Row, most: int, finding: _Finding, base: Any) -> None:
    said = [(one["expression"], tuple(one["box_xyxy"])) for one in row["referring"] or ()][:most]
    if not said:
        return
    texts = [text for text, _ in said]
    boxes, drawn = (
        [None if box is None else box.xyxy for box in some] for some in (look.find_all(texts), look.draw(texts))
    )
    for (text, truth), box, own in zip(said, boxes, drawn, strict=True):
        finding.photos.append(row.key)
        finding.truths.append(truth)
        guesses = {_OURS: box, _DRAWN: own, _CENTRE: CENTRE, _WHOLE: WHOLE}
        guesses[_LARGEST] = largest_named(look, text)
        if base is not None:
            (place,) = base.find_all([text])
            guesses[BASE] = None if place is None else place.xyxy
        for name, guess in guesses.items():
            finding.found.setdefault(name, []).append(guess)


def _presence(look: SmallTraceLook, photo: ToldPhoto, presence: _Presence, base: Any) -> None:
    """One thing that is there, and one that is in the next photo instead: the largest, and the first by name."""
    there, absent = sorted(photo.boxes, key=lambda name: -_area(photo.boxes[name][0])), photo.absent()
    if not there or not absent:
        return
    for truth, name in (("yes", there[0]), ("no", absent[0])):
        question = f"Is there {with_article(name)}?"
        presence.photos.append(photo.key)
        presence.truths.append(truth)
        for who, asked_one in ((_OURS, look), (BASE, base)):
            if asked_one is not None:
                presence.said.setdefault(who, []).append(asked_one.answer(question).text.lower())
        presence.said.setdefault(_ALWAYS, []).append("yes")


def _area(box: BoxXyxy) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _caption_results(told: _Told) -> Iterator[Table | Claim]:
    scored = {
        name: caption_scores(captions, told.truth, ["bleu", "rouge_l", "cider"])
        for name, captions in (("along the pseudo-trajectory", told.along), ("without it", told.alone))
    }
    rows = tuple(ModelRow(name, (dict(one["corpus"]),)) for name, one in scored.items())
    yield Table(1, "captions of saywhere-trace against the caption that the trajectory is of", _CAPTIONS, rows, SECTION)
    photos = sorted(told.truth)
    along, alone = ([one["per_item"][photo]["CIDEr"] for photo in photos] for one in scored.values())
    differences = np.array(along) - np.array(alone)
    text = "photographs: captions along the trajectory are nearer to what its author said"
    yield judge_photos(text, "CIDEr", "along the pseudo-trajectory", "without it", differences, photos, _SOURCE)


def _found_results(finding: _Finding) -> Iterator[Table | Claim]:
    rows = [
        ModelRow(
            name,
            ({_FOUND[0].name: 100 * float(right.mean()), _FOUND[1].name: 100 * float(finding.pointed(name).mean())},),
        )
        for name in finding.found
        for right in [finding.right(name)]
    ]
    yield Table(2, "referring expressions as boxes", _FOUND, tuple(rows), SECTION, rows_are="Who finds")
    yield from (_finds_more(finding, other) for other in finding.found if other != _OURS)
    best = max((name for name in _SIMPLE if name in finding.found), key=lambda name: finding.right(name).mean())
    twice = (finding.right(_OURS) - 2 * finding.right(best)).tolist()
    text = f"photographs: {_OURS} finds at least twice as many expressions as {best}"
    yield judge_photos(text, "P@0.5", _OURS, f"twice {best}", twice, finding.photos, _SOURCE)


def _finds_more(finding: _Finding, other: str) -> Claim:
    differences: Sequence[float] = (finding.right(_OURS) - finding.right(other)).tolist()
    text = f"photographs: {_OURS} finds expressions better than {other}"
    return judge_photos(text, "P@0.5", _OURS, other, differences, finding.photos, _SOURCE)


def _presence_results(presence: _Presence) -> Iterator[Table | Claim]:
    rows = [
        ModelRow(
            name,
            (
                {
                    _ANSWERED[0].name: 100 * float(presence.right(name).mean()),
                    _ANSWERED[1].name: 100 * float(np.mean([answer == "yes" for answer in said])),
                },
            ),
        )
        for name, said in presence.said.items()
    ]
    yield Table(3, "whether something is there", _ANSWERED, tuple(rows), SECTION, rows_are="Who answers")
    for other in (name for name in presence.said if name != _OURS):
        text = f"photographs: {_OURS} tells what is there better than {other}"
        differences = (presence.right(_OURS) - presence.right(other)).tolist()
        yield judge_photos(text, "right", _OURS, other, differences, presence.photos, _SOURCE)
