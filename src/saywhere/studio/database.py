"""Where what people said is kept: SQLite in WAL mode, in the folder that it belongs to, or PostgreSQL by URL.

    project   one folder's share: a Studio's people, a collection's answers, a study's ratings
    line      JSON as it was written, in its order; nothing is changed or taken out

A folder has its own database, `saywhere.sqlite`. A project that was moved to another database leaves the address there,
so that the folder is all that anybody has to know.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    insert,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError

from saywhere.atomic import DiskFull
from saywhere.core.errors import InvalidFile, InvalidValue, require
from saywhere.studio.migrations import MIGRATIONS, Migration, is_current, migrate
from saywhere.studio.participants import DATABASE

_WAIT_MS = 30_000
_MOST_MOVES = 10
# What SQLite says without room on the disk, in somebody's share of it, or for so large a file.
_FULL = frozenset({"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_TRUNCATE"})
_tables = MetaData()
_project = Table("project", _tables, *(Column(name, Text) for name in ("key", "name", "added", "moved_to")))
_line = Table(
    "line",
    _tables,
    Column("project", Text),
    Column("log", Text),
    Column("number", Integer),
    Column("body", LargeBinary),
)
Line = tuple[int, bytes]
"""The number of a line, from 1, and what stands in it."""


class Database:
    """One database, with the tables of this version. Threads and processes may share it: one writes at a time."""

    def __init__(self, url: str | Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        """url: a file, or as in postgresql://user@host/name."""
        address = _file_address(url) if isinstance(url, Path) else _address(url)
        self.url = address.render_as_string()
        self._engine = _engine(address)
        try:
            with self.reading() as connection:
                current = is_current(connection, len(migrations))
            if not current:
                with self.writing() as connection:
                    migrate(connection, self.url, migrations)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one moment of the database (SQLite), or what is committed (PostgreSQL)."""
        with self._said("read"), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection whose changes are all on the disk when the block ends, or none if it raises."""
        with (
            self._said("written"),
            self._engine.connect().execution_options(saywhere_writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _said(self, what: str) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if getattr(error.orig, "sqlite_errorname", "") in _FULL or getattr(error.orig, "sqlstate", "") == "53100":
                raise DiskFull(self.url) from error
            reason = " ".join(str(error.orig).split()) or type(error.orig).__name__
            raise InvalidFile(self.url, f"cannot be {what}: {reason}") from error


def _file_address(path: Path) -> URL:
    return URL.create("sqlite", database=str(path.resolve()))


def _address(url: str) -> URL:
    try:
        address = make_url(url)
    except ArgumentError as error:
        raise InvalidValue("database", f"{url!r} is no URL", "such as postgresql://user@host/name") from error
    if address.password is not None:
        hint = "leave it out; PGPASSWORD or ~/.pgpass can have it"
        raise InvalidValue("database", "the URL holds a password, which everybody on the computer would see", hint)
    name = {"postgres": "postgresql", "postgresql+psycopg": "postgresql"}.get(address.drivername, address.drivername)
    if name == "sqlite" and address.database and address.database != ":memory:":
        return _file_address(Path(address.database))
    if name != "postgresql":
        raise InvalidValue(
            "database", f"{url!r} is none that is known", "sqlite:///FILE or postgresql://user@host/name"
        )
    require("psycopg", needed_for="a PostgreSQL database", extra="postgresql")
    return address.set(drivername=name)


def _engine(address: URL) -> Engine:
    if address.drivername == "postgresql":
        return create_engine(address.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    engine = create_engine(address)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # Python's driver would begin transactions by itself, and not before tables.
    for pragma in (f"busy_timeout = {_WAIT_MS}", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # Who means to write waits for the others first: what was read could not be written on otherwise.
    writes = connection.get_execution_options().get("saywhere_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class Project:
    """What one folder keeps, wherever its database is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     project = Project(Path(folder))
    ...     with project.writing() as connection:
    ...         project.put(connection, "answers", [(1, b"{}")])
    ...     project.lines("answers")
    [(1, b'{}')]
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InvalidFile(folder, "is not a folder, so that nothing can be kept in it")
        self.folder = folder
        self.own = self.database = Database(folder / DATABASE)
        self.key, moved_to = self._entered()
        for _ in range(_MOST_MOVES):
            if moved_to is None:
                return
            before, self.database = self.database, Database(moved_to)
            if before is not self.own:
                before.close()
            with self.database.reading() as connection:
                moved_to = connection.execute(select(_project.c.moved_to).where(_project.c.key == self.key)).scalar()
        raise InvalidFile(self.own.url, f"the project was moved round in a circle: {moved_to}")

    def _entered(self) -> tuple[str, str | None]:
        """Its key, and where it was moved to. It is entered into the folder's own database if it is not there."""
        first = select(_project.c.key, _project.c.moved_to).order_by(_project.c.added)
        with self.own.reading() as connection:
            found = connection.execute(first).first()
        if found is None:
            with self.own.writing() as connection:
                if connection.execute(first).first() is None:
                    _enter(connection, f"{self.folder.resolve().name}-{secrets.token_hex(8)}")
                found = connection.execute(first).one()
        return str(found.key), found.moved_to

    def lines(self, log: str, after: int = 0, connection: Connection | None = None) -> list[Line]:
        """The lines of a log whose number is above `after`, in their order."""
        if connection is None:
            with self.database.reading() as reading:
                return self.lines(log, after, reading)
        wanted = (_line.c.project == self.key) & (_line.c.log == log) & (_line.c.number > after)
        found = connection.execute(select(_line.c.number, _line.c.body).where(wanted).order_by(_line.c.number))
        return [(number, bytes(body)) for number, body in found]

    def logs(self, connection: Connection | None = None) -> list[str]:
        """The logs that have lines."""
        if connection is None:
            with self.database.reading() as reading:
                return self.logs(reading)
        found = connection.execute(select(_line.c.log).where(_line.c.project == self.key).distinct())
        return sorted(found.scalars())

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection whose changes are kept together or not at all; no other process writes to the project."""
        with self.database.writing() as connection:
            moved_to = connection.execute(
                select(_project.c.moved_to).where(_project.c.key == self.key).with_for_update()
            ).scalar_one()
            if moved_to is not None:
                raise InvalidFile(
                    self.database.url, f"{self.key} was moved to {moved_to}", "end this and start it anew"
                )
            yield connection

    def put(self, connection: Connection, log: str, lines: Sequence[Line]) -> None:
        """Add lines, whose numbers are the next ones, inside `writing`."""
        if lines:
            rows = [{"project": self.key, "log": log, "number": number, "body": body} for number, body in lines]
            connection.execute(insert(_line), rows)

    def move(self, url: str) -> int:
        """Keep the project in another database from now on; how many lines were moved.

        What is killed half way is done again by calling it again: the lines count where they were until all of them
        are in the new place, and they stay in the old one.
        """
        target = Database(url)
        try:
            if target.url == self.database.url:
                raise InvalidValue("database", f"the project is in {target.url} already")
            with self.writing() as source:
                kept = [(log, self.lines(log, 0, source)) for log in self.logs(source)]
                with target.writing() as connection:
                    self._copy(connection, kept)
                _moved(source, self.key, target.url)
            if self.own.url not in (self.database.url, target.url):  # Otherwise its row is right already.
                with self.own.writing() as connection:
                    _moved(connection, self.key, target.url)
        except BaseException:
            target.close()
            raise
        before, self.database = self.database, target
        if before is not self.own:
            before.close()
        return sum(len(lines) for _, lines in kept)

    def _copy(self, connection: Connection, kept: Sequence[tuple[str, Sequence[Line]]]) -> None:
        there = connection.execute(select(_project.c.key).where(_project.c.key == self.key)).first()
        if there is None:
            _enter(connection, self.key)
        for log, lines in kept:
            before = self.lines(log, 0, connection)
            if list(lines[: len(before)]) != before:
                raise InvalidFile(log, f"other lines of {self.key} are in the new database", "choose another one")
            self.put(connection, log, lines[len(before) :])
        _moved(connection, self.key, None)

    def close(self) -> None:
        self.own.close()
        self.database.close()


def _enter(connection: Connection, key: str) -> None:
    name, added = key.rpartition("-")[0], datetime.now(UTC).isoformat()
    connection.execute(insert(_project).values(key=key, name=name, added=added))


def _moved(connection: Connection, key: str, url: str | None) -> None:
    connection.execute(update(_project).where(_project.c.key == key).values(moved_to=url))
