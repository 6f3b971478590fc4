"""From a COCO store to what the eye learns from: every photo through the frozen trunk once, captions as vectors.

Photos of which most is known come first, so that learning can begin before all were looked at. Goes on where it
stopped. Photos whose bytes are no picture are named and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from saywhere.build.answer_questions import photo_split
from saywhere.build.coco import KIND
from saywhere.build.question_statements import statement
from saywhere.build.region_texts import ClassBox, box_names
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import InvalidFile, InvalidValue, SaywhereError, require
from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import coco_aliases
from saywhere.language.embed import TextEncoder
from saywhere.language.vocabulary import plain_words
from saywhere.models.answerer.data import TRAIN
from saywhere.models.eye.features import (
    CAPTIONS,
    PHOTOS,
    WORDS,
    Quantiser,
    RegionNames,
    photo_writer,
    write_caption_words,
    write_captions,
    write_names,
)
from saywhere.store import Row, Store
from saywhere.vision import read_photo
from saywhere.vision.eye import EyeConfig
from saywhere.vision.runtime import Runtime

_BATCH = 8
_TOGETHER = 256
"""Photos whose captions are read at once: texts of like length go together."""
_TELLING = ("captions", "questions", "saliency")
"""Fields that photos which come first have."""
_CALIBRATION = 120
"""Photos that say how hidden states are spread."""
_ALIASES = 4
_SMALL_BOXES = 6
"""Of each class in a photo, named beside its three largest."""
_MOST_WORDS, _LEAST_PHOTOS = 1000, 20
"""Words that are learnt: the most frequent ones, if people say them of so many photos."""
_VAGUE_WORDS = frozenset(("couple", "bunch", "group", "lot", "lots", "near", "different", "various", "set", "ready"))


@dataclass(frozen=True, slots=True)
class BuiltFeatures:
    """rows: photos in the folder. unreadable: keys of photos that were left out."""

    rows: int
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ReadPhoto:
    """pixels: None where the photo's bytes are no picture, or were not asked for. caption_vectors, statement_vectors:
    (k, d), (j, d)."""

    row: Row
    pixels: NDArray[np.uint8] | None
    caption_vectors: Floats32
    statement_vectors: Floats32


def build_eye_features(
    coco: Store,
    out: Path,
    trunk: Runtime | None,
    trunk_about: dict[str, Any],
    text_encoder: TextEncoder,
    config: EyeConfig,
    progress: Progress,
    limit: int | None = None,
) -> BuiltFeatures:
    """trunk: from pixels to hidden states and colours, None for labels alone; trunk_about: what these depend on.
    limit: photos, at most; a later run with a larger one goes on from there."""
    if coco.kind != KIND:
        raise InvalidFile(coco.folder, f"holds {coco.kind}, not {KIND}", "make one with `saywhere build coco`")
    write_names(out, COCO_CLASSES, class_vectors(text_encoder))
    _write_words(coco, out, text_encoder)
    quantiser = None if trunk is None else _quantiser(coco, out, trunk, config)
    unreadable: list[str] = []
    total = min(len(coco), limit or len(coco))
    with photo_writer(out, quantiser, trunk_about) as writer:
        waiting = (row for row in map(coco.__getitem__, _most_known_first(coco)[:total]) if row.key not in writer)
        for photos in _read_ahead(waiting, None if trunk is None else config.input_px, text_encoder):
            if trunk is None or quantiser is None:
                for one in photos:
                    writer.add(one.row.key, **_labels(one, config.grid))
                progress("reading captions", len(writer), total)
                continue
            unreadable += [one.row.key for one in photos if one.pixels is None]
            for some in _batches((one for one in photos if one.pixels is not None), _BATCH):
                (trunk_states,) = trunk(np.stack([one.pixels for one in some]))
                for one, states in zip(some, quantiser.to_bytes(trunk_states), strict=True):
                    writer.add(one.row.key, tapped=states, **_labels(one, config.grid))
                progress("looking at photos", len(writer) + len(unreadable), total)
    progress("finding phrases in captions", 0, 1)
    _write_captions(coco, out)
    return BuiltFeatures(len(Store(out / PHOTOS)), tuple(unreadable))


def class_vectors(text_encoder: TextEncoder) -> Floats32:
    """(80, d) of length 1: what each of COCO's classes is called, its own name three times as loud as the others."""
    vectors = []
    for name in COCO_CLASSES:
        names = coco_aliases()[name][:_ALIASES]
        texts = [*(f"a {one}" for one in names), f"a photo of a {names[0]}"]
        weights = np.array([3.0, *(1.0 for _ in names[1:]), 3.0])
        mean = weights @ text_encoder.embed(texts)
        vectors.append(mean / np.linalg.norm(mean))
    return np.stack(vectors).astype(np.float32)


def _write_words(coco: Store, out: Path, text_encoder: TextEncoder) -> None:
    """Words that people say of many photos, and for each photo which of them are in how many of its captions."""
    stop_words = require("spacy.lang.en.stop_words", needed_for="words said of photos", extra="language").STOP_WORDS
    empty = _VAGUE_WORDS | stop_words
    said = {row.key: [set(plain_words(text)) - empty for text in row["captions"] or ()] for row in coco}
    counts = Counter(word for captions in said.values() for word in set().union(*captions))
    # Of equally frequent ones the first by letter, so that every machine makes the same list.
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    words = [word for word, count in ranked[:_MOST_WORDS] if count >= _LEAST_PHOTOS]
    number = {word: place for place, word in enumerate(words)}
    vectors = np.zeros((0, text_encoder.size), np.float32)
    if words:
        both = text_encoder.embed(words) + text_encoder.embed([f"a photo of {word}" for word in words])
        vectors = both / np.linalg.norm(both, axis=1, keepdims=True)
    write_names(out, words, vectors, WORDS)
    write_caption_words(
        out,
        (
            (key, [number[word] for caption in captions for word in sorted(caption) if word in number])
            for key, captions in said.items()
            if captions
        ),
    )


def _write_captions(coco: Store, out: Path) -> None:
    """Captions of photos, and what their boxes may be called; nothing, if it was written before for as many photos."""
    captions = {row.key: row["captions"] or [] for row in coco if row["captions"] or len(row["classes"])}
    if (out / CAPTIONS / "index.json").exists() and len(Store(out / CAPTIONS)) == len(captions):
        return
    boxes = (
        ClassBox(row.key, COCO_CLASSES[kind], tuple(box))
        for row in coco
        if row.key in captions
        for box, kind in zip(row["boxes_xyxy"].tolist(), row["classes"].tolist(), strict=True)
    )
    region_names: dict[str, list[RegionNames]] = {key: [] for key in captions}
    for one in box_names(boxes, captions, most_small=_SMALL_BOXES):
        region_names[one.image_id].append(RegionNames(one.box_xyxy, one.texts))
    for row in coco:
        if row.key in captions:
            region_names[row.key] += [
                RegionNames(tuple(one["box_xyxy"]), (one["expression"],)) for one in row["referring"] or ()
            ]
    write_captions(out, ((key, captions[key], region_names[key]) for key in captions))


def _quantiser(coco: Store, out: Path, trunk: Runtime, config: EyeConfig) -> Quantiser:
    """As an earlier run had it, or from photos spread evenly over the store."""
    if (out / PHOTOS / "index.json").exists():
        from saywhere.store.index import read_index

        return Quantiser.from_dict(read_index(out / PHOTOS).about["quantiser"])
    rows = (coco[number] for number in np.linspace(0, len(coco) - 1, min(_CALIBRATION, len(coco)), dtype=int).tolist())
    photos = [pixels for row in rows if (pixels := _pixels(row, config.input_px)) is not None]
    if not photos:
        raise InvalidValue("photos", f"none in {coco.folder} can be read")
    trunk_states = [trunk(np.stack(some))[0] for some in _batches(iter(photos), _BATCH)]
    return Quantiser.fit(np.concatenate(trunk_states)[:, 1:])


def _most_known_first(coco: Store) -> list[int]:
    """Numbers of rows: those with captions first, of these the ones that people asked about, and so on."""
    unknown = [tuple((value := row[field]) is None or not len(value) for field in _TELLING) for row in coco]
    return sorted(range(len(coco)), key=unknown.__getitem__)


def _statements(row: Row) -> list[str]:
    """Of a photo without captions; none of photos on whose questions answers are tuned or measured."""
    if row["captions"] or photo_split(row) != TRAIN:
        return []
    said = (statement(one["question"], one["answer"]) for one in row["cocoqa"] or () if one["split"] == "train")
    return list(dict.fromkeys(said))


def _text_vectors(texts: Sequence[Sequence[str]], text_encoder: TextEncoder) -> list[Floats32]:
    """(k, d) for the k texts of each."""
    every = [text for some in texts for text in some]
    vectors = text_encoder.embed(every) if every else np.zeros((0, text_encoder.size), np.float32)
    return np.split(vectors, np.cumsum([len(some) for some in texts])[:-1])


def _labels(photo: _ReadPhoto, grid: int) -> dict[str, Any]:
    row = photo.row
    saliency = row["saliency"] if row["saliency_split"] == "train" else None
    return {
        "caption_vectors": photo.caption_vectors,
        "statement_vectors": photo.statement_vectors,
        "boxes_xyxy": row["boxes_xyxy"],
        "classes": row["classes"],
        "saliency": None if saliency is None else _shrunk(saliency, grid),
        "split": row["split"],
    }


def _shrunk(saliency: NDArray[np.uint8], grid: int) -> Floats32:
    """(n,) the map on the eye's grid, summing to 1."""
    small = Image.fromarray(saliency).resize((grid, grid), Image.Resampling.BOX)
    values: Floats32 = np.asarray(small, np.float32).ravel() + np.float32(1e-6)
    return values / np.float32(values.sum())


def _pixels(row: Row, side: int) -> NDArray[np.uint8] | None:
    try:
        image = read_photo(Image.open(BytesIO(row["jpeg"])))
    except (OSError, SaywhereError):
        return None
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))


def _read_ahead(rows: Iterator[Row], side: int | None, text_encoder: TextEncoder) -> Iterator[list[_ReadPhoto]]:
    """Rows in batches with their pixels and captions, the next batch read while the one before is looked at. side: None
    for no pixels."""
    half = torch.is_autocast_enabled("cpu")

    def read(batch: Sequence[Row]) -> list[_ReadPhoto]:
        # Autocast is a thread's own.
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            captions = _text_vectors([row["captions"] or [] for row in batch], text_encoder)
            statements = _text_vectors([_statements(row) for row in batch], text_encoder)
        pixels = [None if side is None else _pixels(row, side) for row in batch]
        return [_ReadPhoto(*one) for one in zip(batch, pixels, captions, statements, strict=True)]

    with ThreadPoolExecutor(1) as reader:
        waiting: Future[list[_ReadPhoto]] | None = None
        for batch in _batches(rows, _TOGETHER):
            following = reader.submit(read, batch)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()


def _batches(values: Iterator[Any], size: int) -> Iterator[Sequence[Any]]:
    while batch := list(islice(values, size)):
        yield batch
