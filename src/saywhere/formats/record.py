"""A bad record is a value, not the end of the run."""

from __future__ import annotations

from dataclasses import dataclass

_EXCERPT_CHARS = 80


@dataclass(frozen=True, slots=True)
class InvalidRecord:
    """One record that could not be read.

    path: the file. line: 1-based line, or 0 where the format has no lines. where: the place inside the document or
    record, such as "annotations[3].bbox"; may be empty. reason: what is wrong. excerpt: how the record begins.
    """

    path: str
    line: int
    reason: str
    where: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.where + ': ' if self.where else ''}{self.reason}"


def excerpt(raw: bytes | str) -> str:
    """How a record begins, printable on one line."""
    text = raw[: 4 * _EXCERPT_CHARS].decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    printable = "".join(c if c.isprintable() else "�" for c in text[:_EXCERPT_CHARS])
    return printable + ("…" if len(raw) > len(printable) else "")
