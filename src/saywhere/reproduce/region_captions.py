"""`saywhere reproduce dense` and `traces`: captions of boxes and of traces that people described, by any model.

Each photo is looked at once, and its regions are captioned by every way to weigh their patches. Beside them stand the
whole photo's caption, which knows nothing of the region, and the caption of a crop, which needs a look of its own for
each region.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from PIL import Image

from saywhere.build.trace_benchmark import read_trace_benchmark
from saywhere.core import Box, Caption, InvalidFile, InvalidValue, MissingDependency, Region, Trace, WholeImage
from saywhere.core.types import Progress
from saywhere.formats import refcoco, visual_genome
from saywhere.formats.files import read_bytes
from saywhere.formats.record import InvalidRecord
from saywhere.metrics import caption_scores, dense_map
from saywhere.metrics.captions import MeteorTool, meteor, rouge_l
from saywhere.metrics.dense import DetectedRegions, TrueRegions
from saywhere.models.face import Look, Model
from saywhere.reproduce.claims import Claim, judge_photos
from saywhere.reproduce.experiment import Experiment
from saywhere.reproduce.patchioner_data import RegionItem
from saywhere.reproduce.results import Departure, Results
from saywhere.reproduce.tables import MeasureColumn, ModelRow, Table
from saywhere.vision import read_photo

Kind = Literal["dense", "traces"]
USUAL, WHOLE, CROP = "mean of the region's patches", "the whole photo's caption instead", "a crop, looked at by itself"
BELL, ATTENDED = "patches weighed by a Gaussian", "… by the encoder's attention"
_WEIGHTINGS = {
    "dense": {BELL: "gaussian", ATTENDED: "attention", "… by how far the box covers them": "coverage"},
    "traces": {BELL: "gaussian", ATTENDED: "attention", "… by the time spent": "dwell"},
}
_MEASURES = ("CIDEr", "BLEU-4", "ROUGE-L")
SECONDS = MeasureColumn("s a region", lower_is_better=True)
_LEAST_CROP_PX = 8
_QUICK_REGIONS = 60


@dataclass(frozen=True, slots=True)
class CaptionedRow:
    """What one way said of each item, in their order, and how long it took in all. looks: how many photos it saw."""

    captions: list[Caption]
    seconds: float
    looks: int


@dataclass(frozen=True, kw_only=True)
class RegionCaptionExperiment(Experiment):
    """items: regions with what people wrote of them. photos: image → file."""

    kind: Kind
    model: Model
    items: Sequence[RegionItem]
    photos: Mapping[str, Path]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.items:
            raise InvalidValue("regions", "none of them is on a photo that is here", str(dict(self.left_out)))

    def plan(self) -> dict[str, Any]:
        ways = list(_WEIGHTINGS[self.kind].values())
        return {"kind": self.kind, "model": self.model.name, "regions": len(self.items), "weightings": ways}

    def opened(self) -> tuple[str, ...]:
        return (type(self.model).__module__,)

    def departures(self) -> list[Departure]:
        paper = {"dense": "Visual Genome", "traces": "sentences of Localized Narratives, rewritten by an LLM"}
        return [
            Departure("model", self.model.name, "DINOv2-reg ViT-B/14, Talk2DINO, memory, GPT-2 decoder"),
            Departure("regions and their texts", "those of the given file", paper[self.kind]),
        ]

    def results(self, out: Path, progress: Progress) -> Results:  # noqa: ARG002 - nothing is kept
        rows = self._rows(progress)
        with _Similarity() as similar:
            scores = {name: self._scores(row, similar) for name, row in rows.items()}
        columns = [MeasureColumn(name) for name in _MEASURES if any(name in one for one in scores.values())]
        if self.kind == "dense":
            columns = [MeasureColumn(similar.title), *columns]
        title = {"dense": "captions of true boxes", "traces": "captions of traces"}[self.kind]
        made = tuple(ModelRow(name, (one,)) for name, one in scores.items())
        return Results(
            title=f"{title[0].upper()}{title[1:]} by {self.model.name}",
            paper="One Patch to Caption Them All: A Unified Zero-Shot Captioning Framework (2025)",
            settings={"regions": len(self.items), "photos": len(self.photos), **self.left_out},
            made_by={},
            tables=(Table(0, f"{title}, greedy or as the model does it", (*columns, SECONDS), made),),
            claims=tuple(self._claims(rows)),
            remarks=(
                "Boxes are given, not found, so that mAP tells captions apart, not detectors."
                if self.kind == "dense"
                else "A trace's crop is the rectangle around it.",
                f"Seconds count every look that a row needs: one a photo, but one a region for “{CROP}”.",
                *similar.remarks,
            ),
            paired="Pairs are of the same item; intervals come from drawing whole photos again.",
        )

    def _rows(self, progress: Progress) -> dict[str, CaptionedRow]:
        """What every way says, photo by photo."""
        by_image: dict[str, list[int]] = {}
        for i, item in enumerate(self.items):
            by_image.setdefault(item.image_id, []).append(i)
        said: dict[str, dict[int, Caption]] = {}
        took: dict[str, float] = {}
        looks: dict[str, int] = {}
        for done, (image_id, places) in enumerate(by_image.items()):
            progress("captioning", done, len(by_image))
            began = time.monotonic()
            photo = read_photo(self.photos[image_id])
            look = self.model.look(photo, image_id)
            shared_s = time.monotonic() - began
            regions = [self.items[i].region for i in places]
            for name, write, own_looks in self._ways(look, photo, regions):
                began = time.monotonic()
                captions = write()
                took[name] = took.get(name, 0.0) + time.monotonic() - began + (0.0 if own_looks else shared_s)
                looks[name] = looks.get(name, 0) + (own_looks or 1)
                said.setdefault(name, {}).update(zip(places, captions, strict=True))
        progress("captioning", len(by_image), len(by_image))
        return {
            name: CaptionedRow([found[i] for i in range(len(self.items))], took[name], looks[name])
            for name, found in said.items()
        }

    def _ways(
        self, look: Look, photo: Image.Image, regions: Sequence[Region]
    ) -> Iterable[tuple[str, Callable[[], list[Caption]], int]]:
        """Name, what writes the captions, and how many looks of its own it takes."""
        yield USUAL, lambda: look.captions(regions), 0
        for name, weighting in _WEIGHTINGS[self.kind].items():
            if weighting != "attention" or look.view.attention is not None:
                yield name, lambda w=weighting: look.weighing(w).captions(regions), 0  # type: ignore[misc]
        yield WHOLE, lambda: look.captions([WholeImage()]) * len(regions), 0
        yield CROP, lambda: [self.model.look(cropped(photo, one)).caption() for one in regions], len(regions)

    def _scores(self, row: CaptionedRow, similar: _Similarity) -> dict[str, float]:
        said = {item.item_id: one.text for item, one in zip(self.items, row.captions, strict=True)}
        references = {item.item_id: list(item.references) for item in self.items}
        found = dict(caption_scores(said, references, ["bleu", "rouge_l", "cider"])["corpus"])
        if self.kind == "dense":
            found[similar.title] = 100 * dense_map(self._dense(row), similar).mean_ap
        return found | {SECONDS.name: row.seconds / len(row.captions)}

    def _dense(self, row: CaptionedRow) -> Iterable[tuple[DetectedRegions, TrueRegions]]:
        by_image: dict[str, list[int]] = {}
        for i, item in enumerate(self.items):
            by_image.setdefault(item.image_id, []).append(i)
        for places in by_image.values():
            boxes = np.array([_bounds(self.items[i].region) for i in places])
            told = [(box, text) for i, box in zip(places, boxes, strict=True) for text in self.items[i].references]
            found = DetectedRegions(
                boxes, [row.captions[i].text for i in places], np.array([row.captions[i].score for i in places])
            )
            yield found, TrueRegions(np.array([box for box, _ in told]), [text for _, text in told])

    def _claims(self, rows: Mapping[str, CaptionedRow]) -> Iterable[Claim]:
        photos = [item.image_id for item in self.items]
        references = {item.item_id: list(item.references) for item in self.items}
        each = {}
        for name, row in rows.items():
            said = {item.item_id: one.text for item, one in zip(self.items, row.captions, strict=True)}
            scored = caption_scores(said, references, ["cider"])["per_item"]
            each[name] = np.array([scored[item.item_id]["CIDEr"] for item in self.items])
        for text, better, worse in (
            ("Patches of a region say more about it than the whole photo does", USUAL, WHOLE),
            ("Patches of a region say more about it than a crop does", USUAL, CROP),
            ("Patches weighed by a Gaussian say more than their mean", BELL, USUAL),
        ):
            yield judge_photos(text, "CIDEr", better, worse, each[better] - each[worse], photos)


class _Similarity:
    """METEOR where Java is to be had, as the paper has it, else ROUGE-L, which the title then says."""

    def __init__(self) -> None:
        self.remarks: tuple[str, ...] = ()
        self._tool: MeteorTool | None = None

    def __enter__(self) -> _Similarity:
        try:
            self._tool = MeteorTool()
        except MissingDependency as error:
            self.remarks = (f"Captions are compared by ROUGE-L, not METEOR: {error}",)
        return self

    def __exit__(self, *_: object) -> None:
        if self._tool is not None:
            self._tool.close()

    @property
    def title(self) -> str:
        return "mAP" if self._tool is not None else "mAP (by ROUGE-L)"

    def __call__(self, candidates: list[str], references: list[list[str]]) -> list[float]:
        said = {str(i): text for i, text in enumerate(candidates)}
        meant = {str(i): texts for i, texts in enumerate(references)}
        if self._tool is not None:
            scored, name = meteor(said, meant, tool=self._tool)["per_item"], "METEOR"
        else:
            scored, name = rouge_l(said, meant)["per_item"], "ROUGE-L"
        return [float(scored[key][name]) for key in said]


def cropped(photo: Image.Image, region: Region) -> Image.Image:
    """The rectangle around a region, at least a few pixels wide and high."""
    left, top, right, bottom = _bounds(region)
    width, height = photo.size
    x, y = _span(left, right, width), _span(top, bottom, height)
    return photo.crop((x[0], y[0], x[1], y[1]))


def _span(low: float, high: float, limit: int) -> tuple[int, int]:
    """The pixels from one fraction of a side to another, a few of them at least."""
    first, last = int(low * limit), int(np.ceil(high * limit))
    size = min(max(last - first, _LEAST_CROP_PX), limit)
    start = max(0, min(first - (size - (last - first)) // 2, limit - size))
    return start, start + size


def _bounds(region: Region) -> tuple[float, float, float, float]:
    if isinstance(region, Box):
        return region.xyxy
    if isinstance(region, Trace):
        xy = np.clip(region.points[:, :2], 0, 1)
        (left, top), (right, bottom) = xy.min(axis=0), xy.max(axis=0)
        return float(left), float(top), float(right), float(bottom)
    raise InvalidValue("region", f"is a {type(region).__name__}, which has no rectangle")


class _Described(msgspec.Struct):
    box_xyxy: tuple[float, float, float, float]
    caption: str


def read_dense(
    path: Path, beside: Path | None, has_photo: Callable[[str], bool]
) -> tuple[list[RegionItem], dict[str, int]]:
    """Boxes with what people wrote of them, and what could not be used.

    path: Visual Genome's regions (beside: its image data, with sizes), RefCOCO's refs as JSON (beside: COCO's
    instances), or JSON of image → [{box_xyxy in fractions, caption}, …].
    """
    left_out: dict[str, int] = {}
    grouped: dict[tuple[str, tuple[float, ...]], list[str]] = {}
    for told in _told(path, beside):
        if isinstance(told, str):
            left_out[told] = left_out.get(told, 0) + 1
            continue
        image, box, text = told
        if has_photo(image):
            grouped.setdefault((image, box), []).append(text)
        else:
            left_out["without a photo"] = left_out.get("without a photo", 0) + 1
    items = [
        RegionItem(f"{image}-{number}", image, Box(*box), tuple(texts))
        for number, ((image, box), texts) in enumerate(grouped.items())
    ]
    return items, left_out


def _told(path: Path, beside: Path | None) -> Iterable[tuple[str, tuple[float, float, float, float], str] | str]:
    """Image, box in fractions and text; or why a record cannot be used."""
    head = read_bytes(path)[:4096]
    if visual_genome.sniff(path, head):
        for one in visual_genome.read(path, beside):
            if isinstance(one, InvalidRecord) or not (one.width and one.height):
                yield "unreadable, or of unknown size"
            else:
                yield str(one.image_id), _fractions(one.box_xywh_px, one.width, one.height), one.phrase
    elif refcoco.sniff(path, head):
        for ref in refcoco.read(path, beside):
            if isinstance(ref, InvalidRecord) or ref.instance is None:
                yield "unreadable, or without its object"
                continue
            known = ref.instance
            box = _fractions(known.box_xywh_px, known.width, known.height)
            yield from ((str(ref.image_id), box, one.text) for one in ref.expressions)
    else:
        yield from _plain(path)


def _plain(path: Path) -> Iterable[tuple[str, tuple[float, float, float, float], str] | str]:
    try:
        told = msgspec.json.decode(read_bytes(path), type=dict[str, list[_Described]])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"holds no described boxes: {error}", "image → [{box_xyxy, caption}, …]") from error
    for image, rows in told.items():
        for row in rows:
            yield (image, row.box_xyxy, row.caption) if row.caption.strip() else "without a caption"


def _fractions(box: Sequence[float], width: int, height: int) -> tuple[float, float, float, float]:
    x, y, w, h = box
    left, top, right, bottom = np.clip([x / width, y / height, (x + w) / width, (y + h) / height], 0, 1).tolist()
    return left, top, right, bottom


def read_traces(path: Path, has_photo: Callable[[str], bool]) -> tuple[list[RegionItem], dict[str, int]]:
    """The samples of a trace benchmark whose photo is here, and what could not be used."""
    items: list[RegionItem] = []
    left_out: dict[str, int] = {}
    for number, one in enumerate(read_trace_benchmark(path)):
        reason = (
            "unreadable" if isinstance(one, InvalidRecord) else "" if has_photo(one.image_id) else "without a photo"
        )
        if reason or isinstance(one, InvalidRecord):
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            items.append(RegionItem(f"{one.image_id}-{number}", one.image_id, one.trace, (one.caption,)))
    return items, left_out


def first_regions(items: Sequence[RegionItem], most: int | None, quick: bool) -> list[RegionItem]:
    """At most so many; of a quick run, few."""
    limit = min(most or _QUICK_REGIONS, _QUICK_REGIONS) if quick else most
    return list(items[:limit])
