"""What captions say, out of their parse: things with their colours and numbers, who does what, and what is where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from saywhere.build.box_colours import COLOURS
from saywhere.build.caption_words import ANIMALS, NUMBERS, PEOPLE, PLACES, SPELLED
from saywhere.language.nouns import NO_THINGS
from saywhere.language.phrases import english

_AT_ONCE = 256
_LONGEST_NAME = 2
# "A group of dogs" is about dogs. What holds something is a thing of its own: "a bowl of soup".
_PASSED_OVER = NO_THINGS | {"herd", "flock", "crowd", "slice", "stack", "pile", "variety", "assortment", "half", "close"}
# Whole names of which the parser takes the first word for something else than a part of the name.
_NAMES = frozenset(
    (
        *("hot dog", "teddy bear", "stuffed animal", "polar bear", "french fry", "remote control", "living room"),
        *("dining room", "cell phone", "ice cream", "skate park", "double decker", "grizzly bear", "cutting board"),
        *("traffic light", "stop sign", "fire hydrant", "parking meter", "parking lot", "swimming pool"),
    )
)
_ODD_LEMMAS = {"scissor": "scissors", "vas": "vase", "clothe": "clothes", "ski": "skis", "sunglass": "sunglasses"}
_ODD_LEMMAS |= {"short": "shorts", "pant": "pants", "jean": "jeans", "fry": "fries", "giraff": "giraffe"}
_BETWEEN = frozenset(("and", "-", "small", "large", "big", "little", "old", "colored", "wooden", "striped", "young", "tall"))
_DOUBLED = frozenset("sit run cut swim get hit bat put stop jog hug pet spin chop dig grab tip nap wrap".split())
_ODD_STEMS = {"rid": "ride", "lie": "ly", "tie": "ty", "woode": "wood"}
_SIDES = frozenset(("top", "front", "side", "back", "middle", "center", "edge", "corner", "bottom", "inside"))
_WHERE = frozenset(("on", "in", "at", "under", "inside", "behind", "near", "beside", "next to", "in front of", "above"))
_POSED = frozenset("sitting standing laying lying sleeping resting perched parked laid sits placed set seated is".split())


@dataclass(frozen=True, slots=True)
class Thing:
    """One mention of a thing.

    name: in the singular, with what belongs to it ("tennis racket"). head: its last word, in the singular. said: the
    name as it was said. number: None where none is said, 1 for "a". before: the words of the caption right before the
    name that describe it. place: number of the caption, and of the word in it.
    """

    name: str
    head: str
    said: str
    plural: bool
    number: int | None
    colours: tuple[str, ...]
    before: tuple[str, ...]
    place: tuple[int, int]

    @property
    def person(self) -> str:
        """The kind of person, or empty."""
        return PEOPLE.get(self.head, "")

    @property
    def is_alive(self) -> bool:
        return bool(self.person) or self.head in ANIMALS


@dataclass(frozen=True, slots=True)
class Act:
    """Who does what. verb: in -ing, with its preposition where the objects hang on one ("sitting on")."""

    subject: Thing
    verb: str
    objects: tuple[Thing, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """A thing that is somewhere. preposition: "on", "in", "next to", … firm: the caption leaves no doubt that it is
    this thing that is there."""

    thing: Thing
    preposition: str
    ground: Thing
    firm: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """What the captions of one photo say. texts: in lower case, spelled as answers are."""

    texts: tuple[str, ...]
    things: tuple[Thing, ...]
    acts: tuple[Act, ...]
    placed: tuple[Placed, ...]


def facts_of(photos: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, Facts]]:
    """Photo and captions → photo and what they say, in their order; captions of many photos are parsed together."""
    waiting = ((_respelled(caption), photo) for photo, captions in photos for caption in (*captions, ""))
    parsed: list[Any] = []
    for doc, photo in english().pipe(waiting, as_tuples=True, batch_size=_AT_ONCE):
        if len(doc):
            parsed.append(doc)
        else:
            yield photo, facts_in(parsed)
            parsed = []


def facts_in(parsed: Sequence[Any]) -> Facts:
    """What parsed captions of one photo say together."""
    readings = [_Reading(doc, number) for number, doc in enumerate(parsed)]
    return Facts(
        tuple(doc.text for doc in parsed),
        tuple(chain.from_iterable(one.things() for one in readings)),
        tuple(chain.from_iterable(one.acts() for one in readings)),
        tuple(chain.from_iterable(one.placed() for one in readings)),
    )


def _respelled(caption: str) -> str:
    text = " ".join(caption.lower().split())
    return _spelling().sub(lambda found: SPELLED[found[0]], text).rstrip(" .") if text else text


@cache
def _spelling() -> re.Pattern[str]:
    names = sorted(SPELLED, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")


class _Reading:
    """One parsed caption."""

    def __init__(self, doc: Any, number: int) -> None:
        self.doc = doc
        self.number = number
        self._made: dict[int, Thing | None] = {}

    def things(self) -> list[Thing]:
        found = (self.thing(token) for token in self.doc if token.pos_ in ("NOUN", "PROPN") and token.dep_ != "compound")
        return list({one.place: one for one in found if one}.values())

    def thing(self, token: Any) -> Thing | None:
        """The thing that a noun names; of "a group of dogs" the dogs; none if it names nothing to be seen."""
        token = _meant(token)
        if token.i not in self._made:
            self._made[token.i] = self._thing(token)
        return self._made[token.i]

    def _thing(self, token: Any) -> Thing | None:
        lemma = _ODD_LEMMAS.get(token.lemma_, token.lemma_)
        if token.pos_ not in ("NOUN", "PROPN") or lemma in _PASSED_OVER or not token.text.isalpha() or len(lemma) < 3:
            return None
        if token.text.endswith(("standing", "sitting", "walking", "grazing", "holding", "riding")):
            return None
        first = token.i
        while first > self.doc[0].i and token.i - first < _LONGEST_NAME - 1 and self._belongs(first - 1, token):
            first -= 1
        own = [one.text for one in self.doc[first : token.i]]
        before = self._before(first)
        return Thing(
            " ".join((*own, lemma)),
            lemma,
            " ".join((*own, token.text)),
            token.tag_ in ("NNS", "NNPS") or lemma == "people",
            self._number(token),
            tuple(dict.fromkeys(COLOURS[word] for word in before if word in COLOURS)),
            before,
            (self.number, token.i),
        )

    def _belongs(self, at: int, token: Any) -> bool:
        """Whether the word is a part of the name that ends with the token."""
        word = self.doc[at]
        if f"{word.text} {token.lemma_}" in _NAMES:
            return True
        if word.dep_ != "compound" or word.head.i != token.i or not word.text.isalpha():
            return False
        return word.text not in COLOURS and word.text not in NUMBERS and word.pos_ in ("NOUN", "PROPN")

    def _before(self, first: int) -> tuple[str, ...]:
        at = first
        while at > 0:
            word = self.doc[at - 1]
            described = word.dep_ in ("amod", "compound", "nmod") and word.head.i >= first
            if not (word.text in COLOURS or word.text in _BETWEEN or described):
                break
            at -= 1
        words = [word.text for word in self.doc[at:first]]
        # "A man and white dog": the "and" is no part of the dog.
        while words and words[0] in ("and", "-"):
            words.pop(0)
        return tuple(words)

    def _number(self, token: Any) -> int | None:
        words = {child.lower_ for child in token.children if child.dep_ in ("nummod", "det") and child.i < token.i}
        counts = {NUMBERS[word] for word in words if word in NUMBERS}
        if counts:
            return counts.pop()
        return 1 if words & {"a", "an"} and token.tag_ in ("NN", "NNP") else None

    def acts(self) -> Iterator[Act]:
        """Who does what: of verbs with their direct objects, or with what follows their prepositions."""
        for verb in self.doc:
            subject = self._subject(verb) if verb.pos_ == "VERB" else None
            if subject is None or verb.tag_ == "VBN":
                continue
            doing = _ing(verb)
            direct = [child for child in verb.children if child.dep_ == "dobj"]
            yield Act(subject, doing, self._joined(direct[0]) if direct else ())
            particles = [child.text for child in verb.children if child.dep_ == "prt"]
            if direct or particles:
                continue
            for preposition, ground in self._prepositions(verb):
                yield Act(subject, f"{doing} {preposition}", self._joined(ground))

    def _subject(self, verb: Any) -> Thing | None:
        """Who does it. Of "a man in a hat holding a cup" the parser takes the hat: only the living do things."""
        own = [child for child in verb.children if child.dep_ == "nsubj"]
        if own:
            noun = own[0]
            if noun.tag_ in ("WDT", "WP") and verb.dep_ == "relcl":
                noun = verb.head
        elif verb.dep_ in ("acl", "relcl") and verb.tag_ == "VBG":
            noun = verb.head
        elif verb.dep_ in ("conj", "advcl") and verb.head.pos_ == "VERB" and verb.i > verb.head.i:
            return self._subject(verb.head) if verb.dep_ == "conj" or verb.tag_ == "VBG" else None
        elif verb.dep_ == "ROOT" and verb.tag_ == "VBG":
            before = [token for token in verb.lefts if token.pos_ in ("NOUN", "PROPN")]
            if not before:
                return None
            noun = before[-1]
        else:
            return None
        if any(child.dep_ in ("conj", "cc") for child in noun.children):
            return None
        found = self.thing(noun)
        while noun.dep_ == "pobj" and noun.head.dep_ == "prep" and (found is None or not found.is_alive):
            noun = noun.head.head
            above = self.thing(noun) if noun.pos_ in ("NOUN", "PROPN") else None
            if above is None or not above.is_alive:
                break
            found = above
        return found

    def _joined(self, noun: Any) -> tuple[Thing, ...]:
        """The thing and those that are joined to it by "and"."""
        found: list[Thing] = []
        while noun is not None:
            one = self.thing(noun)
            if one is None or "of" in {child.text for child in noun.children} and one.place[1] == noun.i:
                # "A bowl of soup" is held, and both answers are half right.
                return tuple(found) if found else ()
            found.append(one)
            noun = next((child for child in noun.children if child.dep_ == "conj" and child.pos_ in ("NOUN", "PROPN")), None)
        return tuple(found)

    def _prepositions(self, head: Any) -> Iterator[tuple[str, Any]]:
        """What follows a verb or noun with a preposition: "in front of" is one."""
        for child in head.children:
            if child.dep_ == "prep" and child.pos_ in ("ADP", "SCONJ"):
                yield from _followed(child, child.text)
            elif child.text == "next" and child.i > head.i:
                for to in child.children:
                    if to.text == "to":
                        yield from _followed(to, "next to")

    def placed(self) -> Iterator[Placed]:
        """What is where: "a cat on a couch", "a cat sits on it", "there is a cat on a couch", "a couch with a cat on it"."""
        for token in self.doc:
            if token.pos_ in ("NOUN", "PROPN") and token.dep_ != "compound":
                for preposition, ground in self._prepositions(token):
                    yield from self._at(self.thing(token), preposition, self._ground(ground, token), True)
            elif token.pos_ == "VERB" or token.lemma_ == "be":
                yield from self._by_verb(token)

    def _by_verb(self, verb: Any) -> Iterator[Placed]:
        subject = self._holder(verb)
        if subject is None:
            return
        is_busy = any(child.dep_ == "dobj" for child in verb.children)
        is_firm = verb.lemma_ == "be" or verb.text in _POSED or _ing(verb) in _POSED
        for preposition, ground in self._prepositions(verb):
            where = self._ground(ground, verb)
            # Who cuts a cake on a table is not on the table, but who flies a kite in a field is in the field.
            if where and (not is_busy or (where.name in PLACES and preposition in ("in", "at", "on"))):
                yield from self._at(subject, preposition, where, is_firm)

    def _holder(self, verb: Any) -> Thing | None:
        """What a verb says the place of; of passives also."""
        if verb.lemma_ == "be":
            for child in verb.children:
                if child.dep_ == "nsubj" and child.pos_ in ("NOUN", "PROPN"):
                    return self.thing(child)
            there = any(child.dep_ == "expl" for child in verb.children)
            attributes = [child for child in verb.children if child.dep_ == "attr"]
            return self.thing(attributes[0]) if there and attributes else None
        if verb.tag_ == "VBN" and verb.text in _POSED:
            if verb.dep_ == "acl":
                return self.thing(verb.head)
            passive = [child for child in verb.children if child.dep_ in ("nsubjpass", "nsubj")]
            return self.thing(passive[0]) if passive and passive[0].pos_ in ("NOUN", "PROPN") else None
        return None if verb.tag_ == "VBN" else self._subject(verb)

    def _ground(self, noun: Any, head: Any) -> Thing | None:
        """Of "a table with food on it" the table."""
        if noun.text in ("it", "them") and head.dep_ == "pobj" and head.head.text == "with":
            above = head.head.head
            return self.thing(above) if above.pos_ in ("NOUN", "PROPN") else None
        return self.thing(noun) if noun.pos_ in ("NOUN", "PROPN") else None

    def _at(self, thing: Thing | None, preposition: str, ground: Thing | None, firm: bool) -> Iterator[Placed]:
        if thing and ground and thing.place != ground.place and preposition in _WHERE:
            yield Placed(thing, preposition, ground, firm)


def _meant(token: Any) -> Any:
    """Of "a group of dogs" the dogs."""
    for _ in range(3):
        if token.lemma_ not in _PASSED_OVER:
            break
        inner = [
            noun for of in token.children if of.text in ("of", "up") for noun in _below(of) if noun.pos_ in ("NOUN", "PROPN")
        ]
        if not inner:
            break
        token = inner[0]
    return token


def _below(preposition: Any) -> Iterator[Any]:
    for child in preposition.children:
        if child.dep_ == "pobj":
            yield child
        elif child.text == "of":
            yield from _below(child)


def _followed(preposition: Any, text: str) -> Iterator[tuple[str, Any]]:
    """The preposition with the noun that follows; "on top of", "in front of" and "on the side of" are one each."""
    for noun in preposition.children:
        if noun.dep_ != "pobj":
            continue
        inner = [below for of in noun.children if of.text == "of" for below in _below(of)]
        if noun.lemma_ in _SIDES and inner:
            if noun.lemma_ == "front" and text == "in":
                yield "in front of", inner[0]
            elif (text, noun.lemma_) in (("on", "top"), ("in", "middle"), ("in", "center"), ("in", "back")):
                yield text, inner[0]
        elif noun.lemma_ not in _SIDES:
            yield text, noun


@cache
def _ing_of(lemma: str) -> str:
    stem = _ODD_STEMS.get(lemma, lemma)
    if stem in _DOUBLED:
        return f"{stem}{stem[-1]}ing"
    return f"{stem.removesuffix('e') if not stem.endswith('ee') else stem}ing"


def _ing(verb: Any) -> str:
    """The form in -ing: "laying" and "lying" stay as said."""
    return str(verb.text if verb.tag_ == "VBG" else _ing_of(verb.lemma_))
