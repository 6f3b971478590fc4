from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from saywhere.core.errors import InvalidFile
from saywhere.formats import osie
from saywhere.formats.osie import Gaze
from saywhere.formats.record import InvalidRecord

MOUSE = {
    "subj": np.array([[1], [1], [3], [3]], np.uint8),
    "coord": np.array([[300, 400], [150, 200], [1, 799], [599, 1]], np.uint16),
    "order": np.array([[1], [2], [2], [1]], np.uint8),
}
EYES = {"fix_x": [[80.0, 400.0]], "fix_y": [[60.0, 300.0]], "fix_duration": [[246, 136]]}


def cells(*items: object) -> np.ndarray[Any, Any]:
    array = np.empty((len(items), 1), object)
    array[:, 0] = items
    return array


def write(path: Path, fixations: object) -> Path:
    savemat(path, {"fixations": fixations}, do_compression=True)
    return path


def read_bad(path: Path) -> list[str]:
    return [str(value) for value in osie.read(path) if isinstance(value, InvalidRecord)]


def test_the_real_mouse_traces_are_all_read_from_their_folder(shared: Callable[[str], Path]) -> None:
    folder = shared("data/osie/mouse_lab")
    assert osie.sniff(folder, b"")
    values = [value for value in osie.read(folder) if isinstance(value, Gaze)]
    assert len(values) == 9726
    assert len({value.image_id for value in values}) == 700
    points = np.concatenate([value.points_xy for value in values])
    np.testing.assert_array_equal(points.min(axis=0), [1 / 800, 1 / 600])
    np.testing.assert_array_equal(points.max(axis=0), [799 / 800, 599 / 600])
    assert sum(tuple(value.points_xy[0]) == (0.5, 0.5) for value in values) == 8200
    assert all(value.kind == "mouse" and value.durations_s is None for value in values)


def test_the_real_eye_fixations_are_all_read_with_seconds(shared: Callable[[str], Path]) -> None:
    path = shared("data/osie/eye/fixations.mat")
    assert osie.sniff(path, path.read_bytes()[:200])
    values = [value for value in osie.read(path) if isinstance(value, Gaze)]
    assert len(values) == 10_500
    assert [value.subject for value in values[:16]] == [*map(str, range(1, 16)), "1"]
    first = values[0]
    assert (first.image_id, first.kind, len(first)) == ("1001", "eye", 12)
    np.testing.assert_allclose(first.points_xy[0], [395.5 / 800, 265.7 / 600])
    assert first.durations_s is not None
    assert first.durations_s[0] == 0.246


def test_mouse_columns_come_apart_by_subject_in_their_order(tmp_path: Path) -> None:
    first, third = osie.read(write(tmp_path / "1001.mat", MOUSE))
    assert isinstance(first, Gaze)
    assert isinstance(third, Gaze)
    assert (first.image_id, first.subject, third.subject) == ("1001", "1", "3")
    np.testing.assert_allclose(first.points_xy, [[0.5, 0.5], [0.25, 0.25]])
    np.testing.assert_allclose(third.points_xy, [[1 / 800, 599 / 600], [799 / 800, 1 / 600]])


@pytest.mark.parametrize(
    ("change", "words", "n_good"),
    [
        ({"order": np.array([1, 1, 1, 2])}, "two points the same place", 1),
        ({"order": np.array([1, np.nan, 1, 2])}, "NaN", 1),
        ({"coord": np.array([[np.nan, 1], [1, 1], [1, 1], [1, 1]])}, "far outside", 1),
        ({"coord": np.array([[1, 1e300], [1, 1], [1, 1], [1, 1]])}, "far outside", 1),
    ],
)
def test_a_bad_subject_is_a_bad_record_and_the_others_are_read(
    change: dict[str, object], words: str, n_good: int, tmp_path: Path
) -> None:
    path = write(tmp_path / "1001.mat", MOUSE | change)
    bad = read_bad(path)
    assert len(bad) == 2 - n_good
    assert words in bad[0]
    assert "subj == 1" in bad[0]


@pytest.mark.parametrize(
    ("fixations", "words"),
    [
        (MOUSE | {"coord": np.zeros((4, 3))}, "columns of numbers"),
        (MOUSE | {"coord": "text"}, "columns of numbers"),
        (MOUSE | {"order": np.zeros(3)}, "columns of numbers"),
        (MOUSE | {"subj": np.array([1, 1, np.nan, 2])}, "NaN"),
        ({"subj": 1}, "not one struct"),
        (np.zeros((3, 3)), "neither a struct nor a cell"),
    ],
)
def test_a_file_of_another_make_is_refused_alone_and_reported_in_a_folder(
    fixations: object, words: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "1001.mat", fixations)
    with pytest.raises(InvalidFile, match=words):
        list(osie.read(path))
    write(tmp_path / "1002.mat", MOUSE)
    bad, *good = osie.read(tmp_path)
    assert isinstance(bad, InvalidRecord)
    assert words in bad.reason
    assert [value.image_id for value in good if isinstance(value, Gaze)] == ["1002", "1002"]


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (EYES | {"fix_x": [[1.0]]}, "have 1, 2 and 2 numbers"),
        (EYES | {"fix_duration": [[-1.0, 5.0]]}, "negative"),
        (EYES | {"fix_x": [["a"]]}, "all numbers"),
        ({"fix_x": 1}, "not a struct"),
        (dict.fromkeys(EYES, np.empty((1, 0))), "are none"),
        (7, "not a struct"),
    ],
)
def test_a_bad_subject_of_an_eye_file_is_a_bad_record(subject: object, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "f.mat", cells({"img": "1001.jpg", "subjects": cells(EYES, subject)}))
    good, bad = osie.read(path)
    assert isinstance(good, Gaze)
    np.testing.assert_allclose(good.points_xy, [[0.1, 0.1], [0.5, 0.5]])
    assert isinstance(bad, InvalidRecord)
    assert bad.where == "fixations{1}.subjects{2}"
    assert words in bad.reason


@pytest.mark.parametrize(
    "image", [7, {"img": "a.jpg"}, {"img": 5, "subjects": cells(EYES)}, {"img": "a", "subjects": 1}]
)
def test_a_bad_image_of_an_eye_file_is_a_bad_record(image: object, tmp_path: Path) -> None:
    bad, good = osie.read(write(tmp_path / "f.mat", cells(image, {"img": "1001.jpg", "subjects": cells(EYES)})))
    assert isinstance(bad, InvalidRecord)
    assert bad.where == "fixations{1}"
    assert isinstance(good, Gaze)


def test_files_and_folders_without_fixations_are_refused(tmp_path: Path) -> None:
    savemat(tmp_path / "a.mat", {"other": 1})
    with pytest.raises(InvalidFile, match="no variable"):
        list(osie.read(tmp_path / "a.mat"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidFile, match=r"holds no \.mat files"):
        list(osie.read(tmp_path / "empty"))
    with pytest.raises(InvalidFile, match="cannot be opened"):
        list(osie.read(tmp_path / "missing.mat"))
    newest = bytearray((tmp_path / "a.mat").read_bytes())
    newest[124:126] = b"\x00\x02"
    (tmp_path / "b.mat").write_bytes(newest)
    with pytest.raises(InvalidFile, match="save it again with the option -v7"):
        list(osie.read(tmp_path / "b.mat"))


def _mat(path: Path, compressed: bool) -> bytes:
    fixations = cells({"img": "1001.jpg", "subjects": cells(EYES)}) if path.name == "eye" else MOUSE
    savemat(path, {"fixations": fixations}, do_compression=compressed, appendmat=False)
    return path.read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_bytes_crash_the_reader(data: st.DataObject, tmp_path: Path) -> None:
    whole = _mat(tmp_path / data.draw(st.sampled_from(["mouse", "eye"])), compressed=False)
    content = bytearray(whole[: data.draw(st.sampled_from([len(whole)] * 3 + [0, 100, 128, 200, 300]))])
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + 1] = data.draw(st.binary(min_size=1, max_size=2))
    if data.draw(st.booleans()):
        packed = zlib.compress(bytes(content[128:]))
        content = content[:128] + b"\x0f\x00\x00\x00" + len(packed).to_bytes(4, "little") + packed
    path = tmp_path / "mutated.mat"
    path.write_bytes(content)
    values: list[Gaze | InvalidRecord] = []
    with contextlib.suppress(InvalidFile):
        values.extend(osie.read(path))
    assert all(isinstance(value, Gaze) or value.reason for value in values)
