"""Bottom-up features from every kind of file, and every way such a file can be wrong."""

from __future__ import annotations

import base64
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import h5py
import lmdb
import msgspec
import numpy as np
import PIL.Image
import pytest

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.models.feature_files import H5Records, arrays_in
from saywhere.models.mitr import RegionFeatures, open_features
from saywhere.models.prepared import REGION_FIELDS, region_row
from saywhere.models.region_features import REGIONS, view_regions
from saywhere.store import StoreWriter
from saywhere.vision import extract, open_views
from saywhere.vision.look import LiteEncoder
from tests.vision.conftest import tiny_network

WIDTH, HEIGHT = 640, 480
IDS = ("9", "25", "391895")


def truth(image_id: str) -> tuple[np.ndarray, np.ndarray]:
    """Features (R, 6) and boxes in fractions (R, 4) of an image; each image has its own number of regions."""
    rng = np.random.default_rng(int(image_id))
    count = 2 + int(image_id) % 5
    corners = rng.random((count, 2, 2))
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    return rng.random((count, 6)).astype(np.float32), boxes.astype(np.float32)


def pixels(boxes: np.ndarray) -> np.ndarray:
    return (boxes * np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])).astype(np.float32)


def write_npz(folder: Path) -> Path:
    target = folder / "features"
    target.mkdir()
    for i in IDS:
        features, boxes = truth(i)
        np.savez(target / f"{i}.npz", feat=features, bbox=pixels(boxes), image_w=WIDTH, image_h=HEIGHT)
    return target


def write_npz_norm(folder: Path) -> Path:
    target = folder / "features"
    target.mkdir()
    for i in IDS:
        features, boxes = truth(i)
        np.savez_compressed(target / f"{i}.npz", box_feats=features, norm_bb=np.column_stack([boxes, boxes[:, :2]]))
    return target


def write_h5_groups(folder: Path) -> Path:
    with h5py.File(folder / "features.h5", "w") as file:
        for i in IDS:
            features, boxes = truth(i)
            group = file.create_group(i)
            group["features"], group["boxes"] = features, pixels(boxes)
            group["width"], group["height"] = WIDTH, HEIGHT
    return folder / "features.h5"


def write_h5_flat(folder: Path) -> Path:
    with h5py.File(folder / "features.hdf5", "w") as file:
        for i in IDS:
            features, boxes = truth(i)
            file[f"{i}_features"], file[f"{i}_boxes"] = features, boxes
    return folder / "features.hdf5"


def write_lmdb(folder: Path, packed: Callable[[np.ndarray, np.ndarray], bytes]) -> Path:
    target = folder / "features.lmdb"
    with lmdb.open(str(target), map_size=2**20) as store, store.begin(write=True) as transaction:
        for i in IDS:
            transaction.put(i.encode(), packed(*truth(i)))
    return target


def npz_bytes(features: np.ndarray, boxes: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, features=features, boxes=boxes)
    return buffer.getvalue()


def msgpack_bytes(features: np.ndarray, boxes: np.ndarray) -> bytes:
    def packed(array: np.ndarray) -> dict[bytes, object]:
        return {b"nd": True, b"type": array.dtype.str, b"shape": array.shape, b"data": array.tobytes()}

    return msgspec.msgpack.encode({"features": packed(features), "boxes": boxes.tolist()})


def raw_bytes(features: np.ndarray, boxes: np.ndarray) -> bytes:
    return np.array(features.shape, dtype="<u4").tobytes() + features.tobytes() + boxes.tobytes()


def write_tsv(folder: Path) -> Path:
    lines = []
    for i in IDS:
        features, boxes = truth(i)
        packed = [base64.b64encode(array.astype("<f4").tobytes()).decode() for array in (pixels(boxes), features)]
        lines.append("\t".join([i, str(WIDTH), str(HEIGHT), str(len(features)), *packed]))
    (folder / "features.tsv").write_text("\n".join(lines) + "\n")
    return folder / "features.tsv"


def write_tsv_wide(folder: Path) -> Path:
    lines = []
    for i in IDS:
        features, boxes = truth(i)
        packed = [base64.b64encode(array.astype("<f4").tobytes()).decode() for array in (pixels(boxes), features)]
        lines.append("\t".join([i, str(HEIGHT), str(WIDTH), "x", "x", "x", "x", str(len(features)), *packed]))
    (folder / "wide.tsv").write_text("\r\n".join(lines))
    return folder / "wide.tsv"


WRITERS = [
    write_npz,
    write_npz_norm,
    write_h5_groups,
    write_h5_flat,
    lambda folder: write_lmdb(folder, npz_bytes),
    lambda folder: write_lmdb(folder, msgpack_bytes),
    lambda folder: write_lmdb(folder, raw_bytes),
    write_tsv,
    write_tsv_wide,
]
NAMES = ["npz", "npz norm", "h5 groups", "h5 flat", "lmdb npz", "lmdb msgpack", "lmdb raw", "tsv", "tsv wide"]


@pytest.mark.parametrize("write", WRITERS, ids=NAMES)
def test_every_kind_of_file_gives_the_same_features(write: Callable[[Path], Path], tmp_path: Path) -> None:
    with open_features(write(tmp_path)) as file:
        assert sorted(file) == sorted(IDS)
        assert "9" in file
        assert "10" not in file
        for i in reversed(IDS):
            features, boxes = truth(i)
            np.testing.assert_array_equal(file[i].features, features)
            np.testing.assert_allclose(file[i].boxes_xyxy, boxes, atol=1e-6)
        with pytest.raises(InvalidFile, match="holds no image '10'"):
            file["10"]


def test_stacked_h5_is_read_by_its_list_of_ids(tmp_path: Path) -> None:
    path = tmp_path / "stack.h5"
    features, boxes = np.random.default_rng(0).random((2, 3, 4)), np.tile([0.1, 0.2, 0.3, 0.4], (2, 3, 1))
    with h5py.File(path, "w") as file:
        file["image_features"], file["image_bb"], file["image_ids"] = features, boxes, [7, 11]
    with open_features(path) as opened:
        assert list(opened) == ["7", "11"]
        np.testing.assert_allclose(opened["11"].features, features[1], rtol=1e-6)
        with pytest.raises(InvalidFile, match="holds no image"):
            opened["8"]


@pytest.mark.parametrize("layout", ["stack", "flat"])
def test_names_in_h5_are_listed_once_however_many_images_are_read(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.h5"
    ids = [str(i) for i in range(40)]
    features, boxes = np.ones((40, 2, 4)), np.tile([0.1, 0.2, 0.3, 0.4], (40, 2, 1))
    with h5py.File(path, "w") as file:
        if layout == "stack":
            file["image_features"], file["image_bb"], file["image_ids"] = features, boxes, list(range(40))
        else:
            for i, name in enumerate(ids):
                file[f"{name}_features"], file[f"{name}_boxes"], file[f"{name}_image_w"] = features[i], boxes[i], 100
    listed = []
    iterate, get = h5py.File.__iter__, h5py.File.__getitem__
    monkeypatch.setattr(h5py.File, "__iter__", lambda file: listed.append("all") or iterate(file))
    monkeypatch.setattr(h5py.File, "__getitem__", lambda file, name: listed.append(str(name)) or get(file, name))
    records = H5Records(path)
    for name in ids:
        assert name in records
        assert set(records.read(name)) >= {"features", "boxes"}
    # Once to see what it holds and once to read it, not once an image.
    assert listed.count("all") + listed.count("image_ids") <= 2
    assert sorted(records.ids(), key=int) == ids
    if layout == "flat":
        assert set(records.read("3")) == {"features", "boxes", "image_w"}
    records.close()


def test_boxes_may_be_kept_apart_and_sizes_given(tmp_path: Path) -> None:
    features, boxes = truth("9")
    (tmp_path / "att").mkdir()
    (tmp_path / "box").mkdir()
    np.savez(tmp_path / "att" / "9.npz", features)
    np.save(tmp_path / "box" / "9.npy", pixels(boxes))
    with open_features(tmp_path / "att", tmp_path / "box", {"9": (WIDTH, HEIGHT)}) as file:
        np.testing.assert_allclose(file["9"].boxes_xyxy, boxes, atol=1e-6)
        np.testing.assert_array_equal(file["9"].features, features)
    with open_features(tmp_path / "att", tmp_path / "box") as file, pytest.raises(InvalidFile, match="in pixels"):
        file["9"]


@pytest.mark.parametrize("write", WRITERS, ids=NAMES)
def test_several_readers_and_forked_processes_share_a_file(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path)
    features, _ = truth("9")
    with open_features(path) as first, open_features(path) as second:
        np.testing.assert_array_equal(first["9"].features, second["9"].features)
        copied = pickle.loads(pickle.dumps(first))
        np.testing.assert_array_equal(copied["9"].features, features)
        copied.close()
        child = os.fork()
        if not child:
            os._exit(0 if np.array_equal(first["9"].features, features) else 1)
        assert os.waitpid(child, 0)[1] == 0
        np.testing.assert_array_equal(second["25"].features, truth("25")[0])


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickles_are_refused_and_never_run(protocol: int) -> None:
    content = pickle.dumps({"features": [[1.0]], "boxes": [[0, 0, 1, 1]]}, protocol=protocol)
    with pytest.raises(InvalidFile, match="is a pickle"):
        arrays_in(content, "somewhere")


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    np.savez(tmp_path / "f" / "1.npz", feat=np.array([{"a": 1}], dtype=object))
    with open_features(tmp_path / "f") as file, pytest.raises(InvalidFile, match="pickles"):
        file["1"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "neither npz"),
        (b"hello", "msgpack int|neither npz"),
        (b"\xc1\xc1", "neither npz"),
        (b"PK\x03\x04broken", "cannot be read"),
        (b"\x93NUMPYbroken", "cannot be read"),
        (b"\x04\x22\x4d\x18....", "lz4"),
        (msgspec.msgpack.encode({"features": {"type": "<f4"}}), "cannot be read"),
        (msgspec.msgpack.encode({"features": {"type": "<f4", "data": b"123", "shape": [9]}}), "cannot be read"),
    ],
)
def test_values_that_are_no_arrays_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidFile, match=reason):
        arrays_in(content, "somewhere")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1\t2\t3", "line 1: 3 columns"),
        ("1\t640\t480\t2\tnot base64!\tAAAA", "line 1"),
        ("1\t640\t480\tmany\tAAAA\tAAAA", "line 1"),
        (f"1\t640\t480\t3\t{base64.b64encode(b'1234' * 4).decode()}\tAAAA", "line 1"),
    ],
)
def test_bad_lines_of_a_tsv_are_named(line: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(line)
    with open_features(tmp_path / "bad.tsv") as file, pytest.raises(InvalidFile, match=reason):
        file["1"]


@pytest.mark.parametrize(
    ("features", "boxes", "reason"),
    [
        (np.zeros((0, 4)), np.zeros((0, 4)), "have shape"),
        (np.zeros(4), np.zeros((1, 4)), "have shape"),
        (np.zeros((2, 4)), np.zeros((3, 4)), "have shape"),
        (np.full((1, 4), np.nan), np.zeros((1, 4)), "NaN"),
        (np.zeros((1, 4)), [[0, 0, 5, 5]], "leave the image"),
        (np.zeros((1, 4)), [[0.5, 0, 0.2, 1]], "xyxy"),
    ],
)
def test_regions_that_cannot_be_are_refused(features: np.ndarray, boxes: np.ndarray, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        RegionFeatures(features, boxes)


def test_a_hair_over_the_edge_is_the_edge() -> None:
    regions = RegionFeatures(np.zeros((1, 4)), [[-0.01, 0, 1.02, 0.5]])
    assert regions.boxes_xyxy.tolist() == [[0, 0, 1, 0.5]]
    assert regions.encoded_boxes().tolist() == [[0, 0, 1, 0.5, 0.5]]


def test_unknown_kinds_and_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "features.csv").write_text("")
    with pytest.raises(UnknownName, match="tsv"):
        open_features(tmp_path / "features.csv")
    with pytest.raises(InvalidFile, match="does not exist"):
        open_features(tmp_path / "nothing.h5")
    (tmp_path / "bad.h5").write_text("not HDF5")
    with open_features(tmp_path / "bad.h5") as file, pytest.raises(InvalidFile, match="as HDF5"):
        file["1"]
    (tmp_path / "bad.lmdb").write_text("not LMDB")
    with open_features(tmp_path / "bad.lmdb") as file, pytest.raises(InvalidFile, match="as LMDB"):
        file["1"]


def test_a_file_without_boxes_says_which_names_it_has(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    np.savez(tmp_path / "f" / "1.npz", feat=np.zeros((1, 2)), extra=np.zeros(1))
    with open_features(tmp_path / "f") as file, pytest.raises(InvalidFile, match="there is feat, extra"):
        file["1"]


def test_an_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    folder = write_npz(tmp_path)
    np.savez(tmp_path / "secret.npz", feat=np.zeros((1, 2)), bbox=np.zeros((1, 4)))
    with open_features(folder) as file:
        assert "../secret" not in file


def test_stored_regions_are_features(tmp_path: Path) -> None:
    with StoreWriter(tmp_path, REGIONS, REGION_FIELDS, {}) as writer:
        for name in IDS:
            writer.add(name, **region_row(RegionFeatures(*truth(name))))
    with open_features(tmp_path) as features:
        assert (list(features), len(features), "1" in features, features.get("1")) == (list(IDS), 3, False, None)
        for name in IDS:
            np.testing.assert_array_equal(features[name].features, truth(name)[0].astype(np.float16))
            np.testing.assert_array_equal(features[name].boxes_xyxy, truth(name)[1])
        with pytest.raises(InvalidFile, match="holds no image '1'"):
            features["1"]


def test_what_look_wrote_is_features_a_region_for_each_patch(tmp_path: Path) -> None:
    photos = [tmp_path / f"{name}.png" for name in IDS]
    for number, photo in enumerate(photos):
        PIL.Image.new("RGB", (40, 30), (number, 9, 200)).save(photo)
    photos[1].write_bytes(b"no photo")
    extract(photos, tmp_path / "views", LiteEncoder(tiny_network(), "tiny", "0" * 64, 96))
    with open_features(tmp_path / "views") as features:
        assert list(features) == ["9", "391895"]
        view = open_views(tmp_path / "views")["9"]
        np.testing.assert_array_equal(features["9"].features, view.patches.reshape(9, -1))
        np.testing.assert_allclose(features["9"].boxes_xyxy, view.patch_boxes_xyxy(), atol=1e-6)
        with pytest.raises(InvalidFile, match="holds no image '25'"):
            features["25"]
        pooled = view_regions(view, 2)
        np.testing.assert_allclose(pooled.features, view.patches[:2, :2].mean(axis=(0, 1))[None], rtol=1e-6)
        np.testing.assert_allclose(pooled.boxes_xyxy, [[0, 0, 2 / 3, 2 / 3]], atol=1e-6)


def test_a_store_of_something_else_or_unfinished_has_no_features(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "texts", "texts", {"said": "json"}, {}):
        pass
    StoreWriter(tmp_path / "half", REGIONS, REGION_FIELDS, {}).flush()
    for name, reason in (("texts", "holds texts, neither views nor regions"), ("half", "not finished")):
        with pytest.raises(InvalidFile, match=reason):
            list(open_features(tmp_path / name))
