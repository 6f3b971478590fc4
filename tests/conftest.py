"""Fixtures that every test may use, and what the last line says of tests that did not run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# On a build machine the examples are always the same, so that a red build means a change broke something.
settings.register_profile("saywhere", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("saywhere")

# A shell starts background jobs with Ctrl-C ignored, and whoever they start inherits that: tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(os.environ.get("SAYWHERE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
BROWSER_TESTS = "tests/studio/browser/"


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """A file of the folder with real data and reference vectors; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"needs {name} from the shared data folder (set SAYWHERE_SHARED)")
        return path

    return find


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Say last how many browser tests did not run, and how to get them: after the reporter's own last line."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", ()) if reporter else ()  # a worker of xdist reports to another
    if count := sum(BROWSER_TESTS in report.nodeid for report in skipped):
        reporter.write_line(
            f"{count} browser {'test' if count == 1 else 'tests'} did not run: install Chromium (apt install chromium) "
            "or set SAYWHERE_CHROMIUM to its path, and pip install playwright",
            yellow=True,
        )
