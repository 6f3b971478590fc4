"""What data sets call the photos of a Studio, and which photo a file of annotations means."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.studio.photos import NAMELESS, PhotoInfo, PhotoStore, import_file, photo_files

# COCO's files: 000000000139.jpg, and COCO_val2014_000000000139.jpg before 2017.
_COCO = re.compile(r"(?:COCO_[a-z]+20\d\d_)?(\d{12})")


def image_name(name: str, photo_id: str) -> str:
    """The image's id in its data set, by the name of the photo's file; the photo's own id if it has no name.

    >>> image_name("000000000139.jpg", "f00"), image_name("my kitchen.jpg", "f00"), image_name("", "f00")
    ('139', 'my kitchen', 'f00')
    """
    if name in ("", NAMELESS):
        return photo_id
    stem = PurePosixPath(name).stem
    number = _COCO.fullmatch(stem)
    return str(int(number[1])) if number else stem


class PhotoNames:
    """Finds the photo that a file of annotations means: by its id here, its file's name, or its id in its data set.

    folder: photos that are not in the store yet are taken from here when they are asked for.
    """

    def __init__(self, store: PhotoStore, folder: Path | None = None) -> None:
        self._store = store
        self._here: defaultdict[str, set[str]] = defaultdict(set)
        self._elsewhere: dict[str, Path] = {}
        self.taken = 0
        for info in store.list():
            self._learn(info)
        for path in photo_files(folder) if folder is not None else ():
            for name in _names(path.name):
                self._elsewhere.setdefault(name, path)

    def find(self, *called: str) -> PhotoInfo:
        """The photo that is called one of these; InvalidValue if there is none, or more than one."""
        names = list(dict.fromkeys(name for one in called if one for name in (one, image_name(one, one), _number(one))))
        for name in names:
            if found := self._here.get(name):
                if len(found) > 1:
                    raise InvalidValue("the image", f"could be any of {len(found)} photos called {name}")
                return self._store.get(next(iter(found)))
        for name in names:
            if name in self._elsewhere:
                return self._take(self._elsewhere[name])
        shown = next((one for one in called if one), "")
        raise InvalidValue("the image", f"is {shown[:100]!r}, and no photo here is called that", "add the photo first")

    def _take(self, path: Path) -> PhotoInfo:
        info = import_file(self._store, path)
        if isinstance(info, InvalidFile):
            raise InvalidValue(f"the photo {path.name}", info.reason, info.hint)
        self.taken += 1
        self._learn(info)
        return info

    def _learn(self, info: PhotoInfo) -> None:
        for name in (info.id, *_names(info.name)):
            self._here[name].add(info.id)


def _names(file_name: str) -> Iterable[str]:
    """What a file may be called by: its name, its stem, that as a number, and its id in its data set."""
    if file_name in ("", NAMELESS):
        return ()
    stem = PurePosixPath(file_name).stem
    return {file_name, stem, _number(stem), image_name(file_name, "")}


def _number(name: str) -> str:
    """A number without leading zeros; anything else as it is."""
    return name.lstrip("0") or "0" if name.isascii() and name.isdecimal() else name
