"""BLEU, ROUGE-L and CIDEr against pycocoevalcap's numbers, and several of them at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.metrics import captions
from saywhere.metrics.captions import (
    Bleu,
    CaptionScores,
    Cider,
    DocumentFrequency,
    RougeL,
    bleu,
    caption_scores,
    cider,
    rouge_l,
)
from saywhere.metrics.captions._rouge import common_length

Vectors = dict[str, Any]
THEIR_NAMES = {f"BLEU-{n}": f"Bleu_{n}" for n in range(1, 5)} | {"ROUGE-L": "ROUGE_L", "CIDEr": "CIDEr"}

# Captions of few different words, so that they share many.
_vocabulary = st.sampled_from(["a", "dog", "cat", "on", "the", "red", "mat", "sits"])


def _captions(least: int) -> st.SearchStrategy[dict[int | str, tuple[str, list[str]]]]:
    caption = st.lists(_vocabulary, min_size=least, max_size=9).map(" ".join)
    ids = st.one_of(st.integers(0, 99), st.text("xyz", min_size=1, max_size=3))
    item = st.tuples(caption, st.lists(caption, min_size=1, max_size=4))
    return st.dictionaries(ids, item, min_size=1, max_size=6)


_items, _items_without_empty = _captions(0), _captions(1)
Items = dict[int | str, tuple[str, list[str]]]


def _split(items: Items) -> tuple[dict[int | str, str], dict[int | str, list[str]]]:
    return {i: one for i, (one, _) in items.items()}, {i: others for i, (_, others) in items.items()}


@pytest.fixture(scope="module")
def vectors(shared: Callable[[str], Path]) -> Vectors:
    found: Vectors = json.loads(shared("vectors/caption_metrics.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", THEIR_NAMES)
def test_scores_equal_those_of_pycocoevalcap_on_every_image_and_on_the_corpus(vectors: Vectors, name: str) -> None:
    candidates = {row["image_id"]: row["test"] for row in vectors["rows"]}
    references = {row["image_id"]: row["refs"] for row in vectors["rows"]}
    scores = caption_scores(candidates, references, tokenized=True)
    assert scores["corpus"][name] == pytest.approx(vectors["corpus"][THEIR_NAMES[name]], abs=1e-9)
    each = [scores["per_item"][item][name] for item in candidates]
    assert each == pytest.approx(vectors["per_image"][THEIR_NAMES[name]], abs=1e-9)


@given(_items_without_empty)
def test_scores_equal_those_of_pycocoevalcap_on_made_up_captions(items: Items) -> None:
    candidates, references = _split(items)
    as_lists = {item: [text] for item, text in candidates.items()}
    for metric, (module, scorer, options) in {
        "bleu": ("bleu.bleu", "Bleu", {"verbose": 0}),
        "rouge_l": ("rouge.rouge", "Rouge", {}),
        "cider": ("cider.cider", "Cider", {}),
    }.items():
        theirs = pytest.importorskip(f"pycocoevalcap.{module}", reason="needs pip install 'saywhere[java]'")
        together, each = getattr(theirs, scorer)().compute_score(references, as_lists, **options)
        scores = caption_scores(candidates, references, [metric], tokenized=True)
        assert [*scores["corpus"].values()] == pytest.approx(np.ravel(together), abs=1e-9)
        ours = np.array([[*scores["per_item"][item].values()] for item in references])
        assert ours == pytest.approx(np.array(each).reshape(ours.shape[1], -1).T, abs=1e-9)


def test_bleu_counts_a_word_no_more_often_than_one_reference_has_it() -> None:
    scores = bleu({1: "the the the the the the the"}, {1: ["the cat is on the mat", "there is a cat on the mat"]})
    assert scores["per_item"][1]["BLEU-1"] == pytest.approx(2 / 7, abs=1e-8)
    assert scores["per_item"][1]["BLEU-2"] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("candidate", "references", "expected"),
    [
        ("a b", ["a b c d"], math.exp(1 - 4 / 2)),  # half as long as the only reference
        ("a b c", ["a b", "a b c d"], 1.0),  # two are as near: the shorter counts, so nothing is lost
        ("a b", ["a b c d", "a b x"], math.exp(1 - 3 / 2)),  # the nearer counts
        ("a x", ["a b"], 1 / 2),
    ],
)
def test_bleu_punishes_candidates_shorter_than_the_nearest_reference(
    candidate: str, references: list[str], expected: float
) -> None:
    scores = bleu({"x": candidate}, {"x": references}, tokenized=True)
    assert scores["corpus"]["BLEU-1"] == pytest.approx(expected, abs=1e-7)


def test_bleu_of_the_corpus_adds_up_counts_instead_of_averaging() -> None:
    scores = bleu({1: "a b c d", 2: "x y"}, {1: ["a b c d"], 2: ["p q"]}, tokenized=True)
    assert scores["corpus"]["BLEU-1"] == pytest.approx(4 / 6, abs=1e-8)


def test_rouge_l_is_the_f_score_of_the_longest_common_subsequence() -> None:
    precision, recall = 3 / 4, 3 / 5
    expected = (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)
    scores = rouge_l({1: "a b c d"}, {1: ["a x c d e"]}, tokenized=True)
    assert scores["corpus"]["ROUGE-L"] == pytest.approx(expected)


def test_rouge_l_may_take_precision_and_recall_from_different_references() -> None:
    scores = rouge_l({1: "a b c"}, {1: ["a b c d e f g h i", "a"]}, tokenized=True)
    assert scores["corpus"]["ROUGE-L"] == pytest.approx(1.0)


def _common_length_by_table(a: Sequence[object], b: Sequence[object]) -> int:
    rows = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            rows[i + 1][j + 1] = rows[i][j] + 1 if x == y else max(rows[i][j + 1], rows[i + 1][j])
    return rows[-1][-1]


@given(st.lists(st.integers(0, 3), max_size=150), st.lists(st.integers(0, 3), max_size=90))
def test_the_bits_give_the_same_common_length_as_the_table(a: list[int], b: list[int]) -> None:
    assert common_length(a, b) == _common_length_by_table(a, b)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
def test_rouge_l_is_right_for_captions_around_the_width_of_a_machine_word(n: int) -> None:
    candidate, reference = [f"w{i % 7}" for i in range(n)], [f"w{i % 5}" for i in range(n + 3)]
    common = _common_length_by_table(candidate, reference)
    precision, recall = common / n, common / (n + 3)
    expected = (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)
    items = {"long": " ".join(candidate), "short": "a b"}
    scores = rouge_l(items, {"long": [" ".join(reference)], "short": ["a c"]}, tokenized=True)
    assert scores["per_item"]["long"]["ROUGE-L"] == pytest.approx(expected)


def test_cider_of_a_small_example_worked_out_by_hand() -> None:
    # Every n-gram is in one of two documents and weighs log 2. Item 1 is perfect in words and pairs of words, and has
    # no longer n-grams. Item 2 shares one of two words of the reference, and its length differs by one.
    candidates, references = {1: "a b", 2: "c"}, {1: ["a b"], 2: ["c d"]}
    scores = cider(candidates, references, tokenized=True)
    first, second = 10 * 2 / 4, 10 * (1 / math.sqrt(2)) / 4 * math.exp(-1 / (2 * 6**2))
    assert scores["per_item"][1]["CIDEr"] == pytest.approx(first)
    assert scores["per_item"][2]["CIDEr"] == pytest.approx(second)
    assert scores["corpus"]["CIDEr"] == pytest.approx((first + second) / 2)
    plain = cider(candidates, references, tokenized=True, variant="plain")
    assert plain["per_item"][2]["CIDEr (plain)"] == pytest.approx(10 * (1 / math.sqrt(2)) / 4)


def test_plain_cider_does_not_clip_a_repeated_word_and_cider_d_does() -> None:
    candidates, references = {1: "a a a b", 2: "c"}, {1: ["a b"], 2: ["d"]}
    # Words of item 1: candidate (3, 1), reference (1, 1), both times log 2.
    cosine, clipped = 4 / math.sqrt(20), 2 / math.sqrt(20)
    pairs_plain, pairs_clipped = 1 / math.sqrt(5), 1 / math.sqrt(5)  # "a a" twice, "a b" once against "a b" once
    plain = cider(candidates, references, tokenized=True, variant="plain")["per_item"][1]["CIDEr (plain)"]
    d = cider(candidates, references, tokenized=True)["per_item"][1]["CIDEr"]
    assert plain == pytest.approx(10 * (cosine + pairs_plain) / 4)
    assert d == pytest.approx(10 * (clipped + pairs_clipped) / 4 * math.exp(-(2**2) / 72))


@given(_items)
def test_cider_with_the_frequencies_of_its_own_references_changes_nothing(items: Items) -> None:
    candidates, references = _split(items)
    df = DocumentFrequency.of(references.values(), tokenized=True)
    own, given_df = (cider(candidates, references, tokenized=True, df=table) for table in (None, df))
    for item in items:
        assert given_df["per_item"][item]["CIDEr"] == pytest.approx(own["per_item"][item]["CIDEr"])


def test_one_item_alone_has_a_cider_only_with_frequencies_from_elsewhere() -> None:
    one, references = {"x": "a red dog"}, {"x": ["A red dog.", "The dog is red."]}
    df = DocumentFrequency.of([*references.values(), ["a cat"], ["a blue car on the road"]])
    assert df.documents == 3
    assert df.counts["red", "dog"] == 1
    assert df.counts[("a",)] == 3
    assert cider(one, references)["corpus"]["CIDEr"] == 0
    # The candidate equals the first of two references, and has n-grams of three of the four lengths.
    assert cider(one, references, df=df)["corpus"]["CIDEr"] > 10 * 3 / 4 / 2
    assert caption_scores(one, references, ["cider"], df=df) == cider(one, references, df=df)


@given(_items)
def test_an_item_scores_the_same_alone_and_in_a_batch(items: Items) -> None:
    candidates, references = _split(items)
    together = caption_scores(candidates, references, ["bleu", "rouge_l"], tokenized=True)
    for item in items:
        alone = caption_scores({item: candidates[item]}, {item: references[item]}, ["bleu", "rouge_l"], tokenized=True)
        assert alone["per_item"][item] == together["per_item"][item]


@given(_items, st.data())
def test_batches_give_what_all_at_once_gives_in_any_order(items: Items, data: st.DataObject) -> None:
    names = ["bleu", "rouge_l", "cider", "cider_plain"]
    candidates, references = _split(items)
    at_once = caption_scores(candidates, references, names, tokenized=True)
    order = data.draw(st.permutations(list(items)))
    cut = data.draw(st.integers(0, len(order)))
    for accumulator, keys in (
        (CaptionScores(names), list(at_once["corpus"])),
        (Bleu(), [f"BLEU-{n}" for n in range(1, 5)]),
        (RougeL(), ["ROUGE-L"]),
        (Cider(), ["CIDEr"]),
        (Cider(variant="plain"), ["CIDEr (plain)"]),
    ):
        for batch in (order[:cut], order[cut:]):
            if batch:
                accumulator.update({i: candidates[i] for i in batch}, {i: references[i] for i in batch}, tokenized=True)
        scores = accumulator.compute()
        assert list(scores["per_item"]) == order
        assert scores["corpus"] == pytest.approx({key: at_once["corpus"][key] for key in keys})
        for item in items:
            expected = {key: at_once["per_item"][item][key] for key in keys}
            assert scores["per_item"][item] == pytest.approx(expected)


@given(_items)
def test_every_score_lies_in_its_range_and_a_copy_of_a_reference_gets_the_best(items: Items) -> None:
    candidates, references = _split(items)
    for values in caption_scores(candidates, references, tokenized=True)["per_item"].values():
        assert all(0 <= value <= (10 + 1e-9 if name == "CIDEr" else 1) for name, value in values.items())
    copies = {item: max(others, key=len) for item, others in references.items()}
    for item, values in caption_scores(copies, references, tokenized=True)["per_item"].items():
        if len(copies[item].split()) >= 4:
            assert [*values.values()][:5] == pytest.approx([1.0] * 5, abs=1e-6)


def test_an_empty_candidate_scores_nothing_even_against_an_empty_reference() -> None:
    scores = caption_scores({1: "", 2: "...", 3: "a dog"}, {1: ["a dog", ""], 2: ["!"], 3: ["a dog"]})
    for item in (1, 2):
        assert set(scores["per_item"][item].values()) == {0.0}
    assert scores["per_item"][3]["ROUGE-L"] == 1


def test_captions_are_split_unless_they_are_given_in_words() -> None:
    raw = caption_scores({1: "A dog, running!"}, {1: ["a DOG running."]})
    assert raw["corpus"]["BLEU-3"] == pytest.approx(1)
    words = caption_scores({1: "A dog, running!"}, {1: ["a DOG running."]}, tokenized=True)
    assert words["corpus"]["BLEU-1"] == pytest.approx(0, abs=1e-3)


def test_a_number_of_two_parts_is_one_word_for_rouge_and_two_for_bleu_as_in_the_original() -> None:
    scores = caption_scores({1: "1 1/2 dogs"}, {1: ["1 3/4 dogs"]})
    assert scores["per_item"][1]["BLEU-1"] == pytest.approx(2 / 3, abs=1e-8)
    assert scores["per_item"][1]["ROUGE-L"] == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("candidates", "references", "complaint"),
    [
        ({}, {}, "nothing to score"),
        ({1: "a"}, {}, "references: none for 1"),
        ({1: "a"}, {"1": ["a"]}, "references: none for 1"),
        (dict.fromkeys(range(9), "a"), {0: ["a"]}, "none for 1, 2, 3 and 5 more"),
        ({1: "a"}, {1: ["a"], 2: ["b"]}, "candidates: none for 2"),
        ({1: "a"}, {1: []}, "references of 1: the list is empty"),
        ({1: "a"}, {1: "a dog"}, "references of 1: expected a list of captions, got str"),
        ({1: "a"}, {1: None}, "expected a list of captions, got NoneType"),
        ({1: "a"}, {1: ["a", 5]}, "reference of 1: expected text, got int"),
        ({1: None}, {1: ["a"]}, "candidate of 1: expected text, got NoneType"),
        ({1: ["a"]}, {1: ["a"]}, "candidate of 1: expected text, got list"),
        ({1.5: "a"}, {1.5: ["a"]}, "must be int or str, got float"),
        (["a"], {1: ["a"]}, "candidates: expected a mapping"),
    ],
)
def test_captions_that_cannot_be_scored_are_refused_with_the_reason(
    candidates: Any, references: Any, complaint: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        caption_scores(candidates, references)
    assert complaint in str(caught.value)
    with pytest.raises(InvalidValue):
        CaptionScores().update(candidates, references)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: caption_scores({1: "a"}, {1: ["a"]}, ["blue"]), "Did you mean 'bleu'"),
        (lambda: CaptionScores(["rouge-l"]), "Did you mean 'rouge_l'"),
        (lambda: cider({1: "a"}, {1: ["a"]}, variant="E"), "unknown variant of CIDEr"),  # type: ignore[arg-type]
    ],
)
def test_an_unknown_name_gets_the_nearest_known_one(call: Callable[[], object], complaint: str) -> None:
    with pytest.raises(UnknownName, match=complaint):
        call()


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: caption_scores({1: "a"}, {1: ["a"]}, "bleu"), "expected several names"),
        (lambda: caption_scores({1: "a"}, {1: ["a"]}, []), "none were asked for"),
        (lambda: Bleu().compute(), "none were added"),
        (lambda: DocumentFrequency({}, 0), "at least one"),
        (lambda: DocumentFrequency({("a",): 3}, 2), "in 3 of 2 documents"),
        (lambda: DocumentFrequency({}, math.nan), "at least one"),
    ],
)
def test_what_cannot_be_meant_is_refused(call: Callable[[], object], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        call()


def test_an_id_comes_once_until_reset() -> None:
    metric = RougeL()
    metric.update({1: "a dog"}, {1: ["a cat"]})
    with pytest.raises(InvalidValue, match="already scored: 1"):
        metric.update({1: "a dog"}, {1: ["a dog"]})
    assert metric.compute()["corpus"]["ROUGE-L"] == pytest.approx(0.5)
    metric.reset()
    metric.update({1: "a dog"}, {1: ["a dog"]})
    assert metric.compute()["corpus"]["ROUGE-L"] == pytest.approx(1.0)


def test_every_export_is_there_once() -> None:
    assert all(hasattr(captions, name) for name in captions.__all__)
    assert len(set(captions.__all__)) == len(captions.__all__)
