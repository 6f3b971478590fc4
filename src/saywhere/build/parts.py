"""Trained parts are put into a model's folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from saywhere.core.errors import InvalidFile
from saywhere.models.patchioner.seer_config import read_config, save_config


def install_part(part: Path, model: Path, **said: Any) -> None:
    """Put a folder into a model's folder, in place of one of its name that was there. said: what seer.json says of it
    from now on. Whether the part is what it should be is for the caller to see first."""
    config, target = read_config(model), model / part.name
    if target.resolve() == part.resolve():
        raise InvalidFile(part, "is in the model's folder already")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(part, target)
    save_config(model, msgspec.to_builtins(config) | said)
