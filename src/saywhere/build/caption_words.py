"""Words of captions by what they name: people, animals, vehicles, food, places, sports, and what things are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from saywhere.language.coco_aliases import plural


def listed(text: str) -> frozenset[str]:
    """The words of a text; "hot_dog" is one, with a blank.

    >>> sorted(listed("cake hot_dog"))
    ['cake', 'hot dog']
    """
    return frozenset(word.replace("_", " ") for word in text.split())


def in_lines(text: str) -> tuple[frozenset[str], ...]:
    """The words of each part of a text, the parts set apart by bars.

    >>> [sorted(part) for part in in_lines("red pink | gray")]
    [['pink', 'red'], ['gray']]
    """
    return tuple(map(listed, text.split("|")))


def in_line_with(words: Collection[str], lines: Iterable[frozenset[str]]) -> frozenset[str]:
    """The words of all lines in which one of these is.

    >>> sorted(in_line_with(["pink"], in_lines("red pink | gray")))
    ['pink', 'red']
    """
    return frozenset(other for line in lines if not line.isdisjoint(words) for other in line)


def many(name: str) -> str:
    """The plural, of animals too that have none.

    >>> many("zebra"), many("deer")
    ('zebras', 'deer')
    """
    return name if name.split()[-1] in _SAME_IN_PLURAL else plural(name)


def _table(text: str) -> Mapping[str, str]:
    """ "cat: cat kitten" line by line → word → what stands before the colon."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        name, _, words = line.partition(":")
        found |= {word: name.strip().replace("_", " ") for word in listed(words)}
    return found


_SAME_IN_PLURAL = listed("deer fish people")

# How captions spell what VQA's answers spell otherwise, or what the parser takes for something else.
SPELLED = {
    **{"surf board": "surfboard", "snow board": "snowboard", "skate board": "skateboard", "tooth brush": "toothbrush"},
    **{"suit case": "suitcase", "side walk": "sidewalk", "bath room": "bathroom", "bath tub": "bathtub"},
    **{"bed room": "bedroom", "air plane": "airplane", "motor cycle": "motorcycle", "motor bike": "motorcycle"},
    **{"motorbike": "motorcycle", "aeroplane": "airplane", "doughnut": "donut", "doughnuts": "donuts"},
    **{"grey": "gray", "racquet": "racket", "racquets": "rackets", "hotdog": "hot dog", "hotdogs": "hot dogs"},
    **{"cellphone": "cell phone", "cellphones": "cell phones", "television": "tv", "televisions": "tvs"},
    **{"t-shirt": "shirt", "tee shirt": "shirt", "bicycle": "bike", "bicycles": "bikes"},
    **{"refridgerator": "refrigerator", "swim suit": "swimsuit", "wet suit": "wetsuit", "wet suits": "wetsuits"},
    **{"snow boarder": "snowboarder", "skate boarder": "skateboarder", "skate boarding": "skateboarding"},
    **{"snow boarding": "snowboarding", "motorbikes": "motorcycles", "surf boards": "surfboards", "theses": "these"},
    **{"catcher's mitt": "mitt", "tv set": "tv", "lap top": "laptop", "laptop computer": "laptop", "snow ski": "ski"},
    **{"laptop computers": "laptops", "paddle board": "paddleboard", "cross country": "cross-country"},
    **{"on skies": "on skis", "his skies": "his skis", "her skies": "her skis", "wearing skies": "wearing skis"},
}

FUSED = listed(
    """hot_dog teddy_bear stuffed_animal toy_bear french_fries remote_control ice_cream cutting_board fire_hydrant
    parking_meter stop_sign traffic_light swimming_pool hair_dryer trash_can toilet_paper paper_towel christmas_tree
    wine_glass street_sign baseball_game tennis_game cheese_dog corn_dog chili_dog"""
)
"""Names of which the last word alone means something else."""

WHOLE_FIRST = listed("tennis_racket wii_controller wii_remote game_controller remote_controller cell_phone")
"""Names of which people answer all, though the last word would do."""

_MAN = "man guy gentleman dude male businessman cowboy fisherman policeman groom"
_WOMAN = "woman lady female bride businesswoman"
PEOPLE = _table(
    f"""
man: {_MAN}
woman: {_WOMAN}
boy: boy
girl: girl
child: child kid toddler youngster
baby: baby infant
people: people crowd audience family team spectator onlooker passenger pedestrian tourist
person: person rider skier snowboarder skateboarder surfer player batter catcher pitcher umpire cyclist biker
person: motorcyclist bicyclist officer chef worker athlete adult someone skater boarder bicycler skateboarders
person: teenager teen student soldier driver individual human swimmer jockey waiter shopper cook performer friend
"""
)
"""Word → the kind of person, by which mentions of one and the same are put together."""

ANIMALS = _table(
    """
dog: dog puppy pup poodle terrier bulldog dachshund
cat: cat kitten kitty
horse: horse pony foal
cow: cow bull calf cattle ox steer
sheep: sheep lamb ram ewe
goat: goat
elephant: elephant
zebra: zebra
giraffe: giraffe
bear: bear panda
bird: bird seagull gull pigeon parrot duck goose swan owl eagle crow pelican flamingo peacock parakeet hawk heron
bird: chicken rooster hen turkey ostrich penguin
monkey: monkey
rabbit: rabbit bunny
deer: deer
pig: pig hog
camel: camel
lion: lion
tiger: tiger
rhino: rhino rhinoceros
hippo: hippo hippopotamus
squirrel: squirrel
turtle: turtle tortoise
donkey: donkey mule
llama: llama alpaca
kangaroo: kangaroo
fish: fish
"""
)
VEHICLES = _table(
    """
bus: bus
train: train locomotive tram trolley
truck: truck pickup
car: car taxi cab suv sedan
motorcycle: motorcycle scooter moped
bike: bike
boat: boat ship sailboat canoe kayak ferry yacht
airplane: airplane plane jet airliner aircraft jetliner biplane
van: van
helicopter: helicopter
"""
)
FRUIT = listed("banana apple orange strawberry pear lemon grape pineapple watermelon kiwi peach blueberry")
FOOD = _table(
    """
pizza: pizza
sandwich: sandwich burger hamburger
hot dog: hot_dog hotdog
cake: cake cupcake
donut: donut
soup: soup
salad: salad
pasta: pasta spaghetti
broccoli: broccoli
banana: banana
apple: apple
orange: orange
carrot: carrot
cookie: cookie
pie: pie
"""
)

ROOMS = _table(
    """
kitchen: kitchen
bathroom: bathroom restroom washroom
bedroom: bedroom
living_room: living_room
dining_room: dining_room
office: office
"""
)
OUTDOOR_PLACES = listed(
    """beach park street road field zoo airport city farm forest parking_lot train_station ocean lake river runway
    sidewalk mountain desert harbor skate_park baseball_field tennis_court garden pasture yard ski_slope slope
    bus_stop intersection highway hillside playground woods stadium pier dock meadow marina tarmac"""
)
INDOOR_PLACES = listed("restaurant store hotel_room museum library classroom bakery cafe gym shop garage bar hospital")
PLACES = OUTDOOR_PLACES | INDOOR_PLACES | listed("market station zoo_enclosure") | frozenset(ROOMS.values())
# Of the places, those that a photo as a whole is of, and that leave no doubt what to call them.
WHOLE_PLACES = PLACES - listed(
    "road ocean lake river runway sidewalk slope hillside bar yard woods pier dock tarmac mountain"
)
_SURFACES = """table counter plate desk floor bed couch sofa chair bench shelf ground grass snow sand water bowl tray
    stove rug carpet sink bathtub tub sky air wall tree branch fence rock box basket vase cup glass pot pan oven tracks
    track stand rack platform ramp hill wave boat bus train truck car horse skateboard surfboard bike motorcycle
    wood_table dining_table coffee_table picnic_table park_bench toilet suitcase bag window roof mat pillow blanket
    lap laptop cutting_board stool windowsill sill court dirt mud hay pond pool stage display_case refrigerator
    dresser deck porch pen cage enclosure umbrella railing pole pavement stroller wagon mantle ledge driveway
    countertop towel napkin paper_plate sidewalk tarmac runway recliner armchair nightstand cabinet drawer crib
    baseball_field pasture"""
GROUNDS = PLACES | listed(_SURFACES)
"""What things can be on, in, at or under, for people to say where they are."""

HEADWEAR = listed("hat cap helmet crown hood bandana turban sombrero headband beanie")
GARMENTS = listed(
    """shirt jacket dress suit tie uniform coat sweater vest wetsuit shorts pants jeans skirt sunglasses glasses gloves
    scarf apron hoodie costume backpack goggles tuxedo robe jersey outfit bikini skis"""
)
WEARABLES = HEADWEAR | GARMENTS | listed("glove shoe boot sock mask")
COLOURED_WEAR = listed(
    "shirt jacket dress suit tie uniform coat sweater vest wetsuit hat cap helmet scarf skirt shorts pants"
)
# Of these one wears one only, so that the others are not worn.
ONE_WORN = (listed("hat helmet"), listed("suit wetsuit dress uniform jacket"))

MATERIALS = {
    **{"wooden": "wood", "wood": "wood", "metal": "metal", "brick": "brick", "glass": "glass", "stone": "stone"},
    **{"plastic": "plastic", "leather": "leather", "concrete": "concrete", "granite": "granite", "marble": "marble"},
    **{"tiled": "tile", "tile": "tile", "cardboard": "cardboard", "wicker": "wicker", "hardwood": "wood"},
    **{"cement": "cement", "cobblestone": "cobblestone", "ceramic": "ceramic"},
}
MADE = listed(
    """table bench chair floor wall building fence bridge counter cabinet bowl vase box shelf desk pole gate countertop
    sidewalk plate spoon dock pier railing door ceiling basket roof statue tray cutting_board board platform deck
    bed couch stool tower house path street road walkway post structure crate container jar pot"""
)

KINDS = {
    head: frozenset(kinds.replace("_", " ").split(","))
    for head, kinds in {
        "train": "passenger,freight,steam,commuter,subway,cargo,bullet,electric,toy",
        "bus": "double_decker,city,school,tour,passenger,transit,shuttle,public",
        "cake": "chocolate,birthday,wedding,carrot,sheet",
        "pizza": "cheese,pepperoni,veggie,vegetable,mushroom",
        "sandwich": "ham,cheese,chicken,turkey,grilled_cheese,club,breakfast,egg,meat",
        "hat": "cowboy,straw,santa,baseball,chef,party,top,birthday",
        "shirt": "dress,polo,plaid,striped,hawaiian,flannel",
        "ball": "tennis,soccer,baseball,beach,golf",
        "bear": "teddy,polar,grizzly,panda,brown,black",
        "sign": "stop,street,neon,road,parking,traffic",
        "building": "brick,office,apartment,stone",
        "bike": "dirt,mountain,exercise",
        "boat": "fishing,sail,row,cruise,motor,tug",
        "table": "dining,coffee,picnic,pool,dinner,buffet,ping_pong",
        "chair": "lounge,office,rocking,folding,lawn,beach,desk",
        "tie": "bow,neck",
        "truck": "fire,dump,pickup,tow,food,delivery,garbage",
        "clock": "grandfather,alarm,wall",
        "tree": "palm,christmas,pine",
        "game": "video,board,wii",
        "plane": "passenger,propeller,jet,commercial,fighter,toy",
        "phone": "cell,smart,mobile",
    }.items()
}
"""Thing → what comes before it and says its kind."""

SPORTS: Mapping[str, str] = {
    "tennis": r"tennis",
    "baseball": r"baseball|batter|home plate|umpire",
    "soccer": r"soccer",
    "basketball": r"basketball",
    "volleyball": r"volleyball",
    "football": r"football",
    "frisbee": r"(?:play\w*|throw\w*|catch\w*|toss\w*|game of|leap\w* for|jump\w* for)(?: \w+){0,3} frisbee",
    "skateboarding": r"skateboarding|skateboarders?|(?:rid\w+|jump\w*|tricks? on|flip\w*|on)(?: \w+){0,3} skateboards?",
    "snowboarding": r"snowboarding|snowboarders?|(?:rid\w+|jump\w*|on)(?: \w+){0,3} snowboards?",
    "skiing": r"skiing|skiers?|(?:on|wearing|rid\w+)(?: \w+){0,2} skis|skis down",
    "surfing": r"surfing|surfers?|surfs|(?:rid\w+|on)(?: \w+){0,4} (?:surfboards?|waves?)",
    "golf": r"golf",
    "hockey": r"hockey",
    "rugby": r"rugby",
    "cricket": r"cricket",
    "wii": r"wii|video games?|nintendo",
    "kite flying": r"fly\w*(?: \w+){0,3} kites?",
}
"""Sport → what captions say where somebody does it."""
PLAYED = ("tennis", "baseball", "soccer", "basketball", "volleyball", "football", "frisbee", "golf", "hockey", "wii")

NOT_REAL = listed(
    "stuffed toy statue teddy painting painted sculpture sign poster cartoon figurine drawing mural costume logo"
)
"""What makes animals and vehicles of captions none."""
MANY = listed(
    "group bunch herd crowd flock several many various lot lots pack row line dozens multiple some others another"
)
"""With these words, things are not counted."""
COLOURABLE = listed(
    """flower rose petal wall fence floor building house roof door curtain blanket pillow sheet towel box bowl plate
    cup mug tile cabinet counter tablecloth cloth sign kite carpet rug sofa lamp candle balloon flag ribbon wagon
    trailer van tractor helicopter engine caboose jet biplane seat cushion comforter quilt bedspread basket bucket
    container tray napkin pot pan pole post tower barn bridge tent canopy awning parasol board ball racket mat desk
    shelf dresser stool ottoman shower bathtub tub countertop mailbox dumpster gate ladder cart balloon doll leash
    collar bag purse luggage feather beak horn mane scooter moped tram trolley locomotive yarn tile paint stove
    fridge appliance"""
)
"""What has a colour, beside the classes of COCO."""

NUMBERS = {
    **{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10},
}

# What a question or an answer cannot be about.
NOT_COLOURED = listed("wine orange bear broccoli clock glass light meter")
"""Of these a colour says something else, or nothing: "red wine", "a black bear"."""
NOT_COUNTED = listed(
    """way story level tier inch foot wheel wheeler hand hour lane half year side time day piece couple area part end
    room table street field food water snow ground background top road grass sky city kitchen bathroom beach pants
    shorts glasses scissors skis hair air speed dish pole line direction color floor person adult set row"""
)
"""Numbers of these say something else: "two story", "one hand"."""
ABSTRACT = listed(
    """trick way turn bite time break fun stunt street road something piece area jump lot face move game part look side
    slope hill air thing one end line direction swing picture photo background bunch sleep rest pair path trail lane
    course camera wall distance position left right middle scene display shade day sun view focus top front"""
)
"""Done, rather than seen: "doing a trick"."""
NO_ANSWER = listed(
    """item object thing lot different area surface kind hand scene ready set variety array assortment other
    stuff device equipment substance piece"""
)
"""Says too little to be an answer."""

CHOSEN_AMONG = listed("riding eating flying throwing cutting holding swinging driving")
"""Who does it to one thing does it to no other."""
UNCOUNTABLE = listed(
    "pizza food grass cake fruit luggage wine water coffee hay bread salad soup meat broccoli snow rice"
)
APART = in_lines(
    """couch sofa chair armchair recliner bed cushion pillow blanket futon loveseat seat bench
    | table desk counter countertop shelf stand dresser nightstand plate tray
    | floor rug carpet ground tile mat | grass field lawn yard park | toilet bathroom | sink bathroom bathtub tub"""
)
"""What is on one of these is on none of another line; one word may be said for another of its line."""
SEATS = listed("couch chair bed bench table desk counter floor grass toilet sink")
