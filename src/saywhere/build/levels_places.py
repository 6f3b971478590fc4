"""Places by their many names, so that "in the street" and "on a road" are one answer.

`PLACES` is what "the same place" means wherever places are compared: in the texts that the writer of levels learns
from, and in what is measured on photos.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from saywhere.language.phrases import english
from saywhere.language.scene_labels import PLACE_PAIRS

PLACES: dict[str, tuple[str, ...]] = {
    "airport": ("airport", "runway", "tarmac", "airfield", "airstrip"),
    "baseball field": (
        "baseball field", "baseball diamond", "baseball ground", "baseball court", "baseball stadium", "baseball park",
        "baseball game",
    ),
    "bathroom": ("bathroom", "restroom", "washroom"),
    "beach": ("beach", "shore", "seashore", "sea shore", "coast", "seaside", "shoreline"),
    "bedroom": ("bedroom", "bed room", "hotel room"),
    "bridge": ("bridge",),
    "church": ("church", "cathedral"),
    "city": ("city", "town", "downtown", "village"),
    "desert": ("desert",),
    "dining room": ("dining room", "dining area", "dining hall"),
    "farm": ("farm", "barn", "ranch", "stable"),
    "field": ("field", "meadow", "pasture", "grassland", "plain", "savanna", "savannah", "prairie", "grass"),
    "forest": ("forest", "wood", "jungle"),
    "house": ("house", "home", "room", "apartment"),
    "kitchen": ("kitchen", "kitchenette"),
    "lake": ("lake", "river", "pond", "stream", "creek", "harbor", "harbour", "marina", "dock", "pier", "canal"),
    "living room": ("living room", "living area", "sitting room", "family room", "lounge", "den"),
    "mountain": ("mountain", "hill", "hillside", "mountainside", "cliff"),
    "museum": ("museum",),
    "office": ("office", "cubicle", "conference room", "meeting room", "workplace"),
    "park": ("park", "playground", "play ground"),
    "parking lot": ("parking lot", "parking area", "parking garage", "garage"),
    "restaurant": (
        "restaurant", "cafe", "café", "diner", "bar", "pub", "pizzeria", "cafeteria", "coffee shop", "bistro",
    ),
    "school": ("school", "classroom", "university", "library"),
    "sea": ("sea", "ocean", "wave", "surf"),
    "skate park": ("skate park", "skatepark", "skateboard park"),
    "sky": ("sky", "air"),
    "snow": ("snow", "slope", "ski slope", "ski resort", "ski area", "ski lift"),
    "soccer field": ("soccer field", "football field", "football ground", "soccer stadium", "football stadium"),
    "stadium": ("stadium", "arena"),
    "store": ("store", "shop", "market", "supermarket", "mall", "grocery store", "bakery", "marketplace"),
    "street": (
        "street", "road", "roadside", "road side", "highway", "sidewalk", "intersection", "avenue", "crosswalk",
        "crossing", "pavement", "freeway", "alley", "curb",
    ),
    "swimming pool": ("swimming pool", "pool"),
    "tennis court": ("tennis court", "tennis ground", "tennis field", "tennis match", "tennis game", "court"),
    "train station": (
        "train station", "railway station", "subway station", "station", "train platform", "platform", "subway",
        "train track", "railroad track", "railway track", "track", "railway", "railroad",
    ),
    "yard": ("yard", "backyard", "garden", "lawn", "patio", "courtyard"),
    "zoo": ("zoo", "enclosure", "exhibit"),
}  # fmt: skip
"""Each place with the lemmas that name it."""
_PLACE_OF = {name: place for place, names in PLACES.items() for name in names}
_AT_ONCE = 256


def place_words(texts: Iterable[str]) -> list[list[str]]:
    """For each text the lemmas in it that name a place, in their order: heads only, so a street sign is no street."""
    lowered = (" ".join(text.lower().split()) for text in texts)
    return [_words(doc) for doc in english().pipe(lowered, batch_size=_AT_ONCE)]


def places_of(words: Iterable[str]) -> set[str]:
    """The places that some of the words name."""
    return {_PLACE_OF[word] for word in words if word in _PLACE_OF}


def agreed_words(captions: Sequence[Sequence[str]], least: int = 2) -> Counter[str]:
    """Of the place words in each of a photo's captions: those whose place at least `least` captions name, with how
    many captions say each."""
    votes = Counter(place for words in captions for place in places_of(words))
    said = Counter(word for words in captions for word in dict.fromkeys(words))
    return Counter({word: count for word, count in said.items() if votes[_PLACE_OF[word]] >= least})


def _words(doc: Any) -> list[str]:
    tokens = [token for token in doc if not token.is_punct]
    found = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        together = f"{token.text} {tokens[place + 1].lemma_}" if place + 1 < len(tokens) else ""
        last = place + 1 if together in PLACE_PAIRS else place
        name = together if last > place else token.lemma_
        noun = tokens[last].pos_ in ("NOUN", "PROPN") and tokens[last].dep_ != "compound"
        if noun and name in _PLACE_OF:
            found.append(name)
        place = last + 1
    return found
