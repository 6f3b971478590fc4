"""Libraries on object storage (s3://, gs://, az://), which LanceDB reads and writes itself.

Nothing is there but its tables, so whatever key opens them opens all. Besides those of `tables` there are two of one
row: `library`, what a folder has in library.json, and `writer`, who writes. Commits of LanceDB are conditional writes
of the store: of several who change that row at once, one does, and the others see it. A store knows nothing of
processes. One that was killed leaves its name in the row, and is known to be gone only by a lock of the system on its
own machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from saywhere.assets.store import cache_folder
from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.index.places import FolderPlace, StillMine, TablesPlace, lancedb, system_lock, working

SCHEMES = ("s3", "gs", "az")
_ABOUT, _WRITER = "library", "writer"
_FREE = {"id": "", "host": "", "process": 0, "since": "", "here": ""}
_KEPT: Final = timedelta(hours=1)
_LONGEST = 300
_OTHERS = "Too many concurrent writers"
_KEYS = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, and AWS_ENDPOINT_URL for a store not of Amazon's",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


def place_of(where: str | Path) -> TablesPlace:
    """The place that a path or a URL means.

    >>> str(place_of("photos/.saywhere")), str(place_of("s3://bucket/photos/"))
    ('photos/.saywhere', 's3://bucket/photos')
    """
    if isinstance(where, Path) or "://" not in where:
        return FolderPlace(Path(where))
    parts = urlsplit(where)
    if parts.scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise InvalidValue("--index", f"{parts.scheme}:// is no place for a library", f"a folder, or one of {known}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        reason = "a URL with more than a bucket and a name in it: keys are given by the environment"
        raise InvalidValue("--index", reason, _KEYS[parts.scheme])
    if not parts.netloc:
        raise InvalidValue("--index", f"{where} names no bucket", f"{parts.scheme}://BUCKET/NAME")
    return StorePlace(where.rstrip("/"))


def is_store(where: str | Path | None) -> bool:
    """Whether it names a place on object storage, or means to."""
    return isinstance(where, str) and "://" in where


@dataclass(frozen=True)
class StorePlace:
    """A bucket, and perhaps a name in it."""

    url: str

    def __str__(self) -> str:
        return self.url

    @cached_property
    def database(self) -> Any:
        with working(self):
            return lancedb().connect(self.url, storage_options=self._options)

    @property
    def _options(self) -> dict[str, str]:
        """What LanceDB does not take from the environment: who names an address without encryption wants it."""
        plain = self.url.startswith("s3://") and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
        return {"allow_http": "true"} if plain else {}

    def read_note(self) -> bytes | None:
        table = self._opened(_ABOUT)
        if table is None:
            return None
        with working(self):
            [row] = table.search().to_arrow().to_pylist()
        return str(row["note"]).encode()

    def write_note(self, note: bytes) -> None:
        with working(self):
            self.database.create_table(_ABOUT, [{"note": note.decode()}])

    @contextmanager
    def only_writer(self, *, break_lock: bool = False) -> Iterator[StillMine]:
        """A row with who writes. One of this machine that was killed is known to be gone; of another, who says so."""
        folder = cache_folder() / "writers"
        folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(self.url.encode()).hexdigest()[:24]
        with system_lock(folder / f"{name}.lock", self):
            lock = _Lock(self, self._writer_table(), _own_word(folder / f"{name}.word"))
            lock.take(break_lock)
            try:
                yield lock.check
            finally:
                lock.leave()

    def told(self, error: Exception) -> InvalidFile:
        scheme = self.url.partition(":")[0]
        said, hint = " ".join(str(error).split()), f"see {_KEYS[scheme]}"
        if (code := _between("Code", said)) is not None:
            return InvalidFile(self, f"the store says: {_between('Message', said) or 'no'} ({code})", hint)
        if "credentials" in said.lower():
            return InvalidFile(self, "cannot be opened: there is no key for the store", hint)
        if "kind: Connect" in said or "dns error" in said or "timed out" in said:
            why = re.search(r'message: "([^"]+)"', said)
            at = re.search(r"uri: Some\((\w+://[^/)]+)", said)
            where = f"at {at[1]} " if at else ""
            return InvalidFile(self, f"nothing answers {where}({why[1] if why else 'no connection'})", hint)
        if status := re.search(r"status: (\d{3})", said):
            return InvalidFile(self, f"the store answers with HTTP {status[1]}", hint)
        return InvalidFile(self, f"cannot be worked with: {said[:_LONGEST] or type(error).__name__}", hint)

    def _opened(self, name: str) -> Any | None:
        """A table, or None if there is none. A bucket that is not there is an error of the database before."""
        database = self.database
        with working(self):
            try:
                return database.open_table(name)
            except ValueError as error:
                if "was not found" not in str(error):
                    raise
                return None

    def _writer_table(self) -> Any:
        table = self._opened(_WRITER)
        if table is not None:
            return table
        with working(self):
            # Of two who make it at the same moment LanceDB may let one overwrite the other: `_Lock.check` finds out.
            self.database.create_table(_WRITER, [_FREE], exist_ok=True)
            return self.database.open_table(_WRITER)


@dataclass
class _Lock:
    """The row of `writer`. here: a word that only processes with this machine's lock know."""

    place: StorePlace
    table: Any
    here: str
    id: str = ""

    def take(self, break_lock: bool) -> None:
        mine = secrets.token_hex(8)
        free = f"id = '' or here = '{self.here}'"
        if break_lock:
            free += f" or id = '{self._holder()['id']}'"
        now = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        values = {"id": mine, "host": socket.gethostname(), "process": os.getpid(), "since": now, "here": self.here}
        with working(self.place):
            try:
                self.table.update(where=free, values=values)
            except (RuntimeError, OSError) as error:
                # Others were faster each time that LanceDB tried; whoever has it now is told below.
                if _OTHERS not in str(error):
                    raise
        holder = self._holder()
        if not holder["id"]:
            raise InvalidFile(self.place, "cannot be written: several processes want to at once", "begin one of them")
        if holder["id"] != mine:
            reason = f"is being written by {_name(holder)} since {holder['since']}"
            hint = "wait for it; reading is possible. If it was killed there, begin again there or say --break-lock"
            raise InvalidFile(self.place, reason, hint)
        self.id = mine
        with working(self.place):
            self.table.optimize(cleanup_older_than=_KEPT)

    def check(self) -> None:
        """See that nobody has broken the lock since."""
        holder = self._holder()
        if holder["id"] != self.id:
            who = _name(holder) if holder["id"] else "somebody, who has ended by now,"
            reason = f"is no longer written by this process: {who} broke its lock"
            raise InvalidFile(self.place, reason, "begin again when no other process writes")

    def leave(self) -> None:
        with working(self.place):
            self.table.update(where=f"id = '{self.id}'", values=_FREE)

    def _holder(self) -> dict[str, Any]:
        with working(self.place):
            self.table.checkout_latest()
            rows = self.table.search().to_arrow().to_pylist()
        return rows[0] if rows else _FREE


def _name(holder: dict[str, Any]) -> str:
    return f"process {holder['process']} of {holder['host']}"


def _own_word(path: Path) -> str:
    """A word that only this machine has; made when it is first asked for. Its reader holds the machine's lock."""
    if not path.exists():
        with write_atomic(path) as file:
            file.write(secrets.token_hex(16).encode())
    return path.read_text()


def _between(tag: str, text: str) -> str | None:
    """What stands in a tag of XML, without what some stores add in lines of their own. These lines were quoted."""
    found = re.search(f"<{tag}>(.*?)</{tag}>", text)
    return found and found[1].split("\\n")[0]
