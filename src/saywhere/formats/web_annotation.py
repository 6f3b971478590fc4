"""W3C Web Annotation (Recommendation of 2017) in JSON-LD. Written as one AnnotationPage, one annotation a narrative.

    id          urn:uuid made from the annotation's content: the same narrative always has the same id
    creator     a Person with the annotator's id as nickname, or Software with the name of the model
    generator   this software, which wrote the annotation down
    body        TextualBody with the caption and its language, if that is known; and the voice recording as Sound, if
                there is one
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
relative to where the page is put.

Read are pages, lists of annotations and single annotations, ours and those of other programs: the text, the one image
that the targets are about, its language, the trace if it has times, and a place that is a rectangle (`xywh`). What is
about several images or none, has no text, or marks its place in another form, is an InvalidRecord. Of a text in several
languages, or with a language that is no tag, the language counts as unknown.
"""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import HUMAN, Narrative, is_language
from saywhere.core.trace import Trace
from saywhere.core.types import Floats
from saywhere.core.words import Utterance
from saywhere.formats._documents import Node, built, decoded, document
from saywhere.formats._scan import keys_of
from saywhere.formats._strokes import NO_TRACE, joined_trace
from saywhere.formats.record import InvalidRecord

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

    language: of captions whose narrative does not know its own, as a BCP 47 tag; empty: they get none.
    image: gives the IRI of a narrative's image.
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
        "purpose": "describing",
    }
    if tag := narrative.language or language:
        caption["language"] = tag
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


@dataclass(frozen=True, slots=True)
class Placed:
    """An annotation that was read. box_xyxy: where its whole text is, if it says so by a rectangle; in pixels of the
    image, or in fractions of it."""

    narrative: Narrative
    box_xyxy: tuple[float, float, float, float] | None = None
    in_pixels: bool = False


class _Annotation(msgspec.Struct):
    target: Any
    body: Any = None
    body_value: str | None = msgspec.field(default=None, name="bodyValue")
    creator: Any = None


_ANNOTATION = msgspec.json.Decoder(_Annotation)
_POLYLINE = re.compile(r'<polyline\b[^<>]*?\bpoints="([^"<>]*)"')
_XYWH = re.compile(
    r"xywh=(?:(percent|pixel):)?([0-9.eE+-]{1,40}),([0-9.eE+-]{1,40}),([0-9.eE+-]{1,40}),([0-9.eE+-]{1,40})"
)


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the document names the context of Web Annotation at its top."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n[")
    return "@context" in keys_of(start) and b"www.w3.org/ns/anno" in head


def read(path: str | Path) -> Iterator[Narrative | InvalidRecord]:
    """One value for each annotation, in the file's order; see the module."""
    for item in read_placed(path):
        yield item if isinstance(item, InvalidRecord) else item.narrative


def read_placed(path: str | Path) -> Iterator[Placed | InvalidRecord]:
    """The same, with the rectangle that an annotation of another program points at."""
    yield from built(decoded(_annotations(document(path)), _ANNOTATION), _placed)


def _annotations(root: Node) -> Iterator[Node | InvalidRecord]:
    if root.kind == "list":
        yield from root.items()
        return
    for entry in root.entries():
        if not isinstance(entry, InvalidRecord) and entry[0] == "items" and entry[1].kind == "list":
            yield from entry[1].items()
            return
    yield root


def _placed(raw: _Annotation) -> Placed:
    bodies = [body if isinstance(body, dict) else {"value": body} for body in _many(raw.body)]
    texts = [body for body in bodies if isinstance(body.get("value"), str)]
    if raw.body_value is not None:
        texts.append({"value": raw.body_value})
    if not texts:
        raise InvalidValue("body", "has no text")
    targets = [target if isinstance(target, dict) else {"source": target} for target in _many(raw.target)]
    dataset_id, image_id = _image({_source(target) for target in targets})
    person, name = _read_creator(raw.creator)
    narrative = Narrative(
        image_id=image_id,
        caption=texts[0]["value"],
        utterances=tuple(_utterance(one) for one in _many(texts[0].get("utterances"))),
        trace=_read_trace(targets),
        dataset_id=dataset_id,
        annotator_id=name if person else "",
        audio=next((unquote(str(body.get("id", ""))) for body in bodies if body.get("type") == "Sound"), ""),
        origin=HUMAN if person else name,
        language=_language(texts[0].get("language")),
    )
    return Placed(narrative, *_rectangle([target for target in targets if "pointTimes" not in target]))


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _source(target: dict[str, Any]) -> str:
    source = target.get("source", target.get("id"))
    if isinstance(source, dict):
        source = source.get("id")
    if not isinstance(source, str) or not source:
        raise InvalidValue("target", "names no image")
    return source.partition("#")[0]


def _image(sources: set[str]) -> tuple[str, str]:
    """Data set and id of the one image."""
    if len(sources) != 1:
        raise InvalidValue("target", f"is about {len(sources)} images, not one")
    address = urlsplit(sources.pop())
    parts = [unquote(part) for part in address.path.split("/") if part]
    if not parts:
        raise InvalidValue("target", "names no image")
    ours = not address.netloc and len(parts) == 2
    return (parts[0] if ours else ""), parts[-1]


def _read_creator(creator: Any) -> tuple[bool, str]:
    """Whether a person made it, and the name."""
    one = _many(creator)[0] if _many(creator) else {}
    if isinstance(one, str):
        return True, one
    if not isinstance(one, dict):
        raise InvalidValue("creator", "is neither an object nor text")
    name = next((str(one[key]) for key in ("nickname", "name", "id") if one.get(key)), "")
    return (one.get("type") != "Software" or not name), name


def _language(given: Any) -> str:
    tags = _many(given)
    return tags[0] if len(tags) == 1 and isinstance(tags[0], str) and is_language(tags[0]) else ""


def _utterance(one: Any) -> Utterance:
    if not isinstance(one, dict) or not isinstance(one.get("text"), str):
        raise InvalidValue("utterances", "hold something without text")
    return Utterance(one["text"], _number(one.get("startTime")), _number(one.get("endTime")))


def _read_trace(targets: list[dict[str, Any]]) -> Trace:
    timed = [target for target in targets if "pointTimes" in target]
    if not timed:
        return NO_TRACE
    if len(timed) > 1:
        raise InvalidValue("target", "has several traces")
    selector = timed[0].get("selector")
    drawn = selector.get("value") if isinstance(selector, dict) else None
    if not isinstance(drawn, str) or 'viewBox="0 0 1 1"' not in drawn:
        raise InvalidValue("target", "has a trace that is not drawn in a view box of 1 by 1")
    strokes = [[_number(value) for value in line.replace(",", " ").split()] for line in _POLYLINE.findall(drawn)]
    times = [_number(time) for time in _many(timed[0]["pointTimes"])]
    lengths = [len(stroke) // 2 for stroke in strokes]
    if any(len(stroke) % 2 for stroke in strokes) or sum(lengths) != len(times):
        raise InvalidValue("pointTimes", f"are {len(times)}, for {sum(lengths)} points")
    if not times:
        return NO_TRACE
    xy = np.array([value for stroke in strokes for value in stroke], dtype=np.float64).reshape(-1, 2)
    return joined_trace(np.column_stack([xy, times]), lengths, "polylines", "time")


def _rectangle(targets: list[dict[str, Any]]) -> tuple[tuple[float, float, float, float] | None, bool]:
    """The one rectangle of an annotation of another program, and whether it counts pixels. Boxes of words are ours."""
    places = [target for target in targets if "word" not in target and ("selector" in target or _fragment(target))]
    if not places:
        return None, False
    if len(places) > 1:
        raise InvalidValue("target", f"has {len(places)} places, not one")
    selector = places[0].get("selector")
    value = selector.get("value") if isinstance(selector, dict) else _fragment(places[0])
    match = _XYWH.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InvalidValue("selector", "is not a rectangle (xywh=…)")
    x, y, width, height = (_number(number) for number in match.groups()[1:])
    if not (width > 0 and height > 0):
        raise InvalidValue("selector", "is a rectangle without area")
    unit = 100 if match[1] == "percent" else 1
    return (x / unit, y / unit, (x + width) / unit, (y + height) / unit), unit == 1


def _fragment(target: dict[str, Any]) -> str:
    address = target.get("source", target.get("id"))
    return address.partition("#")[2] if isinstance(address, str) else ""


def _number(value: Any) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidValue("a number", f"is {str(value)[:40]!r}")
    return number
