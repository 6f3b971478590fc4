"""W3C Web Annotation (Recommendation of 2017), written as one JSON-LD AnnotationPage with one annotation a narrative.

    id          urn:uuid made from the annotation's content: the same narrative always has the same id
    creator     a Person with the annotator's id as nickname, or Software with the name of the model
    generator   this software, which wrote the annotation down
    body        TextualBody with the caption and its language; and the voice recording as Sound, if there is one
    target      parts of the image: the whole trace (SvgSelector with a polyline for each stroke, in a view box of
                1 by 1, so that coordinates are fractions), then the box of every located word (FragmentSelector
                "xywh=percent:…"; an SvgSelector with a line where the box has no width or no height, because media
                fragments must have an area). The whole image, if there is neither.

The standard has no place for when something was said or pointed at. These terms of ours, declared in the context, are
added; other software passes over them. All times are seconds.

    utterances  on the caption: list of {"text", "startTime", "endTime"}
    pointTimes  on the trace's target: the time of every point of its polylines, in their order
    word, startTime, endTime    on a word's target

The data sets name images and recordings by id. Unless told otherwise, the IRI of an image is "<dataset_id>/<image_id>",
relative to where the page is put. There is no reader: our own formats keep more.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import HUMAN, Narrative
from saywhere.core.types import Floats
from saywhere.core.words import Utterance

TERMS = "urn:x-saywhere:terms:"
CONTEXT: list[Any] = [
    "http://www.w3.org/ns/anno.jsonld",
    {
        "utterances": {"@id": f"{TERMS}utterances", "@container": "@list"},
        "text": f"{TERMS}text",
        "word": f"{TERMS}word",
        "startTime": f"{TERMS}startTime",
        "endTime": f"{TERMS}endTime",
        "pointTimes": {"@id": f"{TERMS}pointTimes", "@container": "@list"},
    },
]
_MEDIA_FRAGMENTS = "http://www.w3.org/TR/media-frags/"
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1" preserveAspectRatio="none">{}</svg>'

_encode = msgspec.json.Encoder().encode


def image_iri(narrative: Narrative) -> str:
    """Where the image is, relative to the page: its data set and its id."""
    return "/".join(quote(part, safe="") for part in (narrative.dataset_id, narrative.image_id) if part)


def write(
    path: str | Path,
    narratives: Iterable[Narrative],
    *,
    language: str = "en",
    image: Callable[[Narrative], str] = image_iri,
) -> int:
    """Write narratives as one AnnotationPage; how many there were.

    language: of the captions, as a BCP 47 tag. image: gives the IRI of a narrative's image.
    """
    written = 0
    seen = hashlib.sha1(usedforsecurity=False)
    with write_atomic(path) as file:
        file.write(b'{"@context":' + _encode(CONTEXT) + b',"type":"AnnotationPage","items":[')
        for narrative in narratives:
            item = _annotation(narrative, language, image)
            seen.update(item)
            file.write((b",\n" if written else b"\n") + item)
            written += 1
        file.write(b'\n],"id":"' + _urn(seen.digest()) + b'"}\n')
    return written


def _annotation(narrative: Narrative, language: str, image: Callable[[Narrative], str]) -> bytes:
    if not isinstance(narrative, Narrative):
        raise InvalidValue("narrative", f"is a {type(narrative).__name__}")
    try:
        content = _encode(
            {
                "type": "Annotation",
                "motivation": "describing",
                "creator": _creator(narrative),
                "generator": {"type": "Software", "name": "saywhere"},
                "body": _bodies(narrative, language),
                "target": _targets(narrative, image(narrative)),
            }
        )
    except UnicodeEncodeError as error:
        raise InvalidValue(f"narrative {narrative.id!r}", "holds half a character (a lone surrogate)") from error
    return b'{"id":"' + _urn(hashlib.sha1(content, usedforsecurity=False).digest()) + b'",' + content[1:]


def _urn(digest: bytes) -> bytes:
    return uuid.UUID(bytes=digest[:16], version=5).urn.encode()


def _creator(narrative: Narrative) -> dict[str, str]:
    if narrative.origin != HUMAN:
        return {"type": "Software", "name": narrative.origin}
    return {"type": "Person"} | ({"nickname": narrative.annotator_id} if narrative.annotator_id else {})


def _bodies(narrative: Narrative, language: str) -> list[dict[str, Any]]:
    caption: dict[str, Any] = {
        "type": "TextualBody",
        "value": narrative.caption,
        "format": "text/plain",
        "language": language,
        "purpose": "describing",
    }
    if narrative.utterances:
        caption["utterances"] = [{"text": u.text} | _timing(u) for u in narrative.utterances]
    return [caption] + ([{"id": quote(narrative.audio, safe="/:"), "type": "Sound"}] if narrative.audio else [])


def _targets(narrative: Narrative, image: str) -> list[Any]:
    targets: list[Any] = []
    if len(narrative.trace):
        lines = "".join(_polyline(stroke) for stroke in narrative.trace.segments)
        targets.append(_part(image, _svg_selector(lines)) | {"pointTimes": narrative.trace.times_s.tolist()})
    boxes = narrative.word_boxes()
    for word, box, located in zip(narrative.words, boxes.boxes_xyxy, boxes.located.tolist(), strict=True):
        if located:
            targets.append(_part(image, _box_selector(box)) | {"word": word.text} | _timing(word))
    return targets or [image]


def _part(image: str, selector: dict[str, str]) -> dict[str, Any]:
    return {"type": "SpecificResource", "source": image, "selector": selector}


def _svg_selector(shapes: str) -> dict[str, str]:
    return {"type": "SvgSelector", "value": _SVG.format(shapes)}


def _box_selector(box_xyxy: Floats) -> dict[str, str]:
    x1, y1, x2, y2 = box_xyxy.tolist()
    # Rounded, 0.1 stays 10 % and does not become 10.000000000000002 %; a box so thin that nothing is left is a line.
    percent = [round(100 * value, 9) for value in (x1, y1, x2 - x1, y2 - y1)]
    if percent[2] <= 0 or percent[3] <= 0:
        return _svg_selector(_polyline(box_xyxy.reshape(2, 2)))
    value = "xywh=percent:" + ",".join(f"{number:.9f}".rstrip("0").rstrip(".") for number in percent)
    return {"type": "FragmentSelector", "conformsTo": _MEDIA_FRAGMENTS, "value": value}


def _polyline(points: Floats) -> str:
    pairs = " ".join(f"{x!r},{y!r}" for x, y in points[:, :2].tolist())
    return f'<polyline fill="none" points="{pairs}"/>'


def _timing(utterance: Utterance) -> dict[str, float]:
    return {"startTime": utterance.start_s, "endTime": utterance.end_s}
