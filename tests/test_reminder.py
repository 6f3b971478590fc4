"""The last line of a run says which browser tests did not run. Each run here is a small one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BROWSER = "def test_{name}():\n    import pytest\n    {body}\n"


def last_line(folder: Path, *more: str) -> str:
    """What pytest says last of tests in a folder, with the hooks of this one."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", *more, "tests"]
    path = os.pathsep.join([str(ROOT), *sys.path])
    (folder / "pytest.ini").write_text("[pytest]\n")
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    return run.stdout.rstrip().splitlines()[-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tests/studio/browser").mkdir(parents=True)
    (tmp_path / "tests/test_other.py").write_text(BROWSER.format(name="other", body="pytest.skip('no data')"))
    return tmp_path


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_the_last_line_counts_browser_tests_that_did_not_run(folder: Path, workers: tuple[str, ...]) -> None:
    tests = "".join(BROWSER.format(name=name, body="pytest.skip('needs Chromium')") for name in ("a", "b"))
    (folder / "tests/studio/browser/test_page.py").write_text(tests)
    said = last_line(folder, *workers)
    assert said.startswith("2 browser tests did not run: install Chromium")
    assert "SAYWHERE_CHROMIUM" in said


def test_where_all_browser_tests_run_there_is_nothing_to_say(folder: Path) -> None:
    (folder / "tests/studio/browser/test_page.py").write_text(BROWSER.format(name="a", body="assert True"))
    assert "passed" in last_line(folder)
