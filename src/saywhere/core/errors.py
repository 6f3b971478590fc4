"""The exception tree: every error the package raises on purpose, carrying the facts a program may need."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any


class SaywhereError(Exception):
    """Root of everything saywhere raises on purpose. It comes whole out of another process, with its facts."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the class with the message alone, which is not what its parameters are.
        return _revived, (type(self), self.args, dict(self.__dict__))


def _revived(kind: type[SaywhereError], args: tuple[object, ...], facts: dict[str, object]) -> SaywhereError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class InvalidValue(SaywhereError, ValueError):
    """A value that cannot be: what it was meant to be, what is wrong with it, and what to do."""

    def __init__(self, what: str, reason: str, hint: str = "") -> None:
        self.what, self.reason, self.hint = what, reason, hint
        super().__init__(f"{what}: {reason}" + (f" ({hint})" if hint else ""))


class InvalidFile(SaywhereError, ValueError):
    """A file that cannot be read as a whole. One bad record of a readable file is an `InvalidRecord` value instead."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        self.path, self.reason, self.hint = str(path), reason, hint
        super().__init__(f"{path}: {reason}" + (f" ({hint})" if hint else ""))


class UnknownName(SaywhereError, LookupError):
    """A name (of a format, metric, model …) that is not known, with the nearest known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        self.did_you_mean = difflib.get_close_matches(name, self.known, n=3)
        nearest = f" Did you mean {' or '.join(repr(n) for n in self.did_you_mean)}?" if self.did_you_mean else ""
        known_ones = f" Known: {', '.join(self.known)}." if self.known else ""
        super().__init__(f"unknown {kind} {name!r}.{nearest}{known_ones}")


class MissingDependency(SaywhereError, ImportError):
    """An optional package, tool or data file is not installed."""

    def __init__(self, what: str, needed_for: str, how_to_get: str) -> None:
        self.what, self.needed_for, self.how_to_get = what, needed_for, how_to_get
        super().__init__(f"{needed_for} needs {what}, which is not installed. To get it: {how_to_get}")


def require(module: str, *, needed_for: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra of saywhere brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingDependency(
            f"the package {error.name!r}", needed_for, f"pip install 'saywhere[{extra}]'"
        ) from error
