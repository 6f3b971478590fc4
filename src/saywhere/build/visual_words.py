"""How language/visual_words.tsv is made: words of captions → COCO's 80 classes, by WordNet and by our own names.

A word of a caption, or up to four in a row, belongs to a class if `coco_aliases` calls the class so; or else if the
most frequent sense of its base form in WordNet is the class's synset (a lemma) or a kind of it (a hyponym). Words that
captions use as nouns less than every second time are left out, and those of `EXCLUDED`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from saywhere.atomic import write_atomic
from saywhere.build.wordnet import WordNetNouns, all_kinds
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.types import Progress
from saywhere.language.coco_aliases import coco_aliases, plural
from saywhere.language.phrases import english
from saywhere.language.visual_words import COLUMNS, VisualWord, words_of

# fmt: off
SYNSETS: dict[str, tuple[str, ...]] = {
    "person": ("person.n.01",), "bicycle": ("bicycle.n.01", "tricycle.n.01"), "car": ("car.n.01",),
    "motorcycle": ("motorcycle.n.01",), "airplane": ("airplane.n.01",), "bus": ("bus.n.01",),
    "train": ("train.n.01", "locomotive.n.01"), "truck": ("truck.n.01", "van.n.05"),
    "boat": ("boat.n.01", "ship.n.01", "raft.n.01"), "traffic light": ("traffic light.n.01",),
    "fire hydrant": ("fire hydrant.n.01",), "stop sign": (), "parking meter": ("parking meter.n.01",),
    "bench": ("bench.n.01",), "bird": ("bird.n.01", "bird.n.02"), "cat": ("cat.n.01",), "dog": ("dog.n.01",),
    "horse": ("horse.n.01",), "sheep": ("sheep.n.01",), "cow": ("cattle.n.01",), "elephant": ("elephant.n.01",),
    "bear": ("bear.n.01",), "zebra": ("zebra.n.01",), "giraffe": ("giraffe.n.01",), "backpack": ("backpack.n.01",),
    "umbrella": ("umbrella.n.01",), "handbag": ("handbag.n.01",), "tie": ("necktie.n.01",),
    "suitcase": ("suitcase.n.01", "baggage.n.01"), "frisbee": ("frisbee.n.01",), "skis": ("ski.n.01",),
    "snowboard": ("snowboard.n.01",), "sports ball": ("ball.n.01",), "kite": ("kite.n.03",),
    "baseball bat": ("baseball bat.n.01",), "baseball glove": ("baseball glove.n.01",),
    "skateboard": ("skateboard.n.01",), "surfboard": ("surfboard.n.01",), "tennis racket": ("racket.n.04",),
    "bottle": ("bottle.n.01",), "wine glass": ("wineglass.n.01", "goblet.n.01", "flute.n.02"),
    "cup": ("cup.n.01", "mug.n.04", "tumbler.n.02"), "fork": ("fork.n.01",),
    "knife": ("table knife.n.01", "knife.n.01"), "spoon": ("spoon.n.01",), "bowl": ("bowl.n.01", "bowl.n.03"),
    "banana": ("banana.n.02",), "apple": ("apple.n.01",),
    "sandwich": ("sandwich.n.01",), "orange": ("orange.n.01", "mandarin.n.05"), "broccoli": ("broccoli.n.02",),
    "carrot": ("carrot.n.03",), "hot dog": ("hotdog.n.02", "frank.n.02"), "pizza": ("pizza.n.01",),
    "donut": ("donut.n.01",), "cake": ("cake.n.03",), "chair": ("chair.n.01", "stool.n.01"),
    "couch": ("sofa.n.01",), "potted plant": ("houseplant.n.01", "flowerpot.n.01"), "bed": ("bed.n.01",),
    "dining table": ("table.n.02", "desk.n.01"), "toilet": ("toilet.n.02", "urinal.n.01"),
    "tv": ("television receiver.n.01", "monitor.n.04"), "laptop": ("laptop.n.01",), "mouse": ("mouse.n.04",),
    "remote": ("remote control.n.01",), "keyboard": ("keyboard.n.01",), "cell phone": ("cellular telephone.n.01",),
    "microwave": ("microwave.n.02",), "oven": ("oven.n.01", "stove.n.01"), "toaster": ("toaster.n.02",),
    "sink": ("sink.n.01",), "refrigerator": ("refrigerator.n.01",), "book": ("book.n.01", "book.n.02"),
    "clock": ("clock.n.01",), "vase": ("vase.n.01",), "scissors": ("scissors.n.01",), "teddy bear": ("teddy.n.01",),
    "hair drier": ("hand blower.n.01",), "toothbrush": ("toothbrush.n.01",),
}
# fmt: on
"""Class → the synsets whose lemmas and kinds are its visual words, chosen by hand. WordNet has no stop sign."""

_LEFT_OUT = {
    "captions mean another thing than the sense that WordNet puts first": """
        ball of fire, beater, beef, black and tan, black belt, black sheep, bleacher, boarder, booth, bouncer, bowler,
        boxer, brownie, buff, bunny, calculator, camper, carrier, chap, checker, coaster, collector, comforter,
        commuter, console, conveyor, cooler, counter, crank, cruiser, cub, cutter, cycle, dane, digger, diner, dive,
        duke, dummy, energizer, excavator, flier, folder, fresh fish, fryer, gig, gourmet, grind, grinder,
        hang glider, hanger, hard hat, hood, hulk, hummer, instruction, jumper, killer, lassie, loader, lounge, ma,
        macaroni, man in the street, marine, maroon, master, messenger, mickey, mohawk, pacifier, packer, paddy,
        picket, playboy, pontoon, pop, preserver, prey, printer, protector, punching bag, punk, quad, rake, rocker,
        rover, ruler, saver, semi, server, setter, shepherd, shrimp, ski s, smoothie, speaker, sponsor, spotter,
        squirt, stroller, sub, sucker, sweeper, synthesizer, tank engine, tiger, tinker, trader, viewer, wader,
        washer, whale, white, wine bar""",
    "the name of a team, of a place or of a figure that is drawn": """
        batman, kitty, miami, pirate, sooner, superman, wizard, yankee, zombie""",
    "shaped like a person, and none": "mannequin",
    "eaten, or marked as another class or not at all, on photos of COCO": """
        chicken, cookie, gingerbread, pancake, poultry, tortilla, turkey, waffle, wheelchair""",
    "fewer than one in three photos whose captions have it has a box of the class": """
        bag, coach, desk, glass, telephone, van""",
    "a genitive without its apostrophe": "someones, mans, peoples",
}
EXCLUDED = {
    form: reason
    for reason, words in _LEFT_OUT.items()
    for word in (" ".join(part.split()) for part in words.split(","))
    for form in (word, plural(word))
}
"""Word, singular or plural → why it is no visual word although the rules say so. Found by looking at the result."""

LEAST, LEAST_NAMED = 25, 4
"""In how many captions a word must stand; names of `coco_aliases` may be rarer. Rare kinds are often mistakes."""

_LONGEST = 4
_LOOKED_AT = 20
_AS_NOUN = 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word that may name a class."""

    word: str
    class_name: str
    source: str


class WordClasses:
    """Which class a word of captions belongs to."""

    def __init__(self, nouns: WordNetNouns, synsets: Mapping[str, tuple[str, ...]] = SYNSETS) -> None:
        self._nouns = nouns
        self._roots = {name: frozenset(map(nouns.synset, roots)) for name, roots in synsets.items()}
        self._kinds = {name: all_kinds(nouns, roots) for name, roots in synsets.items()}

    def of(self, word: str) -> Candidate | None:
        """None if the word names no class, or several."""
        called = _called().get(word, frozenset())
        name = next(iter(called)) if len(called) == 1 else ""
        if not name and not called:
            meant = {name for base in self._nouns.bases(word) for name in self._of_sense(self._nouns.senses(base)[0])}
            name = next(iter(meant)) if len(meant) == 1 else ""
        return Candidate(word, name, self._source(word, name)) if name else None

    def _of_sense(self, synset: str) -> set[str]:
        return {name for name, kinds in self._kinds.items() if synset in kinds}

    def _source(self, word: str, name: str) -> str:
        senses = {sense for base in self._nouns.bases(word) for sense in self._nouns.senses(base)}
        if word in (name, plural(name)) or senses & self._roots[name]:
            return "lemma"
        return "hyponym" if senses & self._kinds[name] else "alias"


@cache
def _called() -> Mapping[str, frozenset[str]]:
    """Names of `coco_aliases`, singular and plural → their classes."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, aliases in coco_aliases().items():
        for alias in aliases:
            for form in (alias, plural(alias)):
                found[form].add(name)
    return {form: frozenset(classes) for form, classes in found.items()}


def find_visual_words(
    captions: Sequence[str],
    classes: WordClasses,
    progress: Progress | None = None,
    *,
    least: int = LEAST,
    least_named: int = LEAST_NAMED,
) -> list[VisualWord]:
    """The words that name a class in at least so many captions, in the order of classes and of the alphabet."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[int]] = defaultdict(list)
    found: dict[str, Candidate | None] = {}
    for number, caption in enumerate(captions):
        for word in set(_runs(words_of(caption))):
            if word not in found:
                found[word] = None if word in EXCLUDED else classes.of(word)
            if found[word] is not None:
                counts[word] += 1
                if len(examples[word]) < _LOOKED_AT:
                    examples[word].append(number)
        if progress is not None:
            progress("reading captions", number + 1, len(captions))
    named = _called().keys() & counts.keys()
    known = [one for one in found.values() if one is not None]
    frequent = [one for one in known if counts[one.word] >= (least_named if one.word in named else least)]
    telling = [one for one in frequent if not _says_nothing_new(one, found)]
    asked = {one.word: examples[one.word] for one in telling if one.word not in named}
    nouns = named | _used_as_nouns(asked, captions, progress)
    return sorted(
        (VisualWord(one.word, one.class_name, one.source, counts[one.word]) for one in telling if one.word in nouns),
        key=lambda row: (COCO_CLASSES.index(row.class_name), row.word),
    )


def _says_nothing_new(one: Candidate, found: Mapping[str, Candidate | None]) -> bool:
    """Whether it is a kind whose last word is a name of the class already: "old man", "riding horses"."""
    last = found.get(one.word.rpartition(" ")[2])
    by_hand = one.source != "hyponym" or one.word in _called()
    return " " in one.word and not by_hand and last is not None and last.class_name == one.class_name


def _runs(words: Sequence[str]) -> Iterable[str]:
    """All stretches of up to four words."""
    for at in range(len(words)):
        for end in range(at + 1, min(at + _LONGEST, len(words)) + 1):
            yield " ".join(words[at:end])


def _used_as_nouns(
    examples: Mapping[str, Sequence[int]], captions: Sequence[str], progress: Progress | None
) -> set[str]:
    """Words whose last part is a noun in at least half of the captions looked at."""
    wanted: dict[int, list[str]] = defaultdict(list)
    for word, numbers in examples.items():
        for number in numbers:
            wanted[number].append(word)
    texts = [" ".join(words_of(captions[number])) for number in wanted]
    as_noun: Counter[str] = Counter()
    for done, (doc, words) in enumerate(zip(english().pipe(texts, batch_size=256), wanted.values(), strict=True), 1):
        nouns = {token.text for token in doc if token.pos_ in ("NOUN", "PROPN")}
        as_noun.update(word for word in words if word.split()[-1] in nouns)
        if progress is not None:
            progress("looking for nouns", done, len(texts))
    return {word for word, numbers in examples.items() if as_noun[word] >= _AS_NOUN * len(numbers)}


_ABOUT = """Words of image captions and the class of COCO that each names: word, class, how it was found, and in how
many captions of COCO (val 2017), Flickr8k and Multi30k it stands.
Made by saywhere.build.visual_words with the nouns of WordNet 3.0, which come under this licence:

This software and database is being provided to you, the LICENSEE, by Princeton University under the following license.
By obtaining, using and/or copying this software and database, you agree that you have read, understood, and will comply
with these terms and conditions.: Permission to use, copy, modify and distribute this software and database and its
documentation for any purpose and without fee or royalty is hereby granted, provided that you agree to comply with the
following copyright notice and statements, including the disclaimer, and that the same appear on ALL copies of the
software, database and documentation, including modifications that you make for internal use or for distribution.
WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved.
THIS SOFTWARE AND DATABASE IS PROVIDED "AS IS" AND PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES, EXPRESS
OR IMPLIED. BY WAY OF EXAMPLE, BUT NOT LIMITATION, PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES OF
MERCHANT- ABILITY OR FITNESS FOR ANY PARTICULAR PURPOSE OR THAT THE USE OF THE LICENSED SOFTWARE, DATABASE OR
DOCUMENTATION WILL NOT INFRINGE ANY THIRD PARTY PATENTS, COPYRIGHTS, TRADEMARKS OR OTHER RIGHTS.
The name of Princeton University or Princeton may not be used in advertising or publicity pertaining to distribution of
the software and/or database. Title to copyright in this software, database and any associated documentation shall at
all times remain with Princeton University and LICENSEE agrees to preserve same.
"""


def write_table(path: Path, rows: Iterable[VisualWord]) -> None:
    """Write the file that `saywhere.language.visual_words` reads, atomically."""
    lines = [*(f"# {line}".rstrip() for line in _ABOUT.splitlines()), "\t".join(COLUMNS)]
    lines += [f"{row.word}\t{row.class_name}\t{row.source}\t{row.count}" for row in rows]
    with write_atomic(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
