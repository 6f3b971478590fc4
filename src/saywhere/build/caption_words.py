"""Words of captions by what they name: people, animals, vehicles, food, places, sports, and what things are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in text.split())


def _table(text: str) -> Mapping[str, str]:
    """ "cat: cat kitten" line by line → word → what stands before the colon."""
    found = {}
    for line in text.strip().splitlines():
        name, _, words = line.partition(":")
        found |= {word: name.strip().replace("_", " ") for word in _words(words)}
    return found


# How captions spell what VQA's answers spell otherwise, or what the parser takes for something else.
SPELLED = {
    **{"surf board": "surfboard", "snow board": "snowboard", "skate board": "skateboard", "tooth brush": "toothbrush"},
    **{"suit case": "suitcase", "side walk": "sidewalk", "bath room": "bathroom", "bath tub": "bathtub"},
    **{"bed room": "bedroom", "air plane": "airplane", "motor cycle": "motorcycle", "motor bike": "motorcycle"},
    **{"motorbike": "motorcycle", "aeroplane": "airplane", "doughnut": "donut", "doughnuts": "donuts"},
    **{"grey": "gray", "racquet": "racket", "racquets": "rackets", "hotdog": "hot dog", "hotdogs": "hot dogs"},
    **{"cellphone": "cell phone", "cellphones": "cell phones", "television": "tv", "televisions": "tvs"},
    **{"t-shirt": "shirt", "tee shirt": "shirt", "bicycle": "bike", "bicycles": "bikes", "refridgerator": "refrigerator"},
    **{"snow boarder": "snowboarder", "skate boarder": "skateboarder", "skate boarding": "skateboarding"},
    **{"snow boarding": "snowboarding", "motorbikes": "motorcycles", "surf boards": "surfboards", "theses": "these"},
    **{"catcher's mitt": "mitt", "tv set": "tv", "lap top": "laptop", "laptop computer": "laptop", "snow ski": "ski"},
    **{"laptop computers": "laptops", "paddle board": "paddleboard", "cross country": "cross-country"},
}

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
monkey: monkey
rabbit: rabbit bunny
deer: deer
pig: pig
camel: camel
lion: lion
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
FRUIT = _words("banana apple orange strawberry pear lemon grape pineapple watermelon kiwi peach blueberry")
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
OUTDOOR_PLACES = _words(
    """beach park street road field zoo airport city farm forest parking_lot train_station ocean lake river runway
    sidewalk mountain desert harbor skate_park baseball_field tennis_court garden pasture yard ski_slope
    slope bus_stop intersection highway hillside playground woods stadium pier dock meadow marina tarmac"""
)
INDOOR_PLACES = _words("restaurant store hotel_room museum library classroom bakery cafe gym shop garage bar hospital")
PLACES = OUTDOOR_PLACES | INDOOR_PLACES | _words("market station zoo_enclosure") | frozenset(ROOMS.values())
# Of the places, those that a photo as a whole is of, and that leave no doubt what to call them.
WHOLE_PLACES = PLACES - _words("road ocean lake river runway sidewalk slope hillside bar yard woods pier dock tarmac mountain")
_SURFACES = """table counter plate desk floor bed couch sofa chair bench shelf ground grass snow sand water bowl tray stove
    rug carpet sink bathtub tub sky air wall tree branch fence rock box basket vase cup glass pot pan oven tracks track
    stand rack platform ramp hill wave boat bus train truck car horse skateboard surfboard bike motorcycle wood_table
    dining_table coffee_table picnic_table park_bench toilet suitcase bag window roof mat pillow blanket lap laptop
    cutting_board stool windowsill sill court dirt mud hay pond pool stage display_case refrigerator dresser deck porch
    pen cage enclosure umbrella railing pole pavement stroller wagon mantle ledge driveway countertop towel napkin
    paper_plate sidewalk tarmac runway recliner armchair nightstand cabinet drawer crib baseball_field pasture"""
GROUNDS = PLACES | _words(_SURFACES)
"""What things can be on, in, at or under, for people to say where they are."""

HEADWEAR = _words("hat cap helmet crown hood bandana turban sombrero headband beanie")
GARMENTS = _words(
    """shirt jacket dress suit tie uniform coat sweater vest wetsuit shorts pants jeans skirt sunglasses
    glasses gloves scarf apron hoodie costume backpack goggles tuxedo robe jersey outfit bikini skis"""
)
WEARABLES = HEADWEAR | GARMENTS | _words("glove shoe boot sock mask")
COLOURED_WEAR = _words("shirt jacket dress suit tie uniform coat sweater vest wetsuit hat cap helmet scarf skirt shorts pants")
# Of these one wears one only, so that the others are not worn.
ONE_WORN = (_words("hat helmet"), _words("suit wetsuit dress uniform jacket"))

MATERIALS = {
    **{"wooden": "wood", "wood": "wood", "metal": "metal", "brick": "brick", "glass": "glass", "stone": "stone"},
    **{"plastic": "plastic", "leather": "leather", "concrete": "concrete", "granite": "granite", "marble": "marble"},
    **{"tiled": "tile", "tile": "tile", "cardboard": "cardboard", "wicker": "wicker", "hardwood": "wood"},
    **{"cement": "cement", "cobblestone": "cobblestone", "ceramic": "ceramic"},
}
MADE = _words(
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
        "cap": "baseball",
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
        "racket": "tennis",
        "bat": "baseball",
        "truck": "fire,dump,pickup,tow,food,delivery,garbage",
        "clock": "grandfather,alarm,wall",
        "tree": "palm,christmas,pine",
        "game": "video,board,baseball,tennis,soccer,wii,frisbee",
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

NOT_REAL = _words("stuffed toy statue teddy painting painted sculpture sign poster cartoon figurine drawing mural costume logo")
"""What makes animals and vehicles of captions none."""
MANY = _words("group bunch herd crowd flock several many various lot pack row line number dozens multiple some other another")
"""With these words, things are not counted."""

NUMBERS = {word: number for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)}


def union(*words: Iterable[str]) -> frozenset[str]:
    """All of these."""
    return frozenset().union(*words)
