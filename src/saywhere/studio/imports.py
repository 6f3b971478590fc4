"""Files of other programs, taken into a Studio: Localized Narratives, COCO captions and instances, Web Annotation.

What cannot be taken is named and passed over; the rest is kept. A narrative's id is made from what it says, so that a
file that is taken twice makes no second ones.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.narrative import HUMAN, Narrative
from saywhere.formats import coco_captions, coco_instances, localized_narratives, registry, web_annotation
from saywhere.formats.record import InvalidRecord
from saywhere.limits import inside, read_whole
from saywhere.studio.errors import Refused
from saywhere.studio.image_names import PhotoNames
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.photos import PhotoInfo

FORMATS = ("localized-narratives", "coco-captions", "coco-instances", "web-annotation")
INSTANCES = "COCO instances"
"""The origin of what is made of things that COCO marked and named: nobody told it."""
_EVEN_S = 0.3

Box = Sequence[float]
Meant = tuple[PhotoInfo, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Taken:
    """A narrative of a file. new: it was not here before. silent: the file names a recording that is not beside it."""

    narrative_id: str
    new: bool
    silent: bool = False


@dataclass
class Tally:
    """What came of a file: how many narratives are new, were here before, lack their recording, were passed over."""

    new: int = 0
    known: int = 0
    silent: int = 0
    bad: int = 0

    def __str__(self) -> str:
        more = {"already here": self.known, "without their recording": self.silent, "passed over": self.bad}
        parts = [f"{self.new:,} narratives taken", *(f"{n:,} {what}" for what, n in more.items() if n)]
        return ", ".join(parts)

    def count(self, one: Taken | InvalidRecord) -> None:
        if isinstance(one, InvalidRecord):
            self.bad += 1
            return
        self.new += one.new
        self.known += not one.new
        self.silent += one.silent


def import_narratives(
    path: Path, names: PhotoNames, store: NarrativeStore, source: str = "", *, recordings: bool = False
) -> Iterator[Taken | InvalidRecord]:
    """Take every narrative of a file, one after another; a bad record comes out in its place, named.

    source: what people call the file. recordings: WAV files beside it, named by it, are taken, too.
    InvalidFile if it is in no format that is taken.
    """
    source = source or path.name
    hint = f"the Studio takes {', '.join(registry.get(name).title for name in FORMATS)}"
    try:
        kind = registry.detect(path).name
    except InvalidFile as error:
        raise InvalidFile(source, error.reason, hint) from error
    if kind not in FORMATS:
        raise InvalidFile(source, f"holds {registry.get(kind).holds}", hint)
    beside = path.parent if recordings else None
    read, meant = _READERS[kind]
    for number, item in enumerate(read(path), 1):
        if isinstance(item, InvalidRecord):
            yield replace(item, path=source)
            continue
        try:
            photo, record = meant(item, names)
            yield _kept(photo, record | {"source": source}, store, beside)
        except InvalidValue as error:
            yield InvalidRecord(source, 0, f"{error.what} {error.reason}", f"record {number}")


def _kept(photo: PhotoInfo, record: dict[str, Any], store: NarrativeStore, beside: Path | None) -> Taken:
    voice = record.pop("audio", "")
    times = [time for word in record["words"] for time in (word["start_s"], word["end_s"])]
    if min([*times, *(point[2] for point in record["trace"]["points"])], default=0.0) < 0:
        raise InvalidValue("the narrative", "has a time before its recording starts")
    # A language that was noted since makes no other narrative of it.
    told = {name: value for name, value in record.items() if name not in ("source", "language")}
    said = msgspec.json.encode([photo.id, told])
    narrative_id = hashlib.sha256(said).hexdigest()[:32]
    try:
        store.create(record | {"id": narrative_id, "photo": photo.id})
        new = True
    except Refused as refused:
        if refused.code != "narrative_exists":
            raise
        new = False
    heard = store.audio_path(narrative_id) is not None or _heard(voice, beside, narrative_id, store)
    return Taken(narrative_id, new, silent=bool(voice) and not heard)


def _heard(voice: str, beside: Path | None, narrative_id: str, store: NarrativeStore) -> bool:
    """Whether the recording was beside the file, and is kept now."""
    if beside is None or not voice.lower().endswith(".wav") or not (path := inside(beside, voice)).is_file():
        return False
    store.put_audio(narrative_id, read_whole(path))
    return True


def _record(narrative: Narrative, **more: Any) -> dict[str, Any]:
    words = [{"text": word.text, "start_s": word.start_s, "end_s": word.end_s} for word in narrative.words]
    return {
        "annotator": narrative.annotator_id,
        "text": narrative.caption,
        "origin": narrative.origin,
        "words": words,
        "trace": {"points": narrative.trace.points.tolist(), "starts": list(narrative.trace.starts)},
        "timed_by": "file" if words else None,
        "audio": narrative.audio,
        "language": narrative.language or None,
        **more,
    }


def _even(texts: Sequence[str], boxes: Sequence[Box]) -> dict[str, Any]:
    """Words that have places and no times, one after another, as a model tells them."""
    words = [
        {"text": text, "start_s": round(i * _EVEN_S, 3), "end_s": round((i + 1) * _EVEN_S, 3)}
        for i, text in enumerate(texts)
    ]
    return {"words": words, "boxes": [list(box) for box in boxes], "timed_by": "even"}


def _narrated(narrative: Narrative, names: PhotoNames) -> Meant:
    return names.find(narrative.image_id), _record(narrative)


def _annotated(placed: web_annotation.Placed, names: PhotoNames) -> Meant:
    narrative, box = placed.narrative, placed.box_xyxy
    photo = names.find(narrative.image_id)
    if box is None or narrative.words:
        return photo, _record(narrative)
    sides = (photo.width, photo.height) * 2 if placed.in_pixels else (1, 1, 1, 1)
    place = [value / side for value, side in zip(box, sides, strict=True)]
    texts = narrative.caption.split()
    return photo, _record(narrative, **_even(texts, [place] * len(texts)))


def _captioned(caption: coco_captions.CaptionRecord, names: PhotoNames) -> Meant:
    photo = names.find(caption.file_name, str(caption.image_id))
    words = [{"text": word.word, "start_s": word.start_s, "end_s": word.end_s} for word in caption.words]
    record: dict[str, Any] = {
        "annotator": caption.annotator,
        "text": caption.caption,
        "origin": caption.origin or HUMAN,
        "words": words,
        "trace": {"points": [], "starts": []},
        "timed_by": "file" if words else None,
        "language": caption.language or None,
    }
    if any(word.bbox for word in caption.words):
        size = (caption.width or photo.width, caption.height or photo.height)
        record["boxes"] = [None if word.bbox is None else _fractions(word.bbox, size) for word in caption.words]
    return photo, record


def _things_by_image(path: Path) -> Iterator[list[coco_instances.Instance] | InvalidRecord]:
    images: defaultdict[int | str, list[coco_instances.Instance]] = defaultdict(list)
    for item in coco_instances.read(path):
        if isinstance(item, InvalidRecord):
            yield item
        elif not item.iscrowd:
            images[item.image_id].append(item)
    yield from images.values()


def _marked(things: list[coco_instances.Instance], names: PhotoNames) -> Meant:
    """The names of the things in an image, each where it is."""
    photo = names.find(things[0].file_name, str(things[0].image_id))
    said = [(word, one) for one in things for word in one.category.split()]
    boxes = [_fractions(one.box_xywh_px, (one.width, one.height)) for _, one in said]
    record = {"text": ", ".join(one.category for one in things), "origin": INSTANCES, "annotator": ""}
    return photo, record | {"trace": {"points": [], "starts": []}} | _even([word for word, _ in said], boxes)


def _fractions(box_xywh_px: Box, size_px: tuple[int, int]) -> list[float]:
    x, y, width, height = box_xywh_px
    corners = (x / size_px[0], y / size_px[1], (x + width) / size_px[0], (y + height) / size_px[1])
    return [round(value, 6) for value in corners]


_READERS: dict[str, tuple[Callable[[Path], Iterator[Any]], Callable[[Any, PhotoNames], Meant]]] = {
    "localized-narratives": (localized_narratives.read, _narrated),
    "web-annotation": (web_annotation.read_placed, _annotated),
    "coco-captions": (coco_captions.read, _captioned),
    "coco-instances": (_things_by_image, _marked),
}
