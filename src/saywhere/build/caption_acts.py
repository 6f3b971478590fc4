"""What captions say of the living: what they do, to what, who does it, and what they wear.

Each rule gives all questions of its kind about one photo, with answers that captions say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from saywhere.build.caption_drafts import DOING, WEARING, WHAT_VERB, WHO, CaptionDraft, PhotoAsking, be
from saywhere.build.caption_facts import BACKGROUND, Act, CaptionThing
from saywhere.build.caption_scene import CaptionScene, answers_of, ranked, ranked_things
from saywhere.build.caption_words import (
    ABSTRACT,
    ANIMALS,
    GROUNDS,
    HEADWEAR,
    NO_ANSWER,
    PEOPLE,
    PLACES,
    PLAYED,
    WEARABLES,
    listed,
)

_ALONE = listed(
    """surfing skiing skateboarding snowboarding skating eating walking sitting standing sleeping laying lying resting
    running jumping flying grazing swimming drinking cooking reading driving talking smiling posing swinging paddling
    kneeling crouching wading waiting kissing hugging dancing racing working texting bathing batting pitching playing
    fishing shopping cutting biking bicycling yawning barking relaxing sailing floating riding boarding landing
    climbing squatting herding shearing napping crossing diving"""
)
"""Enough of an answer without an object."""
_STILL = listed("standing sitting posing waiting laying lying resting playing riding smiling")
"""What is answered only where captions say nothing else that is done."""
_WITH_OBJECT = listed(
    """flying cutting brushing feeding throwing catching hitting walking watching reading pulling carrying herding
    petting kicking chasing pushing washing preparing swinging cooking crossing serving milking shearing"""
)
_SAYS_ENOUGH = listed("eating reading cooking drinking")
_BY_RIDING = {
    **{"wave": ("surfing",), "surfboard": ("surfing",), "skateboard": ("skateboarding",)},
    **{"snowboard": ("snowboarding",), "skis": ("skiing",), "board": ()},
}
_PLAYED_WITH = frozenset(PLAYED) | listed("video_game frisbee")
_ON_WHAT = listed(
    """riding holding eating wearing carrying throwing watching flying cutting pulling driving feeding drinking reading
    catching kicking brushing petting chasing pushing using hitting swinging"""
)
_ON_WHAT_AT = frozenset(
    f"{verb} {preposition}"
    for verb, prepositions in {
        **{"sitting": "on in at under", "standing": "on in under behind", "leaning": "on against", "looking": "at out"},
        **{"laying": "on in", "lying": "on in", "sleeping": "on in", "resting": "on", "perched": "on", "riding": "on"},
        **{"walking": "on", "playing": "with", "talking": "on", "eating": "from", "drinking": "from"},
    }.items()
    for preposition in prepositions.split()
)
_RESTING = listed("sitting standing laying sleeping resting perched")
_AS_ASKED = {"lying": "laying", "looking out": "looking out of"}
_NOT_EATEN = listed("plate bowl glass cup mug table tray dog cat horse dish basket")
_MANY_WORN = listed("glove shoe boot sock")
_MOST_DOINGS = 3
_LONGEST_OBJECT = 2
_ASKED_FOR = {"man": "man or a woman", "woman": "man or a woman", "boy": "boy or a girl", "girl": "boy or a girl"}


def doing(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What is the man doing?", of the living."""
    scene = asking.scene
    done: dict[str, list[tuple[CaptionThing, tuple[str, ...]]]] = defaultdict(list)
    for act in scene.facts.acts:
        named = scene.the(act.subject) if act.subject.is_alive else None
        answers = _activity(act, scene)
        if named and answers:
            done[named].append((act.subject, answers))
    for named, some in done.items():
        subject = some[0][0]
        answers = ranked(answer for _, one in some for answer in one)
        moving = [answer for answer in answers if answer not in _STILL]
        if not moving and subject.person and scene.sport:
            moving = [f"playing {scene.sport}" if scene.sport in PLAYED else scene.sport]
        ranks = (*moving, *(answer for answer in answers if answer in _STILL))
        yield CaptionDraft(f"What {be(named, subject)} doing?", DOING, ranks[:_MOST_DOINGS])


def _activity(act: Act, scene: CaptionScene) -> tuple[str, ...]:
    """What people answer; nothing where the act says too little of it."""
    verb = act.verb
    if not act.objects:
        if verb == "playing":
            return (f"playing {scene.sport}",) if scene.sport in PLAYED else ()
        return (verb,) if verb in _ALONE and (verb != "flying" or act.subject.head in ANIMALS) else ()
    thing = act.objects[0]
    said = answers_of(thing)[0]
    if verb in ("riding", "riding on"):
        return _BY_RIDING.get(thing.head, () if thing.head in ABSTRACT else (f"riding {said}", "riding"))
    if verb in _SAYS_ENOUGH:
        return (verb,)
    if verb == "playing":
        return (f"playing {said}",) if thing.name in _PLAYED_WITH else ()
    if verb == "talking on" and thing.head in ("phone", "telephone"):
        return ("talking on phone",)
    if verb == "walking" and thing.head != "dog":
        return ()
    is_short = len(said.split()) <= _LONGEST_OBJECT
    is_said = verb in _WITH_OBJECT and is_short and thing.head not in ABSTRACT | NO_ANSWER | PEOPLE.keys()
    return (f"{verb} {said}",) if is_said else ()


def acted_on(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What is the man riding?", "What is the cat sitting on?"."""
    scene = asking.scene
    found: dict[tuple[str, bool, str], list[CaptionThing]] = defaultdict(list)
    for act in scene.facts.acts:
        named = scene.the(act.subject) if act.subject.is_alive and act.objects else None
        if named and (act.verb in _ON_WHAT or act.verb in _ON_WHAT_AT):
            first, _, rest = act.verb.partition(" ")
            found[named, act.subject.plural, f"{_AS_ASKED.get(first, first)} {rest}".rstrip()].extend(act.objects)
    for (named, is_many, verb), things in found.items():
        some = [one for one in things if verb not in ("eating", "drinking") or one.head not in _NOT_EATEN]
        if some and all(_may_answer(verb, one, is_many) for one in some):
            text = f"What {'are' if is_many else 'is'} {named} {_AS_ASKED.get(verb, verb)}?"
            yield CaptionDraft(text, WEARING if verb == "wearing" else WHAT_VERB, ranked_things(some))


def _may_answer(verb: str, thing: CaptionThing, is_many: bool) -> bool:
    if verb == "wearing":
        return thing.head in WEARABLES and (is_many or not thing.plural or _is_pair(thing))
    return is_answer(thing) and (verb.split()[0] not in _RESTING or is_ground(thing))


def _is_pair(thing: CaptionThing) -> bool:
    """ "glasses", "skis": many of one."""
    return thing.head in _MANY_WORN or thing.said.endswith(thing.head)


def is_answer(thing: CaptionThing) -> bool:
    """Whether it is a thing to be seen, and says what it is."""
    return not thing.person and thing.head not in ABSTRACT | NO_ANSWER | {BACKGROUND}


def is_ground(thing: CaptionThing) -> bool:
    """Whether other things can be on it, in it or at it."""
    return thing.name in GROUNDS or thing.head in GROUNDS - PLACES


def who(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "Who is riding the horse?"."""
    scene = asking.scene
    found: dict[str, list[CaptionThing]] = defaultdict(list)
    for act in scene.facts.acts:
        if act.subject.person and act.verb in _ON_WHAT and act.verb != "wearing" and len(act.objects) == 1:
            thing = act.objects[0]
            named = scene.the(thing) if is_answer(thing) else None
            if named:
                found[f"{act.verb} {named}"].append(act.subject)
    for done, subjects in found.items():
        yield CaptionDraft(f"Who is {done}?", WHO, who_answers(subjects))


def man_or_woman(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "Is this a man or a woman?" where one person is there, and at least two captions say which."""
    persons = [one for one in asking.scene.facts.things if one.person in _ASKED_FOR]
    if asking.scene.people_count == 1 and len(persons) > 1 and len({one.person for one in persons}) == 1:
        yield CaptionDraft(f"Is this a {_ASKED_FOR[persons[0].person]}?", WHO, (persons[0].person,))


def who_answers(persons: Sequence[CaptionThing]) -> tuple[str, ...]:
    """What people answer: as captions say it, then the kind of person where it is clear."""
    known = (one.person for one in persons if one.person in ("man", "woman", "boy", "girl", "child") and not one.plural)
    return tuple(dict.fromkeys((*ranked_things(persons), *known)))


def headwear(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What is on the man's head?"."""
    scene = asking.scene
    found: dict[str, list[CaptionThing]] = defaultdict(list)
    for act in scene.facts.acts:
        named = scene.the(act.subject) if act.verb == "wearing" and act.subject.person else None
        worn = [thing for thing in act.objects if thing.head in HEADWEAR]
        if named and worn and not act.subject.plural:
            found[named].extend(worn)
    for named, things in found.items():
        yield CaptionDraft(f"What is on {named}'s head?", WEARING, ranked_things(things))


ACTS = (doing, acted_on, who, man_or_woman, headwear)
"""All rules about what the living do."""
