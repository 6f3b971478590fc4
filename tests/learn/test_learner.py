"""One step: sums over micro-batches, clipping, moving averages, precision, lost numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.learn import Recipe, TrainingDiverged, make_task
from saywhere.learn.batches import LoadedMicroBatch, MicroBatch, Plan, load_steps
from saywhere.learn.ema import MovingAverage
from saywhere.learn.learner import Learner, StepResult, clip, gradient_norm
from saywhere.learn.precision import check_precision, loss_scaler
from saywhere.learn.processes import Processes, pick_device


def _learner(recipe: Recipe, **options: Any) -> tuple[Learner, list[list[LoadedMicroBatch]]]:
    task = make_task(recipe)
    torch.manual_seed(0)
    learner = Learner(task, task.build(torch.Generator()), recipe.train, seed=1, processes=Processes(), **options)
    plan = Plan(recipe.data.get("items", 20), recipe.train.batch_size, 1)
    steps = load_steps(task, task.train_items(), plan, 0, 6, Processes(), recipe.train.accumulate, 0)
    return learner, list(steps)


def _learn(recipe: Recipe, **options: Any) -> tuple[Learner, list[StepResult]]:
    learner, steps = _learner(recipe, **options)
    return learner, [
        learner.train_step(micro_batches, step, recipe.train.lr) for step, micro_batches in enumerate(steps)
    ]


def _close(a: list[StepResult], b: list[StepResult]) -> bool:
    return all(
        math.isclose(x.grad_norm, y.grad_norm, rel_tol=1e-4)
        and all(math.isclose(x.losses[name], y.losses[name], rel_tol=1e-5) for name in x.losses)
        for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("task", ["tiny-regression", "tiny-words"])
@pytest.mark.parametrize("accumulate", [2, 3, 8])
def test_a_batch_in_pieces_is_learnt_as_the_whole(tiny: Callable[..., Recipe], task: str, accumulate: int) -> None:
    quiet = (f"task={task}", "model.dropout=0.0", "data.jitter=0.0")
    whole, outcomes = _learn(tiny(*quiet))
    cut, piecewise = _learn(tiny(*quiet, f"train.accumulate={accumulate}"))
    assert _close(outcomes, piecewise)
    for a, b in zip(whole.model.parameters(), cut.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_a_task_that_does_not_count_is_refused(tiny: Callable[..., Recipe]) -> None:
    with pytest.raises(InvalidValue, match="the task 'tiny-forgetful': lacks counts"):
        make_task(tiny("task=tiny-forgetful"))


def test_a_step_of_adam_is_the_one_computed_by_hand(tiny: Callable[..., Recipe]) -> None:
    recipe = tiny("train.optimizer=adam", "train.clip_norm=1e9", "model.dropout=0.0", "train.lr=0.1")
    learner, steps = _learner(recipe)
    weight = next(learner.model.parameters())
    before = weight.detach().clone()
    batch = steps[0][0].batch
    (gradient,) = torch.autograd.grad((learner.model(batch["x"]) - batch["y"]).square().mean(), [weight])
    learner.train_step(steps[0], 0, 0.1)
    # Bias-corrected first step: m = g, v = g², so each weight moves by lr · g / (|g| + eps).
    torch.testing.assert_close(weight.detach(), before - 0.1 * gradient / (gradient.abs() + 1e-8))


@pytest.mark.parametrize(
    ("largest_value", "largest_norm", "expected"),
    [
        (None, None, [3.0, -4.0, 12.0]),
        (5.0, None, [3.0, -4.0, 5.0]),
        (None, 6.5, [1.5, -2.0, 6.0]),
        (None, 13.1, [3.0, -4.0, 12.0]),
        (4.0, 1.0, [3 / math.sqrt(41), -4 / math.sqrt(41), 4 / math.sqrt(41)]),
    ],
)
def test_gradients_are_clipped_by_value_then_by_norm(
    largest_value: float | None, largest_norm: float | None, expected: list[float]
) -> None:
    gradients = [torch.tensor([3.0, -4.0]), torch.tensor([[12.0]])]
    assert gradient_norm(gradients) == 13
    clip(gradients, largest_value, largest_norm)
    torch.testing.assert_close(torch.cat([g.flatten() for g in gradients]), torch.tensor(expected))


def test_clipping_reaches_the_update_and_the_norm_is_of_before(tiny: Callable[..., Recipe]) -> None:
    free, _ = _learner(tiny("train.clip_norm=1e9", "train.optimizer=adam", "train.eps=1e3", "model.dropout=0.0"))
    held, steps = _learner(tiny("train.clip_norm=0.01", "train.optimizer=adam", "train.eps=1e3", "model.dropout=0.0"))
    start = torch.nn.utils.parameters_to_vector(free.model.parameters()).detach()
    norms = [learner.train_step(steps[0], 0, 1.0).grad_norm for learner in (free, held)]
    # With so large an eps Adam's first step is lr · g / eps: lengths of updates are lengths of gradients.
    moved = [
        float((torch.nn.utils.parameters_to_vector(learner.model.parameters()).detach() - start).norm()) * 1e3
        for learner in (free, held)
    ]
    assert norms[0] == norms[1] > 0.01
    assert moved == pytest.approx([norms[0], 0.01], rel=2e-2)


def test_a_moving_average_is_the_one_computed_by_hand() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    average = MovingAverage(model, decay=0.9, warmup=False)
    for step, value in enumerate([2.0, 3.0], start=1):
        nn.init.constant_(model.weight, value)
        average.update(model, step)
    # 1 → 0.9·1 + 0.1·2 = 1.1 → 0.9·1.1 + 0.1·3 = 1.29
    assert float(average.model.weight) == pytest.approx(1.29)  # type: ignore[arg-type]
    assert not average.model.weight.requires_grad


def test_a_moving_average_starts_with_less_memory() -> None:
    average = MovingAverage(nn.Linear(1, 1), decay=0.9, warmup=True)
    assert [average.decay_at(step) for step in (1, 10, 80, 81, 1000)] == pytest.approx([2 / 11, 11 / 20, 0.9, 0.9, 0.9])


def test_a_moving_average_has_the_newest_buffers() -> None:
    model = nn.BatchNorm1d(2)
    average = MovingAverage(model, decay=0.9, warmup=False)
    model(torch.randn(5, 2))
    average.update(model, 1)
    assert torch.equal(average.model.running_mean, model.running_mean)  # type: ignore[arg-type]
    assert int(average.model.num_batches_tracked) == 1  # type: ignore[arg-type]


def test_the_average_is_measured_if_there_is_one(tiny: Callable[..., Recipe]) -> None:
    learner, _ = _learn(tiny())
    assert learner.ema is not None
    assert learner.eval_model is learner.ema.model
    assert not torch.equal(learner.ema.model[0].weight, learner.model[0].weight)  # type: ignore[index]


def test_noise_is_of_the_step_alone(tiny: Callable[..., Recipe]) -> None:
    one, steps = _learner(tiny("model.dropout=0.5"))
    other, _ = _learner(tiny("model.dropout=0.5"))
    torch.manual_seed(99)
    first = one.train_step(steps[0], 0, 0.01)
    torch.rand(7)
    assert other.train_step(steps[0], 0, 0.01) == first


def test_noise_differs_from_step_to_step_and_from_piece_to_piece(tiny: Callable[..., Recipe]) -> None:
    def loss(micro_batch: MicroBatch) -> float:
        learner, steps = _learner(tiny("model.dropout=0.5"))
        return learner.train_step([LoadedMicroBatch(micro_batch, steps[0][0].batch)], micro_batch.step, 0.01).losses[
            "loss"
        ]

    places = [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert len({loss(MicroBatch(step, number, (0,), 1, 1.0)) for step, number in places}) == len(places)


def test_a_loss_scale_is_part_of_what_is_saved(tiny: Callable[..., Recipe]) -> None:
    learner, _ = _learn(tiny(), scaler=torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3))
    other, _ = _learner(tiny(), scaler=torch.amp.GradScaler("cpu"))
    snapshot = learner.snapshot({})
    other.restore(snapshot, "saved")
    assert snapshot.trainer["scaler"]["scale"] == 32.0
    assert other.snapshot({}).trainer == snapshot.trainer


def test_bf16_learns_about_the_same_as_fp32(tiny: Callable[..., Recipe]) -> None:
    exact, rough = _learn(tiny("model.dropout=0.0"))[1], _learn(tiny("model.dropout=0.0", "train.precision=bf16"))[1]
    assert [o.losses["loss"] for o in rough] == pytest.approx([o.losses["loss"] for o in exact], rel=0.05)
    assert rough != exact


def test_fp16_is_refused_where_the_device_has_none() -> None:
    with pytest.raises(
        InvalidValue, match=r"train\.precision: fp16 needs a CUDA device, this is cpu \(use bf16 or fp32"
    ):
        check_precision("fp16", torch.device("cpu"))
    assert loss_scaler("bf16", torch.device("cpu")) is None


def test_a_device_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(InvalidValue, match=r"train\.device: this machine or this build of torch has no cuda"):
        pick_device("cuda", 0)


def test_scaling_the_loss_changes_no_update(tiny: Callable[..., Recipe]) -> None:
    plain, outcomes = _learn(tiny("model.dropout=0.0"))
    scaled, with_scaler = _learn(tiny("model.dropout=0.0"), scaler=torch.amp.GradScaler("cpu", init_scale=1024.0))
    assert _close(outcomes, with_scaler)
    for a, b in zip(plain.model.parameters(), scaled.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


class _Scripted:
    """A task of one parameter whose losses are given."""

    def __init__(self, losses: Callable[[Tensor], dict[str, Any]]) -> None:
        self._losses = losses

    def losses(self, model: nn.Module, batch: Any, generator: torch.Generator) -> dict[str, Any]:
        return self._losses(model.weight)  # type: ignore[arg-type]

    def counts(self, batch: Any) -> dict[str, float]:
        return {}


def _scripted(
    recipe: Recipe, losses: Callable[[Tensor], dict[str, Any]], scaler: torch.amp.GradScaler | None = None
) -> tuple[Learner, list[LoadedMicroBatch]]:
    learner = Learner(
        _Scripted(losses),  # type: ignore[arg-type]
        nn.Linear(1, 1, bias=False),
        recipe.train,
        seed=0,
        processes=Processes(),
        scaler=scaler,
    )
    return learner, [LoadedMicroBatch(MicroBatch(0, 0, (0,), 1, 1.0), None)]


def test_an_overflow_under_scaling_leaves_the_step_out_until_there_is_nothing_left_to_scale(
    tiny: Callable[..., Recipe],
) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    learner, micro_batches = _scripted(tiny(), lambda w: {"loss": (w.sum() - w.detach().sum()).sqrt()}, scaler)
    before = learner.model.weight.clone()  # type: ignore[operator]
    assert math.isinf(learner.train_step(micro_batches, 0, 0.1).grad_norm)
    assert torch.equal(learner.model.weight, before)  # type: ignore[arg-type]
    with pytest.raises(TrainingDiverged, match="step 2: the gradient's norm is inf"):
        learner.train_step(micro_batches, 1, 0.1)


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (
            lambda w: {"loss": w.sum() * math.nan, "a": w.sum().abs() * 0},
            r"step 5: the loss is not finite \(loss = nan, a = 0\)",
        ),
        (lambda w: {"loss": w.sum() * 0 + math.inf}, "step 5: the loss is not finite"),
        (lambda w: {"loss": (w.sum() - w.detach().sum()).sqrt()}, "step 5: the gradient's norm is inf"),
    ],
)
def test_a_lost_number_stops_the_step_with_the_weights_as_before(
    tiny: Callable[..., Recipe], losses: Callable[[Tensor], dict[str, Tensor]], message: str
) -> None:
    learner, micro_batches = _scripted(tiny(), losses)
    before = learner.model.weight.clone()  # type: ignore[operator]
    with pytest.raises(TrainingDiverged, match=message):
        learner.train_step(micro_batches, 4, 0.1)
    assert torch.equal(learner.model.weight, before)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (lambda w: {"total": w.sum()}, "have no 'loss', only total"),
        (lambda w: {"loss": w.sum(), "other": 3.0}, "'other' is not a tensor with a single number"),
        (lambda w: {"loss": w}, "'loss' is not a tensor with a single number"),
        (lambda w: {"loss": w.detach().sum()}, "'loss' does not depend on any parameter that is learnt"),
    ],
)
def test_losses_of_the_wrong_form_are_refused(
    tiny: Callable[..., Recipe], losses: Callable[[Tensor], dict[str, Any]], message: str
) -> None:
    learner, micro_batches = _scripted(tiny(), losses)
    with pytest.raises(InvalidValue, match=message):
        learner.train_step(micro_batches, 0, 0.1)


def test_counted_terms_must_add_up_to_the_loss(tiny: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch) -> None:
    learner, steps = _learner(tiny("task=tiny-words"))
    task = learner._task
    honest = task.losses
    monkeypatch.setattr(task, "losses", lambda *a: {**honest(*a), "loss": honest(*a)["loss"] * 2})
    with pytest.raises(InvalidValue, match="the counted terms sum to"):
        learner.train_step(steps[0], 0, 0.1)


def test_frozen_parameters_stay(tiny: Callable[..., Recipe]) -> None:
    recipe = tiny("train.weight_decay=0.5")
    task = make_task(recipe)
    model = task.build(torch.Generator())
    model[0].requires_grad_(False)  # type: ignore[index]
    frozen, free = model[0].weight.clone(), model[4].weight.clone()  # type: ignore[index]
    learner = Learner(task, model, recipe.train, seed=1, processes=Processes())
    steps = load_steps(task, task.train_items(), Plan(20, 8, 1), 0, 2, Processes(), 1, 0)
    for step, micro_batches in enumerate(steps):
        learner.train_step(micro_batches, step, 0.1)
    assert torch.equal(model[0].weight, frozen)  # type: ignore[index]
    assert not torch.equal(model[4].weight, free)  # type: ignore[index]
    with pytest.raises(InvalidValue, match="has no parameter that can be learnt"):
        Learner(task, model.requires_grad_(False), recipe.train, seed=1, processes=Processes())
