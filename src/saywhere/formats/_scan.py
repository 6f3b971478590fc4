"""Where the parts of a JSON document lie, found without decoding them.

Only quotes, brackets and commas are looked at, so nonsense inside one part (NaN, bad numbers, bad text) does not hide
the parts after it: each part can be decoded, or refused, on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

CUT_OFF = "the document ends inside it: cut off, or a quote or bracket is not closed"

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT = rb'[^"\[\]{}]++|' + _STRING
# Deeper values are measured by a slower loop; no format here is nested this deeply.
_FAST_DEPTH = 8


def _bracketed(depth: int) -> bytes:
    """A pattern for a list or object that is nested at most `depth` deep."""
    inner = _FLAT if depth == 1 else _FLAT + rb"|" + _bracketed(depth - 1)
    return rb"[\[{](?:" + inner + rb")*+[\]}]"


_SPACE = re.compile(rb"[ \t\r\n]*+")
_SCALAR = re.compile(rb'[^ \t\r\n,\[\]{}":]*+')
_TEXT = re.compile(_STRING, re.DOTALL)
_KEY = re.compile(rb"(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_FAST = re.compile(_bracketed(_FAST_DEPTH), re.DOTALL)
_BRACKET_OR_STRING = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonSlice:
    """A member of an object or an item of a list: text[start:end].

    key: the member's; empty in lists. index: its place among its siblings. problem: why it cannot be used, or empty.
    """

    key: str
    index: int
    start: int
    end: int
    problem: str = ""


def parts(text: bytes, start: int, *, root: bool = False) -> Iterator[JsonSlice]:
    """The parts of the object or list that opens at `start`. A part with a problem may be followed by others.

    root: nothing but white space may follow the closing bracket.
    """
    keyed = text[start : start + 1] == b"{"
    close = b"}" if keyed else b"]"
    index, at = 0, skip_space(text, start + 1)
    if text[at : at + 1] == close:
        yield from _after(text, at + 1, index, root)
        return
    while True:
        key, problem = "", ""
        if keyed:
            found = _KEY.match(text, at)
            if not found:
                yield JsonSlice("", index, at, len(text), "a key in quotes and a colon should stand here")
                return
            key, problem = _decoded_key(found[1])
            at = found.end()
        end = value_end(text, at)
        if end is None or end == at:
            yield JsonSlice(key, index, at, len(text), CUT_OFF if end is None else "a value should stand here")
            return
        yield JsonSlice(key, index, at, end, problem)
        index, mark = index + 1, skip_space(text, end)
        if text[mark : mark + 1] != b",":
            break
        at = skip_space(text, mark + 1)
    if text[mark : mark + 1] == close:
        yield from _after(text, mark + 1, index, root)
    else:
        yield JsonSlice("", index, mark, len(text), f"a comma or {close.decode()!r} should stand here")


def value_end(text: bytes, start: int) -> int | None:
    """Where the value that begins at `start` ends; `start` itself if none begins there; None if it never ends."""
    first = text[start : start + 1]
    if first == b"":
        return None
    if first == b'"':
        string = _TEXT.match(text, start)
        return string.end() if string else None
    if first not in (b"[", b"{"):
        scalar = _SCALAR.match(text, start)
        return scalar.end() if scalar else start
    fast = _FAST.match(text, start)
    return fast.end() if fast else _deep_end(text, start)


def skip_space(text: bytes, at: int) -> int:
    """The first position from `at` on that is not white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def keys_of(text: bytes, start: int = 0) -> frozenset[str]:
    """The keys of the object that opens at `start`, as far as the text goes; none if it is no object."""
    at = skip_space(text, start)
    if text[at : at + 1] != b"{":
        return frozenset()
    return frozenset(part.key for part in parts(text, at) if part.key)


def _deep_end(text: bytes, start: int) -> int | None:
    depth = 0
    for found in _BRACKET_OR_STRING.finditer(text, start):
        mark = found[0]
        if mark in (b"[", b"{"):
            depth += 1
        elif mark in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                return found.end()
    return None


def _after(text: bytes, at: int, index: int, root: bool) -> Iterator[JsonSlice]:
    rest = skip_space(text, at)
    if root and rest < len(text):
        yield JsonSlice("", index, rest, len(text), "there is more text after the end of the document")


def _decoded_key(raw: bytes) -> tuple[str, str]:
    try:
        return msgspec.json.decode(raw, type=str), ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", "its key is not valid text"
