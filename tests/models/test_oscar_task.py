"""Oscar under the trainer: from nothing, from a BERT, and from objects to scenes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.learn import evaluate, known_tasks, load_recipe, load_run, make_task, train
from saywhere.models.oscar import LevelCaption, LevelCaptions, Oscar, save_level_captions
from saywhere.models.oscar.task import OscarTask, word_sums
from tests.models import oscar_small as small
from tests.models.test_oscar_pretrained import save_bert

SPLITS = ("train",) * 12 + ("validation",) * 4
SIZES = "width = 16\nlayers = 2\nheads = 2\nfeed_forward = 24\ndropout = 0.0\nattention_dropout = 0.0"


def recipe(tmp_path: Path, model: str = SIZES, data: str = "", steps: int = 4, train_more: str = "") -> Path:
    folder = tmp_path / "data"
    if not folder.exists():
        small.save_captions(folder, SPLITS)
    path = tmp_path / "recipe.toml"
    path.write_text(
        f'name = "tiny"\ntask = "oscar"\nseed = 3\n[model]\n{model}\n[data]\nfolder = "{folder}"\n{data}\n'
        f"[train]\nsteps = {steps}\nbatch_size = 6\nlr = 5e-3\nnum_threads = 1\n{train_more}\n"
        '[validate]\nevery_steps = 2\nmetric = "loss"\n[checkpoint]\nevery_steps = 2\n[log]\nplot = false\n'
    )
    return path


def task(tmp_path: Path, model: str = SIZES, data: str = "") -> OscarTask:
    made = make_task(load_recipe(recipe(tmp_path, model, data)))
    assert isinstance(made, OscarTask)
    return made


def built(made: OscarTask, seed: int = 0) -> Oscar:
    model = made.build(torch.Generator().manual_seed(seed))
    assert isinstance(model, Oscar)
    return model


def learnt(made: OscarTask, model: Oscar, steps: int) -> list[float]:
    """The losses of so many steps on all training captions."""
    items, generator = made.train_items(), torch.Generator().manual_seed(0)
    batch = made.collate(list(items), generator)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(steps):
        loss = made.losses(model, batch, generator)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def test_the_trainer_knows_oscar() -> None:
    assert "oscar" in known_tasks()


@pytest.mark.parametrize(
    ("model", "data", "names"),
    [
        (SIZES, 'levels = ["object"]', {"loss", "accuracy"}),
        (
            SIZES + "\nevery_word = true",
            "",
            {f"{a}{b}" for a in ("loss", "accuracy") for b in ("", "_object", "_scene")},
        ),
    ],
)
def test_a_tiny_recipe_trains_and_is_measured(tmp_path: Path, model: str, data: str, names: set[str]) -> None:
    result = train(recipe(tmp_path, model, data), tmp_path / "run")
    assert result.status == "finished"
    metrics = evaluate(tmp_path / "run", "last")["metrics"]
    assert set(metrics) == names
    assert all(np.isfinite(value) for value in metrics.values())
    assert metrics == pytest.approx(result.metrics)
    network = load_run(tmp_path / "run", "last").model
    assert isinstance(network, Oscar)
    assert len(network.write([LevelCaptions(tmp_path / "data").image("photo 0")])) == 1


def test_a_tiny_network_learns_both_levels_by_heart(tmp_path: Path) -> None:
    made = task(tmp_path, SIZES + "\nsmoothing = 0.0\nevery_word = true")
    model = built(made)
    learnt(made, model, 120)
    prepared = LevelCaptions(tmp_path / "data")
    for level in ("object", "scene"):
        captions = prepared.split("train", [level]).captions
        said = model.write([prepared.image(one.image) for one in captions], level)
        assert sum(a.text == b.text.lower() for a, b in zip(said, captions, strict=True)) >= 11


def test_hiding_a_few_words_teaches_too(tmp_path: Path) -> None:
    made = task(tmp_path, SIZES)
    model = built(made)
    losses = learnt(made, model, 60)
    assert np.mean(losses[-5:]) < 0.6 * losses[0]
    image = LevelCaptions(tmp_path / "data").image("photo 0")
    assert model.write([image], "scene")[0].text.startswith("the picture is taken in a")


def test_scenes_are_learnt_from_a_saved_network_and_objects_stay_what_they_were(tmp_path: Path) -> None:
    first = built(task(tmp_path, SIZES + '\nlevels = ["object"]', 'levels = ["object"]'))
    first.save_pretrained(tmp_path / "object")
    start = f'start = "{tmp_path / "object"}"\nevery_word = true'
    plain = task(tmp_path, start + '\nlevels = ["scene"]', 'levels = ["scene"]')
    assert plain.config.levels == ("scene",)
    tuned = built(plain)
    prepared = LevelCaptions(tmp_path / "data")
    seen = [prepared.image(name) for name in prepared.image_names("train")]
    assert tuned.write(seen) == first.eval().write(seen)
    losses = learnt(plain, tuned, 40)
    assert losses[-1] < 0.5 * losses[0]
    assert tuned.write(seen, "scene")[0].text.startswith("the picture is taken in a")
    both = task(tmp_path, start + '\nlevels = ["object", "scene"]')
    assert built(both).write(seen, "scene") == first.write(seen)
    # The saved network is not what is tuned.
    assert built(plain).write(seen) == first.write(seen)


def test_a_bert_is_a_start_too(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    save_bert(tmp_path / "bert")
    made = task(tmp_path, f'bert = "{tmp_path / "bert"}"\ndropout = 0.0\nattention_dropout = 0.0')
    model = built(made)
    assert model.config.levels == ("object", "scene")
    assert (model.config.dropout, model.config.region_size) == (0.0, small.REGION)
    losses = learnt(made, model, 5)
    assert losses[-1] < losses[0]
    assert not torch.equal(built(made, 1).regions.weight, built(made, 2).regions.weight)


def test_a_start_that_does_not_know_the_words_of_the_data_is_refused(tmp_path: Path) -> None:
    built(task(tmp_path)).save_pretrained(tmp_path / "object")
    prepared = LevelCaptions(tmp_path / "data")
    given = [LevelCaption(split, "a", split, "object", "a zebra on a lawn") for split in ("train", "validation")]
    save_level_captions(tmp_path / "other" / "data", {"a": prepared.image("photo 0")}, given, {})
    with pytest.raises(InvalidValue, match="does not know 3 words of the data: 'lawn', 'on', 'zebra'"):
        task(tmp_path / "other", f'start = "{tmp_path / "object"}"')


def test_a_start_with_other_features_is_refused(tmp_path: Path) -> None:
    small.network(region_size=9).save_pretrained(tmp_path / "object")
    with pytest.raises(InvalidValue, match="size 9; those of the data have 6"):
        task(tmp_path, f'start = "{tmp_path / "object"}"')


@pytest.mark.parametrize(
    ("model", "data", "error", "reason"),
    [
        ('bert = "x"\nstart = "y"', "", InvalidValue, "both given"),
        ('start = "y"\nwidth = 8', "", InvalidValue, "model.width"),
        (SIZES + '\nlevels = ["scene"]', "", UnknownName, "unknown caption level 'object'"),
        (SIZES, 'levels = ["scenes"]', UnknownName, "Did you mean 'scene'"),
        ("widht = 8", "", InvalidFile, "width"),
        ("width = 1.5", "", InvalidFile, "width"),
        (SIZES + "\nmost_masked = 0", "", InvalidValue, "most_masked"),
        ('start = "no/such/folder"', "", InvalidFile, "no folder"),
    ],
)
def test_a_recipe_that_cannot_be_names_what_is_wrong(
    tmp_path: Path, model: str, data: str, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        task(tmp_path, model, data)


def test_the_terms_that_are_counted_are_those_that_are_learnt(tmp_path: Path) -> None:
    for every in ("true", "false"):
        made = task(tmp_path, SIZES + f"\nevery_word = {every}")
        batch = made.collate(list(made.train_items()[:5]), torch.Generator())
        model = built(made).eval()
        losses = made.losses(model, batch, torch.Generator().manual_seed(0))
        assert set(made.counts(batch)) <= set(losses)
        wanted = (batch.lengths - 1).sum() if every == "true" else made.objective.hidden(batch.lengths).sum()
        assert made.counts(batch) == {"loss": float(wanted)}


def test_a_measure_is_a_mean_over_words_and_does_not_depend_on_batches(tmp_path: Path) -> None:
    made = task(tmp_path)
    model = built(made).eval()
    items = LevelCaptions(tmp_path / "data").split("train")
    wanted = word_sums(model, items, by_level=True, batch_size=3).means()
    assert word_sums(model, items, by_level=True, batch_size=24).means() == pytest.approx(wanted)
    scenes, objects = items.folder.split("train", ["scene"]), items.folder.split("train", ["object"])
    assert word_sums(model, scenes, by_level=False).means()["loss"] == pytest.approx(wanted["loss_scene"])
    sizes = [sum(len(model.reader.caption(one.text)) - 1 for one in part.captions) for part in (scenes, objects)]
    mean = (wanted["loss_scene"] * sizes[0] + wanted["loss_object"] * sizes[1]) / sum(sizes)
    assert wanted["loss"] == pytest.approx(mean)
    with pytest.raises(InvalidValue, match="none to measure on"):
        task(tmp_path, data="validation = 0").validate(model)


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="is a Linear, not an Oscar"):
        task(tmp_path).validate(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("name", ["oscar-object", "oscar-scene"])
def test_the_recipes_that_come_with_saywhere_are_valid_but_for_their_data(name: str, tmp_path: Path) -> None:
    path = Path(__file__).resolve().parents[2] / "recipes" / f"{name}.toml"
    assert load_recipe(path, [f'data.folder="{tmp_path}"']).task == "oscar"
