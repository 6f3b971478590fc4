"""What every result file carries, so that a number can be traced to what made it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import saywhere
from saywhere.provenance import git_hash, sha256_of


def provenance(files: Iterable[Path]) -> dict[str, Any]:
    """Version, git hash (if this is a checkout) and the SHA-256 of every input file."""
    return {
        "saywhere": saywhere.__version__,
        "git": git_hash(),
        "inputs": {path.name: _digest(path) for path in files},
    }


def _digest(path: Path) -> str:
    if path.is_dir():
        names = "\n".join(sorted(f"{p.relative_to(path)} {p.stat().st_size}" for p in path.rglob("*") if p.is_file()))
        return "names+sizes:" + hashlib.sha256(names.encode()).hexdigest()
    return f"sha256:{sha256_of(path)}"
