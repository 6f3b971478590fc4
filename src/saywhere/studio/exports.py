"""A kept narrative as a file for other programs.

localized_narratives  the official JSON line; the recording is called <id>.wav
web_annotation        one W3C annotation: the text as body; the trace, and its part during each word, as targets
coco                  captions as COCO has them; beside the caption its `language`, if that is known, and `words`, with
                      `bbox` in pixels where they have a place: readers of captions pass over them
text                  alt text and long description, with who wrote them
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np

from saywhere.core.alignment import WordBoxes
from saywhere.core.description import alt_text, labelled
from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.narrative import HUMAN, Narrative
from saywhere.core.trace import Trace
from saywhere.core.types import Floats
from saywhere.core.words import Utterance
from saywhere.formats import coco_captions, localized_narratives, web_annotation
from saywhere.studio.descriptions import long_description
from saywhere.studio.image_names import image_name

FORMATS = ("localized_narratives", "web_annotation", "coco", "text")
DATASET = "saywhere_studio"

_SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1" preserveAspectRatio="none">{}</svg>'


@dataclass(frozen=True, slots=True)
class Export:
    """A file to be downloaded."""

    data: bytes
    media_type: str
    file_name: str


def export(record: Mapping[str, Any], photo: Mapping[str, Any], format: str) -> Export:  # noqa: A002 - the API's word
    """The narrative in one of FORMATS. photo: its id, name, width and height in pixels."""
    forms: dict[str, tuple[Callable[[Mapping[str, Any], Mapping[str, Any]], bytes], str, str]] = {
        "localized_narratives": (_localized_narratives, "application/jsonl", ".jsonl"),
        "web_annotation": (_web_annotation, "application/ld+json", ".annotation.json"),
        "coco": (_coco, "application/json", ".coco.json"),
        "text": (_text, "text/plain; charset=utf-8", ".txt"),
    }
    if format not in forms:
        raise UnknownName("export format", format, FORMATS)
    make, media_type, ending = forms[format]
    return Export(make(record, photo), media_type, f"narrative-{record['id']}{ending}")


def narrative_of(record: Mapping[str, Any], photo: Mapping[str, Any], image_id: str = "", audio: str = "") -> Narrative:
    """A kept record as the value that everything else speaks. audio: where the recording is, instead of <id>.wav.

    The image is called as the photo's file was, so that it joins with the data set that the photo comes from; COCO's
    by its number, as the official Localized Narratives have it.
    """
    return Narrative(
        image_id=image_id or image_name(photo["name"], photo["id"]),
        caption=record["text"],
        utterances=tuple(Utterance(word["text"], word["start_s"], word["end_s"]) for word in record["words"]),
        trace=Trace(record["trace"]["points"], record["trace"]["starts"]),
        dataset_id=DATASET,
        annotator_id=record["annotator"],
        audio=(audio or f"{record['id']}.wav") if record["audio"] else "",
        origin=record["origin"],
        language=record.get("language") or "",
    )


def _localized_narratives(record: Mapping[str, Any], photo: Mapping[str, Any]) -> bytes:
    return _written(lambda path: localized_narratives.write(path, [narrative_of(record, photo)]))


def _web_annotation(record: Mapping[str, Any], photo: Mapping[str, Any]) -> bytes:
    return _json(annotation_of(record, photo, quote(photo["name"] or photo["id"], safe="")))


def annotation_of(record: Mapping[str, Any], photo: Mapping[str, Any], source: str) -> dict[str, Any]:
    """A kept record as a Web Annotation. source: the IRI of its photo."""
    narrative = narrative_of(record, photo)
    page = msgspec.json.decode(
        _written(lambda path: web_annotation.write(path, [narrative], language="", image=lambda _: source))
    )
    (annotation,) = page["items"]
    for target in annotation["target"]:
        if isinstance(target, dict) and "word" in target:
            pointed = narrative.trace.between(target["startTime"], target["endTime"])
            if len(pointed):
                target["selector"] = {"type": "SvgSelector", "value": _svg(pointed)}
    urn = uuid.uuid5(uuid.NAMESPACE_URL, f"{web_annotation.TERMS}{record['id']}").urn
    return {"@context": page["@context"], **annotation, "id": urn, "created": record["created"]}


def _svg(trace: Trace) -> str:
    """The trace's strokes in a view box of 1 by 1: coordinates are fractions of the photo."""
    lines = (" ".join(f"{x!r},{y!r}" for x, y in stroke[:, :2].tolist()) for stroke in trace.segments)
    return _SVG.format("".join(f'<polyline fill="none" points="{line}"/>' for line in lines))


def _coco(record: Mapping[str, Any], photo: Mapping[str, Any]) -> bytes:
    name = photo["name"] or photo["id"]
    if not record["text"].strip():
        raise InvalidValue("the text", "is empty, and COCO has no caption without words")
    caption = coco_captions.CaptionRecord(1, 1, record["text"], name, photo["width"], photo["height"])
    document = msgspec.json.decode(_written(lambda path: coco_captions.write(path, [caption])))
    document["images"][0]["photo"] = photo["id"]
    document["annotations"][0] |= caption_facts(record, photo)
    return _json(document)


def caption_facts(record: Mapping[str, Any], photo: Mapping[str, Any]) -> dict[str, Any]:
    """What the COCO caption of a kept record says beyond COCO: who wrote it, when, in which language if that is known,
    and its words in time and place."""
    about = {name: record[name] for name in ("annotator", "origin", "created", "language") if name in record}
    return about | {"words": _coco_words(record, photo)}


def _coco_words(record: Mapping[str, Any], photo: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every word with its times in seconds; bbox is left, top, width, height in pixels, where the word has a place."""
    narrative = narrative_of(record, photo)
    size_px = (photo["width"], photo["height"])
    boxes = _kept_boxes(record.get("boxes")) or narrative.word_boxes()
    words: list[dict[str, Any]] = []
    for word, box, located in zip(narrative.words, boxes.boxes_xyxy, boxes.located.tolist(), strict=True):
        entry: dict[str, Any] = {"word": word.text, "start_s": word.start_s, "end_s": word.end_s}
        if located:
            x, y, width, height = _xywh_px(box, size_px)
            entry |= {"bbox": [x, y, width, height], "area": width * height}
        words.append(entry)
    return words


def _kept_boxes(boxes: Sequence[Sequence[float] | None] | None) -> WordBoxes | None:
    if not boxes:
        return None
    return WordBoxes([[np.nan] * 4 if box is None else list(box) for box in boxes])


def _xywh_px(box_xyxy: Floats, size_px: tuple[int, int]) -> list[float]:
    """A box in pixels of the photo. One without area, a point or a line, gets the pixels that it touches."""
    size = np.array(size_px, dtype=np.float64)
    low, high = box_xyxy[:2] * size, box_xyxy[2:] * size
    thin = high - low < 1
    low = np.where(thin, np.minimum(np.floor(low), size - 1), low)
    high = np.where(thin, low + 1, high)
    return [round(value, 3) for value in (*low.tolist(), *(high - low).tolist())]


def _text(record: Mapping[str, Any], photo: Mapping[str, Any]) -> bytes:
    if not record["text"].strip():
        raise InvalidValue("the text", "is empty, so there is nothing to say about the photo")
    by = f"machine-written, by {record['origin']}"
    if record["origin"] == HUMAN:
        by = f"human-written, by {record['annotator']}" if record["annotator"] else "human-written"
    long = long_description(narrative_of(record, photo))
    return labelled(photo["name"] or photo["id"], by, alt_text(record["text"]), long).encode()


def _written(write: Callable[[Path], object]) -> bytes:
    """What a writer of files writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export"
        write(path)
        return path.read_bytes()


def _json(content: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
