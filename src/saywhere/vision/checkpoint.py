"""Checkpoints in the form of the transformers library: a folder, or a name on the hub. Only safetensors are read."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saywhere.assets import AssetUnavailable
from saywhere.core.errors import InvalidFile, InvalidValue, require

CONFIG, PREPROCESSOR = "config.json", "preprocessor_config.json"
_FILES = [CONFIG, PREPROCESSOR, "model*.safetensors", "model.safetensors.index.json"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with config.json and weights. source: as it was asked for. config: what config.json says."""

    folder: Path
    source: str
    config: dict[str, Any]

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))

    def weights(self) -> list[Path]:
        found = sorted(self.folder.glob("*.safetensors"))
        if not found:
            raise InvalidFile(
                self.folder,
                "holds no safetensors, and nothing pickled is ever loaded",
                "many checkpoints have them under another revision, such as refs/pr/1; or convert them",
            )
        return found

    def sha256(self) -> str:
        """Of config and weights: equal means the same network."""
        digest = hashlib.sha256()
        for path in (self.folder / CONFIG, *self.weights()):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def load(self, kind: str, model_types: Sequence[str], **options: bool) -> Any:
        """The network of this class of transformers: in eval mode, single precision, without gradients."""
        if self.model_type not in model_types:
            known = " or ".join(repr(name) for name in model_types)
            raise InvalidFile(self.folder, f"holds a {self.model_type!r}, not {known}", "is the prefix the right one?")
        self.weights()
        transformers = require("transformers", needed_for=f"the encoder {self.source!r}", extra="models")
        from safetensors import SafetensorError

        try:
            with _quiet():
                network, info = getattr(transformers, kind).from_pretrained(
                    self.folder, local_files_only=True, use_safetensors=True, output_loading_info=True, **options
                )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise InvalidFile(self.folder, f"cannot be read as {kind}: {error}") from error
        # Transformers would fill what is missing with random numbers, and say so only in a log.
        if missing := sorted(info["missing_keys"]):
            raise InvalidFile(self.folder, f"lacks {len(missing)} tensors of {kind}, first {missing[0]!r}")
        return network.float().eval().requires_grad_(False)


def find_checkpoint(source: str, revision: str | None = None) -> Checkpoint:
    """A checkpoint in a folder, or on the hub as "owner/name", from where it is fetched once."""
    folder = Path(source).expanduser()
    if not folder.is_dir():
        folder = _fetched(source, revision)
    elif revision is not None:
        raise InvalidValue("revision", f"is {revision!r}, but {source} is a folder", "only the hub has revisions")
    return Checkpoint(folder, source, read_json(folder / CONFIG))


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidFile(path, f"is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidFile(path, "is not a JSON object")
    return found


def _fetched(source: str, revision: str | None) -> Path:
    if source.count("/") != 1 or source.startswith((".", "/", "~")):
        raise InvalidFile(source, "is no folder, nor the name of a checkpoint on the hub", "owner/name")
    hub = require("huggingface_hub", needed_for="fetching a checkpoint from the hub", extra="models")
    try:
        return Path(hub.snapshot_download(source, revision=revision, allow_patterns=_FILES))
    except (OSError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        how = (
            f"connect to the network once (HF_HUB_OFFLINE unset), or bring the folder that `hf download {source}` "
            "makes and name it instead"
        )
        raise AssetUnavailable(source, f"is no folder here, and the hub does not give it: {reason}", how) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No bars, and no word on tensors that a part of a network leaves unread."""
    spoken = require("transformers.utils.logging", needed_for="reading a checkpoint", extra="models")
    level, bars = spoken.get_verbosity(), spoken.is_progress_bar_enabled()
    spoken.set_verbosity(logging.ERROR)
    spoken.disable_progress_bar()
    try:
        yield
    finally:
        spoken.set_verbosity(level)
        if bars:
            spoken.enable_progress_bar()
