"""The papers' recipes to their first step, on two processes: torchrun … -m tests.learn.dry_runs OUT

Data are a few items. Networks have the recipe's own size where two of them fit into a small machine: Oscar has 2 of its
12 layers, and TraceVLM's base is a Qwen2.5-VL of a few thousand numbers instead of 8 billion, through the same code.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from saywhere.learn import Recipe, processes, train
from saywhere.learn.estimate import estimate
from saywhere.learn.recipe import parse_recipe
from tests.learn.test_accumulate import RECIPES, TASKS, TRACEVLM

PAPERS = ("mitr-paper", "hint-vqa-v2", "oscar-paper", "patchioner-decoder-paper", "tracevlm-stage1.5-paper")
SMALLER: dict[str, dict[str, Any]] = {"oscar-paper": {"layers": 2}, "tracevlm-stage1.5-paper": TRACEVLM}
ITEMS = 100_000


def write_data(name: str, out: Path) -> None:
    TASKS[_table(name)["task"]][0](out / name / "data")


def dry_recipe(name: str, out: Path) -> Recipe:
    """A recipe with a few items in place of its data, and one step."""
    table, folder = _table(name), out / name / "data"
    train_table = {key: value for key, value in table["train"].items() if key not in ("init_from", "epochs")}
    train_table |= {"steps": 1, "batch_size": 8, "accumulate": 1, "workers": 0, "device": "cpu", "num_threads": 1}
    model = {key: value for key, value in table["model"].items() if key != "start"} | SMALLER.get(name, {})
    if table["task"] == "tracevlm":
        model["base"] = str(folder / "base")
    data = table["data"] | {"folder": str(folder)}
    if "held_out" in data:
        data["held_out"] = 4
    changed = {"train": train_table, "model": model, "data": data, "log": {"plot": False}}
    return parse_recipe(table | changed, name)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((RECIPES / f"{name}.toml").read_text(encoding="utf-8"))


def main(out: Path) -> None:
    faulthandler.enable()
    for name in PAPERS:
        recipe = dry_recipe(name, out)
        result = train(recipe, out / name / "run")
        if os.environ["RANK"] == "0":
            plan = estimate(recipe, processes=2, items_per_epoch=ITEMS)
            told = {"status": result.status, "steps": result.steps, "plan": asdict(plan) | {"flops": plan.flops}}
            (out / name / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    processes.leave_together()
