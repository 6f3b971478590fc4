"""COCO's photographs and all that people said of them as one store: a row for each photo, by its 12-digit number.

jpeg               bytes, the file as it is
width, height      int32, pixels
boxes_xyxy         float32 (n, 4), fractions of the photo; classes: int16 (n,), places in COCO_CLASSES
captions           JSON [text]
referring          JSON [{split, class, box_xyxy, expression}]
questions          JSON [{id, question, question_type, answer_type, answer, answers (ten), split}], VQA v2
cocoqa             JSON [{question, answer, kind, split}], made by a program from captions
saliency           uint8 (32, 32), where people look, 255 at most; absent if nobody was asked
saliency_split     JSON "train" or "val", SALICON's
split              JSON "train" or "validation", by the photo's number alone
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from PIL import Image

from saywhere.atomic import write_atomic
from saywhere.build.coco_labels import LeftOut, kept_out, label_digests, photo_key, read_labels
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.store import Store, StoreWriter
from saywhere.vision import read_photo

KIND = "coco"
FIELDS = {
    **{"jpeg": "bytes", "width": "int32", "height": "int32", "boxes_xyxy": "float32", "classes": "int16"},
    **{"captions": "json", "referring": "json", "questions": "json", "cocoqa": "json"},
    **{"saliency": "uint8", "saliency_split": "json", "split": "json"},
}
LEFT_OUT = "left_out.jsonl"
ON_PURPOSE = frozenset({"kept out", "box of a group"})
"""Kinds of what is left out that are no defect of the data."""

_KEEP_OUT = "keep_out.txt"
_MAP_PX = (32, 32)
# What a run that is killed loses at most.
_SHARD_BYTES = 64 << 20
_NAME = re.compile(r"(?:COCO_(train|val)\d{4}_)?(\d{12})\.(jpg|jpeg|png)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CocoSource:
    """folder: COCO's own, or one with the compact files. photos: by default the folder's train2017.

    saliency: folders of SALICON's maps. keep_out: lists of photos to leave out, beside those that always are.
    """

    folder: Path
    photos: Path | None = None
    saliency: tuple[Path, ...] = ()
    keep_out: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltCoco:
    """rows: photos in the store. labels: how many were read of each field. left_out: how many of each kind.

    kept_back: labels of photos that are kept out.
    """

    rows: int
    labels: dict[str, int]
    left_out: dict[str, int]
    kept_back: int


def build_coco(
    source: CocoSource, out: Path, progress: Progress, *, limit: int | None = None, validation: float = 0.02
) -> BuiltCoco:
    """Write the store, or go on with it. What does not come in is named in left_out.jsonl.

    limit: the first so many photos. validation: the share of photos whose split is that.
    """
    always = source.folder / _KEEP_OUT
    kept = kept_out(*source.keep_out, *([always] if always.exists() else []))
    folder = source.photos or source.folder / "train2017"
    photos, left_out = _named_files([folder])
    maps, foreign = _named_files(source.saliency)
    labels = read_labels(source.folder, kept, progress)
    left_out += foreign + labels.left_out
    left_out += [LeftOut("kept out", photo_key(one), "stays for tests") for one in sorted(kept & photos.keys())]
    missing = sorted((labels.photos | maps.keys()) - photos.keys() - kept)
    left_out += [LeftOut("missing photo", photo_key(one), "has labels and no file") for one in missing]
    about = {
        "labels": label_digests(source.folder),
        "saliency": len(maps),
        "kept_out": hashlib.sha256("\n".join(map(photo_key, sorted(kept))).encode()).hexdigest()[:16],
        "validation": validation,
    }
    wanted = [photo for photo in sorted(photos) if photo not in kept][:limit]
    if not wanted:
        raise InvalidFile(folder, "has no photo of COCO's that is not kept out", "are they named by twelve digits?")
    sizes_px = {} if source.photos else labels.sizes_px
    with StoreWriter(out, KIND, FIELDS, about, shard_bytes=_SHARD_BYTES) as writer:
        for number, photo in enumerate(wanted, 1):
            key = photo_key(photo)
            if key not in writer and (pixels := _pixels(photos[photo], sizes_px.get(photo), left_out)):
                row = pixels | _looked_at(maps.get(photo)) | labels.row(photo)
                writer.add(key, **row, split=split_of(photo, validation))
            progress("storing photos", number, len(wanted))
    store = Store(out, KIND)
    left_out += _bad_maps(store, maps)
    with write_atomic(out / LEFT_OUT) as file:
        file.writelines(msgspec.json.encode(one) + b"\n" for one in left_out)
    return BuiltCoco(len(store), dict(labels.taken), dict(Counter(one.kind for one in left_out)), labels.kept_back)


def split_of(photo: int, validation: float) -> str:
    """ "train" or "validation" by a hash of the number, so that it is the same everywhere and for any set of photos."""
    place = int.from_bytes(hashlib.sha256(photo_key(photo).encode()).digest()[:8], "big")
    return "validation" if place < validation * 2**64 else "train"


def _named_files(folders: Iterable[Path]) -> tuple[dict[int, Path], list[LeftOut]]:
    """Photo → its file, by name; and files that are named otherwise."""
    found: dict[int, Path] = {}
    left_out: list[LeftOut] = []
    for folder in folders:
        if not folder.is_dir():
            raise InvalidFile(folder, "is not a folder of photos", "name it with --photos or --saliency")
        for path in sorted(folder.iterdir()):
            name = _NAME.fullmatch(path.name)
            if name is None:
                left_out.append(LeftOut("foreign name", path.name, "is not twelve digits as COCO's photos are"))
            elif found.setdefault(int(name[2]), path) != path:
                left_out.append(LeftOut("foreign name", path.name, f"is the same photo as {found[int(name[2])].name}"))
    return found, left_out


def _pixels(path: Path, size_px: tuple[int, int] | None, left_out: list[LeftOut]) -> dict[str, Any] | None:
    """The file and its size, or None for a bad one. It is decoded whole: only that shows a truncation.

    size_px: what its labels say.
    """
    try:
        jpeg = path.read_bytes()
        width, height = read_photo(jpeg).size
        if not jpeg.startswith(b"\xff\xd8"):
            raise InvalidValue("photo", "is not a JPEG file")
        if size_px not in (None, (width, height)):
            reason = f"has {width} × {height} pixels, its labels say {size_px[0]} × {size_px[1]}: another photo's name?"
            raise InvalidValue("photo", reason)
    except (InvalidValue, OSError) as error:
        # Without the path, which differs between machines.
        reason = error.reason if isinstance(error, InvalidValue) else error.strerror or str(error)
        left_out.append(LeftOut("bad photo", path.name, reason))
        return None
    return {"jpeg": jpeg, "width": width, "height": height}


def _looked_at(path: Path | None) -> dict[str, Any]:
    """SALICON's map of a photo, if there is one; `_bad_maps` names those that show nothing."""
    if path is None:
        return {}
    try:
        small = np.asarray(read_photo(path).convert("F").resize(_MAP_PX, Image.Resampling.BOX))
    except InvalidFile:
        return {}
    if small.max() <= 0:
        return {}
    name = _NAME.fullmatch(path.name)
    saliency = (small * (255 / small.max())).round().astype(np.uint8)
    return {"saliency": saliency, "saliency_split": name[1].lower() if name and name[1] else None}


def _bad_maps(store: Store, maps: Mapping[int, Path]) -> list[LeftOut]:
    """Maps of stored photos that are not in the store, also of photos that an earlier run stored."""
    seen = {row.key for row in store.having("saliency")}
    bad = [path for photo, path in sorted(maps.items()) if (key := photo_key(photo)) in store and key not in seen]
    return [LeftOut("bad saliency map", path.name, "cannot be read, or is black everywhere") for path in bad]
