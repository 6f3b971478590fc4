"""Files of features from strangers: they read nothing but themselves, and ask for no more memory than they can fill."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from saywhere.core.errors import InvalidFile
from saywhere.formats.files import read_bytes
from saywhere.limits import MOST
from saywhere.models.feature_files import arrays_in, open_records
from tests.doors.memory import memory_of

MIB = 2**20
FEW = 8 * MIB
SECRET = b"the secret of this computer, 40 bytes ok"


def npy_header(shape: str, kind: str = "<f4") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zipped(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return made.getvalue()


def lying_npz() -> bytes:
    """An array of zeros, in a thousandth of its bytes."""
    return zipped("features.npy", npy_header(f"({FEW // 2},)") + bytes(2 * FEW))


CONTENTS: dict[str, Callable[[], bytes]] = {
    "an npy of 3.6 TiB": lambda: npy_header("(1000000, 1000000)") + bytes(64),
    "an npy whose size overflows": lambda: npy_header("(4294967296, 4294967296, 4)") + bytes(64),
    "an npy with a negative side": lambda: npy_header("(-1, 4)") + bytes(64),
    "an npy of objects": lambda: npy_header("(2,)", "|O") + bytes(64),
    "an npy with a header of 60 kB of brackets": lambda: (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 60_000) + b"(" * 60_000
    ),
    "an npy header that is code": lambda: npy_header("__import__('os').getpid()") + bytes(64),
    "an npz that unpacks to more than is taken": lying_npz,
    "an npz member that is no array": lambda: zipped("features.npy", b"not an array"),
    "an npz member of another name": lambda: zipped("readme.txt", b"not an array"),
    "an npz whose array is longer than its member": lambda: zipped("features.npy", npy_header("(1000000000,)")),
    "msgpack nested 100,000 deep": lambda: b"\x91" * 100_000 + b"\x90",
    "msgpack with a list of 2**32 - 1 entries": lambda: b"\x81\xa1a\xdd\xff\xff\xff\xff",
    "msgpack with a shape of 2**60": lambda: msgspec.msgpack.encode(
        {"features": {"type": "<f4", "shape": [2**30, 2**30], "data": bytes(16)}}
    ),
    "msgpack with a type of 2**40 bytes": lambda: msgspec.msgpack.encode(
        {"features": {"type": "V1099511627776", "shape": [1], "data": bytes(16)}}
    ),
    "msgpack with lists in lists of texts": lambda: msgspec.msgpack.encode({"features": [["a", 1], None]}),
    "raw numbers of another length": lambda: struct.pack("<II", 2**31, 2**31) + bytes(16),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_hostile_record_is_refused_within_the_memory_that_it_can_fill(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MOST, "bytes of one image's features", FEW)  # 256 MiB take long to pack
    content = CONTENTS[name]()
    with memory_of(64 * MIB), pytest.raises(InvalidFile):
        arrays_in(content, "here")


def test_what_is_honest_is_still_read() -> None:
    features = np.arange(12, dtype=np.float32).reshape(3, 4)
    packed, plain = io.BytesIO(), io.BytesIO()
    np.savez_compressed(packed, features=features, boxes=features)
    np.save(plain, np.asfortranarray(features))
    assert arrays_in(packed.getvalue(), "here")["boxes"].tolist() == features.tolist()
    assert arrays_in(plain.getvalue(), "here")["arr_0"].tolist() == features.tolist()


def test_reading_a_small_file_asks_for_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_bytes(b"[]")
    with memory_of(200 * MIB):
        assert read_bytes(path) == b"[]"


def write_h5(path: Path, fill: Callable[[Any], None]) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        fill(file)
    return path


def _external_storage(file: Any, secret: Path) -> None:
    file.create_dataset("1", (len(SECRET),), dtype="u1", external=[(str(secret), 0, len(SECRET))])


def _external_link(file: Any, secret: Path) -> None:
    import h5py

    file["1"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "/hidden")


def _soft_link_to_an_external_one(file: Any, secret: Path) -> None:
    import h5py

    file["away"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "/")
    file["1"] = h5py.SoftLink("/away/hidden")


def _external_link_in_a_group(file: Any, secret: Path) -> None:
    import h5py

    file.create_group("1")["features"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "/hidden")


def _virtual(file: Any, secret: Path) -> None:
    import h5py

    layout = h5py.VirtualLayout(shape=(4,), dtype="f4")
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "hidden", shape=(4,))
    file.create_virtual_dataset("1", layout)


def _external_ids(file: Any, secret: Path) -> None:
    file.create_dataset("image_ids", (len(SECRET),), dtype="u1", external=[(str(secret), 0, len(SECRET))])
    file["image_features"] = np.ones((len(SECRET), 2), np.float32)


@pytest.mark.parametrize(
    "fill",
    [
        _external_storage,
        _external_link,
        _soft_link_to_an_external_one,
        _external_link_in_a_group,
        _virtual,
        _external_ids,
    ],
)
def test_hdf5_that_points_to_other_files_is_refused(tmp_path: Path, fill: Callable[[Any, Path], None]) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(SECRET)
    write_h5(tmp_path / "secret.h5", lambda file: file.__setitem__("hidden", np.arange(4, dtype=np.float32)))
    path = write_h5(tmp_path / "features.h5", lambda file: fill(file, secret))
    records = open_records(path)
    with pytest.raises(InvalidFile, match="elsewhere"):
        [records.read(one) for one in records.ids()]
    records.close()


def _unfilled(file: Any) -> None:
    file.create_dataset("1", (10**12,), dtype="f4")


def _unfilled_packed(file: Any) -> None:
    file.create_dataset("1", (10**12,), dtype="f4", chunks=(10**6,), compression="gzip")


def _unfilled_ids(file: Any) -> None:
    file.create_dataset("image_ids", (10**11,), dtype="i8", chunks=(10**6,))
    file["image_features"] = np.ones((2, 2), np.float32)


def _names_for_features(file: Any) -> None:
    file["1"] = np.array([b"a", b"b"])


def _groups_in_groups(file: Any) -> None:
    file.create_group("1").create_group("features")["deeper"] = np.ones(2)


@pytest.mark.parametrize(
    "fill",
    [
        _unfilled,
        _unfilled_packed,
        _unfilled_ids,
        _names_for_features,
        _groups_in_groups,
    ],
)
def test_hdf5_that_claims_more_than_it_holds_is_refused(tmp_path: Path, fill: Callable[[Any], None]) -> None:
    records = open_records(write_h5(tmp_path / "features.h5", fill))
    with memory_of(300 * MIB), pytest.raises(InvalidFile):
        [records.read(one) for one in records.ids()]
    records.close()


def test_hdf5_with_stacks_of_fewer_rows_than_ids_is_refused(tmp_path: Path) -> None:
    records = open_records(write_h5(tmp_path / "features.h5", _one_more_id_than_features))
    with pytest.raises(InvalidFile, match="rows"):
        [records.read(one) for one in records.ids()]
    records.close()


def _one_more_id_than_features(file: Any) -> None:
    file["image_ids"] = np.arange(3)
    file["image_features"] = np.ones((2, 4, 5), np.float32)


def test_a_tsv_with_a_line_of_any_length_is_refused_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MOST, "bytes of one image's features", FEW)
    path = tmp_path / "features.tsv"
    with path.open("wb") as file:
        file.write(b"1\t")
        file.truncate(2**33)  # zeros, and no end of the line
    records = open_records(path)
    with memory_of(64 * MIB), pytest.raises(InvalidFile, match="longer"):
        list(records.ids())
    records.close()


@pytest.mark.parametrize("content", [b"", b"not lmdb", bytes(4096), bytes(100_000)])
def test_lmdb_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("lmdb")
    path = tmp_path / "features.lmdb"
    path.write_bytes(content)
    records = open_records(path)
    with pytest.raises(InvalidFile):
        list(records.ids())


def test_lmdb_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    path = tmp_path / "features.lmdb"
    with lmdb.open(str(path), subdir=False, map_size=2**24, lock=False) as made, made.begin(write=True) as writing:
        for number in range(400):
            writing.put(str(number).encode(), bytes(900))
    path.write_bytes(path.read_bytes()[: 3 * 4096])
    records = open_records(path)
    with pytest.raises(InvalidFile, match="cut off"):
        [records.read(one) for one in records.ids()]


def test_hdf5_with_more_text_for_ids_than_is_taken_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(file: Any) -> None:
        file["image_ids"] = ["n" * 1000, "m" * 1000]
        file["image_features"] = np.ones((2, 4, 5), np.float32)

    records = open_records(write_h5(tmp_path / "features.h5", fill))
    assert [len(one) for one in records.ids()] == [1000, 1000]
    records.close()
    monkeypatch.setitem(MOST, "bytes of an index", 1500)
    with pytest.raises(InvalidFile, match="longer than 1,500 bytes"):
        list(open_records(records.path).ids())
