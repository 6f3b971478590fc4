"""One task over many photos: the same results from every source and engine, and from runs that were killed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import saywhere
from saywhere.build.batch import list_parts, run_batch
from saywhere.core import InvalidFile, InvalidValue, Narrative, SaywhereError, UnknownName
from saywhere.engine import OneProcess, SeveralProcesses
from saywhere.formats import localized_narratives
from saywhere.models.face import MissingSkill
from tests.build.batch.kill_batch import contents, paint
from tests.models.patchioner_seeing import TOP_RIGHT, photo, seer
from tests.vision import odd_reader

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    folder = tmp_path / "pets"
    paint(folder, 5)
    photo().save(folder / "all.png")
    (folder / "broken.jpg").write_bytes(b"no photo")
    return folder


def _rows(out: Path) -> dict[str, dict[str, object]]:
    return {row["key"]: row for path in sorted(out.glob("*.parquet")) for row in pq.read_table(path).to_pylist()}


def test_every_photo_is_a_row_and_a_bad_one_has_a_reason(pets: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    report = run_batch("caption", [pets], tmp_path / "out", seer(), size=3, progress=lambda *at: told.append(at))
    assert (report.photos, report.failed, report.fresh, report.parts) == (7, 1, 7, {})
    assert told == [("caption of photos", done, 7) for done in (0, 3, 6, 7)]
    rows = _rows(tmp_path / "out")
    assert rows["broken.jpg"] == {"key": "broken.jpg", "error": "is not an image", "text": None} | {
        "score": None,
        "sure": None,
    }
    assert rows["all.png"]["text"] == "a cat"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [file["rows"] for file in manifest["files"]] == [3, 3, 1]
    assert (manifest["rows"], manifest["failed"], manifest["task"], manifest["lost"]) == (7, 1, "caption", {})


def test_a_second_run_does_nothing_again_and_other_photos_want_another_folder(pets: Path, tmp_path: Path) -> None:
    model = seer()
    run_batch("look", [pets], tmp_path / "out", model, size=3)
    before, looks = contents(tmp_path / "out"), model.eyes.encoder.looks  # type: ignore[attr-defined]
    assert run_batch("look", [pets], tmp_path / "out", model, size=3).fresh == 0
    assert model.eyes.encoder.looks == looks  # type: ignore[attr-defined]
    assert contents(tmp_path / "out") == before
    paint(pets, 9)
    with pytest.raises(InvalidFile, match="holds the results of"):
        run_batch("look", [pets], tmp_path / "out", model, size=3)


def test_a_part_whose_file_is_gone_or_altered_is_made_anew_and_the_rate_is_of_this_run(
    pets: Path, tmp_path: Path
) -> None:
    out, told = tmp_path / "out", list[int]()
    run_batch("look", [pets], out, seer(), size=2)
    before = contents(out)
    (out / "part-000001.parquet").unlink()
    (out / "part-000003.parquet").write_bytes(b"something else")
    report = run_batch("look", [pets], out, seer(), size=2, progress=lambda _, done, __: told.append(done))
    assert contents(out) == before
    assert report.fresh == 2 + 1
    assert told == [4, 6, 7]


def test_parts_with_photos_that_failed_are_done_anew_when_somebody_says_so(pets: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run_batch("look", [pets], out, seer(), size=2).failed == 1
    photo().save(pets / "broken.jpg")
    assert run_batch("look", [pets], out, seer(), size=2).failed == 1
    report = run_batch("look", [pets], out, seer(), size=2, retry_failed=True)
    assert (report.failed, report.fresh) == (0, 1)


def test_a_model_with_other_weights_wants_another_folder(
    pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saywhere, "load", lambda _: seer())
    mine = tmp_path / "mine"
    mine.mkdir()
    for weights in ("first", "second"):
        (mine / "config.json").write_text('{"model": "updown-caption"}')
        (mine / "model.safetensors").write_text(weights)
        if weights == "first":
            run_batch("look", [pets], tmp_path / "out", str(mine))
    with pytest.raises(InvalidFile, match="holds the results of"):
        run_batch("look", [pets], tmp_path / "out", str(mine))


def test_the_report_tells_rate_and_cost(pets: Path, tmp_path: Path) -> None:
    report = run_batch("look", [pets], tmp_path / "out", seer())
    assert report.per_second == pytest.approx(report.fresh / report.seconds)
    hours = 1e6 / report.per_second / 3600
    assert report.cost_per_million(3.0, machines=2) == pytest.approx(6 * hours)


def _tar(pets: Path, path: Path) -> Path:
    with tarfile.open(path, "w") as tar:
        for file in sorted(pets.iterdir()):
            tar.add(file, file.name)
        text = b"a dog"
        info = tarfile.TarInfo("all.txt")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return path


def _parquet(pets: Path, path: Path) -> Path:
    files = sorted(pets.iterdir())
    rows = {"key": [file.stem for file in files], "image": [{"bytes": file.read_bytes()} for file in files]}
    pq.write_table(pa.table({**rows, "text": ["a dog"] * len(files)}), path, row_group_size=4)
    return path


def test_folders_tar_files_and_parquet_give_the_same_rows(pets: Path, tmp_path: Path) -> None:
    sources = {
        "folder": pets,
        "tar": _tar(pets, tmp_path / "pets.tar"),
        "table": _parquet(pets, tmp_path / "p.parquet"),
    }
    found = {}
    for name, source in sources.items():
        run_batch("look", [source], tmp_path / name, seer(), size=3)
        rows = _rows(tmp_path / name).items()
        found[name] = {Path(key).stem: {**row, "key": ""} for key, row in rows}
    assert found["tar"] == found["table"] == found["folder"]
    assert len(found["tar"]) == 7


def test_sources_by_url_give_the_rows_of_sources_by_path(pets: Path, tmp_path: Path) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    tar, table = _tar(pets, tmp_path / "p.tar"), _parquet(pets, tmp_path / "p.parquet")
    try:
        store.put(str(pets), "/bucket/pets", recursive=True)
        store.put(str(tar), "/bucket/p.tar")
        store.put(str(table), "/bucket/p.parquet")
        for here, there in ((pets, "pets"), (tar, "p.tar"), (table, "p.parquet")):
            run_batch("look", [here], tmp_path / f"here-{there}", seer(), size=3)
            run_batch("look", [f"memory://bucket/{there}"], tmp_path / f"there-{there}", seer(), size=3)
            run_batch("look", [here.as_uri()], tmp_path / f"file-{there}", seer(), size=3)
            rows = _rows(tmp_path / f"here-{there}")
            assert rows
            assert _rows(tmp_path / f"there-{there}") == _rows(tmp_path / f"file-{there}") == rows
        # A photo that is gone when its turn comes is a row; a tar file, a part that is named.
        [photos] = list_parts(["memory://bucket/pets"])
        [members] = list_parts(["memory://bucket/p.tar"])
        store.rm("/bucket", recursive=True)
        assert all("cannot be read" in item.error for item in photos.items())
        with pytest.raises(InvalidFile, match=r"p\.tar: cannot be read"):
            list(members.items())
    finally:
        store.rm("/bucket", recursive=True) if store.exists("/bucket") else None


@pytest.mark.parametrize(
    ("url", "message"),
    [("memory://bucket/none.tar", "was not found"), ("nowhere://x/y", "what reads nowhere://")],
)
def test_a_url_that_leads_nowhere_is_said(url: str, message: str) -> None:
    with pytest.raises(SaywhereError, match=message):
        list_parts([url])


def test_texts_that_come_with_photos_are_found_in_them(pets: Path, tmp_path: Path) -> None:
    said = tmp_path / "said.jsonl"
    localized_narratives.write(said, [Narrative("all", "a dog"), Narrative("nowhere", "a cat"), Narrative("all", "")])
    run_batch("ground", [said], tmp_path / "narratives", seer(), photos=pets)
    run_batch("ground", [_tar(pets, tmp_path / "pets.tar")], tmp_path / "tar", seer())
    rows = _rows(tmp_path / "narratives")
    assert [word["box"] for word in rows["all#0"]["words"]] == [list(TOP_RIGHT)] * 2  # type: ignore[union-attr]
    assert rows["nowhere#1"]["error"] == "has no photo in the folder"
    assert rows["all#2"]["error"] == "comes with no text to find in it"
    assert _rows(tmp_path / "tar")["all"]["words"] == rows["all#0"]["words"]
    with pytest.raises(InvalidValue, match=r"in said\.jsonl are not given \(name their folder"):
        list_parts([said])


def test_a_narration_has_words_with_times_and_places(pets: Path, tmp_path: Path) -> None:
    run_batch("narrate", [pets], tmp_path / "out", seer())
    row = _rows(tmp_path / "out")["all.png"]
    words = row["words"]
    assert isinstance(words, list)
    assert " ".join(word["text"] for word in words) == row["text"]
    assert all(word["start_s"] <= word["end_s"] for word in words)


def test_a_part_that_cannot_be_read_is_named_and_the_rest_goes_on(pets: Path, tmp_path: Path) -> None:
    table = _parquet(pets, tmp_path / "p.parquet")
    first = pq.ParquetFile(table).metadata.row_group(0).column(1)
    content = bytearray(table.read_bytes())
    begin = first.dictionary_page_offset or first.data_page_offset
    content[begin : begin + first.total_compressed_size] = bytes(first.total_compressed_size)
    table.write_bytes(content)
    report = run_batch("look", [table, pets], tmp_path / "out", seer(), size=4)
    assert list(report.parts) == ["part-000000"]
    assert "row group 0 cannot be read" in report.parts["part-000000"]
    assert report.photos == 3 + 7
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["lost"] == report.parts


@pytest.mark.parametrize(
    ("damage", "photos"),
    [
        (lambda tar, second: tar[: second.offset] + b"\xff" * 512 + tar[second.offset + 512 :], 1),
        (lambda tar, second: tar[: second.offset] + bytes(512) + tar[second.offset + 512 :], 1),
        (lambda tar, second: tar[: second.offset_data + 9], 2),
        (lambda tar, second: tar[: second.offset], 1),
        (lambda tar, _: tar[:100], 0),
    ],
    ids=["header overwritten", "header of zeros", "cut in a photo", "cut between photos", "cut in the first header"],
)
def test_a_damaged_tar_file_is_named_and_what_can_be_found_of_it_and_of_others_is_done(
    pets: Path, tmp_path: Path, damage: Callable[[bytes, tarfile.TarInfo], bytes], photos: int
) -> None:
    tar = _tar(pets, tmp_path / "a.tar")
    with tarfile.open(tar) as whole:
        second = whole.getmembers()[1]
    tar.write_bytes(damage(tar.read_bytes(), second))
    report = run_batch("look", [tar, pets], tmp_path / "out", seer())
    assert report.photos == photos + 7
    [reason] = report.parts.values()
    assert f"a.tar: is damaged or cut off after {photos} photos" in reason or (not photos and "is not a tar" in reason)


def test_a_damaged_parquet_file_is_named_and_the_rest_goes_on(pets: Path, tmp_path: Path) -> None:
    table = _parquet(pets, tmp_path / "p.parquet")
    table.write_bytes(table.read_bytes()[:-100])
    report = run_batch("look", [table, pets], tmp_path / "out", seer())
    assert report.photos == 7
    assert "p.parquet: is not a Parquet file" in report.parts["part-000000"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pets.tar.gz", b"", "is packed"),
        ("pets.tar", b"nothing of the kind", "is not a tar file"),
        ("pets.parquet", b"nothing of the kind", "is not a Parquet file"),
    ],
)
def test_a_source_that_is_none_is_said(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidFile, match=message):
        list_parts([tmp_path / name])


def test_what_is_hidden_is_no_photo(pets: Path) -> None:
    import fsspec

    for hidden in (pets / ".trash", pets / "more" / ".thumbnails"):
        paint(hidden, 2)
    assert sum(map(len, list_parts([pets]))) == 7
    store = fsspec.filesystem("memory")
    try:
        store.put(str(pets), "/bucket/pets", recursive=True)
        assert sum(map(len, list_parts(["memory://bucket/pets"]))) == 7
    finally:
        store.rm("/bucket", recursive=True)


def test_two_photos_of_one_name_are_refused(pets: Path, tmp_path: Path) -> None:
    paint(tmp_path / "others", 1)
    with pytest.raises(InvalidValue, match=r"called 000\.png, in .*pets and in .*others \(name a folder above both"):
        list_parts([pets, tmp_path / "others"])
    with pytest.raises(InvalidValue, match="two photos called 000"):
        list_parts([_tar(pets, tmp_path / "a.tar"), _tar(pets, tmp_path / "b.tar")])


def test_a_row_without_a_key_has_a_reason(pets: Path, tmp_path: Path) -> None:
    content = (pets / "all.png").read_bytes()
    pq.write_table(pa.table({"key": ["one", None], "image": [content, content]}), tmp_path / "p.parquet")
    run_batch("look", [tmp_path / "p.parquet"], tmp_path / "out", seer())
    reasons = {key: row["error"] for key, row in _rows(tmp_path / "out").items()}
    assert reasons == {"one": None, "p.parquet#0.1": "has no key"}


def test_of_a_large_row_group_little_is_in_memory_at_a_time(tmp_path: Path) -> None:
    rows = {"key": [f"{number:03}" for number in range(200)], "image": [os.urandom(100_000) for _ in range(200)]}
    pq.write_table(pa.table(rows), tmp_path / "p.parquet", row_group_size=200, write_batch_size=8)
    parts = list_parts([tmp_path / "p.parquet"], 40)
    found, before, most = [], pa.total_allocated_bytes(), 0
    for item in (item for part in parts for item in part.items()):
        found.append((item.key, item.photo))
        most = max(most, pa.total_allocated_bytes() - before)
    assert found == list(zip(rows["key"], rows["image"], strict=True))
    assert most < 10e6  # of 20 million


def test_what_cannot_be_done_is_said_before_work(pets: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'caption'"):
        run_batch("captoin", [pets], tmp_path / "out")
    with pytest.raises(InvalidFile, match="was not found"):
        list_parts([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidValue, match="hold no photos"):
        list_parts([tmp_path / "empty"])
    pq.write_table(pa.table({"key": ["a"], "colour": ["red"]}), tmp_path / "odd.parquet")
    with pytest.raises(InvalidFile, match="none of image, jpeg"):
        list_parts([tmp_path / "odd.parquet"])


class _Elsewhere:
    """An engine whose workers are in another folder, as those of a Ray cluster are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def map(self, stage: Any, shards: Any, options: Any) -> Any:
        results = OneProcess().map(stage, shards, options)
        with contextlib.chdir(self.folder):
            yield from results


def test_workers_in_another_folder_find_the_model_and_write_where_the_results_belong(
    pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(saywhere, "load", lambda name: opened.append(name) or seer())
    for name in ("here/mine", "there"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "here" / "mine" / "config.json").write_text('{"model": "updown-caption"}')
    monkeypatch.chdir(tmp_path / "here")
    run_batch("look", [Path("..", "pets")], "out", "mine", engine=_Elsewhere(tmp_path / "there"))
    assert opened == [str(tmp_path / "here" / "mine")]
    assert len(_rows(tmp_path / "here" / "out")) == 7
    assert list((tmp_path / "there").iterdir()) == []
    assert json.loads((tmp_path / "here" / "out" / "manifest.json").read_text())["model"] == "mine"


def test_several_processes_write_the_same_files(pets: Path, tmp_path: Path) -> None:
    from tests.build.batch.kill_batch import run_tiny

    run_tiny(pets, tmp_path / "one")
    run_tiny(pets, tmp_path / "two", SeveralProcesses(1))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_killed_at_any_point_it_ends_with_the_same_files(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, "-m", "tests.build.batch.kill_batch", str(tmp_path), "8", "0"]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "8 kills" in ran.stdout


def test_a_model_without_the_skill_is_refused(pets: Path, tmp_path: Path) -> None:
    class Mute:
        name, skills = "mute", ()

    from saywhere.engine import ShardError

    with pytest.raises((MissingSkill, ShardError), match="cannot say what a region shows"):
        run_batch("caption", [pets], tmp_path / "out", Mute())  # type: ignore[arg-type]


def test_photos_that_crash_or_stall_the_decoder_are_rows_with_a_reason(
    pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.build.batch.kill_batch import run_tiny

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    (pets / "crash.jpg").write_bytes(odd_reader.CRASHING)
    (pets / "slow.jpg").write_bytes(odd_reader.SLOW)
    run_tiny(pets, tmp_path / "out", SeveralProcesses(1), odd_reader.__name__, odd_reader.TIMEOUT_S)
    rows = _rows(tmp_path / "out")
    assert rows["crash.jpg"]["error"] == "crashed what reads photos (signal 6)"
    assert rows["slow.jpg"]["error"] == "takes more than 2 s to read"
    assert rows["all.png"]["error"] is None
    assert len(rows) == sum(path.suffix in (".png", ".jpg") for path in pets.iterdir())
