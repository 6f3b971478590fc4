"""Weights, config and vocabulary in a folder, or on the hub.

model.safetensors   every parameter
vocabulary.json     what the word ids mean, if the model has a vocabulary
config.json         shapes, and the SHA-256 of the two files beside it; written last, so that a torn save shows
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName, require
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr.config import MitrConfig
from saywhere.models.mitr.network import MITR

WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "vocabulary.json", "config.json"
_KIND, _FORMAT = "mitr", 1


def save(model: MITR, folder: str | Path) -> None:
    """Write the model's files; each appears whole or not at all."""
    target = Path(folder)
    weights = save_tensors({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
    description: dict[str, object] = {
        "model": _KIND,
        "format": _FORMAT,
        "config": model.config.to_dict(),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "vocabulary_sha256": None if model.vocabulary is None else model.vocabulary.fingerprint,
    }
    _write(target / WEIGHTS, weights)
    if model.vocabulary is not None:
        _write(target / VOCABULARY, model.vocabulary.to_json().encode())
    else:
        (target / VOCABULARY).unlink(missing_ok=True)
    _write(target / CONFIG, json.dumps(description, indent=2).encode())


def load(source: str | Path, revision: str | None = None) -> MITR:
    """A model from a folder, or from the hub if there is no such folder and the source is "owner/name"."""
    folder = Path(source)
    if not folder.is_dir():
        folder = _fetched(str(source), revision)
    description = _description(folder / CONFIG)
    weights = _bytes(folder / WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != description["weights_sha256"]:
        raise InvalidFile(folder / WEIGHTS, f"is not the file that {CONFIG} was written for", "was the save cut off?")
    model = MITR(description["config"])
    try:
        tensors = load_tensors(weights)
    except SafetensorError as error:
        raise InvalidFile(folder / WEIGHTS, f"cannot be read: {error}") from error
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != expected:
        raise InvalidFile(folder / WEIGHTS, f"does not hold the parameters that {CONFIG} describes")
    model.load_state_dict(tensors)
    if description["vocabulary_sha256"] is not None:
        _attach(model, folder / VOCABULARY, description["vocabulary_sha256"])
    return model.eval()


def push(model: MITR, repo_id: str, folder: str | Path, *, private: bool = True, api: Any = None) -> None:
    """Save the model into a folder and upload it to the hub as `repo_id`. api: an `HfApi`, by default a new one."""
    hub = api or require("huggingface_hub", needed_for="uploading a model", extra="models").HfApi()
    save(model, folder)
    hub.create_repo(repo_id, private=private, exist_ok=True)
    hub.upload_folder(repo_id=repo_id, folder_path=str(folder), allow_patterns=[WEIGHTS, VOCABULARY, CONFIG])


def _attach(model: MITR, path: Path, fingerprint: str) -> None:
    vocabulary = Vocabulary.load(path)
    if vocabulary.fingerprint != fingerprint:
        reason = f"is not the vocabulary that the model was saved with ({len(vocabulary):,} pieces)"
        raise InvalidFile(path, reason, "its ids mean other words")
    try:
        model.attach(vocabulary)
    except InvalidValue as error:
        raise InvalidFile(path, str(error)) from error


def _fetched(repo_id: str, revision: str | None) -> Path:
    if repo_id.count("/") != 1 or repo_id.startswith((".", "/", "~")):
        raise InvalidFile(repo_id, "is no folder, nor the name of a model on the hub", "owner/name")
    hub = require("huggingface_hub", needed_for="fetching a model from the hub", extra="models")
    try:
        return Path(hub.snapshot_download(repo_id, revision=revision, allow_patterns=[WEIGHTS, VOCABULARY, CONFIG]))
    except (OSError, ValueError) as error:
        raise InvalidFile(repo_id, f"is no folder here, and the hub does not give it: {error}") from error


def _description(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InvalidFile(path, f"is not JSON: {error}") from error
    keys = {"model", "format", "config", "weights_sha256", "vocabulary_sha256"}
    if not isinstance(found, dict) or set(found) != keys or not isinstance(found["config"], dict):
        raise InvalidFile(path, f"is not an object with the keys {', '.join(sorted(keys))}")
    if (found["model"], found["format"]) != (_KIND, _FORMAT):
        reason = f"describes {found['model']!r} format {found['format']!r}; this reads {_KIND!r} format {_FORMAT}"
        raise InvalidFile(path, reason)
    try:
        return found | {"config": MitrConfig.from_dict(found["config"])}
    except (InvalidValue, UnknownName) as error:
        raise InvalidFile(path, str(error)) from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error


def _write(path: Path, content: bytes) -> None:
    with write_atomic(path) as file:
        file.write(content)
