"""COCO Entities (Cornia et al., 2019) and Flickr30k Entities (Plummer et al., 2015): captions with boxes.

Two forms are read, by `read` or by name:

* One JSON document, {image: {captions: [[x1, y1, x2, y2], …]}}: `read_json`. Captions that share their boxes are joined
  by newlines in one key; each becomes a value of its own.
* The folder of the Flickr30k Entities release: `read_release`. Sentences/36979.txt has one caption a line, in which
  phrases are marked, "[/EN#137644/people A group of friends] playing …", with the entity's number and its types;
  Annotations/36979.xml, in PASCAL VOC's manner, has size and objects. An object has one or more entity numbers as names
  and a `bndbox`, or `nobndbox` 1 for something invisible, or `scene` 1 for something that is everywhere. One value for
  each line, images by name. Its pixels count from 1 and are moved to count from 0, as the authors' own tool does; the
  boxes of the JSON form are so, too.

Boxes are in pixels of the original photo. Captions without boxes are kept. Bad records are: empty captions, boxes
without area (then each caption that shares them), an image or caption given twice, broken mark-up, and for all lines of
an image a missing or bad XML file. XML with a document type is refused, so that entities cannot expand.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats._boxes import BoxXyxy, check_box, check_size, fractions
from saywhere.formats._documents import Node, document
from saywhere.formats.files import read_bytes, read_lines
from saywhere.formats.record import InvalidRecord, excerpt

_MARK = re.compile(r"\[/EN#([0-9]+)((?:/\w+)+)\s+([^\[\]]+?)\s*\]")
_MARK_BEGIN = "[/EN#"
_JSON_FORM = re.compile(rb'\s*\{\s*"[^"\\]*"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*[\[\]]', re.DOTALL)
_MAX_XML_BYTES = 2**24


@dataclass(frozen=True, slots=True)
class EntityPhrase:
    """A part of a caption that names something.

    first_word: its place in the caption's words, from 0. entity_id: the same for all mentions of one thing in the five
    captions; "0" is something not visual. kinds: such as "people" or "bodyparts". boxes_xyxy_px: where it is, perhaps
    nowhere or in several places. is_scene: it is the place as a whole.
    """

    text: str
    first_word: int
    entity_id: str
    kinds: tuple[str, ...]
    boxes_xyxy_px: tuple[BoxXyxy, ...] = ()
    is_scene: bool = False


@dataclass(frozen=True, slots=True)
class EntitiesCaption:
    """A caption and all boxes of what it names, in pixels of the original photo.

    phrases, size_px (width, height): from the release; empty and None in the JSON form, which does not have them.
    """

    image_id: str
    caption: str
    boxes_xyxy_px: tuple[BoxXyxy, ...]
    phrases: tuple[EntityPhrase, ...] = ()
    size_px: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not self.image_id:
            raise InvalidValue("the caption", "names no image")
        if not self.caption.strip():
            raise InvalidValue("the caption", "is empty")
        if self.size_px is not None:
            check_size(*self.size_px)
        for box in self.boxes_xyxy_px:
            check_box(box, self.size_px)

    def boxes_xyxy(self, size_px: tuple[int, int] | None = None) -> tuple[BoxXyxy, ...]:
        """The boxes in fractions of the image. size_px: its width and height, if the value does not know them."""
        size = size_px or self.size_px
        if size is None:
            raise InvalidValue(f"image {self.image_id}", "is of unknown size", "give size_px, its width and height")
        check_size(*size)
        return tuple(fractions(box, *size) for box in self.boxes_xyxy_px)


_BOXES = msgspec.json.Decoder(tuple[tuple[float, float, float, float], ...])


def sniff(path: Path, head: bytes) -> bool:
    """Whether this is the JSON form, or the folder of the release."""
    if path.is_dir():
        return (path / "Sentences").is_dir() and (path / "Annotations").is_dir()
    return _JSON_FORM.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def read(path: str | Path) -> Iterator[EntitiesCaption | InvalidRecord]:
    """One value for each caption, of either form."""
    return read_release(path) if Path(path).is_dir() else read_json(path)


def read_json(path: str | Path) -> Iterator[EntitiesCaption | InvalidRecord]:
    """One value for each caption of {image: {captions: boxes}}."""
    root = document(path)
    if root.kind != "object":
        raise InvalidFile(path, "should be an object of images, not a list")
    for image in root.entries():
        if isinstance(image, InvalidRecord):
            yield image
        elif image[1].kind != "object":
            yield image[1].invalid("should be an object of captions")
        else:
            for entry in image[1].entries():
                yield from [entry] if isinstance(entry, InvalidRecord) else _shared_boxes(image[0], *entry)


def read_release(folder: str | Path) -> Iterator[EntitiesCaption | InvalidRecord]:
    """One value for each line of Sentences/*.txt, with the boxes of Annotations/*.xml."""
    folder = Path(folder)
    sentences, annotations = folder / "Sentences", folder / "Annotations"
    for part in (sentences, annotations):
        if not part.is_dir():
            raise InvalidFile(folder, f"has no folder {part.name}")
    names = {file.stem for file in sentences.glob("*.txt")}
    for name in sorted(names | {file.stem for file in annotations.glob("*.xml")}):
        if name not in names:
            yield InvalidRecord(str(annotations / f"{name}.xml"), 0, f"there is no Sentences/{name}.txt")
            continue
        scene: _ImageEntities | str
        try:
            scene = _scene(annotations / f"{name}.xml")
        except InvalidFile as error:
            scene = f"cannot be read: {Path(error.path).name} {error.reason}"
        yield from _read_sentences(sentences / f"{name}.txt", scene)


def _shared_boxes(image_id: str, captions: str, node: Node) -> Iterator[EntitiesCaption | InvalidRecord]:
    boxes = node.decode(_BOXES)
    for caption in captions.split("\n"):
        if isinstance(boxes, InvalidRecord):
            yield boxes
            continue
        try:
            yield EntitiesCaption(image_id, caption, boxes)
        except InvalidValue as error:
            yield node.invalid(f"{error.what} {error.reason}")


@dataclass(frozen=True, slots=True)
class _ImageEntities:
    """What an XML file says. boxes: by entity. scenes: entities that are everywhere."""

    size_px: tuple[int, int]
    boxes: dict[str, tuple[BoxXyxy, ...]]
    scenes: frozenset[str]


def _read_sentences(path: Path, scene: _ImageEntities | str) -> Iterator[EntitiesCaption | InvalidRecord]:
    for line in read_lines(path):
        if isinstance(line, InvalidRecord):
            yield line
            continue
        number, raw = line
        try:
            if isinstance(scene, str):
                raise InvalidValue("the image's boxes", scene)
            yield _caption(path.stem, raw.decode("utf-8-sig" if number == 1 else "utf-8").strip(), scene)
        except UnicodeDecodeError as error:
            yield InvalidRecord(str(path), number, f"is not UTF-8 text: {error.reason}", excerpt=excerpt(raw))
        except InvalidValue as error:
            yield InvalidRecord(str(path), number, f"{error.what} {error.reason}", excerpt=excerpt(raw))


def _caption(image_id: str, marked: str, scene: _ImageEntities) -> EntitiesCaption:
    caption, phrases, at = "", [], 0
    for found in _MARK.finditer(marked):
        caption += marked[at : found.start()]
        entity_id, kinds, text = found[1], tuple(found[2].strip("/").split("/")), found[3]
        boxes = scene.boxes.get(entity_id, ())
        first_word = len((caption + text).split()) - len(text.split())
        phrases.append(EntityPhrase(text, first_word, entity_id, kinds, boxes, entity_id in scene.scenes))
        caption += text
        at = found.end()
    caption += marked[at:]
    if _MARK_BEGIN in caption:
        raise InvalidValue("the mark-up", f"is broken at {excerpt(caption[caption.index(_MARK_BEGIN) :])!r}")
    boxes = tuple(dict.fromkeys(box for phrase in phrases for box in phrase.boxes_xyxy_px))
    return EntitiesCaption(image_id, caption, boxes, tuple(phrases), scene.size_px)


def _scene(path: Path) -> _ImageEntities:
    root = _parsed(path)
    size = root.find("size")
    if size is None:
        raise InvalidFile(path, "has no size")
    boxes: dict[str, list[BoxXyxy]] = {}
    scenes: set[str] = set()
    try:
        size_px = _number(size, "width"), _number(size, "height")
        check_size(*size_px)
        for thing in root.findall("object"):
            entities = [(name.text or "").strip() for name in thing.findall("name")]
            if thing.findtext("scene", "0").strip() == "1":
                scenes.update(entities)
            for corners in thing.findall("bndbox"):
                x1, y1, x2, y2 = (_number(corners, name) - 1 for name in ("xmin", "ymin", "xmax", "ymax"))
                check_box((x1, y1, x2, y2), size_px)
                for entity in entities:
                    boxes.setdefault(entity, []).append((x1, y1, x2, y2))
    except InvalidValue as error:
        raise InvalidFile(path, f"is bad: {error.what} {error.reason}") from error
    return _ImageEntities(size_px, {entity: tuple(own) for entity, own in boxes.items()}, frozenset(scenes))


def _parsed(path: Path) -> ET.Element:
    """The root of an XML file that has no document type, so that nothing in it can expand or point elsewhere."""
    content = read_bytes(path)
    if len(content) > _MAX_XML_BYTES:
        raise InvalidFile(path, f"is larger than {_MAX_XML_BYTES / 2**20:.0f} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFile(path, "is not UTF-8 text") from error
    # The parser gets text, not bytes, so that no declared encoding can hide a document type from this check.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InvalidFile(path, "has a document type, which is refused")
    try:
        return ET.fromstring(text)
    except (ET.ParseError, ValueError) as error:
        raise InvalidFile(path, f"is not valid XML: {error}") from error


def _number(element: ET.Element, name: str) -> int:
    text = element.findtext(name, "").strip()
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise InvalidValue(f"{element.tag}/{name}", f"is {excerpt(text)!r}, not a whole number")
    return int(text)
