"""Video Localized Narratives: one clock for voice and pointer, key frames, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, Trace, Utterance
from saywhere.formats import _json_lines, registry
from saywhere.formats.files import open_bytes
from saywhere.formats.record import InvalidRecord
from saywhere.formats.video_narratives import ActorNarrative, VideoNarrative, read, write

BAD_LINES = Path(__file__).parent / "bad_lines"
INDEX: dict[str, dict[str, str]] = json.loads((BAD_LINES / "index.json").read_text(encoding="utf-8"))
REAL = "data/video_narratives/OVIS_train_sample.jsonl"
START_MS = 1646807046669


def point(x: float, ms: int, keyframe: int) -> dict[str, Any]:
    return {"x": x, "y": 0.5, "time_ms_since_epoch": START_MS + ms, "kf_idx": keyframe}


def word(text: str, first: int, start_ms: int, end_ms: int) -> dict[str, Any]:
    span = {"referenced_word_start_idx": first, "referenced_word_end_idx": first + len(text)}
    return {"referenced_word": text, "start_ms": start_ms, "end_ms": end_ms} | span


ACTOR: dict[str, Any] = {
    "actor_name": "Cat",
    "keyframe_selection_indices": [0, 1],
    "recording_start_time_ms_since_epoch": START_MS,
    "traces_start_time_ms_since_epoch": START_MS - 404,
    "caption": "A cat: it sleeps.",
    "traces": [
        [point(0.1, -100, 0), point(0.2, 0, 0), point(0.3, 250, 1), point(0.4, 500, 0)],
        [],
        [point(0.5, 1500, 0), point(0.6, 1501, 0)],
    ],
    "time_alignment": [word("A", 0, 300, 500), word("cat", 2, 500, 900), word("sleeps", 10, 1200, 1300)],
    "noun_segments": [[2, 5]],
    "recording_filename": "recordings/OVIS_train/0_0.webm",
}
RECORD: dict[str, Any] = {
    "vidln_id": 12,
    "dataset_id": "OVIS_train",
    "video_id": "c1a40349",
    "keyframe_names": ["img_0000005", "img_0000012"],
    "actor_narratives": [ACTOR],
    "annotator_id": 103,
}
GOOD = json.dumps(RECORD).encode()


def read_bytes(tmp_path: Path, content: bytes) -> list[VideoNarrative | InvalidRecord]:
    path = tmp_path / "videos.jsonl"
    path.write_bytes(content)
    return list(read(path))


def only(values: list[VideoNarrative | InvalidRecord]) -> VideoNarrative:
    (value,) = values
    assert isinstance(value, VideoNarrative), value
    return value


def actor(tmp_path: Path, **changes: Any) -> ActorNarrative:
    record = RECORD | {"actor_narratives": [ACTOR | changes]}
    return only(read_bytes(tmp_path, json.dumps(record).encode())).actors[0]


def test_voice_and_pointer_are_on_the_clock_of_the_recording(tmp_path: Path) -> None:
    narrative = actor(tmp_path).narrative
    assert narrative.trace.times_s.tolist() == [-0.1, 0.0, 0.25, 0.5, 1.5, 1.501]
    assert narrative.utterances[1] == Utterance("cat", 0.5, 0.9)
    assert narrative.trace.starts == (0, 4)
    assert narrative.audio == "recordings/OVIS_train/0_0.webm"


def test_a_record_keeps_who_what_and_which_frames(tmp_path: Path) -> None:
    video = only(read_bytes(tmp_path, GOOD))
    assert (video.dataset_id, video.video_id, video.annotator_id, video.vidln_id) == (
        "OVIS_train",
        "c1a40349",
        "103",
        "12",
    )
    assert video.keyframe_names == ("img_0000005", "img_0000012")
    (cat,) = video.actors
    assert (cat.name, cat.chosen_keyframes, cat.recording_start_ms) == ("Cat", (0, 1), START_MS)
    assert cat.narrative.id == "OVIS_train/c1a40349/103"
    assert cat.keyframes == (0, 0, 1, 0, 0, 0)
    assert cat.noun_spans == ((2, 5),)
    assert [cat.narrative.caption[a:b] for a, b in cat.word_spans] == [u.text for u in cat.narrative.utterances]


def test_the_trace_on_a_key_frame_lifts_the_pen_where_it_leaves_the_frame(tmp_path: Path) -> None:
    cat = actor(tmp_path)
    assert cat.trace_on(0) == Trace(cat.narrative.trace.points[[0, 1, 3, 4, 5]], (0, 2, 3))
    assert cat.trace_on(1) == Trace(cat.narrative.trace.points[[2]])
    assert len(cat.trace_on(7)) == 0


def test_words_are_put_in_the_order_of_time_with_their_spans(tmp_path: Path) -> None:
    shuffled = actor(tmp_path, time_alignment=ACTOR["time_alignment"][::-1])
    assert shuffled == actor(tmp_path)


@pytest.mark.parametrize(
    "absent", ["time_alignment", "noun_segments", "keyframe_selection_indices", "recording_filename"]
)
@pytest.mark.parametrize("as_null", [False, True])
def test_what_may_be_absent_becomes_empty(absent: str, as_null: bool, tmp_path: Path) -> None:
    cat = {key: value for key, value in ACTOR.items() if key != absent} | ({absent: None} if as_null else {})
    read_cat = only(read_bytes(tmp_path, json.dumps(RECORD | {"actor_narratives": [cat]}).encode())).actors[0]
    parts = (
        read_cat.narrative.utterances,
        read_cat.noun_spans,
        read_cat.chosen_keyframes,
        read_cat.narrative.audio,
    )
    assert [not part for part in parts].count(True) == 1
    assert len(read_cat.narrative.trace) == 6


@pytest.mark.parametrize("traces", [[], [[]], [[], []]])
def test_an_actor_nobody_pointed_at_has_an_empty_trace(traces: list[Any], tmp_path: Path) -> None:
    cat = actor(tmp_path, traces=traces)
    assert (len(cat.narrative.trace), cat.keyframes, len(cat.trace_on(0))) == (0, (), 0)


def test_real_records_are_read_and_their_words_are_found_in_the_captions(shared: Callable[[str], Path]) -> None:
    videos = list(read(shared(REAL)))
    assert [type(video) for video in videos] == [VideoNarrative] * 3
    actors = [actor for video in videos for actor in video.actors]
    assert [len(actor.narrative.trace) for actor in actors] == [399, 915, 265, 265, 666, 1091, 426]
    for told in actors:
        narrative = told.narrative
        assert narrative.utterances, "every actor of these records has time_alignment"
        assert [narrative.caption[a:b] for a, b in told.word_spans] == [u.text for u in narrative.utterances]
        assert sum(len(told.trace_on(k)) for k in told.chosen_keyframes) == len(narrative.trace)
        # Pointing accompanies speaking: were the clocks apart, these would not overlap.
        assert abs(narrative.trace.start_s - narrative.utterances[0].start_s) < 3
        assert abs(narrative.trace.end_s - narrative.utterances[-1].end_s) < 3


@pytest.mark.parametrize("name", [name for name, bad in INDEX.items() if bad["format"] == "video-narratives"])
def test_a_bad_line_is_named_and_its_neighbours_are_read(name: str, tmp_path: Path) -> None:
    with open_bytes(BAD_LINES / name) as file:
        line = file.read()
    before, bad, after = read_bytes(tmp_path, GOOD + b"\n" + line + b"\n" + GOOD)
    assert before == after == only(read_bytes(tmp_path, GOOD))
    assert isinstance(bad, InvalidRecord)
    assert (bad.line, bad.where) == (2, INDEX[name]["where"])
    assert bad.reason.startswith(INDEX[name]["reason"])


@pytest.mark.parametrize(
    "line",
    [
        GOOD.replace(b"A cat: it sleeps.", b"kf_idx: 1, \\u003a ::::"),
        GOOD[:-1] + b', "traces": {"x": [{"x": 1}]}}',
        GOOD.replace(b'"kf_idx"', b'"\\u006bf_idx"'),
    ],
)
def test_nothing_is_taken_for_a_key_given_twice_that_is_not(line: bytes, tmp_path: Path) -> None:
    assert len(only(read_bytes(tmp_path, line)).actors[0].narrative.trace) == 6


def test_usual_records_are_not_parsed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json_lines, "key_given_twice", lambda line: "the slow way")
    assert len(only(read_bytes(tmp_path, GOOD)).actors) == 1


@given(at=st.integers(0, len(GOOD)), length=st.integers(0, 30), token=st.binary(max_size=6))
def test_a_damaged_record_costs_only_itself(
    at: int, length: int, token: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    damaged = GOOD[:at] + token + GOOD[at + length :]
    before, *middle, after = read_bytes(folder, GOOD + b"\n" + damaged + b"\n" + GOOD)
    assert isinstance(before, VideoNarrative)
    assert before == after
    assert len(middle) == sum(bool(line.strip()) for line in damaged.split(b"\n"))


seconds = st.floats(-1e15, 1e15)


@given(times=st.lists(seconds, max_size=6), start=seconds)
def test_any_times_give_a_trace_or_a_reason(
    times: list[float], start: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    traces = [[{"x": 0.5, "y": 0.5, "time_ms_since_epoch": t, "kf_idx": 0} for t in times]]
    record = RECORD | {"actor_narratives": [ACTOR | {"traces": traces, "recording_start_time_ms_since_epoch": start}]}
    (value,) = read_bytes(tmp_path_factory.mktemp("times"), json.dumps(record).encode())
    seconds_since_start = (np.array(times) - start) / 1000
    if (np.diff(seconds_since_start) < 0).any():
        assert isinstance(value, InvalidRecord)
        assert "goes back in time" in value.reason
    else:
        assert isinstance(value, VideoNarrative)
        assert value.actors[0].narrative.trace.times_s.tolist() == seconds_since_start.tolist()


def test_the_format_is_told_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "videos.jsonl.gz"
    path.write_bytes(gzip.compress(GOOD))
    assert registry.detect(path).name == "video-narratives"
    assert [type(value) for value in read(path)] == [VideoNarrative]


def test_what_is_written_is_read_back_as_the_same_value(tmp_path: Path) -> None:
    video = only(read_bytes(tmp_path, GOOD))
    assert write(tmp_path / "again.jsonl", [video, video]) == 2
    assert list(read(tmp_path / "again.jsonl")) == [video, video]
    official = json.loads((tmp_path / "again.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert {key: official[key] for key in RECORD if key != "actor_narratives"} == {
        key: RECORD[key] for key in RECORD if key != "actor_narratives"
    }
    # Strokes without points are left out, and the trace's own clock is not kept.
    cat = ACTOR | {"traces": [ACTOR["traces"][0], ACTOR["traces"][2]]}
    cat["traces_start_time_ms_since_epoch"] = START_MS - 100
    assert official["actor_narratives"] == [cat]


def test_the_language_of_an_actor_is_kept_and_english_is_not_written(tmp_path: Path) -> None:
    video = only(read_bytes(tmp_path, GOOD))
    [cat] = video.actors
    for tag, written in (("de", "de"), ("en", None)):
        told = replace(video, actors=(replace(cat, narrative=replace(cat.narrative, language=tag)),))
        write(tmp_path / "told.jsonl", [told])
        [raw] = json.loads((tmp_path / "told.jsonl").read_bytes())["actor_narratives"]
        assert raw.get("language") == written
        assert only(read(tmp_path / "told.jsonl")).actors[0].narrative.language == (written or "")


def test_real_records_are_written_as_they_were(shared: Callable[[str], Path], tmp_path: Path) -> None:
    path = shared(REAL)
    videos = list(read(path))
    write(tmp_path / "again.jsonl", videos)
    assert list(read(tmp_path / "again.jsonl")) == videos


def test_nothing_is_written_of_what_is_no_video_narrative(tmp_path: Path) -> None:
    video = only(read_bytes(tmp_path, GOOD))
    with pytest.raises(InvalidValue, match="is a dict"):
        write(tmp_path / "out.jsonl", [video, {}])
    assert not (tmp_path / "out.jsonl").exists()
