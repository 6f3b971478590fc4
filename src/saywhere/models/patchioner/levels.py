"""Captions above objects: where a photo is taken, what is done in it, and why.

What is there is the level "object", which a seer's own writer tells. All other levels are told by one second writer,
which reads the same vector of a region and, as its prompt, the level's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from saywhere.core import InvalidValue, UnknownName
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.search import Writer

OBJECT, SCENE = "object", "scene"
ABOUT_PEOPLE = ("action", "rationale")
"""Levels that suppose that someone is to be seen; all of HL's photos show people."""
PERSON = "person"
"""What the detector calls people."""


def check_names(levels: Sequence[str]) -> None:
    """Refuse names that cannot be levels above objects."""
    if OBJECT in levels:
        raise InvalidValue("levels", f"{OBJECT!r} is told by the model's own writer", "name only those above it")
    if len(set(levels)) < len(levels):
        raise InvalidValue("levels", f"one comes twice: {', '.join(levels)}")
    if any(not level.strip() for level in levels):
        raise InvalidValue("levels", "one has no name")


def checked_levels(levels: Sequence[str], writer: Writer | None) -> tuple[str, ...]:
    """The levels above objects that a writer tells. One that cannot read their names is refused."""
    check_names(levels)
    if bool(levels) != (writer is not None):
        raise InvalidValue("levels", "levels above objects and a writer for them come together")
    if isinstance(writer, PrefixDecoder) and levels:
        begins = writer.begins(levels, len(levels))
        unknown = writer.vocabulary.unknown_id
        # A word that it does not know would be the same prompt as any other.
        strange = [level for level, begin in zip(levels, begins, strict=True) if unknown in begin]
        if strange:
            raise InvalidValue("levels", f"their writer does not know the word {strange[0]!r}")
    return tuple(levels)


def check_level(level: str, known: Sequence[str], model: str) -> None:
    """Refuse a level that is none of those that a model knows, `OBJECT` included."""
    if level in known:
        return
    if len(known) == 1:
        reason = f"the model {model} says only what is there; it has no captions of the level {level!r}"
        raise InvalidValue("level", reason, f"ask for {OBJECT!r}, or use a model whose seer.json names levels")
    raise UnknownName("level", level, known)
