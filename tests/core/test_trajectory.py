from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, Phrase, Trace, simplify_phrases
from saywhere.core.trajectory import from_text, to_text
from tests.strategies import traces


@given(traces(min_points=1))
def test_text_and_back_moves_no_point_more_than_half_a_bin(trace: Trace) -> None:
    (parsed,) = from_text(f"Here: {to_text(trace)}!")
    assert parsed.problems == ()
    assert np.abs(parsed.points_xy - trace.xy.clip(0, 1)).max() <= 0.5 / 1000 + 1e-12
    assert len(parsed.timed(0, 2)) == len(trace)


def test_the_text_looks_as_the_paper_writes_it() -> None:
    assert to_text(Trace([(0, 0.5, 0), (0.9999, 1.2, 1)])) == "<traj>(0,500),(999,999)</traj>"


@pytest.mark.parametrize(
    ("text", "points", "problems"),
    [
        ("no trajectory here", None, ()),
        ("<traj>(1,2),(3,4)</traj>", [(1, 2), (3, 4)], ()),
        ("<traj> (1, 2), (3, 4) </traj>", [(1, 2), (3, 4)], ()),
        ("<TRAJ>(1,2)</ traj >", [(1, 2)], ()),
        ("<traj>(1,2),(3,4", [(1, 2), (3, 4)], ("no closing tag", "malformed points")),
        ("<traj>[1 2];{3;4}</traj>", [(1, 2), (3, 4)], ("malformed points",)),
        ("<traj>(1.7,2.2)</traj>", [(1, 2)], ("malformed points",)),
        ("<traj>(1,2),oops,(3,4)</traj>", [(1, 2), (3, 4)], ("malformed points",)),
        ("<traj>(1,2,3),(4,5)</traj>", [(1, 2), (4, 5)], ("malformed points",)),
        ("<traj>(1005,-2),(3,4)</traj>", [(999, 0), (3, 4)], ("malformed points", "1 points out of range")),
        ("<traj>(1005,2),(3,4)</traj>", [(999, 2), (3, 4)], ("1 points out of range",)),
        ("<traj></traj>", [], ("malformed points", "no points")),
        ("<traj>", [], ("no closing tag", "malformed points", "no points")),
    ],
)
def test_a_models_malformed_output_is_mended_and_the_mending_named(
    text: str, points: list[tuple[int, int]] | None, problems: tuple[str, ...]
) -> None:
    found = from_text(text)
    if points is None:
        assert found == []
        return
    assert found[0].problems == problems
    np.testing.assert_allclose(found[0].points_xy, (np.array(points).reshape(-1, 2) + 0.5) / 1000)


def test_an_unclosed_trajectory_ends_where_the_next_begins() -> None:
    first, second = from_text("<traj>(1,2) and <traj>(3,4)</traj> done")
    assert (len(first.points_xy), len(second.points_xy)) == (1, 1)
    assert "<traj>(1,2) and <traj>(3,4)</traj> done"[slice(*second.span)] == "<traj>(3,4)</traj>"


@given(st.text(alphabet="<traj>/(),;[] 0123456789.-+ex\n", max_size=200))
def test_no_output_whatever_breaks_the_parser(text: str) -> None:
    for parsed in from_text("<traj>" + text):
        assert ((parsed.points_xy >= 0) & (parsed.points_xy <= 1)).all()


@pytest.mark.parametrize(
    ("filler", "found"), [(" ", [0]), ("1", [0]), ("(", [0]), ("1 ", [1_000]), ("(1,", [0]), ("<traj>", [0] * 2_001)]
)
def test_long_odd_output_is_read(filler: str, found: list[int]) -> None:
    # `make bench` shows that the time grows in proportion.
    assert [len(one.points_xy) for one in from_text("<traj>" + filler * 2_000 + "x")] == found


def test_important_phrases_keep_more_points() -> None:
    t = np.linspace(0, 2, 201)
    wave = Trace(np.column_stack([t / 2, 0.5 + 0.02 * np.sin(t * 20), t]))
    size = (640, 480)
    for weak_first in (True, False):
        weak, strong = Phrase(0, 1, 1 if weak_first else 5), Phrase(1, 2, 5 if weak_first else 1)
        simple = simplify_phrases(wave, [weak, strong], size)
        counts = len(simple.between(0, 1)), len(simple.between(1, 9))
        assert (counts[0] < counts[1]) == weak_first
    one = simplify_phrases(wave, [Phrase(0, 3, 5)], size)
    assert one == wave.simplify(5, size)


@given(traces(), st.lists(st.tuples(st.floats(0, 30), st.integers(1, 5)), max_size=4))
def test_the_ends_of_every_phrase_and_segment_stay(trace: Trace, cuts: list[tuple[float, int]]) -> None:
    edges = np.cumsum([10.0] + [c for c, _ in cuts])
    phrases = [Phrase(float(a), float(b), i) for (_, i), a, b in zip(cuts, edges, edges[1:], strict=False)]
    simple = simplify_phrases(trace, phrases, (640, 480))
    kept = {tuple(p) for p in simple.points.tolist()}
    pieces = [trace.between(p.start_s, p.end_s) for p in phrases] + [Trace(s) for s in trace.segments]
    for piece in pieces:
        if len(piece):
            assert tuple(piece.points[0].tolist()) in kept
            assert tuple(piece.points[-1].tolist()) in kept
    assert len(simple.starts) == len(trace.starts)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Phrase(0, 1, 0), "importance 0"),
        (lambda: Phrase(2, 1, 3), "goes from 2"),
        (lambda: simplify_phrases(Trace([(0, 0, 0)]), [Phrase(0, 2, 1), Phrase(1, 3, 1)], (1, 1)), "overlap"),
    ],
)
def test_phrases_that_cannot_be_are_refused(make: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        make()  # type: ignore[operator]
