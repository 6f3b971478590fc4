"""Data made ready for training: texts with their vectors for the decoder, photos with texts for the alignment.

Folder of texts                                  Folder of pairs
    vectors.npy   (n, d) float16, length 1           features.npy  (photos, d) or (photos, k, d) float16
    tokens.npy    all texts' ids, one after another  vectors.npy   (texts, D) float16, length 1
    stops.npy     (n,) where each text's ids end     owners.npy    (texts,) the photo of each text
    groups.npy    (n,) texts of one photo share one
    prompts.npy, prompt_stops.npy, extras.npy        if there are prompts, second vectors
    vocabulary.json
index.json, in both: how many, the arrays' SHA-256, where they come from. It is written last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.language.embed import TextEncoder
from saywhere.language.vocabulary import Vocabulary
from saywhere.store.digest import folder_fingerprint

_TEXTS, _PAIRS = "texts", "pairs"
_FORMAT = 1
_CHUNK = 2048
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class TextItem:
    """A text to learn. vector: (d,) float32. ids, prompt: pieces. group: whose texts count as its own. extra: (e,)."""

    vector: NDArray[np.float32]
    ids: Array
    prompt: Array
    group: int
    extra: NDArray[np.float32] | None


def prepare_texts(
    sentences: Sequence[str],
    encoder: TextEncoder,
    vocabulary: Vocabulary,
    folder: str | Path,
    progress: Progress | None = None,
    **more: Any,
) -> None:
    """Embed sentences and write the folder. more: `groups`, `prompts` and `extras` of `save_texts`."""
    about = {"encoder": dict(encoder.fingerprint)}
    chunks = _embedded(sentences, encoder, progress)
    _save_texts(Path(folder), sentences, chunks, encoder.size, vocabulary, about, **more)


def save_texts(
    folder: str | Path,
    sentences: Sequence[str],
    vectors: ArrayLike,
    vocabulary: Vocabulary,
    about: Mapping[str, Any],
    *,
    groups: ArrayLike | None = None,
    prompts: Sequence[str] | None = None,
    extras: ArrayLike | None = None,
) -> None:
    """Write the folder from sentences that are embedded already.

    vectors: (n, d). about: where they come from, the text encoder's fingerprint above all. groups: (n,) whole numbers;
    a text is never projected onto its own group; by default each is a group of its own. prompts: a text before each.
    extras: (n, e) second vectors.
    """
    rows = np.asarray(vectors)
    if rows.ndim != 2 or len(rows) != len(sentences):
        raise InvalidValue("vectors", f"have shape {rows.shape} for {len(sentences)} sentences")
    chunks = (rows[i : i + _CHUNK] for i in range(0, len(rows), _CHUNK))
    _save_texts(
        Path(folder),
        sentences,
        chunks,
        rows.shape[1],
        vocabulary,
        about,
        groups=groups,
        prompts=prompts,
        extras=extras,
    )


def _embedded(sentences: Sequence[str], encoder: TextEncoder, progress: Progress | None) -> Iterator[Array]:
    for first in range(0, len(sentences), _CHUNK):
        yield encoder.embed(sentences[first : first + _CHUNK])
        if progress is not None:
            progress("embedding", min(first + _CHUNK, len(sentences)), len(sentences))


def _save_texts(
    folder: Path,
    sentences: Sequence[str],
    chunks: Iterable[Array],
    size: int,
    vocabulary: Vocabulary,
    about: Mapping[str, Any],
    *,
    groups: ArrayLike | None = None,
    prompts: Sequence[str] | None = None,
    extras: ArrayLike | None = None,
) -> None:
    if not sentences:
        raise InvalidValue("sentences", "there are none to prepare")
    count = len(sentences)
    tokens, stops = _ragged(sentences, vocabulary)
    bare = np.flatnonzero(np.diff(stops, prepend=0) == 0)
    if bare.size:
        raise InvalidValue(f"sentence {int(bare[0])}", f"{sentences[int(bare[0])]!r} has no words")
    arrays = {"tokens": tokens, "stops": stops, "groups": _column(groups, count, "groups")}
    if prompts is not None:
        if len(prompts) != count:
            raise InvalidValue("prompts", f"there are {len(prompts)} for {count} sentences")
        arrays["prompts"], arrays["prompt_stops"] = _ragged(prompts, vocabulary)
    if extras is not None:
        arrays["extras"] = np.asarray(extras, dtype=np.float16)
        if arrays["extras"].ndim != 2 or len(arrays["extras"]) != count:
            raise InvalidValue("extras", f"have shape {arrays['extras'].shape} for {count} sentences")
    digests = {"vectors": _write_units(folder / "vectors.npy", count, size, chunks)}
    digests |= {name: _write_array(folder / f"{name}.npy", array) for name, array in arrays.items()}
    vocabulary.save(folder / "vocabulary.json")
    _write_index(folder, _TEXTS, {**digests, "vocabulary": vocabulary.fingerprint}, about)


def save_pairs(
    folder: str | Path, features: ArrayLike, vectors: ArrayLike, owners: ArrayLike, about: Mapping[str, Any]
) -> None:
    """Write a folder of photos with their texts.

    features: (photos, d), or (photos, k, d) if a photo has several (patches, heads). vectors: (texts, D) of the frozen
    text encoder. owners: (texts,) which photo each text tells of; every photo needs one. about: both fingerprints.
    """
    target, seen, said = Path(folder), np.asarray(features), np.asarray(vectors)
    if seen.ndim not in (2, 3) or not seen.size:
        raise InvalidValue("features", f"have shape {seen.shape}, not (photos, d) or (photos, k, d)")
    if said.ndim != 2 or not len(said):
        raise InvalidValue("vectors", f"have shape {said.shape}, not (texts, D)")
    whose = _column(owners, len(said), "owners")
    if whose.min() < 0 or whose.max() >= len(seen) or len(np.unique(whose)) != len(seen):
        raise InvalidValue("owners", f"do not give each of {len(seen)} photos a text, and none to others")
    chunks = (said[i : i + _CHUNK] for i in range(0, len(said), _CHUNK))
    digests = {
        "features": _write_array(target / "features.npy", seen.astype(np.float16)),
        "vectors": _write_units(target / "vectors.npy", len(said), said.shape[1], chunks),
        "owners": _write_array(target / "owners.npy", whose),
    }
    _write_index(target, _PAIRS, digests, about)


class Texts(Sequence[TextItem]):
    """The texts of a folder that `prepare_texts` or `save_texts` wrote, or some of them. Vectors are memory-mapped."""

    def __init__(self, folder: str | Path, chosen: range | None = None) -> None:
        self.folder = Path(folder)
        self.fingerprint, self.about, self._arrays = _open(self.folder, _TEXTS)
        self.vocabulary = Vocabulary.load(self.folder / "vocabulary.json")
        self.size = int(self._arrays["vectors"].shape[1])
        self.extra_size = int(self._arrays["extras"].shape[1]) if "extras" in self._arrays else 0
        self._chosen = range(len(self._arrays["stops"])) if chosen is None else chosen

    def part(self, chosen: range) -> Texts:
        """These of the texts."""
        return Texts(self.folder, self._chosen[chosen.start : chosen.stop : chosen.step])

    @property
    def longest_prompt(self) -> int:
        stops = self._arrays.get("prompt_stops")
        return 0 if stops is None else int(np.diff(stops, prepend=0).max())

    def __len__(self) -> int:
        return len(self._chosen)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = self._chosen[index]
        extras = self._arrays.get("extras")
        return TextItem(
            self._arrays["vectors"][i].astype(np.float32),
            self._row("tokens", "stops", i),
            self._row("prompts", "prompt_stops", i),
            int(self._arrays["groups"][i]),
            None if extras is None else extras[i].astype(np.float32),
        )

    def bank(self, most: int, generator: np.random.Generator) -> tuple[NDArray[np.float32], Array]:
        """At most so many of the texts, drawn at random: their vectors (b, d) and groups (b,)."""
        rows = np.asarray(self._chosen)
        if len(rows) > most:
            rows = np.sort(generator.choice(rows, most, replace=False))
        return self._arrays["vectors"][rows].astype(np.float32), np.asarray(self._arrays["groups"][rows])

    def _row(self, name: str, stops: str, i: int) -> Array:
        if name not in self._arrays:
            return np.empty(0, dtype=np.int64)
        first = int(self._arrays[stops][i - 1]) if i else 0
        return np.asarray(self._arrays[name][first : int(self._arrays[stops][i])], dtype=np.int64)


class Pairs:
    """The photos and texts of a folder that `save_pairs` wrote."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.fingerprint, self.about, arrays = _open(self.folder, _PAIRS)
        self.features, self.vectors, self._owners = arrays["features"], arrays["vectors"], arrays["owners"]
        order = np.argsort(self._owners, kind="stable")
        cuts = np.flatnonzero(np.diff(self._owners[order])) + 1
        self._texts = np.split(order, cuts)

    def __len__(self) -> int:
        return len(self.features)

    def texts_of(self, photo: int) -> NDArray[np.float32]:
        """(n, D) the vectors of a photo's texts."""
        return np.asarray(self.vectors[self._texts[photo]], dtype=np.float32)

    def feature(self, photo: int) -> NDArray[np.float32]:
        """(d,) or (k, d)."""
        return np.asarray(self.features[photo], dtype=np.float32)

    def statistics(self, photos: range) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and standard deviation of every dimension over these photos, each (d,)."""
        total = np.zeros(self.features.shape[-1])
        squares, count = total.copy(), 0
        for first in range(photos.start, photos.stop, _CHUNK):
            rows = self.features[first : min(first + _CHUNK, photos.stop)].astype(np.float64)
            rows = rows.reshape(-1, rows.shape[-1])
            total, squares, count = total + rows.sum(0), squares + (rows**2).sum(0), count + len(rows)
        mean = total / count
        spread = np.sqrt(np.maximum(squares / count - mean**2, 0))
        # A dimension that never changes says nothing; 1 keeps it at 0 instead of NaN.
        return mean.astype(np.float32), np.where(spread > 1e-6, spread, 1).astype(np.float32)


def _ragged(texts: Sequence[str], vocabulary: Vocabulary) -> tuple[Array, Array]:
    rows = [vocabulary.encode(text.split()).ids for text in texts]
    flat = np.fromiter((i for row in rows for i in row), dtype=np.int32)
    return flat, np.cumsum([len(row) for row in rows], dtype=np.int64)


def _column(values: ArrayLike | None, count: int, what: str) -> Array:
    column = np.arange(count) if values is None else np.asarray(values)
    if column.shape != (count,) or column.dtype.kind not in "iu":
        raise InvalidValue(what, f"have shape {column.shape} and type {column.dtype}, not ({count},) whole numbers")
    return column.astype(np.int64)


def _write_units(path: Path, count: int, size: int, chunks: Iterable[Array]) -> str:
    """Write (count, size) float16 rows of length 1 as they come; the SHA-256 of the rows."""
    digest, first = hashlib.sha256(), 0
    header = {"descr": "<f2", "fortran_order": False, "shape": (count, size)}
    with write_atomic(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in chunks:
            rows = np.asarray(chunk, dtype=np.float32)
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
            if wrong.size:
                raise InvalidValue(f"vector {first + int(wrong[0])}", "is zero or holds NaN or infinity")
            content = (rows / lengths).astype("<f2").tobytes()
            digest.update(content)
            file.write(content)
            first += len(rows)
    return digest.hexdigest()


def _write_array(path: Path, array: Array) -> str:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidValue(path.stem, "hold NaN, infinity, or a number beyond the range of float16")
    with write_atomic(path) as file:
        np.save(file, array)
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _write_index(folder: Path, kind: str, digests: Mapping[str, str], about: Mapping[str, Any]) -> None:
    content = {
        "format": _FORMAT,
        "kind": kind,
        "arrays": [name for name in digests if name != "vocabulary"],
        "sha256": dict(digests),
        "about": dict(about),
    }
    with write_atomic(folder / "index.json") as file:
        file.write(json.dumps(content, indent=1).encode())


def _open(folder: Path, kind: str) -> tuple[str, dict[str, Any], dict[str, Array]]:
    try:
        index = json.loads((folder / "index.json").read_bytes())
        if (index["kind"], index["format"]) != (kind, _FORMAT):
            raise InvalidFile(folder, f"holds {index['kind']} of format {index['format']}, not {kind} of {_FORMAT}")
        arrays = {
            str(name): np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in index["arrays"]
        }
        # The index holds the vocabulary's digest, and those of the arrays as they were written.
        files = ("index.json", *(f"{name}.npy" for name in arrays))
        return folder_fingerprint(folder, files), dict(index["about"]), arrays
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InvalidFile):
            raise
        raise InvalidFile(folder, f"is not a folder of prepared {kind}: {error}") from error
