"""What stands in the logs of a folder, read and written behind the program's back."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from saywhere.studio.database import Project
from saywhere.studio.participants import has_database


def log_bodies(folder: Path, log: str) -> list[bytes]:
    """The lines of a log as they are kept; none if there is no database."""
    if not has_database(folder):
        return []
    with closing(Project(folder)) as project:
        return [body for _, body in project.lines(log)]


def log_lines(folder: Path, log: str) -> list[dict[str, Any]]:
    return [json.loads(body) for body in log_bodies(folder, log)]


def add_raw(folder: Path, log: str, body: bytes) -> None:
    """A line as no program of ours writes it."""
    with closing(Project(folder)) as project, project.writing() as connection:
        project.put(connection, log, [(len(project.lines(log, 0, connection)) + 1, body)])
