"""Models in folders: what goes in comes out, and what is torn or does not fit is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from saywhere.assets.checkpoint import CONFIG
from saywhere.core import InvalidFile, InvalidValue
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.common.network import VOCABULARY
from saywhere.models.folder import WEIGHTS
from saywhere.models.mitr import MITR
from tests.models.small import WORDS, network


def vocabulary(size: int = WORDS, first: str = "word") -> Vocabulary:
    return Vocabulary("words", ("<unk>", ".", *(f"{first}{i}" for i in range(size - 2))))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    network(layers=2).attach(vocabulary()).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_comes_back_whole(saved: Path) -> None:
    again, model = MITR.from_pretrained(saved), network(layers=2)
    assert again.config == model.config
    assert again.vocabulary == vocabulary()
    assert not again.training
    for (name, a), (other, b) in zip(model.state_dict().items(), again.state_dict().items(), strict=True):
        assert name == other
        assert torch.equal(a, b)


def test_a_model_without_vocabulary_can_be_saved_over_one_with(saved: Path) -> None:
    network().save_pretrained(saved)
    assert MITR.from_pretrained(saved).vocabulary is None
    assert sorted(path.name for path in saved.iterdir()) == sorted([WEIGHTS, CONFIG])


def test_a_vocabulary_of_another_size_is_refused() -> None:
    with pytest.raises(InvalidValue, match="has 20 entries, but the model was made for 30"):
        network().attach(vocabulary(20))


def _rewrite(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: vocabulary(first="other").save(folder / VOCABULARY), "is not the file that"),
        (lambda folder: vocabulary(20).save(folder / VOCABULARY), "is not the file that"),
        (lambda folder: (folder / VOCABULARY).unlink(), "cannot be opened"),
        (lambda folder: (folder / VOCABULARY).write_text("{"), "is not the file that"),
        (lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-9]), "was the save cut off"),
        (lambda folder: (folder / WEIGHTS).unlink(), "cannot be opened"),
        (lambda folder: (folder / CONFIG).unlink(), "cannot be opened"),
        (lambda folder: (folder / CONFIG).write_text("[]"), "not a JSON object"),
        (lambda folder: (folder / CONFIG).write_text("{" * 10), "not JSON"),
        (lambda folder: _rewrite(folder / CONFIG, lambda c: c.update(model="gpt")), "describes 'gpt'"),
        (lambda folder: _rewrite(folder / CONFIG, lambda c: c["config"].update(widht=3)), "widht"),
        (lambda folder: _rewrite(folder / CONFIG, lambda c: c["config"].update(words="many")), "whole number"),
        (
            lambda folder: _rewrite(folder / CONFIG, lambda c: c["config"].update(layers=3)),
            "does not hold the parameters",
        ),
    ],
)
def test_what_is_torn_or_does_not_fit_is_named(saved: Path, spoil: Callable[[Path], object], reason: str) -> None:
    spoil(saved)
    with pytest.raises(InvalidFile, match=reason):
        MITR.from_pretrained(saved)


@pytest.mark.parametrize("source", ["no/such/folder", "./nowhere", "justaname"])
def test_a_source_that_is_neither_folder_nor_hub_name_is_refused(source: str) -> None:
    with pytest.raises(InvalidFile, match="is no folder"):
        MITR.from_pretrained(source)
