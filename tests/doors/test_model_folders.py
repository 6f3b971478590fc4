"""Folders of models from strangers: numbers that the weights do not bear out, and paths that lead elsewhere."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import saywhere
from saywhere.core.errors import InvalidFile, SaywhereError
from saywhere.limits import MOST, check, check_config, inside, read_whole
from saywhere.models.common.network import VocabularyNetwork
from saywhere.models.photo_regions import open_eye
from saywhere.models.region_source import RegionSource
from saywhere.models.registry import known_kinds
from saywhere.store import Store, StoreWriter
from saywhere.vision import open_encoder
from tests.doors.memory import memory_of
from tests.doors.model_folders import FOLDERS, TRACEVLM

GIB = 2**30
WITH_CONFIG = [name for name in FOLDERS if name not in ("seer", "memory")]
OF_EVERY_TYPE: tuple[Any, ...] = (None, True, 0, 1, -1, 0.5, "x", [[1]], {})


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def numbers_of(folder: Path) -> list[str]:
    config = json.loads((folder / "config.json").read_text())["config"]
    return [name for name, value in config.items() if isinstance(value, int) and not isinstance(value, bool)]


@pytest.mark.parametrize("name", WITH_CONFIG)
def test_no_number_of_a_config_makes_a_model_larger_than_its_weights(name: str, tmp_path: Path) -> None:
    FOLDERS[name].save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())["config"]
    with memory_of(GIB):
        for number in numbers_of(tmp_path):
            for value in (10**9, 2**31, 10**30, -1):
                change(tmp_path / "config.json", config=config | {number: value})
                with pytest.raises(SaywhereError):
                    FOLDERS[name].open(tmp_path)


def offered(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The config with a value of every type of JSON at every key, however deep it stands, and without that key."""
    for name, value in config.items():
        yield {key: one for key, one in config.items() if key != name}
        for other in OF_EVERY_TYPE:
            yield config | {name: other}
        if isinstance(value, dict):
            for inner in offered(value):
                yield config | {name: inner}


@pytest.mark.parametrize("name", [*WITH_CONFIG, "seer"])
def test_a_config_with_any_value_is_read_or_refused(name: str, tmp_path: Path) -> None:
    FOLDERS[name].save(tmp_path)
    path = tmp_path / ("seer.json" if name == "seer" else "config.json")
    described = json.loads(path.read_text())
    others = offered(described) if name == "seer" else (described | {"config": c} for c in offered(described["config"]))
    assert_read_or_refused(name, path, others)


def test_a_description_with_any_value_is_read_or_refused(tmp_path: Path) -> None:
    FOLDERS["tags"].save(tmp_path)
    path = tmp_path / "config.json"
    assert_read_or_refused("tags", path, offered(json.loads(path.read_text())))


def assert_read_or_refused(name: str, path: Path, descriptions: Iterator[dict[str, Any]]) -> None:
    for description in descriptions:
        path.write_text(json.dumps(description))
        try:
            FOLDERS[name].open(path.parent)
        except SaywhereError:
            continue
        except Exception as error:
            raise AssertionError(f"{name} with {description}: {error!r}") from error


def kinds_read() -> set[str]:
    """Every kind that some module of the package names when it calls `load_part`."""
    kinds: set[str] = set()
    root = Path(saywhere.__file__).parent
    for path in root.rglob("*.py"):
        if "load_part(" not in (text := path.read_text()):
            continue
        module = import_module(".".join(("saywhere", *path.relative_to(root).with_suffix("").parts)))
        for call in ast.walk(ast.parse(text)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "load_part"):
                continue
            match call.args[1]:
                case ast.Constant(value=kind):
                    kinds.add(str(kind))
                case ast.Name(id=constant):
                    kinds.add(getattr(module, constant))
                case ast.Attribute(attr="kind"):
                    kinds |= {family.kind for family in VocabularyNetwork.__subclasses__()}
    return kinds


def test_every_kind_of_model_folder_is_among_them(tmp_path: Path) -> None:
    kinds = {"tracevlm"}
    for name in WITH_CONFIG:
        FOLDERS[name].save(tmp_path / name)
        kinds.add(json.loads((tmp_path / name / "config.json").read_text())["model"])
    assert kinds == kinds_read()
    assert set(known_kinds()) <= {*kinds, *FOLDERS}


@pytest.mark.parametrize("number", ["mask_width", "blocks", "lora_rank", "expansion", "context"])
def test_no_number_makes_a_tracevlm_larger_than_its_weights(number: str, tmp_path: Path) -> None:
    TRACEVLM.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())["config"]
    change(tmp_path / "config.json", config=config | {number: 2**30})
    with memory_of(2 * GIB), pytest.raises(InvalidFile):
        TRACEVLM.open(tmp_path)


@pytest.mark.parametrize("value", [2**20, 2**22])
def test_a_base_of_transformers_is_no_larger_than_its_weights(value: int, tmp_path: Path) -> None:
    from tests.models.tracevlm.small import base

    shutil.copytree(base(), tmp_path / "base")
    config = json.loads((tmp_path / "base" / "config.json").read_text())
    config["text_config"]["intermediate_size"] = value
    (tmp_path / "base" / "config.json").write_text(json.dumps(config))
    from saywhere.assets.checkpoint import find_checkpoint

    found = find_checkpoint(tmp_path / "base")
    with memory_of(GIB), pytest.raises(InvalidFile, match="numbers"):
        found.load("Qwen2_5_VLForConditionalGeneration", ["qwen2_5_vl"])


@pytest.mark.parametrize(
    "change_to",
    [
        {"draws": 10**9},
        {"beams": 10**9},
        {"no_repeat": 10**9},
        {"input_px": 10**9},
        {"input_px": -1},
        {"temperature": 0},
        {"temperature": -1.0},
        {"writers": {f"w{number}": "decoder" for number in range(1000)}},
        {"levels": [f"l{number}" for number in range(1000)], "level_writer": "decoder"},
    ],
)
def test_counts_of_a_seer_are_capped(change_to: dict[str, Any], tmp_path: Path) -> None:
    FOLDERS["seer"].save(tmp_path)
    change(tmp_path / "seer.json", **change_to)
    with pytest.raises(InvalidFile, match=r"seer\.json"):
        FOLDERS["seer"].open(tmp_path)


@pytest.mark.parametrize("field", ["writers", "answers", "referring", "level_writer"])
def test_every_path_of_a_seer_is_inside_its_folder(field: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "model", tmp_path / "outside"
    FOLDERS["seer"].save(folder)
    FOLDERS["patchioner-decoder"].save(outside)
    (folder / "link").symlink_to(outside)
    for path in (str(outside), "../outside", "decoder/../../outside", "link", "..", "C:\\outside", "a\0b"):
        named: Any = {"a": path} if field == "writers" else path
        levels = {"levels": ["scene"]} if field == "level_writer" else {}
        change(folder / "seer.json", **{field: named}, **levels)
        with pytest.raises(InvalidFile, match="not inside"):
            FOLDERS["seer"].open(folder)


def test_two_hundred_joined_encoders_are_refused_before_one_is_opened() -> None:
    with pytest.raises(InvalidFile, match="200 encoders"):
        open_encoder("+".join(["efficientnet-lite0"] * 200))


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd", ".."])
def test_files_beside_the_weights_are_beside_them(name: str, tmp_path: Path) -> None:
    folder, secret = tmp_path / "model", tmp_path / "secret.txt"
    FOLDERS["mitr"].save(folder)
    secret.write_text("secret")
    config = json.loads((folder / "config.json").read_text())
    config["files"][name] = hashlib.sha256(b"secret").hexdigest()
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidFile):
        FOLDERS["mitr"].open(folder)


def test_a_link_to_a_file_elsewhere_is_refused_but_not_one_of_the_hubs_cache(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "snapshots" / "0123"
    FOLDERS["mitr"].save(folder)
    blobs = tmp_path / "cache" / "blobs"
    blobs.mkdir()
    (folder / "vocabulary.json").rename(blobs / "4567")
    (folder / "vocabulary.json").symlink_to("../../blobs/4567")
    assert FOLDERS["mitr"].open(folder) is not None
    (folder / "vocabulary.json").unlink()
    (blobs / "4567").rename(tmp_path / "elsewhere.json")
    (folder / "vocabulary.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InvalidFile, match="link"):
        FOLDERS["mitr"].open(folder)


@pytest.mark.parametrize("name", ["/", "..", ".", "other", "a/../.."])
def test_regions_come_from_no_model_outside_the_folder_nor_from_itself(name: str, tmp_path: Path) -> None:
    FOLDERS["mitr"].save(tmp_path / "model" / "other")
    with pytest.raises(InvalidFile, match=r"inside|not a seer"):
        open_eye(RegionSource(model=name), tmp_path / "model")


def test_a_region_source_with_odd_keys_is_read(tmp_path: Path) -> None:
    assert RegionSource(encoder={"": "x", "encoder": "a", "1_encoder": "c", "0_encoder": "b"}).encoder_names == [
        "b",
        "c",
        "a",
    ]


def test_a_description_of_any_size_is_not_read_whole(tmp_path: Path) -> None:
    FOLDERS["mitr"].save(tmp_path)
    with (tmp_path / "config.json").open("r+b") as file:
        file.truncate(2**36)
    with memory_of(GIB // 2), pytest.raises(InvalidFile, match="bytes of a description"):
        FOLDERS["mitr"].open(tmp_path)


def test_a_store_names_no_shard_outside_its_folder(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "a", "words", {"text": "json"}, {}) as writer:
        writer.add("1", text="hello")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    index = json.loads((tmp_path / "b" / "index.json").read_text())
    index["shards"][0]["file"] = f"../a/{index['shards'][0]['file']}"
    (tmp_path / "b" / "index.json").write_text(json.dumps(index))
    with pytest.raises(InvalidFile, match="not inside"):
        Store(tmp_path / "b")


def test_the_table_is_held_to_everywhere() -> None:
    for what, most in MOST.items():
        assert check(what, most, "here") == most
        with pytest.raises(InvalidFile, match=f"{most:,}"):
            check(what, most + 1, "here")


def test_numbers_are_found_however_deep_they_stand() -> None:
    check_config({"width": 10_000, "list": [1, {"layers": 512}], "text": "x" * 9999, "yes": True}, "here", 5000)
    for bad in ({"a": {"b": {"width": 10_001}}}, {"a": [{"layers": 513}]}, {"sizes": [1, 10**9]}, {"width": -(10**9)}):
        with pytest.raises(InvalidFile):
            check_config(bad, "here", 5000)


def test_what_is_inside_is_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.json").write_bytes(b"{}")
    assert read_whole(inside(tmp_path, "a/b.json")) == b"{}"
    with pytest.raises(InvalidFile, match="cannot be opened"):
        read_whole(inside(tmp_path, "a/c.json"))


@pytest.mark.parametrize("names", [[["cat"], "dog", "cup"], "cat", 3])
def test_names_of_things_that_are_no_texts_are_refused(names: Any, tmp_path: Path) -> None:
    FOLDERS["tags"].save(tmp_path)
    change(tmp_path / "config.json", config={"names": names})
    with pytest.raises(InvalidFile, match="names"):
        FOLDERS["tags"].open(tmp_path)
