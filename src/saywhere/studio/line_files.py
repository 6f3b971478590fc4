"""Lines that earlier versions kept in files, taken into the database."""

from __future__ import annotations

from pathlib import Path

from saywhere.core.errors import InvalidFile
from saywhere.studio.database import Line, Project

LOGS = ("answers", "ratings")
"""Which logs were files: answers.jsonl of a collection, ratings.jsonl of a study."""
MIGRATED = ".migrated"
"""What the name of a file ends in afterwards. The file itself stays as it is."""


def migrate_files(folder: Path) -> dict[str, int]:
    """Take the line files of a folder into its database; how many lines each had. Bad lines are taken, too.

    If it is killed half way, calling it again finishes it: a file is set aside when its lines are on the disk.
    """
    if not folder.is_dir():
        raise InvalidFile(folder, "is not a folder")
    done: dict[str, int] = {}
    for log in LOGS:
        path = folder / f"{log}.jsonl"
        if path.exists():
            lines = _lines(path)
            _take(folder, log, lines)
            path.rename(_aside(path))
            done[log] = len(lines)
    return done


def _lines(path: Path) -> list[Line]:
    """With their numbers in the file. Empty ones are left out."""
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
    return [(number, body) for number, body in enumerate(whole.split(b"\n"), 1) if body.strip()]


def _take(folder: Path, log: str, lines: list[Line]) -> None:
    project = Project(folder)
    try:
        with project.writing() as connection:
            before = project.lines(log, 0, connection)
            if lines[: len(before)] != before:
                hint = "look at both, and move the file away if it is not wanted"
                raise InvalidFile(folder / f"{log}.jsonl", "the database has other lines already", hint)
            project.put(connection, log, lines[len(before) :])
    finally:
        project.close()


def _aside(path: Path) -> Path:
    """A name that no file has."""
    name = path.with_name(path.name + MIGRATED)
    number = 1
    while name.exists():
        number += 1
        name = path.with_name(f"{path.name}{MIGRATED}.{number}")
    return name
