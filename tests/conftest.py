"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# On a build machine the examples are always the same, so that a red build means a change broke something.
settings.register_profile("saywhere", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("saywhere")

SHARED = Path(os.environ.get("SAYWHERE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """A file of the folder with real data and reference vectors; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"needs {name} from the shared data folder (set SAYWHERE_SHARED)")
        return path

    return find
