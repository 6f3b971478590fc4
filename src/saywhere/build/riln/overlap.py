"""How much of a text evaluation text has already, in 5-grams."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

N = 5
MOST_OVERLAP = 0.05
"""From this share of known 5-grams on, an example is dropped."""

_PATH = re.compile(r"<\s*/?\s*traj\s*>|\([0-9\s,.]*\)")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def grams(text: str) -> list[str]:
    """The 5-grams of a text: words in lower case, without signs and paths; none if there are fewer than five words."""
    words = [word.replace("’", "'") for word in _WORD.findall(_PATH.sub(" ", text).lower())]
    return [" ".join(words[i : i + N]) for i in range(len(words) - N + 1)]


@dataclass(slots=True)
class EvaluationText:
    """Which 5-grams evaluation text has. Kept as hashes of eight bytes, so that millions fit into memory."""

    sentences: int = 0
    digest: str = ""
    _known: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, sentences: Iterable[str]) -> EvaluationText:
        text, content = cls(), hashlib.sha256()
        for sentence in sentences:
            text.sentences += 1
            content.update(sentence.encode("utf-8", "backslashreplace") + b"\n")
            text._known.update(map(_short, grams(sentence)))
        text.digest = content.hexdigest() if text.sentences else ""
        return text

    def __len__(self) -> int:
        return len(self._known)

    def shared(self, texts: Iterable[str]) -> tuple[int, int]:
        """How many 5-grams of these texts it has, and how many they are."""
        all_grams = [gram for text in texts for gram in grams(text)]
        return sum(_short(gram) in self._known for gram in all_grams), len(all_grams)


def _short(gram: str) -> bytes:
    return hashlib.blake2b(gram.encode("utf-8", "backslashreplace"), digest_size=8).digest()
