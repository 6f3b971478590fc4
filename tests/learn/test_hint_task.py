"""UpDn tuned by HINT: losses, controls, what is measured, and training through the trainer."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from saywhere.core import InvalidFile, InvalidValue
from saywhere.explain import gradient_importance, gradient_times_input, rank_agreement
from saywhere.explain.scores import CorrectAnswerScore, UpDnWordScore
from saywhere.learn import load_run, register, train
from saywhere.learn.hint import HintSettings, hinted_items, ranking_loss
from saywhere.learn.hint_task import HintCaptionSection, HintCaptionTask, HintVqaSection, HintVqaTask
from saywhere.learn.recipe import parse_recipe
from saywhere.learn.registry import check_sections
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.batch import CaptionBatch, QuestionBatch, collate_captions, collate_questions
from saywhere.models.updown.objective import answer_loss, caption_loss
from saywhere.models.updown.prepared import PreparedCaption, PreparedQuestion, save_captions, save_questions
from saywhere.models.updown.task import UpDownDataSection
from saywhere.models.updown.vqa import UpDnVqa

_SIZE, _TRAIN, _VALIDATION = 8, 24, 8
_COLOURS = ("red", "blue", "green")


def _image(rng: np.random.Generator, regions: int) -> tuple[RegionFeatures, int, NDArray[np.float32]]:
    """Regions of which one is coloured; which colour; and people's importance, which is on that one."""
    colour, place = int(rng.integers(3)), int(rng.integers(regions))
    features = rng.standard_normal((regions, _SIZE)) * 0.1
    features[place, colour] += 2
    importance = (rng.random(regions) * 0.4).astype(np.float32)
    importance[place] = 0.95
    boxes = np.tile([0.0, 0.0, 0.5, 0.5], (regions, 1))
    return RegionFeatures(features, boxes), colour, importance


def _images() -> list[tuple[RegionFeatures, int, NDArray[np.float32]]]:
    rng = np.random.default_rng(0)
    return [_image(rng, 3 + i % 3) for i in range(_TRAIN + _VALIDATION)]


def _split(index: int) -> str:
    return "train" if index < _TRAIN else "validation"


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every fourth question has no human attention."""
    folder = tmp_path_factory.mktemp("hint") / "questions"
    images = _images()
    items = [
        PreparedQuestion(
            f"q{i}", f"i{i}", _split(i), "which colour is it", "what", "other", (_COLOURS[colour],),
            None if i % 4 == 3 else importance, free_view=None if i % 4 == 3 else np.roll(importance, 1),
        )
        for i, (_, colour, importance) in enumerate(images)
    ]  # fmt: skip
    save_questions(folder, {f"i{i}": image for i, (image, _, _) in enumerate(images)}, items, {}, least_count=1)
    return folder


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ "a red thing here": the colour and the thing are visual words; every fourth caption has none."""
    folder = tmp_path_factory.mktemp("hint") / "captions"
    images = _images()
    items = [
        PreparedCaption(
            f"c{i}", f"i{i}", _split(i), f"a {_COLOURS[colour]} thing here",
            () if i % 4 == 3 else ((2, importance[::-1].copy()), (1, importance)),
        )
        for i, (_, colour, importance) in enumerate(images)
    ]  # fmt: skip
    save_captions(folder, {f"i{i}": image for i, (image, _, _) in enumerate(images)}, items, {}, least_word_count=1)
    return folder


_NO_DROPOUT = {"dropout": 0.0, "answer_dropout": 0.0}


def _vqa(folder: Path, **hint: object) -> HintVqaTask:
    settings = HintSettings(**{"tie": 0.0, **hint})  # type: ignore[arg-type]
    return HintVqaTask(
        HintVqaSection(embedding=6, width=12, hint=settings, **_NO_DROPOUT), UpDownDataSection(folder=folder)
    )


def _caption(folder: Path, hint_words: int = 1, **hint: object) -> HintCaptionTask:
    settings = HintSettings(**{"tie": 0.0, **hint})  # type: ignore[arg-type]
    section = HintCaptionSection(embedding=6, width=12, attention=6, dropout=0.0, hint=settings, hint_words=hint_words)
    return HintCaptionTask(section, UpDownDataSection(folder=folder))


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _batch(task: HintVqaTask, count: int = 8) -> QuestionBatch:
    return collate_questions([task.train_items()[i] for i in range(count)])


def _caption_batch(task: HintCaptionTask, count: int = 8) -> CaptionBatch:
    return collate_captions([task.train_items()[i] for i in range(count)])


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("share", [1.0, 0.13])
def test_the_loss_is_hint_plus_lambda_times_the_task(questions: Path, reduction: str, share: float) -> None:
    task = _vqa(questions, weight=2.0, task_weight=7.0, reduction=reduction, share=share)
    model, batch = task.build(_generator()), _batch(task)
    assert isinstance(model, UpDnVqa)
    found = task.losses(model, batch, _generator())
    # By hand, item by item, whichever way the task takes.
    logits = model(batch.regions, batch.present, batch.questions).logits
    score = CorrectAnswerScore(model, batch.questions, batch.targets, pointed=batch.pointed)
    alpha = gradient_importance(score, batch.regions, batch.present)
    chosen = torch.tensor([int(i) in task.hints.chosen for i in batch.index])
    human = batch.importance.masked_fill(~chosen[:, None], math.nan)
    assert found["task"].item() == pytest.approx(7 * answer_loss(logits, batch.targets).item())
    assert found["hint"].item() == pytest.approx(2 * ranking_loss(alpha, human, batch.present, reduction).item(), 1e-4)
    assert found["loss"].item() == pytest.approx(found["hint"].item() + found["task"].item())
    assert found["hint"] > 0
    assert task.counts(batch) == {"hint": float(chosen.sum()), "task": 8.0}
    assert found["hinted"].item() == pytest.approx(int(chosen.sum()) / 8)


def test_gradient_times_input_can_be_put_in_order(questions: Path, captions: Path) -> None:
    task, plain = (_vqa(questions, weight=2.0, on=on) for on in ("gradient_times_input", "gradients"))
    model, batch = task.build(_generator()), _batch(task)
    assert isinstance(model, UpDnVqa)
    score = CorrectAnswerScore(model, batch.questions, batch.targets, pointed=batch.pointed)
    alpha = gradient_times_input(score, batch.regions, batch.present)
    wanted = 2 * ranking_loss(alpha, batch.importance, batch.present, tie=task.settings.tie)
    found = task.losses(model, batch, _generator())
    assert found["hint"].item() == pytest.approx(wanted.item(), rel=1e-4)
    assert found["hint"].item() != pytest.approx(plain.losses(model, batch, _generator())["hint"].item())
    found["loss"].backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    told = _caption(captions, on="gradient_times_input")
    assert told.losses(told.build(_generator()), _caption_batch(told), _generator())["hint"].isfinite()


@pytest.mark.parametrize("kind", ["human", "none"])
def test_only_hinted_items_are_learnt_from_if_asked(questions: Path, kind: str) -> None:
    some, every = (_vqa(questions, share=0.2, hints=kind, only_hinted=only) for only in (True, False))
    assert set(some.train_items().indices) == set(every.hints.selected)
    assert len(some.train_items()) < len(every.train_items())
    assert bool(some.hints.chosen) == (kind == "human")
    with pytest.raises(InvalidValue, match="only_hinted"):
        _vqa(questions, share=0.0, only_hinted=True)


def test_the_losss_gradient_is_that_of_finite_differences(questions: Path) -> None:
    task = _vqa(questions, task_weight=0.5)
    model = task.build(_generator()).double()
    batch = _batch(task)
    real = {field.name: getattr(batch, field.name) for field in fields(batch)}
    batch = replace(batch, **{name: values.double() for name, values in real.items() if values.is_floating_point()})
    parameters = list(model.parameters())
    task.losses(model, batch, _generator())["loss"].backward()
    steps = [1e-6 * torch.randn(p.shape, generator=_generator(i), dtype=p.dtype) for i, p in enumerate(parameters)]
    expected = sum(float((p.grad * s).sum()) for p, s in zip(parameters, steps, strict=True) if p.grad is not None)
    ends = []
    for sign in (1, -2):
        with torch.no_grad():
            for parameter, step in zip(parameters, steps, strict=True):
                parameter.add_(step, alpha=sign)
        ends.append(task.losses(model, batch, _generator())["loss"].item())
    assert (ends[0] - ends[1]) / 2 == pytest.approx(expected, rel=1e-4)


def test_what_is_pointed_at_is_read_with_and_without_hints(questions: Path) -> None:
    for settings in ({}, {"on": "attention"}, {"hints": "none"}):
        task = _vqa(questions, **settings)
        model, batch = task.build(_generator()), _batch(task)
        pointing = replace(batch, pointed=torch.linspace(0.1, 1, 5).expand_as(batch.pointed))
        plain, pointed = (task.losses(model, one, _generator())["task"].item() for one in (batch, pointing))
        assert plain != pointed


@pytest.mark.parametrize("kind", ["human", "free_view", "inverse", "random", "redrawn", "permuted", "none"])
def test_every_kind_of_hint_can_be_learnt_from(questions: Path, kind: str) -> None:
    task = _vqa(questions, hints=kind)
    model, batch = task.build(_generator()), _batch(task)
    found = task.losses(model, batch, _generator())
    found["loss"].backward()
    assert (found["hint"].item() > 0) == (kind != "none")
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    assert task.counts(batch)["hint"] == (0.0 if kind == "none" else 6.0)


def test_kinds_of_hints_give_different_losses_and_only_redrawn_ones_change(questions: Path) -> None:
    def hint(kind: str, seed: int) -> float:
        task = _vqa(questions, hints=kind)
        return task.losses(task.build(_generator()), _batch(task), _generator(seed))["hint"].item()

    kinds = ("human", "free_view", "inverse", "random", "redrawn", "permuted")
    assert len({hint(kind, 0) for kind in kinds}) == len(kinds)
    assert [hint(kind, 0) == hint(kind, 1) for kind in kinds] == [True, True, True, True, False, True]


def test_a_batch_without_hints_has_the_plain_tasks_gradient(questions: Path) -> None:
    task = _vqa(questions, hints="none", task_weight=1.0)
    batch = _batch(task)
    gradients = []
    for losses in (task.losses, super(HintVqaTask, task).losses):
        model = task.build(_generator())
        losses(model, batch, _generator())["loss"].backward()
        gradients.append([p.grad for p in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_attention_alignment_ranks_attention_instead_of_gradients(questions: Path) -> None:
    task = _vqa(questions, on="attention")
    model, batch = task.build(_generator()), _batch(task)
    found = task.losses(model, batch, _generator())
    looked = model(batch.regions, batch.present, batch.questions).attention
    human = batch.importance
    assert found["hint"].item() == pytest.approx(ranking_loss(looked, human, batch.present).item())
    found["hint"].backward()
    # What comes after the attention is not touched: the paper's reason against aligning it.
    assert isinstance(model, UpDnVqa)
    assert model.answer.weight.grad is None or not model.answer.weight.grad.any()
    assert model.attend.weight.grad is not None
    assert model.attend.weight.grad.any()


def test_pieces_of_a_batch_add_up_to_the_whole(questions: Path) -> None:
    task = _vqa(questions)
    model = task.build(_generator())
    items = [task.train_items()[i] for i in (0, 1, 3, 7, 2)]
    whole = task.losses(model, collate_questions(items), _generator())
    parts = [collate_questions(items[:2]), collate_questions(items[2:])]
    counts = [task.counts(part) for part in parts]
    for name in ("hint", "task"):
        total = sum(count[name] for count in counts)
        joined = sum(
            task.losses(model, part, _generator())[name].item() * count[name] / total
            for part, count in zip(parts, counts, strict=True)
        )
        assert joined == pytest.approx(whole[name].item(), rel=1e-4)


def test_validation_measures_grounding_and_how_hard_each_loss_pulls(questions: Path) -> None:
    task = _vqa(questions, weight=3.0)
    model = task.build(_generator()).eval().requires_grad_(False)
    with torch.no_grad():
        found, again = task.validate(model), task.validate(model)
    assert found == again
    assert {"loss", "accuracy", "accuracy_other", "spearman", "spearman_attention", "hint_to_task"} == set(found)
    assert -1 <= found["spearman"] <= 1
    assert found["spearman"] != found["spearman_attention"]
    assert found["hint_to_task"] > 0
    lighter = _vqa(questions, weight=1.0)
    with torch.no_grad():
        assert lighter.validate(model)["hint_to_task"] == pytest.approx(found["hint_to_task"] / 3, rel=1e-4)
        assert "hint_to_task" not in _vqa(questions, hints="none").validate(model)
    assert not any(p.requires_grad or p.grad is not None for p in model.parameters())


def test_captions_are_hinted_at_their_visual_words(captions: Path) -> None:
    for hint_words in (0, 1):
        task = _caption(captions, hint_words=hint_words, weight=2.0, task_weight=7.0)
        model, batch = task.build(_generator()), _caption_batch(task)
        found = task.losses(model, batch, _generator())
        words = 12 if hint_words == 0 else 6
        assert task.counts(batch) == {"hint": float(words), "task": 40.0}
        assert found["hinted"].item() == pytest.approx(words / 8)
        assert found["loss"].item() == pytest.approx(found["hint"].item() + found["task"].item())
        logits = model(batch.regions, batch.present, batch.words).logits
        assert found["task"].item() == pytest.approx(7 * caption_loss(logits, batch.targets).item())
    rows, places = batch.hinted.nonzero(as_tuple=True)
    assert places.tolist() == [1, 2] * 6
    score = UpDnWordScore(model, batch.words[rows], places + 1)  # type: ignore[arg-type]
    alpha = gradient_importance(score, batch.regions[rows], batch.present[rows])
    every = [
        ranking_loss(alpha[i : i + 1], batch.importance[rows, places][i : i + 1], batch.present[rows][i : i + 1])
        for i in range(12)
    ]
    all_words = _caption(captions, hint_words=0, weight=2.0).losses(model, batch, _generator())["hint"]
    assert all_words.item() == pytest.approx(2 * torch.stack(every).mean().item(), rel=1e-4)
    # One word of each caption: the loss is that of one of the two, for every caption.
    drawn = {_caption(captions).losses(model, batch, _generator(seed))["hint"].item() for seed in range(8)}
    low, high = (sum(pick(every[2 * i].item(), every[2 * i + 1].item()) for i in range(6)) / 6 for pick in (min, max))
    assert len(drawn) > 3
    assert all(low - 1e-5 <= one <= high + 1e-5 for one in drawn)


@pytest.mark.parametrize("on", ["gradients", "attention"])
@pytest.mark.parametrize("kind", ["human", "random", "redrawn", "permuted", "none"])
def test_every_kind_of_hint_can_be_learnt_from_in_captions(captions: Path, kind: str, on: str) -> None:
    task = _caption(captions, hints=kind, on=on)
    model, batch = task.build(_generator()), _caption_batch(task)
    found = task.losses(model, batch, _generator())
    found["loss"].backward()
    assert (found["hint"].item() > 0) == (kind != "none")
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_validation_measures_captions_too(captions: Path) -> None:
    task = _caption(captions)
    model = task.build(_generator()).eval()
    with torch.no_grad():
        found = task.validate(model)
    assert set(found) == {"loss", "spearman", "spearman_attention", "hint_to_task"}
    assert found == pytest.approx(task.validate(model))


def test_half_precision_is_refused(questions: Path) -> None:
    task = _vqa(questions)
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(InvalidValue, match="fp32"):
        task.losses(task.build(_generator()), _batch(task), _generator())


def _recipe(folder: Path, **hint: object) -> dict[str, object]:
    return {
        "name": "tiny HINT",
        "task": "hint-vqa",
        "model": {"embedding": 6, "width": 12, "hint": hint},
        "data": {"folder": str(folder)},
        "train": {"epochs": 15, "batch_size": 8, "lr": 0.01, "optimizer": "adam", "ema_decay": 0.9},
        "validate": {"metric": "accuracy", "mode": "max", "every_epochs": 15, "at_start": True},
        "log": {"plot": False},
    }


@pytest.fixture
def registered() -> None:
    register("hint-vqa", "saywhere.learn.hint_task:HintVqaTask")
    register("hint-caption", "saywhere.learn.hint_task:HintCaptionTask")


def _grounding(questions: Path, run: Path) -> float:
    """The rank correlation of the network's importances with people's, on all questions that have some."""
    task, model = _vqa(questions), load_run(run, "last").model.eval()
    batch = collate_questions([task.prepared.item(i) for i in range(len(task.prepared)) if i % 4 != 3])
    alpha = gradient_importance(CorrectAnswerScore(model, batch.questions, batch.targets), batch.regions, batch.present)  # type: ignore[arg-type]
    return rank_agreement(alpha.numpy(), batch.importance.numpy(), batch.present.numpy()).mean


@pytest.mark.usefixtures("registered")
def test_training_with_hint_grounds_and_training_with_inverse_hints_does_the_opposite(
    questions: Path, tmp_path: Path
) -> None:
    found = {}
    for kind in ("human", "inverse"):
        recipe = parse_recipe(_recipe(questions, hints=kind, weight=2.0, task_weight=1.0), "test")
        train(recipe, tmp_path / kind)
        found[kind] = _grounding(questions, tmp_path / kind)
    assert found["human"] > 0.3
    assert found["inverse"] < -0.3


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("hint", [{"share": 2.0}, {"hints": "humans"}, {"shares": 0.5}, {"weight": "much"}])
def test_recipes_that_make_no_sense_are_refused_before_work_starts(questions: Path, hint: dict[str, object]) -> None:
    with pytest.raises(InvalidFile, match=next(iter(hint))):
        check_sections(parse_recipe(_recipe(questions, **hint), "test"), "test")


def test_caption_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="hint_words"):
        HintCaptionSection(hint_words=-1)


def test_hinted_items_are_those_that_training_can_learn_from(questions: Path) -> None:
    task = _vqa(questions)
    batch = _batch(task, _TRAIN)
    assert sorted(task.hints.chosen) == [i for i in range(_TRAIN) if i % 4 != 3]
    assert hinted_items(batch.importance, batch.present).nonzero()[:, 0].tolist() == sorted(task.hints.chosen)
