"""`saywhere reproduce patchioner`: a model on photos that no training saw, in the form of Patch-ioner's tables.

Nothing is learnt anew but the diffusion bridge. Each photo is looked at once; looks and the bridge are kept in the
output folder, so a second run needs only to write and to score.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import saywhere
from saywhere.atomic import write_atomic
from saywhere.core import Box, InvalidFile, InvalidValue, WholeImage
from saywhere.core.types import Progress
from saywhere.models.grounded import Grounded
from saywhere.models.patchioner.seer import Seer
from saywhere.plots.gallery import gallery_page
from saywhere.plots.seen import Said, Seen
from saywhere.provenance import git_hash
from saywhere.reproduce.bootstrap import DRAWS
from saywhere.reproduce.mitr import CaptionJudge
from saywhere.reproduce.patchioner_data import HeldOut, listed_photos, read_held_out
from saywhere.reproduce.patchioner_looks import Asked, Question, ask, distances, named_by_vector, recalls, remembering
from saywhere.reproduce.patchioner_rows import NOTHING, Answers, Task, bridge_for, gaps, own_gap, references_of
from saywhere.reproduce.patchioner_tables import aggregation_tables, claims, further_tables, mitigation_tables
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import Example, Results
from saywhere.vision import CachedEncoder

QUICK_PHOTOS, QUICK_BRIDGE_STEPS = 60, 300
PHOTOS_PAGE = "photos.html"
_MOST_BOXES = 6


@dataclass(frozen=True, slots=True)
class PatchionerPlan:
    """What to evaluate on. data: see `patchioner_data`. photos: a list instead of the package's own. limit: of photos.

    bridge_steps: how long the diffusion bridge learns; 0 leaves it out. shown: photos on the page with captions.
    """

    data: Path
    photos: Path | None = None
    limit: int | None = None
    bridge_steps: int = 1500
    shown: int = 8

    def __post_init__(self) -> None:
        if min(self.bridge_steps, self.shown) < 0 or (self.limit is not None and self.limit < 1):
            raise InvalidValue("plan", f"{self.bridge_steps} steps, {self.shown} photos shown, limit {self.limit}")


def reproduce_patchioner(out: Path, plan: PatchionerPlan, seers: Mapping[str, Seer], progress: Progress) -> Results:
    """Ask, write, score, judge, and write the report. seers: by their writer's name; they share eyes and memory."""
    if not seers:
        raise InvalidValue("seers", "there are none")
    if out.exists() and not out.is_dir():
        raise InvalidFile(out, "is a file, not a folder")
    began_s = time.monotonic()
    seer = next(iter(seers.values()))
    held = read_held_out(plan.data, listed_photos(plan.photos), plan.limit)
    asked = ask(held, seer, out / "views", progress)
    found = recalls(held, asked.images.vectors["uniform"], seer, progress)
    bridge = bridge_for(seer.bank, asked, out / "bridge", plan.bridge_steps, progress) if plan.bridge_steps else None
    lbm = distances(asked.traced, held.narrations) if held.narrations else {}
    with ExitStack() as stack:
        judges: dict[Task, CaptionJudge] = {
            task: stack.enter_context(CaptionJudge(references_of(question)))
            for task, question in _referred(asked).items()
        }
        answers = Answers(asked, seers, gaps(seer, bridge), judges, progress)
        tables = [*mitigation_tables(answers), *aggregation_tables(answers)]
        tables += further_tables(answers, held, found, named_by_vector(asked.boxes, seer), lbm)
    results = Results(
        title="Patch-ioner's tables on photos that no training saw",
        paper="One Patch to Caption Them All: A Unified Zero-Shot Captioning Framework (2025)",
        settings={**_settings(plan, seers, held, asked), "minutes": round((time.monotonic() - began_s) / 60, 1)},
        made_by={"saywhere": saywhere.__version__, "git": git_hash()},
        seeds=(),
        tables=tuple(tables),
        claims=tuple(claims(answers, held, lbm)),
        examples=tuple(_examples(held, asked, seer)),
        remarks=_remarks(answers, held),
        paired="Pairs are of the same item; intervals come from drawing whole photos again.",
    )
    write_report(results, out)
    with write_atomic(out / "captions.json") as file:
        file.write(msgspec.json.format(msgspec.json.encode(answers.captions_made)))
    shown = _shown(held, seer, remembering(seer, out / "views"), plan.shown)
    gallery_page(shown, out / PHOTOS_PAGE, "Captions of true boxes", f"by {seer.name}")
    return results


def _referred(asked: Asked) -> dict[Task, Question]:
    """The tasks for which people wrote captions."""
    found: dict[Task, Question] = {"images": asked.images}
    if asked.sets is not None:
        found["sets"] = asked.sets
    return found


def _settings(plan: PatchionerPlan, seers: Mapping[str, Seer], held: HeldOut, asked: Asked) -> dict[str, Any]:
    seer = next(iter(seers.values()))
    regions = len(asked.boxes.task.items) + (len(asked.sets.task.items) if asked.sets is not None else 0)
    return {
        "model": seer.name,
        "writers": [*seers],
        "encoder": dict(seer.encoder.fingerprint),
        "gap, as shipped": own_gap(seer),
        "sentences of the memory": len(seer.bank),
        "least cosine to be found": float(seer.manners.least_grounding),
        "steps of the bridge": plan.bridge_steps,
        "looks in this run": f"{asked.looks:,} for {len(held.photos):,} photos and {regions:,} regions",
        "data": held.counts,
    }


def _remarks(answers: Answers, held: HeldOut) -> tuple[str, ...]:
    remarks = [
        "Measures are in %, CIDEr as papers print it.",
        f"Pairs are of the same photo, and there is one run, no seed: intervals come from {DRAWS:,} draws of whole "
        "photos, with all that is on them, put back after each draw.",
        "The writers of saywhere-base learnt on vectors moved across the measured gap, which is noise of a kind. So "
        f"the row “{NOTHING}” is like the paper's noise, and its “no mitigation” is not run here.",
        "The bridge learnt on the memory's texts; the mean of the images that it needs is that of these photos, "
        "without their captions.",
        "Beside the whole photo's caption for sets of boxes stands the paper's row of the CLS token; ours is the mean "
        "of all patches.",
        "Boxes have no human captions here; a caption is right if it names the box's class by any usual name.",
        "Weighing by attention is left out: this encoder has none. So is cropping, which needs a look for each box.",
        "Trace captioning is left out: the real narrations at hand have no marks that part their sentences, and no "
        "coordinates. A pseudo-trace is made of the boxes of the class that the mouse was on; nobody drew it.",
        "RefPAC-S and CLIP-S are left out: they need weights of CLIP. So is SPICE; the scene-graph F is of its kind.",
    ]
    if held.sets is None:
        remarks.append("Sets of boxes are left out: there are no entities of these photos beside the data folder.")
    missing = dict.fromkeys(reason for judge in answers.judges.values() for reason in judge.missing)
    return (*remarks, *missing)


def _examples(held: HeldOut, asked: Asked, seer: Seer) -> list[Example]:
    """Narrations with their pseudo-traces beside what was found for the same words."""
    examples = []
    for narration, grounded in asked.shown:
        truth = Grounded(narration.words, narration.placed)
        examples.append(
            Example(
                str(held.photos[narration.image_id].resolve()),
                truth.narrative(narration.image_id, origin="pseudo-trace"),
                {f"found by {seer.name}": grounded.narrative(narration.image_id, origin=seer.name)},
            )
        )
    return examples


def _shown(held: HeldOut, seer: Seer, eye: CachedEncoder, most: int) -> list[Seen]:
    """Photos from all over the list, with their caption and those of their largest boxes, as the seer says them."""
    boxes, names = held.boxes.by_image, list(held.photos)
    chosen = sorted({int(i) for i in np.linspace(0, len(names) - 1, min(most, len(names)))})
    entries = []
    for name in (names[i] for i in chosen):
        largest = sorted(boxes.get(name, []), key=lambda item: -_area(item.region))[:_MOST_BOXES]
        look = seer.see(eye.look(held.photos[name]), image_id=name)
        whole, *parts = look.captions([WholeImage(), *(item.region for item in largest)])
        regions = tuple(
            Said(item.region, f"{part.text} (true class: {item.references[0]})", part.sure)
            for item, part in zip(largest, parts, strict=True)
        )
        entries.append(Seen(held.photos[name], name, "", Said(WholeImage(), whole.text, whole.sure), regions))
    return entries


def _area(region: object) -> float:
    if not isinstance(region, Box):
        raise TypeError(f"{type(region).__name__} is not a box")
    x1, y1, x2, y2 = region.xyxy
    return (x2 - x1) * (y2 - y1)
