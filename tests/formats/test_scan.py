"""Parts of JSON documents are found where they lie."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.formats._scan import CUT_OFF, keys_of, parts, value_end

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
indents = st.sampled_from([None, 0, 3])


@given(st.lists(values), indents)
def test_the_items_of_a_list_are_those_that_json_finds(items: list[object], indent: int | None) -> None:
    text = json.dumps(items, indent=indent).encode()
    found = list(parts(text, 0, root=True))
    assert [json.loads(text[part.start : part.end]) for part in found] == items
    assert [part.index for part in found] == list(range(len(items)))


@given(st.dictionaries(st.text(), values), indents, st.booleans())
def test_the_members_of_an_object_are_those_that_json_finds(
    members: dict[str, object], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(members, indent=indent, ensure_ascii=ascii_only).encode()
    found = list(parts(text, 0, root=True))
    assert {part.key: json.loads(text[part.start : part.end]) for part in found} == members
    assert keys_of(b" \n" + text) == frozenset(members) - {""}


@pytest.mark.parametrize("depth", [1, 7, 8, 9, 100_000])
def test_a_value_ends_where_its_brackets_close_however_deep(depth: int) -> None:
    text = b'[{"]": ' * depth + b"1" + b"}]" * depth
    assert value_end(text + b", 2", 0) == len(text)
    assert value_end(text[:-1], 0) is None


@pytest.mark.parametrize(
    ("text", "problem", "n_good"),
    [
        (b"[1, 2", "should stand here", 2),
        (b"[1, 2,", CUT_OFF, 2),
        (b"[1, 2,]", "a value should stand here", 2),
        (b"[1 2]", "a comma", 1),
        (b"[1}", "a comma", 1),
        (b'[1, "ab', CUT_OFF, 1),
        (b"[1, {]", "a comma", 2),
        (b'{"a": 1, b: 2}', "a key in quotes", 1),
        (b'{"a": 1, "b"}', "a key in quotes", 1),
        (b'{"a": 1} {"a": 1}', "more text", 1),
        (b"[] x", "more text", 0),
        (b'{"a": 1, "\\ud800": 2, "c": 3}', "key is not valid text", 2),
    ],
)
def test_what_is_broken_is_named_once(text: bytes, problem: str, n_good: int) -> None:
    found = list(parts(text, 0, root=True))
    assert [problem in part.problem for part in found if part.problem] == [True]
    assert sum(not part.problem for part in found) == n_good
