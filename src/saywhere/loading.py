"""Models by name: the one that comes with the package, a folder, or one on the hub.

load()                           saywhere-base, whose writer saw photos with captions, and boxes with their classes
load("saywhere-base:zero-shot")  the same eyes; its writer learnt from text alone
load("runs/mine")                a folder with seer.json;  "runs/mine:NAME" takes another of its writers
load("owner/name")               the hub
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from saywhere.assets.hub import is_repo_id, local_folder
from saywhere.core.errors import InvalidFile, UnknownName, require

if TYPE_CHECKING:
    from saywhere.models.patchioner.seer import Seer

BASE = "saywhere-base"
ZERO_SHOT = f"{BASE}:zero-shot"
NAMES = (BASE, ZERO_SHOT)
_SEER = "seer.json"
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.md"]


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Where a model is. folder: with seer.json. writer: which of its writers; empty for the first."""

    folder: Path
    writer: str = ""


def load(name: str | PathLike[str] = BASE) -> Seer:
    """A model by name, folder or hub id, ready to look. What it needs of others is fetched if it is not there."""
    found = find(name)
    require("torch", needed_for=f"the model {str(name)!r}", extra="models")
    from saywhere.models.patchioner.seer import open_seer

    return open_seer(found.folder, found.writer)


def find(name: str | PathLike[str] = BASE) -> ModelFolder:
    """Where the model of this name is; one on the hub is fetched."""
    named = fspath(name)
    if isinstance(name, PathLike) or Path(named).is_dir():
        return ModelFolder(_checked(Path(named)))
    stem, _, writer = named.partition(":") if named.count(":") == 1 else (named, "", "")
    if stem == BASE:
        return ModelFolder(_embedded(), writer)
    if Path(stem).is_dir():
        return ModelFolder(_checked(Path(stem)), writer)
    if is_repo_id(stem):
        return ModelFolder(_checked(local_folder(stem, _HUB_FILES)), writer)
    raise UnknownName("model", named, NAMES)


def needed_assets(name: str | PathLike[str] = BASE, *, texts: bool = True) -> tuple[str, ...]:
    """The names of the assets that a model needs. texts: also for finding texts in photos."""
    from saywhere.assets import listed
    from saywhere.language.embed import MINILM
    from saywhere.models.patchioner.seer import read_config
    from saywhere.vision import encoder_parts
    from saywhere.vision.detector import NAME as DETECTOR

    config = read_config(find(name).folder)
    wanted = [*encoder_parts(config.encoder), *([DETECTOR] if config.detector else []), *([MINILM] if texts else [])]
    known = {asset.name for asset in listed()}
    return tuple(dict.fromkeys(asset for asset in wanted if asset in known))


def _embedded() -> Path:
    folder = Path(str(files("saywhere.models") / "base"))
    if not (folder / _SEER).is_file():
        raise InvalidFile(
            folder,
            f"the weights of {BASE} did not come with this copy of saywhere",
            "install a release, or name another model: a folder or owner/name on the hub",
        )
    return folder


def _checked(folder: Path) -> Path:
    if not (folder / _SEER).is_file():
        raise InvalidFile(folder, f"is not a model: there is no {_SEER} in it")
    return folder
