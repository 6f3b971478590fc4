"""What every result file carries, so that a number can be traced to what made it."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import saywhere


def provenance(files: Iterable[Path]) -> dict[str, Any]:
    """Version, git hash (if this is a checkout) and the SHA-256 of every input file."""
    return {
        "saywhere": saywhere.__version__,
        "git": _git_hash(),
        "inputs": {path.name: _digest(path) for path in files},
    }


def _git_hash() -> str | None:
    here = Path(saywhere.__file__).parent
    try:
        asked = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()


def _digest(path: Path) -> str:
    if path.is_dir():
        names = "\n".join(sorted(f"{p.relative_to(path)} {p.stat().st_size}" for p in path.rglob("*") if p.is_file()))
        return "names+sizes:" + hashlib.sha256(names.encode()).hexdigest()
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
