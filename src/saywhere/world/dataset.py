"""A whole world on disk: photos and everything true of them, in the official formats."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from saywhere import __version__
from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.provenance import sha256_of
from saywhere.world._files import Document, Lines, write_json
from saywhere.world._records import (
    answer_record,
    category_records,
    file_name,
    hl_record,
    image_record,
    instance_records,
    narrative_record,
    question_record,
    reference_record,
    video_record,
    word_truth_record,
)
from saywhere.world.captions import high_level_captions, object_captions
from saywhere.world.making import make_scene
from saywhere.world.narrators import narrate
from saywhere.world.questions import Priors, SceneQuestion, candidates, check_priors, choose
from saywhere.world.referring import references
from saywhere.world.scene import Scene
from saywhere.world.video import make_video
from saywhere.world.video_narrators import narrate_video

WORLD_VERSION = 1
"""Counts up whenever the same seed gives other pictures or other words."""

SPLITS: dict[str, float] = {"train": 0.8, "val": 0.1, "test": 0.1}

MANIFEST = "manifest.json"
_UNFINISHED = "unfinished.json"
_CAPTIONS_EACH = 5
_PHOTOS = "photos"
_PART = ".part"  # What a killed run was writing.

"""Called with how many scenes and videos are done, and how many there will be."""


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """All that decides what is made; two worlds with equal settings are equal, byte by byte.

    n: scenes. size: their width and height in pixels. videos: how many, of `frames` frames each. narrations: how many
    for each scene. questions: how many for each scene, on average. splits: name → share, in the order of scene numbers.
    priors: split → answer priors; splits without an entry keep the natural ones.
    """

    n: int
    seed: int = 0
    size: int = 128
    narrations: int = 1
    questions: int = 4
    videos: int = 0
    frames: int = 10
    splits: Mapping[str, float] = field(default_factory=lambda: SPLITS)
    priors: Mapping[str, Priors] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("n", 1), ("seed", 0), ("size", 16), ("narrations", 0), ("questions", 0), ("videos", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InvalidValue(name, f"is {value!r}: must be a whole number of at least {least}")
        if any(share < 0 for share in self.splits.values()) or abs(sum(self.splits.values()) - 1) > 1e-6:
            raise InvalidValue("splits", f"{dict(self.splits)} do not share out 1")
        for split, priors in self.priors.items():
            if split not in self.splits:
                raise InvalidValue("priors", f"are for split {split!r}, which is not one of {', '.join(self.splits)}")
            check_priors(priors)

    def bounds(self) -> dict[str, tuple[int, int]]:
        """For each split, its first scene and the one after its last."""
        bounds, start, share = {}, 0, 0.0
        for split, part in self.splits.items():
            share += part
            bounds[split] = (start, round(share * self.n))
            start = round(share * self.n)
        return bounds

    def split_of(self, index: int) -> str:
        return next(split for split, (start, end) in self.bounds().items() if start <= index < end)


def make(out: str | Path, settings: WorldSettings, progress: Progress | None = None) -> dict[str, Any]:
    """Write the world into the folder `out`; returns the manifest, which is written last.

    Each file appears whole or not at all. If an earlier run with the same settings was cut off, its photos are kept and
    the rest is made again; a world with other settings is replaced. A folder that holds anything else is refused.
    """
    folder = Path(out)
    keep = _prepare(folder, settings)
    counts = _Counts(settings.n + settings.videos, progress)
    pools = _write_scenes(folder, settings, counts, keep=keep)
    _write_questions(folder, settings, counts, pools)
    if settings.videos:
        _write_videos(folder, settings, counts)
    manifest = _manifest(folder, settings, counts.numbers)
    write_json(folder / MANIFEST, manifest)
    (folder / _UNFINISHED).unlink(missing_ok=True)
    return manifest


class _Counts:
    def __init__(self, total: int, progress: Progress | None) -> None:
        self.numbers: dict[str, int] = {}
        self._done, self._total, self._progress = 0, total, progress

    def step(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress("making the world", self._done, self._total)


def _described(settings: WorldSettings) -> dict[str, Any]:
    """The settings as JSON gives them back, so that they compare equal."""
    described: dict[str, Any] = json.loads(json.dumps({"world_version": WORLD_VERSION, **asdict(settings)}))
    return described


def _prepare(folder: Path, settings: WorldSettings) -> bool:
    """Mark the folder as unfinished; whether the photos already in it may be kept."""
    if folder.exists() and not folder.is_dir():
        raise InvalidFile(folder, "is not a folder")
    folder.mkdir(parents=True, exist_ok=True)
    marks = [folder / _UNFINISHED, folder / MANIFEST]
    earlier = [_read_settings(mark) for mark in marks if mark.exists()]
    if not earlier and any(path.suffix != _PART for path in folder.iterdir()):
        raise InvalidFile(folder, "is not empty and holds no world", "name a new folder")
    for torn in folder.rglob(f".*{_PART}"):
        torn.unlink()
    keep = bool(earlier) and all(known == _described(settings) for known in earlier)
    write_json(folder / _UNFINISHED, {"settings": _described(settings)})
    (folder / MANIFEST).unlink(missing_ok=True)
    if not keep:
        for stale in [*(folder / _PHOTOS).glob("[0-9]*.png"), *(folder / "videos").glob("*/*.png")]:
            stale.unlink()
    return keep


def _read_settings(path: Path) -> Any:
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise InvalidFile(path, f"is not JSON: {error}", "delete it to start anew") from error
    return document.get("settings") if isinstance(document, dict) else None


def _write_scenes(
    folder: Path, settings: WorldSettings, counts: _Counts, *, keep: bool
) -> list[tuple[SceneQuestion, ...]]:
    """All that is told scene by scene; gives the candidate questions of each."""
    pools = []
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(write_atomic(folder / name))
            for name in (
                "narratives.jsonl",
                "word_truth.jsonl",
                "hl.jsonl",
                "captions.json",
                "instances.json",
                "referring.json",
            )
        }
        narratives, hl, truth = (Lines(files[f"{name}.jsonl"]) for name in ("narratives", "hl", "word_truth"))
        info = {"info": {"description": "saywhere world", "version": str(WORLD_VERSION)}, "licenses": []}
        captions = Document(files["captions.json"], "annotations", {**info, "type": "captions"})
        instances = Document(files["instances.json"], "annotations", info)
        refs = Document(files["referring.json"])
        images = []
        for index in range(settings.n):
            scene, split = make_scene(settings.seed, index, settings.size), settings.split_of(index)
            _write_photo(folder / _PHOTOS / file_name(index), scene, keep=keep)
            images.append(image_record(scene, split))
            for part in range(settings.narrations):
                narration = narrate(scene, settings.seed, part=part)
                narratives.add(narrative_record(narration.narrative))
                truth.add(word_truth_record(scene, narration))
            objects = [caption.text for caption in object_captions(scene, settings.seed, _CAPTIONS_EACH)]
            for text in objects:
                captions.add({"image_id": index, "id": captions.count + 1, "caption": text})
            hl.add(hl_record(scene, high_level_captions(scene, settings.seed), objects))
            for record in instance_records(scene):
                instances.add(record)
            for reference in references(scene, settings.seed):
                refs.add(reference_record(scene, reference, refs.count + 1, split))
            pools.append(candidates(scene, settings.seed))
            counts.step()
        captions.close({"images": images})
        instances.close({"images": images, "categories": category_records()})
        refs.close()
        counts.numbers |= {
            "photos": settings.n,
            "narratives": narratives.count,
            "hl": hl.count,
            "captions": captions.count,
            "instances": instances.count,
            "referring": refs.count,
        }
    return pools


def _write_photo(path: Path, scene: Scene, *, keep: bool) -> None:
    if keep and path.exists():
        return
    packed = io.BytesIO()
    Image.fromarray(scene.photo).save(packed, "PNG", compress_level=1)
    with write_atomic(path) as file:
        file.write(packed.getvalue())


def _write_questions(
    folder: Path, settings: WorldSettings, counts: _Counts, pools: list[tuple[SceneQuestion, ...]]
) -> None:
    head = {"info": {"description": "saywhere world"}, "task_type": "Open-Ended", "data_type": "saywhere_world"}
    with write_atomic(folder / "questions.json") as file, write_atomic(folder / "annotations.json") as answers_file:
        questions = Document(file, "questions", head)
        answers = Document(answers_file, "annotations", head)
        for split, (start, end) in settings.bounds().items():
            priors = settings.priors.get(split)
            for question in choose(pools[start:end], settings.seed, priors, settings.questions):
                question_id = questions.count + 1
                questions.add(question_record(question, question_id))
                answers.add(answer_record(question, question_id, split))
        questions.close()
        answers.close()
        counts.numbers["questions"] = questions.count


def _write_videos(folder: Path, settings: WorldSettings, counts: _Counts) -> None:
    with (
        write_atomic(folder / "videos" / "narratives.jsonl") as file,
        write_atomic(folder / "videos" / "boxes.jsonl") as truth,
    ):
        narratives, boxes = Lines(file), Lines(truth)
        for index in range(settings.videos):
            video = make_video(settings.seed, index, settings.size, settings.frames)
            for name, frame in zip(video.keyframe_names, video.frames, strict=True):
                _write_photo(folder / "videos" / video.video_id / f"{name}.png", frame, keep=False)
                things = [
                    {
                        "identity": t.identity,
                        "kind": t.kind,
                        "color": t.colour,
                        "box_xyxy": t.box_xyxy,
                        "stuff": t.stuff,
                    }
                    for t in frame.things
                ]
                boxes.add({"video_id": video.video_id, "keyframe_name": name, "things": things})
            narratives.add(video_record(narrate_video(video, settings.seed), index))
            counts.step()
        counts.numbers |= {"videos": narratives.count, "frames": boxes.count}


def _manifest(folder: Path, settings: WorldSettings, numbers: Mapping[str, int]) -> dict[str, Any]:
    named = sorted(path for path in folder.rglob("*.json*") if path.name not in (MANIFEST, _UNFINISHED))
    return {
        "what": "saywhere world: simulated scenes with exact truth",
        "saywhere_version": __version__,
        "settings": _described(settings),
        "counts": dict(numbers),
        "splits": {split: list(bounds) for split, bounds in settings.bounds().items()},
        "sha256": {str(path.relative_to(folder).as_posix()): sha256_of(path) for path in named},
    }
