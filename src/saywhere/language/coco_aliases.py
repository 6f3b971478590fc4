"""What people call the 80 classes of COCO, and which classes a caption names.

Written by hand for captions as people write them: usual synonyms, kinds and plurals. A name counts as a whole: "hot
dog" is no dog and "teddy bear" no bear. Words that mean a class only sometimes ("glass", "ball", "plant") are there
where captions nearly always mean it. "orange" followed by a noun is a colour, not the fruit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

# class: names, the first being what to call it in a prompt. Plurals are made; odd ones stand in _PLURALS.
_TABLE = """
person: person | man | woman | boy | girl | child | kid | baby | toddler | lady | guy | gentleman | people | human |
    player | skier | surfer | snowboarder | skateboarder | skater | rider | cyclist | bicyclist | motorcyclist | biker
    | batter | pitcher | catcher | umpire | athlete | pedestrian | chef | officer | policeman | soldier | couple |
    crowd | family | bride | groom | worker | teenager | adult | male | female | tourist | student | spectator |
    tennis player | baseball player | soccer player | football player | basketball player | volleyball player | driver |
    passenger | farmer | cowboy | jockey | referee |
    businessman | fisherman | infant | youngster | swimmer | performer | waiter | shopper | dude
bicycle: bicycle | bike | cycle | tricycle | bmx | mountain bike
car: car | automobile | sedan | suv | taxi | cab | minivan | jeep | hatchback | limo | limousine | police car |
    race car | station wagon
motorcycle: motorcycle | motorbike | moped | scooter | motor bike | motor cycle | dirt bike | motor scooter
airplane: airplane | plane | aeroplane | jet | aircraft | airliner | jetliner | biplane | propeller plane |
    fighter jet | seaplane
bus: bus | coach | double decker | minibus | school bus | tour bus | trolley bus
train: train | locomotive | railcar | tram | subway train | train car | steam engine | trolley | streetcar |
    subway car | monorail
truck: truck | lorry | pickup | pickup truck | fire truck | firetruck | van | semi | semi truck | trailer | tow truck
    | dump truck | delivery truck | food truck | garbage truck | fire engine | tractor trailer
boat: boat | ship | sailboat | canoe | kayak | yacht | ferry | raft | rowboat | gondola | barge | vessel | motorboat |
    speedboat | dinghy | tugboat | fishing boat | cruise ship
traffic light: traffic light | traffic signal | stoplight | stop light | signal light | traffic lamp | red light |
    green light
fire hydrant: fire hydrant | hydrant | fire plug
stop sign: stop sign | stopsign
parking meter: parking meter | meter
bench: bench | park bench | pew
bird: bird | seagull | gull | pigeon | parrot | duck | goose | swan | owl | eagle | chicken | hen | rooster | crow |
    sparrow | pelican | ostrich | flamingo | peacock | turkey | hawk | heron | penguin | finch | robin | hummingbird |
    parakeet | dove | raven | duckling | stork | vulture | woodpecker | cockatoo
cat: cat | kitten | kitty | tabby | feline | kitty cat
dog: dog | puppy | pup | puppy dog | canine | poodle | bulldog | terrier | labrador | retriever | dachshund | pug |
    husky | chihuahua | beagle | corgi | collie | dalmatian | rottweiler | german shepherd | sheepdog | sheep dog |
    hound
horse: horse | pony | foal | colt | stallion | mare | mustang | racehorse
sheep: sheep | lamb | ewe
cow: cow | bull | calf | ox | cattle | steer | bison | buffalo | bovine | heifer | longhorn
elephant: elephant
bear: bear | polar bear | grizzly | grizzly bear | brown bear | black bear | bear cub | panda | panda bear
zebra: zebra
giraffe: giraffe
backpack: backpack | rucksack | knapsack | back pack | book bag | bookbag
umbrella: umbrella | parasol
handbag: handbag | purse | bag | hand bag | tote | tote bag | shoulder bag | satchel | pocketbook
tie: tie | necktie | bow tie | bowtie | neck tie
suitcase: suitcase | luggage | baggage | briefcase | suit case
frisbee: frisbee | flying disc | flying disk | disc | disk
skis: skis | ski
snowboard: snowboard | snow board
sports ball: ball | sports ball | baseball | tennis ball | soccer ball | basketball | football | volleyball |
    beach ball
kite: kite
baseball bat: baseball bat | bat
baseball glove: baseball glove | glove | mitt | catcher's mitt | baseball mitt | catchers mitt
skateboard: skateboard | skate board | longboard
surfboard: surfboard | surf board | body board | boogie board | paddle board | bodyboard | paddleboard
tennis racket: tennis racket | tennis racquet | racket | racquet
bottle: bottle | wine bottle | beer bottle | water bottle | soda bottle
wine glass: wine glass | wineglass | glass of wine | champagne glass | goblet | glass | champagne flute
cup: cup | mug | coffee cup | glass | teacup | coffee mug | tea cup | tumbler | cup of coffee | cup of tea
fork: fork
knife: knife | butter knife
spoon: spoon
bowl: bowl
banana: banana | bunch of bananas
apple: apple
sandwich: sandwich | burger | hamburger | panini | cheeseburger
orange: orange | tangerine | mandarin | clementine
broccoli: broccoli
carrot: carrot
hot dog: hot dog | hotdog | sausage | chili dog | frankfurter | corn dog
pizza: pizza | slice of pizza | pizza slice | pizza pie
donut: donut | doughnut
cake: cake | cupcake | birthday cake | wedding cake | cheesecake
chair: chair | armchair | stool | recliner | lounge chair | folding chair | office chair | rocking chair | lawn chair
    | beach chair | high chair
couch: couch | sofa | loveseat | love seat | settee | futon
potted plant: potted plant | plant | houseplant | house plant | flower pot | pot plant | plant pot | flowerpot |
    potted flower | planter | potted tree
bed: bed | bunk bed | bunk | mattress
dining table: table | dining table | desk | dining room table | kitchen table | coffee table | picnic table |
    table top | tabletop | dinner table | wooden table
toilet: toilet | toilet bowl | urinal | commode | toilet seat
tv: tv | television | monitor | screen | tv set | television set | flat screen | flat screen tv | computer screen |
    computer monitor
laptop: laptop | notebook computer | laptop computer | computer | macbook
mouse: computer mouse | mouse | wireless mouse
remote: remote | remote control | controller | wii remote | wiimote | game controller | video game controller |
    tv remote | wii controller
keyboard: keyboard | computer keyboard
cell phone: cell phone | phone | cellphone | mobile phone | smartphone | smart phone | telephone | mobile | iphone
microwave: microwave | microwave oven
oven: oven | stove | stove top | stovetop
toaster: toaster | toaster oven
sink: sink | basin | wash basin | washbasin | bathroom sink | kitchen sink
refrigerator: refrigerator | fridge | freezer
book: book | notebook | textbook | novel
clock: clock | clock tower | alarm clock | clock face | wall clock
vase: vase | urn
scissors: scissors | pair of scissors | shears | scissor
teddy bear: teddy bear | stuffed bear | teddy | stuffed animal | plush toy | toy bear | stuffed toy |
    stuffed teddy bear
hair drier: hair dryer | hair drier | blow dryer | hairdryer | blow drier | blowdryer
toothbrush: toothbrush | tooth brush
"""

_PLURALS = {
    **{"person": "persons", "man": "men", "woman": "women", "child": "children", "people": "peoples"},
    **{"gentleman": "gentlemen", "lady": "ladies", "baby": "babies", "family": "families", "policeman": "policemen"},
    **{"businessman": "businessmen", "fisherman": "fishermen", "guy": "guys", "boy": "boys", "cowboy": "cowboys"},
    **{"bus": "buses", "sheep": "sheep", "goose": "geese", "calf": "calves", "ox": "oxen", "cattle": "cattle"},
    **{"knife": "knives", "butter knife": "butter knives", "mouse": "mice", "aircraft": "aircraft", "skis": "skis"},
    **{"scissors": "scissors", "broccoli": "broccoli", "luggage": "luggage", "baggage": "baggage", "tv": "tvs"},
    **{"wine glass": "wine glasses", "glass of wine": "glasses of wine", "cup of coffee": "cups of coffee"},
    **{"cup of tea": "cups of tea", "slice of pizza": "slices of pizza", "bunch of bananas": "bunches of bananas"},
    **{"pair of scissors": "pairs of scissors", "bison": "bison", "shears": "shears"},
}
# Names inside which a class's name means something else.
_OTHER_THINGS = """
    dog park, dog bowl, cat food, horse drawn, bear costume, car door, bus stop, bus station, train station,
    boat dock, train track, train tracks, bird house, birdhouse, bird feeder, bird cage, truck bed, bed of a truck,
    flower bed, tie dye, tie dyed, mouse pad, mousepad, clock radio, apple computer, glass door, glass doors,
    glass window, glass windows, eye glasses, sun glasses, orange juice, carrot cake, pizza box, pizza cutter,
    pizza oven, book shelf, book case, phone booth, tennis court, baseball field, baseball game, baseball uniform,
    baseball cap, soccer field, soccer game, football game, basketball court, ball park, trash bag, sleeping bag,
    table cloth, table lamp, car seat, toilet paper, counter top, ski lift, ski slope, ski resort, ski pole,
    ski poles, ski jump, kite board, bench press, parking lot, cow boy, cake pan, toilet brush, bottle opener,
    screen door, water fountain, remote area, motor home, horse back, dining car, cab of, wearing glasses,
    pair of glasses, playing baseball, play baseball, plays baseball, game of baseball, baseball player,
    baseball players, baseball court, baseball team, baseball match, playing basketball, play basketball,
    plays basketball, game of basketball, basketball game, basketball player, basketball players, basketball field,
    basketball team, basketball match, basketball uniform, playing football, play football, plays football,
    game of football, football player, football players, football field, football court, football team,
    football match, football uniform, playing volleyball, play volleyball, plays volleyball, game of volleyball,
    volleyball game, volleyball player, volleyball players, volleyball field, volleyball court, volleyball team,
    volleyball match, volleyball uniform
"""
_COLOUR = "orange"
_FOLLOWERS = "and or on in with is are next near beside by sitting sits slices peel at that of to"
_AFTER_A_FRUIT = frozenset(_FOLLOWERS.split())
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


@cache
def coco_aliases() -> Mapping[str, tuple[str, ...]]:
    """Class → what it is called, the best name for a prompt first, in lower case and in the singular."""
    table: dict[str, tuple[str, ...]] = {}
    for entry in re.split(r"\n(?=\S)", _TABLE.strip()):
        name, _, aliases = entry.partition(":")
        table[name] = tuple(" ".join(alias.split()) for alias in aliases.split("|"))
    return table


@cache
def _classes_of() -> Mapping[tuple[str, ...], frozenset[str]]:
    """Words of a name, singular or plural → the classes it may mean; none for names of other things."""
    found: dict[tuple[str, ...], set[str]] = {tuple(other.split()): set() for other in _OTHER_THINGS.split(",")}
    for name, aliases in coco_aliases().items():
        for alias in aliases:
            for form in (alias, plural(alias)):
                found.setdefault(tuple(form.split()), set()).add(name)
    return {words: frozenset(classes) for words, classes in found.items()}


def plural(name: str) -> str:
    """The plural of an English name, as far as names of things go."""
    if name in _PLURALS:
        return _PLURALS[name]
    before, _, last = name.rpartition(" ")
    if before and last in _PLURALS:
        return f"{before} {_PLURALS[last]}"
    if re.search(r"(?:s|x|z|ch|sh)$", name):
        return name + "es"
    return name[:-1] + "ies" if re.search(r"[^aeiou]y$", name) else name + "s"


def classes_named(text: str) -> frozenset[str]:
    """The COCO classes that a caption names. At each place the longest known name counts, and no name inside it."""
    return frozenset().union(*_named_in_order(text))


def first_named(text: str) -> frozenset[str]:
    """The class that a caption names first; several if the name may mean several; none if it names none.

    >>> sorted(first_named("the man beside a dog")), sorted(first_named("baseball bat"))
    (['person'], ['baseball bat'])
    """
    return next(_named_in_order(text), frozenset())


def _named_in_order(text: str) -> Iterator[frozenset[str]]:
    words = _WORD.findall(text.lower().replace("’", "'"))
    names = _classes_of()
    longest = max(map(len, names))
    at = 0
    while at < len(words):
        size = next((n for n in range(longest, 0, -1) if tuple(words[at : at + n]) in names), 0)
        if size and not (words[at] == _COLOUR and size == 1 and _is_colour(words, at)):
            yield names[tuple(words[at : at + size])]
        at += size or 1


def is_bare_name(text: str) -> bool:
    """Whether a text is the name of a class and says no more: "a dog", but not "the brown dog"; nor "a woman", which
    says who of all persons is meant.

    >>> is_bare_name("the dogs"), is_bare_name("a brown dog"), is_bare_name("a girl")
    (True, False, False)
    """
    words = tuple(_WORD.findall(text.lower().replace("’", "'")))
    name = words[1:] if words[:1] in (("a",), ("an",), ("the",)) else words
    classes = _classes_of().get(name, frozenset())
    return bool(classes) and ("person" not in classes or name in (("person",), ("people",)))


def names_class(text: str, class_name: str) -> bool:
    """Whether a caption names this class of COCO."""
    return class_name in classes_named(text)


def _is_colour(words: list[str], at: int) -> bool:
    following = words[at + 1] if at + 1 < len(words) else ""
    return bool(following) and following not in _AFTER_A_FRUIT
