"""Models by name: the one that comes with the package, a folder, or one on the hub.

load()                           saywhere-base, whose writer saw photos with captions, and boxes with their classes
load("saywhere-base:zero-shot")  the same eyes; its writer learnt from text alone
load("saywhere-trace")           the same eye, with a small language model that reads where somebody points
load("exported/mine")            a folder of any family, as `saywhere export` writes it; of a seer, with seer.json,
                                 "exported/mine:NAME" takes another of its writers
load("owner/name")               the hub
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from saywhere.assets.hub import is_repo_id, local_folder
from saywhere.core.errors import UnknownName, require
from saywhere.provenance import sha256_of

if TYPE_CHECKING:
    from saywhere.models.face import Model

BASE = "saywhere-base"
ZERO_SHOT = f"{BASE}:zero-shot"
TRACE = "saywhere-trace"
NAMES = (BASE, ZERO_SHOT, TRACE)
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.md"]


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Where a model is. writer: which of its writers, for a seer; empty for the first."""

    folder: Path
    writer: str = ""


def load(name: str | PathLike[str] = BASE) -> Model:
    """A model by name, folder or hub id, ready to look. What it needs of others is fetched if it is not there."""
    found = find(name)
    require("torch", needed_for=f"the model {str(name)!r}", extra="models")
    from saywhere.models.registry import open_model

    return open_model(found.folder, found.writer)


def find(name: str | PathLike[str] = BASE) -> ModelFolder:
    """Where the model of this name is; one on the hub is fetched."""
    from saywhere.models.registry import embedded

    named = fspath(name)
    if isinstance(name, PathLike) or Path(named).is_dir():
        return ModelFolder(_checked(Path(named)))
    stem, _, writer = named.partition(":") if named.count(":") == 1 else (named, "", "")
    if stem in (BASE, TRACE):
        return ModelFolder(embedded(stem), writer)
    if Path(stem).is_dir():
        return ModelFolder(_checked(Path(stem)), writer)
    if is_repo_id(stem):
        return ModelFolder(_checked(local_folder(stem, _HUB_FILES)), writer)
    raise UnknownName("model", named, NAMES)


def absolute(name: str) -> str:
    """The same model by a name that leads to it from any folder, as workers elsewhere need it.

    >>> absolute("saywhere-base")
    'saywhere-base'
    """
    stem, colon, writer = name.partition(":") if name.count(":") == 1 and not Path(name).is_dir() else (name, "", "")
    return f"{Path(stem).absolute()}{colon}{writer}" if Path(stem).is_dir() else name


def digest(name: str | PathLike[str] = BASE) -> str:
    """Tells the weights and settings of a model from those of any other, also of one in the same folder later on."""
    folder = find(name).folder
    taken = hashlib.sha256()
    for path in sorted(path for pattern in _HUB_FILES for path in folder.rglob(pattern)):
        taken.update(f"{path.relative_to(folder).as_posix()} {sha256_of(path)}\n".encode())
    return taken.hexdigest()[:16]


def needed_assets(name: str | PathLike[str] = BASE, *, texts: bool = True) -> tuple[str, ...]:
    """The names of the assets that a model needs. texts: also for finding texts in photos."""
    from saywhere.assets import listed
    from saywhere.language.embed import MINILM
    from saywhere.models.registry import kind_of
    from saywhere.vision import encoder_parts
    from saywhere.vision.detector import NAME as DETECTOR

    folder = find(name).folder
    kind = kind_of(folder)
    if kind == "tracevlm-small":
        return needed_assets(BASE, texts=False)
    if kind == "patchioner-decoder":
        return needed_assets(BASE, texts=texts)
    if kind == "seer":
        from saywhere.models.patchioner.seer_config import EYE, read_config
        from saywhere.vision.auxiliary import NAME as AUXILIARY
        from saywhere.vision.focus import NAME as TRUNK

        config = read_config(folder)
        wanted = [
            *((TRUNK,) if config.encoder == EYE else encoder_parts(config.encoder)),
            *([DETECTOR] if config.detector else []),
            *([AUXILIARY] if config.auxiliary else []),
            *([MINILM] if texts else []),
        ]
    else:
        from saywhere.models.region_source import RegionSource, read_source

        source = read_source(folder) or RegionSource()
        if source.model:
            from saywhere.models.registry import seer_of

            return needed_assets(seer_of(source.model, folder), texts=False)
        wanted = [*source.encoder_names, *([DETECTOR] if source.has_detector else [])]
    known = {asset.name for asset in listed()}
    return tuple(dict.fromkeys(asset for asset in wanted if asset in known))


def needed_for_masks(name: str | PathLike[str] = BASE) -> tuple[str, ...]:
    """The names of the assets that a model needs besides, to cut things out."""
    from saywhere.assets import MOBILE_SAM
    from saywhere.models.registry import kind_of

    return (MOBILE_SAM,) if kind_of(find(name).folder) in ("seer", "tracevlm-small") else ()


def _checked(folder: Path) -> Path:
    from saywhere.models.registry import kind_of

    kind_of(folder)
    return folder
