"""The kinds of things there are: what they are called, how big they are, which colours they come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from saywhere.world.chance import weights
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


_CLOTHES = weights("red 3, blue 4, white 3, black 2.5, green 2, yellow 1.5, pink, purple, orange, gray 1.5")
_PAINT = weights("red 3, blue 3, white 3, black 2, gray 2, green, yellow, orange 0.6")
_BRIGHT = weights("red, orange, yellow, green, blue, purple, pink")
_DISHES = weights("white 3, blue 2, red 2, green 1.5, yellow 1.5, orange, black, pink 0.6")
_CLOTH = weights("red 2, blue 2, green 1.5, gray 1.5, brown 1.5, purple, pink, yellow, white")
_WOODEN = weights("brown 4, white 1.5, black")
_FUR = weights("brown 4, black 2, white 2, gray")
_GREEN = {"green": 1.0}
_WHITE = {"white": 1.0}
_OAK: dict[str, Ink] = {"brown": (156, 108, 66)}
_METAL = weights("gray 3, black, white")

_PEOPLE = (
    Kind("man", "person", 1.75, _CLOTHES, "men", poses=UPRIGHT, wears=True, speed=0.6),
    Kind("woman", "person", 1.68, _CLOTHES, "women", poses=UPRIGHT, wears=True, speed=0.6),
    Kind("child", "person", 1.15, _CLOTHES, "children", poses=UPRIGHT, wears=True, speed=0.6),
    Kind("skier", "person", 1.55, _BRIGHT, poses=("skiing",), wears=True, speed=0.9),
)
_ANIMALS = (
    Kind("dog", "animal", 0.75, _FUR, inks={"brown": (164, 106, 60)}, speed=0.7),
    Kind("cat", "animal", 0.6, weights("orange 3, black 2, gray 2, white 1.5")),
    Kind("horse", "animal", 1.7, weights("brown 4, black 2, white 1.5"), speed=0.5),
    Kind("cow", "animal", 1.35, weights("white 3, brown 2, black"), speed=0.2),
    Kind("sheep", "animal", 0.95, weights("white 5, black"), "sheep", speed=0.3),
    Kind("hen", "animal", 0.55, weights("white 2, brown 2, black"), speed=0.5),
    Kind("duck", "animal", 0.5, weights("brown 2, white 2, yellow"), speed=0.5),
    Kind("bird", "animal", 0.5, weights("white 3, black 2, gray 2"), speed=1.0),
)
_VEHICLES = (
    Kind("car", "vehicle", 1.25, _PAINT, speed=0.7),
    Kind("bus", "vehicle", 2.0, weights("red 3, yellow 3, blue 2, green, white"), "buses", speed=0.4),
    Kind("truck", "vehicle", 1.9, _PAINT, speed=0.4),
    Kind("bicycle", "vehicle", 1.0, _BRIGHT | {"black": 1.5}),
    Kind("train", "vehicle", 1.9, weights("red 2, blue 2, green 1.5, yellow, purple 0.5"), speed=0.3),
    Kind("sailboat", "vehicle", 2.3, _BRIGHT, speed=0.4),
    Kind("ship", "vehicle", 2.0, weights("blue 2, black 2, red, green"), speed=0.2),
    Kind("airplane", "vehicle", 0.7, weights("red 2, blue 2, green, orange"), speed=0.7, named_by_colour=False),
    Kind("tractor", "vehicle", 1.7, weights("green 3, red 3, blue, orange"), speed=0.3),
)
_NATURE = (
    Kind("tree", "nature", 3.0, weights("green 5, orange, yellow 0.7, red 0.4"), inks={"green": (84, 142, 62)}),
    Kind("pine tree", "nature", 3.0, _GREEN, inks={"green": (48, 108, 70)}, named_by_colour=False),
    Kind("palm tree", "nature", 3.2, _GREEN, inks={"green": (74, 152, 62)}, named_by_colour=False),
    Kind("bush", "nature", 0.8, _GREEN, "bushes", inks={"green": (74, 132, 58)}),
    Kind("flower", "nature", 0.7, weights("red, yellow, pink, purple, white, orange, blue"), countable=False),
    Kind("rock", "nature", 0.55, weights("gray 3, brown")),
    Kind(
        "cloud",
        "nature",
        0.75,
        weights("white 4, gray"),
        inks={"white": (248, 250, 253), "gray": (186, 192, 202)},
        speed=0.05,
    ),
    Kind("sun", "nature", 0.85, weights("yellow 3, orange"), named_by_colour=False),
    Kind(
        "mountain",
        "nature",
        2.3,
        weights("gray 2, blue"),
        inks={"gray": (126, 130, 140), "blue": (112, 130, 164)},
        named_by_colour=False,
    ),
    Kind("snowman", "nature", 1.3, _BRIGHT, "snowmen", wears=True),
    Kind("hay bale", "nature", 1.0, {"yellow": 1.0}, inks={"yellow": (224, 186, 92)}, named_by_colour=False),
    Kind("fence", "nature", 0.75, weights("brown 3, white 2")),
    Kind("sandcastle", "nature", 0.6, {"brown": 1.0}, inks={"brown": (222, 184, 124)}, named_by_colour=False),
)
_OUTDOORS = (
    Kind("house", "structure", 2.7, weights("white 2, yellow 2, orange, blue, pink, red")),
    Kind("building", "structure", 4.2, weights("gray 3, brown 2, orange, yellow, blue"), countable=False),
    Kind("barn", "structure", 2.9, weights("red 4, brown 2, green 0.6")),
    Kind("traffic light", "structure", 2.1, weights("red, yellow, green")),
    Kind("street lamp", "structure", 2.7, weights("black 3, gray 2, green")),
    Kind(
        "bench",
        "structure",
        0.9,
        weights("brown 4, green, red 0.6"),
        "benches",
        surface=(0.14, 0.62, 0.86, 0.74),
        seat=True,
    ),
    Kind("stop sign", "structure", 1.6, {"red": 1.0}, named_by_colour=False),
    Kind("fire hydrant", "structure", 0.7, weights("red 3, yellow 2, blue 0.6")),
    Kind("umbrella", "leisure", 1.75, _BRIGHT),
    Kind("ball", "leisure", 0.45, _BRIGHT),
    Kind("deck chair", "leisure", 0.85, _BRIGHT),
    Kind("surfboard", "leisure", 1.45, _BRIGHT),
    Kind("kite", "leisure", 0.95, _BRIGHT, speed=0.4),
    Kind("suitcase", "leisure", 0.75, weights("red 2, blue 2, black 2, green, yellow, pink")),
    Kind("backpack", "leisure", 0.6, weights("red 2, blue 2, green 1.5, orange, purple, black")),
)
_FURNITURE = (
    Kind("table", "furniture", 0.95, _WOODEN, inks=_OAK, surface=(0.12, 0.09, 0.88, 0.30)),
    Kind("desk", "furniture", 0.95, _WOODEN, inks=_OAK, surface=(0.12, 0.09, 0.88, 0.28)),
    Kind(
        "chair",
        "furniture",
        1.15,
        weights("brown 3, white, red, blue, green 0.7, black"),
        inks=_OAK,
        surface=(0.2, 0.55, 0.8, 0.62),
        seat=True,
    ),
    Kind("sofa", "furniture", 0.98, _CLOTH, surface=(0.22, 0.62, 0.78, 0.7), seat=True),
    Kind("bed", "furniture", 1.05, _CLOTH, surface=(0.36, 0.5, 0.9, 0.68), seat=True),
    Kind("lamp", "furniture", 1.6, weights("yellow 2, white 2, red, blue, green, orange")),
    Kind("television", "furniture", 0.85, weights("black 4, gray")),
    Kind("window", "furniture", 0.95, _CLOTH, named_by_colour=False),
    Kind("painting", "furniture", 0.55, _BRIGHT, named_by_colour=False),
    Kind("bookshelf", "furniture", 1.75, _WOODEN, "bookshelves", inks=_OAK),
    Kind("plant", "furniture", 0.85, weights("red, blue, white, brown 2, yellow"), named_by_colour=False),
    Kind("rug", "furniture", 0.36, _CLOTH),
    Kind("clock", "furniture", 0.42, weights("red, blue, black 2, white, green, brown, yellow")),
    Kind("refrigerator", "appliance", 1.8, weights("white 3, gray 2, red, black 0.7, blue 0.6")),
    Kind(
        "oven",
        "appliance",
        1.05,
        weights("gray 2, white 2, black, red 0.7"),
        inks={"gray": (190, 194, 200)},
        surface=(0.15, 0.04, 0.85, 0.13),
    ),
    Kind("wardrobe", "furniture", 1.85, _WOODEN, inks={"brown": (168, 120, 74)}),
)
_BATHROOM = (
    Kind("bathtub", "furniture", 0.85, weights("white 4, pink 0.7, blue 0.7")),
    Kind("toilet", "furniture", 0.9, weights("white 5, pink 0.5, blue 0.5")),
    Kind("sink", "furniture", 0.95, weights("white 5, pink 0.5, blue 0.5")),
    Kind("mirror", "furniture", 0.75, weights("yellow 2, brown 2, white, black, blue"), named_by_colour=False),
    Kind("towel", "furniture", 0.7, _CLOTH),
    Kind(
        "stool",
        "furniture",
        0.65,
        weights("brown 2, red, blue, white, green"),
        inks=_OAK,
        surface=(0.25, 0.1, 0.75, 0.22),
    ),
)
_SMALL = (
    Kind("cup", "tableware", 0.27, _DISHES),
    Kind("plate", "tableware", 0.17, weights("white 4, blue 1.5, yellow, green, pink 0.6")),
    Kind("bottle", "tableware", 0.44, weights("green 3, brown 2, blue, red 0.6")),
    Kind("bowl", "tableware", 0.26, _DISHES),
    Kind("apple", "food", 0.24, weights("red 3, green 2, yellow"), inks={"green": (130, 186, 60)}),
    Kind("banana", "food", 0.25, weights("yellow 5, green"), inks={"green": (150, 180, 60)}),
    Kind("cake", "food", 0.42, weights("pink 2, white 2, brown 2, red")),
    Kind("vase", "tableware", 0.56, weights("blue 2, white 1.5, red, green, orange, purple")),
    Kind("book", "leisure", 0.21, _BRIGHT | {"brown": 1.0}),
    Kind("laptop", "appliance", 0.45, _METAL),
    Kind("pot", "tableware", 0.34, weights("gray 2, red 2, blue, green, orange")),
    Kind("kettle", "appliance", 0.42, weights("red 2, gray 2, blue, white, green")),
    Kind("pizza", "food", 0.22, {"yellow": 1.0}, named_by_colour=False),
    Kind("teddy bear", "leisure", 0.5, weights("brown 4, white, pink"), inks={"brown": (166, 112, 66)}),
    Kind("pillow", "leisure", 0.34, _CLOTH),
    Kind("telephone", "appliance", 0.3, weights("black 2, red 2, white, green 0.7, yellow 0.7")),
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
