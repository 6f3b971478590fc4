"""Visual Genome region descriptions (Krishna et al., 2017): one JSON list of images.

    region_descriptions.json  [{"id", "regions": [{"region_id", "image_id", "x", "y", "width", "height", "phrase"}]}]
    image_data.json           [{"image_id", "width", "height", …}]

Pixels of the original photo. The sizes are in the second file, so `read(regions)` gives boxes in pixels alone and
`read(regions, image_data)` can give fractions, too. The form is that of versions 1.2 and 1.4.

One value for each region, in the file's order. Bad records are: boxes without area, boxes outside an image of known
size (lapping over its edge is fine), empty phrases, a region that names another image than the one it is listed under,
and with sizes an image that has none. An image whose regions cannot be listed is one bad record, and so is each bad
entry of image_data.json (these come first).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats._boxes import BoxXywh, BoxXyxy, Side, check_box, check_size, fractions, xyxy
from saywhere.formats._documents import Decoded, Id, Node, built, decoded, document, item_keys
from saywhere.formats.record import InvalidRecord


@dataclass(frozen=True, slots=True)
class RegionDescription:
    """A phrase about a box. box_xywh_px: left, top, width, height. width, height: of the image in pixels, if known."""

    image_id: int | str
    region_id: int | str
    phrase: str
    box_xywh_px: BoxXywh
    width: int | None = None
    height: int | None = None

    def __post_init__(self) -> None:
        if not self.phrase.strip():
            raise InvalidValue("the phrase", "is empty")
        size = (self.width, self.height) if self.width is not None and self.height is not None else None
        if size:
            check_size(*size)
        check_box(xyxy(self.box_xywh_px), size)

    @property
    def box_xyxy_px(self) -> BoxXyxy:
        """Left, top, right, bottom in pixels."""
        return xyxy(self.box_xywh_px)

    @property
    def box_xyxy(self) -> BoxXyxy:
        """Left, top, right, bottom in fractions of the image. InvalidValue if its size is unknown."""
        if self.width is None or self.height is None:
            raise InvalidValue(f"image {self.image_id}", "is of unknown size", "read it with image_data.json")
        return fractions(self.box_xyxy_px, self.width, self.height)


class _Region(msgspec.Struct, frozen=True, gc=False):
    region_id: Id
    image_id: Id
    x: float
    y: float
    width: float
    height: float
    phrase: str


class _Size(msgspec.Struct, frozen=True, gc=False):
    image_id: Id
    width: Side
    height: Side


_ID: msgspec.json.Decoder[int | str] = msgspec.json.Decoder(Id)
_REGION = msgspec.json.Decoder(_Region)
_SIZE = msgspec.json.Decoder(_Size)


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the file is a list of images with regions."""
    return "regions" in item_keys(head)


def read(path: str | Path, image_data: str | Path | None = None) -> Iterator[RegionDescription | InvalidRecord]:
    """One value for each region. image_data: the file with the images' sizes."""
    root = _list(path)
    sizes: dict[int | str, _Size] | None = None
    if image_data is not None:
        sizes = {}
        for item in decoded(_list(image_data).items(), _SIZE):
            if isinstance(item, Decoded):
                sizes[item.value.image_id] = item.value
            else:
                yield item
    for image in root.items():
        if isinstance(image, InvalidRecord):
            yield image
        else:
            yield from _read_image(image, sizes)


def _list(path: str | Path) -> Node:
    root = document(path)
    if root.kind != "list":
        raise InvalidFile(path, "should be a list of images, not an object")
    return root


def _read_image(image: Node, sizes: dict[int | str, _Size] | None) -> Iterator[RegionDescription | InvalidRecord]:
    if image.kind != "object":
        yield image.invalid("should be an object")
        return
    found: dict[str, Node] = {}
    problems: list[InvalidRecord] = []
    for entry in image.entries():
        if isinstance(entry, InvalidRecord):
            problems.append(entry)
        else:
            found[entry[0]] = entry[1]
    if "id" not in found or "regions" not in found or found["regions"].kind != "list":
        yield problems[0] if problems else image.invalid("has no id or no list of regions")
        return
    yield from problems
    image_id = found["id"].decode(_ID)
    if isinstance(image_id, InvalidRecord):
        yield image_id
        return
    regions = decoded(found["regions"].items(), _REGION)
    yield from built(regions, lambda region: _description(region, image_id, sizes))


def _description(region: _Region, listed_under: int | str, sizes: dict[int | str, _Size] | None) -> RegionDescription:
    if region.image_id != listed_under:
        raise InvalidValue(f"region {region.region_id}", f"of image {region.image_id} is listed under {listed_under}")
    size = None if sizes is None else sizes.get(region.image_id)
    if sizes is not None and size is None:
        raise InvalidValue(f"image {region.image_id}", "has no size in the file of sizes")
    return RegionDescription(
        region.image_id,
        region.region_id,
        region.phrase,
        (region.x, region.y, region.width, region.height),
        size.width if size else None,
        size.height if size else None,
    )
