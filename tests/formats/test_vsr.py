from __future__ import annotations

import json
from pathlib import Path

import pytest

from saywhere.formats import registry, vsr
from saywhere.formats.record import InvalidRecord
from saywhere.formats.vsr import SpatialSentence

GOOD = {"image": "000000397304.jpg", "caption": "The bed is next to the bench.", "label": 1, "relation": "next to"}


def written(tmp_path: Path, *lines: dict[str, object]) -> Path:
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return tmp_path / "a.jsonl"


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        ("The bed is next to the bench.", "Is the bed next to the bench?"),
        ("The cats are under the table.", "Are the cats under the table?"),
        ("The truck contains the bench.", "Does the truck contain the bench?"),
        ("The cat facing the dog", "Is it true that the cat facing the dog?"),
    ],
)
def test_a_sentence_is_asked_for(sentence: str, asked: str, tmp_path: Path) -> None:
    path = written(tmp_path, GOOD | {"caption": sentence})
    (one,) = vsr.read(path)
    assert isinstance(one, SpatialSentence)
    assert (one.question, one.is_true, one.relation) == (asked, True, "next to")
    assert registry.detect(path).name == "vsr"


@pytest.mark.parametrize(
    ("change", "words"), [({"label": 2}, "label"), ({"caption": " "}, "no caption"), ({"image": ""}, "no image")]
)
def test_a_bad_sentence_is_a_bad_record_with_its_line(change: dict[str, object], words: str, tmp_path: Path) -> None:
    first, bad, last = vsr.read(written(tmp_path, GOOD, GOOD | change, GOOD))
    assert first == last
    assert isinstance(bad, InvalidRecord)
    assert bad.line == 2
    assert words in f"{bad.where} {bad.reason}"
