"""The part of a model that finds what expressions mean: look, learn, choose the threshold, measure, save."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from saywhere.build.parts import install_part
from saywhere.build.referring import look_at_photos, looked_photos, name_vectors, sees
from saywhere.build.referring_report import measure, write_report
from saywhere.build.referring_texts import COLOUR, NOUN
from saywhere.build.referring_training import ReferringData, TrainingConfig, train_referring, with_threshold
from saywhere.core.types import Progress
from saywhere.models.patchioner.referring import Referrer
from saywhere.models.patchioner.seer import Seer
from saywhere.store import Store

PART = "referring"


@dataclass(frozen=True, slots=True)
class BuiltReferring:
    """part: its folder. measures: of the report. unreadable: keys of photos that were left out."""

    part: Path
    photos: int
    measures: dict[str, float]
    unreadable: tuple[str, ...]


def build_referring(
    coco: Store,
    seer: Seer,
    model: Path,
    out: Path,
    config: TrainingConfig,
    progress: Progress,
    limit: int | None = None,
) -> BuiltReferring:
    """model: the seer's folder. limit: photos, at most. The part is measured as it was saved."""
    looked = look_at_photos(coco, seer, model, out, progress, limit)
    names, vectors = name_vectors(out, seer)
    data = ReferringData(list(looked_photos(out)), names, vectors)
    referrer = train_referring(data, config, progress)
    referrer = with_threshold(data, referrer, np.random.default_rng(config.seed), NOUN, COLOUR)
    part = out / PART
    referrer.save_pretrained(part)
    measures = measure(data, Referrer.from_pretrained(part))
    about = {"photos": looked.photos, "sees": sees(model), "training": asdict(config)}
    write_report(part, measures, about)
    return BuiltReferring(part, looked.photos, measures, looked.unreadable)


def install_referring(part: Path, model: Path) -> None:
    """Put a trained part into a model's folder, in place of one that was there, and name it in seer.json."""
    Referrer.from_pretrained(part)
    install_part(part, model, referring=part.name)
