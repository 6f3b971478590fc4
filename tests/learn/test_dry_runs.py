"""The papers' recipes make their first step on two processes, and can be planned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from saywhere.learn.checkpoint import list_checkpoints, verify_checkpoint
from tests.learn.conftest import run_python, steps_of
from tests.learn.dry_runs import ITEMS, PAPERS, write_data
from tests.learn.test_sharding import LAUNCHER


@pytest.fixture(scope="module")
def dry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dry")
    for name in PAPERS:
        write_data(name, out)
    done = run_python(*LAUNCHER, "-m", "tests.learn.dry_runs", str(out), timeout_s=900)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_recipe_makes_its_first_step(dry: Path, name: str) -> None:
    told: dict[str, Any] = json.loads((dry / name / "told.json").read_text())
    assert (told["status"], told["steps"]) == ("finished", 1)
    [step] = steps_of(dry / name / "run")
    assert step["norm"] > 0
    [kept] = list_checkpoints(dry / name / "run" / "checkpoints")
    verify_checkpoint(kept)
    pieces = {path.name for path in kept.glob("model*.safetensors")}
    whole = {"model.safetensors"}
    in_pieces = {"model-0-of-2.safetensors", "model-1-of-2.safetensors"}
    assert pieces == (in_pieces if name == "tracevlm-stage1.5-paper" else whole)


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_recipe_can_be_planned(dry: Path, name: str) -> None:
    plan = json.loads((dry / name / "told.json").read_text())["plan"]
    assert (plan["items"], plan["steps"], plan["micro_batch"]) == (ITEMS, 1, 4)
    assert plan["flops_per_item"] > 2 * plan["trainable"]
    spread = 2 if name == "tracevlm-stage1.5-paper" else 1
    assert plan["state_bytes"] * spread == pytest.approx(4 * plan["parameters"] + 12 * plan["trainable"], abs=4)
