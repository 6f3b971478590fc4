"""What captions say, out of their parse: things with their colours and numbers, who does what, and what is where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from saywhere.build.box_colours import COLOURS
from saywhere.build.caption_facts import BACKGROUND, Act, CaptionThing, Facts, Located
from saywhere.build.caption_words import ANIMALS, NUMBERS, PLACES, SPELLED, UNCOUNTABLE, listed, many
from saywhere.language.nouns import NO_THINGS
from saywhere.language.phrases import english

_AT_ONCE = 256
_LONGEST_NAME = 2
_DEEPEST = 3
# "A group of dogs" is about dogs. What holds something is a thing of its own: "a bowl of soup".
_PASSED_OVER = NO_THINGS | listed("herd flock crowd slice stack pile variety assortment half close")
# "A family of elephants" too, but "a family" is people, and "a head" a head.
_PASSED_OVER_WITH_OF = listed("family team head array selection bouquet loaf pack trio picture pair")
# Whole names of which the parser takes the first word for something else than a part of the name.
_NAMES = listed(
    """hot_dog teddy_bear stuffed_animal polar_bear french_fry remote_control living_room dining_room cell_phone
    ice_cream skate_park double_decker grizzly_bear cutting_board traffic_light stop_sign fire_hydrant parking_meter
    parking_lot swimming_pool"""
)
_ODD_LEMMAS = {
    **{"scissor": "scissors", "vas": "vase", "clothe": "clothes", "ski": "skis", "sunglass": "sunglasses"},
    **{"short": "shorts", "pant": "pants", "jean": "jeans", "fry": "fries", "giraff": "giraffe"},
}
_BETWEEN = listed("and - small large big little old colored wooden striped young tall")
_DOUBLED = listed("sit run cut swim get hit bat put stop jog hug pet spin chop dig grab tip nap wrap")
_ODD_STEMS = {"rid": "ride", "lie": "ly", "tie": "ty", "woode": "wood"}
_NO_PARTS = listed("decker wooden wood metal brick baby adult city style")
_HOLDERS = {"plate": "on", "tray": "on"} | dict.fromkeys(listed("bowl glass cup basket vase pot pan mug"), "in")
"""What holds things, with the preposition for what a plate, a bowl … of it holds."""
_SIDES = listed("top front side back middle center edge corner bottom inside")
_WHERE = listed("on in at under inside behind near beside next_to in_front_of above")
_POSED = listed("sitting standing laying lying sleeping resting perched parked laid sits placed set seated is")


def facts_of(photos: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, Facts]]:
    """Photo and captions → photo and what they say, in their order; captions of many photos are parsed together."""
    waiting = ((text, photo) for photo, captions in photos for text in (*filter(None, map(_respelled, captions)), ""))
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
    return _spelling().sub(lambda found: SPELLED[found[0]], text).rstrip(" .")


@cache
def _spelling() -> re.Pattern[str]:
    names = sorted(SPELLED, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")


class _Reading:
    """One parsed caption."""

    def __init__(self, doc: Any, number: int) -> None:
        self.doc = doc
        self.number = number
        self._made: dict[int, CaptionThing | None] = {}

    def things(self) -> list[CaptionThing]:
        found = (
            self.thing(token) for token in self.doc if token.pos_ in ("NOUN", "PROPN") and token.dep_ != "compound"
        )
        return list({one.place: one for one in found if one}.values())

    def thing(self, token: Any) -> CaptionThing | None:
        """The thing that a noun names; of "a group of dogs" the dogs; none if it names nothing to be seen."""
        token = _meant(token)
        if token.i not in self._made:
            self._made[token.i] = self._thing(token)
        return self._made[token.i]

    def _thing(self, token: Any) -> CaptionThing | None:
        lemma = _ODD_LEMMAS.get(token.lemma_, token.lemma_)
        is_thing = lemma not in _PASSED_OVER or lemma == BACKGROUND
        if token.pos_ not in ("NOUN", "PROPN") or not is_thing or not token.text.isalpha() or len(lemma) < 3:
            return None
        if _is_denied(token):
            return None
        if token.text.endswith(("standing", "sitting", "walking", "grazing", "holding", "riding")):
            return None
        first = token.i
        while first > self.doc[0].i and token.i - first < _LONGEST_NAME - 1 and self._belongs(first - 1, token):
            first -= 1
        own = [one.text for one in self.doc[first : token.i]]
        before = self._before(first)
        number = self._number(token)
        # "Two zebra", "two sheep".
        is_mass = lemma in UNCOUNTABLE and token.text == lemma
        is_many = token.tag_ in ("NNS", "NNPS") and not is_mass
        is_plural = is_many or lemma == "people" or (number or 0) > 1
        said = many(lemma) if is_plural and lemma in ANIMALS else token.text
        return CaptionThing(
            " ".join((*own, lemma)),
            lemma,
            " ".join((*own, said)),
            is_plural,
            number,
            tuple(dict.fromkeys(COLOURS[word] for word in before if word in COLOURS)),
            before,
            (self.number, token.i),
        )

    def _belongs(self, at: int, token: Any) -> bool:
        """Whether the word is a part of the name that ends with the token."""
        word = self.doc[at]
        if f"{word.text} {token.lemma_}" in _NAMES:
            return True
        if word.dep_ != "compound" or word.head.i != token.i or not word.text.isalpha() or token.lemma_ in ANIMALS:
            return False
        # Of "an ice cream truck" the truck is all that is sure.
        if any(child.dep_ in ("compound", "amod") for child in word.children):
            return False
        described = word.text in COLOURS or word.text in NUMBERS or word.text in _NO_PARTS
        return not described and word.pos_ in ("NOUN", "PROPN")

    def _before(self, first: int) -> tuple[str, ...]:
        at = first
        while at > 0:
            word = self.doc[at - 1]
            described = word.dep_ in ("amod", "compound", "nmod") and word.head.i >= at and word.tag_ != "VBG"
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
            if subject is None or verb.tag_ == "VBN" or _is_denied(verb):
                continue
            doing = _ing(verb)
            direct = [child for child in verb.children if child.dep_ == "dobj"]
            yield Act(subject, doing, self._joined(direct[0]) if direct else ())
            particles = [child.text for child in verb.children if child.dep_ == "prt"]
            if direct or particles:
                continue
            for preposition, ground in self._prepositions(verb):
                yield Act(subject, f"{doing} {preposition}", self._joined(ground))

    def _subject(self, verb: Any) -> CaptionThing | None:
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
        # Of "two men and a woman sitting" all may sit.
        if noun.dep_ == "conj" or any(child.dep_ in ("conj", "cc") for child in noun.children):
            return None
        found = self.thing(noun)
        while noun.dep_ == "pobj" and noun.head.dep_ == "prep" and (found is None or not found.is_alive):
            noun = noun.head.head
            above = self.thing(noun) if noun.pos_ in ("NOUN", "PROPN") else None
            if above is None or not above.is_alive:
                break
            found = above
        return found

    def _joined(self, noun: Any) -> tuple[CaptionThing, ...]:
        """The thing and those that are joined to it by "and"."""
        found: list[CaptionThing] = []
        while noun is not None:
            one = self.thing(noun)
            if one is None:
                return tuple(found)
            found.append(one)
            noun = next(
                (child for child in noun.children if child.dep_ == "conj" and child.pos_ in ("NOUN", "PROPN")), None
            )
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

    def placed(self) -> Iterator[Located]:
        """What is where: "a cat on a couch", "a cat sits on it", "there is a cat on it", "a couch with a cat on it"."""
        for token in self.doc:
            if token.pos_ in ("NOUN", "PROPN") and token.dep_ != "compound":
                for preposition, ground in self._prepositions(token):
                    yield from self._of_noun(token, preposition, ground)
                yield from self._held(token)
            elif token.pos_ == "VERB" or token.lemma_ == "be":
                yield from self._by_verb(token)

    def _of_noun(self, noun: Any, preposition: str, ground: Any) -> Iterator[Located]:
        if ground.text not in ("it", "them"):
            # "A clock on a wall in front of a house": what follows the wall may be said of the clock.
            is_firm = noun.dep_ != "pobj" or noun.head.text in ("of", "with")
            yield from self._at(self.thing(noun), preposition, self.thing(ground), is_firm)
            return
        # "A table with food and drinks on it": the parser hangs "on it" on any of the three nouns.
        while noun.dep_ == "conj" and noun.head.pos_ in ("NOUN", "PROPN"):
            noun = noun.head
        if noun.dep_ == "pobj" and noun.head.text == "with":
            on, held = noun.head.head, [noun]
        else:
            on, held = noun, [one for word in noun.children if word.text == "with" for one in _below(word)]
        if on.pos_ in ("NOUN", "PROPN"):
            for one in held[:1]:
                for thing in self._joined(one):
                    yield from self._at(thing, preposition, self.thing(on), True)

    def _held(self, noun: Any) -> Iterator[Located]:
        """What is in "a bowl of soup"."""
        if noun.lemma_ in _HOLDERS:
            for of in noun.children:
                if of.text == "of":
                    for inner in _below(of):
                        for thing in self._joined(inner):
                            yield from self._at(thing, _HOLDERS[noun.lemma_], self.thing(noun), True)

    def _by_verb(self, verb: Any) -> Iterator[Located]:
        subject = self._holder(verb)
        if subject is None:
            return
        is_busy = any(child.dep_ == "dobj" for child in verb.children)
        is_firm = verb.lemma_ == "be" or verb.text in _POSED or _ing(verb) in _POSED
        for preposition, ground in self._prepositions(verb):
            where = self.thing(ground)
            # Who cuts a cake on a table is not on the table, but who flies a kite in a field is in the field.
            if where and (not is_busy or (where.name in PLACES and preposition in ("in", "at", "on"))):
                yield from self._at(subject, preposition, where, is_firm)

    def _holder(self, verb: Any) -> CaptionThing | None:
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

    def _at(
        self, thing: CaptionThing | None, preposition: str, ground: CaptionThing | None, firm: bool
    ) -> Iterator[Located]:
        if thing and ground and thing.place != ground.place and preposition in _WHERE:
            yield Located(thing, preposition, ground, firm)


def _is_denied(token: Any) -> bool:
    """ "No dog", "without a dog", "not riding"."""
    if token.dep_ == "pobj" and token.head.text == "without":
        return True
    return any(child.dep_ == "neg" or child.text in ("no", "not") for child in token.children)


def _meant(token: Any) -> Any:
    """Of "a group of dogs" the dogs."""
    for _ in range(_DEEPEST):
        if token.lemma_ not in _PASSED_OVER | _PASSED_OVER_WITH_OF:
            break
        inner = [
            noun
            for of in token.children
            if of.text in ("of", "up")
            for noun in _below(of)
            if noun.pos_ in ("NOUN", "PROPN")
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
