"""What the writer of levels learns to say: HL's sentences in one manner, and places that captions name in the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saywhere.build.base import plain
from saywhere.build.levels_places import PLACES
from saywhere.core import InvalidValue
from saywhere.language.scene_labels import scene_nouns_of

SCENE_START = "the picture is taken"
"""How one in eight HL answers begins; "in a kitchen", "this is in a kitchen" and the like are brought to it."""
LEVELS = ("scene", "action", "rationale")
PREPOSITIONS = frozenset(
    {
        "in", "on", "at", "inside", "outside", "near", "by", "along", "beside", "under", "across", "behind", "between",
        "around", "over",
    }
)  # fmt: skip
_FRAME = frozenset(
    {
        "the", "this", "that", "it", "a", "there", "here", "he", "she", "they", "i", "we", "picture", "pictures",
        "photo", "photograph", "image", "scene", "pic", "shot", "is", "was", "are", "were", "'s", "has", "been",
        "being", "taken", "clicked", "captured", "snapped", "taking", "took", "place", "located", "situated", "person",
        "people", "man", "woman", "men", "women", "boy", "girl", "subject", "subjects", "somewhere", "standing",
        "sitting",
    }
)  # fmt: skip
"""Talk about the picture and who is in it."""
_WORD = re.compile(r"'s\b|[^\W_]+(?:-[^\W_]+)*")
_ON = frozenset(
    {
        "street", "road", "highway", "sidewalk", "avenue", "crosswalk", "freeway", "curb", "roadside", "road side",
        "pavement", "crossing", "beach", "shore", "coast", "seashore", "tennis court", "court", "baseball field",
        "baseball diamond", "soccer field", "football field", "runway", "tarmac", "bridge", "farm", "ranch", "hill",
        "hillside", "mountain", "mountainside", "slope", "ski slope", "train track", "railroad track", "railway track",
        "track", "platform", "train platform", "dock", "pier", "patio", "lawn",
    }
)  # fmt: skip
_AT = frozenset(
    {
        "airport", "zoo", "train station", "railway station", "station", "subway station", "ski resort", "stadium",
        "baseball game", "baseball stadium", "baseball park", "skate park", "skatepark", "skateboard park",
        "intersection", "tennis match", "tennis game", "arena", "marina",
    }
)  # fmt: skip
_SAID = {
    "wave": "in the ocean", "surf": "in the ocean", "ocean": "in the ocean", "sea": "in the sea",
    "air": "in the sky", "sky": "in the sky", "snow": "in the snow", "wood": "in the woods", "grass": "in a field",
    "home": "in a house", "downtown": "in a city", "den": "in a living room", "court": "on a tennis court",
    "railway": "on a train track", "railroad": "on a train track", "subway": "in a subway station",
    "track": "on a train track", "platform": "at a train station", "station": "at a train station",
    "slope": "on a ski slope", "plain": "in a field", "shore": "on a beach", "coast": "on a beach",
}  # fmt: skip
"""Places that are not said by their own name with "a"."""


def scene_sentence(text: str) -> str | None:
    """An annotator's answer as "the picture is taken in …"; None if it does not say where in that way.

    What comes before the first preposition must be talk about the picture; "that is a kitchen" becomes "in a kitchen".
    "from" is no place: annotators also say "from the front".
    """
    words = _WORD.findall(text.lower())
    for place, word in enumerate(words):
        if word in PREPOSITIONS:
            rest = words[place:]
            return f"{SCENE_START} {' '.join(rest)}" if len(rest) > 1 else None
        if word not in _FRAME:
            bare = place > 0 and words[place - 1] in ("a", "the")
            named = bare and " ".join(words[place:]) in _NAMES
            return f"{SCENE_START} in {' '.join(words[place - 1 :])}" if named else None
    return None


def place_sentence(word: str) -> str:
    """The sentence for a place word of `PLACES`."""
    if word not in _NAMES:
        raise KeyError(word)
    if word in _SAID:
        return f"{SCENE_START} {_SAID[word]}"
    preposition = "on" if word in _ON else "at" if word in _AT else "in"
    article = "an" if word[0] in "aeiou" and not word.startswith("uni") else "a"
    return f"{SCENE_START} {preposition} {article} {word}"


def level_sentence(level: str, text: str) -> str | None:
    """What is learnt from an annotator's text: words in lower case; scenes in one manner, or None."""
    if level == "scene":
        return scene_sentence(text)
    return plain(text) or None


_NAMES = frozenset(name for names in PLACES.values() for name in names)


def well_formed(sentences: Sequence[str]) -> float:
    """The share of sentences that say "the picture is taken in …" with a noun."""
    if not sentences:
        raise InvalidValue("sentences", "there are none")
    nouns = scene_nouns_of(sentences)
    good = (
        text.startswith(f"{SCENE_START} ") and scene_sentence(text) == text and bool(named)
        for text, named in zip(sentences, nouns, strict=True)
    )
    return sum(good) / len(sentences)
