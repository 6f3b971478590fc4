"""What a speech recogniser gives, and what any of them must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from saywhere.core.types import Progress
from saywhere.language.sound import Sound

ALIGNED_LANGUAGES = ("en",)
"""Languages whose words the forced aligner finds in a recording."""


def is_aligned(language: str) -> bool:
    """Whether the forced aligner finds the words of a language, given by its tag.

    >>> is_aligned("en-GB"), is_aligned("de")
    (True, False)
    """
    return language.partition("-")[0].lower() in ALIGNED_LANGUAGES


@dataclass(frozen=True, slots=True)
class Transcript:
    """text: what was said, as far as it was understood. language: its code, such as "en"."""

    text: str
    language: str


class Recogniser(Protocol):
    """Writes down what is said in a recording."""

    @property
    def name(self) -> str: ...

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages that it knows."""
        ...

    def transcribe(self, sound: Sound, language: str | None, progress: Progress) -> Transcript:
        """language: None if it shall find out. What `progress` raises stops the work."""
        ...
