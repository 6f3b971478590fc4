"""Trained parts in folders, or on the hub: weights, what shape they have, and a file or two beside them.

model.safetensors   every parameter, as float32 or, to take half the room, float16
config.json         kind, shapes, and the SHA-256 of every file beside it; written last, so that a torn save shows
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, require

WEIGHTS, CONFIG = "model.safetensors", "config.json"
_FORMAT = 1
_KEYS = {"model", "format", "config", "files"}


@dataclass(frozen=True, slots=True)
class Part:
    """What a folder holds. config: plain values. tensors: float32. files: the others, by name."""

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    files: dict[str, bytes]


def save_part(
    folder: str | Path,
    kind: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    files: Mapping[str, bytes] | None = None,
    *,
    half: bool = False,
) -> None:
    """Write a part's files; each appears whole or not at all. half: store float16, which loads as float32."""
    target = Path(folder)
    stored = {name: _stored(tensor, half) for name, tensor in tensors.items()}
    contents = {WEIGHTS: save_tensors(stored), **(files or {})}
    description = {
        "model": kind,
        "format": _FORMAT,
        "config": dict(config),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    contents[CONFIG] = json.dumps(description, indent=2).encode()
    for name, content in contents.items():
        with write_atomic(target / name) as file:
            file.write(content)


def load_part(source: str | Path, kind: str, revision: str | None = None) -> Part:
    """A part from a folder, or from the hub if there is no such folder and the source is "owner/name"."""
    folder = Path(source)
    if not folder.is_dir():
        folder = _fetched(str(source), revision)
    description = _description(folder / CONFIG, kind)
    contents = {}
    for name, digest in description["files"].items():
        contents[name] = _bytes(folder / name)
        if hashlib.sha256(contents[name]).hexdigest() != digest:
            raise InvalidFile(folder / name, f"is not the file that {CONFIG} was written for", "was the save cut off?")
    try:
        tensors = load_tensors(contents.pop(WEIGHTS))
    except SafetensorError as error:
        raise InvalidFile(folder / WEIGHTS, f"cannot be read: {error}") from error
    return Part(folder, description["config"], {name: t.float() for name, t in tensors.items()}, contents)


def fit(module: nn.Module, part: Part) -> None:
    """Put a part's tensors into a module that must have exactly these."""
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    if {name: tuple(tensor.shape) for name, tensor in part.tensors.items()} != expected:
        raise InvalidFile(part.folder / WEIGHTS, f"does not hold the parameters that {CONFIG} describes")
    module.load_state_dict(part.tensors)


def push_part(folder: str | Path, repo_id: str, *, private: bool = True, api: Any = None) -> None:
    """Upload a saved part to the hub as `repo_id`. api: an `HfApi`, by default a new one."""
    hub = api or require("huggingface_hub", needed_for="uploading a model", extra="models").HfApi()
    names = sorted(json.loads(_bytes(Path(folder) / CONFIG))["files"])
    hub.create_repo(repo_id, private=private, exist_ok=True)
    hub.upload_folder(repo_id=repo_id, folder_path=str(folder), allow_patterns=[*names, CONFIG])


def _stored(tensor: Tensor, half: bool) -> Tensor:
    kept = tensor.detach().cpu().contiguous()
    if not half:
        return kept
    small = kept.to(torch.float16)
    if bool(small.isinf().any()):
        raise InvalidFile(WEIGHTS, "a weight is beyond the range of float16", "store it with half=False")
    return small


def _fetched(repo_id: str, revision: str | None) -> Path:
    if repo_id.count("/") != 1 or repo_id.startswith((".", "/", "~")):
        raise InvalidFile(repo_id, "is no folder, nor the name of a model on the hub", "owner/name")
    hub = require("huggingface_hub", needed_for="fetching a model from the hub", extra="models")
    patterns = ["*.json", "*.safetensors", "*.txt"]
    try:
        return Path(hub.snapshot_download(repo_id, revision=revision, allow_patterns=patterns))
    except (OSError, ValueError) as error:
        raise InvalidFile(repo_id, f"is no folder here, and the hub does not give it: {error}") from error


def _description(path: Path, kind: str) -> dict[str, Any]:
    try:
        found = json.loads(_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InvalidFile(path, f"is not JSON: {error}") from error
    if not isinstance(found, dict) or set(found) != _KEYS or not isinstance(found["config"], dict):
        raise InvalidFile(path, f"is not an object with the keys {', '.join(sorted(_KEYS))}")
    if (found["model"], found["format"]) != (kind, _FORMAT):
        reason = f"describes {found['model']!r} format {found['format']!r}; this reads {kind!r} format {_FORMAT}"
        raise InvalidFile(path, reason)
    files = found["files"]
    if not isinstance(files, dict) or WEIGHTS not in files or any(Path(name).name != name for name in files):
        raise InvalidFile(path, f"does not list {WEIGHTS} and the files beside it")
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
