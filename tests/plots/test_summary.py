from __future__ import annotations

import numpy as np
import pytest

from saywhere.core import InvalidValue
from saywhere.plots import draw_summary


def test_a_summary_draws_a_panel_for_each_column() -> None:
    columns = {"numbers": np.arange(50.0), "none": np.array([]), "one": np.array([3.0]), "where": np.eye(4)}
    figure = draw_summary(columns, title="$odd_name$.jsonl")
    figure.canvas.draw()
    assert len(figure.axes) == 4
    texts = [text.get_text() for text in figure.texts]
    assert "median 24.5" in texts
    assert "$odd_name$.jsonl" in texts
    with pytest.raises(InvalidValue, match="no columns"):
        draw_summary({}, title="x")
