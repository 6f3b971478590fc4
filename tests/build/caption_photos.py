"""Captions of a few photos by hand, and what is asked of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from saywhere.build.caption_questions import ask_captions

Answers = dict[str, tuple[str, ...]]

OTHERS = [
    ("bike", ["A man rides a bike.", "A man riding a bike on a street."]),
    ("motorcycle", ["A woman riding a motorcycle.", "A lady rides a motorcycle."]),
    ("couch", ["A white dog on a couch.", "A cat is on the couch in a living room."]),
    ("desk", ["A cat on a desk.", "A red cat is sleeping on the desk."]),
    ("zoo", ["A giraffe near a bus.", "A brown horse."]),
]
"""What captions usually say: the wrong things that are asked for are among it."""
YES, NO = ("yes",), ("no",)


def asked(question_type: str, *captions: str, seeds: Iterable[int] = range(8)) -> Answers:
    """Everything of a type that one photo is asked in any of the seeds, with its answers."""
    found: Answers = {}
    for seed in seeds:
        made = ask_captions([("x", captions), *OTHERS], np.random.default_rng(seed), {question_type: 98}, 999)
        found |= {question.text: question.answers for photo, question in made if photo == "x"}
    return found


def answered(found: Answers, answers: tuple[str, ...]) -> set[str]:
    return {text for text, right in found.items() if right == answers}


PHOTOS = [
    ("1", ["A red bus on a street.", "A bus near two dogs.", "Two dogs sit by a bus.", "A bus at night."]),
    ("2", ["A man riding a horse on a beach.", "A man on a brown horse.", "A cowboy rides a horse.", "A man rides."]),
    ("3", ["A cat sleeping on a white couch.", "A cat on a couch in a living room.", "A black cat sleeps on a sofa."]),
    ("4", ["A woman playing tennis.", "A tennis player in a white skirt.", "A woman holding a tennis racket."]),
    ("5", ["A man eating a pizza.", "A man in a blue shirt eats pizza.", "A man wearing a hat is eating a pizza."]),
    ("6", ["A giraffe in a field.", "A tall giraffe stands near a tree.", "A giraffe on a sunny day."]),
    ("7", ["A kitchen with a white stove.", "A kitchen with wooden cabinets.", "A red kettle on the stove."]),
    ("8", ["A woman riding a motorcycle.", "A woman rides a motorcycle on a road.", "A woman on a black motorcycle."]),
    ("9", ["A laptop on a desk.", "A cat lies next to a laptop on a desk.", "A gray cat on a desk."]),
    *OTHERS,
]
