"""Lines of JSON, decoded to typed values; a bad line comes out as InvalidRecord with a reason a person understands.

msgspec takes the last of two equal keys without a word. Such a line says two things at once, so it is refused here. To
find out costs little: outside of strings every key has one colon, so a line with as many colons as the decoded value
explains has no second key. Only a line with more (or with colons in strings spelt as escapes) is parsed once more,
slowly and exactly.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.formats.files import read_lines
from saywhere.formats.record import InvalidRecord, excerpt

T = TypeVar("T")
V = TypeVar("V")

_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_ESCAPED_COLON = b"\\u003"
_SURROGATE_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<place>.*)`)?", re.DOTALL)
_MALFORMED = re.compile(r"JSON is malformed: (?P<what>.*) \(byte (?P<byte>\d+)\)")
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`")
_TYPE_NAMES = re.compile(r"`([^`]*)`")
_CUT_OFF = "is not JSON: it ends too early"
_PLAIN_TYPES = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "array": "a list",
    "object": "an object",
    "bool": "true or false",
    "null": "null",
}


def read_json_lines(
    path: str | Path, decoder: msgspec.json.Decoder[T], colons: Callable[[T], int]
) -> Iterator[tuple[int, bytes, T] | InvalidRecord]:
    """Number (from 1), bytes and decoded value of every line that is not blank.

    colons: how many colons the value's line holds if each of its keys stands there once: one for each key, and those
        inside its strings.
    """
    for item in read_lines(path):
        if isinstance(item, InvalidRecord):
            yield item
            continue
        number, line = item
        if number == 1 and line.startswith(_BOM):
            line = line.removeprefix(_BOM)
            if not line.strip():
                continue
        try:
            if not line.isascii():
                line.decode()  # msgspec does not look at the text of keys that it skips
            value = decoder.decode(line)
            twice = None if _surely_no_key_twice(line, colons(value)) else key_given_twice(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            where, reason = explain(line, error)
            yield InvalidRecord(str(path), number, reason, where, excerpt(line))
            continue
        if twice is None:
            yield number, line, value
        else:
            yield InvalidRecord(str(path), number, "the key is given twice", twice, excerpt(line))


def read_values(
    path: str | Path, decoder: msgspec.json.Decoder[T], colons: Callable[[T], int], make: Callable[[T], V]
) -> Iterator[V | InvalidRecord]:
    """What `make` makes of every line; a record that it refuses (InvalidValue) is an InvalidRecord in its place."""
    for item in read_json_lines(path, decoder, colons):
        if isinstance(item, InvalidRecord):
            yield item
            continue
        number, line, raw = item
        try:
            value: V | InvalidRecord = make(raw)
        except InvalidValue as error:
            value = InvalidRecord(str(path), number, error.reason, error.what, excerpt(line))
        yield value


def _surely_no_key_twice(line: bytes, colons: int) -> bool:
    # numpy counts one byte three times as fast as bytes.count does.
    counted = int(np.count_nonzero(np.frombuffer(line, np.uint8) == ord(":")))
    return counted == colons and (b"\\" not in line or _ESCAPED_COLON not in line)


@dataclass(frozen=True, slots=True)
class _GivenTwice:
    key: str


def key_given_twice(document: bytes) -> str | None:
    """Place of a key that one object of this JSON text gives twice, such as "traces[0][3].x"; None if there is none."""
    found: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _GivenTwice:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        times = Counter(key for key, _ in pairs)
        found.append(next(key for key, n in times.items() if n > 1))
        return _GivenTwice(found[-1])

    # Numbers do not matter here, and as float none is too long.
    tree = json.loads(document, object_pairs_hook=unique, parse_int=float)
    return _place(tree) if found else None


def _place(tree: Any) -> str | None:
    todo: list[tuple[str, Any]] = [("", tree)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, _GivenTwice):
            return f"{place}.{value.key}".removeprefix(".")
        if isinstance(value, dict):
            todo += [(f"{place}.{key}".removeprefix("."), part) for key, part in reversed(value.items())]
        elif isinstance(value, list):
            todo += [(f"{place}[{i}]", part) for i, part in reversed(list(enumerate(value)))]
    return None


def explain(document: bytes, error: Exception) -> tuple[str, str]:
    """Place and reason, in plain words, of what msgspec or json found wrong with a document."""
    if isinstance(error, RecursionError):
        return "", "is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        if document.startswith(_UTF16_BOMS):
            return "", "is not UTF-8 text; it looks like UTF-16"
        return "", f"is not UTF-8 text: {error.reason} at byte {error.start}"
    message = _MESSAGE.fullmatch(str(error))
    what, place = (message["what"], message["place"] or "") if message else (str(error), "")
    if isinstance(error, msgspec.ValidationError):
        return place, _plain_misfit(what)
    return place, _plain_malformation(document, what)


def _plain_misfit(what: str) -> str:
    if missing := _MISSING.fullmatch(what):
        return f"the key `{missing['key']}` is missing"
    if what.endswith("out of range"):
        return "is a number too large to hold"
    plain = _TYPE_NAMES.sub(lambda names: _plain_types(names[1]), what)
    return plain.replace("Expected ", "should be ").replace(", got ", ", but is ")


def _plain_types(names: str) -> str:
    return " or ".join(_PLAIN_TYPES.get(name, name) for name in names.split(" | "))


def _plain_malformation(document: bytes, what: str) -> str:
    if b"\0" in document:
        return "is not JSON: it holds zero bytes; perhaps it is UTF-16, not UTF-8"
    if _SURROGATE.search(_SURROGATE_PAIR.sub(b"", document.replace(rb"\\", b""))):
        return "is not JSON: an escape (\\ud800 to \\udfff) stands for half a character (a lone surrogate)"
    malformed = _MALFORMED.fullmatch(what)
    if malformed is None:
        return _CUT_OFF if "truncated" in what else f"is not JSON: {what}"
    at = int(malformed["byte"])
    if at >= len(document.rstrip()) and malformed["what"] != "trailing characters":
        return _CUT_OFF
    if document.startswith((b"NaN", b"Infinity"), at):
        return f"is not JSON: NaN or Infinity at byte {at}"
    return f"is not JSON: {malformed['what']} at byte {at}"
