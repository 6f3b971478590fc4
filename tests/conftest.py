"""Fixtures that every test may use, and what the last line says of tests that did not run."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# On a build machine the examples are always the same, so that a red build means a change broke something.
settings.register_profile("saywhere", deadline=None, print_blob=True, derandomize="CI" in os.environ, max_examples=25)
settings.register_profile("thorough", settings.get_profile("saywhere"), max_examples=200)  # --hypothesis-profile
settings.load_profile("saywhere")

_parse = ast.parse


@functools.wraps(_parse)
def _parse_again(*arguments: Any, **named: Any) -> Any:
    """Python 3.11 counts the depth of a parser in one place for all threads, so that parsing may fail by chance while
    another thread does it, too (cpython issue 106905). Hypothesis parses the lambdas that it shows: then once more."""
    for _ in range(4):
        with contextlib.suppress(SystemError):
            return _parse(*arguments, **named)
    return _parse(*arguments, **named)


ast.parse = _parse_again

# Small networks are fastest on one thread, and several test processes share the cores. Before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts background jobs with Ctrl-C ignored, and whoever they start inherits that: tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(os.environ.get("SAYWHERE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
BROWSER_TESTS = "tests/studio/browser/"
# Folders and files that take seconds, not moments. They run first, and `make quick` leaves them out.
# Loads batches in forked processes: a process in which threads of native libraries run already may die of that.
FORKING = ("tests/learn/test_batches.py",)
SLOW = (
    # Whole experiments, trainings that are killed and resumed, several processes.
    *("tests/reproduce/test_hint", "tests/reproduce/test_mitr", "tests/reproduce/test_scenes"),
    *("tests/reproduce/test_tracevlm", "tests/models/tracevlm/test_shipped_trace.py"),
    *("tests/reproduce/test_narrations", "tests/reproduce/test_patchioner", "tests/learn/test_processes.py"),
    *("tests/learn/test_sharding.py", "tests/learn/test_dry_runs.py"),
    *("tests/learn/test_resume.py", "tests/learn/test_hint_task.py", "tests/engine/", "tests/test_reminder.py"),
    *("tests/index/", "tests/build/batch/", "tests/cli/test_library.py"),
    # Browsers and servers.
    *("tests/fuzz/", "tests/doors/test_server.py", "tests/doors/test_model_folders.py"),
    *(BROWSER_TESTS, "tests/reproduce/test_figures.py", "tests/studio/test_openapi", "tests/studio/test_command.py"),
    *("tests/studio/test_database.py", "tests/studio/test_footage.py"),
    *("tests/studio/test_photo_library.py", "tests/vision/test_photo_reader.py"),
    # Java, pip, speech, weights of a real size, and drawings by the dozen.
    *("tests/metrics/test_captions_java.py", "tests/assets/", "tests/test_speech.py", "tests/vision/hub/"),
    *("tests/models/test_shipped_eye.py", "tests/models/test_eye_learning.py", "tests/models/test_photo_writing.py"),
    *("tests/build/test_base.py", "tests/build/test_with_eye.py", "tests/plots/", "tests/world/test_dataset.py"),
)


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """A file of the folder with real data and reference vectors; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"needs {name} from the shared data folder (set SAYWHERE_SHARED)")
        return path

    return find


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes seconds, not moments")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and let it come first: of several processes none is left with a long file in the end. Before
    all that, what forks."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
    items.sort(key=lambda item: (not item.nodeid.startswith(FORKING), item.get_closest_marker("slow") is None))


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
