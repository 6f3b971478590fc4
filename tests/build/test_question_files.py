"""Questions written as VQA v2's files are read back the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saywhere.build.box_questions import BoxQuestion
from saywhere.build.question_files import beside, read_attention, write_box_questions, write_vqa
from saywhere.core import InvalidFile
from saywhere.formats import vqa
from saywhere.formats.vqa import Question

BOX = np.array([[0.1, 0.2, 0.3, 0.4]])
DOG = BoxQuestion("000000000285", "Is there a dog?", "is there a", "yes/no", "yes", ("yes",) * 10, BOX, ("dog",))
CATS = BoxQuestion("a.jpg", "How many cats?", "how many", "number", "0", ("0",) * 10, np.empty((0, 4)), ("cat",))


def test_the_three_files_belong_together(tmp_path: Path) -> None:
    path = tmp_path / "asked.json"
    files = write_box_questions(path, [DOG, CATS], {"seed": 0})
    assert [file.name for file in files] == ["asked.json", "asked.annotations.json", "asked.attention.json"]
    assert list(vqa.read(path, beside(path, "annotations"))) == [
        Question(1, 285, "Is there a dog?", "is there a", "yes/no", ("yes",) * 10, "yes"),
        Question(2, "a.jpg", "How many cats?", "how many", "number", ("0",) * 10, "0"),
    ]
    attention = read_attention(beside(path, "attention"))
    np.testing.assert_allclose(attention[1], [[0.1, 0.2, 0.3, 0.4]])
    assert attention[2].shape == (0, 4)


def test_official_questions_come_back_as_they_were(tmp_path: Path) -> None:
    value = Question("q7", 3, "Is it?", "is", "yes/no", ("no", "yes"), "no", "val2014")
    write_vqa(tmp_path / "q.json", tmp_path / "a.json", [value], {})
    assert list(vqa.read(tmp_path / "q.json", tmp_path / "a.json")) == [value]


def test_a_name_that_is_no_json_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"should end in \.json"):
        write_box_questions(tmp_path / "asked.txt", [DOG], {})
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_something_else_holds_no_attention(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"attention": [{"question_id": 1, "boxes_xyxy": [[0, 0, 1]]}]}')
    with pytest.raises(InvalidFile, match="is not boxes to look at"):
        read_attention(tmp_path / "x.json")
