"""Expressions a line, with their boxes; and what a model finds for them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from saywhere.formats import detect, referring_lines, referring_results
from saywhere.formats.record import InvalidRecord
from saywhere.formats.referring_lines import ReferringLine
from saywhere.formats.referring_results import ReferringResult, RunLengths

LINE = "unc_val\t309\t77\t0.25\t0.5\t0.5\t0.25\tthe brown bear"


def test_a_line_is_an_expression_with_its_box(tmp_path: Path) -> None:
    path = tmp_path / "referring.tsv.gz"
    path.write_bytes(gzip.compress(f"{LINE}\n{LINE}\n".encode()))
    first, second = referring_lines.read(path)
    assert first == ReferringLine(1, "unc_val", 309, "teddy bear", (0.25, 0.5, 0.75, 0.75), "the brown bear")
    assert isinstance(second, ReferringLine)
    assert second.line == 2
    assert detect(path).name == "referring-lines"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\t77\t", "\t80\t", "is 80, not one of 0 … 79"),
        ("\t77\t", "\tbear\t", "text where a number should be"),
        ("unc_val\t", "", "has 7 columns, not 8"),
        ("the brown bear", " ", "is empty"),
        ("\t0.5\t0.25\tthe", "\t0\t0.25\tthe", "has no area"),
        ("\t0.25\t0.5\t", "\t1.25\t0.5\t", "lies outside"),
        ("\t0.25\t", "\tnan\t", "not a place"),
    ],
)
def test_a_bad_line_is_a_bad_record_and_the_next_is_read(old: str, new: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "referring.tsv"
    path.write_text(f"{LINE.replace(old, new, 1)}\n{LINE}\n")
    bad, good = referring_lines.read(path)
    assert isinstance(bad, InvalidRecord)
    assert words in bad.reason
    assert isinstance(good, ReferringLine)


def test_all_expressions_at_hand_are_read(shared: Callable[[str], Path]) -> None:
    found = list(referring_lines.read(shared("data/coco_train/referring.tsv.gz")))
    assert len(found) == 25_217
    assert all(isinstance(one, ReferringLine) for one in found)


def test_results_are_written_and_read_again(tmp_path: Path) -> None:
    mask = RunLengths.of(np.eye(3, dtype=bool))
    given = [ReferringResult(8, (0.1, 0.2, 0.4, 0.6), mask), ReferringResult("9"), ReferringResult(7, mask=mask)]
    path = tmp_path / "results.jsonl"
    assert referring_results.write(path, given) == 3
    assert list(referring_results.read(path)) == given
    assert detect(path).name == "referring-results"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"box_xyxy": [0, 0, 1, 1]}', "expression_id"),
        ('{"expression_id": 1, "box_xyxy": [0, 0, 0, 1]}', "has no area"),
        ('{"expression_id": 1, "box_xyxy": [0, 0, 1]}', "box_xyxy"),
        ('{"expression_id": 1, "mask": {"size": [2, 2], "counts": [3]}}', "runs of 3 pixels"),
        ('{"expression_id": ""}', "length >= 1"),
    ],
)
def test_a_bad_result_is_a_bad_record(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f'{line}\n{{"expression_id": 2}}\n')
    bad, good = referring_results.read(path)
    assert isinstance(bad, InvalidRecord)
    assert words in f"{bad.where} {bad.reason}"
    assert good == ReferringResult(2)
