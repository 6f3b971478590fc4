"""Whom to believe about the time of a word: agreement, order, and what was learnt about listeners."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from saywhere.language import speech
from saywhere.language.opinion import Opinion
from saywhere.language.trust import Trust, judge, learnt

LISTENERS = sorted(speech.CUTS)
WORDS = ["man", "walks", "left", "with", "cake", "past", "trees", "that", "grow", "tall"]


def opinion(starts_s: Sequence[float], score: float = -2.5) -> Opinion:
    starts = np.array(starts_s, dtype=np.float64)
    heard = np.where(np.isnan(starts), np.nan, 1.0)
    return Opinion(starts, starts + 0.2, score * heard, 2.0 * heard)


def test_a_time_that_listeners_agree_on_is_surer_than_one_they_do_not() -> None:
    starts = np.arange(10) * 0.5
    agreed = judge(WORDS, {name: opinion(starts + learnt().late_s[name]) for name in LISTENERS}, learnt())
    np.testing.assert_allclose(agreed.starts_s, starts, atol=1e-9)
    apart = judge(WORDS, {name: opinion(starts + i * 3.0, -5.0) for i, name in enumerate(LISTENERS)}, learnt())
    assert agreed.confidence.min() > 0.9
    assert apart.confidence.max() < speech.DOUBTFUL
    assert apart.confidence.mean() < learnt().least < agreed.confidence.mean()


def test_a_word_that_fits_the_sound_badly_is_doubtful_among_others_that_fit() -> None:
    starts = np.arange(10) * 0.5
    opinions = {name: opinion(starts + learnt().late_s[name]) for name in LISTENERS}
    opinions["wide"].starts_s[4] += 1.5
    judged = judge(WORDS, opinions, learnt())
    assert judged.confidence.argmin() == 4
    assert judged.confidence[[0, 9]].min() > 0.9


def test_an_article_before_a_pause_is_doubtful_and_one_after_it_is_not() -> None:
    starts = np.array([0.0, 0.4, 0.8, 3.0, 3.4, 3.8])
    opinions = {name: opinion(starts + learnt().late_s[name]) for name in LISTENERS}
    hanging = judge("in front the red brick house".split(), opinions, learnt())  # noqa: SIM905
    leading = judge("in front stands the red house".split(), opinions, learnt())  # noqa: SIM905
    assert hanging.confidence[2] < speech.DOUBTFUL < leading.confidence[[2, 3]].min()


@given(st.lists(st.tuples(*[st.floats(0, 20) | st.just(float("nan"))] * 2), min_size=1, max_size=30))
def test_chosen_times_never_go_back_and_are_somebodys(rows: list[tuple[float, float]]) -> None:
    opinions = {name: opinion([row[i] for row in rows]) for i, name in enumerate(LISTENERS)}
    judged = judge(["word"] * len(rows), opinions, learnt())
    known = ~np.isnan(judged.starts_s)
    assert (np.diff(judged.starts_s[known]) >= 0).all()
    given_s = np.stack([opinions[name].starts_s - learnt().late_s[name] for name in LISTENERS])
    assert (np.abs(given_s[:, known] - judged.starts_s[known]) < 1e-9).any(axis=0).all()
    assert ((judged.confidence >= 0) & (judged.confidence <= 1)).all()
    assert known.any() == (~np.isnan(given_s)).any()


def test_what_nobody_heard_has_no_time_and_the_confidence_of_a_guess() -> None:
    flat = Trust(dict.fromkeys(LISTENERS, 0.0), np.zeros(8), 0.0, 0.123)
    judged = judge(WORDS[:3], {name: opinion([1.0, float("nan"), 2.0]) for name in LISTENERS}, flat)
    assert np.isnan(judged.starts_s).tolist() == [False, True, False]
    assert judged.confidence.tolist() == [0.5, 0.123, 0.5]


def test_the_page_marks_the_words_that_the_aligner_calls_doubtful() -> None:
    page = Path(speech.__file__).parents[1] / "studio" / "page" / "narrative.js"
    (number,) = re.findall(r"const DOUBTFUL = ([0-9.]+);", page.read_text("utf-8"))
    assert float(number) == speech.DOUBTFUL
