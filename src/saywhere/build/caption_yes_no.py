"""Yes and no about things and the living: always in pairs, so that neither is likelier for any kind of question.

The "no" asks for something usual that the captions rule out: another colour, the other thing that one rides, another
number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from saywhere.build.caption_acts import is_answer
from saywhere.build.caption_drafts import (
    ARE_THERE_N,
    IS_AT,
    IS_COLOUR,
    IS_THIS,
    IS_VERB,
    IS_WORN,
    Pair,
    PhotoAsking,
    indefinite,
    is_it,
    pair,
)
from saywhere.build.caption_facts import CaptionThing
from saywhere.build.caption_scene import CaptionScene, is_class
from saywhere.build.caption_things import colours_said, counted
from saywhere.build.caption_words import APART, CHOSEN_AMONG, FOOD, SEATS, in_line_with, in_lines, listed

_ALIKE_COLOURS = in_lines(
    """red orange pink | gray silver white | tan beige brown gold yellow orange | black gray brown | purple pink
    | blue purple green | white beige silver"""
)
"""Of one line captions may say any of the same thing."""
_COMMON_COLOURS = Counter(("red", "blue", "green", "white", "black", "yellow"))
_ALIKE_THINGS = in_lines(
    """bike motorcycle scooter | wave surfboard board | skateboard board ramp rail | racket ball | bat ball
    | snowboard board ski slope | dog food | phone device camera remote | controller remote game | pizza slice food
    | cake knife food slice piece | horse pony animal | sandwich burger food bread | hot_dog bun food
    | donut pastry food | plane airplane jet | bag purse luggage | fruit banana apple orange food
    | vegetable carrot broccoli food | glass cup drink wine beer bottle | bowl dish food
    | stuffed_animal teddy_bear doll toy"""
)
"""Where captions name one of a line, the others may be held, ridden or eaten as well."""
_VAGUE = listed(
    """food item object thing road street trick something piece board bite pair bunch hand arm lot head slope hill
    track line top way tail meal animal side leaf tree stick string camera back air variety shoulder row group finger
    child shear branch bus train car truck boat plate"""
)
"""Is held, ridden or eaten by many of whom no caption says so, or too odd to ask for."""
_LEAST_USUAL = 2

_AGAINST = {
    **{"sitting": "standing walking running jumping", "standing": "sitting sleeping running laying_down"},
    **{"walking": "sitting sleeping laying_down", "sleeping": "standing running eating walking"},
    **{"laying": "standing running walking", "lying": "standing running walking"},
    **{"running": "sitting sleeping laying_down", "jumping": "sitting sleeping walking"},
    **{"surfing": "skiing sleeping eating", "skiing": "surfing sitting sleeping eating"},
    **{"skateboarding": "sitting sleeping surfing", "snowboarding": "surfing sitting sleeping"},
    **{"eating": "sleeping running", "grazing": "sleeping running", "flying": "sleeping swimming"},
    **{"swimming": "flying sleeping", "smiling": "crying sleeping"},
}
"""What one does → what one does not do then."""
_HINTS = {
    verb: re.compile(rf"\b(?:{starts.replace(' ', '|')})")
    for verb, starts in {
        "sleeping": "sleep rest lay lie lying asleep curl nap",
        "sitting": "sit sat seat rid motorcycle bike table perch rest driv lay lying couch chair bench",
        "standing": "stand stood pos",
        "laying down": "lying lie lay laid rest sleep",
        "walking": "walk stroll cross going mov head",
        "running": "run gallop chas rac play catch jog trot",
        "jumping": "leap air trick jump",
        "eating": "eat food bite biting mouth graz feed chew meal din lunch grass",
        "surfing": "surf wave ocean beach board",
        "skiing": "ski snow",
        "swimming": "swim water",
        "flying": "fly air jump",
        "crying": "cry",
    }.items()
}
"""What somebody may do where a caption has a word that begins like this."""
_SAID = {"laying": "laying down", "lying": "laying down"}
_COUNTED_AS = {"laying down": "laying"}
_NOT_WORN_WITH = {
    **{"hat": "helmet", "cap": "helmet", "helmet": "hat", "suit": "wetsuit uniform", "jacket": "wetsuit"},
    **{"dress": "wetsuit uniform", "uniform": "wetsuit suit", "wetsuit": "suit dress jacket"},
}


def colour_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is the bus red?"."""
    scene = asking.scene
    if scene.is_black_and_white:
        return
    for named, (thing, colour) in colours_said(scene).items():
        known = asking.usual.colours[thing.head] + _COMMON_COLOURS
        alike = in_line_with({colour}, _ALIKE_COLOURS)
        others = {other: count for other, count in known.items() if other not in alike | scene.words | {colour}}
        if " and " not in colour and others:
            start = is_it(named, thing)
            yield pair(f"{start} {colour}?", f"{start} {asking.draw(others)}?", IS_COLOUR)


def object_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is the man riding a horse?"."""
    scene = asking.scene
    for act in scene.facts.acts:
        named = scene.the(act.subject) if act.subject.is_alive and act.verb in CHOSEN_AMONG else None
        shown = indefinite(act.objects[0]) if named and len(act.objects) == 1 else None
        known = asking.usual.objects[act.verb] if shown else {}
        if not named or not shown or known[shown] < _LEAST_USUAL or act.objects[0].head in _VAGUE:
            continue
        others = {other: count for other, count in known.items() if count >= _LEAST_USUAL and _is_new(other, scene)}
        if others:
            start = f"{is_it(named, act.subject)} {act.verb}"
            yield pair(f"{start} {shown}?", f"{start} {asking.draw(others)}?", IS_VERB)


def _is_new(shown: str, scene: CaptionScene) -> bool:
    """Whether no caption names the thing, or what may be called so."""
    whole = re.sub(r"^an? ", "", shown)
    last = whole.split()[-1]
    names = {whole, last, last.removesuffix("s"), last.removesuffix("es")}
    alike = names | in_line_with(names, _ALIKE_THINGS)
    return not names & _VAGUE and not any(name in scene.text for name in alike)


def act_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is the man sitting?"."""
    scene = asking.scene
    done: dict[str, tuple[CaptionThing, set[str]]] = {}
    for act in scene.facts.acts:
        named = scene.the(act.subject) if act.subject.is_alive else None
        # Who flies a kite does not fly.
        if named and (not act.objects or " " in act.verb or act.verb == "eating"):
            done.setdefault(named, (act.subject, set()))[1].add(act.verb.split()[0])
    for named, (subject, verbs) in done.items():
        against = {verb: listed(_AGAINST[verb]) for verb in sorted(verbs & _AGAINST.keys())}
        # Of many some may sit and some may stand; and of one, captions may disagree.
        known = [
            verb
            for verb, others in against.items()
            if not others & verbs and not (subject.plural and any(_HINTS[other].search(scene.text) for other in others))
        ]
        wrong = {
            other: 1 + asking.usual.verbs[_COUNTED_AS.get(other, other)]
            for verb in known
            for other in against[verb]
            if not _HINTS[other].search(scene.text)
        }
        if wrong:
            verb, start = known[int(asking.rng.integers(len(known)))], is_it(named, subject)
            yield pair(f"{start} {_SAID.get(verb, verb)}?", f"{start} {asking.draw(wrong)}?", IS_VERB)


def number_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Are there 2 dogs?"."""
    for _, named, number in counted(asking.scene):
        if number > 1:
            other = number + (1 if number == 2 or asking.chance(0.5) else -1)
            end = asking.pick("", " in the picture")
            yield pair(f"Are there {number} {named}{end}?", f"Are there {other} {named}{end}?", ARE_THERE_N)


def seat_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is the cat on the couch?"."""
    scene = asking.scene
    # A word for one of a line may be said for any of it.
    named_at = in_line_with(scene.words, APART)
    for one in scene.facts.placed:
        thing = one.thing
        is_thing = is_answer(thing) and (thing.kind in FOOD or is_class(thing.name))
        named = scene.the(thing) if is_thing and one.preposition == "on" and one.firm else None
        known = asking.usual.seats[thing.kind]
        others = {seat: count for seat, count in known.items() if seat not in named_at | scene.words}
        if named and others and one.ground.name in SEATS and thing.head not in SEATS:
            start = f"{is_it(named, thing)} on the"
            yield pair(f"{start} {one.ground.name}?", f"{start} {asking.draw(others)}?", IS_AT)


def worn_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is the man wearing a hat?"."""
    scene = asking.scene
    for act in scene.facts.acts:
        is_one = act.verb == "wearing" and act.subject.person and not act.subject.plural
        named = scene.the(act.subject) if is_one else None
        for thing in act.objects if named else ():
            others = sorted(listed(_NOT_WORN_WITH.get(thing.head, "")) - scene.words)
            if named and others and not thing.plural:
                other = others[int(asking.rng.integers(len(others)))]
                start = f"{is_it(named, act.subject)} wearing a"
                yield pair(f"{start} {thing.head}?", f"{start} {other}?", IS_WORN)


def person_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is the person a man?" where one person is there and captions say which."""
    scene = asking.scene
    sexes = {one.person for one in scene.facts.things if one.person}
    for sex, other in (("man", "woman"), ("woman", "man")):
        if scene.people_count == 1 and sex in sexes and sexes <= {sex, "person"}:
            form = asking.pick("Is the person a {}?", "Is this person a {}?", "Is this a {}?")
            yield pair(form.format(sex), form.format(other), IS_THIS)


THING_PAIRS = (colour_pairs, object_pairs, act_pairs, number_pairs, seat_pairs, worn_pairs, person_pairs)
"""All rules for pairs about things and the living."""
