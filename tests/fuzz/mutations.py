"""Ways to spoil a file: bytes that change, go and come; in texts also the numbers, strings and braces of JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

_NUMBERS = ("0", "-1", "1e999", "-1e308", "9" * 400, "2147483648", "4294967295", "1e-320", "NaN", "Infinity", "0.5")
_STRINGS = ('"\\ud800"', '""', '"../../etc/passwd"', '"\\u0000"', '"' + "x" * 5_000 + '"', "null", "true", "{}", "[]")
_VALUES: tuple[Any, ...] = (None, True, -1, 0, 2**31, 2**63, 1e308, -0.0, "", "x" * 3_000, "\0", [], {}, [[]], [None])
_INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x7B, 0x5B, 0x0A, 0x2C)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with one to eight changes; the same ones for the same state of `rng`."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        content = rng.choice(_MUTATIONS)(content, rng)
    return content


def _flip(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return content
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def _set(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + bytes([rng.choice(_INTERESTING)]) + content[at + 1 :]


def _integer(content: bytes, rng: random.Random) -> bytes:
    """A number of 2, 4 or 8 bytes that is too large, negative or 0."""
    size = rng.choice((2, 4, 8))
    value = rng.choice((0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), 2 ** (8 * size - 1) - 1, rng.getrandbits(8)))
    at = rng.randrange(len(content) + 1)
    return content[:at] + value.to_bytes(size, rng.choice(("little", "big"))) + content[at + size :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _drop(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[at + rng.choice((1, 2, 16, 300)) :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    at, size = rng.randrange(len(content) + 1), rng.choice((1, 8, 64, 1_000))
    return content[:at] + content[at : at + size] * rng.choice((2, 3, 50)) + content[at + size :]


def _noise(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.choice((1, 4, 40))) + content[at:]


def _other_number(content: bytes, rng: random.Random) -> bytes:
    return _replaced(content, _NUMBER, rng.choice(_NUMBERS), rng)


def _other_text(content: bytes, rng: random.Random) -> bytes:
    return _replaced(content, _TEXT, rng.choice(_STRINGS), rng)


def _replaced(content: bytes, pattern: re.Pattern[bytes], by: str, rng: random.Random) -> bytes:
    found = list(pattern.finditer(content[:20_000]))
    if not found:
        return content
    one = rng.choice(found)
    return content[: one.start()] + by.encode() + content[one.end() :]


def _nest(content: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((3, 500, 100_000))
    opened, closed = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    return opened * depth + content + closed * depth


def _other_value(content: bytes, rng: random.Random) -> bytes:
    """One value of a JSON document or line, anywhere in it, becomes another; or a key goes, or comes twice."""
    lines = content.split(b"\n")
    number = rng.randrange(len(lines)) if len(lines) > 1 else 0
    whole = lines[number] if len(lines) > 2 else content
    try:
        tree = json.loads(whole)
    except (ValueError, RecursionError):
        return content
    changed = json.dumps(_tree_with_another(tree, rng)).encode()
    if whole is content:
        return changed
    lines[number] = changed
    return b"\n".join(lines)


def _tree_with_another(tree: Any, rng: random.Random) -> Any:
    here = tree
    while isinstance(here, dict | list) and here:
        key: Any = rng.choice(list(here)) if isinstance(here, dict) else rng.randrange(len(here))
        if isinstance(here[key], dict | list) and here[key] and rng.random() < 0.8:
            here = here[key]
            continue
        if rng.random() < 0.2:
            del here[key]
        else:
            here[key] = rng.choice(_VALUES)
        return tree
    return rng.choice(_VALUES)


_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _set, _integer, _cut, _drop, _repeat, _noise),
    *(_other_number, _other_text, _nest, _other_value, _other_value),
)
