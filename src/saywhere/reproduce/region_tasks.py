"""The four tasks of Patch-ioner: captions of traces, boxes, sets of boxes and whole photos, made and scored.

A task is a list of regions with reference captions. `evaluate` asks a captioner for all of them, photo by photo, and
scores the answers. Captions are saved as they come, so an interrupted evaluation goes on where it was.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import msgspec
import numpy as np

from saywhere import __version__
from saywhere.atomic import write_atomic
from saywhere.build.trace_benchmark import TraceSample
from saywhere.core import Box, BoxSet, InvalidFile, InvalidValue, Mask, Polygon, Region, Trace, WholeImage
from saywhere.core.errors import MissingDependency
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.entities import EntitiesCaption
from saywhere.metrics import DetectedRegions, TrueRegions, caption_scores, dense_map, meteor
from saywhere.metrics.captions import MeteorTool, ToolFailed
from saywhere.provenance import git_hash

Kind = Literal["trace", "dense", "region set", "image"]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

_SAVE_S = 20.0
_NO_PAC = "needs the CLIP weights of PAC-S, which saywhere does not have; give an encoder for a measure of that kind"
_NO_CLIP = "needs CLIP ViT-B/32 and the photos, which the scoring of captions does not have"


class Captioner(Protocol):
    """Anything that captions regions of photos."""

    def captions(self, image_id: str, regions: Sequence[Region]) -> list[str]:
        """One caption for each region of one photo, in order."""
        ...


class TextVectors(Protocol):
    """What is needed of a text encoder: (n, d) rows of length 1 for n texts."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> np.ndarray: ...


class DescribedBox(Protocol):
    """A box with a phrase, such as a `RegionDescription` of Visual Genome. box_xyxy: fractions of the image."""

    @property
    def image_id(self) -> int | str: ...
    @property
    def phrase(self) -> str: ...
    @property
    def box_xyxy(self) -> tuple[float, float, float, float]: ...


@dataclass(frozen=True, slots=True, eq=False)
class RegionItem:
    """A region to be captioned, and what people wrote about it."""

    item_id: str
    image_id: str
    region: Region
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RegionTask:
    """left_out: reason → captions that could not become items."""

    kind: Kind
    items: tuple[RegionItem, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.items:
            raise InvalidValue(f"{self.kind} captioning", "has no items", _told(self.left_out))
        if len({item.item_id for item in self.items}) != len(self.items):
            raise InvalidValue(f"{self.kind} captioning", "has two items of one id")

    @property
    def by_image(self) -> dict[str, list[RegionItem]]:
        found: dict[str, list[RegionItem]] = defaultdict(list)
        for item in self.items:
            found[item.image_id].append(item)
        return dict(found)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all items."""
        digest = hashlib.sha256(self.kind.encode())
        for item in self.items:
            digest.update(repr((item.item_id, item.image_id, item.references)).encode())
            digest.update(_region_bytes(item.region))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class TaskScores:
    """measures: name → value, as the metrics give them (CIDEr 0.9 is what papers call 90).

    missing: measures that could not be taken, and why. captions: item id → caption.
    """

    kind: Kind
    items: int
    images: int
    measures: dict[str, float]
    missing: dict[str, str]
    captions: dict[str, str]


def trace_task(samples: Iterable[TraceSample]) -> RegionTask:
    """Each sample is an item of its own, with its one caption."""
    return _task("trace", ((s.image_id, s.trace, (s.caption,)) for s in samples))


def dense_task(regions: Iterable[DescribedBox]) -> RegionTask:
    """Each described box is an item; the true boxes are given, as in the paper, and not found."""
    return _task("dense", ((str(r.image_id), Box(*r.box_xyxy), (r.phrase,)) for r in regions))


def region_set_task(
    captions: Iterable[EntitiesCaption], sizes_px: Mapping[str, tuple[int, int]] | None = None
) -> RegionTask:
    """Captions of one photo that share their boxes are references of one item.

    sizes_px: width and height of the original photos, for files that do not tell them. Left out are captions without
    boxes and those of photos of unknown size.
    """
    grouped: dict[tuple[str, tuple[tuple[float, ...], ...]], list[str]] = defaultdict(list)
    left_out: dict[str, int] = defaultdict(int)
    for one in captions:
        size = one.size_px or (sizes_px or {}).get(one.image_id)
        if not one.boxes_xyxy_px:
            left_out["without boxes"] += 1
        elif size is None:
            left_out["photo of unknown size"] += 1
        else:
            grouped[one.image_id, one.boxes_xyxy(size)].append(one.caption)
    items = (
        (image_id, BoxSet(tuple(Box(*box) for box in boxes)), tuple(texts))
        for (image_id, boxes), texts in grouped.items()
    )
    return _task("region set", items, left_out)


def image_task(captions: Iterable[CaptionRecord]) -> RegionTask:
    """One item for each photo, with all its captions."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for one in captions:
        grouped[str(one.image_id)].append(one.caption)
    return _task("image", ((image_id, WholeImage(), tuple(texts)) for image_id, texts in grouped.items()))


def _task(
    kind: Kind, rows: Iterable[tuple[str, Region, tuple[str, ...]]], left_out: Mapping[str, int] | None = None
) -> RegionTask:
    counts: dict[str, int] = defaultdict(int)
    items = []
    for image_id, region, references in rows:
        items.append(RegionItem(f"{image_id}/{counts[image_id]}", image_id, region, references))
        counts[image_id] += 1
    return RegionTask(kind, tuple(items), dict(left_out or {}))


def evaluate(
    task: RegionTask,
    captioner: Captioner,
    output: Path | None = None,
    *,
    name: str = "",
    encoder: TextVectors | None = None,
    progress: Progress | None = None,
) -> TaskScores:
    """Caption every region and score the captions.

    output: a JSON file for captions and scores; an earlier, unfinished one is continued. name: of the captioner; a file
    of another captioner or of other items is refused. encoder: for "reference similarity", the mean over items of the
    highest cosine between the caption and a reference, which is how the paper's evaluation uses RefPAC-S.
    """
    captions = captioned(task, captioner, output, name=name, progress=progress)
    scores = score(task, captions, encoder=encoder, progress=progress)
    if output is not None:
        _save(output, task, name, captions, scores)
    return scores


def captioned(
    task: RegionTask,
    captioner: Captioner,
    output: Path | None = None,
    *,
    name: str = "",
    progress: Progress | None = None,
) -> dict[str, str]:
    """Item id → caption, asked for photo by photo. What `output` holds already is not asked for again."""
    captions = _earlier(output, task, name) if output is not None else {}
    saved_s = time.monotonic()
    photos = task.by_image
    for done, (image_id, items) in enumerate(photos.items(), 1):
        todo = [item for item in items if item.item_id not in captions]
        if todo:
            answers = captioner.captions(image_id, [item.region for item in todo])
            if len(answers) != len(todo):
                raise InvalidValue(f"captioner {name}".strip(), f"gave {len(answers)} captions for {len(todo)} regions")
            captions |= {item.item_id: answer for item, answer in zip(todo, answers, strict=True)}
        if output is not None and time.monotonic() - saved_s > _SAVE_S:
            _save(output, task, name, captions)
            saved_s = time.monotonic()
        if progress is not None:
            progress(f"{task.kind} captioning", done, len(photos))
    if output is not None:
        _save(output, task, name, captions)
    return {item.item_id: captions[item.item_id] for item in task.items}


def score(
    task: RegionTask,
    captions: Mapping[str, str],
    *,
    encoder: TextVectors | None = None,
    progress: Progress | None = None,
) -> TaskScores:
    """BLEU-4, METEOR, ROUGE-L, CIDEr, SPICE and scene-graph F; for the dense task mAP too."""
    references = {item.item_id: list(item.references) for item in task.items}
    measures: dict[str, float] = {}
    missing: dict[str, str] = {"RefPAC-S": _NO_PAC}
    if task.kind == "image":
        missing["CLIP-S"] = _NO_CLIP
    with ExitStack() as stack:
        tool: list[MeteorTool] = []

        def started() -> MeteorTool:
            # METEOR takes seconds to start, so one program serves both measures that need it.
            if not tool:
                tool.append(stack.enter_context(MeteorTool()))
            return tool[0]

        taken: dict[str, Callable[[], dict[str, float]]] = {
            "BLEU-4": lambda: caption_scores(captions, references)["corpus"],
            "METEOR": lambda: meteor(captions, references, tool=started())["corpus"],
            "SPICE": lambda: caption_scores(captions, references, ("spice",))["corpus"],
            "scene-graph F": lambda: caption_scores(captions, references, ("scene_graph_f",))["corpus"],
        }
        if task.kind == "dense":
            taken["mAP"] = lambda: {"mAP": _mean_ap(task, captions, started())}
        for done, (measure, take) in enumerate(taken.items(), 1):
            try:
                measures |= take()
            except MissingDependency as error:
                missing[measure] = str(error)
            except ToolFailed as error:
                missing[measure] = str(error)
                tool.clear()  # if it was METEOR, it is closed
            if progress is not None:
                progress(f"scoring {task.kind} captions", done, len(taken))
    if encoder is not None:
        measures[f"reference similarity ({encoder.name})"] = _similarity(captions, references, encoder)
    kept = {name: value for name, value in measures.items() if name not in ("BLEU-1", "BLEU-2", "BLEU-3")}
    return TaskScores(task.kind, len(task.items), len(task.by_image), kept, missing, dict(captions))


def _mean_ap(task: RegionTask, captions: Mapping[str, str], tool: MeteorTool) -> float:
    """Every true box, captioned, counts as found with score 1, as in the released evaluation."""

    def similarity(candidates: list[str], references: list[list[str]]) -> list[float]:
        scored = meteor(dict(enumerate(candidates)), dict(enumerate(references)), tool=tool)["per_item"]
        return [scored[i]["METEOR"] for i in range(len(candidates))]

    images = []
    for items in task.by_image.values():
        boxes = np.array([item.region.xyxy for item in items if isinstance(item.region, Box)])
        found = DetectedRegions(boxes, [captions[item.item_id] for item in items], np.ones(len(items)))
        images.append((found, TrueRegions(boxes, [item.references[0] for item in items])))
    return dense_map(images, similarity).mean_ap


def _similarity(captions: Mapping[str, str], references: Mapping[str, Sequence[str]], encoder: TextVectors) -> float:
    texts = list(dict.fromkeys([*captions.values(), *(text for others in references.values() for text in others)]))
    vectors = dict(zip(texts, encoder.embed(texts), strict=True))
    best = [max(float(vectors[text] @ vectors[other]) for other in references[key]) for key, text in captions.items()]
    return float(np.mean(best))


class _Saved(msgspec.Struct):
    task: str
    fingerprint: str
    captioner: str
    captions: dict[str, str]


def _earlier(path: Path, task: RegionTask, name: str) -> dict[str, str]:
    if not path.exists():
        return {}
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=_Saved)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(path, f"is not a file of captions: {error}", "name another, or delete it") from error
    if saved.captioner != name:
        raise InvalidFile(path, f"holds captions by {saved.captioner!r}, not by {name!r}", "name another file")
    if (saved.task, saved.fingerprint) != (task.kind, task.fingerprint):
        raise InvalidFile(path, "holds captions of other regions", "name another file, or delete it")
    return saved.captions


def _save(
    path: Path, task: RegionTask, name: str, captions: Mapping[str, str], scores: TaskScores | None = None
) -> None:
    result: dict[str, object] = {
        "task": task.kind,
        "fingerprint": task.fingerprint,
        "captioner": name,
        "made_by": {"saywhere": __version__, "git": git_hash()},
        "left_out": dict(task.left_out),
    }
    if scores is not None:
        result |= {key: value for key, value in asdict(scores).items() if key != "captions"}
    with write_atomic(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode({**result, "captions": dict(captions)})))


def _region_bytes(region: Region) -> bytes:
    if isinstance(region, Trace):
        return region.points.tobytes() + repr(region.starts).encode()
    if isinstance(region, Mask):
        return repr(region.values.shape).encode() + region.values.tobytes()
    if isinstance(region, Polygon):
        return region.points_xy.tobytes()
    return repr(region).encode()


def _told(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in left_out.items())
