"""Hypothesis strategies for the core values."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from saywhere.core import Frame, Narrative, Trace, Utterance, Word, WordBoxes

coordinates = st.floats(-0.3, 1.3, allow_nan=False)
seconds = st.floats(0, 100, allow_nan=False)


@st.composite
def traces(draw: st.DrawFn, min_points: int = 0, max_points: int = 30) -> Trace:
    n = draw(st.integers(min_points, max_points))
    times = sorted(draw(st.lists(seconds, min_size=n, max_size=n)))
    xy = draw(st.lists(st.tuples(coordinates, coordinates), min_size=n, max_size=n))
    starts = sorted({0} | draw(st.sets(st.integers(1, n - 1), max_size=3))) if n > 1 else [0][:n]
    return Trace([(x, y, t) for (x, y), t in zip(xy, times, strict=True)], starts)


texts = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=12)
spoken = texts.filter(lambda text: bool(text.split()))


@st.composite
def utterances(draw: st.DrawFn, max_size: int = 8) -> tuple[Utterance, ...]:
    n = draw(st.integers(0, max_size))
    starts = sorted(draw(st.lists(seconds, min_size=n, max_size=n)))
    lengths = draw(st.lists(st.one_of(st.just(0.0), st.floats(0, 3)), min_size=n, max_size=n))
    return tuple(Utterance(draw(spoken), s, s + d) for s, d in zip(starts, lengths, strict=True))


@st.composite
def narratives(draw: st.DrawFn) -> Narrative:
    return Narrative(
        image_id=draw(texts),
        caption=draw(st.text(st.characters(codec="utf-8"), max_size=40)),
        utterances=draw(utterances()),
        trace=draw(traces()),
        dataset_id=draw(st.sampled_from(["", "mscoco_val2017", "open_images"])),
        annotator_id=draw(st.sampled_from(["", "7", "123"])),
        audio=draw(st.sampled_from(["", "a/b.ogg"])),
        language=draw(st.sampled_from(["", "", "de", "pt-BR"])),
    )


@st.composite
def words_with_boxes(draw: st.DrawFn) -> tuple[list[Word], WordBoxes]:
    """Words one after the other, each of some length, and a box or nothing for each."""
    lengths = draw(st.lists(st.floats(0.05, 2), min_size=1, max_size=8))
    cuts = np.cumsum([draw(st.floats(0, 3)), *lengths])
    words = [Word(f"w{i}", float(cuts[i]), float(cuts[i + 1])) for i in range(len(lengths))]
    corner = st.floats(0, 1)
    boxes = []
    for _ in words:
        if draw(st.integers(0, 4)) == 0:
            boxes.append([np.nan] * 4)
        else:
            (x1, x2), (y1, y2) = (sorted((draw(corner), draw(corner))) for _ in range(2))
            boxes.append([x1, y1, x2, y2])
    return words, WordBoxes(boxes)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    photo = (draw(st.integers(30, 2000)), draw(st.integers(30, 2000)))
    patch = draw(st.sampled_from([7, 14, 16]))
    side = (patch * draw(st.integers(1, 12)), patch * draw(st.integers(1, 12)))
    kind = draw(st.sampled_from(["squash", "crop", "letterbox", "smart"]))
    if kind == "squash":
        return Frame.squash(photo, side, patch)
    if kind == "crop":
        return Frame.centre_crop(photo, max(side), side, patch)
    if kind == "letterbox":
        return Frame.letterbox(photo, side, patch)
    return Frame.smart_resize(photo)
