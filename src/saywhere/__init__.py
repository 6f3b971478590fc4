"""saywhere joins images, language and human attention: where people look or point, and what they say."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from saywhere import core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from saywhere import formats, metrics
    from saywhere.core import (
        AttentionMap,
        Box,
        BoxSet,
        Caption,
        Frame,
        Grounded,
        InvalidFile,
        InvalidValue,
        Mask,
        MissingDependency,
        Narrative,
        Patch,
        Phrase,
        Point,
        Polygon,
        Region,
        SaywhereError,
        Trace,
        UnknownName,
        Utterance,
        WholeImage,
        Word,
        WordBoxes,
        simplify_many,
        simplify_phrases,
        split_words,
        trace_through,
        word_boxes,
    )
    from saywhere.models.face import Model

__version__ = "0.1.0"

__all__ = [
    "AttentionMap",
    "Box",
    "BoxSet",
    "Caption",
    "Frame",
    "Grounded",
    "InvalidFile",
    "InvalidValue",
    "Mask",
    "MissingDependency",
    "Narrative",
    "Patch",
    "Phrase",
    "Point",
    "Polygon",
    "Region",
    "SaywhereError",
    "Trace",
    "UnknownName",
    "Utterance",
    "WholeImage",
    "Word",
    "WordBoxes",
    "formats",
    "load",
    "metrics",
    "read",
    "simplify_many",
    "simplify_phrases",
    "split_words",
    "trace_through",
    "word_boxes",
]


def load(name: str | PathLike[str] = "saywhere-base") -> Model:
    """A model that looks at photos, by name, folder or hub id; see `saywhere.loading`. This is what imports torch.

    look = load().look("kitchen.jpg")        # heavy, once
    look.caption(Box(0.1, 0.2, 0.4, 0.6))    # cheap, often; look.captions([...]) is the primitive
    look.ground("a cup beside a spoon")      # a narrative: a place for every word, a trace through them
    look.narrate()                           # a narrative from the photo alone

    A model of any family says in `skills` what it can do; a look refuses the rest with `MissingSkill`.
    """
    from saywhere import loading

    return loading.load(name)


def read(path: str | PathLike[str], format: str | None = None) -> Iterator[Any]:  # noqa: A002 - the word for it
    """The values of a data file, in its order; a record that is not right is an `InvalidRecord` that says why.

    format: a name out of `saywhere.formats.FORMATS`; told by the file's content if not given.

    >>> first = next(read("examples/narratives.jsonl"))
    >>> first.image_id
    'kitchen'
    """
    from saywhere import formats

    return formats.read(path, format)


def __getattr__(name: str) -> Any:
    # Imported when they are first asked for: `import saywhere` is for everyone.
    if name in ("formats", "metrics"):
        return import_module(f"saywhere.{name}")
    if name in core.__all__:
        return getattr(core, name)
    raise AttributeError(f"module 'saywhere' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
