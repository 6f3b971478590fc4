"""A PostgreSQL of the tests' own: in a folder, reached through a socket in it, gone in the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_WAIT_S = 30.0


def program(name: str) -> str:
    """Where a program of PostgreSQL is; the test is skipped where there is none."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(debian[-1]) if debian else "")
    if not found:
        pytest.skip("needs PostgreSQL: apt install postgresql, or set SAYWHERE_POSTGRESQL to the URL of an empty one")
    return found


@contextmanager
def postgresql() -> Iterator[str]:
    """A running server. Gives its URL."""
    pytest.importorskip("psycopg", reason="needs pip install 'saywhere[postgresql]'")
    if given := os.environ.get("SAYWHERE_POSTGRESQL"):
        yield given
        return
    initdb, server = program("initdb"), program("postgres")
    # PostgreSQL does not run as root.
    who: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="saywhere-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if who:
            shutil.chown(folder, **who)
        how = [initdb, "-D", str(folder / "data"), "-U", "lab", "-A", "trust", "-N"]
        subprocess.run(how, check=True, capture_output=True, cwd=folder, **who)
        run = [server, "-D", str(folder / "data"), "-k", name, "-c", "listen_addresses=", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            running = subprocess.Popen(run, stdout=log, stderr=log, cwd=folder, **who)
        try:
            url = f"postgresql://lab@/postgres?host={name}"
            _await(url, running)
            yield url
        finally:
            running.send_signal(signal.SIGQUIT)  # At once: nothing of it is needed any more.
            running.wait(_WAIT_S)


def _await(url: str, running: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(int(_WAIT_S / 0.05)):
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert running.poll() is None, "PostgreSQL ended by itself"
            time.sleep(0.05)
        else:
            return
    pytest.fail("PostgreSQL does not answer")
