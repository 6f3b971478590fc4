"""The example files are what their script makes, and show what real data has."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from saywhere.core import Narrative
from saywhere.formats import InvalidRecord, localized_narratives

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_examples", EXAMPLES / "make_examples.py")
    if spec is None or spec.loader is None:
        pytest.fail("examples/make_examples.py is missing")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def remade(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("examples")
    script.main(folder)
    return folder


@pytest.mark.parametrize("name", ["narratives.jsonl", "broken.jsonl"])
def test_the_script_makes_the_kept_files_again(remade: Path, name: str):
    assert (remade / name).read_bytes() == (EXAMPLES / name).read_bytes()


def test_the_script_draws_the_kept_picture_again(remade: Path):
    # Compared by eye's measure, not by bytes: JPEG encoders differ.
    with Image.open(remade / "kitchen.jpg") as new, Image.open(EXAMPLES / "kitchen.jpg") as kept:
        assert new.size == kept.size == (960, 720)
        assert np.abs(np.asarray(new, dtype=float) - np.asarray(kept, dtype=float)).mean() < 1
    assert (EXAMPLES / "kitchen.jpg").stat().st_size < 200_000


def test_the_narratives_are_as_ragged_as_real_ones():
    narratives = list(localized_narratives.read(EXAMPLES / "narratives.jsonl"))
    assert len({narrative.annotator_id for narrative in narratives}) == 3
    for narrative in narratives:
        assert isinstance(narrative, Narrative)
        located = narrative.word_boxes().located
        assert " ".join(word.text for word in narrative.words) == narrative.caption
        assert len(narrative.trace.starts) == 2
        assert any(u.start_s == u.end_s and " " in u.text for u in narrative.utterances)
        assert 0 < (~located).sum() < len(located) / 3


def test_named_things_are_pointed_at(script: ModuleType):
    found = []
    for narrative in localized_narratives.read(EXAMPLES / "narratives.jsonl"):
        for word, box in zip(narrative.words, narrative.word_boxes().boxes_xyxy, strict=True):
            if (name := word.text.strip(".,")) in ("cat", "cup", "clock", "window", "sun"):
                middle = (box[:2] + box[2:]) / 2
                place = np.array(script.kitchen.PLACES[name])
                assert (place[:2] - 0.03 < middle).all()
                assert (middle < place[2:] + 0.03).all()
                found.append(name)
    assert len(set(found)) == 5


def test_every_line_of_the_broken_file_is_broken_but_the_first_and_the_last():
    first, *others, last = localized_narratives.read(EXAMPLES / "broken.jsonl")
    assert (
        first
        == last
        == Narrative("kitchen", "A cat.", first.utterances, first.trace, "saywhere_example", "1", first.audio)
    )
    assert len(others) == 12
    assert all(isinstance(other, InvalidRecord) for other in others)
    assert len({other.reason for other in others}) == 12
