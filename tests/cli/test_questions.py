"""`saywhere build questions`, `priors`, `pairs` and `visual-words`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from saywhere.build.question_files import read_attention
from saywhere.cli import questions
from saywhere.core import InvalidFile
from saywhere.formats import vqa
from saywhere.formats.split_lists import read_split_lists
from saywhere.formats.vqa import Question

app = typer.Typer()
app.command("questions")(questions.questions)
app.command("priors")(questions.priors)
app.command("pairs")(questions.pairs)
app.command("visual-words")(questions.visual_words)

ROWS = [[16, 0.2, 0.5, 0.3, 0.5], [15, 0.8, 0.5, 0.2, 0.3]]


def build(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three photos with a dog and a cat, and captions."""
    (tmp_path / "photos").mkdir()
    for number in (1, 2, 3):
        (tmp_path / "photos" / f"{number:012}.jpg").write_bytes(b"")
    boxes = {f"{number:012}": ROWS for number in (1, 2, 3)}
    (tmp_path / "boxes.json").write_text(json.dumps(boxes))
    told = [{"id": 1, "image_id": 2, "caption": "a brown dog and a cat"}]
    (tmp_path / "captions.json").write_text(json.dumps({"annotations": told}))
    return tmp_path


def test_questions_are_written_with_answers_and_attention_and_counted(data: Path) -> None:
    out = data / "asked.json"
    ran = build(
        "questions", data / "boxes.json", "--photos", data / "photos", "--captions", data / "captions.json", "-o", out
    )
    assert ran.exit_code == 0, ran.output
    values = [value for value in vqa.read(out, data / "asked.annotations.json") if isinstance(value, Question)]
    assert f"{len(values)} questions about 3 photos, 0 bad records" in ran.output
    assert {value.image_id for value in values} == {1, 2, 3}
    assert [value.multiple_choice_answer for value in values if value.text == "What color is the dog?"] == ["brown"]
    attention = read_attention(data / "asked.attention.json")
    assert set(attention) == {value.question_id for value in values}
    first = out.read_bytes()
    build(
        "questions", data / "boxes.json", "--photos", data / "photos", "--captions", data / "captions.json", "-o", out
    )
    assert out.read_bytes() == first


def test_bad_boxes_and_missing_photos_are_named_and_counted(data: Path) -> None:
    boxes = {"1": [*ROWS, [99, 0.5, 0.5, 0.1, 0.1], [16, 0.5, 0.5, 0, 0.1]], "8": ROWS}
    (data / "boxes.json").write_text(json.dumps(boxes))
    ran = build("questions", data / "boxes.json", "--photos", data / "photos", "-o", data / "asked.json")
    assert ran.exit_code == 1
    for words in (
        "1[2]: there is no class 99",
        "1[3]: the box has no area",
        "000000000008: has no photo",
        "3 bad records",
    ):
        assert words in ran.output
    assert "about 1 photos" in ran.output


@pytest.mark.parametrize(("photos", "words"), [("nowhere", "is not a folder"), ("empty", "has none of the 3 photos")])
def test_a_folder_without_the_photos_is_a_clear_error(data: Path, photos: str, words: str) -> None:
    (data / "empty").mkdir()
    ran = build("questions", data / "boxes.json", "--photos", data / photos, "-o", data / "asked.json")
    assert isinstance(ran.exception, InvalidFile)
    assert words in str(ran.exception)
    assert not (data / "asked.json").exists()


def official(folder: Path, count: int) -> tuple[Path, Path]:
    asked = [{"question_id": i, "image_id": i // 2, "question": "Is it?"} for i in range(count)]
    answers = [
        {"question_id": i, "image_id": i // 2, "question_type": "is it", "answer_type": "yes/no",
         "multiple_choice_answer": "yes" if i % 3 else "no", "answers": [{"answer": "yes" if i % 3 else "no"}] * 10}
        for i in range(count)
    ]  # fmt: skip
    (folder / "q.json").write_text(json.dumps({"questions": asked}))
    (folder / "a.json").write_text(json.dumps({"annotations": answers}))
    return folder / "q.json", folder / "a.json"


def test_priors_writes_four_pairs_and_says_what_was_kept(tmp_path: Path) -> None:
    asked, answers = official(tmp_path, 600)
    ran = build("priors", asked, answers, "-o", tmp_path / "split")
    assert ran.exit_code == 0, ran.output
    sides = {
        name: list(vqa.read(tmp_path / "split" / f"{name}.json", tmp_path / "split" / f"{name}.annotations.json"))
        for name in ("train", "validation", "test_same", "test_changed")
    }
    kept = sum(map(len, sides.values()))
    assert f"{kept} kept, {600 - kept} dropped, 0 bad records" in ran.output
    shares = {}
    for name, values in sides.items():
        good = [value for value in values if isinstance(value, Question)]
        assert len(good) == len(values) > 0
        shares[name] = sum(value.multiple_choice_answer == "yes" for value in good) / len(good)
    assert shares["train"] > 0.8
    assert shares["test_changed"] < 0.2


def test_pairs_writes_a_list_that_prepare_reads_and_things_meet_in_the_test_alone(tmp_path: Path) -> None:
    alone, both = [[16, 0.2, 0.5, 0.3, 0.5]], ROWS
    boxes = {f"{i:012}": both if i % 8 == 0 else alone if i % 2 else [ROWS[1]] for i in range(1, 401)}
    (tmp_path / "boxes.json").write_text(json.dumps(boxes))
    ran = build("pairs", tmp_path / "boxes.json", "-o", tmp_path / "split.json")
    assert ran.exit_code == 0, ran.output
    assert "1 pairs; 332 train, 18 validation, 50 test; 0 bad records" in ran.output.replace("\n", " ")
    assert json.loads((tmp_path / "split.json").read_text())["info"]["pairs"] == [["cat", "dog", 50]]
    split_of = read_split_lists([str(tmp_path / "split.json")])
    assert {int(key) for key, split in split_of.items() if split == "test"} == {i for i in range(1, 401) if i % 8 == 0}


def test_priors_names_questions_without_answers_and_refuses_a_file_with_none(tmp_path: Path) -> None:
    asked, answers = official(tmp_path, 60)
    listed = json.loads(answers.read_text())["annotations"]
    answers.write_text(json.dumps({"annotations": listed[1:]}))
    ran = build("priors", asked, answers, "-o", tmp_path / "split")
    assert ran.exit_code == 1
    assert "has no answers" in ran.output
    assert "1 bad records" in ran.output
    answers.write_text(json.dumps({"annotations": []}))
    ran = build("priors", asked, answers, "-o", tmp_path / "none")
    assert isinstance(ran.exception, InvalidFile)
    assert not (tmp_path / "none").exists()


def test_a_missing_wordnet_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text("a dog\n")
    ran = build("visual-words", tmp_path / "captions.txt", "--wordnet", tmp_path, "-o", tmp_path / "words.tsv")
    assert isinstance(ran.exception, InvalidFile)
    assert "data.noun" in str(ran.exception)
