"""A library: photos and places are found by text, neighbour, trace and speech; kept up to date; killed at will."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("lancedb")

from saywhere.core import InvalidFile, InvalidValue, Narrative, Trace, Utterance
from saywhere.engine import FailedShard
from saywhere.formats import localized_narratives
from saywhere.index import Hit, Library, Query, Updated, narratives, search, seen, update
from saywhere.index.files import FileState
from saywhere.index.narratives import pieces
from saywhere.index.tables import PHOTOS
from saywhere.models.patchioner.seer import Seer
from saywhere.vision import Found
from tests.models.patchioner_seeing import BOTTOM_RIGHT, LEFT, TOP_RIGHT, photo, seer
from tests.vision import odd_reader

ROOT = Path(__file__).resolve().parents[2]
CAT, DOG, CUP = np.eye(3, dtype=np.float32)
FOUND = (Found(LEFT, "cat", 0.9), Found(TOP_RIGHT, "dog", 0.8), Found(BOTTOM_RIGHT, "cup", 0.3))


def _plain(folder: Path, name: str, colour: tuple[int, int, int]) -> Path:
    """A photo of one colour: of one thing."""
    folder.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 40), colour).save(folder / name)
    return folder / name


@pytest.fixture(scope="module")
def tiny() -> Seer:
    return seer(found=FOUND)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """All three things in one photo, one of each in three others, and a file that is no photo."""
    folder = tmp_path / "photos"
    _plain(folder, "red.png", (250, 5, 5))
    _plain(folder / "more", "green.png", (5, 250, 5))
    _plain(folder / "more", "0042.png", (5, 5, 250))
    photo().save(folder / "all.png")
    (folder / "broken.jpg").write_bytes(b"not a photo")
    (folder / "notes.txt").write_text("no photo either")
    return folder


def _names(hits: list[Hit]) -> list[str]:
    return [hit.photo for hit in hits]


def test_a_text_finds_photos_and_the_place_in_them(pets: Path, tiny: Seer) -> None:
    told: list[tuple[str, int, int]] = []
    done = update(pets, tiny, progress=lambda *at: told.append(at))
    assert done == Updated(new=5, failed=1)
    assert ("looking at photos", 5, 5) in told
    library = Library(pets)
    assert library.counts["photos"] == 4
    assert library.failed() == {"broken.jpg": "is not an image"}
    hits = search(library, Query(tiny.texts(["a dog"])[0]), limit=2)
    assert _names(hits)[0] == "more/green.png"
    best = {hit.photo: hit for hit in search(library, Query(DOG))}["all.png"]
    assert best.box_xyxy == TOP_RIGHT
    assert best.name == "dog"
    # A thing that the text names is the place, whatever its vector is like.
    named = {hit.photo: hit for hit in search(library, Query(DOG, names=frozenset(["cat"])))}["all.png"]
    assert (named.box_xyxy, named.name) == (LEFT, "cat")


def test_photos_are_found_by_the_query_and_places_in_them_by_the_text(pets: Path, tiny: Seer) -> None:
    update(pets, tiny)
    library = Library(pets)
    [photo] = search(library, Query(CUP, query=CAT), limit=1)
    assert photo.photo == search(library, Query(CAT), limit=1)[0].photo
    by_text, read_twice = (search(library, one) for one in (Query(CUP), Query(CUP, query=CAT)))
    assert _names(by_text) != _names(read_twice)
    places = [{hit.photo: hit.box_xyxy for hit in hits} for hits in (by_text, read_twice)]
    shared = set(places[0]) & set(places[1])
    assert shared
    assert all(places[0][name] == places[1][name] for name in shared)
    with pytest.raises(InvalidValue, match="has 4 numbers, but the library's vectors"):
        search(library, Query(CUP, query=np.ones(4, np.float32)))


def test_places_are_ranked_by_themselves_beside_others_and_along_a_trace(pets: Path, tiny: Seer) -> None:
    update(pets, tiny)
    library = Library(pets)
    by_region = {hit.photo: hit for hit in search(library, Query(CUP, regions=True))}
    assert by_region["all.png"].score == pytest.approx(1, abs=1e-3)
    assert by_region["all.png"].box_xyxy == BOTTOM_RIGHT
    # Only one photo has a cup below a dog.
    beside = search(library, Query(CUP, near=DOG))
    assert beside[0].photo == "all.png"
    assert beside[0].score > 0.9
    assert all(hit.score < 0.5 for hit in beside[1:])
    # In a photo that is all green a dog is everywhere: the trace says where.
    top, bottom = (Trace([(0.6, y, 0.0), (0.9, y + 0.4, 1.0)]) for y in (0.05, 0.55))
    places = [search(library, Query(DOG, trace=trace), limit=4) for trace in (top, bottom)]
    boxes = [{hit.photo: hit.box_xyxy for hit in hits}["more/green.png"] for hits in places]
    assert boxes[0] == TOP_RIGHT
    assert boxes[1] == BOTTOM_RIGHT


def test_photos_that_crash_or_stall_the_decoder_are_kept_with_the_reason(
    pets: Path, tiny: Seer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    (pets / "crash.jpg").write_bytes(odd_reader.CRASHING)
    (pets / "slow.jpg").write_bytes(odd_reader.SLOW)
    odd = {"reader": odd_reader.__name__, "timeout_s": odd_reader.TIMEOUT_S}
    assert update(pets, tiny, **odd) == Updated(new=7, failed=3)
    failed = Library(pets).failed()
    assert failed["crash.jpg"] == "crashed what reads photos (signal 6)"
    assert failed["slow.jpg"] == "takes more than 2 s to read"
    # They are not tried again until they change.
    assert update(pets, tiny, **odd) == Updated(same=7, failed=3)


class _Deadly:
    """An engine whose workers die over parts with a photo of this name, as several processes say it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def map(self, stage: Any, shards: Any, options: Any = None) -> Any:
        stage.setup()
        for shard in shards:
            deadly = any(name == self.name for name, _ in shard)
            yield FailedShard(options.name(shard), "3 workers died over it") if deadly else stage(shard)


def test_of_a_part_over_which_workers_die_the_one_photo_is_named_and_the_others_are_kept(
    pets: Path, tiny: Seer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "open_seeing", lambda _: tiny)
    assert update(pets, tiny, engine=_Deadly("red.png")) == Updated(new=5, failed=2)
    assert Library(pets).failed()["red.png"] == "3 workers died over it"
    assert update(pets, tiny) == Updated(same=5, failed=2)


def test_only_photos_with_a_word(pets: Path, tiny: Seer) -> None:
    update(pets, tiny)
    library = Library(pets)
    assert len(search(library, Query(DOG, word="dog"))) == 4
    # A cup was found with little certainty.
    assert search(library, Query(DOG, word="cup")) == []
    assert search(library, Query(DOG, regions=True, word="it's")) == []


def test_what_is_new_changed_or_gone_is_all_that_is_worked_on(pets: Path, tiny: Seer) -> None:
    update(pets, tiny)
    encoder = tiny.eyes.encoder  # type: ignore[attr-defined]
    looks = encoder.looks
    assert update(pets, tiny) == Updated(same=5, failed=1)
    assert encoder.looks == looks
    # Another time, the same content: nothing to look at.
    os.utime(pets / "red.png", ns=(1, 1))
    assert update(pets, tiny) == Updated(same=5, failed=1)
    assert encoder.looks == looks
    (pets / "all.png").unlink()
    _plain(pets, "red.png", (5, 5, 250))
    _plain(pets, "new.png", (250, 5, 5))
    assert update(pets, tiny) == Updated(new=1, changed=1, deleted=1, same=3, failed=1)
    assert encoder.looks == looks + 2
    library = Library(pets)
    assert _names(search(library, Query(CAT), 1)) == ["new.png"]
    assert {hit.photo for hit in search(library, Query(CUP, regions=True))} == {
        *("red.png", "new.png", "more/green.png", "more/0042.png")
    }
    ids = library.tables.columns("photos", ["id"])["id"].to_pylist()
    assert set(library.tables.columns("regions", ["photo"])["photo"].to_pylist()) <= set(ids)


def test_a_photo_that_vanishes_while_the_folder_is_listed_is_none(
    pets: Path, tiny: Seer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FileState.of

    def of(path: Path) -> FileState:
        if path.name == "red.png":
            path.unlink()
        return real(path)

    monkeypatch.setattr(FileState, "of", of)
    assert update(pets, tiny) == Updated(new=4, failed=1)


def test_files_with_another_time_are_one_commit(pets: Path, tiny: Seer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["saywhere.index.update"], "order_vectors", lambda *_: None)
    update(pets, tiny)
    before = Library(pets)
    rows = before.tables.columns(PHOTOS, ["name", "vector", "words", "error"]).to_pylist()
    for name in ("red.png", "all.png", "broken.jpg"):
        os.utime(pets / name, ns=(1, 1))
    assert update(pets, tiny) == Updated(same=5, failed=1)
    after = Library(pets)
    assert after.tables[PHOTOS].version == before.tables[PHOTOS].version + 1
    kept = after.tables.columns(PHOTOS, ["name", "vector", "words", "error"]).to_pylist()
    assert sorted(map(str, kept)) == sorted(map(str, rows))
    times = {row["name"]: row["mtime_ns"] for row in after.tables.columns(PHOTOS, ["name", "mtime_ns"]).to_pylist()}
    assert [times[name] for name in ("red.png", "all.png", "broken.jpg")] == [1, 1, 1]


def test_photos_that_failed_are_tried_again_when_somebody_says_so(
    pets: Path, tiny: Seer, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = seen.PhotoReader.read

    def read(self: seen.PhotoReader, photo: bytes | str | Path) -> Image.Image:
        raise InvalidFile("red.png", "cannot be read: Permission denied")

    monkeypatch.setattr(seen.PhotoReader, "read", read)
    assert update(pets, tiny) == Updated(new=5, failed=5)
    monkeypatch.setattr(seen.PhotoReader, "read", refused)
    assert update(pets, tiny) == Updated(same=5, failed=5)
    assert update(pets, tiny, retry_failed=True) == Updated(changed=5, failed=1)
    assert Library(pets).counts["photos"] == 4
    (pets / "broken.jpg").unlink()
    assert update(pets, tiny, retry_failed=True) == Updated(deleted=1, same=4)


def test_a_model_that_is_open_is_opened_by_other_processes_only(
    pets: Path, tiny: Seer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(seen, "open_seeing", lambda name: opened.append(name) or tiny)
    monkeypatch.setattr(sys.modules["saywhere.index.update"], "open_seeing", lambda _: pytest.fail("opened twice"))
    assert update(pets, tiny, engine=_Deadly(""), opens="owner/name").new == 5
    assert opened == ["owner/name"]


def _said(folder: Path, *lines: tuple[str, str]) -> Path:
    trace = Trace([(0.6, 0.1, 0.0), (0.9, 0.4, 2.0)])
    path = folder / "said.jsonl"
    narratives = [Narrative(image, text, (Utterance(text, 0, 2),), trace, annotator_id="7") for image, text in lines]
    localized_narratives.write(path, narratives)
    return path


def test_what_people_said_is_found_with_the_place_they_pointed_at(pets: Path, tiny: Seer, tmp_path: Path) -> None:
    file = _said(tmp_path, ("42", "here is a dog, and some grass"), ("777", "a cup"))
    assert update(pets, tiny, narratives=[file]).said == 3
    [dog, *_] = search(Library(pets), Query(DOG, said=True))
    assert (dog.photo, dog.said, dog.who, dog.start_s) == ("more/0042.png", "here is a dog,", "7", 0.0)
    assert dog.box_xyxy is not None
    assert dog.box_xyxy[0] == pytest.approx(0.6, abs=0.05)
    [cup, *_] = search(Library(pets), Query(CUP, said=True))
    assert (cup.photo, cup.image_id) == ("", "777")  # nobody has that photo
    assert update(pets, tiny).said == 0
    # A file that has changed is read anew; one that is gone is forgotten.
    _said(tmp_path, ("42", "a cat"))
    assert update(pets, tiny).said == 1
    assert [hit.said for hit in search(Library(pets), Query(DOG, said=True))] == ["a cat"]
    file.unlink()
    update(pets, tiny)
    assert Library(pets).counts["said"] == 0


def test_a_bad_record_is_counted_and_passed_over(pets: Path, tiny: Seer, tmp_path: Path) -> None:
    file = _said(tmp_path, ("42", "a dog"))
    file.write_bytes(file.read_bytes() + b'{"image_id": "1", "caption": 3, "timed_caption": [], "traces": []}\n')
    done = update(pets, tiny, narratives=[file])
    assert (done.said, done.bad_records) == (1, 1)
    with pytest.raises(InvalidFile, match=r"missing\.jsonl: was not found"):
        update(pets, tiny, narratives=[tmp_path / "missing.jsonl"])


def test_a_narrative_is_cut_at_its_marks_and_not_too_long() -> None:
    text = "a dog. and a very large cup of tea on a table in the sun beside it all"
    cut = [piece.text for piece in pieces(Narrative("1", text, (Utterance(text, 0, 9),)))]
    assert cut == ["a dog. and a very large cup of tea on a table in the", "sun beside it all"]
    assert [piece.text for piece in pieces(Narrative("1", "only written"))] == ["only written"]
    assert pieces(Narrative("1")) == []


def test_one_writes_while_others_read(pets: Path, tiny: Seer) -> None:
    update(pets, tiny)
    before = Library(pets)
    with before.place.only_writer(), pytest.raises(InvalidFile, match="is being written by another process"):
        update(pets, tiny)
    (pets / "red.png").unlink()
    update(pets, tiny)
    # Who has opened it reads it as it was.
    assert before.counts["photos"] == 4
    assert Library(pets).counts["photos"] == 3


def test_what_cannot_be_is_said(pets: Path, tiny: Seer, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"is not a library \(saywhere index DIR makes one"):
        Library(pets)
    with pytest.raises(InvalidFile, match="is not a folder of photos"):
        update(tmp_path / "nowhere", tiny)
    update(pets, tiny, folder=tmp_path / "index")
    with pytest.raises(InvalidValue, match="has 4 numbers, but the library's vectors have 3"):
        search(Library(pets, tmp_path / "index"), Query(np.ones(4, np.float32)))
    with pytest.raises(InvalidValue, match="not at least 1"):
        search(Library(pets, tmp_path / "index"), Query(DOG), limit=0)
    with pytest.raises(InvalidValue, match="ask one after the other"):
        Query(DOG, said=True, regions=True)
    other = seer()
    other.eyes.encoder.fingerprint = {"encoder": "other"}  # type: ignore[attr-defined]
    with pytest.raises(InvalidFile, match=r"whose vectors are not those of tiny \(other: encoder\)"):
        update(pets, other, folder=tmp_path / "index")
    # The same eye, which tells photos apart in another way.
    other.eyes = replace(tiny.eyes, parts={"matching": "other"})  # type: ignore[type-var]
    with pytest.raises(InvalidFile, match=r"\(other: matching\)"):
        update(pets, other, folder=tmp_path / "index")
    (tmp_path / "index" / "library.json").write_text('{"format": "saywhere library", "version": 9}')
    with pytest.raises(InvalidFile, match="is of saywhere library 9, not of saywhere library 1"):
        Library(pets, tmp_path / "index")


def test_damaged_tables_are_named(pets: Path, tiny: Seer) -> None:
    update(pets, tiny)
    for file in (pets / ".saywhere" / "regions.lance" / "data").iterdir():
        file.write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidFile, match=r"\.saywhere: cannot be worked with: .* \(make room, or delete the folder"):
        search(Library(pets), Query(DOG, regions=True))
    for file in (pets / ".saywhere" / "photos.lance" / "_versions").iterdir():
        file.write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidFile, match="cannot be worked with"):
        Library(pets)


def test_many_vectors_are_ordered_into_cells_and_found_as_before(
    pets: Path, tiny: Seer, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(pets, tiny)
    before = search(Library(pets), Query(CUP, regions=True))
    rng = np.random.default_rng(0)
    for number in range(12):
        pixels = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((16, 16), Image.Resampling.NEAREST).save(pets / f"{number:02}.png")
    for name, value in (("_INDEXED_FROM", 64), ("_PER_CELL", 32)):
        monkeypatch.setattr(sys.modules["saywhere.index.update"], name, value)
    update(pets, tiny)
    library = Library(pets)
    assert [index.columns for index in library.tables["regions"].list_indices()] == [["vector"]]
    after = search(library, Query(CUP, regions=True), limit=20)
    assert {hit.photo for hit in before} <= {hit.photo for hit in after}
    assert after[0].score == pytest.approx(before[0].score, abs=1e-3)


@pytest.mark.parametrize("module", [narratives, seen])
def test_examples_in_docstrings_run(module: ModuleType) -> None:
    assert doctest.testmod(module) == (0, 3 if module is narratives else 1)


def test_killed_at_any_point_it_ends_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, "-m", "tests.index.kill_library", str(tmp_path), "6", "0"]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "6 kills" in ran.stdout
