"""Many photos looked at once and kept, in a store of half-precision views.

    views = extract(sorted(folder.glob("*.jpg")), "views", open_encoder())
    views["kitchen"].patches            # later: open_views("views")

Stopped at any time, the next call goes on from there. Grids may differ from photo to photo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path

from PIL import Image

from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.store import Store, StoreWriter
from saywhere.vision.photo import read_photo
from saywhere.vision.view import Encoder, Found, View

VIEWS = "views"
_FIELDS = {"patches": "float16", "whole": "float16", "attention": "float32"}
_FIELDS |= {"frame": "json", "found": "json", "error": "json"}
# What a run that is killed looks at again.
_SHARD_BYTES = 64 << 20


class StoredViews(Mapping[str, View]):
    """Views on disk, by photo id, read when asked for. Photos that failed are not among them.

    store: a row for each photo. failed: the photos that could not be read, with the reason. encoder: what made them.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.encoder: dict[str, str | int] = store.about["encoder"]

    @cached_property
    def failed(self) -> dict[str, str]:
        return {row.key: row["error"] for row in self.store.having("error")}

    def __len__(self) -> int:
        """How many photos have a view."""
        return len(self.store) - len(self.failed)

    def __iter__(self) -> Iterator[str]:
        """The ids of the photos that have a view."""
        return (name for name in self.store.rows_by_key if name not in self.failed)

    def __contains__(self, photo_id: object) -> bool:
        return photo_id in self.store and photo_id not in self.failed

    def __getitem__(self, photo_id: str) -> View:
        row = self.store.by_key(photo_id)
        if row["error"] is not None:
            raise InvalidValue(f"photo {photo_id!r}", f"has no view: {row['error']}")
        frame, found = row.decoded("frame", Frame), row.decoded("found", tuple[Found, ...])
        return View(frame, row["patches"], row["whole"], row["attention"], found)


def open_views(folder: str | PathLike[str]) -> StoredViews:
    """What `extract` has kept in a folder."""
    return StoredViews(Store(Path(folder), VIEWS))


def extract(
    photos: Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    encoder: Encoder,
    *,
    batch: int = 8,
    progress: Progress | None = None,
) -> StoredViews:
    """Look at all photos and keep what was seen in the folder `out`; what is there already is not looked at again.

    A photo's id is its file name without the ending. One that cannot be read is noted under `failed` and passed over.
    """
    if batch < 1:
        raise InvalidValue("batch", f"is {batch}, not at least 1")
    paths = [Path(photo) for photo in photos]
    if not paths:
        raise InvalidValue("photos", "are none")
    twice = [name for name, count in Counter(path.stem for path in paths).items() if count > 1]
    if twice:
        raise InvalidValue("photos", f"{len(twice)} names occur more than once, first {twice[0]!r}", "ids must differ")
    about = {"encoder": encoder.fingerprint}
    with StoreWriter(Path(out), VIEWS, _FIELDS, about, shard_bytes=_SHARD_BYTES) as writer:
        waiting = [path for path in paths if path.stem not in writer]
        for first in range(0, len(waiting), batch):
            some = waiting[first : first + batch]
            _look_and_keep(some, encoder, writer)
            if progress is not None:
                progress("looking at photos", len(paths) - len(waiting) + first + len(some), len(paths))
    return open_views(out)


def _look_and_keep(paths: Sequence[Path], encoder: Encoder, writer: StoreWriter) -> None:
    images: dict[Path, Image.Image] = {}
    failed: dict[Path, str] = {}
    for path in paths:
        try:
            images[path] = read_photo(path)
        except InvalidFile as error:
            failed[path] = error.reason
    views = dict(zip(images, encoder.look_many(list(images.values())), strict=True))
    for path in paths:
        if path in failed:
            writer.add(path.stem, error=failed[path])
            continue
        view = views[path]
        arrays = {"patches": view.patches, "whole": view.whole, "attention": view.attention}
        writer.add(path.stem, **arrays, frame=view.frame, found=view.found)
