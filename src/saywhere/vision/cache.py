"""Views kept on disk, so that no encoder looks at the same photo twice.

    encoder = CachedEncoder(open_encoder(), "views")
    encoder.look("kitchen.jpg")            # the second time from the disk, and exactly the same

A view is found by the photo's pixels and the encoder's fingerprint. An entry that is torn, altered or of another
version is looked at anew and replaced, with a line in the log. When all entries together pass the limit, those unused
for longest go.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image

from saywhere.atomic import write_atomic
from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.view import Encoder, Found, Proposals, View

_VERSION = 3
_GIB = 1 << 30
# Room made when the limit is passed, so that not every new view has to make some.
_KEEP = 0.9
_UNREADABLE = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, msgspec.DecodeError)
_log = logging.getLogger(__name__)


class _Facts(msgspec.Struct, forbid_unknown_fields=True):
    """What an entry says beside its arrays."""

    version: int
    encoder: dict[str, str | int]
    frame: Frame
    found: tuple[Found, ...]
    present: dict[str, float]
    kinds: tuple[str, ...]


class CachedEncoder(Encoder):
    """An encoder that remembers. limit_bytes: how much the folder may hold.

    looked, replaced: how many photos went to the encoder, and how many unreadable entries were among them.
    """

    def __init__(self, encoder: Encoder, folder: str | PathLike[str], limit_bytes: int = 2 * _GIB) -> None:
        if limit_bytes < 1:
            raise InvalidValue("limit_bytes", f"is {limit_bytes}, not at least 1")
        self.encoder, self.folder, self.limit_bytes = encoder, Path(folder), limit_bytes
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidFile(self.folder, "is a file, not a folder for views")
        self.looked = self.replaced = 0
        self._bytes = sum(size for _, size, _ in self._entries())

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return self.encoder.fingerprint

    @property
    def size(self) -> int:
        return self.encoder.size

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """As the encoder's."""
        return self.encoder.frame(photo_size)

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        """Several photos; only those without an entry go to the encoder, all at once."""
        images = [read_photo(photo) for photo in photos]
        paths = [self.path_of(image) for image in images]
        kept = {place: view for place, path in enumerate(paths) if (view := self._read(path)) is not None}
        absent = [place for place in range(len(images)) if place not in kept]
        seen = self.encoder.look_many([images[place] for place in absent]) if absent else []
        self.looked += len(absent)
        for place, view in zip(absent, seen, strict=True):
            self._write(paths[place], view)
        if absent:
            self._make_room()
        return [kept[place] if place in kept else seen[absent.index(place)] for place in range(len(images))]

    def path_of(self, photo: PhotoLike) -> Path:
        """Where the view of a photo is kept, or would be."""
        image = photo if isinstance(photo, Image.Image) and photo.mode == "RGB" else read_photo(photo)
        key = hashlib.sha256(msgspec.json.encode([self.fingerprint, image.size], order="sorted"))
        key.update(image.tobytes())
        return self.folder / key.hexdigest()[:2] / f"{key.hexdigest()[2:]}.npz"

    def _read(self, path: Path) -> View | None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
        try:
            view = _unpacked(content, self.fingerprint)
        except _UNREADABLE as error:
            self.replaced += 1
            self._bytes -= len(content)
            _log.warning("%s: unreadable, the photo is looked at anew (%s)", path, error)
            return None
        # The time of the last use decides which entry goes first.
        with suppress(OSError):
            os.utime(path)
        return view

    def _write(self, path: Path, view: View) -> None:
        kinds = () if view.proposals is None else view.proposals.names
        facts = _Facts(_VERSION, self.fingerprint, view.frame, view.found, dict(view.present), kinds)
        arrays = {"patches": view.patches, "whole": view.whole, "contrast": view.contrast}
        if view.attention is not None:
            arrays["attention"] = view.attention
        if view.states is not None:
            arrays["states"] = view.states
        if view.auxiliary is not None:
            arrays["auxiliary"] = view.auxiliary
        if view.proposals is not None:
            arrays |= {"proposal_boxes": view.proposals.boxes_xyxy, "proposal_scores": view.proposals.scores}
        with write_atomic(path) as file:
            np.savez(file, facts=np.frombuffer(msgspec.json.encode(facts), np.uint8), **arrays)  # type: ignore[arg-type]
        self._bytes += path.stat().st_size

    def _make_room(self) -> None:
        if self._bytes <= self.limit_bytes:
            return
        # Other processes may have written and dropped entries too, so it is counted anew.
        entries = sorted(self._entries())
        self._bytes = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if self._bytes <= self.limit_bytes * _KEEP:
                break
            path.unlink(missing_ok=True)
            self._bytes -= size

    def _entries(self) -> list[tuple[int, int, Path]]:
        """Of every entry the time of its last use, its bytes and its path."""
        entries = []
        for path in self.folder.glob("??/*.npz"):
            # Another process may have dropped it since.
            with suppress(FileNotFoundError):
                facts = path.stat()
                entries.append((facts.st_mtime_ns, facts.st_size, path))
        return entries


def _unpacked(content: bytes, fingerprint: dict[str, str | int]) -> View:
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        facts = msgspec.json.decode(stored["facts"].tobytes(), type=_Facts)
        if facts.version != _VERSION or facts.encoder != fingerprint:
            raise InvalidValue("the entry", "is of another version or encoder")
        seen = (facts.frame, stored["patches"], stored["whole"], stored.get("attention"))
        proposals = None
        if "proposal_boxes" in stored:
            proposals = Proposals(stored["proposal_boxes"], stored["proposal_scores"], facts.kinds)
        states, auxiliary = stored.get("states"), stored.get("auxiliary")
        return View(*seen, facts.found, states, stored["contrast"], facts.present, proposals, auxiliary)
