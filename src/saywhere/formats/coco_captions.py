"""COCO captions (Chen et al., 2015): one JSON document, {"info", "licenses", "images", "annotations"}.

    images       [{"id", "file_name", "width", "height", …}], pixels
    annotations  [{"id", "image_id", "caption"}]

One value for each annotation, in the file's order. An annotation whose image is not listed is read all the same, its
file name empty and its size None. Only `annotations` must be there. Bad entries of `images` are reported, too, so that
the number of values and bad records is that of annotations plus that of bad images. Ids that repeat are kept. Captions
keep their white space; those of nothing else are bad records. Four keys of an annotation are ours: `annotator`,
`origin`, `language`, and `words` with times and boxes; the Studio writes them, and other programs pass over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import is_language
from saywhere.formats._boxes import BoxXywh, check_size
from saywhere.formats._coco import ImageEntry, annotation_keys, image_entries, read_images
from saywhere.formats._documents import Id, built, decoded, document, encoded, listed, members
from saywhere.formats.record import InvalidRecord


class CaptionWord(msgspec.Struct, frozen=True, gc=False):
    """A word of a caption, when it was said, in seconds, and where it is: left, top, width, height in pixels."""

    word: str
    start_s: float
    end_s: float
    bbox: BoxXywh | None = None


@dataclass(frozen=True, slots=True)
class CaptionRecord:
    """One sentence about one image. file_name, width and height (pixels): of the image; empty and None if unknown.
    annotator, origin, language, words: empty unless the file says more than COCO does."""

    image_id: int | str
    caption_id: int | str
    caption: str
    file_name: str = ""
    width: int | None = None
    height: int | None = None
    annotator: str = ""
    origin: str = ""
    words: tuple[CaptionWord, ...] = ()
    language: str = ""

    def __post_init__(self) -> None:
        if not self.caption.strip():
            raise InvalidValue("the caption", "is empty")
        if self.language and not is_language(self.language):
            raise InvalidValue("language", f"is {self.language[:50]!r}", "give a tag such as en or pt-BR")
        if (self.width is None) != (self.height is None):
            raise InvalidValue("the image", "has one side only: width and height are known together or not at all")
        if self.width is not None and self.height is not None:
            check_size(self.width, self.height)


class _Annotation(msgspec.Struct, frozen=True, gc=False):
    id: Id
    image_id: Id
    caption: str
    annotator: str = ""
    origin: str = ""
    words: tuple[CaptionWord, ...] = ()
    language: str = ""


_ANNOTATION = msgspec.json.Decoder(_Annotation)


def sniff(path: Path, head: bytes) -> bool:
    """Whether the annotations of the document are captions."""
    return annotation_keys(path, head) >= {"image_id", "caption"}


def read(path: str | Path) -> Iterator[CaptionRecord | InvalidRecord]:
    """One value for each annotation; see the module."""
    root = document(path)
    found, problems = members(root, "images", "annotations")
    annotations = decoded(listed(found, "annotations", root.path), _ANNOTATION)
    images, bad_images = read_images(found, root.path)
    yield from bad_images

    def record(entry: _Annotation) -> CaptionRecord:
        image = images.get(entry.image_id, ImageEntry(entry.image_id))
        known = (image.file_name, image.width, image.height)
        return CaptionRecord(
            entry.image_id, entry.id, entry.caption, *known, entry.annotator, entry.origin, entry.words, entry.language
        )

    yield from built(annotations, record)
    yield from problems


def write(path: str | Path, values: Iterable[CaptionRecord]) -> int:
    """Write the official form, atomically; how many captions there were."""
    records = list(values)
    content = {
        "info": {"description": "captions"},
        "licenses": [],
        "type": "captions",
        "images": image_entries(records),
        "annotations": [{"image_id": r.image_id, "id": r.caption_id, "caption": r.caption} for r in records],
    }
    with write_atomic(path) as file:
        file.write(encoded(content))
    return len(records)
