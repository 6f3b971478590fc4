"""The places of the world: what is usually there, how many, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from saywhere.core.errors import UnknownName
from saywhere.world.chance import weights

_ADULTS = weights("man, woman")
_FOLK = weights("man, woman, child 0.8")


@dataclass(frozen=True, slots=True)
class Slot:
    """Things that a place has room for.

    zone: of the backdrop; "on table" means on the surface of a table, if there is one. kinds: weights.
    chances: how likely 0, 1, 2 … of them are. alike: all of one kind, as in a herd.
    """

    zone: str
    kinds: Mapping[str, float]
    chances: tuple[float, ...]
    alike: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """scale: height of one metre at the front, in fractions of the picture. weight: how often the place occurs.

    where: "in a kitchen". indoors: no sky, no weather.
    """

    name: str
    where: str
    scale: float
    slots: tuple[Slot, ...]
    weight: float = 1.0
    indoors: bool = False


def _one(kind: str, zone: str, chance: float) -> Slot:
    return Slot(zone, {kind: 1.0}, (1 - chance, chance))


_SKY_ABOVE = (_one("sun", "sun", 0.4), Slot("sky", {"cloud": 1.0}, (0.25, 0.35, 0.25, 0.15)))

_INDOORS = (
    Place(
        "kitchen",
        "in a kitchen",
        0.36,
        (
            _one("refrigerator", "back", 0.7),
            _one("oven", "back", 0.85),
            _one("window", "wall", 0.5),
            _one("clock", "wall", 0.35),
            _one("table", "front", 0.85),
            Slot("on oven", weights("pot 2, kettle 1.5"), (0.3, 0.7)),
            Slot(
                "on table",
                weights("cup 3, plate 2, bowl 2, bottle 2, apple 2, banana 1.5, pizza, cake, vase 0.6, kettle 0.4"),
                (0.0, 0.15, 0.35, 0.35, 0.15),
            ),
            Slot("on table", weights("apple, cup"), (0.6, 0.0, 0.25, 0.15), alike=True),
            Slot("front", {"chair": 1.0}, (0.5, 0.35, 0.15)),
            Slot("front", _ADULTS, (0.45, 0.45, 0.1)),
            Slot("front", weights("cat, dog"), (0.85, 0.15)),
        ),
        1.4,
        True,
    ),
    Place(
        "living room",
        "in a living room",
        0.36,
        (
            _one("sofa", "back", 0.9),
            Slot("back", weights("bookshelf 2, lamp 2, plant 2"), (0.1, 0.45, 0.45)),
            Slot("wall", weights("painting 3, window 2, clock"), (0.1, 0.5, 0.4)),
            _one("rug", "flat", 0.6),
            _one("table", "front", 0.5),
            Slot(
                "on table",
                weights("television 2, vase 2, book 2, cup 2, telephone, laptop 0.6"),
                (0.0, 0.4, 0.45, 0.15),
            ),
            Slot("on sofa", weights("cat 2, man 2, woman 2, child 1.5, pillow 1.5, teddy bear"), (0.25, 0.5, 0.25)),
            Slot("front", _FOLK, (0.65, 0.3, 0.05)),
            Slot("front", weights("cat 1.5, dog 1.5, ball, teddy bear"), (0.5, 0.4, 0.1)),
        ),
        1.4,
        True,
    ),
    Place(
        "bedroom",
        "in a bedroom",
        0.36,
        (
            _one("bed", "front", 1.0),
            Slot("back", weights("wardrobe 3, lamp 2, plant, chair"), (0.05, 0.55, 0.4)),
            Slot("wall", weights("window 3, painting 2, clock"), (0.1, 0.55, 0.35)),
            Slot("on bed", weights("pillow 3, teddy bear 2.5, cat 2, book 1.5, child, laptop 0.6"), (0.1, 0.5, 0.4)),
            Slot("front", weights("dog, ball, backpack, stool"), (0.6, 0.35, 0.05)),
            Slot("front", _FOLK, (0.75, 0.25)),
        ),
        1.0,
        True,
    ),
    Place(
        "bathroom",
        "in a bathroom",
        0.33,
        (
            _one("bathtub", "back", 0.75),
            _one("sink", "back", 0.8),
            _one("toilet", "back", 0.8),
            _one("mirror", "wall", 0.75),
            Slot("wall", {"towel": 1.0}, (0.2, 0.5, 0.3)),
            Slot("front", weights("stool 2, plant, rug"), (0.45, 0.45, 0.1)),
            Slot("front", weights("duck 0.6, cat, child, woman"), (0.6, 0.4)),
        ),
        0.6,
        True,
    ),
    Place(
        "office",
        "in an office",
        0.36,
        (
            _one("desk", "front", 0.95),
            Slot("back", weights("bookshelf 3, plant 2, lamp"), (0.1, 0.5, 0.4)),
            Slot("wall", weights("clock 2, painting 2, window 2"), (0.1, 0.5, 0.4)),
            Slot("on desk", {"laptop": 6.0}, (0.15, 0.85)),
            Slot("on desk", weights("telephone 3, cup 3, book 3, bottle, vase 0.6"), (0.1, 0.35, 0.4, 0.15)),
            Slot("front", {"chair": 1.0}, (0.4, 0.6)),
            Slot("front", _ADULTS, (0.4, 0.45, 0.15)),
            Slot("front", weights("backpack, suitcase 0.6"), (0.75, 0.25)),
        ),
        1.0,
        True,
    ),
)

_OUTDOORS = (
    Place(
        "street",
        "on a street",
        0.21,
        (
            *_SKY_ABOVE,
            Slot("far", weights("building 3, house 2, tree 1.5"), (0.1, 0.3, 0.35, 0.25)),
            Slot(
                "ground",
                weights("traffic light 2.5, street lamp 2.5, stop sign 1.5, fire hydrant 1.5, bench, tree"),
                (0.05, 0.4, 0.4, 0.15),
            ),
            Slot("ground", _FOLK, (0.25, 0.35, 0.3, 0.1)),
            Slot("lane", weights("car 4, bus 2, truck 1.5, bicycle"), (0.1, 0.55, 0.35)),
            Slot("near lane", weights("car 3, bicycle, bus 0.6"), (0.45, 0.45, 0.1)),
            Slot("ground", {"dog": 1.0}, (0.8, 0.2)),
        ),
        1.6,
    ),
    Place(
        "station",
        "at a train station",
        0.21,
        (
            _one("train", "track", 0.9),
            Slot("sky", {"cloud": 1.0}, (0.7, 0.3)),
            _one("clock", "wall", 0.45),
            Slot("ground", {"bench": 1.0}, (0.35, 0.5, 0.15)),
            Slot("on bench", _FOLK, (0.4, 0.5, 0.1)),
            Slot("ground", _FOLK, (0.1, 0.3, 0.35, 0.25)),
            Slot("ground", weights("suitcase 3, backpack 2"), (0.15, 0.4, 0.3, 0.15)),
            Slot("ground", {"street lamp": 1.0}, (0.6, 0.4)),
            Slot("ground", weights("dog, bicycle"), (0.8, 0.2)),
        ),
        0.8,
    ),
    Place(
        "beach",
        "on a beach",
        0.22,
        (
            *_SKY_ABOVE,
            Slot("sky", weights("bird 2, kite 1.5"), (0.5, 0.35, 0.15)),
            Slot("water", weights("sailboat 3, ship"), (0.4, 0.4, 0.2)),
            Slot("far", {"palm tree": 1.0}, (0.35, 0.4, 0.25)),
            Slot("ground", {"umbrella": 1.0}, (0.25, 0.5, 0.25)),
            Slot("ground", weights("deck chair 2, surfboard 1.5, sandcastle 1.5, ball 2"), (0.05, 0.35, 0.4, 0.2)),
            Slot("ground", _FOLK, (0.2, 0.35, 0.3, 0.15)),
            Slot("ground", weights("dog, rock"), (0.7, 0.3)),
        ),
        1.2,
    ),
    Place(
        "sea",
        "at sea",
        0.2,
        (
            *_SKY_ABOVE,
            Slot("sky", weights("bird 3, airplane"), (0.35, 0.35, 0.2, 0.1)),
            Slot("far", {"ship": 1.0}, (0.4, 0.6)),
            Slot("far", {"mountain": 1.0}, (0.75, 0.25)),
            Slot("water", {"sailboat": 1.0}, (0.08, 0.37, 0.27, 0.18, 0.1)),
            Slot("water", weights("ship 1.5, duck 0.8, rock"), (0.4, 0.45, 0.15)),
        ),
        0.8,
    ),
    Place(
        "park",
        "in a park",
        0.21,
        (
            *_SKY_ABOVE,
            Slot("sky", weights("bird, kite 1.5"), (0.6, 0.35, 0.05)),
            Slot("far", weights("tree 3, bush 2, pine tree 0.6"), (0.0, 0.25, 0.4, 0.35)),
            Slot("water", {"duck": 1.0}, (0.2, 0.3, 0.3, 0.2), alike=True),
            Slot("ground", {"bench": 1.0}, (0.25, 0.65, 0.1)),
            Slot("on bench", weights("man, woman, child 0.7, cat 0.4"), (0.4, 0.5, 0.1)),
            Slot("ground", weights("street lamp 2, flower 2, tree, bush"), (0.2, 0.4, 0.3, 0.1)),
            Slot("ground", _FOLK, (0.2, 0.4, 0.3, 0.1)),
            Slot("ground", weights("dog 2.5, ball 2, bicycle 1.5, backpack 0.6"), (0.2, 0.45, 0.35)),
        ),
        1.4,
    ),
    Place(
        "field",
        "in a field",
        0.21,
        (
            *_SKY_ABOVE,
            Slot("horizon", {"mountain": 1.0}, (0.6, 0.3, 0.1)),
            Slot("far", weights("tree 3, fence 2, house"), (0.1, 0.4, 0.4, 0.1)),
            Slot("ground", weights("horse 2, sheep 2, cow 2"), (0.1, 0.25, 0.25, 0.2, 0.2), alike=True),
            Slot("ground", {"flower": 1.0}, (0.4, 0.2, 0.2, 0.2)),
            Slot("ground", weights("rock, bush"), (0.6, 0.3, 0.1)),
            Slot("ground", _FOLK, (0.7, 0.3)),
            Slot("sky", weights("bird 2, kite 0.6, airplane 0.6"), (0.6, 0.3, 0.1)),
        ),
        1.0,
    ),
    Place(
        "farm",
        "on a farm",
        0.21,
        (
            *_SKY_ABOVE,
            _one("barn", "far", 0.8),
            Slot("far", weights("tree 2, fence 2.5, house 0.8"), (0.2, 0.5, 0.3)),
            Slot("ground", {"tractor": 1.0}, (0.4, 0.6)),
            Slot("ground", weights("cow 2, sheep, horse"), (0.2, 0.3, 0.3, 0.2), alike=True),
            Slot("ground", {"hen": 1.0}, (0.35, 0.2, 0.2, 0.15, 0.1)),
            Slot("ground", {"hay bale": 1.0}, (0.4, 0.35, 0.25)),
            Slot("ground", weights("man 2, woman, child 0.5"), (0.6, 0.4)),
            Slot("ground", {"dog": 1.0}, (0.8, 0.2)),
        ),
        1.0,
    ),
    Place(
        "snow",
        "in the snow",
        0.21,
        (
            *_SKY_ABOVE,
            Slot("horizon", {"mountain": 1.0}, (0.15, 0.5, 0.35)),
            Slot("far", weights("pine tree 3, house"), (0.05, 0.3, 0.4, 0.25)),
            Slot("ground", {"skier": 1.0}, (0.25, 0.35, 0.25, 0.15)),
            Slot("ground", {"snowman": 1.0}, (0.45, 0.55)),
            Slot("ground", weights("pine tree 2, rock, fence 0.6"), (0.4, 0.4, 0.2)),
            Slot("ground", weights("child 1.5, man, woman, dog"), (0.4, 0.4, 0.2)),
        ),
        0.6,
    ),
)

PLACES: dict[str, Place] = {place.name: place for place in (*_INDOORS, *_OUTDOORS)}


def place_of(name: str) -> Place:
    """The place of this name; UnknownName otherwise."""
    if name not in PLACES:
        raise UnknownName("place", name, PLACES)
    return PLACES[name]
