"""What attention keeps between the tokens of a text that is being written."""

from __future__ import annotations

from torch import Tensor


class KVCache:
    """Keys and values of the places read so far by one layer, in memory that is not copied as it fills.

    capacity: of places to come. shared: (2, rows, heads, n, size) keys and values of places before them that all rows
    of a text have in common, such as those of an image.
    """

    def __init__(self, capacity: int, shared: Tensor | None = None) -> None:
        self.shared = 0 if shared is None else shared.shape[3]
        self.capacity, self.filled = capacity + self.shared, self.shared
        self._kept = None if shared is None else self._room(shared, shared.shape[1])
        if shared is not None and self._kept is not None:
            self._kept[:, :, :, : self.shared] = shared

    def append(self, new: Tensor, keep: int | None = None) -> Tensor:
        """Add places: (2, rows, heads, n, size), keys and values; returns all so far in the same form.

        keep: of the new places only so many first ones are there the next time; by default all.
        """
        if self._kept is None:
            self._kept = self._room(new, new.shape[1])
        end = self.filled + new.shape[3]
        self._kept[:, :, :, self.filled : end] = new
        self.filled = end if keep is None else self.filled + keep
        return self._kept[:, :, :, :end]

    def reorder(self, rows: Tensor, *, same_texts: bool = False) -> None:
        """Row i goes on from what was row `rows[i]`; there may be more or fewer rows than before.

        same_texts: each row stays with its text, so that what is shared stays where it is.
        """
        if self._kept is None:
            return
        first = self.shared if same_texts else 0
        kept = self._kept[:, :, :, first : self.filled].index_select(1, rows)
        if len(rows) != self._kept.shape[1]:
            self._kept = self._room(self._kept, len(rows))
        self._kept[:, :, :, first : self.filled] = kept

    def _room(self, like: Tensor, rows: int) -> Tensor:
        two, _, heads, _, size = like.shape
        return like.new_empty(two, rows, heads, self.capacity, size)
