"""MATLAB files are read as scipy reads them, but with memory bounded by the file."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.io import loadmat, savemat

from saywhere.core.errors import InvalidValue
from saywhere.formats._mat5 import Cells, Structs, Value, read_variable

arrays = hnp.arrays(
    st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float32, np.float64]),
    hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=4),
    elements={"min_value": 0, "max_value": 100},
)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C"], max_codepoint=0xFFFF), min_size=1, max_size=9)
names = st.text("abcxyz", min_size=1, max_size=20)
variables = st.recursive(
    arrays | texts,
    lambda inner: st.dictionaries(names, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=3),
    max_leaves=6,
)


def as_cells(value: Any) -> Any:
    """Lists as MATLAB cells, for savemat."""
    if isinstance(value, dict):
        return {name: as_cells(field) for name, field in value.items()}
    if not isinstance(value, list):
        return value
    cells = np.empty((len(value), 1), object)
    for i, item in enumerate(value):
        cells[i, 0] = as_cells(item)
    return cells


def assert_same(value: Value, wanted: Any) -> None:
    """wanted: what scipy's loadmat gives."""
    if isinstance(value, Structs):
        assert wanted.size == len(value.items)
        for item, other in zip(value.items, wanted.ravel(order="F"), strict=True):
            assert set(item) == set(wanted.dtype.names)
            for name, field in item.items():
                assert_same(field, other[name])
    elif isinstance(value, Cells):
        for item, other in zip(value.items, wanted.ravel(order="F"), strict=True):
            assert_same(item, other)
    elif isinstance(value, str):
        assert [value] == wanted.tolist()
    else:
        np.testing.assert_array_equal(value, wanted)


def saved(value: Any, compressed: bool = False) -> bytes:
    file = BytesIO()
    savemat(file, {"other": 1, "v": as_cells(value)}, do_compression=compressed)
    return file.getvalue()


@given(variables, st.booleans())
def test_what_scipy_writes_is_read_as_scipy_reads_it(value: Any, compressed: bool) -> None:
    content = saved(value, compressed)
    assert_same(read_variable(content, "v"), loadmat(BytesIO(content))["v"])


def test_real_files_are_read_as_scipy_reads_them(shared: Callable[[str], Path]) -> None:
    mouse = sorted(shared("data/osie/mouse_lab").glob("*.mat"))
    for path in mouse[::20]:
        assert_same(read_variable(path.read_bytes(), "fixations"), loadmat(path)["fixations"])
    eyes = shared("data/osie/eye/fixations.mat")
    value = read_variable(eyes.read_bytes(), "fixations")
    assert isinstance(value, Cells)
    assert len(value.items) == 700
    assert_same(Cells(value.items[::20]), loadmat(eyes)["fixations"][::20])


def test_big_endian_files_are_read() -> None:
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    words = [14, 56, 6, 8, 6, 0, 5, 8, 1, 2, (1 << 16) | 1, ord("v") << 24, 4, 4]
    content = head + b"".join(word.to_bytes(4, "big") for word in words) + b"\x01\x00\x00\x07" + bytes(4)
    np.testing.assert_array_equal(np.asarray(read_variable(content, "v")), [[256, 7]])


BIG = (2**30).to_bytes(4, "little")


@pytest.mark.parametrize("value", [np.ones((3, 5)), [1.0, 2.0, 3.0], {"abc": 1.0}])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_false_claim_of_size_takes_no_memory(value: Any, compressed: bool) -> None:
    """Every word of the file in turn says 2**30; scipy would reserve gigabytes for some of them."""
    content = saved(value)
    tracemalloc.start()
    n_refused = 0
    for at in range(128, len(content), 4):
        changed = content[:at] + BIG + content[at + 4 :]
        if compressed:
            packed = zlib.compress(changed[128:])
            changed = changed[:128] + b"\x0f\x00\x00\x00" + len(packed).to_bytes(4, "little") + packed
        try:
            read_variable(changed, "v")
        except InvalidValue:
            n_refused += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20
    assert n_refused > 3


def test_a_packed_bomb_is_refused_before_it_fills_the_memory() -> None:
    packed = zlib.compress(bytes(2**22))
    content = saved(1.0)[:128] + b"\x0f\x00\x00\x00" + len(packed).to_bytes(4, "little") + packed
    with pytest.raises(InvalidValue, match="more than 1 MiB"):
        read_variable(content, "v", max_unpacked_bytes=2**20)


def element(kind: int, content: bytes) -> bytes:
    size = len(content)
    return kind.to_bytes(4, "little") + size.to_bytes(4, "little") + content + bytes(-size % 8)


def test_a_struct_of_many_items_without_fields_is_refused() -> None:
    flags, shape, width = ((2).to_bytes(8, "little"), BIG + (1).to_bytes(4, "little"), (32).to_bytes(4, "little"))
    parts = element(6, flags) + element(5, shape) + element(1, b"v") + element(5, width) + element(1, b"")
    with pytest.raises(InvalidValue, match="claims 1073741824 items"):
        read_variable(saved(1.0)[:128] + element(14, parts), "v")


def test_deep_nesting_is_refused() -> None:
    value: Any = 1.0
    for _ in range(20):
        value = [value]
    with pytest.raises(InvalidValue, match="nested too deeply"):
        read_variable(saved(value), "v")


@pytest.mark.parametrize(
    ("value", "words"), [(np.array([[1 + 2j]]), "complex"), (np.array([["ab"], ["cd"]]), "several rows")]
)
def test_what_is_not_read_is_named(value: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        read_variable(saved(value), "v")


@given(st.data())
def test_no_bytes_raise_anything_but_invalid_value(data: st.DataObject) -> None:
    content = bytearray(saved({"a": [np.ones((2, 2)), "text"], "b": 3.0}))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(120, len(content)))
        content[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    try:
        value: object = read_variable(bytes(content), "v")
    except InvalidValue as error:
        value = error.reason
    assert value is not None
