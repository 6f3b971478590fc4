"""Whole runs: what they leave behind, and every way to end."""

from __future__ import annotations

import json
import random
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import saywhere
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.learn import (
    Event,
    Recipe,
    Saved,
    StepDone,
    TrainingDiverged,
    Validated,
    evaluate,
    find_checkpoint,
    load_run,
    read_log,
    train,
)
from saywhere.learn.batches import Plan
from saywhere.learn.checkpoint import list_checkpoints, step_of
from tests.learn.conftest import same_end, steps_of

Tiny = Callable[..., Recipe]


def _validations(out: Path) -> list[Validated]:
    return [record for record in read_log(out / "log.jsonl") if isinstance(record, Validated)]


def _saved_steps(out: Path) -> list[int]:
    return [step_of(path) for path in list_checkpoints(out / "checkpoints")]


def test_a_run_learns_and_says_how_it_ended(whole: Path) -> None:
    result = json.loads((whole / "result.json").read_text())["result"]
    assert (result["status"], result["steps"], result["epochs"]) == ("finished", 18, 6.0)
    measured = _validations(whole)
    errors = [record.metrics["error"] or 0 for record in measured]
    assert [record.step for record in measured] == [0, 3, 6, 9, 12, 15, 18]
    assert errors[-1] < 0.7 * errors[0]
    assert result["best"] == {"step": 18, "metric": "error", "value": errors[-1]}


def test_the_log_has_every_step_with_its_numbers(whole: Path) -> None:
    steps = steps_of(whole)
    assert [s["step"] for s in steps] == list(range(1, 19))
    assert [s["epoch"] for s in steps] == [epoch for epoch in range(6) for _ in range(3)]
    assert [s["items"] for s in steps[:3]] == [8, 8, 4]
    assert steps[0]["lr"] == pytest.approx(0.01 / 3)
    assert all({"loss", "abs"} == set(s["losses"]) and s["norm"] > 0 for s in steps)


def test_every_result_file_says_what_made_it(tiny: Tiny, whole: Path) -> None:
    for path in (whole / "run.json", whole / "result.json", find_checkpoint(whole) / "trainer.json"):
        about = json.loads(path.read_text())
        assert about["saywhere"] == saywhere.__version__
        assert about["recipe"] == json.loads(json.dumps(tiny().to_table()))
        assert about["seed"] == 3
        assert len(about["data_fingerprint"]) == 64
        assert "git" in about
    assert json.loads((whole / "run.json").read_text())["parameters"] == 41


def test_the_same_seed_gives_the_same_run_and_another_another(tiny: Tiny, tmp_path: Path, whole: Path) -> None:
    train(tiny("train.workers=1"), tmp_path / "again")
    train(tiny("seed=4"), tmp_path / "other")
    assert same_end(tmp_path / "again", whole)
    assert steps_of(tmp_path / "other")[0]["losses"] != steps_of(whole)[0]["losses"]


def test_training_leaves_the_callers_randomness_and_threads_alone(tiny: Tiny, tmp_path: Path) -> None:
    def draw() -> tuple[float, float, float]:
        return torch.rand(1).item(), np.random.rand(), random.random()

    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(5)
    expected, threads = draw(), torch.get_num_threads()
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(5)
    train(tiny("train.epochs=1", "train.num_threads=2"), tmp_path)
    assert draw() == expected
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("batch_norm", "kept"),
    [
        (False, "step-00000004"),
        # Batch norm takes the bad batch into its buffers before the loss is seen to be lost: not a good state.
        (True, "step-00000003"),
    ],
)
def test_a_lost_number_ends_the_run_and_keeps_the_last_good_state(
    tiny: Tiny, tmp_path: Path, batch_norm: bool, kept: str
) -> None:
    last_of_first_epoch = Plan(40, 8, seed=3).epoch_order(0)[-1]
    recipe = tiny(
        "data.items=40",
        f"data.bad_input={last_of_first_epoch}",
        f"model.batch_norm={str(batch_norm).lower()}",
        "checkpoint.every_steps=3",
        "checkpoint.keep=1",
    )
    with pytest.raises(TrainingDiverged, match=r"step 5: the loss is not finite \(loss = nan, abs = nan\)") as caught:
        train(recipe, tmp_path)
    assert caught.value.kept == tmp_path / "checkpoints" / kept
    assert str(caught.value.kept) in str(caught.value)
    assert [s["step"] for s in steps_of(tmp_path)] == [1, 2, 3, 4]
    weights = load_file(tmp_path / "checkpoints" / kept / "model.safetensors").values()
    assert all(bool(torch.isfinite(tensor).all()) for tensor in weights)
    assert "not finite" in (tmp_path / "history.jsonl").read_text()


def test_a_number_lost_in_the_first_step_leaves_nothing_to_keep(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(TrainingDiverged, match=r"step 1: .* no good state was saved yet"):
        train(tiny("train.batch_size=20", "data.bad_input=0"), tmp_path)


def test_a_run_stops_early_when_patience_is_over_and_keeps_the_best(tiny: Tiny, tmp_path: Path) -> None:
    recipe = tiny("data.metric=[9, 5, 4, 6, 4, 7, 1]", "validate.patience=3", "train.epochs=20")
    result = train(recipe, tmp_path)
    # LogRecord at the start (9, which does not count) and after epochs 1 to 5: 5, 4, 6, 4, 7.
    assert (result.status, result.steps) == ("stopped early", 15)
    assert result.best is not None
    assert (result.best.step, result.best.value) == (6, 4.0)
    assert _saved_steps(tmp_path) == [6, 12, 15]
    assert find_checkpoint(tmp_path, "best").name == "step-00000006"
    assert find_checkpoint(tmp_path, "last").name == "step-00000015"
    assert train(recipe, tmp_path) == result


@pytest.mark.parametrize(
    ("overrides", "best_step"),
    [(["validate.mode=max"], 9), (["validate.mode=min"], 6), (["validate.min_change=2.5"], 3)],
)
def test_better_is_what_the_recipe_says(tiny: Tiny, tmp_path: Path, overrides: list[str], best_step: int) -> None:
    result = train(tiny("data.metric=[9, 5, 4, 6, 5, 5, 5]", *overrides), tmp_path)
    assert result.best is not None
    assert result.best.step == best_step


def test_a_metric_that_is_not_a_number_is_never_the_best(tiny: Tiny, tmp_path: Path) -> None:
    result = train(tiny("data.metric=[9, nan, 4, nan]", "train.epochs=3"), tmp_path)
    assert result.best is not None
    assert result.best.step == 6
    assert result.metrics == {"error": None}
    assert _validations(tmp_path)[-1].metrics == {"error": None}


def test_a_metric_that_the_task_does_not_have_is_found_before_the_first_step(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown validation metric 'eror'\. Did you mean 'error'"):
        train(tiny("validate.metric=eror"), tmp_path)
    assert steps_of(tmp_path) == []


def test_validation_logs_and_checkpoints_come_at_their_times(tiny: Tiny, tmp_path: Path) -> None:
    recipe = tiny("validate.every_steps=5", "validate.at_start=false", "checkpoint.keep=9", "log.every_steps=6")
    saved: list[int] = []
    train(recipe, tmp_path, on_event=lambda e: saved.append(e.step) if isinstance(e, Saved) else None)
    best = [record.step for record in _validations(tmp_path) if record.best]
    assert [record.step for record in _validations(tmp_path)] == [5, 10, 15, 18]
    assert [s["step"] for s in steps_of(tmp_path)] == [1, 6, 12, 18]
    assert saved == sorted({4, 8, 12, 16, 18, *best}) == _saved_steps(tmp_path)


def test_evaluation_repeats_what_validation_said(whole: Path) -> None:
    result = json.loads((whole / "result.json").read_text())["result"]
    report = evaluate(whole)
    assert report["metrics"] == result["metrics"]
    assert report["step"] == 18
    assert report["trained_on"] == report["data_fingerprint"]
    assert json.loads((whole / "evaluation-best.json").read_text())["metrics"] == result["metrics"]
    other = evaluate(whole, "last", ["data.seed=8"])
    assert other["metrics"]["error"] != result["metrics"]["error"]
    assert other["trained_on"] != other["data_fingerprint"]


def test_a_loaded_run_has_the_average_of_the_weights(whole: Path) -> None:
    run = load_run(whole)
    average = load_file(run.checkpoint / "ema.safetensors")
    assert not run.model.training
    assert all(torch.equal(tensor, average[name]) for name, tensor in run.model.state_dict().items())


def test_a_model_that_no_longer_fits_its_checkpoint_is_refused(whole: Path) -> None:
    with pytest.raises(InvalidFile, match=r"the weights do not fit the model: 0\.weight is \(8, 3\), the model needs"):
        load_run(whole, overrides=["model.hidden=9"])


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="holds no intact checkpoint"):
        evaluate(tmp_path)


@pytest.mark.parametrize("kind", ["run", "checkpoint", "file"])
def test_a_run_can_start_from_given_weights(tiny: Tiny, tmp_path: Path, whole: Path, kind: str) -> None:
    source = {"run": whole, "checkpoint": find_checkpoint(whole), "file": tmp_path / "w.safetensors"}[kind]
    save_file(load_file(find_checkpoint(whole) / "ema.safetensors"), tmp_path / "w.safetensors")
    train(tiny(f"train.init_from={source}", "train.epochs=1"), tmp_path / "run")
    assert _validations(tmp_path / "run")[0].metrics == _validations(whole)[-1].metrics


def test_weights_that_are_none_are_refused(tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"no weights")
    with pytest.raises(InvalidFile, match="cannot be read as safetensors"):
        train(tiny(f"train.init_from={tmp_path / 'w.safetensors'}"), tmp_path / "run")


def test_a_precision_that_the_device_lacks_is_refused_before_work(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="fp16 needs a CUDA device"):
        train(tiny("train.precision=fp16", "train.device=cpu"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_full_disk_ends_the_run_and_keeps_what_was_saved(tiny: Tiny, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def listen(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 11:
            room = (tmp_path / "log.jsonl").stat().st_size + 400
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))

    try:
        with pytest.raises(InvalidFile, match="step-00000012: the checkpoint cannot be written"):
            train(tiny("model.hidden=400", "validate.every_steps=100"), tmp_path, on_event=listen)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert _saved_steps(tmp_path) == [4, 8]
    assert find_checkpoint(tmp_path).name == "step-00000008"
