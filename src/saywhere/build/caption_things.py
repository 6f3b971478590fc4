"""What captions say of things: their colours, how many there are, what they are made of, and of which kind they are.

Each rule gives all questions of its kind about one photo, with answers that captions say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from saywhere.build.caption_drafts import (
    ANIMAL,
    COLOUR,
    FOOD_IS,
    HOW_MANY,
    KIND,
    MADE_OF,
    VEHICLE,
    CaptionDraft,
    PhotoAsking,
    be,
)
from saywhere.build.caption_facts import CaptionThing
from saywhere.build.caption_scene import CaptionScene, is_class, ranked
from saywhere.build.caption_words import (
    ABSTRACT,
    ANIMALS,
    COLOURABLE,
    COLOURED_WEAR,
    FOOD,
    FRUIT,
    KINDS,
    MADE,
    MATERIALS,
    NOT_COLOURED,
    NOT_COUNTED,
    NOT_REAL,
    PLACES,
    VEHICLES,
    WEARABLES,
    listed,
    many,
)

_ONES = 0.35
"""Share of the things that are there once that are counted: people count one as often as two."""
_ANIMALS = 0.3
"""Share of the counts of animals that do not say which."""
_LEAST_SHOWN = 3
"""How many captions must name the animal, vehicle or food that is asked for."""
_LEAST_NAMED = 2
"""How many captions must name the thing whose kind is asked for."""
_MOST_COLOURS = 2
_MOST_KINDS = 3
_OF_MANY_KINDS = listed("bear train boat truck")
_CLASSED = ANIMALS.keys() | VEHICLES.keys() | FOOD.keys()
_MODELLED = listed("cake figure figures figurines miniature plastic shaped decorated")
"""Of these photos the animals may be none."""


def colours_said(scene: CaptionScene) -> dict[str, tuple[CaptionThing, str]]:
    """ "the bus" → a mention of it, and its colours as all captions that say any say them."""
    said: dict[str, dict[str, CaptionThing]] = defaultdict(dict)
    for thing in scene.facts.things:
        has_colour = thing.head in COLOURABLE or is_class(thing.head)
        if thing.colours and has_colour and not thing.person and thing.head not in NOT_COLOURED | WEARABLES:
            named = scene.the(thing)
            if named:
                said[named]["/".join(sorted(thing.colours))] = thing
    return {
        named: (thing, " and ".join(thing.colours))
        for named, colours in said.items()
        for thing in colours.values()
        if len(colours) == 1 and len(thing.colours) <= _MOST_COLOURS
    }


def _worn_colours(scene: CaptionScene) -> Iterator[tuple[CaptionThing, CaptionThing, str]]:
    """Who wears what of which colour: "a man in a red shirt"."""
    worn = [(one.subject, thing) for one in scene.facts.acts if one.verb == "wearing" for thing in one.objects]
    worn += [(one.thing, one.ground) for one in scene.facts.placed if one.preposition == "in"]
    said: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for thing in scene.facts.things:
        if thing.colours:
            said[thing.head].add(tuple(sorted(thing.colours)))
    for who, thing in worn:
        is_one = who.person and not who.plural and scene.the(who)
        if is_one and thing.head in COLOURED_WEAR and thing.colours and len(said[thing.head]) == 1:
            yield who, thing, " and ".join(thing.colours)


def colours(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What color is the bus?", "What color is the man's shirt?"."""
    scene = asking.scene
    if scene.is_black_and_white:
        yield CaptionDraft(asking.pick("What color is the photo?", "What color is the picture?"), COLOUR, (_GRAY,))
        return
    for named, (thing, colour) in colours_said(scene).items():
        yield CaptionDraft(f"What color {be(named, thing)}?", COLOUR, (colour,))
    for who, thing, colour in _worn_colours(scene):
        owners = [f"{scene.the(who)}'s"]
        if scene.people_count == 1 and who.person in _OWNED:
            owners.append(_OWNED[who.person])
        is_pair = thing.said.endswith(("pants", "shorts"))
        yield CaptionDraft(
            f"What color {'are' if is_pair else 'is'} {asking.pick(*owners)} {thing.said}?", COLOUR, (colour,)
        )


_GRAY = "black and white"
_OWNED = {"man": "his", "boy": "his", "woman": "her", "girl": "her"}


def counted(scene: CaptionScene) -> Iterator[tuple[str, str, int]]:
    """ "dog", "dogs", 2: what captions count, people all together."""
    if scene.people_count:
        yield "person", "people", scene.people_count
    for key, alike in scene.mentions.items():
        # People of one kind may be a part of them.
        if alike[0].person or key in NOT_COUNTED | ABSTRACT or alike[0].name in PLACES:
            continue
        # Of what is no class and one caption only counts, there may be more.
        is_sure = key in _CLASSED or len(alike) > 1 or is_class(key)
        number = scene.count(key) if is_sure else None
        if number is not None and (number > 1 or key in ANIMALS or key in VEHICLES):
            # "Two zebra" is said, but "how many zebra" is not asked.
            name = alike[0].name if all(one.name == alike[0].name for one in alike) else key
            yield key, many(name), number


def numbers(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "How many dogs are there?"."""
    for key, named, number in counted(asking.scene):
        if number == 1 and not asking.chance(_ONES):
            continue
        if key in ANIMALS and asking.scene.only(ANIMALS, 1) and asking.chance(_ANIMALS):
            named = "animals"
        ends = ("are there", "are in the picture", "are in the photo", "are shown", "do you see", "can be seen")
        yield CaptionDraft(f"How many {named} {asking.pick(*ends)}?", HOW_MANY, (str(number),))


def made_of(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What is the table made of?"."""
    scene = asking.scene
    said: dict[str, dict[str, CaptionThing]] = defaultdict(dict)
    for thing in scene.facts.things:
        words = {*thing.before, *thing.said.split()[:-1]}
        named = scene.the(thing) if thing.head in MADE else None
        if named:
            said[f"the {named.split()[-1]}"].update((MATERIALS[word], thing) for word in words & MATERIALS.keys())
    for named, materials in said.items():
        if len(materials) == 1:
            ((material, thing),) = materials.items()
            what = asking.pick("What", "What material")
            yield CaptionDraft(f"{what} {be(named, thing)} made of?", MADE_OF, (material,))


def kinds(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What kind of bus is this?", from "a double decker bus" where another caption names the bus."""
    scene = asking.scene
    named_in: dict[str, set[int]] = defaultdict(set)
    said: dict[str, dict[str, CaptionThing]] = defaultdict(dict)
    for thing in scene.facts.things:
        named_in[thing.head].add(thing.place[0])
        before = " ".join((*thing.before, *thing.said.split()[:-1]))
        for kind in KINDS.get(thing.head, ()):
            if before == kind or before.endswith(f" {kind}"):
                said[thing.head][kind] = thing
    for head, found in said.items():
        is_real = head not in _OF_MANY_KINDS or not scene.words & NOT_REAL - {"stuffed"}
        if len(found) != 1 or len(named_in[head]) < _LEAST_NAMED or not is_real:
            continue
        ((kind, thing),) = found.items()
        some = f"{many(head)} are these" if thing.plural else f"{head} is this"
        yield CaptionDraft(f"What {asking.pick('kind', 'type')} of {some}?", KIND, (kind, f"{kind} {head}"))


def kinds_shown(asking: PhotoAsking) -> Iterator[CaptionDraft]:
    """ "What animal is this?", "What kind of vehicle is this?", "What kind of food is this?"."""
    scene = asking.scene
    animal = None if scene.words & _MODELLED else _shown(scene, ANIMALS)
    if animal:
        is_many, answers = animal
        one = ("What animal is this?", "What kind of animal is this?", "What animal is in the picture?")
        some = ("What kind of animals are these?", "What animals are these?", "What animals are in the picture?")
        yield CaptionDraft(asking.pick(*(some if is_many else one)), ANIMAL, answers)
        return
    vehicle, food = _shown(scene, VEHICLES), _shown(scene, FOOD)
    if vehicle:
        is_many, answers = vehicle
        what = "vehicles are these" if is_many else "vehicle is this"
        yield CaptionDraft(f"What {asking.pick('kind', 'type')} of {what}?", VEHICLE, answers)
    if food:
        name = "fruit" if food[1][0] in FRUIT | {many(one) for one in FRUIT} else "food"
        texts = (f"What kind of {name} is this?", f"What type of {name} is this?", f"What {name} is this?")
        yield CaptionDraft(asking.pick(*texts), FOOD_IS, food[1])


def _shown(scene: CaptionScene, table: Mapping[str, str]) -> tuple[bool, tuple[str, ...]] | None:
    """Whether most captions speak of many, and what people answer."""
    found = scene.only(table, _LEAST_SHOWN)
    if found is None:
        return None
    kind, things = found
    is_many = sum(thing.plural for thing in things) * 2 > len(things)
    return is_many, _kind_answers(kind, things, is_many)


def _kind_answers(kind: str, things: Iterable[CaptionThing], is_many: bool) -> tuple[str, ...]:
    named = many(kind) if is_many else kind
    said = (thing.said if " " in kind else thing.said.split()[-1] for thing in things if thing.plural == is_many)
    return (named, *(one for one in ranked(said) if one != named))[:_MOST_KINDS]


THINGS = (colours, numbers, made_of, kinds, kinds_shown)
"""All rules about things."""
