from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saywhere.core.errors import InvalidValue
from saywhere.formats import hl
from saywhere.formats.hl import HLRow
from saywhere.formats.record import InvalidRecord

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def rows(draw: st.DrawFn) -> HLRow:
    captions = draw(st.dictionaries(texts, st.lists(texts, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3))
    rated = [level for level in captions if draw(st.booleans())]
    one_each = {level: tuple(draw(numbers) for _ in captions[level]) for level in rated}
    return HLRow(draw(texts), captions, one_each, one_each, {level: draw(numbers) for level in rated})


def test_the_official_rows_are_read_and_survive_being_written(shared: Callable[[str], Path], tmp_path: Path) -> None:
    values = [value for value in hl.read(shared("data/hl/test_first1000.jsonl")) if isinstance(value, HLRow)]
    assert len(values) == 1000
    first = values[0]
    assert first.file_name == "COCO_train2014_000000138878.jpg"
    assert first.captions["scene"] == ("in a car", "the picture is taken in a car", "in an office.")
    assert first.confidence["action"] == (5.0, 5.0, 4.0)
    assert first.diversity["rationale"] == 2.658757840479801
    assert len(first.captions["object"]) == 5
    assert hl.write(tmp_path / "again.jsonl", values) == 1000
    assert list(hl.read(tmp_path / "again.jsonl")) == values


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(rows(), max_size=4))
def test_what_is_written_is_read(values: list[HLRow], tmp_path: Path) -> None:
    assert hl.write(tmp_path / "a.jsonl", values) == len(values)
    assert list(hl.read(tmp_path / "a.jsonl")) == values


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"file_name": "a"}, "captions"),
        ({"file_name": "a", "captions": {}}, "has no captions"),
        ({"file_name": "a", "captions": {"scene": []}}, "level 'scene' has no captions"),
        ({"file_name": "a", "captions": {"scene": ["x", " "]}}, "empty caption"),
        ({"file_name": "", "captions": {"scene": ["x"]}}, "file_name is empty"),
        ({"file_name": "a", "captions": {"scene": ["x"]}, "purity": {"scene": [1, 2]}}, "2 numbers for 1 captions"),
        ({"file_name": "a", "captions": {"scene": ["x"]}, "confidence": {"action": [1]}}, "1 numbers for 0 captions"),
        ({"file_name": "a", "captions": {"scene": [3]}}, "captions"),
    ],
)
def test_a_bad_row_is_a_bad_record_and_the_next_one_is_read(row: dict[str, object], words: str, tmp_path: Path) -> None:
    good = {"file_name": "b", "captions": {"scene": ["x"]}}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n\n" + json.dumps(good))
    bad, value = hl.read(tmp_path / "a.jsonl")
    assert isinstance(bad, InvalidRecord)
    assert bad.line == 1
    assert words in f"{bad.where} {bad.reason}"
    assert value == HLRow("b", {"scene": ("x",)})


def test_numbers_that_no_file_could_hold_are_refused() -> None:
    with pytest.raises(InvalidValue, match="NaN"):
        HLRow("a", {"scene": ("x",)}, diversity={"scene": float("nan")})
