"""Localized Narratives: what is read, what is refused and why, and that nothing is lost on the way out and back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidFile, InvalidValue, Narrative, Trace, Utterance
from saywhere.formats import _json_lines, localized_narratives, registry
from saywhere.formats.files import MAX_LINE_BYTES, open_bytes
from saywhere.formats.localized_narratives import RawNarrative, read, read_raw, remarks, write
from saywhere.formats.record import InvalidRecord
from tests.strategies import narratives

BAD_LINES = Path(__file__).parent / "bad_lines"
INDEX: dict[str, dict[str, str]] = json.loads((BAD_LINES / "index.json").read_text(encoding="utf-8"))
REAL = "data/localized_narratives/coco_val_212166_49.jsonl"

RECORD: dict[str, Any] = {
    "dataset_id": "mscoco_val2017",
    "image_id": "212166",
    "annotator_id": 49,
    "caption": "a cat sleeps",
    "timed_caption": [
        {"utterance": "a cat", "start_time": 0.0, "end_time": 0.6},
        {"utterance": "sleeps", "start_time": 0.6, "end_time": 1.2},
    ],
    "traces": [
        [{"x": 0.1, "y": 0.2, "t": 0.0}, {"x": 0.2, "y": 0.3, "t": 0.5}],
        [{"x": 0.6, "y": 0.4, "t": 0.9}],
    ],
    "voice_recording": "coco_val/coco_val_212166_49.ogg",
}
GOOD = json.dumps(RECORD).encode()
NARRATIVE = Narrative(
    image_id="212166",
    caption="a cat sleeps",
    utterances=(Utterance("a cat", 0.0, 0.6), Utterance("sleeps", 0.6, 1.2)),
    trace=Trace([[0.1, 0.2, 0.0], [0.2, 0.3, 0.5], [0.6, 0.4, 0.9]], (0, 2)),
    dataset_id="mscoco_val2017",
    annotator_id="49",
    audio="coco_val/coco_val_212166_49.ogg",
)
ORIGINS = st.sampled_from(["human", "mitr", "gemini: pro"])
ANNOTATORS = st.one_of(st.just(""), st.integers().map(str), st.sampled_from(["007", "ann:a", "１２", "9" * 30, "-0"]))
any_narrative = st.builds(
    lambda n, origin, annotator: replace(n, origin=origin, annotator_id=annotator), narratives(), ORIGINS, ANNOTATORS
)


def read_bytes(tmp_path: Path, content: bytes) -> list[Narrative | InvalidRecord]:
    path = tmp_path / "narratives.jsonl"
    path.write_bytes(content)
    return list(read(path))


def only(values: Iterable[Narrative | InvalidRecord]) -> Narrative:
    (value,) = values
    assert isinstance(value, Narrative)
    return value


def bad_line(name: str) -> bytes:
    with open_bytes(BAD_LINES / name) as file:
        return file.read()


def records_in(content: bytes) -> int:
    """How many records a file has: its lines that are not blank."""
    return sum(bool(line.strip()) for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"))


# What is read


def test_a_record_becomes_a_narrative(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, GOOD) == [NARRATIVE]


def test_the_real_record_is_read_whole(shared: Callable[[str], Path]) -> None:
    narrative = only(read(shared(REAL)))
    assert (len(narrative.trace), len(narrative.utterances)) == (330, 19)
    assert narrative.id == "mscoco_val2017/212166/49"
    assert narrative.utterances[3] == Utterance("we can see there", 1.6, 1.6)
    assert narrative.trace.points[0].tolist() == [0.2117, 0.6944, 0.6880000000000001]
    assert remarks(narrative) == ["points outside the image", "utterances of no length"]


def test_the_real_record_is_written_as_it_was(shared: Callable[[str], Path], tmp_path: Path) -> None:
    write(tmp_path / "out.jsonl", [only(read(shared(REAL)))])
    written = json.loads((tmp_path / "out.jsonl").read_bytes())
    original = json.loads(shared(REAL).read_bytes())
    assert written == original
    assert list(written) == list(original)


def test_raw_records_are_typed_and_have_no_arrays(tmp_path: Path) -> None:
    path = tmp_path / "narratives.jsonl"
    path.write_bytes(GOOD)
    (raw,) = read_raw(path)
    assert isinstance(raw, RawNarrative)
    assert (raw.image_id, raw.annotator_id, raw.origin) == ("212166", 49, None)
    assert [(p.x, p.y, p.t) for p in raw.traces[1]] == [(0.6, 0.4, 0.9)]
    assert raw.timed_caption[1].utterance == "sleeps"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"traces": []}, {"trace": Trace([], ())}),
        ({"traces": [[], []]}, {"trace": Trace([], ())}),
        ({"traces": [[], [{"x": 1, "y": 0, "t": 2}], []]}, {"trace": Trace([[1.0, 0.0, 2.0]])}),
        ({"traces": [[{"x": -3.5, "y": 1.5, "t": 0}]]}, {"trace": Trace([[-3.5, 1.5, 0.0]])}),
        ({"timed_caption": []}, {"utterances": ()}),
        (
            {"timed_caption": [{"utterance": "in the", "start_time": 1, "end_time": 1}]},
            {"utterances": (Utterance("in the", 1.0, 1.0),)},
        ),
        ({"caption": ""}, {"caption": ""}),
        ({"image_id": 212166}, {}),
        ({"annotator_id": "49"}, {}),
        ({"annotator_id": None}, {"annotator_id": ""}),
        ({"voice_recording": None}, {"audio": ""}),
        ({"dataset_id": 7}, {"dataset_id": "7"}),
        ({"origin": "mitr"}, {"origin": "mitr"}),
        ({"language": "pt-BR"}, {"language": "pt-BR"}),
        ({"language": None}, {"language": ""}),
        ({"extra": {"a": [1, {"b": None}]}, "more": "x"}, {}),
    ],
)
def test_odd_but_valid_records_have_a_defined_outcome(
    changes: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    assert read_bytes(tmp_path, json.dumps(RECORD | changes).encode()) == [replace(NARRATIVE, **expected)]


@pytest.mark.parametrize("key", ["dataset_id", "annotator_id", "voice_recording"])
def test_keys_that_may_be_absent_become_empty_text(key: str, tmp_path: Path) -> None:
    narrative = only(read_bytes(tmp_path, json.dumps({k: v for k, v in RECORD.items() if k != key}).encode()))
    field = {"voice_recording": "audio"}.get(key, key)
    assert narrative == replace(NARRATIVE, **{field: ""})


def test_two_narratives_of_one_image_by_one_annotator_are_both_kept(tmp_path: Path) -> None:
    second = json.dumps(RECORD | {"caption": "again"}).encode()
    assert read_bytes(tmp_path, GOOD + b"\n" + second) == [NARRATIVE, replace(NARRATIVE, caption="again")]


@pytest.mark.parametrize("n", [1, 15, 16, 65535, 65536])
def test_every_number_of_a_long_trace_arrives_exactly(n: int, tmp_path: Path) -> None:
    points = np.random.default_rng(n).normal(size=(n, 3))
    points[:, 2] = np.sort(points[:, 2])
    trace = Trace(points)
    write(tmp_path / "long.jsonl", [replace(NARRATIVE, trace=trace)])
    assert only(read(tmp_path / "long.jsonl")).trace == trace


# What is refused


@pytest.mark.parametrize("name", [name for name, bad in INDEX.items() if bad["format"] == "localized-narratives"])
def test_a_bad_line_is_named_and_its_neighbours_are_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "narratives.jsonl"
    path.write_bytes(GOOD + b"\n" + bad_line(name) + b"\n" + GOOD)
    before, bad, after = read(path)
    assert before == after == NARRATIVE
    assert isinstance(bad, InvalidRecord)
    assert (bad.path, bad.line, bad.where) == (str(path), 2, INDEX[name]["where"])
    assert bad.reason.startswith(INDEX[name]["reason"])
    assert bad.excerpt


def test_the_corpus_and_its_index_name_the_same_lines() -> None:
    assert set(INDEX) == {path.name for path in BAD_LINES.iterdir()} - {"index.json"}


@pytest.mark.parametrize("name", [name for name, bad in INDEX.items() if bad["format"] == "localized-narratives"])
def test_raw_reading_refuses_all_but_what_the_meaning_makes_bad(name: str, tmp_path: Path) -> None:
    path = tmp_path / "narratives.jsonl"
    path.write_bytes(b"\n" + bad_line(name) + b"\n")
    (value,) = read_raw(path)
    meaning = name.startswith(("times_go_back", "starts_go_back", "ends_before")) or name == "image_id_empty.txt"
    assert isinstance(value, RawNarrative if meaning else InvalidRecord)


@pytest.mark.parametrize(
    "line",
    [
        GOOD.replace(b"a cat sleeps", b'the sign says \\"x\\": 1, \\"caption\\": 2'),
        GOOD.replace(b"a cat sleeps", b"10:30, 11:45 :::"),
        GOOD.replace(b"a cat sleeps", b"colon \\u003A escaped"),
        GOOD.replace(b"a cat sleeps", b"smile \\ud83d\\ude00 and backslash \\\\ud800"),
        GOOD.replace(b'"x"', b'"\\u0078"'),
        GOOD.replace(b'"212166"', b'"http://images/212166"'),
        GOOD[:-1] + b', "x": {"x": {"x": 1}}}',
        GOOD[:-1] + b', "timing:": null}',
        GOOD[:-1] + b', "extra": ' + b"9" * 5000 + b"}",
        GOOD.replace(b": ", b" \t:\r ").replace(b", ", b" , "),
    ],
)
def test_nothing_is_taken_for_a_key_given_twice_that_is_not(line: bytes, tmp_path: Path) -> None:
    narrative = only(read_bytes(tmp_path, line))
    assert narrative.trace == NARRATIVE.trace
    assert narrative.caption == json.loads(line, parse_int=float)["caption"]


@pytest.mark.parametrize("caption", ["a cat sleeps", "10:30 \\ 😀"])
def test_usual_records_are_not_parsed_twice(caption: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json_lines, "key_given_twice", lambda line: "the slow way")
    line = json.dumps(RECORD | {"caption": caption}).encode()
    assert read_bytes(tmp_path, line) == [replace(NARRATIVE, caption=caption)]


members = st.lists(st.tuples(st.sampled_from(["a", "x", "caption", ":"]), st.integers(0, 9)), min_size=1, max_size=4)
colons = st.sampled_from([":", " : ", ":\t"])


@given(
    members=members, colon=colons, caption=st.text(st.sampled_from(':"\\x😀 '), max_size=8), ascii_only=st.booleans()
)
def test_a_key_is_found_twice_exactly_where_it_is(
    members: list[tuple[str, int]], colon: str, caption: str, ascii_only: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    inner = "{" + ", ".join(f'"{key}"{colon}{value}' for key, value in members) + "}"
    record = json.dumps(RECORD | {"caption": caption}, ensure_ascii=ascii_only)
    line = f'{record[:-1]}, "extra"{colon}[{inner}]}}'.encode()
    (value,) = read_bytes(tmp_path_factory.mktemp("twice"), line)
    keys = [key for key, _ in members]
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        assert isinstance(value, InvalidRecord)
        assert (value.reason, value.where) == ("the key is given twice", f"extra[0].{twice[0]}")
    else:
        assert value == replace(NARRATIVE, caption=caption)


# Whole files


@pytest.mark.parametrize(
    "content", [b"", b"\n", b" \r\n\t\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n", gzip.compress(b"", mtime=0)]
)
def test_a_file_without_records_holds_no_narratives(content: bytes, tmp_path: Path) -> None:
    assert read_bytes(tmp_path, content) == []


def test_blank_lines_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n \n" + GOOD + b"\r\n{}"
    first, second, bad = read_bytes(tmp_path, content)
    assert first == second == NARRATIVE
    assert isinstance(bad, InvalidRecord)
    assert bad.line == 5


def test_a_gzipped_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, gzip.compress(GOOD + b"\n" + GOOD)) == [NARRATIVE, NARRATIVE]


def test_a_cut_off_gzip_gives_what_came_before_the_cut(tmp_path: Path) -> None:
    captions = [str(np.random.default_rng(i).random(50).tolist()) for i in range(300)]
    packed = gzip.compress(b"\n".join(json.dumps(RECORD | {"caption": caption}).encode() for caption in captions))
    values = read_bytes(tmp_path, packed[: len(packed) // 2])
    *whole, cut = values
    assert len(whole) > 100
    assert whole == [replace(NARRATIVE, caption=caption) for caption in captions[: len(whole)]]
    assert isinstance(cut, InvalidRecord)
    assert (cut.line, "cut off or damaged" in cut.reason) == (len(whole) + 1, True)


def test_a_gigantic_line_is_passed_over_and_the_next_is_read(tmp_path: Path) -> None:
    giant = b'{"caption": "' + b"a" * MAX_LINE_BYTES + b'"}'
    bad, good = read_bytes(tmp_path, gzip.compress(giant + b"\n" + GOOD, compresslevel=1))
    assert isinstance(bad, InvalidRecord)
    assert (bad.line, bad.reason) == (1, "the line is longer than 64 MiB")
    assert good == NARRATIVE


def test_a_file_that_is_not_there_or_is_a_folder_is_an_invalid_file(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.jsonl", tmp_path):
        with pytest.raises(InvalidFile, match="cannot be opened"):
            list(read(path))


@given(content=st.binary(max_size=300))
def test_any_bytes_give_one_value_a_line_and_never_crash(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    values = read_bytes(tmp_path_factory.mktemp("bytes"), content)
    assert all(isinstance(value, InvalidRecord) for value in values)
    if not content.startswith(b"\x1f\x8b"):
        assert len(values) == records_in(content)


tokens = [b"", b"\0", b"\xff", b"\n", b'"', b"[", b"}", b"-", b"1e999", b"NaN", b"null", b"\\ud800", b'"x": 1,', b": "]
places = st.integers(0, len(GOOD))


@given(at=places, length=st.integers(0, 30), token=st.one_of(st.sampled_from(tokens), st.binary(max_size=6)))
def test_a_damaged_record_costs_only_itself(
    at: int, length: int, token: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    damaged = GOOD[:at] + token + GOOD[at + length :]
    before, *middle, after = read_bytes(tmp_path_factory.mktemp("damaged"), GOOD + b"\n" + damaged + b"\n" + GOOD)
    assert before == after == NARRATIVE
    assert len(middle) == records_in(damaged)
    for line, value in zip(filter(bytes.strip, damaged.split(b"\n")), middle, strict=True):
        if isinstance(value, Narrative):
            said = json.loads(line)
            assert value.caption == said["caption"]
            assert value.trace.points.tolist() == [[p["x"], p["y"], p["t"]] for part in said["traces"] for p in part]


# Writing


@given(written=st.lists(any_narrative, max_size=4), suffix=st.sampled_from([".jsonl", ".jsonl.gz"]))
def test_what_is_written_is_read_back_equal(
    written: list[Narrative], suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / f"narratives{suffix}"
    assert write(path, written) == len(written)
    assert list(read(path)) == written
    content = path.read_bytes()
    assert content.startswith(b"\x1f\x8b") == (suffix == ".jsonl.gz")
    write(path, iter(written))
    assert path.read_bytes() == content


def test_all_official_keys_are_written_and_ours_only_when_needed(tmp_path: Path) -> None:
    told = [Narrative("1", language="en-GB"), Narrative("1", origin="mitr"), Narrative("1", language="de")]
    write(tmp_path / "out.jsonl", told)
    human, machine, german = (json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines())
    assert list(human) == list(RECORD)
    assert list(machine) == [*RECORD, "origin"]
    assert (list(german), german["language"]) == ([*RECORD, "language"], "de")


@pytest.mark.parametrize(
    ("annotator_id", "written"), [("49", 49), ("0", 0), ("007", "007"), ("", ""), ("-5", "-5"), ("a1", "a1")]
)
def test_an_annotator_is_written_as_the_integer_it_reads_like(
    annotator_id: str, written: object, tmp_path: Path
) -> None:
    write(tmp_path / "out.jsonl", [Narrative("1", annotator_id=annotator_id)])
    assert json.loads((tmp_path / "out.jsonl").read_bytes())["annotator_id"] == written


@pytest.mark.parametrize("wrong", [Narrative("1", caption="half \ud800"), InvalidRecord("a", 1, "bad"), None])
def test_what_cannot_be_written_leaves_no_file(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="narrative"):
        write(tmp_path / "out.jsonl", [NARRATIVE, wrong])
    assert list(tmp_path.iterdir()) == []


# For people


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"caption": "A cat, sleeps."}, []),
        ({"caption": "a dog sleeps"}, ["caption and timed words differ"]),
        ({"trace": Trace([], ())}, ["empty trace"]),
        ({"utterances": ()}, ["no timed words"]),
        ({"utterances": (Utterance(" ", 0, 1),)}, ["no timed words"]),
        ({"trace": Trace([[0.0, 1.0, 0.0]])}, []),
        ({"trace": Trace([[0.0, 1.001, 0.0]])}, ["points outside the image"]),
        (
            {"utterances": (Utterance("a cat", 1, 1), Utterance("sleeps", 1, 1))},
            ["utterances of no length"],
        ),
    ],
)
def test_remarks_name_what_is_odd(changes: dict[str, Any], expected: list[str]) -> None:
    assert remarks(replace(NARRATIVE, **changes)) == expected


def test_the_format_is_told_by_its_content(tmp_path: Path) -> None:
    for content in (GOOD, b"\xef\xbb\xbf" + GOOD, b"garbage\n" + GOOD, gzip.compress(GOOD)):
        path = tmp_path / "file.bin"
        path.write_bytes(content)
        assert registry.detect(path).name == "localized-narratives"
    assert not localized_narratives.sniff(tmp_path, b'{"annotations": []}')
