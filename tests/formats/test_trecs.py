from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from saywhere.core import InvalidFile
from saywhere.formats import InvalidRecord, detect, trecs
from saywhere.formats.trecs import TaggedNarration


def put(folder: Path, ids: str, words: str, tags: str) -> Path:
    for part, text in (("ids", ids), ("words", words), ("cleaned_tags", tags)):
        (folder / f"val.{part}.txt").write_text(text)
    return folder / "val.ids.txt"


def test_the_three_files_are_read_line_by_line(tmp_path: Path) -> None:
    path = put(tmp_path, "12_3\na_b_4\n", "a cup\nthe sea\n", "cup cup\nsea sea\n")
    assert list(trecs.read(path)) == [
        TaggedNarration("12", "3", ("a", "cup"), ("cup", "cup")),
        TaggedNarration("a_b", "4", ("the", "sea"), ("sea", "sea")),
    ]
    assert detect(path).name == "trecs"


def test_lines_that_do_not_fit_each_other_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = put(tmp_path, "12_3\nodd\n13_3\n14_1\n", "a cup\nb\nc\n\n", "cup\nb\nc\n\n")
    values = list(trecs.read(path))
    assert [v.reason for v in values if isinstance(v, InvalidRecord)] == [
        "2 words have 1 tags",
        "is not of the form image_annotator",
        "has no words",
    ]
    assert [v.line for v in values if isinstance(v, InvalidRecord)] == [1, 2, 4]
    assert len(values) == 4


def test_files_that_cannot_belong_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="2 ids, 1 words, 1 cleaned_tags"):
        list(trecs.read(put(tmp_path, "1_1\n2_2\n", "a\n", "b\n")))
    (tmp_path / "val.words.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidFile, match="not UTF-8"):
        list(trecs.read(tmp_path / "val.ids.txt"))
    with pytest.raises(InvalidFile, match=r"ends in \.ids\.txt"):
        list(trecs.read(tmp_path / "val.words.txt"))
    with pytest.raises(InvalidFile, match="cannot be opened"):
        list(trecs.read(tmp_path / "none.ids.txt"))


def test_the_real_narrations_are_all_read(shared: Callable[[str], Path]) -> None:
    values = list(trecs.read(shared("data/coco_val/val_coco.ids.txt")))
    good = [v for v in values if isinstance(v, TaggedNarration)]
    assert len(values) == 7739
    assert sum(len(v.words) for v in good) > 290_000
