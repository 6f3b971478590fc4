"""Data made ready for training, in stores: texts with vectors for the decoder, photos with texts for the alignment.

A folder of texts has a row for each text, and vocabulary.json; a folder of pairs a row for each photo with the vectors
of all its texts. Vectors are of length 1, in half precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.language.embed import TextEncoder
from saywhere.language.vocabulary import Vocabulary
from saywhere.store import Store, StoreWriter
from saywhere.store.digest import folder_fingerprint

_TEXTS, _PAIRS, _VOCABULARY = "texts", "pairs", "vocabulary.json"
_TEXT_FIELDS = {"vector": "float16", "ids": "int32", "prompt": "int32", "group": "int64", "extra": "float16"}
_PAIR_FIELDS = {"feature": "float16", "texts": "float16"}
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
    vectors = _embedded(sentences, encoder, progress)
    _save_texts(Path(folder), sentences, vectors, vocabulary, {"encoder": dict(encoder.fingerprint)}, **more)


def save_texts(
    folder: str | Path,
    sentences: Sequence[str],
    vectors: ArrayLike,
    vocabulary: Vocabulary,
    about: Mapping[str, Any],
    **more: Any,
) -> None:
    """Write the folder from sentences that are embedded already.

    vectors: (n, d). about: where they come from, the text encoder's fingerprint above all. more, where there are any:
    groups: (n,) whole numbers; a text is never projected onto its own group; by default each is a group of its own.
    prompts: a text before each. extras: (n, e) second vectors.
    """
    rows = np.asarray(vectors)
    if rows.ndim != 2 or len(rows) != len(sentences):
        raise InvalidValue("vectors", f"have shape {rows.shape} for {len(sentences)} sentences")
    _save_texts(Path(folder), sentences, rows, vocabulary, about, **more)


def _embedded(sentences: Sequence[str], encoder: TextEncoder, progress: Progress | None) -> Iterator[Array]:
    for first in range(0, len(sentences), _CHUNK):
        yield from encoder.embed(sentences[first : first + _CHUNK])
        if progress is not None:
            progress("embedding", min(first + _CHUNK, len(sentences)), len(sentences))


def _save_texts(
    folder: Path,
    sentences: Sequence[str],
    vectors: Iterable[Array],
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
    columns: dict[str, Sequence[Any] | Array] = {
        "ids": [vocabulary.encode(sentence.split()).ids for sentence in sentences],
        "group": _column(groups, count, "groups"),
    }
    bare = next((i for i, ids in enumerate(columns["ids"]) if not len(ids)), None)
    if bare is not None:
        raise InvalidValue(f"sentence {bare}", f"{sentences[bare]!r} has no words")
    if prompts is not None:
        columns["prompt"] = [vocabulary.encode(prompt.split()).ids for prompt in prompts]
    if extras is not None:
        columns["extra"] = np.asarray(extras)
    for name, column in columns.items():
        if len(column) != count:
            raise InvalidValue(f"{name}s", f"there are {len(column)} for {count} sentences")
    vocabulary.save(folder / _VOCABULARY)
    with StoreWriter(folder, _TEXTS, _TEXT_FIELDS, about, resume=False) as writer:
        for i, vector in enumerate(vectors):
            row = {name: column[i] for name, column in columns.items()}
            writer.add(str(i), vector=_unit(vector, i), **row)


def save_pairs(
    folder: str | Path, features: ArrayLike, vectors: ArrayLike, owners: ArrayLike, about: Mapping[str, Any]
) -> None:
    """Write a folder of photos with their texts.

    features: (photos, d), or (photos, k, d) if a photo has several (patches, heads). vectors: (texts, D) of the frozen
    text encoder. owners: (texts,) which photo each text tells of; every photo needs one. about: both fingerprints.
    """
    seen, said = np.asarray(features), np.asarray(vectors)
    if seen.ndim not in (2, 3) or not seen.size:
        raise InvalidValue("features", f"have shape {seen.shape}, not (photos, d) or (photos, k, d)")
    if said.ndim != 2 or not len(said):
        raise InvalidValue("vectors", f"have shape {said.shape}, not (texts, D)")
    whose = _column(owners, len(said), "owners")
    if whose.min() < 0 or whose.max() >= len(seen) or len(np.unique(whose)) != len(seen):
        raise InvalidValue("owners", f"do not give each of {len(seen)} photos a text, and none to others")
    order = np.argsort(whose, kind="stable")
    texts = np.split(order, np.flatnonzero(np.diff(whose[order])) + 1)
    with StoreWriter(folder, _PAIRS, _PAIR_FIELDS, about, resume=False) as writer:
        for photo, (feature, its) in enumerate(zip(seen, texts, strict=True)):
            if not np.isfinite(feature).all():
                raise InvalidValue(f"features of photo {photo}", "hold NaN or infinity")
            writer.add(str(photo), feature=feature, texts=np.stack([_unit(said[i], int(i)) for i in its]))


class Texts(Sequence[TextItem]):
    """The texts of a folder that `prepare_texts` or `save_texts` wrote, or some of them."""

    def __init__(self, folder: str | Path, chosen: range | None = None) -> None:
        self.folder, self._store = Path(folder), _opened(folder, _TEXTS)
        self.about = self._store.about
        self.vocabulary = Vocabulary.load(self.folder / _VOCABULARY)
        first = self._store[0]
        self.size, self.extra_size = len(first["vector"]), 0 if first["extra"] is None else len(first["extra"])
        self._chosen = range(len(self._store)) if chosen is None else chosen

    @cached_property
    def fingerprint(self) -> str:
        return folder_fingerprint(self.folder, [*self._store.files, _VOCABULARY])

    def part(self, chosen: range) -> Texts:
        """These of the texts."""
        return Texts(self.folder, self._chosen[chosen.start : chosen.stop : chosen.step])

    @property
    def longest_prompt(self) -> int:
        return max((len(row["prompt"]) for row in self._store.having("prompt")), default=0)

    def __len__(self) -> int:
        return len(self._chosen)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        row = self._store[self._chosen[index]]
        prompt, extra = row["prompt"], row["extra"]
        return TextItem(
            row["vector"].astype(np.float32),
            row["ids"].astype(np.int64),
            np.empty(0, dtype=np.int64) if prompt is None else prompt.astype(np.int64),
            int(row["group"]),
            None if extra is None else extra.astype(np.float32),
        )

    def bank(self, most: int, generator: np.random.Generator) -> tuple[NDArray[np.float32], Array]:
        """At most so many of the texts, drawn at random: their vectors (b, d) and groups (b,)."""
        numbers = np.asarray(self._chosen)
        if len(numbers) > most:
            numbers = np.sort(generator.choice(numbers, most, replace=False))
        rows = [self._store[number] for number in numbers.tolist()]
        return np.stack([row["vector"] for row in rows]).astype(np.float32), np.array(
            [int(row["group"]) for row in rows]
        )


class Pairs:
    """The photos and texts of a folder that `save_pairs` wrote. feature_size, text_size: of their vectors."""

    def __init__(self, folder: str | Path) -> None:
        self._store = _opened(folder, _PAIRS)
        self.about = self._store.about
        self.feature_size: int = self._store[0]["feature"].shape[-1]
        self.text_size: int = self._store[0]["texts"].shape[1]

    @property
    def fingerprint(self) -> str:
        return self._store.fingerprint

    def __len__(self) -> int:
        return len(self._store)

    def texts_of(self, photo: int) -> NDArray[np.float32]:
        """(n, D) the vectors of a photo's texts."""
        return np.asarray(self._store[photo]["texts"], dtype=np.float32)

    def feature(self, photo: int) -> NDArray[np.float32]:
        """(d,) or (k, d)."""
        return np.asarray(self._store[photo]["feature"], dtype=np.float32)

    def statistics(self, photos: range) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and standard deviation of every dimension over these photos, each (d,)."""
        total = np.zeros(self.feature_size)
        squares, count = total.copy(), 0
        for photo in photos:
            rows = self.feature(photo).astype(np.float64).reshape(-1, self.feature_size)
            total, squares, count = total + rows.sum(0), squares + (rows**2).sum(0), count + len(rows)
        mean = total / count
        spread = np.sqrt(np.maximum(squares / count - mean**2, 0))
        # A dimension that never changes says nothing; 1 keeps it at 0 instead of NaN.
        return mean.astype(np.float32), np.where(spread > 1e-6, spread, 1).astype(np.float32)


def _opened(folder: str | Path, kind: str) -> Store:
    try:
        return Store(folder, kind)
    except InvalidFile as error:
        raise InvalidFile(folder, f"is not a folder of prepared {kind}: {error}") from error


def _column(values: ArrayLike | None, count: int, what: str) -> Array:
    column = np.arange(count) if values is None else np.asarray(values)
    if column.shape != (count,) or column.dtype.kind not in "iu":
        raise InvalidValue(what, f"have shape {column.shape} and type {column.dtype}, not ({count},) whole numbers")
    return column


def _unit(vector: Array, number: int) -> Array:
    row = np.asarray(vector, dtype=np.float32)
    length = float(np.linalg.norm(row))
    if not (np.isfinite(length) and length > 0):
        raise InvalidValue(f"vector {number}", "is zero or holds NaN or infinity")
    return row / length
