from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from saywhere.formats import pope
from saywhere.formats.pope import PopeQuestion
from saywhere.formats.record import InvalidRecord

GOOD = {"question_id": 1, "image": "a.jpg", "text": "Is there a cat in the image?", "label": "no"}


@pytest.mark.parametrize("kind", ["random", "popular", "adversarial"])
def test_the_official_files_are_read_whole(kind: str, shared: Callable[[str], Path]) -> None:
    values = list(pope.read(shared(f"data/pope/coco_pope_{kind}.json")))
    assert len(values) == 2928
    good = [value for value in values if isinstance(value, PopeQuestion)]
    assert sum(value.label == "yes" for value in good) == sum(value.label == "no" for value in good) == 1464
    assert good[0] == PopeQuestion(1, "COCO_val2014_000000310196.jpg", "Is there a snowboard in the image?", "yes")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": "maybe"}, "label"),
        ({"label": None}, "label"),
        ({"text": ""}, "has no text"),
        ({"image": ""}, "names no image"),
        ({"question_id": 1.5}, "question_id"),
    ],
)
def test_a_bad_question_is_a_bad_record_with_its_line(change: dict[str, object], words: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("\n".join(json.dumps(line) for line in (GOOD, GOOD | change, GOOD)))
    first, bad, last = pope.read(tmp_path / "p.json")
    assert first == last == PopeQuestion(1, "a.jpg", "Is there a cat in the image?", "no")
    assert isinstance(bad, InvalidRecord)
    assert bad.line == 2
    assert words in f"{bad.where} {bad.reason}"
