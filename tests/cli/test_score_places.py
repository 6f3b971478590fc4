from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saywhere.metrics import caption_scores
from tests.cli.conftest import Ran
from tests.cli.test_score import put

Run = Callable[..., Ran]
# Two squares of 4 × 4 px in a photo of 10 × 10 px, as outlines; and a third thing in another split.
SQUARES = {1: (0, 0), 2: (4, 4), 3: (6, 0)}
SPLITS = {1: "val", 2: "val", 3: "testA"}


def _annotation(number: int) -> dict[str, Any]:
    x, y = SQUARES[number]
    outline = [x, y, x + 4, y, x + 4, y + 4, x, y + 4]
    return {
        **{"id": number, "image_id": 1, "category_id": 17, "bbox": [x, y, 4, 4]},
        **{"area": 16, "iscrowd": 0, "segmentation": [outline]},
    }


@pytest.fixture
def refs(tmp_path: Path) -> tuple[Path, Path]:
    entries = [
        {
            **{"ref_id": n, "ann_id": n, "image_id": 1, "category_id": 17, "split": SPLITS[n]},
            "sentences": [{"sent_id": 10 * n, "sent": f"square {n}"}, {"sent_id": 10 * n + 1, "sent": "a square"}],
        }
        for n in SQUARES
    ]
    instances = {
        "images": [{"id": 1, "file_name": "1.jpg", "width": 10, "height": 10}],
        "annotations": [_annotation(number) for number in SQUARES],
        "categories": [{"id": 17, "name": "cat"}],
    }
    return put(tmp_path / "refs.json", entries), put(tmp_path / "instances.json", instances)


def results(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _filled(x1: int, y1: int, x2: int, y2: int) -> dict[str, Any]:
    """Run lengths of a box of pixels in 10 × 10."""
    columns = [[0] * 10 if not x1 <= x < x2 else [int(y1 <= y < y2) for y in range(10)] for x in range(10)]
    flat = [pixel for column in columns for pixel in column]
    counts, value = [0], 0
    for pixel in flat:
        if pixel != value:
            counts.append(0)
            value = pixel
        counts[-1] += 1
    return {"size": [10, 10], "counts": counts}


def test_boxes_and_masks_are_scored_as_by_hand(saywhere: Run, refs: tuple[Path, Path], tmp_path: Path) -> None:
    exact = {"box_xyxy": [0, 0, 0.4, 0.4], "mask": _filled(0, 0, 4, 4)}
    # Three of four columns of the true square: IoU 3/4 for both.
    part = {"box_xyxy": [0.4, 0.4, 0.7, 0.8], "mask": _filled(4, 4, 7, 8)}
    # A strip of 4 × 1 px in it: IoU 1/4; and nothing at all.
    strip = {"box_xyxy": [0.4, 0.4, 0.8, 0.5], "mask": _filled(4, 4, 8, 5)}
    guesses = {10: exact, 11: exact, 20: part, 21: strip, 30: {}, 31: {}}
    path = results(tmp_path / "found.jsonl", *({"expression_id": n} | found for n, found in guesses.items()))
    ran = saywhere("score", "referring", path, refs[0], "--instances", refs[1], "-o", tmp_path / "scores.json")
    assert ran.code == 0, ran.err
    written = json.loads((tmp_path / "scores.json").read_text())
    scores = written["scores"]
    mean = (1 + 1 + 0.75 + 0.25 + 0 + 0) / 6
    expected = {"boxes": 6, "P@0.5": 3 / 6, "mean IoU": mean, "masks": 6, "mask P@0.5": 3 / 6, "gIoU": mean}
    # Pixels in both, of pixels in either: 16 + 16 + 12 + 4 of six times 16.
    expected["cIoU"] = 48 / 96
    assert {name: scores[name] for name in expected} == pytest.approx(expected)
    assert scores["testA: P@0.5"] == 0
    assert scores["val: gIoU"] == pytest.approx(3 / 4)
    assert written["per_item"]["21"] == pytest.approx(
        {"IoU": 0.25, "pointing": 1, "mask IoU": 0.25, "box on mask IoU": 0.25}
    )
    assert scores["gIoU of the boxes themselves"] == pytest.approx(mean)
    assert "above that of the boxes themselves, in points: 0.0" in ran.out
    assert scores["pointing"] == pytest.approx(4 / 6)
    one = saywhere("score", "referring", path, refs[0], "--instances", refs[1], "--split", "val")
    assert "cIoU                          0.7500" in one.out


def test_masks_of_another_resolution_are_laid_over_the_photo(
    saywhere: Run, refs: tuple[Path, Path], tmp_path: Path
) -> None:
    coarse = {"size": [5, 5], "counts": [0, 2, 3, 2, 18]}  # two cells of two pixels, twice: 4 × 4 px
    lines = [{"expression_id": 10 * n + k, "mask": coarse} for n in SQUARES for k in (0, 1)]
    ran = saywhere("score", "referring", results(tmp_path / "m.jsonl", *lines), refs[0], "--instances", refs[1])
    assert ran.code == 0, ran.err
    assert "boxes" not in ran.out
    assert "gIoU               0.3333" in ran.out


def test_expressions_of_a_tsv_are_named_by_their_lines(saywhere: Run, tmp_path: Path) -> None:
    truth = tmp_path / "referring.tsv"
    truth.write_text("unc_val\t9\t16\t0.1\t0.1\t0.4\t0.4\tthe dog\nunc+_val\t9\t16\t0.5\t0.5\t0.5\t0.5\tit\n")
    found = [{"expression_id": 1, "box_xyxy": [0.1, 0.1, 0.5, 0.5]}, {"expression_id": 2, "box_xyxy": None}]
    ran = saywhere("score", "referring", results(tmp_path / "found.jsonl", *found), truth)
    assert ran.code == 0, ran.err
    assert sorted((line.strip() for line in ran.out.splitlines() if "_val: P@" in line), reverse=True) == [
        "unc_val: P@0.5      1.0000",
        "unc+_val: P@0.5     0.0000",
    ]


@pytest.mark.parametrize(
    ("lines", "options", "words"),
    [
        ([{"expression_id": 10}], [], "lacks 5 of 6 expressions, such as 11"),
        ([{"expression_id": 10}, {"expression_id": "10"}], [], "two lines for the expression 10"),
        ([{"expression_id": 10 * n + k} for n in SQUARES for k in (0, 1)], [], "neither boxes nor masks"),
        ([{"expression_id": 10}], ["--split", "testC"], "no expression of the split 'testC'"),
    ],
)
def test_results_that_cannot_be_scored_are_refused(
    saywhere: Run,
    refs: tuple[Path, Path],
    tmp_path: Path,
    lines: list[dict[str, Any]],
    options: list[str],
    words: str,
) -> None:
    path = results(tmp_path / "found.jsonl", *lines)
    ran = saywhere("score", "referring", path, refs[0], "--instances", refs[1], *options)
    assert ran.code == 2
    assert words in ran.err


def test_refs_without_their_objects_and_other_files_are_refused(
    saywhere: Run, refs: tuple[Path, Path], tmp_path: Path
) -> None:
    path = results(tmp_path / "found.jsonl", {"expression_id": 10})
    assert "--instances" in saywhere("score", "referring", path, refs[0]).err
    assert "holds no referring expressions" in saywhere("score", "referring", path, refs[1]).err


def test_captions_of_regions_are_scored_against_all_that_was_said_of_each(
    saywhere: Run, refs: tuple[Path, Path], tmp_path: Path
) -> None:
    said = {"1": "square 1", "2": "a round thing", "3": "a square"}
    path = put(tmp_path / "said.json", said)
    options = ["--split", "val", "--metrics", "cider,rouge-l", "-o", tmp_path / "scores.json"]
    ran = saywhere("score", "regions", path, refs[0], *options)
    assert ran.code == 0, ran.err
    expected = caption_scores(
        {"1": said["1"], "2": said["2"]},
        {"1": ["square 1", "a square"], "2": ["square 2", "a square"]},
        ("cider", "rouge_l"),
    )["corpus"]
    scores = json.loads((tmp_path / "scores.json").read_text())["scores"]
    assert scores == pytest.approx({"regions": 2, **expected})
    regions = [{"region_id": 5, "image_id": 1, "x": 0, "y": 0, "width": 3, "height": 3, "phrase": "a red cup"}]
    genome = put(tmp_path / "regions.json", [{"id": 1, "regions": regions}])
    ran = saywhere("score", "regions", put(tmp_path / "b.json", {"5": "a red cup"}), genome, "--metrics", "rouge-l")
    assert "ROUGE-L  1.0000" in ran.out
    assert "lacks 1 of 1 regions, such as 5" in saywhere("score", "regions", path, genome).err
    assert "has no splits" in saywhere("score", "regions", path, genome, "--split", "val").err


def test_two_files_are_compared_photo_by_photo_and_a_part_can_be_scored(saywhere: Run, tmp_path: Path) -> None:
    truth = tmp_path / "referring.tsv"
    truth.write_text("".join(f"val\t{photo}\t16\t0.1\t0.1\t0.4\t0.4\tthe dog\n" for photo in range(1, 11)))
    right, wrong = [0.1, 0.1, 0.5, 0.5], [0.6, 0.6, 0.9, 0.9]
    good, bad = (
        results(
            tmp_path / name, *({"expression_id": n, "box_xyxy": right if n < stop else wrong} for n in range(1, 11))
        )
        for name, stop in (("good.jsonl", 11), ("bad.jsonl", 6))
    )
    ran = saywhere("score", "referring", good, truth, "--against", bad)
    assert ran.code == 0, ran.err
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines()}
    assert rows["good"] == ["100.0", "(100.0", "…", "100.0)"]
    # A share and a difference, each with its interval.
    assert (rows["bad"][0], rows["bad"][4]) == ("50.0", "50.0")
    low, high = float(rows["bad"][5].strip("(")), float(rows["bad"][7].strip(")"))
    assert 0 < low < 50 < high < 100
    few = results(tmp_path / "few.jsonl", {"expression_id": 3, "box_xyxy": right})
    assert saywhere("score", "referring", few, truth).code == 2
    assert "boxes     1" in saywhere("score", "referring", few, truth, "--partial").out
