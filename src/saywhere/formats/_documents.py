"""JSON files as typed items, where a bad item is an InvalidRecord and nothing else is lost.

Whole documents are cut into parts by `_scan` and JSON lines by their ends; each part is then decoded on its own. Bad
are: what JSON does not allow (NaN, cut-off text, lone surrogates), keys that stand twice in one object, numbers too
large for a float, nesting too deep to decode, and every type that differs from the format's. Unknown keys are ignored.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats._json_lines import explain, key_given_twice
from saywhere.formats._scan import CUT_OFF, JsonSlice, keys_of, parts, skip_space
from saywhere.formats.files import open_bytes, read_bytes, read_lines
from saywhere.formats.record import InvalidRecord, excerpt

T = TypeVar("T")
V = TypeVar("V")

Id = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] | Annotated[str, msgspec.Meta(min_length=1)]
"""An identifier as the file has it: data sets use numbers, their derivatives sometimes text."""

_BOM = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"{\x00": "UTF-16", b"[\x00": "UTF-16"}
_SNIFF_CHUNK = 2**20
_STRINGS = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"([ \t\r\n]*+:)?', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Node:
    """A value inside a JSON file, not decoded yet: text[start:end], found at `where` or on a line.

    cut: the file ends inside it. Of a list or object, what came before the cut can still be read.
    """

    path: str
    text: bytes
    start: int
    end: int
    where: str = ""
    line: int = 0
    cut: bool = False

    @property
    def kind(self) -> Literal["object", "list", "value"]:
        opening = self.text[self.start : self.start + 1]
        return "object" if opening == b"{" else "list" if opening == b"[" else "value"

    @property
    def raw(self) -> bytes:
        return self.text[self.start : self.end]

    def invalid(self, reason: str, place: str = "") -> InvalidRecord:
        """This value as a bad record. place: inside it, such as "bbox[2]"."""
        joint = "." if self.where and place and not place.startswith("[") else ""
        return InvalidRecord(self.path, self.line, reason, f"{self.where}{joint}{place}", excerpt(self.raw))

    def items(self) -> Iterator[Node | InvalidRecord]:
        """The items of this list."""
        for part in parts(self.text, self.start, root=self._is_root):
            node = self._child(part, f"{self.where}[{part.index}]")
            yield node.invalid(part.problem) if part.problem and not node.cut else node

    def entries(self) -> Iterator[tuple[str, Node] | InvalidRecord]:
        """The keys and values of this object. A key that stands there again is a bad record."""
        seen: set[str] = set()
        for part in parts(self.text, self.start, root=self._is_root):
            node = self._child(part, self.where + self._step_to(part))
            if part.problem and not node.cut:
                yield node.invalid(part.problem)
            elif part.key in seen:
                yield node.invalid("the key is given twice")
            else:
                seen.add(part.key)
                yield part.key, node

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T | InvalidRecord:
        """The value as the decoder's type."""
        raw = self.raw
        try:
            if not raw.isascii():
                raw.decode()  # msgspec does not look at the text of keys that it skips
            value = decoder.decode(raw)
            twice = None if _surely_no_key_twice(raw) else key_given_twice(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            place, reason = explain(raw, error)
            return self.invalid(reason, place)
        return value if twice is None else self.invalid("the key is given twice", twice)

    def _step_to(self, part: JsonSlice) -> str:
        if part.key.isidentifier():
            return f".{part.key}" if self.where else part.key
        return "" if part.problem and not part.key else f'["{excerpt(part.key)}"]'

    def _child(self, part: JsonSlice, where: str) -> Node:
        cut = part.problem == CUT_OFF and self.text[part.start : part.start + 1] in (b"{", b"[")
        return Node(self.path, self.text, part.start, part.end, where, self.line, cut)

    @property
    def _is_root(self) -> bool:
        return not self.where


@dataclass(frozen=True, slots=True)
class Decoded(Generic[T]):
    """A decoded value and where it came from."""

    node: Node
    value: T


def document(path: str | Path, text: bytes | None = None) -> Node:
    """The outermost object or list of a JSON file. text: the file's content, if it was read already."""
    text = read_bytes(path) if text is None else text
    start = skip_space(text, _text_start(path, text))
    node = Node(str(path), text, start, len(text))
    if start == len(text):
        raise InvalidFile(path, "is empty")
    if node.kind == "value":
        raise InvalidFile(path, "is not a JSON document: it does not begin with { or [")
    return node


def members(node: Node, *wanted: str) -> tuple[dict[str, Node], list[InvalidRecord]]:
    """Those of the `wanted` members that a document's outermost object has, and what is broken among all of them."""
    if node.kind != "object":
        raise InvalidFile(node.path, "should be an object, not a list")
    found: dict[str, Node] = {}
    problems: list[InvalidRecord] = []
    for entry in node.entries():
        if isinstance(entry, InvalidRecord):
            problems.append(entry)
        elif entry[0] in wanted:
            found[entry[0]] = entry[1]
        elif entry[1].cut:
            problems.append(entry[1].invalid(CUT_OFF))
    return found, problems


def listed(found: dict[str, Node], name: str, path: str) -> Iterator[Node | InvalidRecord]:
    """The items of the member of this name, which must be a list."""
    if name not in found:
        raise InvalidFile(path, f"has no member `{name}`")
    if found[name].kind != "list":
        raise InvalidFile(path, f"`{name}` should be a list")
    return found[name].items()


def decoded(
    nodes: Iterable[Node | InvalidRecord], decoder: msgspec.json.Decoder[T]
) -> Iterator[Decoded[T] | InvalidRecord]:
    """Each node decoded, in order, bad ones as InvalidRecord."""
    for node in nodes:
        if isinstance(node, InvalidRecord):
            yield node
            continue
        value = node.decode(decoder)
        yield value if isinstance(value, InvalidRecord) else Decoded(node, value)


def built(items: Iterable[Decoded[T] | InvalidRecord], make: Callable[[T], V]) -> Iterator[V | InvalidRecord]:
    """What `make` makes of each item. An InvalidValue that it raises becomes the item's InvalidRecord."""
    for item in items:
        if isinstance(item, InvalidRecord):
            yield item
            continue
        try:
            value = make(item.value)
        except InvalidValue as error:
            yield item.node.invalid(f"{error.what} {error.reason}")
        else:
            yield value


def lines(path: str | Path, decoder: msgspec.json.Decoder[T]) -> Iterator[Decoded[T] | InvalidRecord]:
    """Each line of a JSON-lines file, decoded."""
    for line in read_lines(path):
        if isinstance(line, InvalidRecord):
            yield line
            continue
        number, text = line[0], line[1].rstrip()
        start = _text_start(path, text) if number == 1 else 0
        if start < len(text):
            yield from decoded([Node(str(path), text, start, len(text), line=number)], decoder)


def encoded(content: Any) -> bytes:
    """The content as JSON text."""
    try:
        return msgspec.json.encode(content)
    except UnicodeEncodeError as error:
        raise InvalidValue("text", f"holds half a character (a lone surrogate): {error.object!r}") from error
    except OverflowError as error:
        raise InvalidValue("a number", f"is too large to be written: {error}") from error


def item_keys(head: bytes) -> frozenset[str]:
    """The keys of the first object of a list, by the first bytes of the file; for telling formats apart."""
    text = head.removeprefix(_BOM)
    at = skip_space(text, 0)
    return keys_of(text, at + 1) if text[at : at + 1] == b"[" else frozenset()


def member_item_keys(path: Path, head: bytes, member: str, among: frozenset[str]) -> frozenset[str]:
    """The keys of the first object in the list `member` of a document, wherever in the file that list begins.

    among: keys of which the document must show at least one in `head`, so that other files are not searched.
    """
    if path.is_dir() or not keys_of(head.removeprefix(_BOM)) & among:
        return frozenset()
    name = f'"{member}"'.encode()
    with open_bytes(path) as file:
        try:
            window = b""
            while chunk := file.read(_SNIFF_CHUNK):
                window += chunk
                at = window.find(name)
                if at >= 0:
                    opening = window[at + len(name) :] + file.read(_SNIFF_CHUNK)
                    return keys_of(opening.lstrip(b" \t\r\n:["))
                window = window[-len(name) :]
        except (EOFError, OSError, zlib.error) as error:
            raise InvalidFile(path, f"the compressed file is cut off or damaged: {error}") from error
    return frozenset()


def _surely_no_key_twice(raw: bytes) -> bool:
    """Quick, and right when it says yes: no key's spelling comes twice, at whatever depth."""
    keys = [text for text, colon in _STRINGS.findall(raw) if colon]
    return len(set(keys)) == len(keys) and (b"\\" not in raw or not any(b"\\" in key for key in keys))


def _text_start(path: str | Path, text: bytes) -> int:
    """Where the text begins: after a UTF-8 byte order mark. Other encodings are refused."""
    other = _OTHER_ENCODINGS.get(text[:2])
    if other:
        raise InvalidFile(path, f"is {other} text, not UTF-8", "convert it first, for example with iconv -t UTF-8")
    return len(_BOM) if text.startswith(_BOM) else 0
