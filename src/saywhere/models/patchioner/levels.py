"""Captions above objects: where a photo is taken, what is done in it, and why."""

from __future__ import annotations

from collections.abc import Sequence

from saywhere.core import InvalidValue
from saywhere.core.caption import OBJECT
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.search import Writer

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


def check_prompts(levels: Sequence[str], writer: Writer) -> None:
    """Refuse a writer that cannot read the levels' names."""
    if not isinstance(writer, PrefixDecoder):
        return
    begins = writer.begins(levels, len(levels))
    # A word that it does not know would be the same prompt as any other.
    strange = [level for level, begin in zip(levels, begins, strict=True) if writer.vocabulary.unknown_id in begin]
    if strange:
        raise InvalidValue("levels", f"their writer does not know the word {strange[0]!r}")
