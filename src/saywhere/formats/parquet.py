"""Narratives as Apache Parquet, in and out: small, columnar, read by every data-frame library.

One row a narrative. Columns, all of which must be there but the last, in any order; others are passed over:

    dataset_id, image_id, annotator_id, caption, audio, origin    text, as in `Narrative`
    utterances   list of {text, start_s, end_s}
    points       list of {x, y, t}: fractions of the image's width and height, seconds
    starts       list of the index of each stroke's first point
    language     text, as in `Narrative`; unknown where earlier versions wrote no such column

The file's metadata say which version of this schema it has: "saywhere.narratives" = "1". A file without it is read as
version 1; one with a later version is refused. Types that hold the same (large lists, dictionaries, float32) are cast.

What becomes of oddities. InvalidFile: not Parquet, damaged at its end (where Parquet has its table of contents), a
column missing or of another type. InvalidRecord, `where` giving the row, counted from 0: a missing value, NaN, times
that go back, strokes that are none. If a row group is damaged, one InvalidRecord stands for what could not be read of
it, and the next group is read. Memory holds some hundred narratives at a time, whatever the file's size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.core.trace import Trace
from saywhere.core.words import Utterance
from saywhere.formats.record import InvalidRecord

VERSION_KEY = b"saywhere.narratives"
VERSION = 1
ROWS_IN_GROUP = 1024
_ROWS_AT_ONCE = 256
_TEXTS = ("dataset_id", "image_id", "annotator_id", "caption", "audio", "origin")
_LANGUAGE = "language"
_UTTERANCE = ("text", "start_s", "end_s")
_POINT = ("x", "y", "t")
_MAGIC = b"PAR1"


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the file is Parquet."""
    return head.startswith(_MAGIC)


def schema() -> Any:
    """The pyarrow schema of the columns."""
    import pyarrow as pa

    number, text = pa.float64(), pa.string()
    utterance = pa.struct(list(zip(_UTTERANCE, (text, number, number), strict=True)))
    point = pa.struct([(name, number) for name in _POINT])
    return pa.schema(
        [
            *((name, text) for name in _TEXTS),
            ("utterances", pa.list_(utterance)),
            ("points", pa.list_(point)),
            ("starts", pa.list_(pa.int32())),
            (_LANGUAGE, text),
        ],
        metadata={VERSION_KEY: str(VERSION).encode()},
    )


def write(path: str | Path, narratives: Iterable[Narrative]) -> int:
    """Write narratives, a row group at a time; how many there were."""
    import pyarrow.parquet as pq

    if Path(path).suffix == ".gz":
        raise InvalidFile(path, "Parquet is compressed inside and cannot be gzipped", "leave out .gz")
    rows, written = iter(narratives), 0
    with write_atomic(path) as file, pq.ParquetWriter(file, schema(), write_page_checksum=True) as writer:
        while group := list(islice(rows, ROWS_IN_GROUP)):
            writer.write_batch(_batch(group))
            written += len(group)
    return written


def read(path: str | Path) -> Iterator[Narrative | InvalidRecord]:
    """Every narrative of the file, in its order; a bad row in its place."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Raw bytes are opened here so that the file is closed whatever becomes of the reader.
        source = Path(path).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
    with source:
        try:
            file = pq.ParquetFile(source, page_checksum_verification=True)
            _check_schema(path, file.schema_arrow)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InvalidFile(path, f"is not a readable Parquet file: {_first_line(error)}") from error
        first = 0
        for group in range(file.num_row_groups):
            yield from _read_group(path, file, group, first)
            first += file.metadata.row_group(group).num_rows


def _read_group(path: str | Path, file: Any, group: int, first: int) -> Iterator[Narrative | InvalidRecord]:
    import pyarrow as pa

    row = first
    there = [name for name in schema().names if name in file.schema_arrow.names]
    batches = file.iter_batches(_ROWS_AT_ONCE, [group], there, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = f"the row group is damaged from here on: {_first_line(error)}"
            yield InvalidRecord(str(path), 0, reason, f"row {row}")
            return
        if batch is None:
            return
        for value in _values(batch):
            yield value if isinstance(value, Narrative) else InvalidRecord(str(path), 0, value, f"row {row}")
            row += 1


def _check_schema(path: str | Path, columns: Any) -> None:
    import pyarrow as pa

    version = (columns.metadata or {}).get(VERSION_KEY, str(VERSION).encode())
    if version != str(VERSION).encode():
        shown = version.decode("utf-8", "replace")
        raise InvalidFile(path, f"has version {shown!r} of the schema, but only {VERSION} is known", "update saywhere")
    times = {name: len(columns.get_all_field_indices(name)) for name in schema().names}
    if missing := [name for name, n in times.items() if n != 1 and not (name == _LANGUAGE and n == 0)]:
        raise InvalidFile(path, f"does not have one column of each of these names: {', '.join(missing)}")
    for field in schema():
        if not times[field.name]:
            continue
        try:
            pa.array([], columns.field(field.name).type).cast(field.type)
        except pa.ArrowException as error:
            given = columns.field(field.name).type
            raise InvalidFile(path, f"the column {field.name} is {given}, not {field.type}") from error


def _batch(narratives: list[Narrative]) -> Any:
    import pyarrow as pa

    for narrative in narratives:
        if not isinstance(narrative, Narrative):
            raise InvalidValue("narrative", f"is a {type(narrative).__name__}")
    points = np.concatenate([narrative.trace.points for narrative in narratives])
    utterances = [utterance for narrative in narratives for utterance in narrative.utterances]
    try:
        return pa.RecordBatch.from_pydict(
            {name: [getattr(narrative, name) for narrative in narratives] for name in (*_TEXTS, _LANGUAGE)}
            | {
                "utterances": _lists(
                    [len(narrative.utterances) for narrative in narratives],
                    {name: [getattr(u, name) for u in utterances] for name in _UTTERANCE},
                    schema().field("utterances").type.value_type,
                ),
                "points": _lists(
                    [len(narrative.trace) for narrative in narratives],
                    dict(zip(_POINT, points.T, strict=True)),
                    schema().field("points").type.value_type,
                ),
                "starts": [narrative.trace.starts for narrative in narratives],
            },
            schema(),
        )
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise InvalidValue("narratives", f"cannot be put into columns: {_first_line(error)}") from error


def _lists(lengths: list[int], fields: dict[str, Any], item: Any) -> Any:
    """A column of lists of structs, made of one flat column for each of the struct's fields."""
    import pyarrow as pa

    arrays = [pa.array(values, item.field(name).type) for name, values in fields.items()]
    offsets = np.cumsum([0, *lengths], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(arrays, fields=list(item)))


def _values(batch: Any) -> Iterator[Narrative | str]:
    """A narrative for every row, or the reason why there is none."""
    import pyarrow as pa

    try:
        rows = pa.Table.from_batches([batch])
        if _LANGUAGE not in rows.column_names:
            rows = rows.append_column(_LANGUAGE, pa.array([""] * rows.num_rows, pa.string()))
        rows = rows.select(schema().names).cast(schema())
    except pa.ArrowException as error:
        if batch.num_rows == 1:
            yield f"does not fit the schema: {_first_line(error)}"
            return
        # One bad value spoils the cast of all, and that of a slice too, which keeps the lists' items before and after.
        for i in range(batch.num_rows):
            yield from _values(batch.take(pa.array([i])))
        return
    for i in range(rows.num_rows):
        try:
            yield _narrative({name: rows.column(name)[i] for name in rows.column_names})
        except InvalidValue as error:
            yield str(error)
        except UnicodeDecodeError as error:
            yield f"holds text that is not UTF-8: {error.reason}"


def _narrative(row: dict[str, Any]) -> Narrative:
    for name, cell in row.items():
        if not cell.is_valid:
            raise InvalidValue(name, "is missing")
    texts, starts_s, ends_s = (field.to_pylist() for field in _fields(row, "utterances"))
    x, y, t = (field.to_numpy() for field in _fields(row, "points"))
    starts = row["starts"].as_py()
    if None in starts:
        raise InvalidValue("starts", "has an item missing")
    return Narrative(
        utterances=tuple(map(Utterance, texts, starts_s, ends_s)),
        trace=Trace(np.column_stack([x, y, t]), starts),
        **{name: row[name].as_py() for name in (*_TEXTS, _LANGUAGE)},
    )


def _fields(row: dict[str, Any], name: str) -> list[Any]:
    """The fields of a list of structs, each as one array, none with a value missing."""
    fields: list[Any] = row[name].values.flatten()
    if any(field.null_count for field in fields):
        raise InvalidValue(name, "has an item, or a part of one, missing")
    return fields


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
