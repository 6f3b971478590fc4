"""UpDn under the trainer: recipes, learning, measures, and runs that give their model back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import plain_words
from saywhere.learn import evaluate, known_tasks, load_recipe, load_run, make_task, register, train
from saywhere.metrics import vqa_accuracy
from saywhere.models.search import GenerationConfig
from saywhere.models.updown import (
    Answerer,
    Captions,
    PreparedQuestion,
    Questions,
    RegionFeatures,
    UpDnCaptioner,
    UpDnVqa,
    caption,
    caption_loss,
    collate_captions,
    collate_questions,
    save_questions,
)
from saywhere.models.updown.task import answer_sums, caption_sums
from tests.models import updown_small as small

SPLITS = ("train",) * 12 + ("validation",) * 4
SIZES = {"vqa": "embedding = 6\nwidth = 12", "caption": "embedding = 6\nwidth = 12\nattention = 8"}
SAVE: dict[str, Callable[..., object]] = {
    "vqa": small.save_coloured_questions,
    "caption": small.save_coloured_captions,
}


@pytest.fixture(autouse=True, scope="module")
def _known() -> None:
    register("updown-vqa", "saywhere.models.updown.task:UpDnVqaTask")
    register("updown-caption", "saywhere.models.updown.task:UpDnCaptionTask")


def recipe(tmp_path: Path, kind: str, steps: int = 6, model: str = "", train_more: str = "", data: str = "") -> Path:
    folder = tmp_path / "data"
    if not folder.exists():
        SAVE[kind](folder, SPLITS)
    path = tmp_path / "recipe.toml"
    path.write_text(
        f'name = "tiny"\ntask = "updown-{kind}"\nseed = 3\n[model]\n{SIZES[kind]}\n{model}\n'
        f'[data]\nfolder = "{folder}"\n{data}\n[train]\nsteps = {steps}\nbatch_size = 4\nlr = 1e-2\nnum_threads = 1\n'
        f'{train_more}\n[validate]\nevery_steps = 3\nmetric = "loss"\n[checkpoint]\nevery_steps = 3\n'
        "[log]\nplot = false\n"
    )
    return path


@pytest.mark.parametrize(
    ("kind", "model", "names"),
    [
        ("vqa", "", {"loss", "accuracy", "accuracy_other"}),
        ("vqa", "use_boxes = true", {"loss", "accuracy", "accuracy_other"}),
        ("caption", "", {"loss"}),
        ("caption", "use_boxes = true", {"loss"}),
    ],
)
def test_a_tiny_recipe_trains_and_is_measured(tmp_path: Path, kind: str, model: str, names: set[str]) -> None:
    result = train(recipe(tmp_path, kind, model=model), tmp_path / "run")
    assert result.status == "finished"
    metrics = evaluate(tmp_path / "run", "last")["metrics"]
    assert set(metrics) == names
    assert all(np.isfinite(value) for value in metrics.values())
    assert metrics == pytest.approx(result.metrics)


def test_a_trained_answerer_comes_back_with_its_vocabularies(tmp_path: Path) -> None:
    train(recipe(tmp_path, "vqa", steps=3), tmp_path / "run")
    run = load_run(tmp_path / "run", "last")
    assert isinstance(run.model, UpDnVqa)
    prepared = Questions(tmp_path / "data")
    assert (run.model.vocabulary, run.model.answers) == (prepared.vocabulary, prepared.answers)
    assert len(Answerer(run.model).answer([prepared.regions(0)], ["What color is the cup?"])) == 1


def test_a_trained_captioner_speaks_with_the_vocabulary_it_learnt(tmp_path: Path) -> None:
    train(recipe(tmp_path, "caption", steps=3), tmp_path / "run")
    model = load_run(tmp_path / "run", "last").model
    assert isinstance(model, UpDnCaptioner)
    assert model.vocabulary == Captions(tmp_path / "data").vocabulary


def _learnt(tmp_path: Path, kind: str, steps: int) -> tuple[torch.nn.Module, float, float]:
    """A model after so many steps on all training items, with the loss before and after."""
    task = make_task(load_recipe(recipe(tmp_path, kind, model=NO_DROPOUT[kind])))
    model = task.build(torch.Generator().manual_seed(0))
    items = task.train_items()
    generator = torch.Generator().manual_seed(0)
    batch = task.collate([items[i] for i in range(len(items))], generator)
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    losses = []
    for _ in range(steps):
        loss = task.losses(model, batch, generator)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return model.eval(), losses[0], losses[-1]


NO_DROPOUT = {"vqa": "dropout = 0.0\nanswer_dropout = 0.0", "caption": "dropout = 0.0"}


def test_a_tiny_network_learns_a_few_questions_by_heart(tmp_path: Path) -> None:
    model, before, after = _learnt(tmp_path, "vqa", 80)
    assert after < 0.05 * before
    assert isinstance(model, UpDnVqa)
    assert answer_sums(model, Questions(tmp_path / "data").split("train")).means()["accuracy"] == 1


def test_a_tiny_captioner_learns_a_few_captions_by_heart(tmp_path: Path) -> None:
    model, before, after = _learnt(tmp_path, "caption", 120)
    assert after < 0.2 * before
    assert isinstance(model, UpDnCaptioner)
    prepared = Captions(tmp_path / "data")
    told = caption(model, [prepared.regions(i) for i in range(12)], GenerationConfig("beam", beams=3))
    wanted = [plain_words(prepared.caption(i).text) for i in range(12)]
    assert sum(one.text.split() == words for (one, _), words in zip(told, wanted, strict=True)) >= 10


def test_accuracy_with_ten_people_is_the_official_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    people = [tuple(rng.choice(["yes", "no", "a cup", "two"], 10).tolist()) for _ in range(12)]
    images = {f"{i}": RegionFeatures(rng.normal(size=(2, 6)), small.boxes_xyxy(rng, 2)) for i in range(12)}
    kinds = ["yes/no", "number", "other"] * 4
    given = [
        PreparedQuestion(f"{i}", f"{i}", "train", f"is it {i}?", "is it", kind, said)
        for i, (said, kind) in enumerate(zip(people, kinds, strict=True))
    ]
    save_questions(tmp_path / "data", images, given, {}, least_count=1)
    task = make_task(load_recipe(recipe(tmp_path, "vqa", data='validation_split = "train"')))
    model = task.build(torch.Generator().manual_seed(0)).eval()
    metrics = task.validate(model)
    said = Answerer(model).answer(list(images.values()), [one.text for one in given])
    official = vqa_accuracy([one.text for one in said], people, kinds)
    assert metrics["accuracy"] == pytest.approx(official.overall)
    for kind, accuracy in official.by_answer_type.items():
        assert metrics[f"accuracy_{kind}"] == pytest.approx(accuracy)
    assert 0 < official.overall < 1


def test_a_measure_does_not_depend_on_the_batches_it_is_taken_in(tmp_path: Path) -> None:
    task = make_task(load_recipe(recipe(tmp_path, "vqa")))
    model = task.build(torch.Generator().manual_seed(0)).eval()
    items = Questions(tmp_path / "data").split("train")
    assert isinstance(model, UpDnVqa)
    assert answer_sums(model, items, 5).means() == pytest.approx(answer_sums(model, items, 12).means())


def test_the_measure_of_captions_is_a_mean_over_all_their_words(tmp_path: Path) -> None:
    task = make_task(load_recipe(recipe(tmp_path, "caption")))
    model = task.build(torch.Generator().manual_seed(0)).eval()
    items = Captions(tmp_path / "data").split("train")
    batch = collate_captions(list(items))
    assert isinstance(model, UpDnCaptioner)
    with torch.no_grad():
        wanted = float(caption_loss(model(batch.regions, batch.present, batch.words).logits, batch.targets))
    assert caption_sums(model, items, 12).means()["loss"] == pytest.approx(wanted)
    assert caption_sums(model, items, 1).means()["loss"] == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["vqa", "caption"])
def test_a_task_gives_the_same_losses_for_the_same_noise_and_others_for_other(tmp_path: Path, kind: str) -> None:
    task = make_task(load_recipe(recipe(tmp_path, kind)))
    model = task.build(torch.Generator().manual_seed(0)).train()
    collate = collate_questions if kind == "vqa" else collate_captions
    batch = collate([task.train_items()[i] for i in range(4)])  # type: ignore[operator]
    losses = [
        float(task.losses(model, batch, torch.Generator().manual_seed(seed))["loss"].detach()) for seed in (1, 1, 2)
    ]
    assert losses[0] == losses[1] != losses[2]


def test_an_unknown_word_says_nothing_at_first(tmp_path: Path) -> None:
    task = make_task(load_recipe(recipe(tmp_path, "vqa")))
    model = task.build(torch.Generator().manual_seed(0))
    assert isinstance(model, UpDnVqa)
    unknown = Questions(tmp_path / "data").vocabulary.unknown_id
    assert (model.words.weight[unknown] == 0).all()


@pytest.mark.parametrize("kind", ["vqa", "caption"])
def test_a_model_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    task = make_task(load_recipe(recipe(tmp_path, kind)))
    with pytest.raises(InvalidValue, match="is a Linear, not an UpDn"):
        task.validate(torch.nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("model", "reason"), [("widht = 8", "width"), ("embedding = 1.5", "embedding"), ("use_boxes = 1", "use_boxes")]
)
def test_a_recipe_with_a_wrong_key_or_type_names_it(tmp_path: Path, model: str, reason: str) -> None:
    path = recipe(tmp_path, "vqa")
    path.write_text(path.read_text().replace(SIZES["vqa"], model))
    with pytest.raises(InvalidFile, match=reason):
        load_recipe(path)


def test_a_recipe_measured_on_a_split_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'validation'"):
        make_task(load_recipe(recipe(tmp_path, "vqa", data='validation_split = "validatoin"')))


@pytest.mark.parametrize("name", ["updown-vqa", "updown-caption", "hint-vqa"])
def test_the_recipes_that_come_with_saywhere_are_valid_but_for_their_data(name: str, tmp_path: Path) -> None:
    path = Path(__file__).resolve().parents[2] / "recipes" / f"{name}.toml"
    there = [f'data.folder="{tmp_path}"', *([f'train.init_from="{tmp_path}"'] if name == "hint-vqa" else [])]
    assert load_recipe(path, there).task == name
    assert name in known_tasks()
