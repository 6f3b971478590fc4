"""Where a picture was taken, as the nouns of what people said (Cafagna et al. 2023).

A sentence without punctuation, stop words and words for the picture itself leaves nouns, and their lemmas are labels:
"the picture is taken in a tennis court" → "tennis court". The paper counts single lemmas ("tennis", "court"), which
calls every court the same; ask with `pairs=()` and `dropped=PAPER_DROPPED` for exactly that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saywhere.language.phrases import english

PAPER_DROPPED = frozenset({"picture"})
"""What the paper adds to spaCy's stop words."""
PICTURE_WORDS = PAPER_DROPPED | {"photo", "photograph", "photography", "pic", "image", "shot", "selfie", "camera"}
"""What names the picture, not the place."""
PLACE_PAIRS = frozenset(
    {
        "amusement park", "baseball court", "baseball diamond", "baseball field", "baseball game", "baseball ground",
        "baseball park", "baseball stadium", "basketball court", "bed room", "bus station", "bus stop", "coffee shop",
        "conference room", "dining area", "dining hall", "dining room", "family room", "fire station",
        "football field", "football ground", "football stadium", "gas station", "golf course", "grocery store",
        "hotel room", "ice rink", "living area", "living room", "meeting room", "parking area", "parking garage",
        "parking lot", "photo studio", "play ground", "race track", "railroad track", "railway station",
        "railway track", "road side", "sea shore", "sitting room", "skate park", "skateboard park", "skating rink",
        "ski area", "ski lift", "ski resort", "ski slope", "soccer field", "soccer stadium", "subway station",
        "swimming pool", "tennis court", "tennis field", "tennis game", "tennis ground", "tennis match",
        "train platform", "train station", "train track", "waiting room",
    }
)  # fmt: skip
"""Places that two nouns name together, as lemmas."""
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class SceneLabels:
    """counts: how often each label is said, in all captions. label: for each row the label that most of its captions
    name, None if no caption has a noun; of equals the one that is more frequent in all rows, then the one said first.
    """

    counts: Counter[str]
    label: dict[str, str | None]


def scene_nouns(
    text: str, *, pairs: Collection[str] = PLACE_PAIRS, dropped: Collection[str] = PICTURE_WORDS
) -> list[str]:
    """The labels in one sentence, in their order: lemmas of nouns, lower case.

    pairs: places of two words that stay together; none for the paper's own labels. dropped: nouns that do not count.
    """
    return scene_nouns_of([text], pairs=pairs, dropped=dropped)[0]


def scene_nouns_of(
    texts: Iterable[str], *, pairs: Collection[str] = PLACE_PAIRS, dropped: Collection[str] = PICTURE_WORDS
) -> list[list[str]]:
    """`scene_nouns` of many sentences."""
    lowered = (" ".join(text.lower().split()) for text in texts)
    return [
        [noun for noun in _labels(doc, pairs) if noun not in dropped]
        for doc in english().pipe(lowered, batch_size=_AT_ONCE)
    ]


def scene_labels(
    rows: Mapping[str, Sequence[str]],
    *,
    pairs: Collection[str] = PLACE_PAIRS,
    dropped: Collection[str] = PICTURE_WORDS,
) -> SceneLabels:
    """The labels of rows of captions, by the rows' ids. A row without captions has the label None."""
    flat = [text for texts in rows.values() for text in texts]
    nouns = iter(scene_nouns_of(flat, pairs=pairs, dropped=dropped))
    said = {row: [next(nouns) for _ in texts] for row, texts in rows.items()}
    counts = Counter(noun for captions in said.values() for one in captions for noun in one)
    return SceneLabels(counts, {row: _commonest(captions, counts) for row, captions in said.items()})


def _commonest(captions: Sequence[Sequence[str]], counts: Counter[str]) -> str | None:
    # A caption that says a word twice names it once.
    votes = Counter(noun for one in captions for noun in dict.fromkeys(one))
    return max(votes, key=lambda noun: (votes[noun], counts[noun]), default=None)


def _labels(doc: Any, pairs: Collection[str]) -> Iterator[str]:
    """Pairs are looked for by their words whatever the tagger says of them: "living" often is no noun to it."""
    tokens = [token for token in doc if not token.is_punct]
    place = 0
    while place < len(tokens):
        token = tokens[place]
        together = f"{token.text} {tokens[place + 1].lemma_}" if place + 1 < len(tokens) else ""
        if together in pairs:
            yield together
            place += 2
            continue
        if token.pos_ in ("NOUN", "PROPN") and not token.is_stop:
            yield token.lemma_
        place += 1
