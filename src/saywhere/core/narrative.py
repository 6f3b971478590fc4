"""Narrative: what one person said about one image while pointing at it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from textwrap import shorten

from saywhere.core.alignment import REACH_S, WordBoxes, word_boxes
from saywhere.core.errors import InvalidValue
from saywhere.core.trace import Trace
from saywhere.core.words import Utterance, Word, check_order, split_words

HUMAN = "human"
"""The origin of a narrative that a person spoke or wrote."""
LONGEST_TAG = 35
"""Characters of a language tag, at most."""
_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_NO_TRACE = Trace.from_segments([])


@dataclass(frozen=True, slots=True)
class Narrative:
    """The unit of data. One image may have many, each by its own annotator.

    dataset_id, image_id: which image. annotator_id: who spoke; empty if unknown.
    caption: the whole text, as written. utterances: what was said when, in the order of time; empty if unknown.
    trace: where the speaker pointed; empty if nobody did.
    audio: reference to the recording, as the data set names it; empty if there is none.
    origin: HUMAN, or the name of the model that made it.
    language: of the words, as a tag of BCP 47 such as "en" or "pt-BR"; empty if unknown.

    >>> said = Narrative("139", "a red cup", (Utterance("a red cup", 0, 1),), Trace([(0.1, 0.2, 0.0), (0.3, 0.4, 1.0)]))
    >>> said
    <Narrative of image '139': 'a red cup', 3 words, 2 points, human>
    >>> [word.text for word in said.words]
    ['a', 'red', 'cup']
    """

    image_id: str
    caption: str = ""
    utterances: tuple[Utterance, ...] = ()
    trace: Trace = _NO_TRACE
    dataset_id: str = ""
    annotator_id: str = ""
    audio: str = ""
    origin: str = HUMAN
    language: str = ""

    def __post_init__(self) -> None:
        if not self.image_id:
            raise InvalidValue("narrative", "names no image", "image_id must not be empty")
        object.__setattr__(self, "utterances", tuple(self.utterances))
        check_order(self.utterances)
        if self.language and not is_language(self.language):
            raise InvalidValue("language", f"is {self.language[:50]!r}", "give a tag such as en or pt-BR")

    def __repr__(self) -> str:
        begins = shorten(self.caption, 60, placeholder=" …")
        counts = f"{len(self.words)} words, {len(self.trace)} points"
        return f"<Narrative of image {self.image_id!r}: {begins!r}, {counts}, {self.origin}>"

    @property
    def id(self) -> str:
        """Data set, image and annotator. Not unique where somebody described one image twice."""
        return "/".join(part for part in (self.dataset_id, self.image_id, self.annotator_id) if part)

    @property
    def words(self) -> tuple[Word, ...]:
        """Every word with its window; see `split_words`."""
        return split_words(self.utterances)

    def word_boxes(self, reach_s: float = REACH_S) -> WordBoxes:
        """Where each of `words` is; see `saywhere.core.alignment.word_boxes`."""
        return word_boxes(self.words, self.trace, reach_s)

    @property
    def end_s(self) -> float:
        """When both voice and pointer are done; 0 if there is neither."""
        ends = [u.end_s for u in self.utterances] + ([self.trace.end_s] if len(self.trace) else [])
        return max(ends, default=0.0)

    def between(self, start_s: float, end_s: float) -> Narrative:
        """The words whose middle, and the points whose time, lie in [start_s, end_s). Times stay as they were."""
        said = tuple(
            Utterance(word.text, word.start_s, word.end_s)
            for word in self.words
            if start_s <= (word.start_s + word.end_s) / 2 < end_s
        )
        caption = " ".join(utterance.text for utterance in said)
        return replace(self, caption=caption, utterances=said, trace=self.trace.between(start_s, end_s))


def is_language(tag: str) -> bool:
    """Whether a text is formed like a language tag of BCP 47. Whether there is such a language is not looked up.

    >>> is_language("en"), is_language("pt-BR"), is_language("English, I think")
    (True, True, False)
    """
    return len(tag) <= LONGEST_TAG and _TAG.fullmatch(tag) is not None
