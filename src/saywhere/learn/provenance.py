"""What every result file carries, so that a number can be traced to what made it."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import torch

import saywhere
from saywhere.learn.recipe import Recipe
from saywhere.provenance import git_hash


def provenance(recipe: Recipe, data_fingerprint: str) -> dict[str, Any]:
    """Versions, git hash (None outside a checkout), recipe, seed and what the data was."""
    return {
        "saywhere": saywhere.__version__,
        "git": git_hash(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "recipe": recipe.to_table(),
        "seed": recipe.seed,
        "data_fingerprint": data_fingerprint,
    }
