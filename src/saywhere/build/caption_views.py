"""What captions say of where things are, and of the photo as a whole: its place, sport, time and weather.

Each rule gives all questions of its kind about one photo, with answers that captions say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from saywhere.build.caption_acts import is_answer, is_ground, who_answers
from saywhere.build.caption_drafts import (
    PLACE,
    ROOM,
    SPORT,
    WEATHER,
    WHAT_AT,
    WHEN,
    WHERE,
    WHO,
    CaptionDraft,
    PhotoAsking,
    be,
)
from saywhere.build.caption_facts import BACKGROUND, CaptionThing, Located
from saywhere.build.caption_scene import CaptionScene, is_class, ranked, ranked_things
from saywhere.build.caption_words import (
    ABSTRACT,
    ANIMALS,
    COLOURABLE,
    FOOD,
    GROUNDS,
    NO_ANSWER,
    PLACES,
    PLAYED,
    VEHICLES,
    WEARABLES,
    listed,
)

_EXACT = listed("on in under behind next_to in_front_of above")
_WHERE = listed("on in at under")
_FLAT = listed("desk table counter countertop plate shelf bench tennis_court baseball_field court")
"""What is in the middle of these is on them."""
_WIDE = PLACES | listed("water air sky grass snow ground dirt sand wall hill floor")
"""More than one thing is there, so that only animals, vehicles and kites are asked for."""
_SEEN_IN_WIDE = ANIMALS.keys() | VEHICLES.keys() | {"kite"}
_SOUGHT = COLOURABLE | FOOD.keys() | listed("food meal rice fries meat bread soup salad wine coffee")
_NOT_SOUGHT = listed(
    "light wave tree building house mountain water snow sky wall floor roof door tile bridge tower pole"
)
_MOST_PLACES = 2
_ALSO_SAID = {"day": ("daytime", "day"), "evening": ("evening", "dusk"), "sunset": ("sunset", "evening", "dusk")}
_LONGEST_PLACE = 2


def where(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "Where is the cat?", answered by "couch" and "on couch"."""
    scene = asking.scene
    found: dict[str, list[Located]] = defaultdict(list)
    for one in scene.facts.placed:
        is_at = one.preposition != "at" or one.thing.is_alive or one.ground.name in PLACES
        if one.preposition in _WHERE and is_at and is_ground(one.ground) and _may_be_sought(one.thing):
            named = scene.the(one.thing)
            if named:
                found[named].append(one)
    for named, some in found.items():
        bare = ranked(one.ground.said if one.ground.name in GROUNDS else one.ground.said.split()[-1] for one in some)
        full = ranked(_at(one) for one in some if len(one.ground.said.split()) <= _LONGEST_PLACE)[:_MOST_PLACES]
        # Who is under an umbrella is not "umbrella".
        answers = full if some[0].preposition == "under" else (*bare[:_MOST_PLACES], *full)
        yield CaptionDraft(f"Where {be(named, some[0].thing)}?", WHERE, answers)


def _at(one: Located) -> str:
    preposition = "on" if one.preposition == "in" and one.ground.name in _FLAT else one.preposition
    return f"{preposition} {one.ground.said}"


def _may_be_sought(thing: CaptionThing) -> bool:
    is_none = thing.name in PLACES or thing.head in WEARABLES | ABSTRACT | NO_ANSWER | _NOT_SOUGHT
    return not is_none and (thing.is_alive or thing.head in _SOUGHT or is_class(thing.name))


def what_is_there(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What is on the table?", "What is in the background?"; of people "Who is on the bench?"."""
    scene = asking.scene
    found: dict[tuple[str, str], list[CaptionThing]] = defaultdict(list)
    for one in scene.facts.placed:
        if one.preposition in _EXACT and one.thing.head not in WEARABLES - {"skis"}:
            is_background = one.ground.head == BACKGROUND and one.preposition == "in" and not one.thing.person
            named = "the background" if is_background else _named_ground(scene, one)
            if named and (is_answer(one.thing) or one.thing.person):
                found[one.preposition, named].append(one.thing)
    for (preposition, named), things in found.items():
        seen = [thing for thing in things if not thing.person]
        if seen:
            yield CaptionDraft(f"What is {preposition} {named}?", WHAT_AT, ranked_things(seen))
        elif preposition in ("on", "in") and not all(thing.plural for thing in things):
            yield CaptionDraft(f"Who is {preposition} {named}?", WHO, who_answers(things))


def _named_ground(scene: CaptionScene, one: Located) -> str | None:
    """None where the place is as wide as the photo, so that the thing is not all that is there, or is doubtful."""
    thing, ground = one.thing, one.ground
    is_inside = one.preposition in ("on", "in")
    is_odd = thing.name in PLACES or (thing.head in ("building", "wall", "tree") and ground.head == "pole")
    if is_odd or not one.firm or ground.head in WEARABLES | ABSTRACT | NO_ANSWER | {BACKGROUND}:
        return None
    if is_inside and not is_ground(ground):
        return None
    if ground.name in _WIDE and not (is_inside and thing.kind in _SEEN_IN_WIDE):
        return None
    if ground.is_alive and (is_inside or one.preposition in ("under", "above")):
        return None
    return scene.the(ground)


def rooms_and_places(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What room is this?", "Where was this picture taken?"."""
    scene = asking.scene
    if scene.room:
        texts = ("What kind of room is this?", "What type of room is this?", "Which room is this?")
        yield CaptionDraft(asking.pick("What room is this?", *texts), ROOM, (scene.room,))
    elif scene.place:
        texts = ("Where is this?", "Where was this picture taken?", "Where was this photo taken?")
        yield CaptionDraft(asking.pick(*texts), PLACE, scene.place)


def sports(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What sport is this?"."""
    sport = asking.scene.sport
    if sport == "wii":
        if "wii" in asking.scene.words:
            text = asking.pick("What game are they playing?", "What game system is being played?")
            yield CaptionDraft(text, SPORT, (sport,))
    elif sport in PLAYED:
        texts = ("What sport is being played?", "What sport are they playing?", "What game is being played?")
        yield CaptionDraft(asking.pick("What sport is this?", *texts), SPORT, (sport,))
    elif sport and sport != "kite flying":
        yield CaptionDraft(asking.pick("What sport is this?", "What sport is shown?"), SPORT, (sport,))


def time_and_weather(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What time of day is it?", "What is the weather like?"."""
    scene = asking.scene
    if len(scene.times) == 1 and not (scene.room and "night" in scene.times):
        (time,) = scene.times
        text = asking.pick("What time of day is it?", "What time of day is this?")
        yield CaptionDraft(text, WHEN, _ALSO_SAID.get(time, (time,)))
    if len(scene.weather) == 1:
        text = asking.pick("What is the weather like?", "How is the weather?", "What's the weather like?")
        yield CaptionDraft(text, WEATHER, tuple(scene.weather))


def snow(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What season is it?" where people ski, and "What is on the ground?"."""
    scene = asking.scene
    if scene.sport in ("skiing", "snowboarding") and "snow" in scene.words and "water" not in scene.words:
        yield CaptionDraft(asking.pick("What season is it?", "What season is this?"), WHEN, ("winter",))
        yield CaptionDraft(asking.pick("What is on the ground?", "What is covering the ground?"), WHAT_AT, ("snow",))


VIEWS = (where, what_is_there, rooms_and_places, sports, time_and_weather, snow)
"""All rules about places and whole photos."""
