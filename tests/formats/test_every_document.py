"""What holds for all JSON formats alike: bad items are values, nothing else is lost, and no bytes crash a reader."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saywhere.core.errors import InvalidFile
from saywhere.formats._documents import _SNIFF_CHUNK
from saywhere.formats.record import InvalidRecord
from saywhere.formats.registry import FORMATS
from tests.formats.documents import FORMS, Form, outcome

DEEP = 100_000
forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])

# What may stand in a list in place of a good item, and words of the reason.
STRANGE_ITEMS = {
    "NaN": (b"NaN", "NaN"),
    "minus infinity": (b"-Infinity", "not JSON"),
    "null": (b"null", "null"),
    "a number": (b"3", "should be"),
    "text": (b'"cat"', "should be"),
    "Latin-1": (b'"caf\xe9"', "not UTF-8"),
}
# What a good item, an object, may hold besides, and words of the reason.
STRANGE_MEMBERS = {
    "NaN": (b'"zz": NaN', "NaN"),
    "a broken number": (b'"zz": 1.2.3', "not JSON"),
    "a broken word": (b'"zz": [nul, tru]', "not JSON"),
    "wrong brackets": (b'"zz": ["a"}', "not JSON"),
    "half a surrogate pair": (b'"zz": "\\ud83d"', "half a character"),
    "a key twice": (b'"zz": 1, "zz": 2', "twice"),
    "a key twice, spelt differently": (b'"zz": 1, "\\u007az": 2', "twice"),
    "a key twice, deep inside": (b'"zz": [{"y": {"x": 1, "x": 1}}]', "twice"),
    "Latin-1 in a member that nobody reads": (b'"zz": "caf\xe9"', "not UTF-8"),
    "deep nesting": (b'"zz": ' + b"[" * DEEP + b"]" * DEEP, "too deeply"),
}


@forms
@pytest.mark.parametrize("strange", STRANGE_ITEMS)
def test_a_strange_item_is_one_bad_record_and_all_others_are_read(form: Form, strange: str, tmp_path: Path) -> None:
    content, words = STRANGE_ITEMS[strange]
    assert words in _the_bad_one(form, content, tmp_path).reason


@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "entities"], ids=lambda form: form.name)
@pytest.mark.parametrize("strange", STRANGE_MEMBERS)
def test_a_strange_member_makes_its_item_a_bad_record(form: Form, strange: str, tmp_path: Path) -> None:
    member, words = STRANGE_MEMBERS[strange]
    assert words in _the_bad_one(form, form.items[2][:-1] + b", " + member + b"}", tmp_path).reason


@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "entities"], ids=lambda form: form.name)
def test_each_member_that_is_missing_or_of_another_type_is_a_bad_record_or_optional(form: Form, tmp_path: Path) -> None:
    good = json.loads(form.items[2])
    n_bad = 0
    for key in good:
        for strange in ({k: v for k, v in good.items() if k != key}, good | {key: {"?": [True]}}):
            content = form.wrap([*form.items[:2], json.dumps(strange).encode(), form.items[3]])
            values, bad, error = outcome(form, tmp_path / "file", content)
            assert error is None
            assert len(values) + len(bad) == 4
            n_bad += len(bad)
    assert n_bad >= len(good), "at the least, no member may be of any type whatever"


def _the_bad_one(form: Form, item: bytes, tmp_path: Path) -> InvalidRecord:
    """The bad record that this third item gives, after a check that the other three are read as ever."""
    path = tmp_path / "file"
    good, _, _ = outcome(form, path, form.wrap(form.items))
    assert len(good) == 4
    values, bad, error = outcome(form, path, form.wrap([*form.items[:2], item, form.items[3]]))
    assert error is None
    assert values == [good[0], good[1], good[3]]
    assert len(bad) == 1
    line, where = form.where(2)
    assert bad[0].line == line
    assert bad[0].where.startswith(where)
    assert bad[0].path == str(path)
    return bad[0]


@forms
@few
@given(data=st.data())
def test_a_document_cut_anywhere_gives_what_came_before_and_says_so(
    form: Form, data: st.DataObject, tmp_path: Path
) -> None:
    whole = form.wrap(form.items)
    good, _, _ = outcome(form, tmp_path / "file", whole)
    cut = data.draw(st.integers(0, len(whole.rstrip()) - 1))
    values, bad, error = outcome(form, tmp_path / "file", whole[:cut])
    assert values == good[: len(values)]
    if form.by_lines:
        last = whole[:cut].split(b"\n")[-1]
        assert len(bad) == (last != b"" and last not in form.items)
        assert len(values) + len(bad) == len(whole[:cut].splitlines())
    else:
        assert len(bad) == (error is None)


@forms
@few
@given(data=st.data())
def test_no_change_of_some_bytes_crashes_a_reader(form: Form, data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(form.wrap(form.items))
    pieces = [
        b"",
        b'"',
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b"NaN",
        b"1e999",
        b"\\",
        b"\\ud800",
        b"\xff",
        b"\x00",
        b"null",
    ]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        until = data.draw(st.integers(at, min(at + 12, len(content))))
        content[at:until] = data.draw(st.sampled_from(pieces) | st.binary(max_size=6))
    values, bad, error = outcome(form, tmp_path / "file", bytes(content))
    assert len(values) <= 4 * len(form.items)
    assert all(record.reason for record in bad)
    assert error is None or isinstance(error, InvalidFile)


@forms
@few
@given(content=st.binary(max_size=200))
def test_no_bytes_crash_a_reader_or_a_sniffer(form: Form, content: bytes, tmp_path: Path) -> None:
    _, bad, error = outcome(form, tmp_path / "file", content)
    assert all(record.reason for record in bad)
    assert error is None or isinstance(error, InvalidFile)
    assert FORMATS[form.name].module.sniff(tmp_path / "file", content) in (True, False)


@forms
@few
@given(
    content=st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["annotations", "questions", "images", "categories", "regions", "id", "image_id"]),
                inner,
            )
        ),
    )
)
def test_no_json_crashes_a_reader(form: Form, content: object, tmp_path: Path) -> None:
    _, bad, error = outcome(form, tmp_path / "file", json.dumps(content).encode())
    assert all(record.reason for record in bad)
    assert error is None or isinstance(error, InvalidFile)


@forms
def test_a_byte_order_mark_and_gzip_make_no_difference(form: Form, tmp_path: Path) -> None:
    content = form.wrap(form.items)
    plain = outcome(form, tmp_path / "file", content)
    assert len(plain[0]) == 4
    assert outcome(form, tmp_path / "file", b"\xef\xbb\xbf" + content) == plain
    assert outcome(form, tmp_path / "file", gzip.compress(content)) == plain


ENCODINGS = {
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "gzip that is cut off": lambda text: gzip.compress(text.encode())[:-12],
}


@forms
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_encodings_are_refused_in_words(form: Form, encoding: str, tmp_path: Path) -> None:
    encode: Callable[[str], bytes] = ENCODINGS[encoding]
    values, bad, error = outcome(form, tmp_path / "file", encode(form.wrap(form.items).decode()))
    words = "cut off" if "gzip" in encoding else "UTF-16"
    if error is None:
        assert form.by_lines  # where lines before the damage are still good
        assert words in bad[-1].reason
    else:
        assert values == []
        assert words in str(error)


@forms
def test_an_empty_file_holds_nothing_or_is_refused(form: Form, tmp_path: Path) -> None:
    values, bad, error = outcome(form, tmp_path / "file", b" \n ")
    assert (values, bad) == ([], [])
    assert (error is None) == form.by_lines
    with pytest.raises(InvalidFile, match="cannot be opened"):
        list(form.read(tmp_path / "missing"))


@forms
def test_each_document_is_taken_for_what_it_is_and_nothing_else(form: Form, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(form.wrap(form.items))
    names = [other.name for other in FORMS if FORMATS[other.name].module.sniff(path, path.read_bytes()[: 2**16])]
    assert names == [form.name]


def test_a_list_far_into_the_file_still_tells_what_the_document_is(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    images = [{"id": i, "file_name": "x" * 500} for i in range(5000)]
    path.write_text(json.dumps({"images": images, "annotations": [{"image_id": 1, "id": 2, "caption": "a"}]}))
    head = path.read_bytes()[: 2**16]
    assert FORMATS["coco-captions"].module.sniff(path, head)
    assert not FORMATS["coco-instances"].module.sniff(path, head)


@pytest.mark.parametrize("before", [-3, -20])
def test_a_list_whose_name_lies_across_a_chunk_still_tells_what_the_document_is(before: int, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    opening = '{"info": "'
    filling = "x" * (_SNIFF_CHUNK + before - len(opening) - 3)
    path.write_text(opening + filling + '", "annotations": [{"image_id": 1, "id": 2, "caption": "a"}]}')
    assert FORMATS["coco-captions"].module.sniff(path, path.read_bytes()[: 2**16])
