"""Questions out of captions, type by type: the exact questions with their answers, and what is left unasked."""

from __future__ import annotations

import pytest

pytest.importorskip("spacy", reason="needs the extra 'language'")

from tests.build.caption_photos import NO, YES, Answers, answered, asked


@pytest.mark.parametrize(
    ("question_type", "captions", "questions"),
    [
        (
            "what color is the",
            ["A red bus on a street.", "A bus parked near a man in a blue shirt."],
            {"What color is the bus?": ("red",), "What color is the man's shirt?": ("blue",)},
        ),
        (
            "what kind of",
            ["A double decker bus.", "A bus on a road."],
            {
                "What kind of bus is this?": ("double decker", "double decker bus"),
                "What type of bus is this?": ("double decker", "double decker bus"),
            },
        ),
        (
            "what is made of",
            ["A cat on a wooden table.", "A cat sits on the table."],
            {"What is the table made of?": ("wood",), "What material is the table made of?": ("wood",)},
        ),
        (
            "what animal is",
            ["A puppy on a rug.", "A dog sleeps.", "A small dog rests."],
            {
                "What animal is this?": ("dog", "puppy"),
                "What kind of animal is this?": ("dog", "puppy"),
                "What animal is in the picture?": ("dog", "puppy"),
            },
        ),
        (
            "what vehicle is",
            ["Trains on tracks.", "Two trains.", "Trains at a station."],
            {"What kind of vehicles are these?": ("trains",), "What type of vehicles are these?": ("trains",)},
        ),
        (
            "what food is",
            ["A banana on a plate.", "A ripe banana.", "A banana and a spoon."],
            {
                "What kind of fruit is this?": ("banana",),
                "What type of fruit is this?": ("banana",),
                "What fruit is this?": ("banana",),
            },
        ),
        (
            "what is doing",
            ["A man is standing on a skateboard.", "A man riding a skateboard."],
            {"What is the man doing?": ("skateboarding", "standing")},
        ),
        (
            "what is acted on",
            ["A woman holding a tennis racket.", "A woman is sitting on a bench."],
            {"What is the woman holding?": ("tennis racket", "racket"), "What is the woman sitting on?": ("bench",)},
        ),
        ("who is", ["A boy riding a horse.", "A child on a horse."], {"Who is riding the horse?": ("boy",)}),
        (
            "what is worn",
            ["A man wearing a hat.", "A man stands on a street."],
            {"What is the man wearing?": ("hat",), "What is on the man's head?": ("hat",)},
        ),
        (
            "where is the",
            ["A cat sleeping on a couch.", "A cat is on a sofa."],
            {"Where is the cat?": ("couch", "sofa", "on couch", "on sofa")},
        ),
        ("where is the", ["A cat under an umbrella."], {"Where is the cat?": ("under umbrella",)}),
        ("where is the", ["Two zebra in a pen."], {"Where are the zebras?": ("pen", "in pen")}),
        (
            "where is the",
            ["A head of broccoli on a table."],
            {"Where is the broccoli?": ("table", "on table")},
        ),
        (
            "what is on the",
            ["A table with a laptop and a mouse on it.", "A bowl of soup."],
            {"What is on the table?": ("laptop", "mouse"), "What is in the bowl?": ("soup",)},
        ),
        (
            "what room is",
            ["A kitchen with a stove.", "A stove in a kitchen."],
            {
                "What room is this?": ("kitchen",),
                "What kind of room is this?": ("kitchen",),
                "What type of room is this?": ("kitchen",),
                "Which room is this?": ("kitchen",),
            },
        ),
        (
            "what place is",
            ["A dog on a beach.", "A dog running on the beach."],
            {
                "Where is this?": ("beach",),
                "Where was this picture taken?": ("beach",),
                "Where was this photo taken?": ("beach",),
            },
        ),
        (
            "what sport is",
            ["A man playing tennis.", "A tennis player hits a ball."],
            {
                "What sport is this?": ("tennis",),
                "What sport is being played?": ("tennis",),
                "What sport are they playing?": ("tennis",),
                "What game is being played?": ("tennis",),
            },
        ),
        (
            "what time of day",
            ["A tower in the evening.", "A tower."],
            {"What time of day is it?": ("evening", "dusk"), "What time of day is this?": ("evening", "dusk")},
        ),
        (
            "what is the weather",
            ["A woman walks in the rain.", "A woman with an umbrella."],
            {
                "What is the weather like?": ("rainy",),
                "How is the weather?": ("rainy",),
                "What's the weather like?": ("rainy",),
            },
        ),
    ],
)
def test_captions_answer_what_people_would_ask(question_type: str, captions: list[str], questions: Answers) -> None:
    found = asked(question_type, *captions)
    assert found.items() <= questions.items()
    assert set(found.values()) == set(questions.values())


def test_things_are_counted_in_the_plural_and_animals_also_as_animals() -> None:
    found = asked("how many", "Two zebra in a field.", "Two zebras standing in the grass.")
    assert set(found.values()) == {("2",)}
    assert {"How many zebras are there?", "How many animals are there?"} <= found.keys()
    assert asked("how many", "Two men and a boy.", "Three people.", "Three people sit.").keys() >= {
        "How many people are there?"
    }


@pytest.mark.parametrize(
    ("question_type", "captions", "yes", "no"),
    [
        ("is the (color)", ["A red bus.", "A bus."], {"Is the bus red?"}, {"Is the bus blue?", "Is the bus white?"}),
        (
            "is the (doing)",
            ["A man riding a horse.", "A man is riding a horse."],
            {"Is the man riding a horse?"},
            {"Is the man riding a bike?", "Is the man riding a motorcycle?"},
        ),
        (
            "is the (doing)",
            ["A dog is sleeping on the floor.", "A dog sleeps."],
            {"Is the dog sleeping?"},
            {"Is the dog standing?", "Is the dog walking?", "Is the dog running?", "Is the dog eating?"},
        ),
        (
            "is the (doing)",
            ["A dog is sleeping on the floor.", "A dog near food chases nothing."],
            {"Is the dog sleeping?"},
            {"Is the dog standing?", "Is the dog walking?"},  # captions may mean that it eats, or runs
        ),
        (
            "is the (where)",
            ["A cat is on a couch.", "A cat lies on a sofa."],
            {"Is the cat on the couch?"},
            {"Is the cat on the desk?"},
        ),
        (
            "is this a",
            ["A kitchen with a stove.", "A small kitchen."],
            {"Is this a kitchen?"},
            {"Is this a bathroom?", "Is this a bedroom?"},
        ),
        (
            "is this a",
            ["A giraffe eats.", "A tall giraffe.", "A giraffe by a fence."],
            {"Is this a giraffe?"},
            {"Is this a dog?", "Is this a cat?", "Is this a horse?"},
        ),
        (
            "is this a",
            ["A cow eats.", "A brown cow.", "A cow by a fence."],
            {"Is this a cow?"},
            {"Is this a dog?", "Is this a cat?", "Is this a giraffe?"},  # a horse might be taken for it
        ),
        (
            "is this a",
            ["A man eats.", "A man sits.", "A person eats."],
            {"Is this a man?", "Is the person a man?", "Is this person a man?"},
            {"Is this a woman?", "Is the person a woman?", "Is this person a woman?"},
        ),
        (
            "is it",
            ["A cow in a field.", "A cow on a hillside."],
            {"Is this outdoors?", "Is this outside?", "Was this photo taken outside?"},
            {"Is this indoors?", "Is this inside?", "Was this photo taken indoors?"},
        ),
        (
            "is it",
            ["A tower at night.", "A tall tower."],
            {"Is it night time?", "Is it nighttime?", "Is it dark outside?"},
            {"Is it daytime?", "Is it sunny?", "Is it a sunny day?"},
        ),
        (
            "is it",
            ["A black and white photo of a train.", "A train."],
            {"Is the image in black and white?", "Is this photo in black and white?"},
            {"Is this picture in color?", "Is the photo in color?"},
        ),
        (
            "are there (number)",
            ["Two dogs on a bed.", "Two dogs sleep."],
            {"Are there 2 dogs?", "Are there 2 dogs in the picture?"},
            {"Are there 3 dogs?", "Are there 3 dogs in the picture?"},
        ),
        ("is (wearing)", ["A man wearing a hat."], {"Is the man wearing a hat?"}, {"Is the man wearing a helmet?"}),
    ],
)
def test_each_yes_has_a_no_that_captions_rule_out(
    question_type: str, captions: list[str], yes: set[str], no: set[str]
) -> None:
    found = asked(question_type, *captions)
    assert answered(found, YES) == answered(found, YES) & yes != set()
    assert answered(found, NO) & no
    if question_type != "is the (color)":
        assert answered(found, NO) <= no


def test_another_sport_is_asked_for_than_the_one_that_is_played() -> None:
    found = asked("is (sport)", "A man playing tennis.", "A tennis player hits a ball.")
    assert answered(found, YES) <= {"Are they playing tennis?", "Is this tennis?", "Is this a tennis game?"}
    assert answered(found, YES)
    assert answered(found, NO)
    assert not any("tennis" in text for text in answered(found, NO))


def test_what_is_there_is_asked_for_beside_something_that_nobody_would_leave_out() -> None:
    found = asked("is there a", "A bus on a street.", "A puppy in front of a bus.")
    assert {text.split()[3].rstrip("?") for text in answered(found, YES)} == {"bus", "dog"}
    missing = {text.split()[3].rstrip("?") for text in answered(found, NO)}
    assert missing
    assert missing <= {"cat", "giraffe", "horse", "motorcycle"}


@pytest.mark.parametrize(
    ("question_type", "captions"),
    [
        ("what color is the", ["A red bus.", "A yellow bus."]),  # captions disagree
        ("what color is the", ["A red bus.", "Two buses."]),  # which one?
        ("what color is the", ["A black bear.", "A bear."]),  # says its kind
        ("is the (color)", ["A black and white photo of a red bus."]),
        ("how many", ["Two dogs.", "Three dogs."]),
        ("how many", ["Two dogs.", "Several dogs."]),
        ("how many", ["Two boxes."]),  # one caption only, and there may be more of them
        ("how many", ["A crowd of people.", "Two people.", "Two people sit.", "Two people eat."]),
        ("how many", ["Two men before fans.", "Two men.", "Two men sit."]),
        ("what is doing", ["A man not riding a skateboard."]),
        ("what is worn", ["A man without a hat.", "A man wearing no shirt."]),
        ("what is doing", ["A dog sleeps near another dog."]),
        ("what kind of", ["A police car next to a pickup truck.", "A police car."]),  # "this" is another
        ("what animal is", ["A stuffed dog.", "A dog.", "A dog."]),
        ("what animal is", ["A cake with horses.", "Horses on a cake.", "A cake and horses."]),
        ("what animal is", ["A dog and a cat.", "A dog.", "A dog."]),
        ("what room is", ["A kitchen.", "A bathroom."]),
        ("what place is", ["A kitchen.", "A dog in a field."]),
        ("what sport is", ["A man playing tennis."]),  # one caption only
        ("what sport is", ["A man playing tennis.", "A man playing baseball.", "A tennis player."]),
        ("is it", ["A living room.", "A cow in a field."]),
        ("is the (doing)", ["People standing and sitting.", "The people are standing."]),
        ("is (wearing)", ["A man wearing a hat.", "A man in a helmet."]),
        ("is the (doing)", ["A man is sitting.", "A man is standing."]),
        ("where is the", ["A building on a street."]),
        ("what is worn", ["A man wearing a smile."]),
        ("who is", ["A man holding an item."]),
    ],
)
def test_what_captions_leave_in_doubt_is_not_asked(question_type: str, captions: list[str]) -> None:
    assert asked(question_type, *captions, seeds=range(3)) == {}
