"""What a file from a stranger may ask for at most: one table, and the functions that hold files to it.

Every package may import this; it stands beside them, not inside. A file may not make a reader ask for more memory than
its own bytes can fill, nor name another file outside its folder, nor count to more than the table says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

from saywhere.core.errors import InvalidFile

KIB, MIB, GIB = 2**10, 2**20, 2**30

MOST: dict[str, int] = {
    # Bytes.
    "bytes of a file": 8 * GIB,
    "bytes of a line": 64 * MIB,
    "bytes of a description": 64 * MIB,
    "bytes of one image's features": 256 * MIB,
    "bytes of an index": 4 * GIB,
    # Of pictures.
    "pixels": 100_000_000,
    "pixels of a side": 4_096,
    # Of models.
    "encoders": 8,
    "writers": 64,
    "levels": 64,
    "beams": 64,
    "draws": 1_000,
    "words": 4_096,
    "tokens": 2**20,
    "layers": 512,
    "number in a config": 2**24,
    "models in a row": 4,
}
"""What is counted, and how much of it is taken. docs/security.md has the table for people."""

# Numbers of configs that count something, ours and those of the transformers library.
_COUNTS = {
    **dict.fromkeys(("max_words", "most_words", "prompt_words", "max_tokens", "most_regions", "prefix"), "words"),
    **dict.fromkeys(("caption_slots", "text_slots", "counters"), "words"),
    **dict.fromkeys(("layers", "blocks", "heads", "mask_layers", "mask_heads", "expansion", "depth"), "layers"),
    **dict.fromkeys(("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "num_heads"), "layers"),
    **dict.fromkeys(("photo_px", "input_px", "patch_px"), "pixels of a side"),
    "context": "tokens",
}
_CHUNK = 8 * MIB


def check(what: str, amount: int, where: object) -> int:
    """The amount, unless the table says that it is too much.

    >>> check("draws", 24, "seer.json")
    24
    >>> check("draws", 10**9, "seer.json")
    Traceback (most recent call last):
    saywhere.core.errors.InvalidFile: seer.json: asks for 1,000,000,000 draws; at most 1,000 are taken
    """
    most = MOST[what]
    if amount > most:
        raise InvalidFile(where, f"asks for {amount:,} {what}; at most {most:,} are taken")
    return amount


def check_config(config: Mapping[str, Any], where: object, largest: int | None = None) -> None:
    """Hold every whole number of a description to the table, however deep it stands.

    largest: the largest side of any tensor beside it. Then no size may be more than twice that (some count what is made
    of few tensors, such as the tokens of coordinates), or than 4,096.
    """
    most = MOST["number in a config"] if largest is None else max(2 * largest, MOST["words"])
    for name, value in config.items():
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, dict):
                check_config(one, where, largest)
            elif isinstance(one, int) and abs(one) > (allowed := MOST[_COUNTS[name]] if name in _COUNTS else most):
                raise InvalidFile(where, f"{name} is {one:,}; at most {allowed:,} fits what is beside it")


def read_whole(path: str | Path, what: str = "bytes of a description") -> bytes:
    """All bytes of a file. One that is too large is refused before it is read."""
    try:
        with Path(path).open("rb") as file:
            check(what, os.fstat(file.fileno()).st_size, path)
            return read_at_most(file, MOST[what], path)
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error


def read_at_most(file: IO[bytes], most: int, where: object) -> bytes:
    """What a file still gives. Memory grows with what comes, and stops at `most` bytes."""
    parts: list[bytes] = []
    left = most
    while part := file.read(min(_CHUNK, left + 1)):
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise InvalidFile(where, f"is larger than {most:,} bytes")
    return b"".join(parts)


def inside(folder: str | Path, name: str) -> Path:
    """A file or folder below another, by the relative name that a file gave; any other name is refused.

    Links may lead about inside the folder, and, where the hub's cache laid them, to what that cache holds.

    >>> inside("model", "../../secret")
    Traceback (most recent call last):
    saywhere.core.errors.InvalidFile: model: names '../../secret', which is not inside it
    """
    root = Path(folder)
    parts = PurePosixPath(name).parts
    foreign = not parts or "\0" in name or ".." in parts or PurePosixPath(name).is_absolute()
    if foreign or "\\" in name or PureWindowsPath(name).drive:
        raise InvalidFile(folder, f"names {name!r}, which is not inside it")
    real, home = (root / name).resolve(), root.resolve()
    # snapshots/COMMIT/FILE is a link to blobs/HASH, in the cache of the hub's own library.
    blobs = [home.parents[1] / "blobs"] if home.parent.name == "snapshots" else []
    if not any(real.is_relative_to(one) for one in (home, *blobs)):
        raise InvalidFile(folder, f"names {name!r}, a link to a place that is not inside it")
    return root / name
