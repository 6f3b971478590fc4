"""What HINT's examples say: of questions and captions, on the page and in a study."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from saywhere.cli import reproduce as command
from saywhere.core import AttentionMap
from saywhere.plots.heats import HeatPanel
from saywhere.reproduce.hint_examples import signed
from saywhere.reproduce.results import HeatExample


def panels() -> tuple[HeatPanel, ...]:
    seen = AttentionMap(np.eye(4))
    return tuple(HeatPanel(title, seen) for title in ("base", "HINT", "people"))


ASKED = HeatExample("photo.png", "What is on the table?", panels(), answer="hot dog")
TOLD = HeatExample("photo.png", "a cup? on the red table", panels(), word=5)


def test_all_words_of_an_answer_are_explained_and_one_of_a_caption() -> None:
    assert ASKED.heading == "What is on the table? hot dog"
    assert list(ASKED.marked) == [5, 6]
    assert (TOLD.heading, list(TOLD.marked)) == (TOLD.text, [5])
    assert not HeatExample("photo.png", "a cup", ()).marked


def test_a_study_asks_the_question_without_its_answer_whatever_its_words(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "photo.png")
    command._write_study(SimpleNamespace(heats=(ASKED, TOLD)), tmp_path)  # type: ignore[arg-type]
    asked, told = json.loads((tmp_path / "study" / "study.json").read_text())["items"]
    assert (asked["prompt"], asked["answer"], asked.get("word", "")) == ("What is on the table?", "hot dog", "")
    assert (told["prompt"], told["word"], told.get("answer", "")) == ("a cup? on the red table", "table", "")


@pytest.mark.parametrize(
    ("value", "said"), [(-0.001, "0.00"), (0.0, "0.00"), (-0.483, "−0.48"), (0.25, "+0.25"), (math.nan, "–")]
)
def test_a_minus_is_one_and_zero_has_none(value: float, said: str) -> None:
    assert signed(value) == said
