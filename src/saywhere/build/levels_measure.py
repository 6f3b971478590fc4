"""How far the answers to "where is this picture taken?" go: on photos by places, on HL's rows by their references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from saywhere.build.levels_places import INDOORS, agreed_words, place_words, places_of
from saywhere.build.levels_texts import SCENE_START, scene_sentence
from saywhere.core import InvalidValue
from saywhere.language.scene_labels import scene_nouns_of

Truth = Mapping[str, Counter[str]]
"""For each photo the place words that its captions agree on, with how many captions say each."""


@dataclass(frozen=True, slots=True)
class PlaceScores:
    """Shares from 0 to 1 of the photos with a true place, of which there are `photos`.

    right: the told place is a true one, whatever its name (`PLACES`). exact: by the same word. named: any place is
    told. inside: of photos that are surely indoors or surely outdoors, so is what is told.
    """

    photos: int
    right: float
    exact: float
    named: float
    inside: float


def true_places(captions: Mapping[str, Sequence[str]], least: int = 2) -> dict[str, Counter[str]]:
    """The place words of each photo whose place at least `least` of its captions name; photos without are left out."""
    words = iter(place_words(text for texts in captions.values() for text in texts))
    truth = {photo: agreed_words([next(words) for _ in texts], least) for photo, texts in captions.items()}
    return {photo: counted for photo, counted in truth.items() if counted}


def place_scores(told: Mapping[str, str], truth: Truth) -> PlaceScores:
    """told: a sentence for every photo with a truth; others do not count."""
    if not truth or not truth.keys() <= told.keys():
        raise InvalidValue("told", "has no sentence for some photos with a true place, or there are none")
    right, exact, named, inside, clear = 0, 0, 0, 0, 0
    for photo, words in zip(truth, place_words(told[photo] for photo in truth), strict=True):
        true, places = places_of(truth[photo]), places_of(words)
        right += bool(true & places)
        exact += bool(truth[photo].keys() & set(words))
        named += bool(places)
        where = {place in INDOORS for place in true}
        if len(where) == 1:
            clear += 1
            inside += {place in INDOORS for place in places} == where
    photos = len(truth)
    return PlaceScores(photos, right / photos, exact / photos, named / photos, inside / max(1, clear))


def commonest_place(truth: Truth) -> str:
    """The word that most photos have: what to tell if one always told the same."""
    return Counter(word for words in truth.values() for word in words).most_common(1)[0][0]


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
