"""Recipes: read whole, complained about by file, section and key, before any work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.learn import Recipe, known_tasks, load_recipe, make_task, register, train
from saywhere.learn.recipe import changes_that_matter, parse_recipe
from saywhere.learn.schedule import Cosine


def test_a_recipe_is_read_with_defaults(tiny_file: Path) -> None:
    recipe = load_recipe(tiny_file)
    assert (recipe.name, recipe.seed, recipe.train.epochs, recipe.train.steps) == ("tiny", 3, 6, None)
    assert recipe.schedule == Cosine(warmup_steps=3)
    assert recipe.train.optimizer == "adamw"
    assert recipe.train.betas == (0.9, 0.999)


def test_a_recipe_survives_being_written_as_plain_tables(tiny: Callable[..., Recipe]) -> None:
    recipe = tiny("train.betas=[0.8, 0.9]", "schedule.floor=0.1")
    assert parse_recipe(recipe.to_table(), "again") == recipe


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["train.lrr=0.1"], "[train] lrr is not a known key (did you mean 'lr'?)"),
        (["trian.lr=0.1"], "trian is not a known key (did you mean 'train'?)"),
        (["schedule.flor=0.1"], "[schedule] flor is not a known key (did you mean 'floor'?)"),
        (["schedule.factor=0.1"], "[schedule] factor is not a known key (known here: floor, warmup_steps)"),
        (["schedule.kind=cosin"], "[schedule] kind is 'cosin' (did you mean 'cosine'?)"),
        (["model.hiden=3"], "[model] hiden is not a known key (did you mean 'hidden'?)"),
        (["data.extra.scal=3"], "[data] extra.scal is not a known key (did you mean 'scale'?)"),
        (["data.zzz=3"], "[data] zzz is not a known key (known here: bad_input, "),
        (["model.hidden=many"], "[model] hidden: Expected `int`, got `str`"),
        (["model.hidden=8.5"], "[model] hidden: Expected `int`, got `float`"),
        (["train.lr=fast"], "[train] lr: Expected `float`, got `str`"),
        (["train.lr=-1.0"], "[train] lr: Expected `float` > 0.0"),
        (["train.lr=nan"], "[train] lr: Expected `float`"),
        (["train.lr=inf"], "[train] lr: Expected `float`"),
        (["train.batch_size=0"], "[train] batch_size: Expected `int` >= 1"),
        (["train.batch_size=true"], "[train] batch_size: Expected `int`, got `bool`"),
        (["train.betas=[0.9, 1.0]"], "[train] betas[1]: Expected `float` < 1.0"),
        (["train.optimizer=sgd"], "[train] optimizer is 'sgd' (known here: adam, adamw)"),
        (["train.precision=fp8"], "[train] precision is 'fp8' (known here: bf16, fp16, fp32)"),
        (["train.ema_decay=1.0"], "[train] ema_decay: Expected `float` < 1.0"),
        (["train.steps=10"], "train: give either epochs or steps"),
        (["validate.every_steps=1", "validate.every_epochs=1"], "validate: give every_steps or every_epochs, not both"),
        (["seed=-1"], "seed: Expected `int` >= 0"),
        (["data.notes=missing.txt"], "[data] notes: no file or folder 'missing.txt' (looked in "),
        (["data.notes=5"], "[data] notes: Expected the path of a file or folder, got 5"),
        (["train.init_from=missing.safetensors"], "[train] init_from: no file or folder 'missing.safetensors'"),
    ],
)
def test_what_is_wrong_is_named_by_file_section_and_key(tiny_file: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        load_recipe(tiny_file, overrides)
    assert str(caught.value).startswith(f"{tiny_file}: {message}")


def test_patience_without_a_metric_is_refused(tiny_file: Path) -> None:
    tiny_file.write_text(tiny_file.read_text().replace('metric = "error"', "patience = 2"))
    with pytest.raises(InvalidFile, match="validate: patience needs a metric"):
        load_recipe(tiny_file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "tiny"', "", "name is missing"),
        ("lr = 0.01", "", "[train] lr is missing"),
        ('kind = "cosine"', "", "[schedule] kind is missing"),
        ("[train]", "[train", "is not TOML"),
        ("[train]", "[[train]]", "train: Expected `object`, got `array`"),
    ],
)
def test_a_broken_file_is_named(tiny_file: Path, old: str, new: str, message: str) -> None:
    tiny_file.write_text(tiny_file.read_text().replace(old, new))
    with pytest.raises(InvalidFile) as caught:
        load_recipe(tiny_file)
    assert str(caught.value).startswith(f"{tiny_file}: {message}")


def test_a_missing_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"nowhere\.toml: cannot be opened: No such file"):
        load_recipe(tmp_path / "nowhere.toml")


def test_a_recipe_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidFile, match="is not TOML"):
        load_recipe(tmp_path / "binary.toml")


def test_nothing_is_written_before_a_recipe_is_found_good(tiny_file: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile):
        train(tiny_file, tmp_path / "out", overrides=["train.lrr=1"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("model.dropout=0.5", 0.5),
        ("model.dropout = 1e-1", 0.1),
        ("name=plain words", "plain words"),
        ('name="quoted"', "quoted"),
        ("name=a\nb = 1", "a\nb = 1"),
        ("data.metric=[1.0, 2.0]", [1.0, 2.0]),
    ],
)
def test_overrides_are_toml_values_or_else_text(tiny: Callable[..., Recipe], assignment: str, value: object) -> None:
    table = tiny(assignment).to_table()
    for key in assignment.partition("=")[0].strip().split("."):
        table = table[key]
    assert table == value


@pytest.mark.parametrize("assignment", ["train.lr", "=3", "train..lr=3", "name.first=3"])
def test_an_override_of_the_wrong_form_is_refused(tiny: Callable[..., Recipe], assignment: str) -> None:
    with pytest.raises(InvalidValue, match="the override"):
        tiny(assignment)


def test_an_unknown_task_gets_the_nearest_name(tiny_file: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'tiny-regression'"):
        load_recipe(tiny_file, ["task=tiny-regresion"])


def test_tasks_are_registered_once_and_by_module_and_class() -> None:
    assert "tiny-regression" in known_tasks()
    register("tiny-regression", "tests.learn.tiny:TinyRegression")
    with pytest.raises(InvalidValue, match="already registered"):
        register("tiny-regression", "tests.learn.tiny:TinyWords")
    with pytest.raises(InvalidValue, match=r"not of the form 'package\.module:Class'"):
        register("wrong", "tests.learn.tiny")


def test_a_task_gets_its_own_tables_as_values(tiny: Callable[..., Recipe]) -> None:
    task = make_task(tiny("model.hidden=5", "data.extra.scale=2"))
    assert (task.model.hidden, task.data.extra.scale) == (5, 2.0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("overrides", "matters"),
    [
        (["log.every_steps=5", "checkpoint.keep=9", "train.num_threads=2", "validate.patience=3"], []),
        (["train.lr=0.5"], ["train.lr"]),
        (["model.hidden=4", "seed=9"], ["model.hidden", "seed"]),
        (["train.epochs=60"], ["train.epochs"]),
    ],
)
def test_only_what_past_steps_depend_on_must_stay(
    tiny: Callable[..., Recipe], overrides: list[str], matters: list[str]
) -> None:
    assert list(changes_that_matter(tiny(), tiny(*overrides))) == matters


def test_a_run_may_be_made_longer_if_its_rates_do_not_depend_on_its_length(tiny: Callable[..., Recipe]) -> None:
    step = parse_recipe(
        {**tiny().to_table(), "schedule": {"kind": "step", "every_epochs": 3, "factor": 0.8}},
        "step",
        ["train.epochs=3"],
    )
    assert changes_that_matter(step, step.with_overrides(["train.epochs=30"])) == {}
