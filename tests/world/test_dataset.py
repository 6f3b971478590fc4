"""A world on disk: read back by the readers of the official formats, whole after any interruption."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.core.types import Progress
from saywhere.formats import (
    InvalidRecord,
    coco_captions,
    coco_instances,
    hl,
    localized_narratives,
    refcoco,
    registry,
    video_narratives,
    vqa,
)
from saywhere.world import CHANGED_PRIORS, WorldSettings, contact_sheet, make, make_scene, make_video, narrate, scenes
from saywhere.world.video_narrators import narrate_video

N, SEED, SIZE, VIDEOS = 30, 13, 32, 2
SETTINGS = WorldSettings(N, SEED, SIZE, videos=VIDEOS, frames=4)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "made"
    make(folder, SETTINGS)
    return folder


def _good(values: Iterable[Any]) -> list[Any]:
    listed = list(values)
    assert not [v for v in listed if isinstance(v, InvalidRecord)]
    return listed


def _content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_manifest_counts_what_is_there(world: Path) -> None:
    manifest = json.loads((world / "manifest.json").read_text())
    assert manifest["counts"]["photos"] == len(list((world / "photos").glob("*.png"))) == N
    assert manifest["counts"]["videos"] == VIDEOS
    assert manifest["counts"]["frames"] == len(list((world / "videos").glob("*/*.png"))) == 4 * VIDEOS
    assert manifest["settings"]["seed"] == SEED
    assert manifest["splits"] == {"train": [0, 24], "val": [24, 27], "test": [27, 30]}
    assert set(manifest["sha256"]) >= {"narratives.jsonl", "instances.json", "videos/narratives.jsonl"}
    assert not (world / "unfinished.json").exists()


def test_photos_are_the_scenes(world: Path) -> None:
    for index in (0, 29):
        with Image.open(world / "photos" / f"{index:06d}.png") as photo:
            np.testing.assert_array_equal(np.asarray(photo), make_scene(SEED, index, SIZE).photo)


def test_narratives_are_read_back_as_they_were_told(world: Path) -> None:
    read = _good(localized_narratives.read(world / "narratives.jsonl"))
    assert read == [narrate(scene, SEED).narrative for scene in scenes(N, SEED, SIZE)]
    truth = [json.loads(line) for line in (world / "word_truth.jsonl").read_text().splitlines()]
    for narrative, row in zip(read, truth, strict=True):
        assert row["image_id"] == narrative.image_id
        assert len(row["word_annotations"]) == len(narrative.words)


def test_instances_have_the_masks_and_boxes_of_the_scenes(world: Path) -> None:
    instances = _good(coco_instances.read(world / "instances.json"))
    by_image: dict[int, list[coco_instances.Instance]] = {}
    for instance in instances:
        by_image.setdefault(instance.image_id, []).append(instance)
    for scene in scenes(N, SEED, SIZE):
        assert len(by_image[scene.index]) == len(scene.things)
        for i, (instance, thing) in enumerate(zip(by_image[scene.index], scene.things, strict=True)):
            assert instance.category == thing.kind
            assert instance.box_xyxy == pytest.approx(thing.box_xyxy)
            np.testing.assert_array_equal(instance.mask(), scene.mask(i))


def test_captions_and_high_level_rows_are_read_back(world: Path) -> None:
    captions = _good(coco_captions.read(world / "captions.json"))
    assert len(captions) == 5 * N
    assert {c.file_name for c in captions} == {p.name for p in (world / "photos").iterdir()}
    rows = _good(hl.read(world / "hl.jsonl"))
    assert len(rows) == N
    assert all(len(row.captions["object"]) == 5 and len(row.captions["scene"]) == 3 for row in rows)


def test_references_find_their_instances(world: Path) -> None:
    read = _good(refcoco.read(world / "referring.json", world / "instances.json"))
    assert len(read) > 3 * N
    assert all(r.instance is not None and r.instance.mask().any() for r in read)
    assert {r.split for r in read} == {"train", "val", "test"}


def test_questions_have_their_answers(world: Path) -> None:
    read = _good(vqa.read(world / "questions.json", world / "annotations.json"))
    assert len(read) > 3 * N
    assert {q.answer_type for q in read} == {"yes/no", "number", "other"}
    assert all(len(q.answers) == 10 and q.multiple_choice_answer in q.answers for q in read)


def test_video_narratives_are_read_back(world: Path) -> None:
    read = _good(video_narratives.read(world / "videos" / "narratives.jsonl"))
    for index, value in enumerate(read):
        told = narrate_video(make_video(SEED, index, SIZE, 4), SEED)
        assert [a.name for a in value.actors] == [a.name for a in told.actors]
        assert [a.keyframes for a in value.actors] == [a.keyframes for a in told.actors]
        assert [a.narrative.caption for a in value.actors] == [a.narrative.caption for a in told.actors]
        frames = {p.stem for p in (world / "videos" / value.video_id).iterdir()}
        assert frames == set(value.keyframe_names)


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("narratives.jsonl", "localized-narratives"),
        ("captions.json", "coco-captions"),
        ("instances.json", "coco-instances"),
        ("hl.jsonl", "hl"),
        ("questions.json", "vqa"),
        ("referring.json", "refcoco"),
        ("videos/narratives.jsonl", "video-narratives"),
    ],
)
def test_every_file_is_recognised_for_what_it_is(world: Path, name: str, known_as: str) -> None:
    assert registry.detect(world / name).name == known_as


def test_the_same_settings_give_the_same_bytes(world: Path, tmp_path: Path) -> None:
    make(tmp_path / "again", SETTINGS)
    assert _content(tmp_path / "again") == _content(world)


class _Killed(BaseException):
    """As if the process was killed: nothing catches it."""


def _killer(at: int) -> Progress:
    def progress(_: str, done: int, total: int) -> None:
        assert total == N + VIDEOS
        if done == at:
            raise _Killed

    return progress


@pytest.mark.parametrize("at", [15, N + 1])
def test_an_interrupted_run_leaves_no_half_files_and_is_finished_by_the_next(
    world: Path, tmp_path: Path, at: int
) -> None:
    folder = tmp_path / "cut"
    with pytest.raises(_Killed):
        make(folder, SETTINGS, _killer(at))
    assert not (folder / "manifest.json").exists()
    assert not list(folder.rglob("*.part"))
    photo = folder / "photos" / "000000.png"
    before = photo.stat().st_mtime_ns
    make(folder, SETTINGS)
    assert photo.stat().st_mtime_ns == before, "what was there is kept"
    assert _content(folder) == _content(world)


def test_a_killed_run_is_finished_by_the_next(world: Path, tmp_path: Path) -> None:
    code = (
        "import os, signal; from saywhere.world import WorldSettings, make\n"
        "stop = lambda _, done, total: os.kill(os.getpid(), signal.SIGKILL) if done == 12 else None\n"
        f"make({str(tmp_path / 'w')!r}, WorldSettings({N}, {SEED}, {SIZE}, videos={VIDEOS}, frames=4), stop)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert list((tmp_path / "w").glob(".*.part"))
    make(tmp_path / "w", SETTINGS)
    assert _content(tmp_path / "w") == _content(world)


def test_other_settings_replace_an_old_world_without_leftovers(world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "world"
    make(folder, WorldSettings(N + 5, SEED + 1, SIZE, videos=1, frames=3))
    make(folder, SETTINGS)
    assert _content(folder) == _content(world)


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidFile, match="holds no world"):
        make(tmp_path, SETTINGS)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_damaged_mark_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InvalidFile, match="not JSON"):
        make(tmp_path, SETTINGS)


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    make(
        tmp_path / "w",
        WorldSettings(3, size=16, videos=1, frames=2),
        lambda _, done, total: calls.append((done, total)),
    )
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_priors_of_a_split_hold_for_its_questions(tmp_path: Path) -> None:
    even = {split: {"is there a": CHANGED_PRIORS[split]["is there a"]} for split in ("train", "test")}
    make(tmp_path / "w", WorldSettings(60, 1, 32, splits={"train": 0.5, "test": 0.5}, priors=even))
    answers = json.loads((tmp_path / "w" / "annotations.json").read_bytes())["annotations"]
    for split, yes in (("train", 0.8), ("test", 0.2)):
        said = [
            a["multiple_choice_answer"] for a in answers if a["split"] == split and a["question_type"] == "is there a"
        ]
        assert said.count("yes") / len(said) == pytest.approx(yes, abs=0.05)
        assert all((a["image_id"] < 30) == (a["split"] == "train") for a in answers)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n": 0}, InvalidValue, "n: is 0"),
        ({"n": 5, "seed": -1}, InvalidValue, "seed"),
        ({"n": 5, "size": 3}, InvalidValue, "size"),
        ({"n": 5, "videos": -2}, InvalidValue, "videos"),
        ({"n": 5, "splits": {"train": 0.5}}, InvalidValue, "share out"),
        ({"n": 5, "priors": {"dev": {}}}, InvalidValue, "dev"),
        ({"n": 5, "priors": {"train": {"how often": {"1": 1.0}}}}, UnknownName, "how many"),
    ],
)
def test_settings_are_checked_before_any_work(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        WorldSettings(**change)


def test_a_contact_sheet_shows_every_scene() -> None:
    some = list(scenes(5, size=32))
    sheet = contact_sheet(some, columns=3)
    assert sheet.size == (3 * 36 + 4, 2 * 36 + 4)
    pixels = np.asarray(sheet)
    np.testing.assert_array_equal(pixels[4:36, 4:36], some[0].photo)
    np.testing.assert_array_equal(pixels[40:72, 40:72], some[4].photo)


@pytest.mark.parametrize("columns", [0, -1])
def test_a_contact_sheet_without_columns_is_refused(columns: int) -> None:
    with pytest.raises(InvalidValue, match="contact sheet"):
        contact_sheet(scenes(2, size=32), columns)


def test_a_contact_sheet_of_nothing_or_of_mixed_sizes_is_refused() -> None:
    with pytest.raises(InvalidValue, match="contact sheet"):
        contact_sheet([])
    with pytest.raises(InvalidValue, match="different sizes"):
        contact_sheet([make_scene(0, 0, 32), make_scene(0, 1, 48)])
