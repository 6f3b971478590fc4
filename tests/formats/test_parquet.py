"""Narratives as Parquet: equal after a round trip, bad rows by themselves, bad files with a reason."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidFile, InvalidValue, Narrative, Trace, Utterance
from saywhere.formats import localized_narratives, parquet, registry
from saywhere.formats.parquet import read, schema, write
from saywhere.formats.record import InvalidRecord
from tests.strategies import narratives

NARRATIVE = Narrative(
    image_id="212166",
    caption="a cat sleeps",
    utterances=(Utterance("a cat", 0.0, 0.6), Utterance("sleeps", 0.6, 1.2)),
    trace=Trace([[0.1, 0.2, 0.0], [0.2, 0.3, 0.5], [0.6, 0.4, 0.9]], (0, 2)),
    dataset_id="mscoco_val2017",
    annotator_id="49",
    audio="coco_val/coco_val_212166_49.ogg",
)
POINTS = [{"x": 0.1, "y": 0.2, "t": 0.0}, {"x": 0.2, "y": 0.3, "t": 0.5}, {"x": 0.6, "y": 0.4, "t": 0.9}]
ROW: dict[str, Any] = {
    "dataset_id": "mscoco_val2017",
    "image_id": "212166",
    "annotator_id": "49",
    "caption": "a cat sleeps",
    "audio": "coco_val/coco_val_212166_49.ogg",
    "origin": "human",
    "utterances": [
        {"text": "a cat", "start_s": 0.0, "end_s": 0.6},
        {"text": "sleeps", "start_s": 0.6, "end_s": 1.2},
    ],
    "points": POINTS,
    "starts": [0, 2],
    "language": "",
}


def file_of(tmp_path: Path, rows: list[dict[str, Any]], columns: pa.Schema | None = None, **options: Any) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows, columns or schema()), path, **options)
    return path


@given(written=st.lists(narratives(), max_size=5), origin=st.sampled_from(["human", "mitr"]))
def test_what_is_written_is_read_back_equal(
    written: list[Narrative], origin: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "narratives.parquet"
    written = [replace(narrative, origin=origin) for narrative in written]
    assert write(path, iter(written)) == len(written)
    assert list(read(path)) == written


def test_the_same_narratives_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, [NARRATIVE] * 3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_rows_stay_in_order_over_batches_and_row_groups(tmp_path: Path) -> None:
    written = [replace(NARRATIVE, image_id=str(i)) for i in range(2 * parquet.ROWS_IN_GROUP + 7)]
    write(tmp_path / "many.parquet", written)
    assert pq.ParquetFile(tmp_path / "many.parquet").num_row_groups == 3
    assert list(read(tmp_path / "many.parquet")) == written


def test_other_tools_find_plain_columns(tmp_path: Path) -> None:
    write(tmp_path / "one.parquet", [NARRATIVE])
    table = pq.read_table(tmp_path / "one.parquet")
    assert table.to_pylist() == [ROW]
    assert table.schema.metadata[b"saywhere.narratives"] == b"1"


def test_the_real_record_survives(shared: Callable[[str], Path], tmp_path: Path) -> None:
    (narrative,) = localized_narratives.read(shared("data/localized_narratives/coco_val_212166_49.jsonl"))
    assert isinstance(narrative, Narrative)
    write(tmp_path / "real.parquet", [narrative])
    assert list(read(tmp_path / "real.parquet")) == [narrative]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"image_id": None}, "image_id: is missing"),
        ({"image_id": ""}, "names no image"),
        ({"caption": None}, "caption: is missing"),
        ({"points": None}, "points: is missing"),
        ({"points": [None]}, "points: has an item, or a part of one, missing"),
        ({"points": [POINTS[0] | {"x": None}]}, "points: has an item, or a part of one, missing"),
        ({"points": [POINTS[0] | {"x": float("nan")}], "starts": [0]}, "NaN or infinity"),
        ({"points": [POINTS[0] | {"t": float("inf")}], "starts": [0]}, "NaN or infinity"),
        ({"points": POINTS[::-1], "starts": [0]}, "go back in time"),
        ({"starts": [0, 3]}, "trace starts"),
        ({"starts": [1]}, "trace starts"),
        ({"starts": []}, "trace starts"),
        ({"starts": [0, None]}, "starts: has an item missing"),
        ({"points": [], "starts": [0, 1]}, "trace starts"),
        ({"utterances": [{"text": None, "start_s": 0.0, "end_s": 1.0}]}, "utterances: has an item"),
        ({"utterances": [{"text": "a", "start_s": 1.0, "end_s": 0.5}]}, "before it starts"),
        ({"utterances": ROW["utterances"][::-1]}, "before the one ahead of it"),
    ],
)
def test_a_bad_row_is_named_and_its_neighbours_are_read(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, [ROW, ROW, ROW, ROW | changes, ROW], row_group_size=2)
    *before, bad, after = read(path)
    assert [*before, after] == [NARRATIVE] * 4
    assert isinstance(bad, InvalidRecord)
    assert (bad.path, bad.line, bad.where) == (str(path), 0, "row 3")
    assert reason in bad.reason


def test_rows_without_points_or_words_are_narratives(tmp_path: Path) -> None:
    path = file_of(tmp_path, [ROW | {"points": [], "starts": [], "utterances": []}])
    assert list(read(path)) == [replace(NARRATIVE, utterances=(), trace=Trace([], ()))]


def test_types_that_hold_the_same_are_taken(tmp_path: Path) -> None:
    point = pa.struct([("x", pa.float32()), ("y", pa.float64()), ("t", pa.float64())])
    others = {
        "image_id": pa.large_string(),
        "dataset_id": pa.dictionary(pa.int8(), pa.string()),
        "points": pa.large_list(point),
        "starts": pa.list_(pa.int64()),
    }
    columns = pa.schema([(field.name, others.get(field.name, field.type)) for field in schema()])
    row = ROW | {"points": [{"x": 0.5, "y": 0.2, "t": 0.0}], "starts": [0]}
    path = file_of(tmp_path, [row, row | {"starts": [2**40]}, row], columns)
    before, bad, after = read(path)
    assert before == after == replace(NARRATIVE, trace=Trace([[0.5, 0.2, 0.0]]))
    assert isinstance(bad, InvalidRecord)
    assert (bad.where, "does not fit the schema" in bad.reason) == ("row 1", True)


def test_text_that_is_not_utf8_makes_its_row_bad(tmp_path: Path) -> None:
    latin = pa.array([b"cat", b"caf\xe9", b"cat"]).view(pa.string())
    rows = pa.Table.from_pylist([ROW] * 3, schema())
    pq.write_table(rows.set_column(rows.column_names.index("caption"), "caption", latin), tmp_path / "x.parquet")
    before, bad, after = read(tmp_path / "x.parquet")
    assert before == after == replace(NARRATIVE, caption="cat")
    assert isinstance(bad, InvalidRecord)
    assert (bad.where, "UTF-8" in bad.reason) == ("row 1", True)


def _without(name: str) -> pa.Schema:
    return pa.schema([field for field in schema() if field.name != name])


@pytest.mark.parametrize("name", [name for name in schema().names if name != "language"])
def test_a_missing_column_makes_the_file_invalid(name: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, [{key: value for key, value in ROW.items() if key != name}], _without(name))
    with pytest.raises(InvalidFile, match=f"column of each of these names: {name}"):
        list(read(path))


def test_files_from_before_languages_were_noted_are_read(tmp_path: Path) -> None:
    rows = [{key: value for key, value in ROW.items() if key != "language"}]
    assert list(read(file_of(tmp_path, rows, _without("language")))) == [NARRATIVE]


def test_a_column_of_another_type_makes_the_file_invalid(tmp_path: Path) -> None:
    columns = _without("points").append(pa.field("points", pa.string()))
    with pytest.raises(InvalidFile, match="column points is string"):
        list(read(file_of(tmp_path, [ROW | {"points": "none"}], columns)))


def test_a_later_version_of_the_schema_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path, [ROW], schema().with_metadata({b"saywhere.narratives": b"2"}))
    with pytest.raises(InvalidFile, match="version '2'"):
        list(read(path))
    assert list(read(file_of(tmp_path, [ROW], schema().remove_metadata()))) == [NARRATIVE]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 20 + b"PAR1", b'{"image_id": "1"}\n'])
def test_what_is_not_parquet_is_an_invalid_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(InvalidFile, match="not a readable Parquet file"):
        list(read(tmp_path / "x.parquet"))


def test_a_file_that_is_not_there_is_an_invalid_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be opened"):
        list(read(tmp_path / "missing.parquet"))


def test_a_damaged_row_group_costs_only_itself(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", [NARRATIVE] * (2 * parquet.ROWS_IN_GROUP))
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    meta = pq.ParquetFile(tmp_path / "x.parquet").metadata
    middle = meta.row_group(0).column(3).data_page_offset + meta.row_group(0).column(3).total_compressed_size // 2
    content[middle] ^= 0xFF
    (tmp_path / "x.parquet").write_bytes(content)
    bad, *good = read(tmp_path / "x.parquet")
    assert isinstance(bad, InvalidRecord)
    assert (bad.where, "damaged" in bad.reason) == ("row 0", True)
    assert good == [NARRATIVE] * parquet.ROWS_IN_GROUP


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "x.parquet"
    write(path, [NARRATIVE] * 3)
    return path.read_bytes()


def test_no_flipped_bit_of_the_numbers_goes_unnoticed(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(whole)
    group = pq.ParquetFile(path).metadata.row_group(0)
    (column,) = (c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "points.list.element.x")
    start = column.dictionary_page_offset or column.data_page_offset
    for at in range(start, start + column.total_compressed_size):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        for value in read(path):
            assert value == NARRATIVE or isinstance(value, InvalidRecord)


@given(place=st.floats(0, 1, exclude_max=True), token=st.binary(max_size=8), cut=st.integers(0, 40))
def test_any_damage_is_a_bad_record_or_an_invalid_file(
    place: float, token: bytes, cut: int, whole: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at = int(place * len(whole))
    path = tmp_path_factory.mktemp("damaged") / "x.parquet"
    path.write_bytes(whole[:at] + token + whole[at + cut :])
    values: list[Narrative | InvalidRecord] = []
    with contextlib.suppress(InvalidFile):
        values += read(path)
    assert len(values) <= 3
    assert all(value == NARRATIVE for value in values if not isinstance(value, InvalidRecord))


@pytest.mark.parametrize("wrong", [replace(NARRATIVE, caption="half \ud800"), "text"])
def test_what_cannot_be_written_leaves_no_file(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="narrative"):
        write(tmp_path / "x.parquet", [NARRATIVE, wrong])
    assert list(tmp_path.iterdir()) == []


def test_a_gzipped_parquet_file_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be gzipped"):
        write(tmp_path / "x.parquet.gz", [NARRATIVE])
    assert list(tmp_path.iterdir()) == []


def test_the_format_is_told_by_its_content(tmp_path: Path) -> None:
    write(tmp_path / "file.bin", [NARRATIVE])
    assert registry.detect(tmp_path / "file.bin").name == "parquet"
