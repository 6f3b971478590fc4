"""Real narrations with pseudo-traces, on made-up ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.core import Frame, InvalidFile, InvalidValue, MissingDependency
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.formats.trecs import TaggedNarration
from saywhere.models.mitr import RegionFeatures
from saywhere.models.mitr.prepared import Prepared
from saywhere.models.prepared import REGION_FIELDS, region_row
from saywhere.models.region_features import REGIONS, view_regions
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.reproduce import caption_metrics, narrations
from saywhere.reproduce.mitr_measure import MitrScale
from saywhere.reproduce.narrations import (
    NarrationScale,
    NarrationsExperiment,
    distances,
    guesses,
    prepare_narrations,
)
from saywhere.reproduce.pseudo_traces import pseudo_boxes, read_boxes
from saywhere.store import StoreWriter
from saywhere.vision import View

CUP = COCO_CLASSES.index("cup")
TABLE = COCO_CLASSES.index("dining table")


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    path = tmp_path / "boxes.json"
    rows = [[CUP, 0.3, 0.3, 0.2, 0.2], [CUP, 0.7, 0.7, 0.1, 0.1], [TABLE, 0.5, 0.8, 1.2, 0.4]]
    path.write_text(json.dumps({f"{i:012d}": rows for i in range(80)}))
    return path


def told(i: int) -> TaggedNarration:
    return TaggedNarration(str(i), "1", ("a", "cup", "on", "wood"), ("cup", "cup", "sky-other", "dining-table"))


def test_the_largest_box_of_a_words_tag_is_its_pseudo_box(boxes: Path) -> None:
    placed = pseudo_boxes(told(0), read_boxes(boxes)["000000000000"])
    assert placed.located.tolist() == [True, True, False, True]
    np.testing.assert_allclose(placed.boxes_xyxy[1], [0.2, 0.2, 0.4, 0.4])
    np.testing.assert_allclose(placed.boxes_xyxy[3], [0.0, 0.6, 1.0, 1.0])


@pytest.mark.parametrize(
    ("content", "reason"),
    [("[]", "not boxes of images"), ('{"1": [[80, 0.5, 0.5, 0.1, 0.1]]}', "no class 80"), ("{", "not boxes of images")],
)
def test_boxes_that_cannot_be_read_are_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "b.json").write_text(content)
    with pytest.raises(InvalidFile, match=reason):
        read_boxes(tmp_path / "b.json")


def test_narrations_without_photo_or_place_are_counted_and_left_out(boxes: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    regions = {f"{i:012d}": RegionFeatures(rng.random((4, 6)), [[0, 0, 1, 1]] * 4) for i in range(80)}
    many = [told(i) for i in range(81)] + [TaggedNarration("3", "2", ("sky",), ("sky-other",))]
    counts = prepare_narrations(tmp_path / "data", many, read_boxes(boxes), regions.get, NarrationScale(size=3))
    assert (counts["without photo"], counts["without any pseudo-box"]) == (1, 1)
    prepared = Prepared(tmp_path / "data")
    assert prepared.region_size == 3
    test = prepared.split("test")
    items = [test[i] for i in range(len(test))]
    scores = {name: distances(placed, items)["LBM (k=0)"] for name, placed in guesses(prepared, test).items()}
    # Every photo has the same boxes here, so the mean box of a word is right but for the words that share it.
    assert scores["the mean box of the word"] == pytest.approx(0, abs=1e-6)
    assert scores["the whole image"] > scores["the mean box"] > 0.05
    with pytest.raises(InvalidValue, match="none of them has a photo"):
        prepare_narrations(tmp_path / "none", [told(99)], read_boxes(boxes), regions.get, NarrationScale())


def test_patches_are_joined_in_squares() -> None:
    view = View(Frame.squash((40, 20), (64, 64), 16), np.arange(16, dtype=np.float32).reshape(4, 4, 1), np.ones(1))
    regions = view_regions(view, 2)
    np.testing.assert_allclose(regions.features[:, 0], [2.5, 4.5, 10.5, 12.5])
    np.testing.assert_allclose(regions.boxes_xyxy[1], [0.5, 0, 1, 0.5])


def experiment(boxes: Path, folder: Path, **where: Path) -> NarrationsExperiment:
    lines = {
        "ids": [f"{i}_1" for i in range(80)],
        "words": ["a cup on wood"] * 80,
        "cleaned_tags": ["cup cup sky-other dining-table"] * 80,
    }
    for part, rows in lines.items():
        (folder / f"val.{part}.txt").write_text("\n".join(rows))
    return NarrationsExperiment(
        ids=folder / "val.ids.txt",
        boxes=boxes,
        narrations=NarrationScale(size=3),
        scale=MitrScale(steps=2, batch=4, width=8, heads=2, beams=2, test=5),
        **where,
    )


def test_what_a_model_saw_already_is_used_and_named(boxes: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with StoreWriter(tmp_path / "seen", REGIONS, REGION_FIELDS, {"model": "saywhere-base"}) as writer:
        for i in range(79):
            image = TaggedRegions(rng.random((3, 6)), [(0, 0, 1, 1), (0, 0, 0.5, 1), (0.5, 0, 1, 1)])
            writer.add(f"{i:012d}", **region_row(image))
    planned = experiment(boxes, tmp_path, features=tmp_path / "seen")
    [job] = planned.jobs(tmp_path / "out", lambda *_: None)
    prepared = Prepared(job.data)
    # The last narration's photo was not seen.
    assert sum(len(prepared.split(name)) for name in ("train", "validation", "test")) == 79
    assert len(prepared.split("train")[0].image) == 3
    assert any(one.here == "places that saywhere-base sees" for one in planned.departures())


def test_the_departures_are_those_of_the_row_that_learns(boxes: Path) -> None:
    told = {one.setting: (one.here, one.paper) for one in NarrationsExperiment(ids=boxes, boxes=boxes).departures()}
    assert told["previous boxes in Task 1"] == ("90 % hidden", "all seen")
    assert told["dropout of attention, of inputs"] == ("0, 0.5", "0.1, 0.5")
    assert told["weight of the cycle"] == ("0", "0.1")
    assert told["gradients"] == ("clipped to a norm of 1", "each number clipped to 0.1")
    assert "weight of the caption" not in told


def test_narrations_need_photos_or_features(boxes: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="neither photos nor features"):
        experiment(boxes, tmp_path).jobs(tmp_path / "out", lambda *_: None)


def test_the_whole_experiment_runs(boxes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise MissingDependency("a Java runtime", "METEOR", "install one")

    photos = tmp_path / "photos"
    photos.mkdir()
    for i in range(80):
        Image.new("RGB", (8, 8)).save(photos / f"{i:012d}.png")
    rng = np.random.default_rng(1)
    frame = Frame.squash((8, 8), (64, 64), 16)
    seen = {f"{i:012d}": View(frame, rng.random((4, 4, 6)).astype(np.float32), np.ones(6)) for i in range(80)}

    class Seen(dict[str, View]):
        ids = tuple(seen)

    monkeypatch.setattr(caption_metrics, "MeteorTool", no_java)
    monkeypatch.setattr(narrations, "open_encoder", lambda name, px: "an encoder that sees noise")
    monkeypatch.setattr(narrations, "extract", lambda photos, out, encoder, progress: Seen(seen))
    results = experiment(boxes, tmp_path, photos=photos).run(tmp_path / "out", lambda *_: None)
    assert [row.name for row in results.tables[0].rows][-1] == "MITR, Task 1 + 2 + 3"
    assert len(results.claims) == 4
    assert "pseudo-trace" in (tmp_path / "out" / "report.md").read_text()
