"""A library on object storage: what a folder gives, one writer at a time, and clear words when the store says no."""

from __future__ import annotations

import doctest
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

pytest.importorskip("lancedb")

from saywhere import loading
from saywhere.cli.app import app
from saywhere.core import InvalidFile, InvalidValue, Narrative, Trace, Utterance
from saywhere.formats import localized_narratives
from saywhere.index import Library, Query, Updated, search, stores, update
from saywhere.index.places import FolderPlace
from saywhere.index.stores import StorePlace, _Lock, place_of
from saywhere.models.patchioner.seer import Seer
from tests.index.kill_library import contents
from tests.index.store_server import ABSENT, PYTHON, StoreServer, store_server
from tests.models.patchioner_seeing import photo, seer

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason=ABSENT)
ROOT = Path(__file__).resolve().parents[2]
CAT, DOG, CUP = np.eye(3, dtype=np.float32)


@pytest.fixture(scope="module")
def server() -> Iterator[StoreServer]:
    with store_server() as running:
        yield running


@pytest.fixture(autouse=True)
def environment(server: StoreServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The server, a cache of this test's own, and no keys but those of the test."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    nothing = {name: str(tmp_path / "none") for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")}
    here = {"SAYWHERE_CACHE": str(tmp_path / "cache"), "AWS_EC2_METADATA_DISABLED": "true"}
    for name, value in {**server.environment, **nothing, **here}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def tiny() -> Seer:
    return seer()


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    photo().save(folder / "all.png")
    for name, colour in (("red", (250, 5, 5)), ("green", (5, 250, 5)), ("0042", (5, 5, 250))):
        Image.new("RGB", (40, 40), colour).save(folder / f"{name}.png")
    (folder / "broken.jpg").write_bytes(b"not a photo")
    return folder


@pytest.fixture
def url(server: StoreServer, tmp_path: Path) -> str:
    """A place of this test's own."""
    return server.url(tmp_path.name)


def _said(folder: Path) -> Path:
    trace = Trace([(0.6, 0.1, 0.0), (0.9, 0.4, 2.0)])
    said = [Narrative("42", "a dog", (Utterance("a dog, and a cup", 0, 2),), trace, annotator_id="7")]
    localized_narratives.write(folder / "said.jsonl", said)
    return folder / "said.jsonl"


QUERIES = (
    Query(DOG),
    Query(CUP, regions=True),
    Query(CUP, near=DOG),
    Query(DOG, trace=Trace([(0.6, 0.05, 0.0), (0.9, 0.45, 1.0)])),
    Query(DOG, word="dog"),
    Query(DOG, said=True),
)


def test_a_library_on_a_store_holds_and_finds_what_one_in_a_folder_does(
    pets: Path, tiny: Seer, tmp_path: Path, url: str
) -> None:
    said = [_said(tmp_path)]
    assert update(pets, tiny, folder=url, narratives=said) == update(pets, tiny, narratives=said)
    there, here = Library(pets, url), Library(pets)
    assert contents(there) == contents(here)
    assert (there.counts, there.failed(), there.about) == (here.counts, here.failed(), here.about)
    for query in QUERIES:
        assert search(there, query) == search(here, query)
    # Nothing of it is beside the photos.
    assert {path.name for path in pets.iterdir() if path.is_dir()} == {".saywhere"}


def test_what_is_new_changed_and_gone_is_brought_up_to_date(pets: Path, tiny: Seer, tmp_path: Path, url: str) -> None:
    assert update(pets, tiny, folder=url) == Updated(new=5, failed=1)
    assert update(pets, tiny, folder=url) == Updated(same=5, failed=1)
    Image.new("RGB", (44, 44), (5, 5, 250)).save(pets / "red.png")
    Image.new("RGB", (40, 40), (250, 5, 5)).save(pets / "new.png")
    (pets / "green.png").unlink()
    assert update(pets, tiny, folder=url) == Updated(new=1, changed=1, deleted=1, same=3, failed=1)
    update(pets, tiny, folder=tmp_path / "fresh")
    assert contents(Library(pets, url)) == contents(Library(pets, tmp_path / "fresh"))
    other = seer()
    other.eyes.encoder.fingerprint = {"encoder": "other"}  # type: ignore[attr-defined]
    with pytest.raises(InvalidFile, match=rf"{url}: was made with tiny, whose vectors are not those"):
        update(pets, other, folder=url)


def test_one_writes_while_others_read(pets: Path, tiny: Seer, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    update(pets, tiny, folder=url)
    before = Library(pets, url)
    with before.place.only_writer():
        with pytest.raises(InvalidFile, match="is being written by another process"):
            update(pets, tiny, folder=url)
        _on_another_machine(monkeypatch)
        with pytest.raises(InvalidFile, match=rf"is being written by process {os.getpid()} of .* since \d{{4}}-"):
            update(pets, tiny, folder=url)
        assert search(Library(pets, url), Query(DOG)) == search(before, Query(DOG))
    (pets / "red.png").unlink()
    update(pets, tiny, folder=url)
    # Who has opened it reads it as it was.
    assert before.counts["photos"] == 4
    assert Library(pets, url).counts["photos"] == 3


def _on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine has another cache: what tells whether a process is gone is not there."""
    monkeypatch.setenv("SAYWHERE_CACHE", f"{os.environ['SAYWHERE_CACHE']}-other")


_DIES = """
import os, signal, sys
from saywhere.index.stores import StorePlace
with StorePlace(sys.argv[1]).only_writer():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_killed_writer_its_machine_goes_on_and_others_when_they_are_told(
    pets: Path, tiny: Seer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed() -> None:
        path = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
        assert subprocess.run([sys.executable, "-c", _DIES, url], env=path).returncode == -signal.SIGKILL

    killed()
    assert update(pets, tiny, folder=url).new == 5
    killed()
    _on_another_machine(monkeypatch)
    with pytest.raises(InvalidFile, match=r"If it was killed there, begin again there or say --break-lock"):
        update(pets, tiny, folder=url)
    assert update(pets, tiny, folder=url, break_lock=True).same == 5
    assert update(pets, tiny, folder=url).same == 5


def test_a_writer_whose_lock_was_broken_changes_nothing_more(
    pets: Path, tiny: Seer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(pets, tiny, folder=url)
    before = contents(Library(pets, url))

    def broken(*_: object) -> None:
        with monkeypatch.context() as elsewhere:
            _on_another_machine(elsewhere)
            with StorePlace(url).only_writer(break_lock=True):
                pass

    photo().save(pets / "new.png")
    with pytest.raises(InvalidFile, match="is no longer written by this process: somebody, who has ended by now"):
        update(pets, tiny, folder=url, progress=broken)
    assert contents(Library(pets, url)) == before
    assert update(pets, tiny, folder=url).new == 1


def test_of_several_who_want_to_write_at_once_one_may(url: str) -> None:
    place = StorePlace(url)
    with place.only_writer():
        pass
    own = [_Lock(StorePlace(url), StorePlace(url).database.open_table("writer"), f"machine {i}") for i in range(6)]
    together, refused = threading.Barrier(len(own)), []

    def take(lock: _Lock) -> None:
        together.wait()
        try:
            lock.take(False)
        except InvalidFile as error:
            refused.append(str(error))

    threads = [threading.Thread(target=take, args=(lock,)) for lock in own]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [taken] = [lock for lock in own if lock.id]
    taken.check()
    assert len(refused) == 5
    assert [one for one in refused if "is being written by process" not in one] == []


@pytest.mark.parametrize("taken", [True, False])
def test_whoever_tries_in_vain_to_change_the_lock_is_told_why(url: str, taken: bool) -> None:
    place = StorePlace(url)
    with place.only_writer():
        table = place.database.open_table("writer")

    class Crowded:
        """The table, when others are always faster."""

        def update(self, **_: object) -> None:
            raise RuntimeError("lance error: Too many concurrent writers. Retried for 30 s")

        def __getattr__(self, name: str) -> object:
            return getattr(table, name)

    if taken:
        _Lock(place, place.database.open_table("writer"), "there").take(False)
    expected = "is being written by process" if taken else "several processes want to at once"
    with pytest.raises(InvalidFile, match=expected):
        _Lock(place, Crowded(), "here").take(False)


def test_killed_at_any_point_it_ends_as_if_it_had_never_stopped(tmp_path: Path, url: str) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "tests.index.kill_library", str(tmp_path), "4", "0", url]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "4 kills" in ran.stdout


def test_the_commands_take_a_url_for_the_index(
    pets: Path, tiny: Seer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "load", lambda name: tiny)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())

    def run(*arguments: object) -> str:
        ran = CliRunner().invoke(app, [str(argument) for argument in arguments])
        return ran.stdout if ran.exception is None or isinstance(ran.exception, SystemExit) else str(ran.exception)

    assert f"{url}: 4 photos (5 new" in run("index", pets, "--index", url)
    found = run("search", "a dog", "-l", url)
    assert "green.png" in found
    assert run("search", "a dog", "-l", pets, "--index", url) == found
    # Photos are shown from their own folder.
    assert "--out: shows the photos, whose folder is not given" in run("search", "a dog", "-l", url, "-o", "page.html")
    page = pets.parent / "page.html"
    run("search", "a dog", "-l", pets, "--index", url, "-o", page)
    assert page.is_file()
    assert "both name an index" in run("search", "a dog", "-l", url, "--index", url)
    assert "s3://bucket/nowhere: is not a library" in run("search", "a dog", "-l", "s3://bucket/nowhere")


@pytest.mark.parametrize(
    ("settings", "url", "message"),
    [
        ({}, "s3://no-such-bucket/a", r"a: the store says: The specified bucket does not exist \(NoSuchBucket\)"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "s3://bucket/a", "there is no key for the store"),
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
            "s3://bucket/a",
            r"a: nothing answers at http://127\.0\.0\.1:9 \(Connection refused\) \(see AWS_ACCESS_KEY_ID",
        ),
    ],
)
def test_a_store_that_cannot_be_used_is_said_in_one_sentence(
    settings: dict[str, str], url: str, message: str, pets: Path, tiny: Seer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    for use in (lambda: Library(pets, url), lambda: update(pets, tiny, folder=url)):
        with pytest.raises(InvalidFile, match=message) as caught:
            use()
        assert len(str(caught.value)) < 300
        assert "\n" not in str(caught.value)


def test_a_key_that_the_store_does_not_take_is_said(pets: Path, tiny: Seer, url: str, server: StoreServer) -> None:
    update(pets, tiny, folder=url)
    opened = Library(pets, url)
    with server.refusing_keys():
        for use in (
            lambda: Library(pets, url),
            lambda: update(pets, tiny, folder=url),
            lambda: search(opened, Query(DOG)),
        ):
            with pytest.raises(InvalidFile, match=r"the store says: .* \(InvalidAccessKeyId\) \(see AWS_ACCESS_KEY_ID"):
                use()
    assert search(opened, Query(DOG))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host/a", r"ftp:// is no place for a library \(a folder, or one of s3://, gs://, az://"),
        ("s3://key:secret@bucket/a", "keys are given by the environment"),
        ("s3:///a", "names no bucket"),
    ],
)
def test_a_url_that_cannot_be_is_said(url: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message) as caught:
        place_of(url)
    assert "secret" not in str(caught.value)


def test_the_lock_of_a_folder_cannot_be_broken(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidValue, match="ends with the process that writes"),
        FolderPlace(tmp_path).only_writer(break_lock=True),
    ):
        pass


def test_examples_in_docstrings_run() -> None:
    assert doctest.testmod(stores) == (0, 1)
