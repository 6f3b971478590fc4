"""From a COCO store and a model to what finding learns from: every photo with referring expressions is looked at once.

FOLDER/looks       a store, a row a photo: what it offers (see `Candidates`), all that is said of it, as vectors too
FOLDER/referring   the trained part, with report.json and report.md

Goes on where it stopped. Photos whose bytes are no picture are named and left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from PIL import Image

from saywhere.build.coco import KIND as COCO
from saywhere.build.referring_texts import TRUE, Said, said_of, split_of_photo
from saywhere.core.errors import InvalidFile, SaywhereError
from saywhere.core.types import Floats32, Progress
from saywhere.models.patchioner.candidates import MOST, Candidates, candidates_of
from saywhere.models.patchioner.seer import Seer, SeerLook
from saywhere.models.patchioner.seer_config import read_config
from saywhere.store import Row, Store, StoreWriter
from saywhere.store.digest import folder_fingerprint
from saywhere.vision import read_photo
from saywhere.vision.detector import NAME as DETECTOR

LOOKS, KIND = "looks", "what photos offer to expressions"
FIELDS = {
    **{"boxes_xyxy": "float32", "scores": "float32", "names": "json", "vectors": "float16", "states": "float16"},
    **{"colours": "float16", "said": "json", "said_vectors": "float16", "mirror_vectors": "float16"},
    **{"there": "json", "today": "json", "split": "json", "unseen": "json"},
}
_SHARD_BYTES = 32 << 20
_TOGETHER = 16
"""Photos whose expressions are read at once."""
_SEEING = ("eye", "alignment", "tags", "classes")
"""Parts of a model that what it sees depends on."""


@dataclass(frozen=True, slots=True)
class Looked:
    """photos: in the store. unreadable: keys of those that were left out."""

    photos: int
    unreadable: tuple[str, ...]


def look_at_photos(
    coco: Store, seer: Seer, model: Path, out: Path, progress: Progress, limit: int | None = None
) -> Looked:
    """Write FOLDER/looks, or go on with it. model: the seer's folder. limit: photos at most, first those
    that the store keeps for validation, then those with most expressions; a later run with a larger one goes on."""
    if coco.kind != COCO:
        raise InvalidFile(coco.folder, f"holds {coco.kind}, not {COCO}", "make one with `saywhere build coco`")
    order = {
        row.key: (row["split"] != "validation", -len(row["referring"]), hashlib.sha256(row.key.encode()).hexdigest())
        for row in coco.having("referring")
        if row["referring"]
    }
    if not order:
        raise InvalidFile(coco.folder, "has no referring expressions", "see docs/data.md for where they come from")
    keys = sorted(order, key=order.__getitem__)[:limit]
    unreadable: list[str] = []
    about = {"sees": sees(model), "photos": coco.about, "most": MOST}
    with StoreWriter(out / LOOKS, KIND, FIELDS, about, shard_bytes=_SHARD_BYTES) as writer:
        waiting = (coco.by_key(key) for key in keys if key not in writer)
        while rows := list(islice(waiting, _TOGETHER)):
            read = [(row, photo) for row in rows if (photo := _read(row)) is not None]
            unreadable += sorted({row.key for row in rows} - {row.key for row, _ in read})
            told = {row.key: _told(row) for row, _ in read}
            vectors = _vectors(seer, told.values())
            for row, photo in read:
                if told[row.key].said:
                    writer.add(row.key, **_row(seer.look(photo, row.key), told[row.key], vectors))
                progress("looking at photos", len(writer) + len(unreadable), len(keys))
    return Looked(len(Store(out / LOOKS, KIND)), tuple(unreadable))


def sees(model: Path) -> str:
    """16 letters that tell models apart which see differently."""
    config = read_config(model)
    parts = [part for part in _SEEING if (model / part / "config.json").exists()]
    files = [f"{part}/{name}" for part in parts for name in ("config.json", "model.safetensors")]
    detector = DETECTOR if config.detector else ""
    how = (config.encoder, config.input_px, detector, config.class_names, sorted(config.blend.items()))
    kept = [folder_fingerprint(model, files), *map(repr, how)]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16]


def _read(row: Row) -> Image.Image | None:
    try:
        return read_photo(bytes(row["jpeg"]))
    except SaywhereError:
        return None


class _Told(NamedTuple):
    """What is said of a photo. there: kinds of things in it."""

    said: list[Said]
    there: frozenset[str]
    split: str
    unseen: bool


def _told(row: Row) -> _Told:
    split = split_of_photo(row.key, row["split"])
    return _Told(*said_of(row, row.key, split), split, row["split"] == "validation")


def _vectors(seer: Seer, told: Iterable[_Told]) -> dict[str, Floats32]:
    """Text → its vector. Several photos' texts are read at once, because texts of like length go together."""
    texts = {
        text
        for one in told
        for said in one.said
        for text in ((said.text, said.mirror) if one.split == "train" else (said.text,))
    }
    ordered = sorted(texts)
    return dict(zip(ordered, seer.texts(ordered), strict=True)) if ordered else {}


def _row(look: SeerLook, told: _Told, vectors: Mapping[str, Floats32]) -> dict[str, Any]:
    offered = candidates_of(look.aligned, look.image)
    own = np.stack([vectors[one.text] for one in told.said])
    mirrored = np.stack([vectors.get(one.mirror, vectors[one.text]) for one in told.said])
    return {
        **{"boxes_xyxy": offered.boxes_xyxy, "scores": offered.scores, "names": offered.names},
        **{"vectors": offered.vectors, "states": offered.states, "colours": offered.colours},
        **{"said": told.said, "said_vectors": own, "mirror_vectors": mirrored, "there": sorted(told.there)},
        **{"today": list(_today(look, told.said, own)) if told.split == "test" else None, "split": told.split},
        "unseen": told.unseen,
    }


def _today(look: SeerLook, said: Sequence[Said], vectors: Floats32) -> Iterator[list[float] | None]:
    """Where the model finds people's expressions without this part: the box, or None for what seems not to be there."""
    for one, vector in zip(said, vectors, strict=True):
        place = look.find_alike(one.text, vector) if one.kind == TRUE else None
        yield None if place is None else list(place.box_xyxy)


@dataclass(frozen=True, slots=True, eq=False)
class LookedPhoto:
    """A row of the store. said_vectors, mirror_vectors: (k, d). today: see `_today`; nothing but for test photos.
    unseen: whether the model's eye learnt nothing from the photo, if it learnt from the same store."""

    key: str
    split: str
    offered: Candidates
    said: tuple[Said, ...]
    said_vectors: Floats32
    mirror_vectors: Floats32
    there: frozenset[str]
    today: tuple[list[float] | None, ...]
    unseen: bool


def looked_photos(folder: Path) -> Iterator[LookedPhoto]:
    """What `look_at_photos` wrote."""
    for row in Store(folder / LOOKS, KIND):
        states, colours = row["states"], row["colours"]
        offered = Candidates(
            np.array(row["boxes_xyxy"]),
            tuple(row["names"]),
            np.array(row["scores"]),
            np.array(row["vectors"], np.float32),
            None if states is None else np.array(states, np.float32),
            None if colours is None else np.array(colours, np.float32),
        )
        said = tuple(msgspec.convert(row["said"], list[Said]))
        yield LookedPhoto(
            row.key,
            row["split"],
            offered,
            said,
            np.array(row["said_vectors"], np.float32),
            np.array(row["mirror_vectors"], np.float32),
            frozenset(row["there"]),
            tuple(row["today"] or ()),
            row["unseen"],
        )


def name_vectors(folder: Path, seer: Seer) -> tuple[tuple[str, ...], Floats32]:
    """What candidates are called, and the vectors of that."""
    names = sorted({name for row in Store(folder / LOOKS, KIND) for name in row["names"] if name})
    return tuple(names), seer.texts(names) if names else np.zeros((0, seer.eyes.size), np.float32)
