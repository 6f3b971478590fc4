"""The four region tasks, with captioners that know, guess or fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from saywhere.build.trace_benchmark import BuildCounts, TraceSample, trace_samples
from saywhere.core import Box, BoxSet, InvalidFile, InvalidValue, MissingDependency, Region, Trace, WholeImage
from saywhere.formats import entities
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.entities import EntitiesCaption
from saywhere.formats.visual_genome import RegionDescription
from saywhere.metrics import caption_scores
from saywhere.reproduce import region_tasks
from saywhere.reproduce.region_tasks import (
    RegionTask,
    captioned,
    dense_task,
    evaluate,
    image_task,
    region_set_task,
    score,
    trace_task,
)
from saywhere.world import narrate, scenes


def described(image_id: int, box_xywh_px: tuple[float, float, float, float], phrase: str) -> RegionDescription:
    return RegionDescription(image_id, f"{image_id}-{phrase}", phrase, box_xywh_px, 100, 100)


BOXES = [
    described(1, (0, 0, 50, 50), "a brown dog on the grass"),
    described(1, (50, 50, 50, 50), "a red car on the street"),
    described(2, (20, 20, 60, 60), "a man with a white hat"),
    described(2, (0, 0, 100, 20), "the blue sky with a cloud"),
]


class Knowing:
    """Says what it was told to say, and remembers what it was asked."""

    def __init__(self, task: RegionTask, said: Mapping[str, str] | None = None) -> None:
        self._items = task.items
        self._said = said or {item.item_id: item.references[0] for item in task.items}
        self.asked: list[tuple[str, int]] = []

    def captions(self, image_id: str, regions: Sequence[Region]) -> list[str]:
        self.asked.append((image_id, len(regions)))
        return [
            next(
                self._said[item.item_id] for item in self._items if item.image_id == image_id and item.region is region
            )
            for region in regions
        ]


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without Java."""

    def absent(*_: object, **__: object) -> None:
        raise MissingDependency("a Java runtime", "METEOR", "install one")

    monkeypatch.setattr(region_tasks, "MeteorTool", absent)


def test_samples_of_traces_are_items_of_their_own() -> None:
    trace = Trace([[0.1, 0.1, 0.0], [0.2, 0.2, 1.0]])
    task = trace_task(TraceSample("9", text, "…", trace, 0, 1) for text in ("A dog", "A cat"))
    assert [item.item_id for item in task.items] == ["9/0", "9/1"]
    assert [item.references for item in task.items] == [("A dog",), ("A cat",)]
    assert task.items[0].region is trace


def test_described_boxes_are_items_in_fractions() -> None:
    task = dense_task(BOXES)
    assert task.items[1].region == Box(0.5, 0.5, 1.0, 1.0)
    assert list(task.by_image) == ["1", "2"]


def test_captions_that_share_their_boxes_are_references_of_one_item() -> None:
    boxes = ((0.0, 0.0, 50.0, 25.0), (10.0, 10.0, 100.0, 50.0))
    told = [
        EntitiesCaption("1", "two dogs", boxes),
        EntitiesCaption("1", "dogs play", boxes),
        EntitiesCaption("1", "one dog", boxes[:1]),
        EntitiesCaption("1", "nothing", ()),
        EntitiesCaption("2", "of unknown size", boxes),
    ]
    task = region_set_task(told, {"1": (100, 50)})
    assert [item.references for item in task.items] == [("two dogs", "dogs play"), ("one dog",)]
    assert task.items[0].region == BoxSet((Box(0, 0, 0.5, 0.5), Box(0.1, 0.2, 1.0, 1.0)))
    assert task.left_out == {"without boxes": 1, "photo of unknown size": 1}


def test_all_captions_of_a_photo_are_references_of_the_whole() -> None:
    task = image_task([CaptionRecord(5, 1, "a dog"), CaptionRecord(6, 2, "a cat"), CaptionRecord(5, 3, "a hound")])
    assert [(item.image_id, item.references) for item in task.items] == [("5", ("a dog", "a hound")), ("6", ("a cat",))]
    assert isinstance(task.items[0].region, WholeImage)


def test_a_task_without_items_says_what_was_left_out() -> None:
    with pytest.raises(InvalidValue, match=r"has no items \(1 without boxes"):
        region_set_task([EntitiesCaption("1", "a dog", ())])


def test_photos_are_asked_once_with_all_their_regions(no_java: None) -> None:
    task = dense_task(BOXES)
    captioner = Knowing(task)
    seen: list[tuple[str, int, int]] = []
    evaluate(task, captioner, progress=lambda *step: seen.append(step))
    assert captioner.asked == [("1", 2), ("2", 2)]
    assert ("dense captioning", 2, 2) in seen


def test_measures_are_those_of_the_metrics_and_what_is_missing_is_named(no_java: None) -> None:
    task = dense_task(BOXES)
    said = {item.item_id: f"a {item.references[0].split()[2]}" for item in task.items}
    scores = evaluate(task, Knowing(task, said))
    expected = caption_scores(said, {item.item_id: item.references for item in task.items})["corpus"]
    for measure in ("BLEU-4", "ROUGE-L", "CIDEr"):
        assert scores.measures[measure] == pytest.approx(expected[measure])
    assert 0 < scores.measures["scene-graph F"] < 1
    assert {"METEOR", "SPICE", "mAP", "RefPAC-S"} == set(scores.missing)
    assert "Java" in scores.missing["METEOR"]
    assert not set(scores.missing) & set(scores.measures)
    assert (scores.items, scores.images) == (4, 2)
    assert scores.captions == said


class Letters:
    """Texts as counts of a few letters."""

    name = "letters"

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.array([[1 + text.count(letter) for letter in "aeiou"] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_an_encoder_adds_the_similarity_to_the_nearest_reference(no_java: None) -> None:
    task = image_task([CaptionRecord(5, 1, "aaa"), CaptionRecord(5, 2, "uuu"), CaptionRecord(6, 3, "eee")])
    scores = evaluate(task, Knowing(task, {"5/0": "uuu", "6/0": "aaa"}), encoder=Letters())
    other = float(np.dot([1, 4, 1, 1, 1], [4, 1, 1, 1, 1]) / np.dot([4, 1, 1, 1, 1], [4, 1, 1, 1, 1]))
    assert "CLIP-S" in scores.missing  # a measure of whole photos only
    assert scores.measures["reference similarity (letters)"] == pytest.approx((1 + other) / 2)


class SameWords:
    """Stands for the METEOR program: 1 for the words of a reference, else 0."""

    started = 0

    def __enter__(self) -> SameWords:
        SameWords.started += 1
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def score(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, list[float]]:
        each = [float(one in others) for one, others in zip(candidates, references, strict=True)]
        return float(np.mean(each)), each


def test_right_captions_of_true_boxes_have_a_dense_map_of_one_until_boxes_merge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(region_tasks, "MeteorTool", SameWords)
    task = dense_task(BOXES)
    right = {item.item_id: item.references[0] for item in task.items}
    scores = score(task, right).measures
    assert (scores["mAP"], scores["METEOR"]) == (1.0, 1.0)
    assert SameWords.started == 1  # for both
    half = score(task, {**right, "1/1": "a boat", "2/0": "a boat"}).measures
    # In the order given right, wrong, wrong, right: precision 1 up to recall 1/4, then 1/2 up to recall 1/2.
    assert half["mAP"] == pytest.approx((26 * 1 + 25 * 0.5) / 101)
    assert half["METEOR"] == 0.5
    # A second box on the dog is one region with it, and whoever claims it second is wrong.
    twice = dense_task([*BOXES, described(1, (0, 0, 50, 48), "some dog")])
    merged = score(twice, {item.item_id: item.references[0] for item in twice.items}).measures["mAP"]
    # By photo: right, right, wrong; right, right, of four regions.
    assert merged == pytest.approx((51 * 1 + 50 * 0.8) / 101)


def test_an_interrupted_evaluation_goes_on_where_it_was(
    no_java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_tasks, "_SAVE_S", -1.0)
    task = dense_task(BOXES)

    class Tired(Knowing):
        def captions(self, image_id: str, regions: Sequence[Region]) -> list[str]:
            if image_id == "2":
                raise InterruptedError("power cut")
            return super().captions(image_id, regions)

    path = tmp_path / "dense.json"
    with pytest.raises(InterruptedError):
        evaluate(task, Tired(task), path, name="tired")
    fresh = Knowing(task)
    scores = evaluate(task, fresh, path, name="tired")
    assert fresh.asked == [("2", 2)]
    saved = json.loads(path.read_text())
    assert saved["captions"] == scores.captions == {item.item_id: item.references[0] for item in task.items}
    assert saved["measures"] == scores.measures
    assert set(saved["missing"]) == set(scores.missing)
    assert saved["made_by"]["saywhere"]


def test_a_file_of_another_captioner_or_of_other_regions_is_refused(tmp_path: Path) -> None:
    task, other = dense_task(BOXES), dense_task(BOXES[:3])
    path = tmp_path / "dense.json"
    captioned(task, Knowing(task), path, name="one")
    before = path.read_bytes()
    with pytest.raises(InvalidFile, match="captions by 'one', not by 'two'"):
        captioned(task, Knowing(task), path, name="two")
    with pytest.raises(InvalidFile, match="of other regions"):
        captioned(other, Knowing(other), path, name="one")
    assert path.read_bytes() == before
    path.write_text("{}")
    with pytest.raises(InvalidFile, match="not a file of captions"):
        captioned(task, Knowing(task), path, name="one")


def test_regions_that_differ_in_one_point_make_another_task() -> None:
    def task(x: float) -> RegionTask:
        return trace_task([TraceSample("9", "A dog", "…", Trace([[x, 0.1, 0.0], [0.2, 0.2, 1.0]]), 0, 1)])

    assert task(0.1).fingerprint == task(0.1).fingerprint
    assert task(0.1).fingerprint != task(0.1001).fingerprint


def test_a_captioner_that_loses_a_region_is_an_error() -> None:
    class Forgetful:
        def captions(self, image_id: str, regions: Sequence[Region]) -> list[str]:
            return ["a dog"]

    with pytest.raises(InvalidValue, match="1 captions for 2 regions"):
        captioned(dense_task(BOXES), Forgetful())


def test_traces_of_the_world_are_captioned_better_by_who_knows_than_by_who_guesses(no_java: None) -> None:
    narratives = [narrate(scene, seed=2).narrative for scene in scenes(6, seed=2, size=32)]
    task = trace_task(trace_samples(narratives, BuildCounts()))
    right = evaluate(task, Knowing(task)).measures
    guess = evaluate(task, Knowing(task, {item.item_id: "a white dog" for item in task.items})).measures
    assert right["BLEU-4"] > 0.9
    for measure in ("BLEU-4", "ROUGE-L", "CIDEr", "scene-graph F"):
        assert guess[measure] < right[measure]


def test_the_real_entities_become_a_task(shared: Callable[[str], Path]) -> None:
    read = [c for c in entities.read(shared("data/entities/coco_entities_test.json")) if isinstance(c, EntitiesCaption)]
    sizes = {caption.image_id: (640, 640) for caption in read[:500]}
    task = region_set_task(read[:600], sizes)
    assert sum(len(item.references) for item in task.items) + sum(task.left_out.values()) == 600
    assert any(len(item.references) > 1 for item in task.items)
