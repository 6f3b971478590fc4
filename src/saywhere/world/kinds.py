"""The kinds of things there are: what they are called, how big they are, which colours they come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from saywhere.world.colours import PALETTE, Ink
from saywhere.world.drawings import DRAWINGS

UPRIGHT = ("standing", "walking", "waving")
SITTING = "sitting"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing.

    height: how tall it is drawn, roughly in metres; small things are drawn larger than life so that they can be seen.
    colours: how often each colour occurs. inks: what a colour looks like on it, where that is not the palette's.
    surface: x1, y1, x2, y2 in fractions of its drawing, where other things may stand; seat: whether people sit there.
    named_by_colour: whether people would mention the colour. wears: it is the clothes that have the colour.
    countable: whether its number is beyond doubt; it is not where backgrounds show more of the kind.
    speed: how far it gets in a second, in its own widths, when it moves in a video; 0 if it never does.
    """

    name: str
    group: str
    height: float
    colours: Mapping[str, float]
    plural: str = ""
    inks: Mapping[str, Ink] = field(default_factory=dict)
    surface: tuple[float, float, float, float] | None = None
    seat: bool = False
    poses: tuple[str, ...] = ("",)
    named_by_colour: bool = True
    wears: bool = False
    countable: bool = True
    speed: float = 0.0

    @property
    def many(self) -> str:
        """The plural."""
        return self.plural or self.name + "s"

    @property
    def aspect(self) -> float:
        """Width over height of the drawing."""
        return DRAWINGS[self.name].width / DRAWINGS[self.name].height

    def ink(self, colour: str) -> Ink:
        return self.inks.get(colour, PALETTE[colour])


def _even(names: str) -> dict[str, float]:
    return dict.fromkeys(names.split(), 1.0)


_CLOTHES = {
    "red": 3.0,
    "blue": 4.0,
    "white": 3.0,
    "black": 2.5,
    "green": 2.0,
    "yellow": 1.5,
    "pink": 1.0,
    "purple": 1.0,
    "orange": 1.0,
    "gray": 1.5,
}
_PAINT = {"red": 3.0, "blue": 3.0, "white": 3.0, "black": 2.0, "gray": 2.0, "green": 1.0, "yellow": 1.0, "orange": 0.6}
_BRIGHT = _even("red orange yellow green blue purple pink")
_DISHES = {"white": 3.0, "blue": 2.0, "red": 2.0, "green": 1.5, "yellow": 1.5, "orange": 1.0, "black": 1.0, "pink": 0.6}
_CLOTH = {
    "red": 2.0,
    "blue": 2.0,
    "green": 1.5,
    "gray": 1.5,
    "brown": 1.5,
    "purple": 1.0,
    "pink": 1.0,
    "yellow": 1.0,
    "white": 1.0,
}
_WOODEN = {"brown": 4.0, "white": 1.5, "black": 1.0}
_FUR = {"brown": 4.0, "black": 2.0, "white": 2.0, "gray": 1.0}
_GREEN = {"green": 1.0}
_WHITE = {"white": 1.0}
_OAK: dict[str, Ink] = {"brown": (156, 108, 66)}
_METAL = {"gray": 3.0, "black": 1.0, "white": 1.0}

_PEOPLE = (
    Kind("man", "person", 1.75, _CLOTHES, "men", poses=UPRIGHT, wears=True, speed=0.6),
    Kind("woman", "person", 1.68, _CLOTHES, "women", poses=UPRIGHT, wears=True, speed=0.6),
    Kind("child", "person", 1.15, _CLOTHES, "children", poses=UPRIGHT, wears=True, speed=0.6),
    Kind("skier", "person", 1.55, _BRIGHT, poses=("skiing",), wears=True, speed=0.9),
)
_ANIMALS = (
    Kind("dog", "animal", 0.75, _FUR, inks={"brown": (164, 106, 60)}, speed=0.7),
    Kind("cat", "animal", 0.6, {"orange": 3.0, "black": 2.0, "gray": 2.0, "white": 1.5}),
    Kind("horse", "animal", 1.7, {"brown": 4.0, "black": 2.0, "white": 1.5}, speed=0.5),
    Kind("cow", "animal", 1.35, {"white": 3.0, "brown": 2.0, "black": 1.0}, speed=0.2),
    Kind("sheep", "animal", 0.95, {"white": 5.0, "black": 1.0}, "sheep", speed=0.3),
    Kind("hen", "animal", 0.55, {"white": 2.0, "brown": 2.0, "black": 1.0}, speed=0.5),
    Kind("duck", "animal", 0.5, {"brown": 2.0, "white": 2.0, "yellow": 1.0}, speed=0.5),
    Kind("bird", "animal", 0.5, {"white": 3.0, "black": 2.0, "gray": 2.0}, speed=1.0),
)
_VEHICLES = (
    Kind("car", "vehicle", 1.25, _PAINT, speed=0.7),
    Kind(
        "bus", "vehicle", 2.0, {"red": 3.0, "yellow": 3.0, "blue": 2.0, "green": 1.0, "white": 1.0}, "buses", speed=0.4
    ),
    Kind("truck", "vehicle", 1.9, _PAINT, speed=0.4),
    Kind("bicycle", "vehicle", 1.0, _BRIGHT | {"black": 1.5}),
    Kind("train", "vehicle", 1.9, {"red": 2.0, "blue": 2.0, "green": 1.5, "yellow": 1.0, "purple": 0.5}, speed=0.3),
    Kind("sailboat", "vehicle", 2.3, _BRIGHT, speed=0.4),
    Kind("ship", "vehicle", 2.0, {"blue": 2.0, "black": 2.0, "red": 1.0, "green": 1.0}, speed=0.2),
    Kind(
        "airplane",
        "vehicle",
        0.7,
        {"red": 2.0, "blue": 2.0, "green": 1.0, "orange": 1.0},
        speed=0.7,
        named_by_colour=False,
    ),
    Kind("tractor", "vehicle", 1.7, {"green": 3.0, "red": 3.0, "blue": 1.0, "orange": 1.0}, speed=0.3),
)
_NATURE = (
    Kind(
        "tree", "nature", 3.0, {"green": 5.0, "orange": 1.0, "yellow": 0.7, "red": 0.4}, inks={"green": (84, 142, 62)}
    ),
    Kind("pine tree", "nature", 3.0, _GREEN, inks={"green": (48, 108, 70)}, named_by_colour=False),
    Kind("palm tree", "nature", 3.2, _GREEN, inks={"green": (74, 152, 62)}, named_by_colour=False),
    Kind("bush", "nature", 0.8, _GREEN, "bushes", inks={"green": (74, 132, 58)}),
    Kind("flower", "nature", 0.7, _even("red yellow pink purple white orange blue"), countable=False),
    Kind("rock", "nature", 0.55, {"gray": 3.0, "brown": 1.0}),
    Kind(
        "cloud",
        "nature",
        0.75,
        {"white": 4.0, "gray": 1.0},
        inks={"white": (248, 250, 253), "gray": (186, 192, 202)},
        speed=0.05,
    ),
    Kind("sun", "nature", 0.85, {"yellow": 3.0, "orange": 1.0}, named_by_colour=False),
    Kind(
        "mountain",
        "nature",
        2.3,
        {"gray": 2.0, "blue": 1.0},
        inks={"gray": (126, 130, 140), "blue": (112, 130, 164)},
        named_by_colour=False,
    ),
    Kind("snowman", "nature", 1.3, _BRIGHT, "snowmen", wears=True),
    Kind("hay bale", "nature", 1.0, {"yellow": 1.0}, inks={"yellow": (224, 186, 92)}, named_by_colour=False),
    Kind("fence", "nature", 0.75, {"brown": 3.0, "white": 2.0}),
    Kind("sandcastle", "nature", 0.6, {"brown": 1.0}, inks={"brown": (222, 184, 124)}, named_by_colour=False),
)
_OUTDOORS = (
    Kind("house", "structure", 2.7, {"white": 2.0, "yellow": 2.0, "orange": 1.0, "blue": 1.0, "pink": 1.0, "red": 1.0}),
    Kind(
        "building",
        "structure",
        4.2,
        {"gray": 3.0, "brown": 2.0, "orange": 1.0, "yellow": 1.0, "blue": 1.0},
        countable=False,
    ),
    Kind("barn", "structure", 2.9, {"red": 4.0, "brown": 2.0, "green": 0.6}),
    Kind("traffic light", "structure", 2.1, _even("red yellow green")),
    Kind("street lamp", "structure", 2.7, {"black": 3.0, "gray": 2.0, "green": 1.0}),
    Kind(
        "bench",
        "structure",
        0.9,
        {"brown": 4.0, "green": 1.0, "red": 0.6},
        "benches",
        surface=(0.14, 0.62, 0.86, 0.74),
        seat=True,
    ),
    Kind("stop sign", "structure", 1.6, {"red": 1.0}, named_by_colour=False),
    Kind("fire hydrant", "structure", 0.7, {"red": 3.0, "yellow": 2.0, "blue": 0.6}),
    Kind("umbrella", "leisure", 1.75, _BRIGHT),
    Kind("ball", "leisure", 0.45, _BRIGHT),
    Kind("deck chair", "leisure", 0.85, _BRIGHT),
    Kind("surfboard", "leisure", 1.45, _BRIGHT),
    Kind("kite", "leisure", 0.95, _BRIGHT, speed=0.4),
    Kind(
        "suitcase", "leisure", 0.75, {"red": 2.0, "blue": 2.0, "black": 2.0, "green": 1.0, "yellow": 1.0, "pink": 1.0}
    ),
    Kind(
        "backpack", "leisure", 0.6, {"red": 2.0, "blue": 2.0, "green": 1.5, "orange": 1.0, "purple": 1.0, "black": 1.0}
    ),
)
_FURNITURE = (
    Kind("table", "furniture", 0.95, _WOODEN, inks=_OAK, surface=(0.12, 0.09, 0.88, 0.30)),
    Kind("desk", "furniture", 0.95, _WOODEN, inks=_OAK, surface=(0.12, 0.09, 0.88, 0.28)),
    Kind(
        "chair",
        "furniture",
        1.15,
        {"brown": 3.0, "white": 1.0, "red": 1.0, "blue": 1.0, "green": 0.7, "black": 1.0},
        inks=_OAK,
        surface=(0.2, 0.55, 0.8, 0.62),
        seat=True,
    ),
    Kind("sofa", "furniture", 0.98, _CLOTH, surface=(0.22, 0.62, 0.78, 0.7), seat=True),
    Kind("bed", "furniture", 1.05, _CLOTH, surface=(0.36, 0.5, 0.9, 0.68), seat=True),
    Kind("lamp", "furniture", 1.6, {"yellow": 2.0, "white": 2.0, "red": 1.0, "blue": 1.0, "green": 1.0, "orange": 1.0}),
    Kind("television", "furniture", 0.85, {"black": 4.0, "gray": 1.0}),
    Kind("window", "furniture", 0.95, _CLOTH, named_by_colour=False),
    Kind("painting", "furniture", 0.55, _BRIGHT, named_by_colour=False),
    Kind("bookshelf", "furniture", 1.75, _WOODEN, "bookshelves", inks=_OAK),
    Kind(
        "plant",
        "furniture",
        0.85,
        {"red": 1.0, "blue": 1.0, "white": 1.0, "brown": 2.0, "yellow": 1.0},
        named_by_colour=False,
    ),
    Kind("rug", "furniture", 0.36, _CLOTH),
    Kind(
        "clock",
        "furniture",
        0.42,
        {"red": 1.0, "blue": 1.0, "black": 2.0, "white": 1.0, "green": 1.0, "brown": 1.0, "yellow": 1.0},
    ),
    Kind("refrigerator", "appliance", 1.8, {"white": 3.0, "gray": 2.0, "red": 1.0, "black": 0.7, "blue": 0.6}),
    Kind(
        "oven",
        "appliance",
        1.05,
        {"gray": 2.0, "white": 2.0, "black": 1.0, "red": 0.7},
        inks={"gray": (190, 194, 200)},
        surface=(0.15, 0.04, 0.85, 0.13),
    ),
    Kind("wardrobe", "furniture", 1.85, _WOODEN, inks={"brown": (168, 120, 74)}),
)
_BATHROOM = (
    Kind("bathtub", "furniture", 0.85, {"white": 4.0, "pink": 0.7, "blue": 0.7}),
    Kind("toilet", "furniture", 0.9, {"white": 5.0, "pink": 0.5, "blue": 0.5}),
    Kind("sink", "furniture", 0.95, {"white": 5.0, "pink": 0.5, "blue": 0.5}),
    Kind(
        "mirror",
        "furniture",
        0.75,
        {"yellow": 2.0, "brown": 2.0, "white": 1.0, "black": 1.0, "blue": 1.0},
        named_by_colour=False,
    ),
    Kind("towel", "furniture", 0.7, _CLOTH),
    Kind(
        "stool",
        "furniture",
        0.65,
        {"brown": 2.0, "red": 1.0, "blue": 1.0, "white": 1.0, "green": 1.0},
        inks=_OAK,
        surface=(0.25, 0.1, 0.75, 0.22),
    ),
)
_SMALL = (
    Kind("cup", "tableware", 0.27, _DISHES),
    Kind("plate", "tableware", 0.17, {"white": 4.0, "blue": 1.5, "yellow": 1.0, "green": 1.0, "pink": 0.6}),
    Kind("bottle", "tableware", 0.44, {"green": 3.0, "brown": 2.0, "blue": 1.0, "red": 0.6}),
    Kind("bowl", "tableware", 0.26, _DISHES),
    Kind("apple", "food", 0.24, {"red": 3.0, "green": 2.0, "yellow": 1.0}, inks={"green": (130, 186, 60)}),
    Kind("banana", "food", 0.25, {"yellow": 5.0, "green": 1.0}, inks={"green": (150, 180, 60)}),
    Kind("cake", "food", 0.42, {"pink": 2.0, "white": 2.0, "brown": 2.0, "red": 1.0}),
    Kind(
        "vase", "tableware", 0.56, {"blue": 2.0, "white": 1.5, "red": 1.0, "green": 1.0, "orange": 1.0, "purple": 1.0}
    ),
    Kind("book", "leisure", 0.21, _BRIGHT | {"brown": 1.0}),
    Kind("laptop", "appliance", 0.45, _METAL),
    Kind("pot", "tableware", 0.34, {"gray": 2.0, "red": 2.0, "blue": 1.0, "green": 1.0, "orange": 1.0}),
    Kind("kettle", "appliance", 0.42, {"red": 2.0, "gray": 2.0, "blue": 1.0, "white": 1.0, "green": 1.0}),
    Kind("pizza", "food", 0.22, {"yellow": 1.0}, named_by_colour=False),
    Kind("teddy bear", "leisure", 0.5, {"brown": 4.0, "white": 1.0, "pink": 1.0}, inks={"brown": (166, 112, 66)}),
    Kind("pillow", "leisure", 0.34, _CLOTH),
    Kind("telephone", "appliance", 0.3, {"black": 2.0, "red": 2.0, "white": 1.0, "green": 0.7, "yellow": 0.7}),
)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for group in (_PEOPLE, _ANIMALS, _VEHICLES, _NATURE, _OUTDOORS, _FURNITURE, _BATHROOM, _SMALL)
    for kind in group
}

STUFF: dict[str, str] = {
    "sky": "in",
    "skyline": "in front of",
    "wall": "on",
    "floor": "on",
    "road": "on",
    "sidewalk": "on",
    "grass": "on",
    "path": "on",
    "pond": "on",
    "sea": "on",
    "sand": "on",
    "snow": "on",
    "hill": "on",
    "soil": "on",
    "platform": "on",
    "tracks": "on",
    "roof": "on",
}
"""What has no shape of its own, and how things are placed with it: a bird *in* the sky, a boat *on* the sea."""

_BUILT = frozenset({"house", "building", "barn", "skyline", "bus", "car", "truck", "train"})
MIGHT_BE: dict[str, frozenset[str]] = {
    "tree": frozenset({"pine tree", "palm tree"}),
    "plant": frozenset({"tree", "pine tree", "palm tree", "bush", "flower", "vase"}),
    "flower": frozenset({"vase", "plant"}),
    "bush": frozenset({"plant"}),
    "chair": frozenset({"deck chair", "stool"}),
    "stool": frozenset({"chair", "table"}),
    "table": frozenset({"desk", "stool"}),
    "desk": frozenset({"table"}),
    "ship": frozenset({"sailboat"}),
    "sailboat": frozenset({"ship"}),
    "bird": frozenset({"duck", "hen"}),
    "lamp": frozenset({"street lamp"}),
    "street lamp": frozenset({"lamp"}),
    "man": frozenset({"skier"}),
    "woman": frozenset({"skier"}),
    "child": frozenset({"skier"}),
    "house": frozenset({"building", "barn", "skyline"}),
    "barn": frozenset({"house"}),
    "building": frozenset({"house", "barn", "skyline"}),
    "mountain": frozenset({"hill", "rock"}),
    "plate": frozenset({"cake", "pizza", "bowl"}),
    "bowl": frozenset({"plate", "pot"}),
    "pot": frozenset({"kettle", "bowl"}),
    "kettle": frozenset({"pot"}),
    "pillow": frozenset({"sofa", "bed"}),
    "book": frozenset({"bookshelf"}),
    "television": frozenset({"laptop"}),
    "window": _BUILT,
    "wardrobe": frozenset({"bookshelf"}),
}
"""What people might also call by a name: nobody should be asked how many trees there are beside a pine tree."""

CATEGORIES: tuple[str, ...] = (*KINDS, *STUFF)
"""All names, in the order of their category ids, which start at 1."""
