"""Files of other programs are taken into a Studio, and everything comes out of it as one zip."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from saywhere.cli.app import app
from saywhere.core import Narrative, Trace, Utterance
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats import coco_captions, localized_narratives, web_annotation
from saywhere.formats.record import InvalidRecord
from saywhere.studio.archive import Archive, image_ids, own_names
from saywhere.studio.footage import FootageStore
from saywhere.studio.image_names import PhotoNames
from saywhere.studio.imports import INSTANCES, Tally, import_narratives
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.photos import PhotoStore
from saywhere.studio.settings import Limits

from .conftest import narrative, png, refusal, upload, wav

COCO_NAME = "000000000139.jpg"
TOLD = Narrative(
    image_id="139",
    caption="a red wall",
    utterances=(Utterance("a red", 0.0, 0.5), Utterance("wall", 0.5, 1.25)),
    trace=Trace([[0.1, 0.2, 0.0], [0.4, 0.8, 0.5], [0.4, 0.7, 1.5]], (0, 2)),
    dataset_id="mscoco_val2017",
    annotator_id="49",
    audio="recordings/139_49.wav",
)


class Home:
    """The folder of a Studio with one photo of COCO's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.photos = PhotoStore(folder / "photos", Limits())
        self.narratives = NarrativeStore(folder / "narratives")
        self.footage = FootageStore(folder / "footage", None, (), Limits())
        self.filmed = NarrativeStore(folder / "video_narratives")

    def add(self, name: str, width: int = 32) -> str:
        return self.photos.add(png(width), name).id

    def take(self, path: Path, **how: Any) -> tuple[Tally, list[str]]:
        tally = Tally()
        bad: list[str] = []
        for one in import_narratives(path, PhotoNames(self.photos), self.narratives, **how):
            tally.count(one)
            if isinstance(one, InvalidRecord):
                bad.append(str(one))
        return tally, bad

    def archive(self) -> Archive:
        return Archive(self.photos, self.narratives, self.footage, self.filmed)

    def packed(self) -> zipfile.ZipFile:
        data = b"".join(self.archive().pieces())
        packed = zipfile.ZipFile(io.BytesIO(data))
        assert packed.testzip() is None
        return packed


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "studio")


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_localized_narratives_are_taken_with_their_recording(home: Home, tmp_path: Path) -> None:
    photo = home.add(COCO_NAME)
    path = tmp_path / "told.jsonl"
    localized_narratives.write(path, [TOLD])
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "139_49.wav").write_bytes(wav())
    tally, bad = home.take(path, recordings=True)
    assert (tally, bad) == (Tally(new=1), [])
    (kept,) = home.narratives.list()
    assert (kept["photo"], kept["annotator"], kept["text"]) == (photo, "49", "a red wall")
    assert [word["text"] for word in kept["words"]] == ["a", "red", "wall"]
    assert kept["trace"] == {"points": TOLD.trace.points.tolist(), "starts": [0, 2]}
    assert (kept["audio"], kept["timed_by"], kept["source"]) == (True, "file", "told.jsonl")
    assert home.narratives.told_photos() == {photo}


def test_a_file_that_is_taken_twice_makes_no_second_narratives(home: Home, tmp_path: Path) -> None:
    home.add(COCO_NAME)
    path = tmp_path / "told.jsonl"
    localized_narratives.write(path, [TOLD])
    assert home.take(path)[0] == Tally(new=1, silent=1)
    assert home.take(path)[0] == Tally(known=1, silent=1)
    assert len(home.narratives.list()) == 1


def test_bad_lines_are_named_and_the_others_taken(home: Home, tmp_path: Path) -> None:
    home.add(COCO_NAME)
    good = localized_narratives.encoded(TOLD).decode()
    elsewhere = good.replace('"139"', '"140"')
    early = good.replace('"t":0.0', '"t":-0.5')
    far = good.replace('"x":0.1', '"x":77')
    half = good[:60]
    path = written(tmp_path / "mixed.jsonl", "\n".join([half, elsewhere, early, far, good]) + "\n")
    tally, bad = home.take(path, source="mixed.jsonl")
    assert (tally.new, tally.bad) == (1, 4)
    assert bad[0].startswith("mixed.jsonl:1: ")
    assert "record 2: the image is '140', and no photo here is called that" in bad[1]
    assert "record 3: the narrative has a time before its recording starts" in bad[2]
    assert "record 4: trace goes farther from the photo than a hand can reach" in bad[3]
    assert str(tmp_path) not in "".join(bad)


def test_coco_captions_are_taken_and_leave_the_photo_to_be_told(home: Home, tmp_path: Path) -> None:
    photo = home.add(COCO_NAME)
    images = [{"id": 139, "file_name": COCO_NAME, "width": 640, "height": 480}]
    captions = [{"id": i, "image_id": 139, "caption": text} for i, text in ((1, "a wall"), (2, " "), (3, "a red one"))]
    tally, bad = home.take(written(tmp_path / "captions.json", {"images": images, "annotations": captions}))
    assert (tally.new, tally.bad) == (2, 1)
    assert "annotations[1]" in bad[0]
    assert {one["text"] for one in home.narratives.list(photo)} == {"a wall", "a red one"}
    assert home.narratives.told_photos() == set()


def test_coco_instances_become_one_list_of_named_places(home: Home, tmp_path: Path) -> None:
    home.add(COCO_NAME)
    document = {
        "images": [{"id": 139, "file_name": COCO_NAME, "width": 100, "height": 50}],
        "categories": [{"id": 1, "name": "dining table"}, {"id": 2, "name": "cup"}],
        "annotations": [
            {"id": 1, "image_id": 139, "category_id": 1, "bbox": [10, 5, 50, 25], "area": 10, "iscrowd": 0},
            {"id": 2, "image_id": 139, "category_id": 2, "bbox": [20, 10, 10, 10], "area": 10, "iscrowd": 0},
        ],
    }
    assert home.take(written(tmp_path / "instances.json", document))[0] == Tally(new=1)
    (kept,) = home.narratives.list()
    assert (kept["text"], kept["origin"], kept["timed_by"]) == ("dining table, cup", INSTANCES, "even")
    assert kept["boxes"] == [[0.1, 0.1, 0.6, 0.6], [0.1, 0.1, 0.6, 0.6], [0.2, 0.2, 0.3, 0.4]]


def test_web_annotations_of_other_programs_keep_their_place(home: Home, tmp_path: Path) -> None:
    home.add("kitchen.png")
    one = {
        "@context": "http://www.w3.org/ns/anno.jsonld",
        "body": "red wall",
        "target": "http://example.org/kitchen.png#xywh=8,6,16,12",
    }
    assert home.take(written(tmp_path / "one.json", one))[0] == Tally(new=1)
    (kept,) = home.narratives.list()
    assert (kept["text"], kept["boxes"]) == ("red wall", [[0.25, 0.25, 0.75, 0.75]] * 2)


@pytest.mark.parametrize("called", ["000000000139", "139", COCO_NAME])
def test_a_photo_is_found_by_its_name_its_stem_and_its_number(home: Home, called: str) -> None:
    photo = home.add(COCO_NAME)
    assert PhotoNames(home.photos).find(called).id == photo
    assert PhotoNames(home.photos).find(photo).id == photo


def test_a_photo_that_is_called_a_number_is_found_with_and_without_zeros(home: Home) -> None:
    photo = home.add("000007.png")
    assert {PhotoNames(home.photos).find(called).id for called in ("7", "000007", "000007.png")} == {photo}


def test_a_name_that_two_photos_have_means_neither(home: Home) -> None:
    home.add("kitchen.png")
    home.add("kitchen.png", width=40)
    with pytest.raises(InvalidValue, match="any of 2 photos"):
        PhotoNames(home.photos).find("kitchen")


def test_other_files_are_refused_with_what_is_taken(home: Home, tmp_path: Path) -> None:
    rows = {"question_id": 1, "image": "1.jpg", "text": "Is there a cup?", "label": "yes"}
    with pytest.raises(InvalidFile, match="holds questions") as refused:
        home.take(written(tmp_path / "a.json", rows))
    assert "Localized Narratives" in refused.value.hint
    with pytest.raises(InvalidFile, match="no format"):
        home.take(written(tmp_path / "b.json", "{}"))


def two_told(home: Home) -> list[dict[str, Any]]:
    first, second = home.add(COCO_NAME), home.add("my kitchen.png", width=40)
    words = [{"text": text, "start_s": i / 2, "end_s": (i + 1) / 2} for i, text in enumerate(["a", "red", "wall"])]
    told = [home.narratives.create(narrative(photo, words=words, timed_by="keys")) for photo in (first, second)]
    home.narratives.put_audio(told[0]["id"], wav())
    home.narratives.replace(told[1]["id"], told[1] | {"text": "a red wall!"})
    return [home.narratives.get(one["id"]) for one in told]


def test_the_zip_holds_everything_and_joins_by_image_id(home: Home, tmp_path: Path) -> None:
    first, second = two_told(home)
    with home.packed() as packed:
        recording = f"recordings/{first['id']}.wav"
        assert {"photos/" + COCO_NAME, "photos/my kitchen.png", recording} <= set(packed.namelist())
        assert packed.read(recording) == wav()
        assert packed.read("photos/" + COCO_NAME) == home.photos.path(first["photo"]).read_bytes()
        packed.extractall(tmp_path / "out")
    lines = list(localized_narratives.read(tmp_path / "out" / "localized_narratives.jsonl"))
    captions = list(coco_captions.read(tmp_path / "out" / "captions.json"))
    annotations = list(web_annotation.read(tmp_path / "out" / "annotations.jsonld"))
    assert len(lines) == len(captions) == len(annotations) == 2
    by_image = {str(one.image_id): one for one in captions}  # type: ignore[union-attr]
    assert set(by_image) == {"139", "my kitchen"}
    for line in lines:
        assert isinstance(line, Narrative)
        assert by_image[line.image_id].caption == line.caption  # type: ignore[union-attr]
        assert line.audio in ("", recording)
    document = json.loads((tmp_path / "out" / "captions.json").read_bytes())
    assert {one["id"]: one["file_name"] for one in document["images"]} == {
        139: COCO_NAME,
        "my kitchen": "my kitchen.png",
    }
    versions = [json.loads(line) for line in (tmp_path / "out" / "studio.jsonl").read_bytes().splitlines()]
    assert sorted((one["id"], one["version"]) for one in versions) == sorted(
        [(first["id"], 1), (second["id"], 1), (second["id"], 2)]
    )


@pytest.mark.parametrize("name", ["localized_narratives.jsonl", "captions.json", "annotations.jsonld"])
def test_what_comes_out_goes_in_again(home: Home, tmp_path: Path, name: str) -> None:
    told = two_told(home)
    home.packed().extractall(tmp_path / "out")
    other = Home(tmp_path / "other")
    names = PhotoNames(other.photos, tmp_path / "out" / "photos")
    taken = list(import_narratives(tmp_path / "out" / name, names, other.narratives, recordings=True))
    assert [isinstance(one, InvalidRecord) for one in taken] == [False, False]
    assert names.taken == 2
    again = {one["text"]: one for one in other.narratives.list()}
    for one in told:
        found = again[one["text"]]
        assert [word["text"] for word in found["words"]] == [word["text"] for word in one["words"]]
        assert [word["start_s"] for word in found["words"]] == pytest.approx([word["start_s"] for word in one["words"]])
        if name != "captions.json":
            assert found["trace"] == one["trace"]
        if name == "localized_narratives.jsonl":
            assert found["audio"] == one["audio"]


def test_photos_of_one_name_have_names_of_their_own_in_the_zip(home: Home) -> None:
    for width, name in ((32, "a.png"), (40, "A.png"), (48, ""), (56, "a.b")):
        home.add(name, width)
    names = own_names(home.photos.list())
    assert sorted(names.values()) == sorted(["a.png", "A (2).png", f"{home.photos.list()[2].id}.png", "a.b.png"])
    assert len(set(image_ids(home.photos.list(), names).values())) == 4


def test_the_zip_is_written_piece_by_piece(home: Home) -> None:
    """What is held at a time is far less than what is packed."""
    photo = home.add("a.png")
    for _ in range(6):
        home.narratives.put_audio(home.narratives.create(narrative(photo))["id"], wav(seconds=120))
    archive = home.archive()
    tracemalloc.start()
    sizes = [len(piece) for piece in archive.pieces()]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(sizes) > 20_000_000
    assert max(sizes) < 2_500_000
    assert peak < 8_000_000


def finished(client: TestClient, job: str) -> dict[str, Any]:
    for _ in range(500):
        reply = dict(client.get(f"/api/jobs/{job}").json())
        if reply["state"] in ("done", "failed", "cancelled"):
            return reply
    raise AssertionError(reply)


def sent(client: TestClient, data: bytes, name: str = "told.jsonl") -> Any:
    headers = {"Content-Type": "application/octet-stream", "X-File-Name": name}
    return client.post("/api/imports", content=data, headers=headers)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_api_takes_a_file_as_a_job_and_gives_the_zip(client: TestClient, pack: Any) -> None:
    upload(client, png(), COCO_NAME)
    line = localized_narratives.encoded(TOLD)
    reply = sent(client, pack(line + b"\n{}\n"))
    assert reply.status_code == 202, reply.text
    job = finished(client, reply.json()["job"])
    assert (job["kind"], job["state"]) == ("import", "done")
    (named,) = job["result"].pop("named")
    assert job["result"] == {"new": 1, "known": 0, "silent": 1, "bad": 1}
    assert named.startswith("told.jsonl:2: ")
    (kept,) = client.get("/api/narratives").json()["narratives"]
    assert kept["source"] == "told.jsonl"
    assert client.put(f"/api/narratives/{kept['id']}", json={**kept, "text": "other"}).json()["version"] == 2
    reply = client.get("/api/export")
    assert reply.headers["content-disposition"] == 'attachment; filename="saywhere-studio.zip"'
    with zipfile.ZipFile(io.BytesIO(reply.content)) as packed:
        assert packed.testzip() is None
        assert f"photos/{COCO_NAME}" in packed.namelist()


def test_the_api_names_what_it_does_not_take(open_studio: Any) -> None:
    client = open_studio(Limits(import_bytes=1_000))
    assert refusal(sent(client, b"x" * 1_001), 413)["code"] == "too_large"
    reply = client.post("/api/imports", content=b"{}", headers={"Content-Type": "image/png"})
    assert refusal(reply, 415)["code"] == "not_a_file"
    bomb = finished(client, sent(client, gzip.compress(b"[" * 100_000)).json()["job"])
    assert bomb["error"].startswith("told.jsonl: holds more than 1,000 bytes")
    cut = finished(client, sent(client, gzip.compress(b"[" * 100)[:-9]).json()["job"])
    assert "cut off or damaged" in cut["error"]
    job = finished(client, sent(client, b"{}", "notes.txt").json()["job"])
    assert job["state"] == "failed"
    assert job["error"].startswith("notes.txt: is in no format")


def test_the_commands_take_files_and_write_the_zip(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / COCO_NAME).write_bytes(png())
    path = tmp_path / "told.jsonl"
    path.write_bytes(localized_narratives.encoded(TOLD) + b"\nnot json\n")
    home = str(tmp_path / "studio")
    (tmp_path / "studio").mkdir()
    taken = CliRunner().invoke(
        app, ["studio", "import", str(path), "--photos", str(tmp_path / "mine"), "--folder", home]
    )
    assert taken.exit_code == 0, taken.output
    assert "1 narratives taken, 1 without their recording, 1 passed over" in taken.stdout
    assert f"passed over {path.name}:2: " in taken.stderr
    assert "1 photos taken" in taken.stdout
    packed = tmp_path / "all.zip"
    given = CliRunner().invoke(app, ["studio", "export", str(packed), "--folder", home])
    assert given.exit_code == 0, given.output
    assert "1 photos, 1 narratives" in given.stdout
    assert f"photos/{COCO_NAME}" in zipfile.ZipFile(packed).namelist()


def test_the_command_refuses_a_folder_of_photos_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "told.jsonl"
    localized_narratives.write(path, [TOLD])
    arguments = ["studio", "import", str(path), "--photos", str(tmp_path / "no"), "--folder", str(tmp_path / "s")]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InvalidFile)


def test_the_commands_make_no_studio_of_a_mistyped_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "told.jsonl"
    localized_narratives.write(path, [TOLD])
    for folder in (tmp_path / "typo", tmp_path):
        for arguments in (["export", str(tmp_path / "all.zip")], ["import", str(path)]):
            result = CliRunner().invoke(app, ["studio", *arguments, "--folder", str(folder)])
            assert isinstance(result.exception, InvalidFile)
            assert "is not a Studio's folder" in str(result.exception)
            assert f"saywhere studio --folder {folder}" in str(result.exception)
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.setenv("SAYWHERE_STUDIO", str(tmp_path / "new"))
    taken = CliRunner().invoke(app, ["studio", "import", str(path)])
    assert taken.exit_code == 0, taken.output
    assert (tmp_path / "new" / "narratives").is_dir()
