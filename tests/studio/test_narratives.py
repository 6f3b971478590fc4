"""Narratives on disk, and the times of their words."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.sound import Sound, write_wav
from saywhere.studio import timing
from saywhere.studio.errors import Refused
from saywhere.studio.narratives import NarrativeStore, checked
from saywhere.studio.timing import character_times_s, words_from_keys
from tests.strategies import traces

PHOTO = "0123456789abcdef" * 2
ID = "feedbeef" * 2
WAV = write_wav(Sound(np.arange(1_000, dtype=np.int16), 16_000))
POINTS = [[0.1, 0.1, 0.0], [0.2, 0.30000000000000004, 0.5], [1.02, -0.01, 0.5], [0.7, 0.6, 1.2]]


def record(**changes: Any) -> dict[str, Any]:
    return {
        "photo": PHOTO,
        "annotator": "ada",
        "text": "a red wall",
        "words": [],
        "trace": {"points": copy.deepcopy(POINTS), "starts": [0, 3]},
        "keys": [],
        "origin": "human",
        "timed_by": None,
        **changes,
    }


def word(text: str, start_s: float, end_s: float) -> dict[str, Any]:
    return {"text": text, "start_s": start_s, "end_s": end_s}


@pytest.fixture
def store(tmp_path: Path) -> NarrativeStore:
    return NarrativeStore(tmp_path / "narratives")


def test_what_was_drawn_is_kept_exactly(store: NarrativeStore) -> None:
    kept = store.create(record())
    again = NarrativeStore(store.folder).get(kept["id"])
    assert again == kept
    assert again["trace"] == {"points": POINTS, "starts": [0, 3]}
    assert again["audio"] is False


@given(traces(max_points=12))
def test_any_trace_survives_the_disk(trace: Any) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store = NarrativeStore(Path(folder))
        drawn = {"points": trace.points.tolist(), "starts": list(trace.starts)}
        assert store.get(store.create(record(trace=drawn))["id"])["trace"] == drawn


def test_ids_are_made_by_the_store_and_differ(store: NarrativeStore) -> None:
    ids = {store.create(record())["id"] for _ in range(20)}
    assert len(ids) == 20
    assert {path.name for path in store.folder.iterdir()} == ids


def test_a_client_may_name_a_recording_so_that_sending_it_twice_makes_one(store: NarrativeStore) -> None:
    assert store.create(record(id=ID))["id"] == ID
    with pytest.raises(Refused) as refused:
        store.create(record(id=ID, text="other"))
    assert refused.value.status_code == 409
    assert [one["text"] for one in store.list()] == ["a red wall"]


@pytest.mark.parametrize("bad", ["../../etc/passwd", "", "short", "A" * 16, "f" * 33, "ffffffffffffffff/..", "é" * 16])
def test_nothing_but_hexadecimal_digits_becomes_a_path(store: NarrativeStore, bad: str) -> None:
    with pytest.raises(InvalidValue, match="hexadecimal"):
        store.create(record(id=bad))
    for ask in (store.get, store.delete, store.audio_path, lambda i: store.put_audio(i, WAV)):
        with pytest.raises(UnknownName):
            ask(bad)
    assert list(store.folder.iterdir()) == []


def test_what_is_not_there_is_an_unknown_name(store: NarrativeStore) -> None:
    for ask in (store.get, store.delete, lambda i: store.put_audio(i, WAV), lambda i: store.replace(i, record())):
        with pytest.raises(UnknownName):
            ask(ID)
    assert store.list() == []


def test_narratives_are_listed_by_photo_the_oldest_first(store: NarrativeStore) -> None:
    for text, photo, created in (("b", PHOTO, "2026-01-02"), ("a", PHOTO, "2026-01-01"), ("c", "f" * 32, "2026-01-03")):
        store.create(record(text=text, photo=photo, created=f"{created}T00:00:00+01:00"))
    assert [one["text"] for one in store.list()] == ["a", "b", "c"]
    assert [one["text"] for one in store.list(PHOTO)] == ["a", "b"]
    assert store.list("nowhere") == []
    assert store.list(PHOTO)[0]["created"] == "2025-12-31T23:00:00.000+00:00"


def test_replacing_keeps_id_time_and_audio(store: NarrativeStore) -> None:
    first = store.create(record(created="2026-01-01T00:00:00Z"))
    store.put_audio(first["id"], WAV)
    second = store.replace(first["id"], record(text="a blue wall", id="x", created="1999-01-01T00:00:00Z", audio=False))
    assert second == store.get(first["id"])
    assert (second["text"], second["created"], second["audio"]) == ("a blue wall", first["created"], True)
    path = store.audio_path(first["id"])
    assert path is not None
    assert path.read_bytes() == WAV


def test_deleting_takes_the_audio_along(store: NarrativeStore) -> None:
    kept = store.create(record())
    store.put_audio(kept["id"], WAV)
    store.delete(kept["id"])
    assert list(store.folder.iterdir()) == []
    assert store.audio_path(kept["id"]) is None


def test_leftovers_of_an_interrupted_deletion_are_cleared_and_halves_are_not_listed(store: NarrativeStore) -> None:
    (store.folder / f".gone-{ID}-00").mkdir()
    (store.folder / ID).mkdir()
    assert NarrativeStore(store.folder).list() == []
    assert [path.name for path in store.folder.iterdir()] == [ID]
    assert store.create(record(id=ID))["id"] == ID


def test_audio_that_is_not_a_recording_is_refused_and_the_old_one_stays(store: NarrativeStore) -> None:
    kept = store.create(record())
    store.put_audio(kept["id"], WAV)
    with pytest.raises(InvalidValue, match="not a WAV"):
        store.put_audio(kept["id"], b"<script>")
    path = store.audio_path(kept["id"])
    assert path is not None
    assert path.read_bytes() == WAV


def test_a_damaged_file_is_named(store: NarrativeStore) -> None:
    kept = store.create(record())
    (store.folder / kept["id"] / "narrative.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidFile, match="damaged"):
        store.get(kept["id"])


def test_a_failed_write_leaves_what_was_there(store: NarrativeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.create(record())

    def full(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("saywhere.atomic.os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        store.replace(kept["id"], record(text="new"))
    assert store.get(kept["id"]) == kept
    assert [path.name for path in (store.folder / kept["id"]).rglob("*") if path.is_file()] == ["narrative.json"]


def test_many_writers_at_once_lose_nothing(store: NarrativeStore) -> None:
    shared = store.create(record())["id"]
    gate = threading.Barrier(8)

    def write(number: int) -> str:
        gate.wait()
        if number % 2:
            store.put_audio(shared, WAV)
        else:
            store.replace(shared, record(text=f"text {number}"))
        return str(store.create(record(text=str(number)))["id"])

    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(write, range(8)))
    assert sorted(store.get(i)["text"] for i in ids) == [str(n) for n in range(8)]
    end = store.get(shared)
    assert end["audio"]
    assert end["text"] in {f"text {n}" for n in range(0, 8, 2)}


def test_of_two_that_send_one_recording_at_once_one_is_told(store: NarrativeStore) -> None:
    gate = threading.Barrier(6)

    def send(number: int) -> int:
        gate.wait()
        try:
            store.create(record(id=ID, text=str(number)))
        except Refused as refused:
            return refused.status_code
        return 201

    with ThreadPoolExecutor(6) as threads:
        assert sorted(threads.map(send, range(6))) == [201, 409, 409, 409, 409, 409]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"trace": {"points": [[0, 0, 1], [0, 0, 0.5]], "starts": [0]}}, "back in time"),
        ({"trace": {"points": POINTS, "starts": [0, 4]}}, "starts"),
        ({"trace": {"points": POINTS, "starts": [1]}}, "starts"),
        ({"trace": {"points": [[0, 0]], "starts": [0]}}, "shape"),
        ({"trace": {"points": [[0, float("nan"), 0]], "starts": [0]}}, "NaN"),
        ({"trace": {"points": [[0, 11, 0]], "starts": [0]}}, "farther"),
        ({"trace": {"points": [[0, 0, 1e6]], "starts": [0]}}, "more than a day"),
        ({"trace": {"points": [[0, 0, 0]] * 200_001, "starts": [0]}}, "at most 200,000"),
        ({"words": [word("b", 1, 2), word("a", 0, 1)]}, "before the one ahead"),
        ({"words": [word("b", 2, 1)]}, "before it starts"),
        ({"words": [word("two words", 0, 1)]}, "not one word"),
        ({"words": [word("a", 0, 1)] * 5_001}, "at most 5,000"),
        ({"text": "x" * 20_001}, "at most 20,000"),
        ({"annotator": "x" * 201}, "at most 200"),
        ({"text": None}, "not text"),
        ({"photo": ""}, "empty"),
        ({"origin": ""}, "empty"),
        ({"timed_by": "guess"}, "guess"),
        ({"keys": [{"t": 1, "text_length": 1}, {"t": 0, "text_length": 2}]}, "back in time"),
        ({"keys": [{"t": 1, "text_length": -1}]}, "-1 characters"),
        ({"keys": [{"t": float("inf"), "text_length": 1}]}, "inf s"),
        ({"boxes": [None]}, "one for each of 0 words"),
        ({"words": [word("a", 0, 1)], "boxes": [[0.5, 0, 0.1, 1]]}, "beyond"),
        ({"words": [word("a", 0, 1)], "boxes": [[0, 0, 1.5, 1]]}, "leaves the image"),
        ({"created": "yesterday"}, "ISO 8601"),
        ({"created": "2026-01-01T00:00:00"}, "time zone"),
        ({"created": "0001-01-01T00:00:00+14:00"}, "ISO 8601"),
        ({"text": "half \ud83d"}, "half a character"),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_kept(store: NarrativeStore, changes: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidValue, match=what):
        store.create(record(**changes))
    assert store.list() == []


def test_boxes_are_kept_and_unknown_keys_are_not() -> None:
    kept = checked(record(words=[word("a", 0, 1), word("b", 1, 1)], boxes=[None, (0, 0, 1, 0.5)], colour="red"))
    assert kept["boxes"] == [None, [0, 0, 1, 0.5]]
    assert "colour" not in kept
    assert json.loads(json.dumps(kept)) == kept


# --- times of words ---


def keys(*samples: tuple[float, int]) -> list[dict[str, Any]]:
    return [{"t": t, "text_length": n} for t, n in samples]


def typed(text: str, start_s: float = 1.0, each_s: float = 0.1) -> list[dict[str, Any]]:
    return keys(*((start_s + each_s * i, i + 1) for i in range(len(text))))


def windows(words: Any) -> list[tuple[str, float, float]]:
    return [(w.text, round(w.start_s, 6), round(w.end_s, 6)) for w in words]


def test_a_word_lasts_from_its_first_character_to_the_one_after_it() -> None:
    assert windows(words_from_keys("a red wall", typed("a red wall"))) == [
        ("a", 1.0, 1.1),
        ("red", 1.2, 1.5),
        ("wall", 1.6, 2.1),
    ]


def test_a_pause_for_thought_belongs_to_no_word() -> None:
    times = keys((1, 1), (1.1, 2), (1.2, 3), (9, 4), (9.1, 5))
    assert windows(words_from_keys("cat x", times)) == [("cat", 1.0, 1.7), ("x", 9.1, 9.3)]


def test_a_word_deleted_and_typed_anew_has_its_new_time() -> None:
    times = [*typed("a red"), *keys((3, 2), (5.0, 3), (5.1, 4), (5.2, 5), (5.3, 6))]
    assert windows(words_from_keys("a blue", times)) == [("a", 1.0, 1.1), ("blue", 5.0, 5.5)]


def test_a_pasted_word_is_spread_over_the_time_before_it() -> None:
    times = character_times_s(keys((1, 1), (2, 5), (20, 7)))
    assert times == pytest.approx([1, 1.25, 1.5, 1.75, 2, 19.7, 20])


sizes = st.integers(0, 60)
moments = st.floats(0, 1_000, allow_nan=False)


@st.composite
def key_presses(draw: st.DrawFn) -> list[dict[str, Any]]:
    times = sorted(draw(st.lists(moments, min_size=1, max_size=40)))
    return keys(*((t, draw(sizes)) for t in times))


texts = st.lists(st.text("abcdé猫,.", min_size=1, max_size=9), min_size=1, max_size=12).map(" ".join)


@given(texts, key_presses())
def test_whatever_keys_were_pressed_words_keep_order_and_windows_never_overlap(text: str, pressed: Any) -> None:
    if pressed[-1]["text_length"] == 0:
        with pytest.raises(InvalidValue, match="never typed"):
            words_from_keys(text, pressed)
        return
    words = words_from_keys(text, pressed)
    assert [w.text for w in words] == text.split()
    times = [t for w in words for t in (w.start_s, w.end_s)]
    assert times == sorted(times)
    assert times[0] >= pressed[0]["t"]
    assert times[-1] <= pressed[-1]["t"] + 0.2


@given(key_presses())
def test_every_character_has_a_time_and_none_goes_back(pressed: Any) -> None:
    times = character_times_s(pressed)
    assert len(times) == pressed[-1]["text_length"]
    assert all(a <= b for a, b in pairwise(times))


@given(texts, st.floats(0.01, 2))
def test_when_nothing_was_deleted_a_word_starts_with_its_first_key(text: str, each_s: float) -> None:
    pressed = typed(text, 0.5, each_s)
    words = words_from_keys(text, pressed)
    at = 0
    for w in words:
        at = text.index(w.text, at)
        assert w.start_s == pressed[at]["t"]
        at += len(w.text)


@given(texts, st.lists(st.integers(1, 10), min_size=1, max_size=4), st.floats(1, 60))
def test_corrections_afterwards_move_no_word(text: str, taken: list[int], later_s: float) -> None:
    pressed = typed(text)
    before = words_from_keys(text, pressed)
    now_s, length = pressed[-1]["t"], len(text)
    for some in (min(n, length) for n in taken):
        for size in (*range(length - 1, length - some - 1, -1), *range(length - some + 1, length + 1)):
            now_s += later_s
            pressed += keys((now_s, size))
    assert words_from_keys(text, pressed) == before


def test_keys_that_go_back_in_time_are_refused() -> None:
    with pytest.raises(InvalidValue, match="back in time"):
        character_times_s(keys((1, 1), (0.5, 2)))


def test_words_beyond_what_was_typed_share_its_end() -> None:
    words = words_from_keys("one two three", typed("one two"))
    assert windows(words)[0] == ("one", 1.0, 1.3)
    assert windows(words)[1:] == [("two", 1.4, 1.6), ("three", 1.6, 1.8)]


def test_aligning_by_keys_fills_in_the_words_and_says_so() -> None:
    told = record(keys=typed("a red wall"), boxes=[], id=ID)
    aligned = timing.align(told, None)
    assert [w["text"] for w in aligned["words"]] == ["a", "red", "wall"]
    assert aligned["timed_by"] == "keys"
    assert "boxes" not in aligned
    assert aligned["trace"] == told["trace"]
    assert told["words"] == []
    assert checked(aligned)["words"] == aligned["words"]


def test_boxes_stay_when_the_words_do() -> None:
    words = [word("a", 0, 0), word("red", 0, 0), word("wall", 0, 0)]
    aligned = timing.align(record(keys=typed("a red wall"), words=words, boxes=[None] * 3), None)
    assert aligned["boxes"] == [None] * 3


@pytest.mark.parametrize(
    ("changes", "reason"), [({"text": "  \n"}, "empty"), ({"keys": []}, "neither a recording nor times of keys")]
)
def test_without_words_or_times_there_is_a_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        timing.align(record(**{"keys": typed("a red wall"), **changes}), None)


def test_word_times_never_come_from_key_presses_of_another_text(store: NarrativeStore) -> None:
    kept = store.create(record(keys=typed("blue sky over hills"), typed="blue sky over hills"))
    store.put_audio(kept["id"], write_wav(Sound(np.zeros(16_000, np.int16), 16_000)))
    with pytest.raises(InvalidValue, match="another text was typed"):
        timing.align(kept, None)
    with pytest.raises(InvalidValue, match="silent"):
        timing.align(kept, store.audio_path(kept["id"]))
    # Clients that do not say what was typed: how long it was must fit.
    with pytest.raises(InvalidValue, match="another text was typed"):
        timing.align(kept | {"typed": None}, None)


def test_a_corrected_text_keeps_the_key_times_of_the_words_that_were_typed() -> None:
    said = record(keys=typed("a red wal here"), typed="a red wal here", text="a red wall, here now")
    with pytest.raises(InvalidValue, match="another text was typed"):
        timing.align(said, None)  # Three of five words are too few.
    said = record(keys=typed("a red wal here"), typed="a red wal here", text="a red wall here")
    aligned = timing.align(said, None)
    plain = timing.align(record(keys=typed("a red wal here"), typed="a red wal here", text="a red wal here"), None)
    assert [word["text"] for word in aligned["words"]] == ["a", "red", "wall", "here"]
    for at in (0, 1, 3):
        assert aligned["words"][at]["start_s"] == plain["words"][at]["start_s"]
    assert plain["words"][1]["end_s"] <= aligned["words"][2]["start_s"] <= plain["words"][3]["start_s"]


def test_a_silent_recording_is_a_reason_unless_keys_tell(store: NarrativeStore) -> None:
    kept = store.create(record(keys=typed("a red wall")))
    store.put_audio(kept["id"], write_wav(Sound(np.zeros(16_000, np.int16), 16_000)))
    audio = store.audio_path(kept["id"])
    assert timing.align(kept, audio)["timed_by"] == "keys"
    with pytest.raises(InvalidValue, match="silent"):
        timing.align(kept | {"keys": []}, audio)


def test_a_real_recording_times_the_words_through_the_store(
    store: NarrativeStore, shared: Callable[[str], Path]
) -> None:
    pytest.importorskip("pocketsphinx", reason="aligning needs the extra speech")
    av = pytest.importorskip("av", reason="decoding the recordings needs PyAV")
    resampler = av.AudioResampler(format="s16", layout="mono", rate=44_100)
    with av.open(str(shared("data/video_narratives/recordings/0_0.webm"))) as file:
        parts = [part.to_ndarray().ravel() for frame in file.decode(audio=0) for part in resampler.resample(frame)]
    kept = store.create(record(text="A group of people is cycling on the grey road."))
    store.put_audio(kept["id"], write_wav(Sound(np.concatenate(parts), 44_100)))
    aligned = store.replace(kept["id"], timing.align(store.get(kept["id"]), store.audio_path(kept["id"])))
    assert aligned["timed_by"] == "audio"
    assert [w["text"] for w in aligned["words"]] == aligned["text"].split()
    assert aligned["words"][4]["start_s"] == pytest.approx(10.1, abs=0.2)
    assert np.mean([word["confidence"] for word in aligned["words"]]) > 0.8
