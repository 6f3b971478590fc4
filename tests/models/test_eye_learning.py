"""The eye learns what is planted in its features; its features keep what was put in; photos are read in part."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.learn import train
from saywhere.learn.recipe import parse_recipe
from saywhere.learn.records import Validated
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import EyeFeatures, EyeItem, Quantiser, photo_writer
from saywhere.models.eye.objective import EyeBatch, collate, drawn_patches, thinned
from saywhere.models.eye.task import EyeData, EyeSection, EyeTask, learner_of
from saywhere.vision.eye import EyeConfig
from tests.models import eye_small
from tests.models.eye_small import GRID, SIZE, TAPPED, TEXT, save_features

CONFIG = EyeConfig(size=SIZE, heads=2, text_size=TEXT, input_px=14 * GRID)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("eye")
    save_features(out, ("train",) * 90 + ("validation",) * 30)
    return out


def test_hidden_states_come_back_as_they_were_but_for_a_step() -> None:
    trunk_states = np.random.default_rng(1).normal(size=(5, 9, SIZE)).astype(np.float32) * 7 + 3
    quantiser = Quantiser.fit(trunk_states)
    again = quantiser.to_floats(quantiser.to_bytes(trunk_states))
    inside = np.abs(trunk_states - quantiser.mean) <= 127 * quantiser.step
    assert inside.mean() > 0.99
    assert (np.abs(again - trunk_states) <= 0.51 * quantiser.step)[inside].all()


def test_the_eye_learns_what_lies_where_and_what_people_say_of_it(folder: Path, tmp_path: Path) -> None:
    recipe = parse_recipe(
        {
            "name": "eye",
            "task": "eye",
            "model": {"heads": 2, "layers": 1, "start": "random", "others": 20},
            "data": {"folder": str(folder)},
            "train": {"steps": 60, "batch_size": 24, "lr": 3e-3, "device": "cpu"},
            "validate": {"metric": "box", "mode": "max", "every_steps": 60},
        },
        "test",
    )
    seen: list[Validated] = []

    train(recipe, tmp_path / "run", on_event=lambda one: seen.append(one) if isinstance(one, Validated) else None)
    before, after = seen[0].metrics, seen[-1].metrics
    assert after["box"] > 0.9 > before["box"]
    # A caption tells the kind alone, and about ten of the thirty photos show it.
    assert after["r10"] > before["r10"] + 0.15
    assert after["saliency_cc"] > 0.5


def test_items_are_those_of_their_split_alone(folder: Path) -> None:
    assert (len(EyeFeatures(folder, "train")), len(EyeFeatures(folder, "validation"))) == (90, 30)
    with pytest.raises(InvalidFile, match="test"):
        EyeFeatures(folder, "test")


def test_features_of_another_trunk_are_refused(folder: Path) -> None:
    quantiser = EyeFeatures(folder, "train").quantiser
    with pytest.raises(InvalidFile, match="trunk"):
        photo_writer(folder, quantiser, {"trunk": "another"})


def item(boxes: list[list[float]], classes: list[int], captions: int = 1) -> EyeItem:
    trunk_states = np.random.default_rng(2).normal(size=(1 + GRID**2, TAPPED)).astype(np.float32)
    vectors = np.ones((captions, TEXT), np.float32)
    return EyeItem(
        trunk_states,
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(classes, np.int64),
        vectors,
        np.zeros((0, TEXT), np.float32),
        None,
        np.zeros(0, np.int64),
    )


def collated(items: list[EyeItem]) -> EyeBatch:
    return collate(items, 3, 3, CONFIG, 9, torch.Generator())


def test_a_cell_shows_what_covers_half_of_it_and_a_small_thing_is_on_its_best_cell() -> None:
    one = item([[0, 0, 0.5, 0.5], [0.51, 0.51, 0.55, 0.55]], [1, 2])
    # (patches, cells, names), the cells of a patch together: by place again.
    shown = collated([one]).shown[0].reshape(GRID, GRID, 2, 2, 3).transpose(1, 2).reshape(2 * GRID, 2 * GRID, 3)
    assert shown[:4, :4, 1].all()
    assert shown[..., 1].sum() == 16
    assert shown[4, 4, 2] == 1
    assert shown[..., 2].sum() == 1


def test_cells_know_how_far_the_smallest_thing_around_them_reaches() -> None:
    one = item([[0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75]], [1, 2])
    batch = collated([one])
    reach = batch.reach[0].reshape(GRID, GRID, 2, 2, 4).transpose(1, 2).reshape(2 * GRID, 2 * GRID, 4)
    torch.testing.assert_close(reach[2, 3], torch.tensor([1.5, 0.5, 2.5, 3.5]))
    torch.testing.assert_close(reach[0, 0], torch.tensor([0.5, 0.5, 7.5, 7.5]))
    assert batch.central.max() == batch.central[0, 5, 3]


def test_a_thing_between_the_centres_of_cells_belongs_to_one() -> None:
    assert (collated([item([[0.01, 0.01, 0.03, 0.03]], [1])]).central > 0).sum() == 1


def test_photos_without_boxes_captions_or_looks_are_learnt_from_as_far_as_they_go(folder: Path) -> None:
    task = EyeTask(EyeSection(heads=2, layers=1, start="random", others=5), EyeData(folder=folder))
    learner = task.build(torch.Generator())
    batch = task.collate([item([], [], 0), item([], [], 0)], torch.Generator())
    losses = task.losses(learner, batch, torch.Generator())
    assert set(losses) == {"loss"}
    assert losses["loss"] == 0


def test_thinning_keeps_whole_rows_of_what_is_known_together(folder: Path) -> None:
    batch = collated([EyeFeatures(folder, "train")[i] for i in range(6)])
    thin = thinned(batch, drawn_patches(6, GRID**2, 7, torch.Generator().manual_seed(3)))
    assert thin.inputs.shape[1] == 8
    assert thin.shown.shape[1] == 7
    assert len(thin.cover) == len(thin.classes) == len(thin.photos)
    torch.testing.assert_close(thin.cover.sum(dim=(1, 2)), torch.ones(len(thin.cover)))
    # A box is still there exactly where the patch that shows its class is.
    for cover, kind, photo in zip(thin.cover, thin.classes, thin.photos, strict=True):
        assert thin.shown[photo, cover.sum(dim=1).argmax(), :, kind].all()


def test_a_start_that_is_not_known_is_refused(folder: Path) -> None:
    task = EyeTask(EyeSection(heads=2, layers=1, start="middle"), EyeData(folder=folder))
    with pytest.raises(InvalidValue, match="middle"):
        task.build(torch.Generator())


def test_a_learner_tells_what_its_eye_tells(folder: Path) -> None:
    task = EyeTask(EyeSection(heads=2, layers=1, start="random"), EyeData(folder=folder))
    learner = task.build(torch.Generator())
    assert isinstance(learner, EyeLearner)
    trunk_states = torch.from_numpy(EyeFeatures(folder, "train")[0].inputs)[None]
    torch.testing.assert_close(learner(trunk_states).patches, learner.eye(trunk_states).patches)


def test_an_eye_goes_on_with_the_words_of_other_data_and_keeps_what_it_knows_of_its_own(
    folder: Path, tmp_path: Path
) -> None:
    words = {"lamp": torch.eye(TEXT)[4], "cup": torch.eye(TEXT)[1]}
    earlier = eye_small.small_eye().with_words(words, torch.zeros(2))
    earlier.word_bias.data = torch.tensor([-1.0, -2.0])
    earlier.save_pretrained(tmp_path / "eye")
    task = EyeTask(EyeSection(heads=2, layers=1), EyeData(folder=folder, eye=tmp_path / "eye"))
    learner = learner_of(task.build(torch.Generator()))
    assert learner.words == EyeFeatures(folder, "train").words
    torch.testing.assert_close(learner.word_vectors, torch.eye(TEXT)[: len(eye_small.NAMES)])
    cup = learner.words.index("cup")
    assert learner.word_bias[cup] == -2
    assert (learner.word_bias[:cup] != -2).all()
    torch.testing.assert_close(learner.eye.state_dict(), earlier.eye.state_dict())
    assert all(value.requires_grad for value in learner.parameters())


def test_an_eye_that_calls_classes_otherwise_does_not_go_on(folder: Path, tmp_path: Path) -> None:
    other = eye_small.small_eye()
    other.names = tuple(reversed(other.names))
    other.save_pretrained(tmp_path / "eye")
    with pytest.raises(InvalidValue, match="other names"):
        EyeTask(EyeSection(heads=2, layers=1), EyeData(folder=folder, eye=tmp_path / "eye")).build(torch.Generator())


def test_a_trunk_learns_from_pixels_for_an_eye_that_learnt_before_or_not_at_all(folder: Path) -> None:
    tuned = EyeSection(tuned_blocks=1, tuned_rank=2)
    for section, data, what in (
        (tuned, EyeData(folder=folder), "go together"),
        (EyeSection(), EyeData(folder=folder, photos=folder), "go together"),
        (tuned, EyeData(folder=folder, photos=folder), "is missing"),
    ):
        with pytest.raises(InvalidValue, match=what):
            EyeTask(section, data)


def test_an_eye_whose_surroundings_are_none_of_its_words_is_refused(tmp_path: Path) -> None:
    eye_small.small_eye().save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    saved["config"]["around"] = ["sky"]
    (tmp_path / "config.json").write_text(json.dumps(saved))
    with pytest.raises(InvalidFile, match="'sky', which is none"):
        EyeLearner.from_pretrained(tmp_path)
