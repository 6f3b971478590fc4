"""Narratives to draw: the ordinary one and the ones that break careless drawings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.core import Narrative, Trace, Utterance

ODD_WORDS = (
    *("$x_1$", "$\\frac{$", "$", "100%", "a_b", "\\frac{", "<b>&\"'", "W" * 300),
    *("猫", "кошка", "قطة", "हिन्दी", "👩‍👩‍👧", "\ud800", "\x07", "\u202eabc"),
)


def spoken(texts: tuple[str, ...], lasts_s: float = 0.4) -> tuple[Utterance, ...]:
    return tuple(Utterance(text, i * lasts_s, (i + 1) * lasts_s) for i, text in enumerate(texts))


def loop(start_s: float, end_s: float, n: int = 60, centre: tuple[float, float] = (0.5, 0.5)) -> np.ndarray:
    """(n, 3) one turn around a place."""
    u = np.linspace(0, 1, n)
    x, y = (c + 0.3 * f(2 * np.pi * u) for c, f in zip(centre, (np.cos, np.sin), strict=True))
    return np.column_stack([x, y, start_s + u * (end_s - start_s)])


TWO_STROKES = Trace.from_segments([loop(0.5, 1.8), loop(2.6, 4.4, centre=(0.6, 0.8))])

NARRATIVES = {
    "ordinary": Narrative(
        "7", "A cat sits on the table.", spoken(("A", "cat", "sits", "on", "the", "table.")), TWO_STROKES
    ),
    "no words": Narrative("7", "A cat.\nOn a table.", trace=TWO_STROKES),
    "no trace": Narrative("7", "A cat.", spoken(("A", "cat."))),
    "nothing": Narrative("7"),
    "one point": Narrative("7", "cat", spoken(("cat",)), Trace([(0.4, 0.4, 0.2)])),
    "no length": Narrative("7", "a b", (Utterance("a b", 1.0, 1.0),), Trace([(0.4, 0.4, 1.0), (0.5, 0.5, 1.0)])),
    "all unlocated": Narrative("7", "a cat", spoken(("a", "cat")), TWO_STROKES.shifted(60)),
    "400 words": Narrative("7", "", spoken(("a", "remarkable", "cat,", "sits") * 100, 0.1), Trace(loop(0, 40, 2000))),
    "odd characters": Narrative("7/$a_b$", " ".join(ODD_WORDS), spoken(ODD_WORDS), TWO_STROKES, annotator_id="<i>"),
    "far away": Narrative("7", "x", (Utterance("x", 0.0, 1e300),), Trace([(-1e300, 9.0, 0.0), (1e300, -9.0, 1e300)])),
}


@pytest.fixture(scope="session")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small photo, wider than high."""
    path = tmp_path_factory.mktemp("photos") / "photo.jpg"
    ramp = np.linspace(0, 255, 160).astype(np.uint8)
    Image.fromarray(np.stack([np.tile(ramp, (120, 1))] * 3, axis=-1)).save(path)
    return path


@pytest.fixture(params=NARRATIVES.values(), ids=NARRATIVES.keys())
def narrative(request: pytest.FixtureRequest) -> Narrative:
    value: Narrative = request.param
    return value


@pytest.fixture
def ordinary() -> Narrative:
    return NARRATIVES["ordinary"]
