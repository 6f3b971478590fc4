"""A store gives back what was put in, whatever the shard size and wherever its writer was stopped."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.store import Store, StoreWriter, reader, writer

FIELDS = {"grid": "float16", "boxes": "float32", "split": "int8", "flags": "bool", "photo": "bytes", "said": "json"}
ABOUT = {"encoder": {"name": "colours", "input_px": 8}}
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
JSON = st.recursive(
    st.integers(-(2**50), 2**50) | st.text(st.characters(codec="utf-8")) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=5,
)
ROW = st.fixed_dictionaries(
    {
        "grid": st.none() | hnp.arrays(np.float16, SHAPES),
        "boxes": st.none() | hnp.arrays(np.float32, SHAPES),
        "split": st.none() | st.integers(-128, 127),
        "flags": st.none() | hnp.arrays(np.bool_, SHAPES),
        "photo": st.none() | st.binary(max_size=80),
        "said": st.none() | JSON,
    }
)
ROWS = st.dictionaries(st.text(max_size=8), ROW, max_size=12)
SHARD_BYTES = st.integers(1, 400)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name) / "store"


def opened(path: Path, shard_bytes: int = 200, **changes: Any) -> StoreWriter:
    given = {"kind": "things", "fields": FIELDS, "about": ABOUT} | changes
    return StoreWriter(path, shard_bytes=shard_bytes, **given)


def some(count: int) -> dict[str, dict[str, Any]]:
    return {
        f"photo {i}": {"grid": np.full((i % 3, 2, 4), i), "photo": bytes([i] * 30), "said": [i]} for i in range(count)
    }


def written(path: Path, count: int = 10, **changes: Any) -> Store:
    with opened(path, **changes) as store:
        for key, row in some(count).items():
            store.add(key, **row)
    return Store(path)


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def check_row(found: Any, given: dict[str, Any]) -> None:
    assert list(found) == list(FIELDS)
    for name, value in given.items():
        if value is None or FIELDS[name] in ("bytes", "json"):
            assert found[name] == value
        else:
            assert found[name].dtype == FIELDS[name]
            np.testing.assert_array_equal(found[name], value)


@settings(max_examples=30)
@given(ROWS, SHARD_BYTES)
def test_what_goes_in_comes_out(rows: dict[str, dict[str, Any]], shard_bytes: int) -> None:
    with folder() as path:
        with opened(path, shard_bytes) as store:
            for key, row in rows.items():
                store.add(key, **row)
        found = Store(path, "things")
        assert len(found) == len(rows) == sum(len(shard) for shard in found.shards)
        assert list(found.rows_by_key) == list(rows) == [key for shard in found.shards for key in shard.keys]
        for number, (key, row) in enumerate(rows.items()):
            assert found[number].key == key
            check_row(found[number], row)
            check_row(found.by_key(key), row)
        for seen, given in zip((row for shard in found.shards for row in shard), rows.values(), strict=True):
            check_row(seen, given)
        assert (found.about, found.fields) == (ABOUT, FIELDS)
        found.verify()


class Killed(BaseException):
    pass


@settings(max_examples=30)
@given(ROWS, SHARD_BYTES, st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["drop", "flush", "index", "shard"]))))
def test_a_writer_stopped_anywhere_goes_on_and_leaves_the_same_files(
    rows: dict[str, dict[str, Any]], shard_bytes: int, stops: list[tuple[int, str]]
) -> None:
    """drop: killed between rows. flush: stopped by an error. index, shard: killed before or within writing either."""

    def kill(*_: object) -> None:
        raise Killed

    def run(path: Path, most: int) -> None:
        store = opened(path, shard_bytes)
        for key, row in rows.items():
            if key not in store and most:
                store.add(key, **row)
                most -= 1

    with folder() as whole, folder() as torn:
        with opened(whole, shard_bytes) as store:
            for key, row in rows.items():
                store.add(key, **row)
        for most, how in stops:
            with pytest.MonkeyPatch.context() as patch:
                if how in ("index", "shard"):
                    patch.setattr(writer, {"index": "write_index", "shard": "write_atomic"}[how], kill)
                try:
                    if how == "flush":
                        with opened(torn, shard_bytes) as store:
                            for key, row in list(rows.items())[: len(store) + most]:
                                if key not in store:
                                    store.add(key, **row)
                            raise Killed
                    run(torn, most)
                except Killed:
                    pass
        with opened(torn, shard_bytes) as store:
            for key, row in rows.items():
                if key not in store:
                    store.add(key, **row)
        assert files(torn) == files(whole)


def test_a_process_that_is_killed_loses_no_whole_shard_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from saywhere.store import StoreWriter\n"
        "writer = StoreWriter(sys.argv[1], 'things', {'photo': 'bytes'}, {}, shard_bytes=100)\n"
        "for i in range(25): writer.add(str(i), photo=bytes(18))\n"
        "open(sys.argv[1] + '/.00005-0123456789ab.safetensors.x.part', 'w').close()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -9
    with pytest.raises(InvalidFile, match=r"not finished: 2. rows so far.*goes on"):
        Store(tmp_path)
    with StoreWriter(tmp_path, "things", {"photo": "bytes"}, {}, shard_bytes=100) as store:
        assert 20 <= len(store) < 25
        for i in range(len(store), 25):
            store.add(str(i), photo=bytes(18))
    found = Store(tmp_path)
    assert list(found.rows_by_key) == [str(i) for i in range(25)]
    assert {file.name for file in tmp_path.iterdir()} == {"index.json", *(shard.path.name for shard in found.shards)}


def test_shards_are_bounded_and_plain_safetensors(tmp_path: Path) -> None:
    found = written(tmp_path, 30, shard_bytes=500)
    assert len(found.shards) > 3
    for shard in found.shards:
        tensors = load_file(shard.path)
        rows = tensors["photo"].nbytes + tensors["grid"].nbytes + tensors["said"].nbytes + tensors["key"].nbytes
        assert rows <= 500
        assert tensors["grid"].dtype == np.float16
        np.testing.assert_array_equal(tensors["grid"], shard.flat("grid"))


def test_a_finished_store_takes_more_rows_and_is_unfinished_only_once_they_are_written(tmp_path: Path) -> None:
    before = files(tmp_path) if written(tmp_path, 4) else {}
    more = opened(tmp_path)
    more.add("new", said="more")
    assert files(tmp_path) == before
    more.flush()
    with pytest.raises(InvalidFile, match="not finished"):
        Store(tmp_path)
    more.flush(complete=True)
    assert list(Store(tmp_path).rows_by_key) == [*some(4), "new"]


def test_a_finished_store_opened_to_write_and_left_alone_stays_as_it_was(tmp_path: Path) -> None:
    written(tmp_path)
    before = files(tmp_path)
    with opened(tmp_path) as store:
        assert len(store) == 10
        assert "photo 3" in store
    assert files(tmp_path) == before


def test_a_writer_that_begins_anew_leaves_nothing_of_the_old_rows(tmp_path: Path) -> None:
    written(tmp_path, 10)
    with opened(tmp_path, resume=False, about={}, fields={"said": "json"}) as store:
        assert len(store) == 0
    assert (len(Store(tmp_path)), [file.name for file in tmp_path.iterdir()]) == (0, ["index.json"])


@pytest.mark.parametrize(
    ("change", "what"),
    [({"kind": "others"}, "kind"), ({"about": {}}, "encoder"), ({"fields": FIELDS | {"grid": "float32"}}, "fields")],
)
def test_a_store_of_other_rows_is_not_gone_on_with(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    written(tmp_path)
    with pytest.raises(InvalidFile, match=f"another {what} .*delete"):
        opened(tmp_path, **change)


def test_rows_that_have_a_value_and_all_values_at_once(tmp_path: Path) -> None:
    with opened(tmp_path, 40) as store:
        for i in range(20):
            store.add(str(i), split=i, said=None if i % 3 else "third")
    found = Store(tmp_path)
    assert len(found.shards) > 1
    assert [row.key for row in found.having("said")] == [str(i) for i in range(0, 20, 3)]
    assert found.flat("split").tolist() == list(range(20))
    assert (found.flat("split").dtype.name, found.flat("boxes").shape) == ("int8", (0,))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"grid": np.array([1e5])}, "grid of row 'a'.*float16"),
        ({"grid": ["cup"]}, "grid of row 'a'.*not numbers"),
        ({"split": 128}, "int8"),
        ({"split": 0.5}, "int8"),
        ({"tags": 1}, "tags, which the store has not"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_and_leaves_no_trace(
    tmp_path: Path, values: dict[str, Any], reason: str
) -> None:
    with opened(tmp_path) as store:
        with pytest.raises(InvalidValue, match=reason):
            store.add("a", **values)
        store.add("a", said="once")
        with pytest.raises(InvalidValue, match="already"):
            store.add("a", said="twice")
    assert [row["said"] for row in Store(tmp_path)] == ["once"]


def test_infinity_and_nan_are_numbers_that_fit(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.add("a", grid=np.array([np.inf, np.nan], np.float64))
    np.testing.assert_array_equal(Store(tmp_path)[0]["grid"], [np.inf, np.nan])


@pytest.mark.parametrize(("fields", "reason"), [({"key": "bytes"}, "called 'key'"), ({"a.b": "bytes"}, "a.b")])
def test_a_field_that_has_no_good_name_is_refused(tmp_path: Path, fields: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        opened(tmp_path, fields=fields)


def test_a_kind_of_field_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'float16'"):
        opened(tmp_path, fields={"a": "flaot16"})


def test_what_a_writer_was_given_may_change_afterwards(tmp_path: Path) -> None:
    grid = np.ones(3)
    with opened(tmp_path) as store:
        store.add("a", grid=grid)
        grid[:] = 2
    np.testing.assert_array_equal(Store(tmp_path)[0]["grid"], 1)


def test_arrays_are_read_only_views_of_the_file(tmp_path: Path) -> None:
    found = written(tmp_path)[1]["grid"]
    assert not found.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_a_store_and_its_shards_can_be_pickled_also_after_reading(tmp_path: Path) -> None:
    found = written(tmp_path)
    assert found[3]["said"] == [3]
    again = pickle.loads(pickle.dumps(found))
    assert (again[3]["said"], again.fingerprint) == ([3], found.fingerprint)
    assert pickle.loads(pickle.dumps(found.shards[0]))[0].key == "photo 0"


def test_rows_can_be_read_as_values_of_a_type(tmp_path: Path) -> None:
    assert written(tmp_path)[2].decoded("said", tuple[int, ...]) == (2,)


def test_no_more_files_stay_open_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(tmp_path, 30, shard_bytes=50)
    monkeypatch.setattr(reader, "_MOST_OPEN", 3)
    kept = [row["photo"] for row in found]
    assert kept == [row["photo"] for row in some(30).values()]
    assert sum(shard.is_open for shard in found.shards) == 3


@pytest.mark.parametrize("number", [-1, 10])
def test_a_row_beyond_the_last_is_an_index_error(tmp_path: Path, number: int) -> None:
    with pytest.raises(IndexError, match="of 10"):
        written(tmp_path)[number]


def test_unknown_keys_and_fields_are_named(tmp_path: Path) -> None:
    found = written(tmp_path)
    assert "photo 1" in found
    assert "photo 11" not in found
    with pytest.raises(InvalidValue, match=r"'photo 11'.*not among the 10"):
        found.by_key("photo 11")
    with pytest.raises(UnknownName, match="Did you mean 'photo'"):
        found[0]["foto"]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _foreign(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def _other_shard(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"F16"', b'"I16"'))


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (Path.unlink, "cannot be read.*missing"),
        (_cut, "bytes, not .* truncated"),
        (_foreign, "not a shard of this store"),
        (_other_shard, "not a shard of this store: 'grid' is I16, not F16"),
    ],
)
def test_a_shard_that_is_missing_truncated_or_foreign_is_named(tmp_path: Path, harm: Any, reason: str) -> None:
    found = written(tmp_path, 5, shard_bytes=10_000)
    harm(found.shards[0].path)
    with pytest.raises(InvalidFile, match=reason) as raised:
        Store(tmp_path)[0]["grid"]
    assert found.shards[0].path.name in str(raised.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "is not a store"),
        ("{", "not the index of a store"),
        ("\udcff", "not the index of a store"),
        ('{"images": []}', "not the index of a store"),
        ('{"format": "saywhere store", "version": 99}', "version 99, not 1.*anew"),
        ('{"format": "saywhere store", "version": 1}', "not the index of a store"),
    ],
)
def test_a_folder_that_is_no_store_is_refused(tmp_path: Path, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "index.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidFile, match=reason):
        Store(tmp_path)


def test_a_store_of_another_kind_than_asked_for_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(InvalidFile, match="holds things, not views"):
        Store(tmp_path, "views")


def test_the_index_says_what_is_there(tmp_path: Path) -> None:
    written(tmp_path, 3, shard_bytes=10_000)
    index = json.loads((tmp_path / "index.json").read_bytes())
    assert (index["kind"], index["fields"], index["about"], index["complete"]) == ("things", FIELDS, ABOUT, True)
    assert [(shard["rows"], len(shard["sha256"])) for shard in index["shards"]] == [(3, 64)]


@pytest.mark.parametrize("name", ["index.json", "00000", "00001"])
def test_an_altered_file_changes_the_fingerprint_and_fails_the_check(tmp_path: Path, name: str) -> None:
    before = written(tmp_path).fingerprint
    assert Store(tmp_path).fingerprint == before
    path = next(tmp_path.glob(f"{name}*"))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"colours", b"colors!") if name == "index.json" else content[:-1] + b"\x07")
    assert Store(tmp_path).fingerprint != before
    if name != "index.json":
        with pytest.raises(InvalidFile, match=f"{name}.*SHA-256"):
            Store(tmp_path).verify()


def test_a_store_opens_without_reading_its_shards(tmp_path: Path) -> None:
    found = written(tmp_path)
    for shard in found.shards:
        shard.path.unlink()
    assert len(Store(tmp_path)) == 10
