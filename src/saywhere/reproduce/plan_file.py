"""What an output folder was begun with, so that a run with other settings does not go on from its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile

PLAN = "plan.json"


def settle_plan(out: Path, settings: dict[str, Any]) -> None:
    """Keep the settings in out/plan.json; InvalidFile if the folder was begun with others, such as those of --quick."""
    content = msgspec.json.format(msgspec.json.encode(settings))
    path = out / PLAN
    if path.exists() and path.read_bytes() != content:
        hint = "name another folder with --out, or remove this one"
        raise InvalidFile(out, "holds results of a run with other settings, which would be mixed with these", hint)
    if not path.exists():
        with write_atomic(path) as file:
            file.write(content)
