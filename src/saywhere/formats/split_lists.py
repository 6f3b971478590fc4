"""Which images belong to which split, as official lists say it.

Three forms are read: Karpathy's `dataset_coco.json` (a split for each image; `restval` is learnt from), any COCO file
with `images` (captions_val2017.json, image_info_test2017.json …: all of one split), and text with a name a line, such
as `karpathy_test_images.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats.files import read_bytes

_NAMES = {"train": "train", "restval": "train", "val": "validation", "validation": "validation", "test": "test"}
_NUMBER = re.compile(r"(?:^|_)(\d+)$")


class _ListedImage(msgspec.Struct):
    id: int | str | None = None
    cocoid: int | None = None
    file_name: str | None = None
    filename: str | None = None
    split: str | None = None


class _ImageList(msgspec.Struct):
    images: list[_ListedImage]


def image_key(name: str | int) -> str:
    """What tells an image apart however it is written: COCO's number without zeros, else the file's name.

    >>> image_key("COCO_val2014_000000391895.jpg"), image_key("000000000139"), image_key("beach.png")
    ('391895', '139', 'beach')
    """
    stem = PurePath(str(name)).stem
    number = _NUMBER.search(stem)
    return str(int(number.group(1))) if number else stem


def read_split_list(path: str | Path, split: str = "") -> dict[str, str]:
    """Image key → split. split: the one that all images of a list belong to that does not say so itself."""
    content = read_bytes(path)
    if content.lstrip().startswith(b"{"):
        return _from_json(Path(path), content, split)
    names = [line.split()[0] for line in content.decode("utf-8", errors="replace").splitlines() if line.strip()]
    if not names:
        raise InvalidFile(path, "lists no image")
    return dict.fromkeys(map(image_key, names), _needed(path, split))


def _from_json(path: Path, content: bytes, split: str) -> dict[str, str]:
    try:
        listed = msgspec.json.decode(content, type=_ImageList).images
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is no list of images: {error}", 'it needs "images"') from error
    found: dict[str, str] = {}
    for one in listed:
        name = next((n for n in (one.cocoid, one.file_name, one.filename, one.id) if n is not None), None)
        if name is None:
            raise InvalidFile(path, "lists an image without id or file name")
        if one.split is not None and one.split not in _NAMES:
            raise InvalidFile(path, f"image {name} is of the split {one.split!r}, not one of {', '.join(_NAMES)}")
        found[image_key(name)] = _needed(path, split) if one.split is None else _NAMES[one.split]
    if not found:
        raise InvalidFile(path, "lists no image")
    return found


def _needed(path: str | Path, split: str) -> str:
    if not split:
        raise InvalidFile(path, "does not say which split its images are of", "give it as NAME=FILE")
    return split


def read_split_lists(given: Sequence[str]) -> Mapping[str, str]:
    """Of all lists, each as FILE or NAME=FILE: image key → split. An image in two splits is refused.

    NAME: train, validation (or val) or test.
    """
    found: dict[str, str] = {}
    for text in given:
        name, _, file = text.rpartition("=")
        if name and name not in _NAMES:
            raise InvalidValue("split", f"{name!r} is not one of {', '.join(_NAMES)}", "write NAME=FILE")
        for key, split in read_split_list(file, _NAMES[name] if name else "").items():
            if found.setdefault(key, split) != split:
                raise InvalidFile(file, f"image {key} is in two splits, {found[key]} and {split}")
    return found
