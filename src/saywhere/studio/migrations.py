"""How a database comes to have the tables of this version: numbered steps, each done once and as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, inspect, text

from saywhere.core.errors import InvalidFile

_LOCK = 7_105_118
"""Any number, always the same: for PostgreSQL, who migrates."""


@dataclass(frozen=True, slots=True)
class Migration:
    """statements: SQL that both databases understand; {bytes} stands for their type of bytes.

    A migration that was released is never changed: what is to be different is another one.
    """

    name: str
    statements: tuple[str, ...]


MIGRATIONS = (
    Migration(
        "projects and their lines",
        (
            "CREATE TABLE project (key TEXT PRIMARY KEY, name TEXT NOT NULL, added TEXT NOT NULL, moved_to TEXT)",
            "CREATE TABLE line (project TEXT NOT NULL REFERENCES project (key), log TEXT NOT NULL, "
            "number INTEGER NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (project, log, number))",
        ),
    ),
)
"""Number 1 first."""


def is_current(connection: Connection, known: int) -> bool:
    """Whether there is nothing to migrate. Asked first, so that who only reads need not wait for who writes."""
    if not inspect(connection).has_table("migration"):
        return False
    return bool(connection.execute(text("SELECT MAX(number) FROM migration")).scalar() == known)


def migrate(connection: Connection, url: str, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Do what is missing, inside the caller's transaction: all of it or, if that is killed, nothing. How many steps.

    InvalidFile if the database is of a later version than this program.
    """
    postgresql = connection.dialect.name == "postgresql"
    if postgresql:  # SQLite has one writer anyway.
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    connection.execute(
        text("CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, at TEXT NOT NULL)")
    )
    done = connection.execute(text("SELECT COALESCE(MAX(number), 0) FROM migration")).scalar_one()
    if done > len(migrations):
        reason = f"is of a later version: it has migration {done}, this program knows {len(migrations)}"
        raise InvalidFile(url, reason, "bring saywhere up to date: pip install -U saywhere")
    for number, migration in enumerate(migrations[done:], done + 1):
        for statement in migration.statements:
            connection.execute(text(statement.replace("{bytes}", "BYTEA" if postgresql else "BLOB")))
        connection.execute(
            text("INSERT INTO migration (number, name, at) VALUES (:number, :name, :at)"),
            {"number": number, "name": migration.name, "at": datetime.now(UTC).isoformat(timespec="seconds")},
        )
    return len(migrations) - int(done)
