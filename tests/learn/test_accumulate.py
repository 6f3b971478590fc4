"""A batch that is cut into parts has the loss and the gradient of the whole, for every task and shipped recipe."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from saywhere.build.matching import see_windows
from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import END_ID, PAD_ID
from saywhere.learn import Recipe, SharedValidation, known_tasks, make_task
from saywhere.learn.batches import Plan, load_steps
from saywhere.learn.learner import Learner, StepResult
from saywhere.learn.processes import Processes
from saywhere.learn.recipe import parse_recipe
from saywhere.models.common.sums import Sums
from saywhere.models.patchioner.data import save_pairs, save_texts
from tests.models import answerer_world, eye_small, oscar_small, updown_small
from tests.models.patchioner_small import SENTENCES, SIZE, embeddings, vocabulary
from tests.models.small import save_narratives
from tests.models.tracevlm import small as tracevlm_small
from tests.models.tracevlm import small_body

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
SPLITS = ("train",) * 16 + ("validation",) * 4


def _narratives(folder: Path) -> None:
    save_narratives(folder)


def _questions(folder: Path) -> None:
    updown_small.save_coloured_questions(folder, SPLITS)


def _captions(folder: Path) -> None:
    updown_small.save_coloured_captions(folder, SPLITS)


def _levels(folder: Path) -> None:
    oscar_small.save_captions(folder, SPLITS)


def _texts(folder: Path) -> None:
    longer = [sentence * (1 + i % 2) for i, sentence in enumerate(SENTENCES)]
    groups = np.arange(len(longer)) // 2
    save_texts(folder, longer, embeddings(SENTENCES), vocabulary(), {}, groups=groups)


def _pairs(folder: Path) -> None:
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(24), 1 + np.arange(24) % 4)
    save_pairs(folder, rng.standard_normal((24, 3, 10)), rng.standard_normal((len(owners), SIZE)), owners, {})


def _features(folder: Path) -> None:
    eye_small.save_features(folder, SPLITS)


def _told_photos(folder: Path) -> None:
    eye_small.save_captions(folder, SPLITS)


def _windows(folder: Path) -> None:
    eye_small.save_captions(folder, SPLITS)
    see_windows(folder, folder / "eye", folder / "windows", lambda *_: None, bf16=False)


def _instructions(folder: Path) -> None:
    tracevlm_small.save_data(folder)
    tracevlm_small.save_base(folder / "base")


# For each task: its data, and what makes it small and silences its noise, which differs from part to part.
MITR = {"width": 8, "heads": 2, "feed_forward": 16, "mask_rate": 0.0}
MITR |= {"dropout": 0.0, "attention_dropout": 0.0, "input_dropout": 0.0}
VQA = {"embedding": 5, "width": 8, "dropout": 0.0, "answer_dropout": 0.0}
CAPTION = {"embedding": 5, "width": 8, "attention": 7, "dropout": 0.0}
OSCAR = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 24, "dropout": 0.0, "attention_dropout": 0.0}
DECODER = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "max_words": 16, "dropout": 0.0}
DECODER |= {"noise": [0.0, 0.0], "project_rate": 1.0}
TRACEVLM = {"heads": 4, "code": 8, "mask_width": 16, "mask_heads": 2, "lora_rank": 2, "dtype": "float32"}
SMALL = {"width": 16, "heads": 2, "layers": 1, "expansion": 2, "blocks": 1, "tvp_heads": 2, "dropout": 0.0}
TASKS: dict[str, tuple[Callable[[Path], None], dict[str, Any], dict[str, Any]]] = {
    "eye": (_features, {"heads": 2, "layers": 1, "start": "random", "others": 5}, {}),
    "mitr": (_narratives, MITR, {}),
    "answerer": (
        answerer_world.save_data,
        {"width": 16, "layers": 1, "inner": 16, "dropout": 0.0, "answer_dropout": 0.0},
        {},
    ),
    "patchioner-matching": (
        _windows,
        {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "dropout": 0.0, "kept_share": 1.0},
        {"windows": "windows"},
    ),
    "patchioner-photo-reward": (
        _told_photos,
        {"boxes": 1, "dropout": 0.0, "named": 1.0, "samples": 5, "sample_words": 8, "naming": 0.0},
        {"eye": "eye", "decoder": "decoder"},
    ),
    "patchioner-photo-writer": (
        _told_photos,
        {"captions": 2, "boxes": 1, "dropout": 0.0, "shift": 0.0, "named": 1.0},
        {"eye": "eye", "decoder": "decoder"},
    ),
    "tracevlm": (_instructions, TRACEVLM, {}),
    "tracevlm-small": (small_body.save_data, SMALL, {"worse": False}),
    "updown-vqa": (_questions, VQA, {}),
    "updown-caption": (_captions, CAPTION, {}),
    "hint-vqa": (_questions, VQA | {"hint": {"share": 1.0}}, {}),
    "hint-caption": (_captions, CAPTION | {"hint": {"share": 1.0}, "hint_words": 0}, {}),
    "oscar": (_levels, OSCAR | {"every_word": True}, {}),
    "patchioner-decoder": (_texts, DECODER, {"held_out": 4}),
    "patchioner-reward": (_texts, DECODER | {"sample_words": 6}, {"held_out": 4}),
    "patchioner-alignment": (_pairs, {"dropout": 0.0}, {"held_out": 8}),
}

# A loss that compares all items of a batch with each other.
OF_THE_WHOLE_BATCH = {"eye", "patchioner-alignment", "patchioner-matching", "patchioner-photo-reward"}
# Validated by the first process alone: its measures are no means over items.
VALIDATED_ALONE = {"answerer", "eye", "patchioner-alignment", "patchioner-matching"}
VALIDATED_ALONE |= {"patchioner-photo-reward", "patchioner-photo-writer"}
CASES: dict[str, dict[str, Any]] = {
    path.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(RECIPES.glob("*.toml"))
}
CASES |= {task: {"task": task} for task in TASKS}
CASES |= {f"mitr, {kind}": {"task": "mitr", "model": {"baseline": kind}} for kind in ("trace", "caption", "describe")}
CASES["mitr, lbm"] = {"task": "mitr", "model": {"lbm": 0.5, "cycle_kind": "segments"}}
ONLY_CAPTIONS = {"trace": 0.0, "cycle": 0.0, "joint": 0.0}
CASES["mitr, guided"] = {"task": "mitr", "model": {"guided": 6, **ONLY_CAPTIONS}}


def _is_whole(case: Mapping[str, Any]) -> bool:
    """Whether its loss compares all items of a batch; so does a writer's beside which an eye learns."""
    return case["task"] in OF_THE_WHOLE_BATCH or "eye" in case.get("model", {})


@pytest.fixture(autouse=True)
def _no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn for an item does not depend on the items beside it."""

    def in_order(batch: Any, _segments: int, _generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return batch.boxes, batch.located

    def no_word_noise(boxes: Tensor, words: int, _generator: torch.Generator) -> Tensor:
        noise = torch.zeros(*boxes.shape[:2], words + 1)
        noise[..., 0] = -torch.inf
        return noise

    def drawn(model: Any, vectors: Tensor, most: int, *_reading: Any, **_temperature: float) -> Tensor:
        """Captions that differ in words and lengths, each told by its vector and its place among those of a text."""
        ids = torch.full((len(vectors), most), PAD_ID)
        for row, (vector, caption) in enumerate(zip(vectors, ids, strict=True)):
            place = sum(torch.equal(vector, before) for before in vectors[:row])
            rng = np.random.default_rng([int(1e6 * abs(float(vector[0]))), place])
            length = int(rng.integers(1, most))
            caption[:length] = torch.from_numpy(rng.integers(END_ID + 1, END_ID + len(model.vocabulary), length))
            caption[length] = END_ID
        return ids

    mitr = "saywhere.models.mitr"
    monkeypatch.setattr(f"{mitr}.objective.swapped_in_batch", lambda size, _generator: torch.arange(size))
    monkeypatch.setattr(f"{mitr}.objective.segments_shuffled", in_order)
    monkeypatch.setattr(f"{mitr}.cycle.word_noise", no_word_noise)
    monkeypatch.setattr("saywhere.learn.reward.sample", drawn)


def _recipe(table: Mapping[str, Any], folder: Path) -> Recipe:
    """A recipe on small data, with a small network without noise."""
    write, model, data = TASKS[table["task"]]
    write(folder)
    kept = {key: value for key, value in table.get("model", {}).items() if key != "start"}
    if "eye" in kept:
        # A trunk that learns, too, is a network of its own size; see tests/models/test_photo_writing.py.
        frozen = {key: value for key, value in kept["eye"].items() if not key.startswith("tuned_")}
        model = model | {"eye": frozen | TASKS["eye"][1]}
    if table["task"] == "tracevlm":
        model = model | {"base": str(folder / "base"), "lora_alpha": 4}
    if "hint" in kept:
        model = model | {"hint": kept["hint"] | model["hint"]}
    train = {key: value for key, value in table.get("train", {"lr": 0.01}).items() if key != "init_from"}
    train |= {"batch_size": 12, "steps": 1, "epochs": None, "precision": "fp32"}
    levels = {"levels": table["data"]["levels"]} if "levels" in table.get("data", {}) else {}
    paths = {key: str(folder / value) for key, value in data.items() if key in ("eye", "decoder", "windows")}
    changed = {"name": "small", "model": kept | model, "data": {"folder": str(folder), **data, **paths, **levels}}
    return parse_recipe({"task": table["task"], **changed, "train": train}, "test")


def _one_step(recipe: Recipe, accumulate: int) -> StepResult:
    task = make_task(recipe)
    torch.manual_seed(0)
    model = task.build(torch.Generator().manual_seed(0))
    learner = Learner(task, model, recipe.train, seed=1, processes=Processes())
    items = task.train_items()
    plan = Plan(len(items), recipe.train.batch_size, 1)
    (step,) = load_steps(task, items, plan, 0, 1, Processes(), accumulate, 0)
    return learner.train_step(step, 0, recipe.train.lr)


def test_every_task_is_among_the_cases() -> None:
    assert {name for name in known_tasks() if "tiny" not in name} == set(TASKS)


@pytest.mark.parametrize("case", [name for name, one in CASES.items() if not _is_whole(one)])
def test_a_batch_in_parts_has_the_loss_and_gradient_of_the_whole(tmp_path: Path, case: str) -> None:
    recipe = _recipe(CASES[case], tmp_path / "data")
    whole = _one_step(recipe, 1)
    for accumulate in (2, 6):
        cut = _one_step(recipe, accumulate)
        assert cut.losses["loss"] == pytest.approx(whole.losses["loss"], rel=1e-5)
        assert cut.grad_norm == pytest.approx(whole.grad_norm, rel=1e-4)


@pytest.mark.parametrize("case", [name for name, one in CASES.items() if _is_whole(one)])
def test_a_loss_that_compares_all_items_of_a_batch_is_not_cut(tmp_path: Path, case: str) -> None:
    recipe = _recipe(CASES[case], tmp_path / "data")
    assert _one_step(recipe, 1).grad_norm > 0
    with pytest.raises(InvalidValue, match="compares all items of a batch"):
        _one_step(recipe, 2)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_measures_of_parts_add_up_to_those_of_the_whole(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("saywhere.models.mitr.task", "saywhere.models.patchioner.tasks"):
        monkeypatch.setattr(f"{module}._VALIDATION_BATCH", 1)
    table = _recipe({"task": name}, tmp_path / "data").to_table()
    if name == "mitr":
        # Noise of a batch must not depend on which batches were measured before.
        table["model"]["mask_rate"] = 0.5
    task = make_task(parse_recipe(table, "test"))
    assert isinstance(task, SharedValidation) == (name not in VALIDATED_ALONE)
    if not isinstance(task, SharedValidation):
        return
    model = task.build(torch.Generator().manual_seed(0)).eval()
    with torch.no_grad():
        whole = task.validate(model)
        for parts in (2, 3, 50):
            sums = Sums()
            for part in range(parts):
                sums.merge(task.validation_sums(model, part, parts))
            assert sums.means() == pytest.approx(whole, rel=1e-5)
