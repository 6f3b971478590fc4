from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from saywhere.core import Narrative, Trace, Utterance
from saywhere.formats import localized_narratives, parquet
from tests.cli.conftest import Ran

Run = Callable[..., Ran]

CUP = Narrative(
    "17",
    "a cup on the table",
    (Utterance("a cup", 0, 1), Utterance("on the table", 1, 2)),
    Trace([(0.2, 0.2, 0.1), (0.3, 0.3, 0.9), (0.8, 1.2, 1.5)]),
    dataset_id="mine",
    annotator_id="3",
)
SPOON = Narrative("18", "a spoon", (), Trace([]), dataset_id="mine", annotator_id="3")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.jsonl"
    localized_narratives.write(path, [CUP, SPOON, CUP])
    return path


@pytest.fixture
def bad(tmp_path: Path, good: Path) -> Path:
    lines = good.read_text().splitlines()
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join([lines[0], '{"image_id": 5', lines[1], lines[0].replace("0.9", "NaN")]) + "\n")
    return path


def test_check_passes_good_files_and_remarks_on_what_is_odd(saywhere: Run, good: Path) -> None:
    ran = saywhere("data", "check", good)
    assert ran.code == 0
    assert "3 good" in ran.out
    assert "1 × the same data set, image and annotator as a record before" in ran.out


def test_check_lists_every_bad_record_with_line_and_reason(saywhere: Run, bad: Path) -> None:
    ran = saywhere("data", "check", bad)
    assert ran.code == 1
    assert "bad.jsonl:2: " in ran.out
    assert "bad.jsonl:4: " in ran.out
    assert "2 good, 2 bad" in ran.out


def test_check_goes_on_after_a_file_that_cannot_be_read(saywhere: Run, good: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "odd.bin").write_bytes(bytes(range(200)))
    ran = saywhere("data", "check", tmp_path / "nowhere.jsonl", tmp_path / "empty.jsonl", tmp_path / "odd.bin", good)
    assert ran.code == 1
    assert "cannot be opened" in ran.out
    assert "is empty" in ran.out
    assert "in no format that saywhere knows" in ran.out
    assert "3 good" in ran.out


@pytest.mark.parametrize("name", ["copy.jsonl", "copy.jsonl.gz", "copy.parquet"])
def test_convert_and_back_gives_the_same_narratives(saywhere: Run, good: Path, tmp_path: Path, name: str) -> None:
    assert saywhere("data", "convert", good, tmp_path / name).code == 0
    reader = parquet if name.endswith("parquet") else localized_narratives
    assert list(reader.read(tmp_path / name)) == [CUP, SPOON, CUP]


def test_convert_makes_web_annotations_and_coco_captions(saywhere: Run, good: Path, tmp_path: Path) -> None:
    assert saywhere("data", "convert", good, tmp_path / "a.jsonld").code == 0
    assert "a cup on the table" in (tmp_path / "a.jsonld").read_text()
    ran = saywhere("data", "convert", good, tmp_path / "captions.json")
    assert ran.code == 0
    captions = json.loads((tmp_path / "captions.json").read_text())["annotations"]
    assert [c["caption"] for c in captions] == ["a cup on the table", "a spoon", "a cup on the table"]


def test_convert_says_what_it_left_out_and_keeps_the_rest(saywhere: Run, bad: Path, tmp_path: Path) -> None:
    ran = saywhere("data", "convert", bad, tmp_path / "kept.parquet")
    assert ran.code == 1
    assert "bad.jsonl:2" in ran.err
    assert "2 narratives written, 2 records left out" in ran.out
    assert len(list(parquet.read(tmp_path / "kept.parquet"))) == 2


@pytest.mark.parametrize(
    ("target", "options", "reason"),
    [
        ("out.xyz", (), "its name tells no format"),
        ("out.json", ("--to", "coco-instances"), "holds narratives, which cannot become instances"),
        ("out.json", ("--to", "cocoa"), "unknown format 'cocoa'. Did you mean"),
        ("out.json", ("--to", "osie"), "can be read but not written"),
    ],
)
def test_convert_refuses_what_cannot_be(
    saywhere: Run, good: Path, tmp_path: Path, target: str, options: tuple[str, ...], reason: str
) -> None:
    ran = saywhere("data", "convert", good, tmp_path / target, *options)
    assert ran.code == 2
    assert reason in ran.err
    assert not (tmp_path / target).exists()


def test_stats_describe_a_file_in_numbers_and_a_picture(saywhere: Run, good: Path, tmp_path: Path) -> None:
    ran = saywhere("data", "stats", good, "--png", tmp_path / "stats.png")
    assert ran.code == 0
    rows = dict(line.split("  ", 1) for line in ran.out.splitlines() if "  " in line)
    assert {k: v.strip() for k, v in rows.items()}["narratives"] == "3"
    assert {k: v.strip() for k, v in rows.items()}["images"] == "2"
    with Image.open(tmp_path / "stats.png") as picture:
        assert picture.width > 600


def test_show_makes_a_page_and_a_picture(saywhere: Run, good: Path, tmp_path: Path) -> None:
    Image.new("RGB", (64, 48), "white").save(tmp_path / "000000000017.jpg")
    page = tmp_path / "page.html"
    ran = saywhere("data", "show", good, "--out", page)
    assert ran.code == 0
    assert "3 narratives, 1 without a photo" in ran.out
    assert "table" in page.read_text()
    assert saywhere("data", "show", good, "--only", "17", "--out", tmp_path / "one.png").code == 0
    with Image.open(tmp_path / "one.png") as picture:
        assert picture.width > 600


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--only", "99"), "holds no valid narrative of image '99'"),
        (("--out", "page.pdf"), "neither .html nor .png"),
        (("--format", "localised-narratives"), "Did you mean 'localized-narratives'"),
        (("--format", "hl"), "holds caption rows"),
    ],
)
def test_show_says_why_it_cannot(saywhere: Run, good: Path, options: tuple[str, ...], reason: str) -> None:
    ran = saywhere("data", "show", good, *options)
    assert ran.code == 2
    assert reason in ran.err


def test_show_replays_videos_and_names_what_is_missing(saywhere: Run, tmp_path: Path) -> None:
    from tests.videos import write_video

    path = write_video(tmp_path, frames=(0, 1), voice=False)
    ran = saywhere("data", "show", path, "--out", tmp_path / "page.html")
    assert ran.code == 0
    assert "2 narratives, 2 without a recording" in ran.out
    assert "c1a40349: no file for the key frames img_0000019" in ran.err
    assert "sleeps" in (tmp_path / "page.html").read_text()
    assert saywhere("data", "show", path, "--only", "c1a40349", "--out", tmp_path / "one.png").code == 0
    with Image.open(tmp_path / "one.png") as picture:
        assert picture.width > 600
    none = saywhere("data", "show", path, "--only", "99")
    assert none.code == 2
    assert "holds no valid narrative of image '99'" in none.err


def test_an_image_id_that_is_a_path_finds_no_photo_outside_the_folder(saywhere: Run, tmp_path: Path) -> None:
    from saywhere.formats.files import find_photo

    (tmp_path / "secret.png").write_bytes(b"x")
    (tmp_path / "photos").mkdir()
    assert find_photo(tmp_path / "photos", "../secret") is None
    assert find_photo(tmp_path, "secret") == tmp_path / "secret.png"


def test_the_formats_are_listed(saywhere: Run) -> None:
    ran = saywhere("data", "formats")
    assert ran.code == 0
    assert "localized-narratives" in ran.out


def test_version_and_unknown_commands(saywhere: Run) -> None:
    assert saywhere("--version").out.startswith("saywhere 0.")
    assert saywhere("dada").code == 2


def test_a_real_record_passes(saywhere: Run, shared: Callable[[str], Path]) -> None:
    ran = saywhere("data", "check", shared("data/localized_narratives/coco_val_212166_49.jsonl"))
    assert ran.code == 0
    assert "1 good" in ran.out
