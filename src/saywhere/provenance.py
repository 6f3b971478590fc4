"""Which code made a result, and of which files. Every package may import this; it stands beside them, not inside."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path


def git_hash() -> str | None:
    """The commit that this code is of, with "+changes" if files differ from it; None if it is not from a checkout."""
    here = Path(__file__).parent
    # A package installed into an environment inside someone's repository is not of that repository.
    if _git(here, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = _git(here, "rev-parse", "HEAD")
    return commit and commit + ("+changes" if _git(here, "status", "--porcelain", "--", ".") else "")


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal; it is never in memory as a whole."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        asked = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()
