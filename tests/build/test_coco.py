"""COCO as a store: the same rows from both layouts, and what must never come in."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from saywhere.build.coco import KIND, LEFT_OUT, BuiltCoco, CocoSource, build_coco, split_of
from saywhere.build.coco_labels import kept_out
from saywhere.cli.app import app
from saywhere.core import InvalidFile
from saywhere.store import Store

SIZE = (40, 20)
LISTED, OF_VAL2017, OF_TEST = 86, 139, 724
KEPT_OUT = (LISTED, OF_VAL2017, OF_TEST)
IN = (9, 25, 30)
EMPTY = 34
SECRET = "zyzzyva"
ASKED = "What is this?"
ANSWERS = ["cat"] * 7 + ["kitten"] * 3


def quiet(what: str, done: int, total: int) -> None:
    """Says nothing."""


def jpeg(number: int, size: tuple[int, int] = SIZE) -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def words(number: int) -> str:
    return f"{SECRET} {number}" if number in KEPT_OUT else f"a cat, number {number}"


def photos_into(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number in (*IN, EMPTY, *KEPT_OUT):
        (folder / f"{number:012d}.jpg").write_bytes(jpeg(number))


def packed(path: Path, lines: list[str]) -> None:
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def question(number: int) -> dict[str, Any]:
    text = words(number) if number in (LISTED, OF_VAL2017) else ASKED
    entry = {"question_id": number * 10, "image_id": number, "question": text}
    return entry | {"question_type": "what is", "answer_type": "other"}


def compact(folder: Path) -> CocoSource:
    photos_into(folder / "train2017")
    numbers = (*IN, *KEPT_OUT)
    packed(folder / "boxes.tsv.gz", [f"{n}\t15\t0.375\t0.5\t0.25\t0.5" for n in numbers])
    packed(folder / "captions.tsv.gz", [f"{n}\t{words(n)}" for n in numbers])
    packed(folder / "referring.tsv.gz", [f"unc_val\t{n}\t15\t0.25\t0.25\t0.25\t0.5\t{words(n)}" for n in numbers])
    packed(folder / "cocoqa.tsv.gz", [f"test\t{n}\t2\twhat color\t{words(n)}" for n in numbers])
    asked = [question(n) | {"answer": "cat", "answers": [[one, "yes"] for one in ANSWERS]} for n in numbers]
    packed(folder / "vqa_v2_part_valid.jsonl.gz", [json.dumps(one) for one in asked])
    return CocoSource(folder)


def official(folder: Path) -> CocoSource:
    photos_into(folder / "train2017")
    (folder / "annotations").mkdir()
    numbers = (*IN, *KEPT_OUT)
    images = [{"id": n, "file_name": f"{n:012d}.jpg", "width": SIZE[0], "height": SIZE[1]} for n in numbers]
    box = {"category_id": 17, "bbox": [10, 5, 10, 10], "area": 90, "iscrowd": 0, "segmentation": []}
    boxes = [{"id": n, "image_id": n, **box} for n in numbers] + [{"id": 1, "image_id": 9, **box, "iscrowd": 1}]
    refs = {"category_id": 17, "split": "val"}
    answers = {"answers": [{"answer": one} for one in ANSWERS], "multiple_choice_answer": "cat"}
    documents: dict[str, Any] = {
        "instances_train2017": {"images": images, "annotations": boxes, "categories": [{"id": 17, "name": "cat"}]},
        "captions_train2017": {
            "images": images,
            "annotations": [{"id": n, "image_id": n, "caption": words(n)} for n in numbers],
        },
        "refs(unc)": [
            {"ref_id": n, "ann_id": n, "image_id": n, **refs, "sentences": [{"sent_id": n, "sent": words(n)}]}
            for n in numbers
        ],
        "v2_OpenEnded_mscoco_val2014_questions": {"questions": [question(n) for n in numbers]},
        "v2_mscoco_val2014_annotations": {"annotations": [question(n) | answers for n in numbers]},
    }
    for name, content in documents.items():
        (folder / "annotations" / f"{name}.json").write_text(json.dumps(content))
    return CocoSource(folder)


LAYOUTS = pytest.mark.parametrize("layout", [compact, official])
Layout = Callable[[Path], CocoSource]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text(f"{LISTED}\n")
    return path


def build(source: CocoSource, out: Path, listed: Path, **how: Any) -> BuiltCoco:
    return build_coco(CocoSource(source.folder, source.photos, source.saliency, (listed,)), out, quiet, **how)


def named(out: Path) -> list[tuple[str, str, str]]:
    rows = [json.loads(line) for line in (out / LEFT_OUT).read_text().splitlines()]
    return [(row["kind"], row["what"], row["reason"]) for row in rows]


def test_the_questions_of_ok_vqa_come_beside_those_of_vqa(tmp_path: Path, listed: Path) -> None:
    source = official(tmp_path / "coco")
    folder = tmp_path / "coco" / "annotations"
    asked = question(25) | {"question_id": 7, "question": "What is it for?"}
    told = {"answers": [{"answer": "sleep"}], "question_id": 7, "image_id": 25}
    for name, content in {
        "OpenEnded_mscoco_train2014_questions": {"questions": [asked]},
        "mscoco_train2014_annotations": {"annotations": [asked | told]},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    build(source, tmp_path / "out", listed)
    questions = Store(tmp_path / "out", KIND).by_key("000000000025")["questions"]
    assert {(one["question"], one["split"], one["source"]) for one in questions} == {
        (question(25)["question"], "valid", "vqa"),
        ("What is it for?", "train", "okvqa"),
    }


def test_questions_of_other_data_sets_come_beside_vqas(tmp_path: Path, listed: Path) -> None:
    source = official(tmp_path / "coco")
    folder = tmp_path / "coco" / "annotations"
    asked = {"image_id": 25, "choices": ["sun", "rain"], "correct_choice_idx": 1, "split": "train"}
    hard = asked | {"question_id": "a", "question": "What is it for?", "difficult_direct_answer": True}
    easy = asked | {"question_id": "b", "question": "How many are there?", "direct_answers": ["3", "3", "2"]}
    (folder / "aokvqa_v1p0_train.json").write_text(json.dumps([hard | {"direct_answers": ["x", "y"]}, easy]))
    told = {"image": "000000000025.jpg", "caption": "The cat is on the bed.", "relation": "on", "label": 0}
    (folder / "all_vsr_validated_data.jsonl").write_text(json.dumps(told))
    build(source, tmp_path / "out", listed)
    questions = Store(tmp_path / "out", KIND).by_key("000000000025")["questions"]
    found = {one["question"]: (one["answer_type"], one["answers"], one["split"], one["source"]) for one in questions}
    assert found["What is it for?"] == ("other", ["rain"], "train", "aokvqa")
    assert found["How many are there?"] == ("number", ["3", "3", "2"], "train", "aokvqa")
    assert found["Is the cat on the bed?"] == ("yes/no", ["no"], "train", "vsr")


@LAYOUTS
def test_a_row_is_the_photo_as_it_is_and_all_that_was_said_of_it(layout: Layout, tmp_path: Path, listed: Path) -> None:
    made = build(layout(tmp_path / "coco"), tmp_path / "out", listed)
    store = Store(tmp_path / "out", KIND)
    assert made.rows == len(store) == 4
    assert [row.key for row in store] == [f"{number:012d}" for number in (*IN, EMPTY)]
    row = store.by_key("000000000025")
    assert row["jpeg"] == jpeg(25)
    assert (row["width"], row["height"]) == SIZE
    np.testing.assert_allclose(row["boxes_xyxy"], [[0.25, 0.25, 0.5, 0.75]], rtol=1e-6)
    assert row["classes"].tolist() == [15]
    assert row["captions"] == [words(25)]
    expression = {"split": "unc_val", "class": 15, "box_xyxy": [0.25, 0.25, 0.5, 0.75], "expression": words(25)}
    assert row["referring"] == [expression]
    assert row["questions"] == [
        {
            **{"source": "vqa", "id": 250, "question": ASKED, "question_type": "what is", "answer_type": "other"},
            **{"answer": "cat", "answers": ANSWERS, "split": "valid"},
        }
    ]
    assert row["split"] == split_of(25, 0.02)
    assert row["saliency"] is None
    nothing = store.by_key(f"{EMPTY:012d}")
    assert nothing["boxes_xyxy"].shape == (0, 4)
    assert (nothing["captions"], nothing["questions"], nothing["classes"].tolist()) == ([], [], [])


def test_questions_made_from_captions_stay_apart(tmp_path: Path, listed: Path) -> None:
    build(compact(tmp_path / "coco"), tmp_path / "out", listed)
    made_up = {"question": "what color", "answer": words(9), "kind": "color", "split": "test"}
    assert Store(tmp_path / "out")[0]["cocoqa"] == [made_up]


@LAYOUTS
def test_of_photos_that_are_kept_out_neither_pixels_nor_words_come_in(
    layout: Layout, tmp_path: Path, listed: Path
) -> None:
    source = layout(tmp_path / "coco")
    maps = tmp_path / "maps"
    maps.mkdir()
    Image.new("L", (64, 48), 200).save(maps / f"COCO_val2014_{LISTED:012d}.png")
    if layout is compact:
        bad = [f"{LISTED}\t{SECRET}", f"{SECRET}\t15\t0\t0\t1\t1", f"{LISTED}\t15\t{SECRET}\t0\t1\t1"]
        packed(source.folder / "boxes.tsv.gz", [*bad, *(f"{n}\t15\t0.5\t0.5\t1\t1" for n in (*IN, *KEPT_OUT))])
        source.folder.joinpath("keep_out.txt").write_text("30\n")
    made = build(CocoSource(source.folder, saliency=(maps,)), tmp_path / "out", listed)
    files = [path.read_bytes() for path in (tmp_path / "out").iterdir()]
    assert not any(SECRET.encode() in content for content in files)
    assert not any(jpeg(number)[-200:] in content for content in files for number in KEPT_OUT)
    assert any(jpeg(9)[-200:] in content for content in files)
    store = Store(tmp_path / "out")
    assert not set(store.rows_by_key) & {f"{number:012d}" for number in KEPT_OUT}
    # The same question was asked of a photo that is kept out: it stays with the others alone.
    assert sum(content.count(ASKED.encode()) for content in files) == sum(len(row["questions"]) for row in store)
    assert {one["id"] for row in store for one in row["questions"]} <= {number * 10 for number in IN}
    assert made.kept_back == (20 if layout is compact else 12)
    assert made.left_out["kept out"] == (4 if layout is compact else 3)


def test_all_of_val2017_is_always_kept_out() -> None:
    assert len(kept_out()) == 5000
    assert {OF_VAL2017, OF_TEST} < kept_out()


def test_a_bad_line_among_photos_to_keep_out_stops_everything(tmp_path: Path) -> None:
    path = tmp_path / "keep.txt"
    path.write_text("86\na cat\n")
    with pytest.raises(InvalidFile, match="line 2"):
        kept_out(path)


def test_another_list_does_not_go_on_with_a_store(tmp_path: Path, listed: Path) -> None:
    source = compact(tmp_path / "coco")
    build(source, tmp_path / "out", listed)
    listed.write_text(f"{LISTED}\n25\n")
    with pytest.raises(InvalidFile, match="another kept_out"):
        build(source, tmp_path / "out", listed)


def test_photos_that_are_missing_truncated_or_renamed_are_named_and_the_rest_is_stored(
    tmp_path: Path, listed: Path
) -> None:
    source = official(tmp_path / "coco")
    photos = source.folder / "train2017"
    (photos / "000000000009.jpg").unlink()
    (photos / "000000000025.jpg").write_bytes(jpeg(25)[:-300])
    (photos / "000000000030.jpg").write_bytes(jpeg(30, (20, 40)))
    (photos / "holiday.jpg").write_bytes(jpeg(1))
    (photos / "COCO_train2014_000000000034.jpg").write_bytes(jpeg(1))
    (photos / "000000000042.jpg").write_bytes(b"")
    Image.new("RGB", SIZE).save(photos / "000000000049.jpg", "PNG")
    (photos / "000000000061.jpg").mkdir()
    made = build(source, tmp_path / "out", listed)
    assert list(Store(tmp_path / "out").rows_by_key) == ["000000000034"]
    assert Store(tmp_path / "out")[0]["jpeg"] == jpeg(34)
    places = [(kind, what) for kind, what, _ in named(tmp_path / "out") if kind != "kept out"]
    assert places == [
        ("foreign name", "COCO_train2014_000000000034.jpg"),
        ("foreign name", "holiday.jpg"),
        ("box of a group", "000000000009"),
        ("missing photo", "000000000009"),
        *(("bad photo", f"0000000000{number}.jpg") for number in (25, 30, 42, 49, 61)),
    ]
    reasons = {what[10:12]: reason for kind, what, reason in named(tmp_path / "out") if kind == "bad photo"}
    assert "truncated" in reasons["25"]
    assert "20 × 40" in reasons["30"]
    assert made.left_out["bad photo"] == 5


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("boxes", "9\t15\t0.5\t0.5\t0.1", "5 columns"),
        ("boxes", "9\t80\t0.5\t0.5\t0.1\t0.1", "class"),
        ("boxes", "9\tcat\t0.5\t0.5\t0.1\t0.1", "a number"),
        ("boxes", "9\t15\t0.5\t0.5\t0\t0.1", "no area"),
        ("boxes", "9\t15\t0.5\t0.5\t1e-7\t0.1", "no area"),
        ("boxes", "9\t15\t1.5\t0.5\t0.1\t0.1", "outside"),
        ("boxes", "9\t15\tnan\t0.5\t0.1\t0.1", "not a place"),
        ("boxes", "-9\t15\t0.5\t0.5\t0.1\t0.1", "COCO"),
        ("captions", "9\t ", "empty"),
        ("captions", "9\t\udcff", "UTF-8"),
        ("referring", "unc\t9\t15\t0.1\t0.1\t0.2\t0.2\t", "empty"),
        ("cocoqa", "train\t9\t4\twhat\tcat", "type"),
        ("vqa_v2_part_valid", "{", "JSON"),
        ("vqa_v2_part_valid", json.dumps(question(9) | {"answer": "cat", "answers": []}), "no answers"),
    ],
)
def test_a_bad_line_is_named_and_the_others_come_in(
    name: str, line: str, reason: str, tmp_path: Path, listed: Path
) -> None:
    source = compact(tmp_path / "coco")
    [path] = source.folder.glob(f"{name}.*")
    lines = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(line.encode("utf-8", "surrogateescape") + b"\n" + lines))
    made = build(source, tmp_path / "out", listed)
    [(_, what, why)] = [one for one in named(tmp_path / "out") if one[0] == "bad label"]
    assert what == f"{path.name}: line 1"
    assert reason in why
    assert set(made.labels.values()) == {len(IN)}


def test_an_expression_without_its_box_and_a_class_of_others_are_bad_labels(tmp_path: Path, listed: Path) -> None:
    source = official(tmp_path / "coco")
    path = source.folder / "annotations" / "instances_train2017.json"
    path.write_text(path.read_text().replace('"cat"', '"unicorn"'))
    made = build(source, tmp_path / "out", listed)
    assert "boxes" not in made.labels
    bad = [(what, why) for kind, what, why in named(tmp_path / "out") if kind == "bad label"]
    assert ("instances_train2017.json: annotation 9", "the category: 'unicorn' is none of COCO's 80") in bad
    assert sum(what.startswith("refs(unc).json: ref") for what, _ in bad) == 6


def test_a_run_that_was_interrupted_ends_as_one_that_was_not(tmp_path: Path, listed: Path) -> None:
    source = compact(tmp_path / "coco")
    (source.folder / "train2017" / "000000000009.jpg").write_bytes(b"\xff\xd8")
    source = CocoSource(source.folder, keep_out=(listed,))

    def interrupt(what: str, done: int, total: int) -> None:
        if what == "storing photos" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_coco(source, tmp_path / "stopped", interrupt)
    with pytest.raises(InvalidFile, match="not finished"):
        Store(tmp_path / "stopped")
    assert build_coco(source, tmp_path / "stopped", quiet) == build_coco(source, tmp_path / "whole", quiet)
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("stopped", "whole")]
    assert files[0] == files[1]


def test_more_photos_go_on_with_a_store_of_few(tmp_path: Path, listed: Path) -> None:
    source = compact(tmp_path / "coco")
    assert build(source, tmp_path / "out", listed, limit=1).rows == 1
    assert build(source, tmp_path / "out", listed).rows == 4


def test_the_split_hangs_on_the_number_alone() -> None:
    assert [number for number in range(300) if split_of(number, 0.02) == "validation"] == [45, 137, 151, 197, 214]
    assert sum(split_of(number, 0.02) == "validation" for number in range(20_000)) == pytest.approx(400, abs=60)
    few, many = ({n for n in range(999) if split_of(n, share) == "validation"} for share in (0.02, 0.1))
    assert few < many


def test_saliency_is_a_small_map_and_a_bad_one_is_named(tmp_path: Path, listed: Path) -> None:
    source = compact(tmp_path / "coco")
    folders = tmp_path / "train", tmp_path / "val"
    for folder in folders:
        folder.mkdir()
    pixels = np.zeros((480, 640), np.uint8)
    pixels[:240, :320] = 100
    Image.fromarray(pixels).save(folders[0] / "COCO_train2014_000000000009.png")
    Image.fromarray(pixels * 0).save(folders[1] / "COCO_val2014_000000000025.png")
    (folders[1] / "COCO_val2014_000000000030.png").write_bytes(b"no map")
    Image.fromarray(pixels).save(folders[1] / "COCO_val2014_000000000036.png")
    source = CocoSource(source.folder, saliency=folders)
    for _ in range(2):
        build(source, tmp_path / "out", listed)
        kinds = [(kind, what) for kind, what, _ in named(tmp_path / "out") if kind != "kept out"]
        assert kinds == [
            ("missing photo", "000000000036"),
            ("bad saliency map", "COCO_val2014_000000000025.png"),
            ("bad saliency map", "COCO_val2014_000000000030.png"),
        ]
    store = Store(tmp_path / "out")
    expected = np.zeros((32, 32), np.uint8)
    expected[:16, :16] = 255
    np.testing.assert_array_equal(store[0]["saliency"], expected)
    assert [row["saliency_split"] for row in store] == ["train", None, None, None]


def test_the_command_counts_what_came_in_and_what_did_not(tmp_path: Path, listed: Path) -> None:
    source = compact(tmp_path / "coco")
    moved = shutil.move(source.folder / "train2017", tmp_path / "photos")
    given = ["build", "coco", str(source.folder), "--photos", str(moved), "--keep-out", str(listed)]
    fine = CliRunner().invoke(app, [*given, "-o", str(tmp_path / "out")])
    assert fine.exit_code == 0, fine.output
    counts = dict(line.rsplit(maxsplit=1) for line in fine.stdout.splitlines())
    assert counts == {
        "photos in the store": "4",
        **{f"labels read: {field}": "3" for field in ("boxes", "captions", "referring", "questions", "cocoqa")},
        "labels of photos that are kept out": "15",
        "left out: kept out": "3",
    }
    (tmp_path / "photos" / "000000000009.jpg").unlink()
    bad = CliRunner().invoke(app, [*given, "-o", str(tmp_path / "other")])
    assert bad.exit_code == 1
    assert "left out: missing photo" in bad.stdout
    assert LEFT_OUT in bad.stderr


@pytest.mark.parametrize("broken", ["boxes.tsv.gz", "train2017"])
def test_a_folder_without_boxes_or_photos_is_refused(broken: str, tmp_path: Path) -> None:
    source = compact(tmp_path / "coco")
    (source.folder / broken).rename(tmp_path / "elsewhere")
    with pytest.raises(InvalidFile, match=r"boxes|photos"):
        build_coco(source, tmp_path / "out", quiet)
    assert not (tmp_path / "out").exists()
