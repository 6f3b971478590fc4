"""Yes and no about the photo as a whole, in pairs: what is there, what it shows, where and when it was taken.

That captions do not name a thing only means that it is not there for what nobody leaves out: an elephant, a bus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from saywhere.build.caption_drafts import IS_IT, IS_SPORT, IS_THERE, IS_THIS, Pair, PhotoAsking, pair
from saywhere.build.caption_scene import CaptionScene
from saywhere.build.caption_words import (
    ANIMALS,
    FOOD,
    NOT_REAL,
    PLAYED,
    ROOMS,
    UNCOUNTABLE,
    VEHICLES,
    in_line_with,
    in_lines,
    listed,
)
from saywhere.build.region_texts import with_article

_NEVER_LEFT_OUT = listed(
    """dog cat horse cow elephant bear zebra giraffe bus train airplane pizza toilet bed surfboard kite skateboard
    snowboard frisbee fire_hydrant stop_sign cake motorcycle teddy_bear umbrella laptop sandwich"""
)
"""Classes of COCO that captions name where they are."""
_ROOMS_LIKE_OTHERS = listed("dining_room living_room office")
"""A part of a larger room, or what another caption calls otherwise: not asked for."""
_LOOK_ALIKE = in_lines(
    "cow sheep horse goat deer donkey | car truck bus van | bike motorcycle | dog bear lion cat tiger"
)
_LEAST_SHOWN = 3
_COLOURED_SHARE = 0.05
"""Share of the photos with colours that are asked whether they are in colour."""
_COLOURS = listed("red blue green yellow")


def presence_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is there a dog in the picture?"."""
    scene, usual = asking.scene, asking.usual
    if scene.words & NOT_REAL - {"stuffed"}:
        return
    there = [name for name in sorted(scene.classes & _NEVER_LEFT_OUT) if _is_named(name, scene)]
    near = sum((usual.near[name] for name in sorted(scene.classes) if name in usual.near), Counter[str]())
    absent = {
        name: 1 + near[name]
        for name in _NEVER_LEFT_OUT - scene.classes
        if usual.classes[name] and scene.words.isdisjoint(name.split())
    }
    for name in there:
        if absent:
            other = asking.draw(absent)
            del absent[other]
            end = asking.pick("", " in the picture", " in this photo", " in the image")
            yield pair(f"Is there {with_article(name)}{end}?", f"Is there {with_article(other)}{end}?", IS_THERE)


def _is_named(name: str, scene: CaptionScene) -> bool:
    return any(name in (thing.name, thing.kind, ANIMALS.get(thing.kind)) for thing in scene.facts.things)


def kind_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is this a giraffe?"."""
    scene, classes = asking.scene, asking.usual.classes
    for table in (ANIMALS, VEHICLES, FOOD):
        found = scene.only(table, _LEAST_SHOWN)
        if not found or found[0] not in classes or any(one.plural for one in found[1]):
            continue
        kind = found[0]
        alike = in_line_with({kind}, _LOOK_ALIKE) | scene.classes | {kind}
        others = {
            name: classes[name]
            for name in table.values()
            if name in classes and name not in alike and name not in scene.text
        }
        if others:
            yield pair(f"Is this {_one(kind)}?", f"Is this {_one(asking.draw(others))}?", IS_THIS)


def _one(name: str) -> str:
    return name if name in UNCOUNTABLE | {"pizza"} else with_article(name)


def room_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is this a kitchen?"."""
    room = asking.scene.room
    if room and room not in _ROOMS_LIKE_OTHERS:
        other = asking.draw({name: 1 for name in ROOMS.values() if name != room and name not in _ROOMS_LIKE_OTHERS})
        yield pair(f"Is this {with_article(room)}?", f"Is this {with_article(other)}?", IS_THIS)


def inside_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is this indoors?"."""
    if asking.scene.is_inside is None:
        return
    inside = asking.pick("Is this indoors?", "Is this inside?", "Was this photo taken indoors?")
    outside = asking.pick("Is this outdoors?", "Is this outside?", "Was this photo taken outside?")
    yield pair(inside, outside, IS_IT) if asking.scene.is_inside else pair(outside, inside, IS_IT)


def weather_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is it sunny?", "Is it daytime?"."""
    scene = asking.scene
    sunny = asking.pick("Is it sunny?", "Is it a sunny day?")
    rainy, cloudy = "Is it raining?", asking.pick("Is it cloudy?", "Is it a cloudy day?")
    if scene.weather == {"sunny"}:
        yield pair(sunny, asking.pick(rainy, cloudy), IS_IT)
    elif scene.weather in ({"rainy"}, {"cloudy"}):
        yield pair(rainy if "rainy" in scene.weather else cloudy, sunny, IS_IT)
    day, night = "Is it daytime?", asking.pick("Is it night time?", "Is it nighttime?", "Is it dark outside?")
    if scene.times == {"night"} and not scene.room:
        yield pair(night, asking.pick(day, sunny), IS_IT)
    elif scene.times == {"day"}:
        yield pair(day, night, IS_IT)


def film_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Is the photo in black and white?"."""
    scene = asking.scene
    gray = asking.pick("Is the image in black and white?", "Is this photo in black and white?")
    coloured = asking.pick("Is this picture in color?", "Is the photo in color?")
    if scene.is_black_and_white:
        yield pair(gray, coloured, IS_IT)
    elif scene.words & _COLOURS and asking.chance(_COLOURED_SHARE):
        yield pair(coloured, gray, IS_IT)


def sport_pairs(asking: PhotoAsking) -> Iterator[Pair]:
    """ "Are they playing tennis?"."""
    scene = asking.scene
    played = [sport for sport in PLAYED if sport != "wii"]
    if scene.sport in played:
        other = asking.draw({sport: 1 for sport in played if sport not in scene.sports})
        form = asking.pick("Are they playing {}?", "Is this {}?", "Is this a {} game?")
        yield pair(form.format(scene.sport), form.format(other), IS_SPORT)


VIEW_PAIRS = (presence_pairs, kind_pairs, room_pairs, inside_pairs, weather_pairs, film_pairs, sport_pairs)
"""All rules for pairs about the photo as a whole."""
