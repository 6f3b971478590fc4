"""What all COCO documents share: the list of images, and finding one kind of document among the others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from saywhere.core.errors import InvalidValue
from saywhere.formats._boxes import Side
from saywhere.formats._documents import Id, Node, decoded, listed, member_item_keys
from saywhere.formats.record import InvalidRecord

_DOCUMENT_KEYS = frozenset({"info", "images", "annotations", "licenses", "license", "categories", "type", "data_type"})


class ImageEntry(msgspec.Struct, frozen=True, gc=False):
    """One of `images`. width, height: pixels, if known."""

    id: Id
    file_name: str = ""
    width: Side | None = None
    height: Side | None = None


class OfImage(Protocol):
    """A value that knows its image."""

    @property
    def image_id(self) -> int | str: ...
    @property
    def file_name(self) -> str: ...
    @property
    def width(self) -> int | None: ...
    @property
    def height(self) -> int | None: ...


_IMAGE = msgspec.json.Decoder(ImageEntry)


def annotation_keys(path: Path, head: bytes) -> frozenset[str]:
    """The keys of the first annotation, if this looks like a COCO document."""
    return member_item_keys(path, head, "annotations", _DOCUMENT_KEYS)


def read_images(found: dict[str, Node], path: str) -> tuple[dict[int | str, ImageEntry], list[InvalidRecord]]:
    """`images` by their ids, and its bad entries, among them those with one side only or listed before, differently."""
    images: dict[int | str, ImageEntry] = {}
    bad: list[InvalidRecord] = []
    for item in decoded(listed(found, "images", path), _IMAGE) if "images" in found else ():
        if isinstance(item, InvalidRecord):
            bad.append(item)
            continue
        image = item.value
        if (image.width is None) != (image.height is None):
            bad.append(item.node.invalid("has only one of width and height"))
        elif images.setdefault(image.id, image) != image:
            bad.append(item.node.invalid(f"image {image.id} was listed before with another file name or size"))
    return images, bad


def image_entries(values: Iterable[OfImage]) -> list[dict[str, Any]]:
    """`images` for writing, in the order in which their values come. InvalidValue if they disagree about an image."""
    entries: dict[int | str, dict[str, Any]] = {}
    for value in values:
        entry: dict[str, Any] = {"id": value.image_id}
        if value.file_name:
            entry["file_name"] = value.file_name
        if value.width is not None and value.height is not None:
            entry |= {"width": value.width, "height": value.height}
        if entries.setdefault(value.image_id, entry) != entry:
            raise InvalidValue(f"image {value.image_id}", "has another file name or size in one value than in another")
    return list(entries.values())
