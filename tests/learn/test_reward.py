"""Tuning a decoder by reward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saywhere.core import InvalidValue
from saywhere.language.vocabulary import END_ID, PAD_ID, Vocabulary
from saywhere.learn import load_run, train
from saywhere.learn.recipe import parse_recipe
from saywhere.learn.reward import RewardSection, RewardTask, sample
from saywhere.models.patchioner.data import save_texts
from saywhere.models.patchioner.decoder import DecoderConfig, PrefixDecoder
from saywhere.models.patchioner.tasks import TextData

_THINGS = ("dog", "cat", "cup", "bus")
_SHAPE = {"width": 32, "layers": 1, "feed_forward": 64, "prefix": 1, "max_words": 6, "noise": (0.0, 0.0)}


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Four photos, three captions each; the vector tells the photo."""
    sentences, vectors, groups = [], [], []
    for number, thing in enumerate(_THINGS):
        for place in ("here", "there", "now"):
            sentences.append(f"a {thing} {place}")
            vectors.append(np.eye(4)[number] + 0.05)
            groups.append(number)
    vocabulary = Vocabulary.of_words(sentences)
    save_texts(tmp_path / "texts", sentences * 4, vectors * 4, vocabulary, {}, groups=groups * 4)
    return tmp_path / "texts"


def _task(texts: Path) -> RewardTask:
    section = RewardSection(**_SHAPE, heads=4, dropout=0.0, samples=6, sample_words=5)
    return RewardTask(section, TextData(folder=texts, held_out=4))


def _decoder(texts: Path) -> PrefixDecoder:
    return PrefixDecoder.fresh(_task(texts).config, Vocabulary.load(texts / "vocabulary.json"), seed=0)


def test_samples_end_once_and_are_padded_afterwards(texts: Path) -> None:
    drawn = sample(_decoder(texts), torch.randn(50, 4), 5, torch.Generator().manual_seed(0)).tolist()
    unknown = _decoder(texts).vocabulary.unknown_id
    for row in drawn:
        ends = [place for place, token in enumerate(row) if token == END_ID]
        assert len(ends) <= 1
        assert all(token == PAD_ID for token in row[ends[0] + 1 :]) if ends else PAD_ID not in row
        assert unknown not in row


def test_the_same_generator_draws_the_same_captions(texts: Path) -> None:
    model, vectors = _decoder(texts), torch.randn(8, 4)
    first, second = (sample(model, vectors, 5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)


def test_the_colder_the_drawing_the_likelier_its_words(texts: Path) -> None:
    model, vectors = _decoder(texts), torch.randn(1, 4).expand(200, 4)
    cold, warm = (sample(model, vectors, 5, torch.Generator().manual_seed(0), temperature=t) for t in (1e-4, 1.0))
    assert len(cold.unique(dim=0)) == 1
    assert len(warm.unique(dim=0)) > 20


def test_a_caption_of_the_photo_is_rewarded_more_than_that_of_another(texts: Path) -> None:
    task = _task(texts)
    words = {word: task.vocabulary.encode([word]).ids[0] for word in ("a", "dog", "cat", "here")}
    right, wrong = ([words["a"], words[thing], words["here"], END_ID] for thing in ("dog", "cat"))
    rewards = task._rewards(torch.tensor([right, wrong]), torch.tensor([0, 0]))
    assert rewards[0] > 1
    assert rewards[1] == 0  # what it shares with the truth is in every photo's captions


def test_training_by_reward_raises_the_reward(texts: Path, tmp_path: Path) -> None:
    table = {
        "name": "reward",
        "task": "patchioner-reward",
        "model": {**_SHAPE, "noise": [0.0, 0.0], "samples": 6, "sample_words": 5, "dropout": 0.0},
        "data": {"folder": str(texts), "held_out": 4},
        "train": {"steps": 40, "batch_size": 8, "lr": 1e-2, "device": "cpu", "num_threads": 1},
        "validate": {"every_steps": 40, "at_start": False},
        "log": {"plot": False},
    }
    train(parse_recipe(table, "test"), tmp_path / "run")
    model = load_run(tmp_path / "run", "last").model
    task = _task(texts)
    vectors, groups = torch.eye(4).add(0.05).repeat_interleave(20, 0), torch.arange(4).repeat_interleave(20)
    before, after = (
        task._rewards(sample(one, vectors, 5, torch.Generator().manual_seed(0)), groups).mean()
        for one in (_decoder(texts), model)
    )
    assert after > 2 * before


def test_texts_of_one_group_cannot_be_rewarded(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of_words(["a dog", "a cat"])
    save_texts(tmp_path / "t", ["a dog", "a cat"] * 3, np.eye(6), vocabulary, {}, groups=[0] * 6)
    with pytest.raises(InvalidValue, match="one group"):
        RewardTask(RewardSection(width=8, heads=2), TextData(folder=tmp_path / "t", held_out=2))


@pytest.mark.parametrize(
    ("values", "reason"),
    [({"samples": 1}, "samples"), ({"sample_words": 99}, "sample_words"), ({"sample_temperature": 0.0}, "temperature")],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        RewardSection(**values)


def test_the_decoder_goes_on_from_its_steps_as_it_reads_whole(texts: Path) -> None:
    model = _decoder(texts).eval()
    assert isinstance(model.config, DecoderConfig)
    vectors, words = torch.randn(2, 4), torch.tensor([[1, 4, 5], [1, 5, 4]])
    with torch.no_grad():
        steps = model.steps(vectors, words[:, :1], 4)
        steps.start()
        for place in (1, 2):
            scores = steps.advance(words[:, place] - END_ID)
        torch.testing.assert_close(scores, model(vectors, words)[:, -1], atol=1e-5, rtol=1e-5)
