"""The trace-captioning benchmark, on made-up narratives, on the world's and on a real one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.build.caption_rules import ABOUT_THE_PHOTO, Dropped
from saywhere.build.llm import AnswerCache, Chat, Endpoint
from saywhere.build.trace_benchmark import (
    NO_ANSWER,
    NO_POINTING,
    NO_TIMES,
    OFF_PHOTO,
    ONLY_AT_ENDS,
    BuildCounts,
    ModelRewriter,
    TraceSample,
    build_trace_benchmark,
    read_trace_benchmark,
    sentences_of,
    trace_samples,
)
from saywhere.core import InvalidValue, Narrative, Trace, Utterance
from saywhere.formats import localized_narratives
from saywhere.formats.record import InvalidRecord
from saywhere.world import narrate, scenes
from tests.build.endpoint import Reply, served


def told(caption: str, said: Sequence[str] | None = None, points: Sequence[Sequence[float]] | None = None) -> Narrative:
    """One word a second; the pointer moves right, ten points a second."""
    words = caption.split() if said is None else said
    utterances = tuple(Utterance(word, float(i), i + 1.0) for i, word in enumerate(words))
    times = np.arange(0, len(words), 0.1)
    along = (
        np.stack([times / max(len(words), 1), np.full(len(times), 0.5), times], axis=1) if points is None else points
    )
    return Narrative("7", caption, utterances, Trace(along), "made_up", "3")


def samples(*narratives: Narrative, **options: float) -> tuple[list[TraceSample], BuildCounts]:
    counts = BuildCounts()
    return list(trace_samples(narratives, counts, **options)), counts  # type: ignore[arg-type]


def test_each_sentence_keeps_its_own_part_of_the_trace_trimmed_at_both_ends() -> None:
    (dog, tree), _ = samples(told("There is a dog. Here I see one tall tree."))
    assert (dog.caption, dog.source_sentence) == ("A dog", "There is a dog.")
    assert (dog.start_s, dog.end_s) == (0, 4)
    np.testing.assert_allclose([dog.trace.start_s, dog.trace.end_s], [0.6, 3.3], atol=1e-9)
    assert tree.caption == "One tall tree"
    assert (tree.start_s, tree.end_s) == (4, 10)
    np.testing.assert_allclose([tree.trace.start_s, tree.trace.end_s], [4.9, 9.0], atol=1e-9)
    assert (dog.image_id, dog.annotator_id) == ("7", "3")


def test_without_trimming_no_point_of_the_trace_is_lost() -> None:
    narrative = told("There is a dog. Here I see one tall tree.")
    kept, _ = samples(narrative, trim=0.0)
    assert sum(len(sample.trace) for sample in kept) == len(narrative.trace)


@pytest.mark.parametrize(
    ("narrative", "reason"),
    [
        (told("The image is blurry."), ABOUT_THE_PHOTO),
        (told("There is a dog.", points=[[0.5, 0.5, 99.0]]), NO_POINTING),
        (told("There is a dog.", points=np.empty((0, 3))), NO_POINTING),  # type: ignore[arg-type]
        (told("There is a dog.", points=[[0.5, 0.5, 0.1], [0.5, 0.5, 3.9]]), ONLY_AT_ENDS),
        (told("There is a dog.", points=[[1.5, 0.5, 2.0], [0.5, -0.1, 2.1]]), OFF_PHOTO),
        (told("There is a dog.", said=[]), NO_TIMES),
    ],
)
def test_what_is_dropped_is_counted_by_reason(narrative: Narrative, reason: str) -> None:
    kept, counts = samples(narrative)
    assert kept == []
    assert counts.dropped == {reason: 1}
    assert (counts.sentences, counts.samples, counts.narratives_without_sample) == (1, 0, 1)


def test_sentences_are_told_by_the_caption_where_the_timed_words_have_no_stops() -> None:
    narrative = told("There is a dog. I see a cat!", said=["there", "is", "a", "dog", "i", "see", "a", "cat"])
    first, second = sentences_of(narrative)
    assert (first.text, [word.text for word in first.words]) == ("There is a dog.", ["there", "is", "a", "dog"])
    assert (second.text, [word.text for word in second.words]) == ("I see a cat!", ["i", "see", "a", "cat"])


def test_where_caption_and_timed_words_differ_the_timed_words_are_the_text() -> None:
    narrative = told("A dog. A cat.", said=["A", "hen.", "A", "big", "fox."])
    assert [sentence.text for sentence in sentences_of(narrative)] == ["A hen.", "A big fox."]


def test_an_utterance_over_a_full_stop_is_shared_by_two_sentences() -> None:
    utterances = (Utterance("a dog. A", 0.0, 3.0), Utterance("cat.", 3.0, 4.0))
    first, second = sentences_of(Narrative("1", "a dog. A cat.", utterances))
    assert [word.text for word in first.words] == ["a", "dog."]
    assert [word.text for word in second.words] == ["A", "cat."]


def test_abbreviations_numbers_and_stray_stops_end_no_sentence() -> None:
    texts = [s.text for s in sentences_of(Narrative("1", "Mr. Bean has 2.5 cakes . St. Paul is here."))]
    assert texts == ["Mr. Bean has 2.5 cakes .", "St. Paul is here."]


@given(st.lists(st.sampled_from(["dog", "cat.", "a", "...", "Mr.", "so!", "“yes.”", "3.5"]), min_size=1, max_size=15))
def test_every_word_lies_in_exactly_one_sentence(said: list[str]) -> None:
    narrative = told(" ".join(said))
    sentences = sentences_of(narrative)
    assert [word.text for s in sentences for word in s.words] == said
    assert " ".join(s.text for s in sentences) == " ".join(said)


@pytest.fixture(scope="module")
def narratives() -> list[Narrative]:
    return [narrate(scene, seed=4).narrative for scene in scenes(12, seed=4, size=32)]


def test_what_goes_in_comes_out_or_is_dropped_in_the_world(narratives: list[Narrative], tmp_path: Path) -> None:
    counts = build_trace_benchmark(narratives, tmp_path / "traces.jsonl")
    assert counts.narratives == len(narratives)
    assert counts.sentences == sum(len(sentences_of(narrative)) for narrative in narratives)
    assert counts.sentences == counts.samples + sum(counts.dropped.values())
    assert counts.samples > 0.7 * counts.sentences
    found = list(read_trace_benchmark(tmp_path / "traces.jsonl"))
    assert len(found) == counts.samples
    for sample in found:
        assert isinstance(sample, TraceSample)
        length_s = sample.end_s - sample.start_s
        assert sample.trace.start_s >= sample.start_s + 0.149 * length_s
        assert sample.trace.end_s <= sample.end_s - 0.149 * length_s
        assert "see" not in sample.caption.split()


def test_a_benchmark_is_read_as_it_was_written_and_the_same_every_time(
    narratives: list[Narrative], tmp_path: Path
) -> None:
    expected = list(trace_samples(narratives, BuildCounts()))
    for name in ("one.jsonl", "two.jsonl", "packed.jsonl.gz"):
        build_trace_benchmark(iter(narratives), tmp_path / name)
        assert list(read_trace_benchmark(tmp_path / name)) == expected
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert gzip.decompress((tmp_path / "packed.jsonl.gz").read_bytes()) == (tmp_path / "one.jsonl").read_bytes()
    assert any(len(sample.trace.starts) > 1 for sample in expected)


def test_the_keys_of_a_line_are_the_documented_ones(tmp_path: Path) -> None:
    build_trace_benchmark([told("There is a dog.")], tmp_path / "t.jsonl")
    record = json.loads((tmp_path / "t.jsonl").read_text())
    assert list(record) == ["image_id", "caption", "source_sentence", "trace", "start_s", "end_s", "annotator"]
    assert set(record["trace"][0]) == {"x", "y", "t"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"trace": []}, "empty trace"),
        ({"caption": " "}, "no image or no caption"),
        ({"end_s": -1.0}, "before it starts"),
        ({"trace": [{"x": 0.1, "y": 0.1, "t": 2.0}, {"x": 0.1, "y": 0.1, "t": 1.0}]}, "back in time"),
        ({"starts": [0, 99]}, "must begin with 0"),
        ({"trace": [{"x": "left", "y": 0.1, "t": 2.0}]}, "should be a number"),
    ],
)
def test_a_bad_line_is_a_value_in_its_place(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    path = tmp_path / "t.jsonl"
    build_trace_benchmark([told("There is a dog.")], path)
    good = path.read_text()
    path.write_text(json.dumps({**json.loads(good), **change}) + "\n" + good)
    bad, sample = read_trace_benchmark(path)
    assert isinstance(bad, InvalidRecord)
    assert reason in bad.reason
    assert isinstance(sample, TraceSample)


@pytest.mark.parametrize("trim", [-0.1, 0.5, float("nan")])
def test_a_trim_that_leaves_nothing_is_refused(trim: float) -> None:
    with pytest.raises(InvalidValue, match="trim"):
        samples(told("There is a dog."), trim=trim)


def test_a_rewriter_that_loses_a_sentence_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    class Forgetful:
        def rewrite(self, sentences: Sequence[str]) -> list[str | Dropped]:
            return []

    with pytest.raises(InvalidValue, match="0 captions for 1 sentences"):
        build_trace_benchmark([told("There is a dog.")], tmp_path / "t.jsonl", Forgetful())
    assert list(tmp_path.iterdir()) == []


ANSWERS = {
    "There is a dog.": '"A dog."',
    "I see a cat.": "A cat\nwith more talk",
    "It is old.": "NONE",
    "So it goes.": "",
    "On and on.": "so " * 80,
}


def test_a_model_rewrites_and_a_second_run_asks_nothing(tmp_path: Path) -> None:
    narrative = told(" ".join(ANSWERS))
    with served(lambda question, number: Reply(ANSWERS[question["messages"][-1]["content"]])) as server:
        for _ in range(2):
            chat = Chat(Endpoint(server.url, "small"), AnswerCache(tmp_path / "answers"))
            counts = BuildCounts()
            kept = list(trace_samples([narrative], counts, ModelRewriter(chat, workers=2)))
        assert len(server.asked) == len(ANSWERS)
    assert [sample.caption for sample in kept] == ["A dog", "A cat"]
    assert counts.dropped == {ABOUT_THE_PHOTO: 1, NO_ANSWER: 2}
    assert server.asked[0]["messages"][0]["role"] == "system"


def test_the_real_narrative_becomes_one_sample(shared: Callable[[str], Path]) -> None:
    path = shared("data/localized_narratives/coco_val_212166_49.jsonl")
    counts = BuildCounts()
    good = [n for n in localized_narratives.read(path) if isinstance(n, Narrative)]
    (sample,) = trace_samples(good, counts)
    assert sample.caption == "A person sitting and a food item on plate"
    assert (sample.start_s, sample.end_s) == (0.0, 5.9)
    assert sample.trace.start_s >= 0.885
    assert sample.trace.end_s < 5.015
    assert 200 < len(sample.trace) < len(good[0].trace)
