"""The one database, SQLite and PostgreSQL: migrations, many writers, moves, kills, and files of earlier versions."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import count
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from saywhere.cli.database import app
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.studio import database
from saywhere.studio.collect_answers import read_answers
from saywhere.studio.database import Database, Project
from saywhere.studio.line_files import migrate_files
from saywhere.studio.migrations import MIGRATIONS, Migration
from saywhere.studio.participants import DATABASE
from saywhere.studio.study_ratings import Rating, RatingLog, read_ratings

from .logs import log_bodies
from .postgresql import postgresql

LATER = Migration("when lines came", ("ALTER TABLE line ADD COLUMN came TEXT", "UPDATE line SET came = 'before'"))
BROKEN = Migration("half a step", ("ALTER TABLE line ADD COLUMN came TEXT", "SELECT * FROM nowhere"))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture
def empty(server: str) -> str:
    """The URL of a PostgreSQL without tables."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'lab.sqlite'}"
    return str(request.getfixturevalue("empty"))


def rating(number: int, **more: Any) -> Rating:
    return Rating(**{"participant": "P1", "item": f"q{number}", "left": "a", "rating": 1, "at": "2020", **more})


def rated(folder: Path, numbers: range = range(3)) -> Path:
    folder.mkdir(exist_ok=True)
    with closing(RatingLog(folder)) as log:
        log.add(*(rating(number) for number in numbers))
    return folder


def items(folder: Path) -> list[str]:
    return [one.item for one in read_ratings(folder)]


def begun(act: Callable[[], object]) -> int:
    """Do something in another process; its number."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def ended(child: int) -> int:
    """How a process ended: 0 is well, −9 killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deadly(act: Callable[..., Any]) -> Callable[..., None]:
    """The same, and then death."""

    def acting(*given: Any) -> None:
        act(*given)
        die()

    return acting


# Migrations.


def columns(url: str) -> set[str]:
    with closing(Database(url, (*MIGRATIONS, LATER))) as database, database.reading() as connection:
        return set(connection.execute(text("SELECT * FROM line")).keys())


def test_a_later_version_finds_every_line_and_an_earlier_one_is_told_to_catch_up(url: str, tmp_path: Path) -> None:
    folder = rated(tmp_path / "study")
    with closing(Project(folder)) as project:
        assert project.move(url) == 3
    assert "came" in columns(url)
    with closing(Database(url, (*MIGRATIONS, LATER))) as database, database.reading() as connection:
        assert connection.execute(text("SELECT DISTINCT came FROM line")).scalars().all() == ["before"]
        names = connection.execute(text("SELECT name FROM migration ORDER BY number")).scalars().all()
    assert names == [*(one.name for one in MIGRATIONS), LATER.name]
    with pytest.raises(InvalidFile, match="of a later version: it has migration 2, this program knows 1"):
        Database(url)


def test_a_migration_that_fails_leaves_everything_as_it_was(url: str, tmp_path: Path) -> None:
    folder = rated(tmp_path / "study")
    with closing(Project(folder)) as project:
        project.move(url)
    with pytest.raises(InvalidFile, match="cannot be written"):
        Database(url, (*MIGRATIONS, LATER, BROKEN))
    assert items(folder) == ["q0", "q1", "q2"]
    assert "came" in columns(url)


def test_a_migration_that_is_killed_half_way_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = rated(tmp_path / "study")
    with monkeypatch.context() as patch:
        patch.setattr("saywhere.studio.migrations.datetime", SimpleNamespace(now=die))
        assert ended(begun(lambda: Database(folder / DATABASE, (*MIGRATIONS, LATER)))) == -signal.SIGKILL
    assert items(folder) == ["q0", "q1", "q2"]
    assert "came" in columns(f"sqlite:///{folder / DATABASE}")


def test_many_processes_that_open_an_empty_database_at_once_migrate_it_once(url: str) -> None:
    opening = [begun(lambda: Database(url).close()) for _ in range(6)]
    assert [ended(one) for one in opening] == [0] * 6
    with closing(Database(url)) as database, database.reading() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM migration")).scalar_one() == len(MIGRATIONS)


# Writers.


def test_sqlite_is_in_wal_mode_and_a_line_is_on_the_disk_when_it_counts(tmp_path: Path) -> None:
    rated(tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with closing(Database(tmp_path / DATABASE)) as database, database.reading() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2


def write_on(folder: Path, who: str, lines: int) -> None:
    with closing(RatingLog(folder)) as log:
        for number in range(lines):
            log.add(rating(number, participant=who))


def test_several_processes_write_at_once_and_nothing_is_lost_or_doubled(url: str, tmp_path: Path) -> None:
    folder = rated(tmp_path / "study", range(1))
    with closing(Project(folder)) as project:
        project.move(url)
    writers = [begun(partial(write_on, folder, f"W{n}", 15)) for n in range(4)]
    assert [ended(one) for one in writers] == [0] * 4
    found = read_ratings(folder)
    assert {who: len(rated) for who, rated in found.ratings.items()} == {"P1": 1, **{f"W{n}": 15 for n in range(4)}}
    assert found.bad_lines == []
    assert len(log_bodies(folder, "ratings")) == 61


def test_a_log_sees_what_another_writes_and_refuses_what_does_not_go_with_it(tmp_path: Path) -> None:
    with closing(RatingLog(tmp_path)) as one, closing(RatingLog(tmp_path)) as other:
        one.add(rating(0))
        assert [line.item for line in other.given] == ["q0"]
        other.add(rating(1))
        with pytest.raises(InvalidValue, match="has rated q1 already"):
            one.add(rating(1))
        assert [line.item for line in one.given] == ["q0", "q1"]


def test_of_several_lines_all_are_kept_or_none(tmp_path: Path) -> None:
    with closing(RatingLog(tmp_path)) as log:
        with pytest.raises(InvalidValue):
            log.add(rating(0), rating(1), rating(0))
        assert list(log.given) == []
        log.add(rating(0), rating(1))
    assert items(tmp_path) == ["q0", "q1"]


def test_reading_where_nobody_has_answered_makes_no_file(tmp_path: Path) -> None:
    assert list(read_ratings(tmp_path)) == list(read_answers(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


# Other databases.


def test_a_project_moves_to_another_database_and_back_with_every_line(url: str, tmp_path: Path) -> None:
    folder = rated(tmp_path / "study")
    other = rated(tmp_path / "other", range(7))
    before = log_bodies(folder, "ratings")
    for one in (folder, other):
        with closing(Project(one)) as project:
            project.move(url)
    rated(folder, range(3, 5))
    assert log_bodies(folder, "ratings")[:3] == before
    assert items(folder) == [f"q{n}" for n in range(5)]
    with closing(Project(folder)) as project:
        project.move(project.own.url)
    assert items(folder) == [f"q{n}" for n in range(5)]
    rated(folder, range(5, 6))
    with closing(Project(folder)) as project:
        project.move(url)
    assert items(folder) == [f"q{n}" for n in range(6)]
    assert items(other) == [f"q{n}" for n in range(7)]


def test_who_still_writes_to_the_old_place_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = rated(tmp_path / "study")
    with closing(RatingLog(folder)) as log:
        log.add(rating(3))
        with closing(Project(folder)) as project:
            project.move(f"sqlite:///{tmp_path / 'lab.sqlite'}")
        with pytest.raises(InvalidFile, match="was moved to sqlite"):
            log.add(rating(4))
    assert items(folder) == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize("after", ["Project._copy", "_moved"])
def test_a_move_that_is_killed_half_way_is_finished_by_another(
    url: str, tmp_path: Path, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = rated(tmp_path / "study")
    with monkeypatch.context() as patch:
        patch.setattr(f"saywhere.studio.database.{after}", deadly(attrgetter(after)(database)))
        assert ended(begun(lambda: Project(folder).move(url))) == -signal.SIGKILL
    rated(folder, range(3, 4))
    with closing(Project(folder)) as project:
        assert project.move(url) == 4
    assert items(folder) == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("nonsense", "is no URL"),
        ("mysql://a@b/c", "none that is known"),
        ("sqlite://", "none that is known"),
        ("postgresql://a:secret@b/c", "holds a password"),
    ],
)
def test_a_url_that_cannot_be_is_refused_in_words_that_tell_no_secret(given: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason) as said:
        Database(given)
    assert "secret" not in str(said.value)


def test_a_server_that_does_not_answer_is_said(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidFile, match="cannot be read: connection"):
        Database(f"postgresql://lab@/postgres?host={tmp_path}")


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"nothing of the kind " * 100)
    with pytest.raises(InvalidFile, match="file is not a database"):
        read_ratings(tmp_path)


# Files of earlier versions.

OLD = b'{"participant":"P1","item":"q0","left":"a","rating":1,"at":"2020"}\n'
TORN = b'{"participant":"P1","it'
BYTES = b"\xff\x00 not text\n"


def old_folder(folder: Path, lines: int = 3) -> bytes:
    folder.mkdir(exist_ok=True)
    whole = b"".join(OLD.replace(b"q0", f"q{n}".encode()) for n in range(lines)) + BYTES + b"\n" + TORN
    (folder / "ratings.jsonl").write_bytes(whole)
    return whole


def test_a_file_of_an_earlier_version_is_named_until_it_is_migrated(tmp_path: Path) -> None:
    old_folder(tmp_path)
    for ask in (lambda: read_ratings(tmp_path), lambda: RatingLog(tmp_path).add(rating(9))):
        with pytest.raises(InvalidFile, match="saywhere database migrate"):
            ask()
    assert not (tmp_path / DATABASE).exists()


def test_every_line_of_a_file_is_taken_bad_ones_too_and_the_file_stays(tmp_path: Path) -> None:
    whole = old_folder(tmp_path)
    assert migrate_files(tmp_path) == {"ratings": 5}
    assert (tmp_path / "ratings.jsonl.migrated").read_bytes() == whole
    assert not (tmp_path / "ratings.jsonl").exists()
    assert log_bodies(tmp_path, "ratings") == [line for line in whole.split(b"\n") if line]
    found = read_ratings(tmp_path)
    assert [one.item for one in found] == ["q0", "q1", "q2"]
    assert [bad.number for bad in found.bad_lines] == [4, 6]
    rated(tmp_path, range(3, 4))
    assert items(tmp_path) == ["q0", "q1", "q2", "q3"]
    assert migrate_files(tmp_path) == {}


@pytest.mark.parametrize("moment", ["saywhere.studio.line_files.Project.put", "pathlib.Path.rename"])
def test_a_migration_of_a_file_that_is_killed_is_finished_by_another(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = old_folder(tmp_path, 500)
    with monkeypatch.context() as patch:
        patch.setattr(moment, deadly(Project.put) if moment.endswith("put") else die)
        assert ended(begun(lambda: migrate_files(tmp_path))) == -signal.SIGKILL
    assert (tmp_path / "ratings.jsonl").read_bytes() == whole
    assert len(log_bodies(tmp_path, "ratings")) == (0 if moment.endswith("put") else 502)
    assert migrate_files(tmp_path) == {"ratings": 502}
    assert log_bodies(tmp_path, "ratings") == [line for line in whole.split(b"\n") if line]


def test_a_second_file_of_an_earlier_version_is_not_mixed_in(tmp_path: Path) -> None:
    old_folder(tmp_path)
    migrate_files(tmp_path)
    (tmp_path / "ratings.jsonl").write_bytes(OLD.replace(b"P1", b"P2"))
    with pytest.raises(InvalidFile, match="has other lines already"):
        migrate_files(tmp_path)
    assert len(log_bodies(tmp_path, "ratings")) == 5


def test_kills_at_any_moment_lose_no_line_that_was_kept(tmp_path: Path, url: str) -> None:
    folder = rated(tmp_path / "study", range(1))
    with closing(Project(folder)) as project:
        project.move(url)
    for lines in (1, 4, 9):
        heard, tells = os.pipe()
        child = begun(partial(write_and_tell, folder, tells))
        os.close(tells)
        with os.fdopen(heard, "rb") as hearing:
            kept = [int(hearing.readline()) for _ in range(lines)]
            os.kill(child, signal.SIGKILL)
            rest = hearing.read().split(b"\n")[:-1]
        assert ended(child) == -signal.SIGKILL
        done = int(rest[-1]) if rest else kept[-1]
        found = read_ratings(folder)
        assert found.bad_lines == []
        assert len(list(found)) in (done, done + 1)


def write_and_tell(folder: Path, tells: int) -> None:
    """Add lines for ever; tell how many there are after each."""
    log = RatingLog(folder)
    for number in count(len(list(log.given))):
        log.add(rating(number))
        os.write(tells, f"{number + 1}\n".encode())


# The command line.


def said(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_commands_migrate_move_and_show(tmp_path: Path, url: str) -> None:
    folder = tmp_path / "study"
    old_folder(folder)
    assert "ratings: 5 lines taken" in said("migrate", folder)
    assert "there is no file" in said("migrate", folder)
    assert f"5 lines moved to {url.split('?')[0]}" in said("move", folder, url)
    shown = said("show", folder)
    assert shown.startswith("study-")
    assert "ratings: 5 lines" in shown


@pytest.mark.parametrize("command", ["show", "move"])
def test_a_folder_without_a_database_is_said(tmp_path: Path, command: str) -> None:
    more = ["sqlite:///x.sqlite"] if command == "move" else []
    result = CliRunner().invoke(app, [command, str(tmp_path), *more])
    assert isinstance(result.exception, InvalidFile)
    assert list(tmp_path.iterdir()) == []
