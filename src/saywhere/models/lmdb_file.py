"""LMDB files, read by their published layout: a tree of pages with keys in order.

Read here rather than by the lmdb library, because that follows the numbers in a mapped file without looking where they
lead: one altered byte ends the process (SIGBUS). Here every place is checked before it is read.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from saywhere.core.errors import InvalidFile

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_BRANCH, _LEAF = 0x01, 0x02
_BIG, _NESTED = 0x01, 0x06
_EMPTY = 2**64 - 1
# Of a page: number, flags, where its free room begins. Of a node: two halves of a size, flags, bytes of its key.
_PAGE, _NODE, _PLACE = struct.Struct("<Q2xHHH"), struct.Struct("<HHHH"), struct.Struct("<Q")
# Of a meta page, after its head: magic, version, page size, root, last page, transaction.
_META = struct.Struct("<II16xI84xQQQ")
_PAGE_SIZES = tuple(2**power for power in range(9, 17))
_DEEPEST = 32


class _Meta(NamedTuple):
    magic: int
    version: int
    page_size: int
    root: int
    last_page: int
    transaction: int


class _Node(NamedTuple):
    """A key; of a leaf its value, of a branch the page below."""

    key: bytes
    value: bytes
    child: int


class LmdbFile:
    """The main table of a file or of a folder with data.mdb: values by keys. Only read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        data = path / "data.mdb" if path.is_dir() else path
        try:
            with data.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InvalidFile(path, f"cannot be opened as LMDB: {getattr(error, 'strerror', None) or error}") from error
        first = self._meta(0)
        metas = [first, self._meta(first.page_size)]
        newest = max(metas, key=lambda meta: meta.transaction)
        self._page_size, self._root = newest.page_size, newest.root
        self._pages = len(self._map) // self._page_size
        if newest.last_page >= self._pages:
            reason = f"is cut off: {newest.last_page + 1:,} pages do not fit into {len(self._map):,} bytes"
            raise InvalidFile(path, reason)

    def close(self) -> None:
        self._map.close()

    def __iter__(self) -> Iterator[bytes]:
        """All keys, in order."""
        todo = [] if self._root == _EMPTY else [self._root]
        left = self._pages
        while todo:
            left -= 1
            if left < 0:
                raise self._damaged("its pages go round in a circle")
            nodes, is_leaf = self._page(todo.pop())
            if is_leaf:
                yield from (self._node(at, is_leaf=True).key for at in nodes)
            else:
                todo += [self._node(at, is_leaf=False).child for at in reversed(nodes)]

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None if it is not there."""
        if self._root == _EMPTY:
            return None
        page = self._root
        for _ in range(_DEEPEST):
            nodes, is_leaf = self._page(page)
            at = self._last_up_to(nodes, key, is_leaf)
            if is_leaf:
                found = self._node(nodes[at], is_leaf=True) if at >= 0 else None
                return found.value if found is not None and found.key == key else None
            page = self._node(nodes[max(at, 0)], is_leaf=False).child
        raise self._damaged("its tree is too deep")

    def _last_up_to(self, nodes: list[int], key: bytes, is_leaf: bool) -> int:
        """Number of the last node whose key is not above this one; −1 if all are. A branch's first key is empty."""
        low, high = 0, len(nodes)
        while low < high:
            middle = (low + high) // 2
            if self._node(nodes[middle], is_leaf, with_value=False).key <= key:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _meta(self, offset: int) -> _Meta:
        if offset + _PAGE.size + _META.size > len(self._map):
            raise self._damaged("it is too short")
        meta = _Meta(*_META.unpack_from(self._map, offset + _PAGE.size))
        if (meta.magic, meta.version) != (_MAGIC, _VERSION) or meta.page_size not in _PAGE_SIZES:
            raise self._damaged("its first pages are not those of such a file")
        return meta

    def _page(self, number: int) -> tuple[list[int], bool]:
        """Where the nodes of a page are, and whether it is a leaf."""
        start = self._start(number)
        _, flags, lower, _ = _PAGE.unpack_from(self._map, start)
        if flags & ~0x10 not in (_BRANCH, _LEAF) or not _PAGE.size <= lower <= self._page_size:
            raise self._damaged(f"page {number} is neither branch nor leaf")
        count = (lower - _PAGE.size) // 2
        if not count:
            raise self._damaged(f"page {number} is empty")
        places = struct.unpack_from(f"<{count}H", self._map, start + _PAGE.size)
        if max(places) + _NODE.size > self._page_size:
            raise self._damaged(f"page {number} has a node outside it")
        return [start + place for place in places], bool(flags & _LEAF)

    def _node(self, at: int, is_leaf: bool, with_value: bool = True) -> _Node:
        low, high, flags, key_size = _NODE.unpack_from(self._map, at)
        begin = at + _NODE.size + key_size
        key = self._bytes(at + _NODE.size, key_size)
        if not is_leaf:
            return _Node(key, b"", low | high << 16 | flags << 32)
        if flags & _NESTED:
            raise self._damaged("it has tables inside the table")
        if not with_value:
            return _Node(key, b"", 0)
        size = low | high << 16
        if flags & _BIG:
            (page,) = _PLACE.unpack(self._bytes(begin, _PLACE.size))
            begin = self._start(page) + _PAGE.size
        return _Node(key, self._bytes(begin, size), 0)

    def _start(self, page: int) -> int:
        if not 1 < page < self._pages:
            raise self._damaged(f"it leads to page {page:,} of {self._pages:,}")
        return page * self._page_size

    def _bytes(self, begin: int, size: int) -> bytes:
        if begin + size > len(self._map):
            raise self._damaged("a value reaches past its end")
        return self._map[begin : begin + size]

    def _damaged(self, reason: str) -> InvalidFile:
        return InvalidFile(self.path, f"cannot be read as LMDB: {reason}", "is the file whole?")
