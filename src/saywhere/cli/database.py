"""`saywhere database`: where what people said is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.console import out
from saywhere.core.errors import InvalidFile, require

if TYPE_CHECKING:
    from saywhere.studio.database import Project

app = typer.Typer(
    help="Where what people said is kept: SQLite in the folder itself, or PostgreSQL.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Argument(help="Folder of a Studio, a collection or a study.", metavar="DIR")]


@app.command()
def migrate(folder: Folder) -> None:
    """Take answers.jsonl or ratings.jsonl of an earlier version into the folder's database. Nothing is lost.

    Bad lines are taken as well, and the files stay, under another name.
    """
    require("sqlalchemy", needed_for="a database", extra="studio")
    from saywhere.studio.line_files import MIGRATED, migrate_files

    done = migrate_files(folder)
    for log, lines in done.items():
        out.print(f"{log}: {lines:,} lines taken; the file is now {log}.jsonl{MIGRATED}", markup=False)
    if not done:
        out.print("there is no file of an earlier version", markup=False)


@app.command()
def move(
    folder: Folder,
    url: Annotated[
        str, typer.Argument(help="Where to: postgresql://user@host/name, or sqlite:///FILE.", metavar="URL")
    ],
) -> None:
    """Keep the lines of a folder in another database from now on. Servers that use it must be started anew.

    Several folders may share one database. A password comes from PGPASSWORD or ~/.pgpass, not in the URL.
    """
    project = _opened(folder)
    try:
        moved = project.move(url)
        out.print(f"{moved:,} lines moved to {project.database.url}", markup=False)
    finally:
        project.close()


@app.command()
def show(folder: Folder) -> None:
    """Show where the lines of a folder are, and how many."""
    project = _opened(folder)
    try:
        out.print(f"{project.key} in {project.database.url}", markup=False)
        for log in project.logs():
            out.print(f"{log}: {len(project.lines(log)):,} lines", markup=False)
    finally:
        project.close()


def _opened(folder: Path) -> Project:
    require("sqlalchemy", needed_for="a database", extra="studio")
    from saywhere.studio.database import Project
    from saywhere.studio.participants import has_database

    if not has_database(folder):
        raise InvalidFile(folder, "has no database", "one is made when people begin to answer")
    return Project(folder)
