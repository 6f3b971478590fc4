"""Checkpoints in the form of the transformers library: a folder, or a name on the hub. Only safetensors are read."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saywhere import limits
from saywhere.assets.hub import local_folder
from saywhere.core.errors import InvalidFile, require
from saywhere.provenance import sha256_of

if TYPE_CHECKING:
    from torch import Tensor

CONFIG, PREPROCESSOR, TOKENIZER = "config.json", "preprocessor_config.json", "tokenizer.json"
_FILES = [CONFIG, PREPROCESSOR, TOKENIZER, "model*.safetensors", "model.safetensors.index.json"]


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
                "holds no *.safetensors, and nothing pickled is ever loaded",
                "many checkpoints have them under another revision, such as refs/pr/1; or convert them",
            )
        return found

    def sha256(self, *others: str) -> str:
        """Of config, the other files named here, and weights: equal means the same network."""
        digest = hashlib.sha256()
        for path in (self.folder / CONFIG, *(self.folder / name for name in others), *self.weights()):
            digest.update(bytes.fromhex(sha256_of(path)))
        return digest.hexdigest()

    def load(self, kind: str, model_types: Sequence[str], dtype: str = "float32", /, **options: bool) -> Any:
        """The network of this class of transformers: in eval mode, without gradients. dtype: of its parameters."""
        if self.model_type not in model_types:
            known = " or ".join(repr(name) for name in model_types)
            raise InvalidFile(self.folder, f"holds a {self.model_type!r}, not {known}", "is the prefix the right one?")
        transformers = require("transformers", needed_for=f"the encoder {self.source!r}", extra="models")
        from safetensors import SafetensorError

        self._check_size(getattr(transformers, kind))
        try:
            with _quiet():
                network, info = getattr(transformers, kind).from_pretrained(
                    self.folder,
                    local_files_only=True,
                    use_safetensors=True,
                    output_loading_info=True,
                    dtype=dtype,
                    **options,
                )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise InvalidFile(self.folder, f"cannot be read as {kind}: {error}") from error
        # Transformers would fill what is missing with random numbers, and say so only in a log.
        if missing := sorted(info["missing_keys"]):
            raise InvalidFile(self.folder, f"lacks {len(missing)} tensors of {kind}, first {missing[0]!r}")
        return network.eval().requires_grad_(False)

    def _check_size(self, kind: Any) -> None:
        """Refuse a config that describes a larger network than the weights are, before anything is allocated."""
        import torch

        limits.check_config(self.config, self.folder / CONFIG)
        held = sum(tensor.numel() for path in self.weights() for tensor in read_tensors(path).values())
        try:
            with _quiet(), torch.device("meta"):
                described = kind._from_config(kind.config_class.from_pretrained(self.folder))
        # A config may be wrong in any way, and transformers finds each at another place.
        except Exception as error:
            reason = f"does not describe a {kind.__name__}: {_first_line(error)}"
            raise InvalidFile(self.folder / CONFIG, reason) from error
        wanted = sum(parameter.numel() for parameter in described.parameters())
        # One matrix may stand in two places.
        if wanted > 2 * held:
            reason = f"describes a network of {wanted:,} numbers, but its weights are {held:,}"
            raise InvalidFile(self.folder / CONFIG, reason)


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A model that another one was made from: named, not copied.

    source: a folder, or "owner/name" on the hub. sha256: of its config and weights, as `Checkpoint.sha256` gives it.
    """

    source: str
    sha256: str
    revision: str | None = None

    @classmethod
    def of(cls, source: str | Path, revision: str | None = None) -> BaseModel:
        """The reference to a model that is at hand, or fetched now."""
        return cls(str(source), find_checkpoint(source, revision).sha256(), revision)

    def open(self, beside: str | Path = ".") -> Checkpoint:
        """The model itself, if it is still the same. beside: what a source like "../base" starts from."""
        folder = Path(beside) / self.source
        found = find_checkpoint(folder if folder.is_dir() else self.source, self.revision)
        if (sha256 := found.sha256()) != self.sha256:
            reason = f"is not the base that this model was made from: SHA-256 {sha256}, not {self.sha256}"
            raise InvalidFile(found.folder, reason, "bring the model as it was, or name its revision")
        return found


def find_checkpoint(source: str | Path, revision: str | None = None) -> Checkpoint:
    """A checkpoint in a folder, or on the hub as "owner/name", from where it is fetched once."""
    folder = local_folder(source, _FILES, revision)
    return Checkpoint(folder, str(source), read_json(folder / CONFIG))


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        found = json.loads(limits.read_whole(path), parse_constant=_no_constant)
    except InvalidFile:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidFile(path, f"is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidFile(path, "is not a JSON object")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, as they were stored and mapped into memory, not copied."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise InvalidFile(path, f"cannot be read as safetensors: {error}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No bars, and no word on tensors that a part of a network leaves unread. What is missing is checked by us."""
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
