"""From a store to a model with an eye of its own, at a scale of seconds."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from saywhere.build.coco import FIELDS, KIND
from saywhere.build.model import (
    WRITER,
    FrozenParts,
    ModelSettings,
    around_recipe,
    build_model,
    eye_recipe,
    pixel_recipe,
    reward_recipe,
)
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.language.vocabulary import Vocabulary
from saywhere.learn.recipe import read_recipe
from saywhere.learn.registry import check_sections
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.patchioner.config import DecoderConfig
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.seer_config import read_config, save_config
from saywhere.store import Store, StoreWriter
from saywhere.vision.eye import ready_to_tune
from tests.build.test_eye_features import CONFIG, Brightness, LengthEncoder
from tests.build.test_eye_things import OneThing
from tests.models.test_patchioner_seer import CONFIG as SEER

SETTINGS = ModelSettings(
    steps=4,
    around_steps=3,
    reward_steps=2,
    text_steps=2,
    batch=4,
    reward_batch=4,
    eye=(("layers", 1), ("heads", 2), ("start", "random"), ("kept_share", 0.75)),
)


def frozen(trunk: Brightness) -> FrozenParts:
    encoder: Any = LengthEncoder()
    return FrozenParts(trunk, {"trunk": "brightness"}, encoder, OneThing(), CONFIG)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as writer:
        for number in range(10):
            file = BytesIO()
            Image.new("RGB", (40, 30), (20 * number,) * 3).save(file, "JPEG")
            writer.add(
                f"{number:012}",
                jpeg=b"no picture" if number == 3 else file.getvalue(),
                boxes_xyxy=np.array([[0.1, 0.2, 0.5, 0.6]], np.float32),
                classes=[number],
                captions=["a cat on a table", "two cats on a table"][: 1 + number % 2],
                split="validation" if number > 7 else "train",
            )
    return Store(tmp_path / "coco")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A model with a memory and a writer of texts, whose vectors have five numbers."""
    folder = tmp_path / "base"
    words = Vocabulary.of_words(["a cat on a table", "two cats on a table"])
    shape = DecoderConfig(len(words), 5, width=8, layers=1, heads=2, feed_forward=8, max_words=20)
    PrefixDecoder.fresh(shape, words, 0).save_pretrained(folder / "decoder")
    MemoryBank(np.eye(5)[:2], ["a cat", "two cats"]).save(folder / "memory.safetensors")
    save_config(folder, SEER | {"detector": False, "writers": {"zero-shot": "decoder"}})
    return folder


def test_a_store_becomes_a_model_and_what_is_done_is_not_done_again(store: Store, base: Path, tmp_path: Path) -> None:
    trunk = Brightness()
    work: Any = (tmp_path / "work", frozen(trunk), SETTINGS)
    for out in ("one", "two"):
        assert build_model(store, base, tmp_path / out, *work, lambda *_: None) == ("000000000003",)
    # Nine photos to look at, and nine to see how hidden states are spread.
    assert trunk.seen == 18
    config = read_config(tmp_path / "one")
    assert (config.encoder, list(config.writers)) == ("eye", [WRITER, "zero-shot"])
    eye = EyeLearner.from_pretrained(tmp_path / "one" / "eye")
    writer = PrefixDecoder.from_pretrained(tmp_path / "one" / WRITER)
    assert writer.config.states_size == eye.eye.config.size
    weights = [(tmp_path / out / WRITER / "model.safetensors").read_bytes() for out in ("one", "two")]
    assert weights[0] == weights[1]


def test_without_reward_the_writer_is_what_learnt_beside_the_eye(store: Store, base: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, reward_steps=0)
    work: Any = (tmp_path / "work", frozen(Brightness()), settings)
    build_model(store, base, tmp_path / "out", *work, lambda *_: None)
    assert not (tmp_path / "work" / "reward").exists()
    learnt = PrefixDecoder.from_pretrained(tmp_path / "work" / "learnt-around")
    before = PrefixDecoder.from_pretrained(tmp_path / "work" / "learnt")
    assert not torch.equal(learnt.words.weight, before.words.weight)
    assert list(read_config(tmp_path / "out").writers) == [WRITER, "zero-shot"]


def test_recipes_are_checked_before_work_starts(base: Path) -> None:
    (base / "eye").mkdir()
    for recipe in (
        eye_recipe(base, base, ModelSettings()),
        around_recipe(base, base, ModelSettings()),
        reward_recipe(base, base, replace(ModelSettings(), reward_steps=9)),
    ):
        model, data = check_sections(recipe, recipe.name)
        assert data.folder == base
        assert (model.eye is None) == (recipe.task == "patchioner-photo-reward")


@pytest.mark.parametrize(("part", "what"), [("answer_steps", "questions"), ("referring_epochs", "expressions")])
def test_what_a_part_lacks_is_said_before_anything_is_looked_at(
    store: Store, base: Path, tmp_path: Path, part: str, what: str
) -> None:
    trunk, settings = Brightness(), replace(SETTINGS, **{part: 1})
    work: Any = (tmp_path / "work", frozen(trunk), settings)
    with pytest.raises(InvalidFile, match=what):
        build_model(store, base, tmp_path / "out", *work, lambda *_: None)
    assert trunk.seen == 0


def test_a_model_may_begin_with_an_eye_that_learnt_elsewhere(store: Store, base: Path, tmp_path: Path) -> None:
    work: Any = (tmp_path / "work", frozen(Brightness()), SETTINGS)
    build_model(store, base, tmp_path / "one", *work, lambda *_: None)
    again, trunk = replace(SETTINGS, start=tmp_path / "work" / "learnt-around", reward_steps=0), Brightness()
    build_model(store, base, tmp_path / "two", tmp_path / "other", frozen(trunk), again, lambda *_: None)
    assert not (tmp_path / "other" / "eye").exists()
    weights = [(tmp_path / out / "eye" / "model.safetensors").read_bytes() for out in ("one", "two")]
    assert weights[0] == weights[1]


def test_a_trunk_that_was_tuned_looks_at_every_photo_itself(store: Store, base: Path, tmp_path: Path) -> None:
    work: Any = (tmp_path / "work", frozen(Brightness()), SETTINGS)
    build_model(store, base, tmp_path / "one", *work, lambda *_: None)
    learner = EyeLearner.from_pretrained(tmp_path / "work" / "learnt-around" / "eye")
    learner.eye = ready_to_tune(learner.eye, 2, 1)
    start = tmp_path / "start"
    PrefixDecoder.from_pretrained(tmp_path / "work" / "learnt-around").save_pretrained(start)
    learner.save_pretrained(start / "eye")
    settings, plain, tuned = replace(SETTINGS, start=start, reward_steps=0), Brightness(), Brightness()
    opening: Any = lambda eye: (tuned, {"tuned": eye.config.tuned_rank})  # noqa: E731
    parts = replace(frozen(plain), open_tuned=opening)
    build_model(store, base, tmp_path / "two", tmp_path / "other", parts, settings, lambda *_: None)
    assert (plain.seen, tuned.seen) == (0, 18)
    with pytest.raises(InvalidValue, match="cannot be opened"):
        build_model(store, base, tmp_path / "3", tmp_path / "third", frozen(plain), settings, lambda *_: None)


def test_the_recipe_from_pixels_is_the_one_that_is_written_down(base: Path) -> None:
    ours = pixel_recipe(base, base, base, replace(ModelSettings(), pixel_steps=9))
    written = read_recipe(Path("recipes/eye-from-pixels.toml"))
    assert ours.model["eye"] == {**written.model["eye"], "layers": 4}
    assert {**ours.model, "eye": 0, "dropout": 0.1} == {**written.model, "eye": 0}
