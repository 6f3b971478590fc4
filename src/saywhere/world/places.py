"""The places of the world: what is usually there, how many, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from saywhere.core.errors import UnknownName

_ADULTS = {"man": 1.0, "woman": 1.0}
_FOLK = {"man": 1.0, "woman": 1.0, "child": 0.8}


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


_SKY_ABOVE = (
    _one("sun", "sun", 0.4),
    Slot("sky", {"cloud": 1.0}, (0.25, 0.35, 0.25, 0.15)),
)

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
            Slot("on oven", {"pot": 2.0, "kettle": 1.5}, (0.3, 0.7)),
            Slot(
                "on table",
                {
                    "cup": 3.0,
                    "plate": 2.0,
                    "bowl": 2.0,
                    "bottle": 2.0,
                    "apple": 2.0,
                    "banana": 1.5,
                    "pizza": 1.0,
                    "cake": 1.0,
                    "vase": 0.6,
                    "kettle": 0.4,
                },
                (0.0, 0.15, 0.35, 0.35, 0.15),
            ),
            Slot("on table", {"apple": 1.0, "cup": 1.0}, (0.6, 0.0, 0.25, 0.15), alike=True),
            Slot("front", {"chair": 1.0}, (0.5, 0.35, 0.15)),
            Slot("front", _ADULTS, (0.45, 0.45, 0.1)),
            Slot("front", {"cat": 1.0, "dog": 1.0}, (0.85, 0.15)),
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
            Slot("back", {"bookshelf": 2.0, "lamp": 2.0, "plant": 2.0}, (0.1, 0.45, 0.45)),
            Slot("wall", {"painting": 3.0, "window": 2.0, "clock": 1.0}, (0.1, 0.5, 0.4)),
            _one("rug", "flat", 0.6),
            _one("table", "front", 0.5),
            Slot(
                "on table",
                {"television": 2.0, "vase": 2.0, "book": 2.0, "cup": 2.0, "telephone": 1.0, "laptop": 0.6},
                (0.0, 0.4, 0.45, 0.15),
            ),
            Slot(
                "on sofa",
                {"cat": 2.0, "man": 2.0, "woman": 2.0, "child": 1.5, "pillow": 1.5, "teddy bear": 1.0},
                (0.25, 0.5, 0.25),
            ),
            Slot("front", _FOLK, (0.65, 0.3, 0.05)),
            Slot("front", {"cat": 1.5, "dog": 1.5, "ball": 1.0, "teddy bear": 1.0}, (0.5, 0.4, 0.1)),
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
            Slot("back", {"wardrobe": 3.0, "lamp": 2.0, "plant": 1.0, "chair": 1.0}, (0.05, 0.55, 0.4)),
            Slot("wall", {"window": 3.0, "painting": 2.0, "clock": 1.0}, (0.1, 0.55, 0.35)),
            Slot(
                "on bed",
                {"pillow": 3.0, "teddy bear": 2.5, "cat": 2.0, "book": 1.5, "child": 1.0, "laptop": 0.6},
                (0.1, 0.5, 0.4),
            ),
            Slot("front", {"dog": 1.0, "ball": 1.0, "backpack": 1.0, "stool": 1.0}, (0.6, 0.35, 0.05)),
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
            Slot("front", {"stool": 2.0, "plant": 1.0, "rug": 1.0}, (0.45, 0.45, 0.1)),
            Slot("front", {"duck": 0.6, "cat": 1.0, "child": 1.0, "woman": 1.0}, (0.6, 0.4)),
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
            Slot("back", {"bookshelf": 3.0, "plant": 2.0, "lamp": 1.0}, (0.1, 0.5, 0.4)),
            Slot("wall", {"clock": 2.0, "painting": 2.0, "window": 2.0}, (0.1, 0.5, 0.4)),
            Slot("on desk", {"laptop": 6.0}, (0.15, 0.85)),
            Slot(
                "on desk",
                {"telephone": 3.0, "cup": 3.0, "book": 3.0, "bottle": 1.0, "vase": 0.6},
                (0.1, 0.35, 0.4, 0.15),
            ),
            Slot("front", {"chair": 1.0}, (0.4, 0.6)),
            Slot("front", _ADULTS, (0.4, 0.45, 0.15)),
            Slot("front", {"backpack": 1.0, "suitcase": 0.6}, (0.75, 0.25)),
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
            Slot("far", {"building": 3.0, "house": 2.0, "tree": 1.5}, (0.1, 0.3, 0.35, 0.25)),
            Slot(
                "ground",
                {
                    "traffic light": 2.5,
                    "street lamp": 2.5,
                    "stop sign": 1.5,
                    "fire hydrant": 1.5,
                    "bench": 1.0,
                    "tree": 1.0,
                },
                (0.05, 0.4, 0.4, 0.15),
            ),
            Slot("ground", _FOLK, (0.25, 0.35, 0.3, 0.1)),
            Slot("lane", {"car": 4.0, "bus": 2.0, "truck": 1.5, "bicycle": 1.0}, (0.1, 0.55, 0.35)),
            Slot("near lane", {"car": 3.0, "bicycle": 1.0, "bus": 0.6}, (0.45, 0.45, 0.1)),
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
            Slot("ground", {"suitcase": 3.0, "backpack": 2.0}, (0.15, 0.4, 0.3, 0.15)),
            Slot("ground", {"street lamp": 1.0}, (0.6, 0.4)),
            Slot("ground", {"dog": 1.0, "bicycle": 1.0}, (0.8, 0.2)),
        ),
        0.8,
    ),
    Place(
        "beach",
        "on a beach",
        0.22,
        (
            *_SKY_ABOVE,
            Slot("sky", {"bird": 2.0, "kite": 1.5}, (0.5, 0.35, 0.15)),
            Slot("water", {"sailboat": 3.0, "ship": 1.0}, (0.4, 0.4, 0.2)),
            Slot("far", {"palm tree": 1.0}, (0.35, 0.4, 0.25)),
            Slot("ground", {"umbrella": 1.0}, (0.25, 0.5, 0.25)),
            Slot(
                "ground", {"deck chair": 2.0, "surfboard": 1.5, "sandcastle": 1.5, "ball": 2.0}, (0.05, 0.35, 0.4, 0.2)
            ),
            Slot("ground", _FOLK, (0.2, 0.35, 0.3, 0.15)),
            Slot("ground", {"dog": 1.0, "rock": 1.0}, (0.7, 0.3)),
        ),
        1.2,
    ),
    Place(
        "sea",
        "at sea",
        0.2,
        (
            *_SKY_ABOVE,
            Slot("sky", {"bird": 3.0, "airplane": 1.0}, (0.35, 0.35, 0.2, 0.1)),
            Slot("far", {"ship": 1.0}, (0.4, 0.6)),
            Slot("far", {"mountain": 1.0}, (0.75, 0.25)),
            Slot("water", {"sailboat": 1.0}, (0.08, 0.37, 0.27, 0.18, 0.1)),
            Slot("water", {"ship": 1.5, "duck": 0.8, "rock": 1.0}, (0.4, 0.45, 0.15)),
        ),
        0.8,
    ),
    Place(
        "park",
        "in a park",
        0.21,
        (
            *_SKY_ABOVE,
            Slot("sky", {"bird": 1.0, "kite": 1.5}, (0.6, 0.35, 0.05)),
            Slot("far", {"tree": 3.0, "bush": 2.0, "pine tree": 0.6}, (0.0, 0.25, 0.4, 0.35)),
            Slot("water", {"duck": 1.0}, (0.2, 0.3, 0.3, 0.2), alike=True),
            Slot("ground", {"bench": 1.0}, (0.25, 0.65, 0.1)),
            Slot("on bench", {"man": 1.0, "woman": 1.0, "child": 0.7, "cat": 0.4}, (0.4, 0.5, 0.1)),
            Slot("ground", {"street lamp": 2.0, "flower": 2.0, "tree": 1.0, "bush": 1.0}, (0.2, 0.4, 0.3, 0.1)),
            Slot("ground", _FOLK, (0.2, 0.4, 0.3, 0.1)),
            Slot("ground", {"dog": 2.5, "ball": 2.0, "bicycle": 1.5, "backpack": 0.6}, (0.2, 0.45, 0.35)),
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
            Slot("far", {"tree": 3.0, "fence": 2.0, "house": 1.0}, (0.1, 0.4, 0.4, 0.1)),
            Slot("ground", {"horse": 2.0, "sheep": 2.0, "cow": 2.0}, (0.1, 0.25, 0.25, 0.2, 0.2), alike=True),
            Slot("ground", {"flower": 1.0}, (0.4, 0.2, 0.2, 0.2)),
            Slot("ground", {"rock": 1.0, "bush": 1.0}, (0.6, 0.3, 0.1)),
            Slot("ground", _FOLK, (0.7, 0.3)),
            Slot("sky", {"bird": 2.0, "kite": 0.6, "airplane": 0.6}, (0.6, 0.3, 0.1)),
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
            Slot("far", {"tree": 2.0, "fence": 2.5, "house": 0.8}, (0.2, 0.5, 0.3)),
            Slot("ground", {"tractor": 1.0}, (0.4, 0.6)),
            Slot("ground", {"cow": 2.0, "sheep": 1.0, "horse": 1.0}, (0.2, 0.3, 0.3, 0.2), alike=True),
            Slot("ground", {"hen": 1.0}, (0.35, 0.2, 0.2, 0.15, 0.1)),
            Slot("ground", {"hay bale": 1.0}, (0.4, 0.35, 0.25)),
            Slot("ground", {"man": 2.0, "woman": 1.0, "child": 0.5}, (0.6, 0.4)),
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
            Slot("far", {"pine tree": 3.0, "house": 1.0}, (0.05, 0.3, 0.4, 0.25)),
            Slot("ground", {"skier": 1.0}, (0.25, 0.35, 0.25, 0.15)),
            Slot("ground", {"snowman": 1.0}, (0.45, 0.55)),
            Slot("ground", {"pine tree": 2.0, "rock": 1.0, "fence": 0.6}, (0.4, 0.4, 0.2)),
            Slot("ground", {"child": 1.5, "man": 1.0, "woman": 1.0, "dog": 1.0}, (0.4, 0.4, 0.2)),
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
