"""MITR under the trainer: prepared narratives, recipes, and what a run gives back."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.learn import evaluate, load_recipe, load_run, make_task, train
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, baseline, collate, decode
from saywhere.models.mitr.layers import masked_boxes, shifted_words
from saywhere.models.mitr.losses import caption_loss, trace_loss
from saywhere.models.mitr.prepared import Prepared
from tests.models.small import SAID, save_narratives


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_narratives(tmp_path / "data")
    return tmp_path / "data"


def recipe(folder: Path, model: str = "", steps: int = 6) -> Path:
    path = folder.parent / "recipe.toml"
    path.write_text(
        f'name = "tiny"\ntask = "mitr"\nseed = 3\n[model]\nwidth = 8\nheads = 2\nfeed_forward = 16\n{model}\n'
        f'[data]\nfolder = "{folder}"\n[train]\nsteps = {steps}\nbatch_size = 4\nlr = 1e-2\nnum_threads = 1\n'
        '[validate]\nevery_steps = 3\nmetric = "loss"\n[checkpoint]\nevery_steps = 3\n[log]\nplot = false\n'
    )
    return path


def test_prepared_narratives_come_back_as_they_were(folder: Path) -> None:
    prepared = Prepared(folder)
    assert [len(prepared.split(s)) for s in ("train", "validation", "test")] == [16, 4, 4]
    test = prepared.split("test")
    assert test.image_name(0) == "photo 20"
    assert prepared.vocabulary.text(test[0].words.tolist()) == SAID[20 % len(SAID)]
    assert test[0].image.features.shape == (3, 6)
    assert len(prepared.split("train", 5)) == 5
    assert prepared.about == {"made": "here"}


def test_a_folder_that_was_not_finished_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "index.json").unlink()
    with pytest.raises(InvalidFile, match="not a folder of prepared narratives"):
        Prepared(folder)
    with pytest.raises(InvalidFile, match="not a folder of prepared narratives"):
        Prepared(tmp_path / "nowhere")


def test_an_unknown_split_is_refused(folder: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'train'"):
        Prepared(folder).split("trian")


@pytest.mark.parametrize(
    ("model", "terms"),
    [
        ("", {"loss", "trace", "caption", "cycle", "joint_caption", "joint_trace"}),
        ("cycle = 0.0\njoint = 0.0", {"loss", "trace", "caption"}),
        ('baseline = "trace"', {"loss", "trace"}),
        ('baseline = "caption"', {"loss", "caption"}),
        ('baseline = "describe"', {"loss", "caption"}),
        ("guided = 6\ntrace = 0.0\ncycle = 0.0\njoint = 0.0", {"loss", "caption"}),
        ('baseline = "caption"\nguided = 6\ntrace = 0.0\ncycle = 0.0\njoint = 0.0', {"loss", "caption"}),
    ],
)
def test_every_kind_of_row_trains_and_is_measured(folder: Path, tmp_path: Path, model: str, terms: set[str]) -> None:
    result = train(recipe(folder, model), tmp_path / "run")
    assert result.status == "finished"
    metrics = evaluate(tmp_path / "run", "last")["metrics"]
    assert set(metrics) == terms
    assert all(np.isfinite(value) for value in metrics.values())
    assert metrics == pytest.approx(result.metrics)


def test_a_guided_caption_baseline_reads_as_many_boxes_whatever_the_caption(folder: Path) -> None:
    only = "\ntrace = 0.0\ncycle = 0.0\njoint = 0.0"
    task = make_task(load_recipe(recipe(folder, f'baseline = "caption"\nguided = 6{only}')))
    model = task.build(torch.Generator().manual_seed(0)).eval()
    batch = collate([task.train_items()[i] for i in (0, 1)])
    assert isinstance(model, baseline.Baseline)
    with torch.no_grad():
        loss = task.losses(model, batch, torch.Generator())["loss"]
        whole = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0]).repeat(2, 6, 1)
        for i, length in enumerate(batch.lengths.tolist()):
            whole[i, :length] = batch.boxes[i, :length]
        source = model.encode(batch.images, batch.words, whole, torch.tensor([6, 6]))
        read, rows = shifted_words(batch.words, batch.lengths)
        real = padding_mask(batch.lengths + 1, read.shape[1])
        wanted = caption_loss(model.decode(source, read), rows, real)
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-6)
    with pytest.raises(InvalidValue, match="'trace' baseline writes nothing"):
        make_task(load_recipe(recipe(folder, f'baseline = "trace"\nguided = 6\ncaption = 1.0{only}')))


def test_a_trace_baseline_whose_boxes_are_hidden_reads_none_of_them(folder: Path) -> None:
    items = Prepared(folder).split("train")
    batch = collate([items[i] for i in range(4)])
    moved = dataclasses.replace(batch, boxes=batch.boxes.flip(1))
    task = make_task(load_recipe(recipe(folder, 'baseline = "trace"\ntrace_mask_rate = 1.0')))
    model = task.build(torch.Generator().manual_seed(0)).eval()
    source = model.encode(batch.images, batch.words, batch.boxes, batch.lengths)
    hidden = [masked_boxes(one.boxes, 1.0, torch.Generator().manual_seed(0)) for one in (batch, moved)]
    assert torch.equal(model.decode(source, hidden[0]), model.decode(source, hidden[1]))
    shown = [model.decode(source, one.boxes) for one in (batch, moved)]
    assert not torch.equal(shown[0], shown[1])
    losses = [float(task.losses(model, batch, torch.Generator().manual_seed(0))["loss"].detach())]
    task_shown = make_task(load_recipe(recipe(folder, 'baseline = "trace"')))
    losses.append(float(task_shown.losses(model, batch, torch.Generator().manual_seed(0))["loss"].detach()))
    assert losses[0] != losses[1]


@pytest.mark.parametrize("model", ["cycle = 0.0", 'baseline = "trace"'])
def test_boxes_found_without_the_ones_before_are_those_of_training_with_all_hidden(folder: Path, model: str) -> None:
    task = make_task(load_recipe(recipe(folder, model + "\ntrace_mask_rate = 1.0")))
    network = task.build(torch.Generator().manual_seed(0)).eval()
    batch = collate([task.train_items()[i] for i in range(4)])
    if isinstance(network, MITR):
        found = decode.trace(network, network.encode_images(batch.images), batch.words, batch.lengths, hidden=True)
    else:
        source = network.encode(batch.images, batch.words, batch.boxes, batch.lengths)
        found = baseline.trace(network, source, batch.lengths, hidden=True)
    wanted = task.losses(network, batch, torch.Generator().manual_seed(0))["trace"]
    assert float(trace_loss(found, batch.boxes, batch.located)) == pytest.approx(float(wanted.detach()), abs=1e-6)
    assert (found[0, int(batch.lengths[0]) :] == 0).all()


def test_a_trained_mitr_speaks_with_the_vocabulary_it_learnt(folder: Path, tmp_path: Path) -> None:
    train(recipe(folder, "cycle = 0.0", steps=3), tmp_path / "run")
    model = load_run(tmp_path / "run").model
    assert isinstance(model, MITR)
    assert model.vocabulary == Prepared(folder).vocabulary


def test_a_task_gives_the_same_losses_for_the_same_noise(folder: Path) -> None:
    task = make_task(load_recipe(recipe(folder)))
    model = task.build(torch.Generator().manual_seed(0))
    batch = collate([task.train_items()[i] for i in range(4)])
    first, second = (task.losses(model, batch, torch.Generator().manual_seed(1)) for _ in range(2))
    assert {k: float(v.detach()) for k, v in first.items()} == {k: float(v.detach()) for k, v in second.items()}


@pytest.mark.parametrize(
    ("model", "reason"),
    [("widht = 8", "width"), ('layers = "two"', "layers"), ("layers = 1.5", "layers"), ("cycle = true", "cycle")],
)
def test_a_recipe_with_a_wrong_key_or_type_names_it(folder: Path, model: str, reason: str) -> None:
    with pytest.raises(InvalidFile, match=reason):
        load_recipe(recipe(folder, model))


@pytest.mark.parametrize("name", ["mitr-paper.toml", "mitr-world.toml"])
def test_the_recipes_that_come_with_saywhere_are_valid_but_for_their_data(name: str, folder: Path) -> None:
    path = Path(__file__).resolve().parents[2] / "recipes" / name
    found = load_recipe(path, [f'data.folder="{folder}"'])
    assert found.task == "mitr"
