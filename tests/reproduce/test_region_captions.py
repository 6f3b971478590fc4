"""Dense and trace captioning of described regions, with a model that says what it was shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from saywhere.build.trace_benchmark import build_trace_benchmark
from saywhere.cli.reproduce import app
from saywhere.core import (
    Box,
    Caption,
    Frame,
    InvalidFile,
    InvalidValue,
    MissingDependency,
    Narrative,
    Region,
    Trace,
    Utterance,
    WholeImage,
)
from saywhere.models.face import Look
from saywhere.reproduce import region_captions as rc
from saywhere.reproduce.patchioner_data import RegionItem
from saywhere.reproduce.region_captions import RegionCaptionExperiment, cropped, read_dense, read_traces
from saywhere.vision import View, read_photo

LEFT, RIGHT = Box(0, 0, 0.5, 1), Box(0.5, 0, 1, 1)
TEXTS = {"red": "a red thing", "blue": "a blue box"}


def quiet(doing: str, done: int, total: int) -> None:
    assert done <= total, doing


@dataclass
class Names:
    """A model that names the colour in the middle of what it is asked about; weighed otherwise, it names nothing."""

    name: str = "names"
    levels: tuple[str, ...] = ("object",)
    skills: tuple[str, ...] = ("caption",)
    looks: int = 0

    def look(self, photo: Image.Image, image_id: str = "") -> Look:
        self.looks += 1
        view = View(Frame.of_grid(2, 2), np.ones((2, 2, 3), np.float32), np.ones(3, np.float32))
        return NamesLook(self, view, read_photo(photo), image_id)  # type: ignore[arg-type]


class NamesLook(Look):
    blind = False

    def captions(self, regions: Sequence[Region], how: Any = None, level: str = "object") -> list[Caption]:
        assert self.image is not None
        found = []
        for region in regions:
            x = 0.5 if isinstance(region, WholeImage) else (rc._bounds(region)[0] + rc._bounds(region)[2]) / 2
            r, _, b = self.image.getpixel((min(int(x * self.image.width), self.image.width - 1), 5))  # type: ignore[misc]
            text = "something else" if self.blind or r == b else TEXTS["red" if r > b else "blue"]
            found.append(Caption(text, -1.0, region))
        return found

    def weighing(self, weighting: str) -> NamesLook:
        other = NamesLook(self.model, self.view, self.image, self.image_id)
        other.blind = True
        return other


@pytest.fixture
def photos(tmp_path: Path) -> dict[str, Path]:
    """Red at the left, blue at the right, or the other way round; between them a line of both."""
    files = {}
    for number in range(6):
        pixels = np.zeros((40, 60, 3), np.uint8)
        pixels[:, :29, 0], pixels[:, 31:, 2] = 200, 200
        pixels[:, 29:31] = (200, 0, 200)
        files[str(number)] = tmp_path / f"{number}.png"
        Image.fromarray(pixels if number % 2 else pixels[:, ::-1]).save(files[str(number)])
    return files


def items_of(photos: dict[str, Path], kind: str) -> list[RegionItem]:
    items = []
    for image in photos:
        for side, box in (("left", LEFT), ("right", RIGHT)):
            red = (side == "left") == bool(int(image) % 2)
            x = sum(box.xyxy[::2]) / 2
            trace = Trace([(x - 0.1, 0.2, 0.0), (x + 0.1, 0.8, 1.0)])
            region = box if kind == "dense" else trace
            items.append(RegionItem(f"{image}-{side}", image, region, (TEXTS["red" if red else "blue"],)))
    return items


@pytest.mark.parametrize("kind", ["dense", "traces"])
def test_regions_beat_the_whole_photo_and_crops_cost_a_look_each(
    kind: Any, photos: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java() -> None:
        raise MissingDependency("a Java runtime", "METEOR", "install one")

    monkeypatch.setattr(rc, "MeteorTool", no_java)
    model = Names()
    experiment = RegionCaptionExperiment(kind=kind, model=model, items=items_of(photos, kind), photos=photos)
    results = experiment.run(tmp_path / "out", quiet)
    [table] = results.tables
    rows = {row.name: row.scores[0] for row in table.rows}
    # One look a photo, and one more for each of its two crops.
    assert model.looks == 3 * len(photos)
    assert rc.ATTENDED not in rows
    assert rows[rc.USUAL]["CIDEr"] == pytest.approx(rows[rc.CROP]["CIDEr"])
    assert rows[rc.USUAL]["CIDEr"] > rows[rc.WHOLE]["CIDEr"] + 1
    assert all(row[rc.SECONDS.name] > 0 for row in rows.values())
    assert ("mAP (by ROUGE-L)" in rows[rc.USUAL]) == (kind == "dense")
    if kind == "dense":
        assert rows[rc.USUAL]["mAP (by ROUGE-L)"] == pytest.approx(100)
        assert rows[rc.WHOLE]["mAP (by ROUGE-L)"] < 60
    verdicts = {claim.text: claim.verdict for claim in results.claims}
    assert verdicts["Patches of a region say more about it than the whole photo does"] == "held"
    assert verdicts["Patches of a region say more about it than a crop does"] == "undecided"
    assert any("ROUGE-L, not METEOR" in remark for remark in results.remarks)


def test_a_quick_run_has_a_table_but_no_verdict(photos: dict[str, Path], tmp_path: Path) -> None:
    experiment = RegionCaptionExperiment(
        kind="traces", model=Names(), items=items_of(photos, "traces"), photos=photos, is_quick=True
    )
    results = experiment.run(tmp_path / "out", quiet)
    assert results.claims == ()
    assert len(results.tables) == 1


def test_described_boxes_are_read_in_every_form(tmp_path: Path) -> None:
    own = {"1": [{"box_xyxy": [0, 0, 0.5, 1], "caption": "a cat"}, {"box_xyxy": [0, 0, 0.5, 1], "caption": "one cat"}]}
    own["2"] = [{"box_xyxy": [0, 0, 1, 1], "caption": "a sky"}]
    (tmp_path / "own.json").write_text(json.dumps(own))
    items, left_out = read_dense(tmp_path / "own.json", None, lambda image: image == "1")
    assert [(item.region, item.references) for item in items] == [(Box(0, 0, 0.5, 1), ("a cat", "one cat"))]
    assert left_out == {"without a photo": 1}
    region = {"region_id": 5, "image_id": 1, "x": 10, "y": 0, "width": 50, "height": 25, "phrase": "a dog"}
    (tmp_path / "vg.json").write_text(json.dumps([{"id": 1, "regions": [region]}]))
    (tmp_path / "sizes.json").write_text(json.dumps([{"image_id": 1, "width": 100, "height": 50}]))
    [item], _ = read_dense(tmp_path / "vg.json", tmp_path / "sizes.json", lambda image: True)
    assert (item.region, item.references) == (Box(0.1, 0, 0.6, 0.5), ("a dog",))
    _, left_out = read_dense(tmp_path / "vg.json", None, lambda image: True)
    assert left_out == {"unreadable, or of unknown size": 1}
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(InvalidFile, match="no described boxes"):
        read_dense(tmp_path / "bad.json", None, lambda image: True)


def test_traces_come_from_a_benchmark(tmp_path: Path) -> None:
    points = [(0.1 + 0.08 * i, 0.5, 0.4 * i) for i in range(11)]
    said = tuple(Utterance(word, float(i), i + 1.0) for i, word in enumerate(["There", "is", "a", "red", "cup."][:4]))
    narratives = [Narrative(image, "There is a red", said, Trace(points), annotator_id="1") for image in ("1", "2")]
    build_trace_benchmark(narratives, tmp_path / "bench.jsonl")
    items, left_out = read_traces(tmp_path / "bench.jsonl", lambda image: image == "1")
    assert [type(item.region) for item in items] == [Trace]
    assert left_out == {"without a photo": 1}


@pytest.mark.parametrize(
    ("region", "size"),
    [
        (LEFT, (30, 40)),
        (Box(0, 0, 1, 1), (60, 40)),
        (Box(0.99, 0.99, 1, 1), (8, 8)),
        (Box(0, 0, 0.01, 0.01), (8, 8)),
        (Trace([(0.5, 0.5, 0)]), (8, 8)),
    ],
)
def test_a_crop_is_the_rectangle_around_a_region_and_never_a_line(region: Region, size: tuple[int, int]) -> None:
    assert cropped(Image.new("RGB", (60, 40)), region).size == size


def test_no_regions_are_refused() -> None:
    with pytest.raises(InvalidValue, match="none of them"):
        RegionCaptionExperiment(kind="dense", model=Names(), items=[], photos={})


def test_the_commands_say_what_they_read() -> None:
    for command in ("dense", "traces"):
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
