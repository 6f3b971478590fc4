"""The memory: sentences and their vectors. What an image says is put together again out of what sentences say.

A vector v becomes v' = Σ αᵢ mᵢ, scaled to length 1, with α = softmax(cos(v, m) / τ). The bank is read in chunks with a
running sum, so that a bank of any size takes little memory, and the sum is exact: see `_Sum`.

This is one way to close the gap between images and texts: a vector from an image becomes one that a decoder of texts
understands. Every way treats each row on its own, so that a region gets the same alone and among others. Noise acts
while the decoder learns and leaves nothing to do here; see `objective.noisy`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from saywhere.core.caption import Nearest
from saywhere.core.errors import InvalidValue
from saywhere.models.patchioner.bank_file import Halves, Rows16, Sentences, open_bank, write_bank

if TYPE_CHECKING:
    from saywhere.models.patchioner.bank_index import BankIndex

Vectors = NDArray[np.float32]

# Few enough rows that their float32 copy stays in the cache between the two products.
_CHUNK = 1024
# Rows of one product in float16.
_SIEVED = 16_384
# Rows that an index is asked for: at τ = 0.01 those beyond weigh next to nothing.
_NEARBY = 2_048
_COLDEST = 1e-6
# Rows may be left out if all of them together weigh less than this share of the heaviest one alone.
_NEGLIGIBLE = 1e-6
# How far a product of float16 numbers may be off: v rounded (2⁻¹¹ of its length) and the result rounded (2⁻¹²).
_HALF_ERROR = 2.0**-10


@dataclass(frozen=True, slots=True, eq=False)
class Projected:
    """vectors: (m, d) float32 rows of length 1. nearest: for each, the bank's sentences nearest first."""

    vectors: Vectors
    nearest: list[list[Nearest]]


class MemoryBank:
    """Sentences and their vectors.

    vectors: (n, d); rows are brought to length 1 and kept as float16. sentences: n of them. queries: a bank of the same
    sentences with vectors as of texts that are to find photos, if these are read in a way of their own.
    encoder: the fingerprint of the text encoder that made the vectors. source: where the sentences came from.
    """

    def __init__(
        self,
        vectors: ArrayLike,
        sentences: Sequence[str],
        encoder: Mapping[str, Any] | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        array = np.asarray(vectors)
        if array.ndim != 2 or not array.size:
            raise InvalidValue("memory bank", f"has vectors of shape {array.shape}, not (n, d)", "it must not be empty")
        if len(sentences) != len(array):
            raise InvalidValue("memory bank", f"has {len(array):,} vectors, but {len(sentences):,} sentences")
        for place, sentence in enumerate(sentences):
            if not isinstance(sentence, str) or not sentence.strip():
                raise InvalidValue("memory bank", f"sentence {place} is {sentence!r}, not a text")
        halves = np.empty(array.shape, dtype=np.float16)
        for start in range(0, len(array), _SIEVED):
            halves[start : start + _SIEVED] = unit_rows(array[start : start + _SIEVED], "memory bank", first=start)
        self._set(halves, None, Sentences.packed(sentences), dict(encoder or {}), dict(source or {}))

    def _set(
        self,
        halves: Halves,
        mapping: Rows16 | None,
        sentences: Sentences,
        encoder: dict[str, Any],
        source: dict[str, Any],
    ) -> None:
        self._halves, self._mapping = torch.from_numpy(halves), mapping
        self._index: BankIndex | None = None
        self.queries: MemoryBank | None = None
        self.sentences: Sequence[str] = sentences
        self._packed, self.encoder, self.source = sentences, encoder, source

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True, approximate: bool = False) -> MemoryBank:
        """Map a bank that `save` wrote. verify: read it once to see that nothing in it has changed. approximate: search
        with the index that `build_index` made beside it, and read only the rows that it finds."""
        file = open_bank(path, verify=verify)
        bank = cls.__new__(cls)
        bank._set(file.vectors.rows, file.vectors, file.sentences, file.encoder, file.source)
        if file.queries is not None:
            bank.queries = cls.__new__(cls)
            bank.queries._set(file.queries.rows, None, file.sentences, file.encoder, file.source)
        if approximate:
            from saywhere.models.patchioner.bank_index import BankIndex, index_folder

            bank._index = BankIndex(index_folder(path), file.sha256)
        return bank

    def save(self, path: str | Path, *, int8: bool = False) -> None:
        """Write vectors, sentences and where they came from into one safetensors file, whole or not at all. int8:
        vectors in a byte a number, for a bank that is small enough to lie in memory."""
        queries = None if self.queries is None else self.queries.vectors
        write_bank(path, self._halves.numpy(), self._packed, self.encoder, self.source, queries=queries, int8=int8)

    def with_queries(self, vectors: ArrayLike) -> MemoryBank:
        """The same with other `queries`, of (n, d) vectors."""
        other = MemoryBank.__new__(MemoryBank)
        other._set(self._halves.numpy(), self._mapping, self._packed, self.encoder, self.source)
        other._index, other.queries = self._index, MemoryBank(vectors, self.sentences, self.encoder, self.source)
        if (len(other.queries), other.queries.size) != (len(self), self.size):
            raise InvalidValue("queries", f"are {other.queries.size} numbers each, not {self.size}")
        return other

    def __len__(self) -> int:
        return len(self._halves)

    @property
    def size(self) -> int:
        """d, the numbers per vector."""
        return self._halves.shape[1]

    @property
    def vectors(self) -> Halves:
        """(n, d) float16, read-only."""
        view = self._halves.numpy().view()
        view.flags.writeable = False
        return view

    def project(
        self, vectors: ArrayLike, temperature: float = 0.01, top: int | None = None, nearest: int = 5
    ) -> Projected:
        """Put vectors together again out of the bank's.

        vectors: (m, d), of any length but 0. temperature: τ. top: use only so many of the nearest rows; None: all.
        nearest: how many sentences to tell for each vector.

        Exact to 1e-5 in every number at τ = 0.01; cosines are good to 1e-7, which τ divides. A vector's result does
        not depend on the others given with it, but for what another order of adding changes in the last digits.
        """
        if not (math.isfinite(temperature) and temperature >= _COLDEST):
            raise InvalidValue("temperature", f"is {temperature}, not a number from {_COLDEST:g} up")
        if top is not None and top < 1:
            raise InvalidValue("top", f"is {top}, not at least 1")
        if nearest < 0:
            raise InvalidValue("nearest", f"is {nearest}, not at least 0")
        asked = torch.from_numpy(checked_rows(vectors, self.size, "vectors"))
        if not len(asked):
            return Projected(asked.numpy(), [])
        keep = min(len(self), max(top or 1, nearest))
        with torch.inference_mode():
            if self._index is not None:
                return self._projected_nearby(self._index, asked, temperature, keep, top, nearest)
            summed = _Sum(asked, temperature, keep, top, len(self))
            for first, rows in self._parts(summed):
                summed.add(first, rows)
            return self._projected(summed, nearest)

    def _projected_nearby(
        self, index: BankIndex, asked: Tensor, temperature: float, keep: int, top: int | None, nearest: int
    ) -> Projected:
        """Each vector out of the rows that the index finds for it."""
        alone = []
        for vector in asked:
            places = torch.from_numpy(index.nearest(vector.numpy(), max(_NEARBY, 4 * keep)))
            summed = _Sum(vector[None], temperature, min(keep, len(places)), top, len(places))
            summed.add(places, self._halves[places].float())
            self._let_go(0, len(self))
            alone.append(self._projected(summed, nearest))
        return Projected(np.concatenate([one.vectors for one in alone]), [one.nearest[0] for one in alone])

    def _parts(self, summed: _Sum) -> Iterator[tuple[Tensor, Tensor]]:
        """Numbers (k,) and float32 copies (k, d) of the rows that matter, in their order."""
        if len(summed.asked) == 1 and len(self) > _SIEVED and _halves_multiply_well():
            chosen = summed.may_matter(self._rough_cosines(summed.asked[0]))
        else:
            chosen = None
        for start in range(0, len(self) if chosen is None else len(chosen), _CHUNK):
            if chosen is None:
                places = torch.arange(start, min(start + _CHUNK, len(self)))
                yield places, self._halves[start : start + _CHUNK].float()
            else:
                places = chosen[start : start + _CHUNK]
                yield places, self._halves[places].float()
            self._let_go(int(places[0]), int(places[-1]) + 1)

    def _rough_cosines(self, vector: Tensor) -> Tensor:
        """(n,) cosines by a product in float16, which is half the reading and no copying, good to `_HALF_ERROR`."""
        rough = torch.empty(len(self))
        for start in range(0, len(self), _SIEVED):
            block = self._halves[start : start + _SIEVED]
            rough[start : start + len(block)] = torch.mv(block, vector.half())
            self._let_go(start, start + len(block))
        return rough

    def _let_go(self, first: int, stop: int) -> None:
        if self._mapping is not None:
            self._mapping.let_go(first, stop)

    def _projected(self, summed: _Sum, nearest: int) -> Projected:
        cosines, places = summed.best
        shares = torch.exp((cosines.double() - summed.highest[:, None]) / summed.temperature)
        if summed.top is None:
            mixed, total = summed.mixed, summed.total
        else:
            shares[:, summed.top :] = 0.0
            total = shares.sum(dim=1)
            mixed = torch.stack([a @ self._halves[i].double() for a, i in zip(shares, places, strict=True)])
        shares, mixed = shares / total[:, None], mixed / total[:, None]
        lengths = mixed.norm(dim=1, keepdim=True)
        if bool((lengths < _NEGLIGIBLE).any()):
            row = int(lengths.argmin())
            raise InvalidValue("vectors", f"row {row} lies midway between sentences that cancel each other out")
        vectors = (mixed / lengths).float().numpy()
        neighbours = [
            [Nearest(self.sentences[place], cosine, share) for place, cosine, share in zip(*columns, strict=True)]
            for columns in zip(*(part[:, :nearest].tolist() for part in (places, cosines, shares)), strict=True)
        ]
        return Projected(vectors, neighbours)


class _Sum:
    """Σ exp(cos/τ) and Σ exp(cos/τ)·row for each vector, over rows that come in parts, and the best rows so far.

    All weights are relative to the highest cosine so far; when a higher one comes, the sums so far are scaled down.
    asked: (m, d) rows of length 1. keep: how many of the best rows to remember. rows: how many will come in all.
    """

    def __init__(self, asked: Tensor, temperature: float, keep: int, top: int | None, rows: int) -> None:
        m, d = asked.shape
        self.asked, self.temperature, self.top = asked, temperature, top if top is None else min(top, rows)
        self._keep = keep
        self.highest = torch.full((m,), -math.inf)
        self.total = torch.zeros(m, dtype=torch.float64)
        self.mixed = torch.zeros(m, d, dtype=torch.float64)
        self.best = (torch.empty(m, 0), torch.empty(m, 0, dtype=torch.long))

    def add(self, places: Tensor, rows: Tensor) -> None:
        """places: (k,) numbers of the rows. rows: (k, d) float32."""
        if not len(rows):
            return
        cosines = self.asked @ rows.T
        self._remember(places, cosines)
        highest = self.best[0][:, 0]
        if self.top is None:
            weights = torch.exp((cosines - highest[:, None]) / self.temperature)
            faded = torch.exp((self.highest - highest).double() / self.temperature)
            self.total = self.total * faded + weights.sum(dim=1, dtype=torch.float64)
            self.mixed = self.mixed * faded[:, None] + (weights @ rows).double()
        self.highest = highest

    def _remember(self, places: Tensor, cosines: Tensor) -> None:
        found = torch.cat([self.best[0], cosines], dim=1)
        numbers = torch.cat([self.best[1], places.expand(len(cosines), -1)], dim=1)
        # Of equal cosines the earlier row comes first.
        kept = torch.topk(found, min(self._keep, found.shape[1]), dim=1).indices.sort(dim=1).values
        order = torch.sort(found.gather(1, kept), dim=1, descending=True, stable=True).indices
        kept = kept.gather(1, order)
        self.best = (found.gather(1, kept), numbers.gather(1, kept))

    def may_matter(self, rough: Tensor) -> Tensor:
        """The rows that may weigh something or be among the best, for a lone vector. rough: (n,) its rough cosines.

        Rows are left out from the far end on, as long as all of them together weigh next to nothing even if every
        cosine is off by as much as it can be.
        """
        least = torch.topk(rough, self._keep).values[-1] - 2 * _HALF_ERROR
        if self.top is None:
            best, farthest = rough.max() - 2 * _HALF_ERROR, math.ceil(math.log(len(rough) / _NEGLIGIBLE))
            # How many rows are how far below the best, in whole steps of e, and what they weigh at most from there on.
            steps = ((best - rough) / self.temperature).clamp(0, farthest).long()
            weights = torch.bincount(steps, minlength=farthest + 1) * torch.exp(-torch.arange(farthest + 1.0))
            beyond = weights.flip(0).cumsum(0).flip(0)
            least = torch.minimum(least, best - self.temperature * (beyond > _NEGLIGIBLE).sum())
        return (rough >= least).nonzero()[:, 0]


@cache
def _halves_multiply_well() -> bool:
    """Whether this machine adds up products of float16 numbers in more than float16. If not, there is no sieve."""
    drawn = torch.rand(64, 1024, generator=torch.Generator().manual_seed(0))
    rows = torch.nn.functional.normalize(drawn, dim=1).half()
    error = torch.mv(rows, rows[0]).double() - rows.double() @ rows[0].double()
    return bool(error.abs().max() < _HALF_ERROR / 2)


def checked_rows(vectors: ArrayLike, size: int, what: str) -> Vectors:
    """(m, size) float32 rows of length 1; m may be 0."""
    array = np.asarray(vectors)
    if array.ndim != 2 or array.shape[1] != size:
        raise InvalidValue(what, f"have shape {array.shape}, not (m, {size})")
    return unit_rows(array, what)


def unit_rows(vectors: NDArray[Any], what: str, first: int = 0) -> Vectors:
    """A float32 copy with rows of length 1. first: the number of the first row, for messages."""
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(bad):
        reason = "has no length" if lengths[bad[0]] == 0 else "holds NaN or infinity"
        raise InvalidValue(what, f"row {first + bad[0]} {reason}")
    scaled: Vectors = (rows / lengths).astype(np.float32)
    return scaled


class Gap(Protocol):
    """A way to close the gap."""

    def close(self, vectors: ArrayLike) -> Projected:
        """What goes to the decoder; `nearest` is empty lists if it came from no sentences. vectors: (m, d), not 0."""


class Direct:
    """Nothing is done but to bring rows to length 1."""

    def close(self, vectors: ArrayLike) -> Projected:
        rows = np.asarray(vectors)
        if rows.ndim != 2:
            raise InvalidValue("vectors", f"have shape {rows.shape}, not (m, d)")
        return Projected(unit_rows(rows, "vectors"), [[] for _ in rows])


@dataclass(frozen=True, slots=True)
class MemoryGap:
    """Vectors put together again out of a bank of sentences (DeCap); see `MemoryBank.project`."""

    bank: MemoryBank
    temperature: float = 0.01
    top: int | None = None
    nearest: int = 5

    def close(self, vectors: ArrayLike) -> Projected:
        return self.bank.project(vectors, self.temperature, self.top, self.nearest)
