"""Rows of numbers that belong to images, in a folder: how prepared questions and captions are both kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.store import RegionStore, SavedRegions, StoredImage, open_arrays, save_arrays
from saywhere.store.digest import folder_fingerprint

_ARRAYS = ("words", "importance", "target_ids", "target_scores")


class Told(Protocol):
    """What every item has: an id of its own, the name of its image, a split, a text."""

    @property
    def id(self) -> str: ...

    @property
    def image(self) -> str: ...

    @property
    def split(self) -> str: ...

    @property
    def text(self) -> str: ...


class Skipped(msgspec.Struct, array_like=True, frozen=True):
    """An item that was left out, and why."""

    id: str
    reason: str


class Row(msgspec.Struct, array_like=True, frozen=True):
    """An item: its image's number, its slices of words and targets, and where its importances start, by place.

    For a question the only place is 0.
    """

    id: str
    image: int
    split: str
    text: str
    kinds: tuple[str, str]
    answers: tuple[str, ...]
    words: tuple[int, int]
    targets: tuple[int, int]
    importance: dict[int, int]


class Saved(msgspec.Struct, frozen=True):
    """About a whole folder. kind: "questions" or "captions". max_words: kept of a text.

    skipped: items left out. counts: of items, by name. about: whatever the one who saved it wants to keep.
    """

    kind: str
    max_words: int
    skipped: list[Skipped]
    counts: dict[str, int]
    about: dict[str, Any]


class _Index(msgspec.Struct, frozen=True):
    """index.json. digests: SHA-256 of every array, to tell data apart."""

    saved: Saved
    images: list[StoredImage]
    rows: list[Row]
    digests: dict[str, str]


def started(folder: str | Path) -> Path:
    """The folder, without the index of what it held before: until the new one is there, it is not finished."""
    (Path(folder) / "index.json").unlink(missing_ok=True)
    return Path(folder)


class RowWriter:
    """Items' numbers, gathered one after another."""

    def __init__(self, regions: SavedRegions) -> None:
        self._regions = regions
        self._numbers = {image.name: i for i, image in enumerate(regions.images)}
        self._rows: list[Row] = []
        self._words: list[int] = []
        self._importance: list[NDArray[np.float32]] = []
        self._target_ids: list[int] = []
        self._target_scores: list[float] = []
        self._filled = 0

    def add(
        self,
        one: Told,
        words: Sequence[int],
        visual: Mapping[int, NDArray[Any]],
        kinds: tuple[str, str] = ("", ""),
        answers: tuple[str, ...] = (),
        targets: NDArray[np.float32] | None = None,
    ) -> None:
        """visual: importances by place."""
        first, first_target = len(self._words), len(self._target_ids)
        self._words += words
        if targets is not None:
            known = np.flatnonzero(targets)
            self._target_ids += known.tolist()
            self._target_scores += targets[known].tolist()
        starts = {}
        for place, importance in visual.items():
            starts[place] = self._filled
            self._importance.append(np.asarray(importance, dtype=np.float32))
            self._filled += len(importance)
        slices = ((first, len(self._words)), (first_target, len(self._target_ids)))
        image = self._numbers[one.image]
        self._rows.append(Row(one.id, image, one.split, one.text, kinds, tuple(answers), *slices, starts))

    def save(self, folder: Path, vocabulary: Vocabulary, saved: Saved) -> None:
        """Write everything but the regions, which are there already; the index last."""
        digests = self._regions.digests | save_arrays(
            folder,
            {
                "words": np.asarray(self._words, dtype=np.int32),
                "importance": np.concatenate([np.zeros(0, dtype=np.float32), *self._importance]),
                "target_ids": np.asarray(self._target_ids, dtype=np.int32),
                "target_scores": np.asarray(self._target_scores, dtype=np.float32),
            },
        )
        vocabulary.save(folder / "vocabulary.json")
        index = _Index(saved, self._regions.images, self._rows, digests)
        with write_atomic(folder / "index.json") as file:
            file.write(msgspec.json.encode(index))


class RowFolder:
    """What questions and captions share: arrays, rows, splits.

    counts: given, kept, hinted (with human importance), cut (longer than max_words) …; given − kept = len(skipped).
    """

    kind: ClassVar[str] = ""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self._index = msgspec.json.decode((self.folder / "index.json").read_bytes(), type=_Index)
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise InvalidFile(folder, f"is not a folder of prepared {self.kind}: {error}") from error
        saved = self._index.saved
        if saved.kind != self.kind:
            raise InvalidFile(folder, f"holds prepared {saved.kind}, not {self.kind}")
        self.store = RegionStore(self.folder, self._index.images)
        self._arrays = open_arrays(self.folder, _ARRAYS)
        self.vocabulary = Vocabulary.load(self.folder / "vocabulary.json")
        files = ("index.json", "vocabulary.json", *(f"{name}.npy" for name in self._index.digests))
        self.fingerprint = folder_fingerprint(self.folder, files)
        self.region_size, self.max_words = self.store.region_size, saved.max_words
        self.skipped, self.counts, self.about = tuple(saved.skipped), saved.counts, saved.about

    def __len__(self) -> int:
        return len(self._index.rows)

    @property
    def splits(self) -> dict[str, int]:
        """How many items each split has."""
        return dict(Counter(row.split for row in self._index.rows))

    def _chosen(self, split: str, most: int | None) -> list[int]:
        if split not in self.splits:
            raise UnknownName("split", split, self.splits)
        return [i for i, row in enumerate(self._index.rows) if row.split == split][:most]

    def image(self, index: int) -> RegionFeatures:
        """The regions of an item's image."""
        return self.store.features(self._index.rows[index].image)

    def _image_name(self, row: Row) -> str:
        return self._index.images[row.image].name

    def _words(self, row: Row) -> NDArray[np.int64]:
        return np.array(self._arrays["words"][slice(*row.words)], dtype=np.int64)

    def _visual(self, row: Row) -> dict[int, NDArray[np.float32]]:
        count, all_of_them = len(self._index.images[row.image]), self._arrays["importance"]
        return {place: np.array(all_of_them[first : first + count]) for place, first in row.importance.items()}
