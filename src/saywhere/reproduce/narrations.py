"""`saywhere reproduce narrations`: MITR on real narrations with pseudo-traces, against baselines that see no photo.

What a pseudo-trace is says `saywhere.reproduce.pseudo_traces`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.core import InvalidFile, InvalidValue, WordBoxes
from saywhere.core.types import Progress
from saywhere.formats import InvalidRecord, trecs
from saywhere.formats.trecs import TaggedNarration
from saywhere.language.vocabulary import Vocabulary
from saywhere.learn.mitr_evaluation import MitrOutputs, references_of
from saywhere.models.mitr.batch import NarrativeExample, example
from saywhere.models.mitr.prepared import Prepared, PreparedNarrative, save_prepared, split_of
from saywhere.models.region_features import RegionFeatures, open_features, view_regions
from saywhere.reproduce.caption_metrics import COLUMNS as CAPTION
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.reproduce.claims import judge
from saywhere.reproduce.experiment import TrainingJob, training_minutes
from saywhere.reproduce.mitr import PAPER
from saywhere.reproduce.mitr_bounds import commonest_narration, distances, guesses
from saywhere.reproduce.mitr_measure import LBM, MitrRow, MitrScale, MitrTraining
from saywhere.reproduce.pseudo_traces import Boxes, pseudo_boxes, read_boxes
from saywhere.reproduce.results import Departure, Results
from saywhere.reproduce.tables import ModelRow, Table
from saywhere.store import is_finished
from saywhere.vision import extract, open_encoder

_ROW = MitrRow(
    key="mitr",
    title="MITR, Task 1 + 2 + 3",
    # Boxes are hidden from Task 1 while it learns: with a word's neighbours in view it would only copy them.
    model={"trace": 1.0, "caption": 0.3, "joint": 1.0, "cycle": 0.0, "trace_mask_rate": 0.9, "input_dropout": 0.5},
    tests=("trace", "caption", "joint"),
)
_REMARKS = (
    "A pseudo-trace is made of the boxes of the class that the mouse was on while a word was said. The mouse's "
    "own way is not in these data, so this is no measure of human traces.",
    "Narrations are real, in the lower case and without the marks of the published files.",
)


@dataclass(frozen=True, slots=True)
class NarrationScale:
    """max_words: longer narrations are cut there. size: numbers that a region's feature is brought down to."""

    max_words: int = 50
    size: int = 192
    words: int = 3000


def prepare_narrations(
    folder: Path,
    narrations: Iterable[TaggedNarration],
    boxes: Boxes,
    look: Callable[[str], RegionFeatures | None],
    scale: NarrationScale,
) -> dict[str, int]:
    """Write a folder of prepared narratives. look: regions of a photo, or None if it is not here."""
    counts = {"train": 0, "validation": 0, "test": 0, "without photo": 0, "without any pseudo-box": 0}
    seen: dict[str, RegionFeatures] = {}
    kept: list[tuple[str, TaggedNarration, WordBoxes]] = []
    for narration in narrations:
        image = narration.image_id.zfill(12)
        regions = seen.get(image) or (look(image) if image in boxes else None)
        if regions is None:
            counts["without photo"] += 1
            continue
        placed = pseudo_boxes(narration, boxes[image])
        if not placed.located[: scale.max_words].any():
            counts["without any pseudo-box"] += 1
            continue
        seen[image] = regions
        kept.append((split_of(image), narration, placed))
        counts[split_of(image)] += 1
    if not kept:
        raise InvalidValue("narrations", "none of them has a photo with boxes here")
    smaller = _smaller({name: r for name, r in seen.items() if split_of(name) == "train"}, scale.size)
    images = {name: RegionFeatures(smaller(r.features), r.boxes_xyxy) for name, r in seen.items()}
    vocabulary = Vocabulary.of_words([" ".join(n.words) for split, n, _ in kept if split == "train"], scale.words)
    prepared = []
    for split, narration, placed in kept:
        image = narration.image_id.zfill(12)
        name = f"{narration.image_id}_{narration.annotator_id}"
        one = example(images[image], narration.words, placed, vocabulary, scale.max_words, name)
        prepared.append(PreparedNarrative(image, split, one.words, one.boxes, one.located, name))
    save_prepared(folder, images, prepared, vocabulary, {"pseudo-traces": True, "max_words": scale.max_words})
    return counts


def _smaller(train: Mapping[str, RegionFeatures], size: int) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Principal components of the training photos' regions, each brought to a spread of 1."""
    every = np.concatenate([regions.features for regions in train.values()]).astype(np.float64)
    mean = every.mean(axis=0)
    values, vectors = np.linalg.eigh((every - mean).T @ (every - mean) / len(every))
    keep = np.argsort(values)[::-1][:size]
    weights = vectors[:, keep] / np.sqrt(np.maximum(values[keep], 1e-8))
    return lambda features: ((features - mean) @ weights).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class NarrationsExperiment(MitrTraining):
    """ids: the ids file of tagged narrations. photos: to be looked at by `encoder`, patches joined in squares of
    `pooled`; or features: what was seen in them already, for `open_features`."""

    ids: Path
    boxes: Path
    photos: Path | None = None
    features: Path | None = None
    seeds: tuple[int, ...] = (0,)
    workers: int = 0
    encoder: str = "efficientnet-lite0"
    input_px: int = 320
    pooled: int = 2
    narrations: NarrationScale = field(default_factory=NarrationScale)
    scale: MitrScale = field(default_factory=lambda: MitrScale(steps=1500, batch=16, width=128, lr=1e-3, test=300))

    def settings(self) -> dict[str, Any]:
        look: dict[str, Any] = {"encoder": self.encoder, "input_px": self.input_px, "pooled": self.pooled}
        if self.features is not None:
            look = {"features": self._seen_by}
        return {"seeds": self.seeds, "narrations": self.narrations, "run": self.scale, "look": look}

    @property
    def _seen_by(self) -> str:
        """What the regions come from, for people."""
        if self.features is None:
            return f"patches of {self.encoder} at {self.input_px} px, frozen"
        source = open_features(self.features).source
        return f"places that {source.model} sees" if source and source.model else f"those of {self.features.name}"

    def departures(self) -> list[Departure]:
        return [
            Departure("traces", "pseudo-traces: the largest box of the class that the mouse was on", "of the mouse"),
            Departure("regions", self._seen_by, "Faster R-CNN's"),
            Departure("words of a narration", f"at most {self.narrations.max_words}", "at most 100"),
            *self.scale.departures(_ROW.model),
        ]

    def jobs(self, out: Path, progress: Progress) -> list[TrainingJob[MitrRow]]:
        if not is_finished(out / "data"):
            self._prepare(out, progress)
        return self.jobs_of([_ROW], out / "data", out / "runs")

    def _prepare(self, out: Path, progress: Progress) -> None:
        look = self._looking(out, progress)
        told = [value for value in trecs.read(self.ids) if not isinstance(value, InvalidRecord)]
        prepare_narrations(out / "data", told, read_boxes(self.boxes), look, self.narrations)

    def _looking(self, out: Path, progress: Progress) -> Callable[[str], RegionFeatures | None]:
        """Regions of a photo, or None if it is not here."""
        if self.features is not None:
            return open_features(self.features).get
        if self.photos is None:
            raise InvalidValue("narrations", "have neither photos nor features", "name a folder of photos, or features")
        photos = sorted(path for path in self.photos.iterdir() if path.suffix in (".webp", ".jpg", ".jpeg", ".png"))
        if not photos:
            raise InvalidFile(self.photos, "holds no photographs")
        views = extract(photos, out / "views", open_encoder(self.encoder, self.input_px), progress=progress)
        return lambda image: view_regions(views[image], self.pooled) if image in views else None

    def compare(self, out: Path, measured: Mapping[TrainingJob[MitrRow], MitrOutputs], progress: Progress) -> Results:
        prepared = Prepared(out / "data")
        test = prepared.split("test", self.scale.test)
        items = list(test)
        times = len(self.seeds)
        rows = [ModelRow(name, (distances(boxes, items),) * times) for name, boxes in guesses(prepared, test).items()]
        ours = ModelRow(_ROW.title, tuple(_pointed(made, items) for made in measured.values()))
        scores, missing = self.scores(measured, progress)
        references = references_of(prepared, test)
        with CaptionMetrics(references) as metrics:
            frequent = metrics.scores(dict.fromkeys(references, commonest_narration(prepared)))
        captions = (
            ModelRow("the same narration always: the commonest beginning", (frequent,) * times),
            ModelRow("MITR, Task 2: along the pseudo-trace", tuple(found["caption"] for found in scores.values())),
            ModelRow("MITR, Task 3: from the photo alone", tuple(found["joint"] for found in scores.values())),
        )
        return Results(
            title="MITR on real narrations, with pseudo-traces",
            paper=PAPER,
            settings={
                "narratives": f"{len(prepared.split('train'))} to learn from, {len(items)} to test on, other photos",
                "words known": len(prepared.vocabulary),
                "regions": self._seen_by,
                "steps": self.scale.steps,
                "width": self.scale.width,
                "seeds": times,
                "minutes of training, all runs added": training_minutes(measured),
            },
            made_by={"data": prepared.fingerprint},
            tables=(
                Table(5, "Task 1, a pseudo-trace for a real narration", LBM, (*rows, ours)),
                Table(2, "Tasks 2 and 3, captions", CAPTION, captions),
            ),
            claims=tuple(judge(f"MITR points better than {row.name}", LBM[0], ours, row) for row in rows),
            remarks=(*_REMARKS, *missing),
        )


def _pointed(made: MitrOutputs, items: Sequence[NarrativeExample]) -> dict[str, float]:
    return distances([np.array(boxes) for boxes in made.boxes["trace"]], items)
