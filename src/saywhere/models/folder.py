"""Trained parts in folders, or on the hub: weights, what shape they have, and a file or two beside them.

model.safetensors   every parameter, in the type it was saved with: float32 or, to take half the room, float16; of
                    matrices, to take a quarter, int8 with a step for each row, under the name with ".step"
config.json         kind, shapes, the SHA-256 of every file beside it, and where it has one, the base that it was made
                    from; written last, so that a torn save shows
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from saywhere import limits
from saywhere.assets.checkpoint import CONFIG, BaseModel, read_json, read_tensors
from saywhere.assets.hub import local_folder
from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, require
from saywhere.provenance import sha256_of

WEIGHTS = "model.safetensors"
SOURCE = "regions.json"
"""Where the regions came from that a network learnt from; see `region_source`."""
_FORMAT = 1
_STEP = ".step"
_LARGEST_BYTE, _SMALLEST_STEP = 127, 1e-12
_KEYS = {"model", "format", "config", "files"}
_HUB_FILES = ("*.json", "*.safetensors", "*.txt")
_DRAWING = (Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)
_Module = TypeVar("_Module", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class SavedPart:
    """What a folder holds.

    config: plain values. stored: the tensors as they are in the file, mapped into memory. files: the others, by name.
    base: the model that holds the parameters which are not stored here, if there is one.
    """

    folder: Path
    config: dict[str, Any]
    stored: dict[str, Tensor]
    files: dict[str, bytes]
    base: BaseModel | None = None

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What is stored, as float32. What is float32 in the file is not copied."""
        return {name: tensor.float() for name, tensor in self.stored.items()}


def save_part(
    folder: str | Path,
    kind: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    files: Mapping[str, bytes] | None = None,
    *,
    half: bool = False,
    int8: bool = False,
    base: BaseModel | None = None,
) -> None:
    """Write a part's files; each appears whole or not at all.

    half: store float16. int8: store matrices in a byte a number, and the rest as float16. base: holds the parameters
    that are not among the tensors.
    """
    target = Path(folder)
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        stored |= _in_bytes(name, tensor) if int8 and tensor.ndim > 1 else {name: _stored(tensor, half or int8)}
    contents = {WEIGHTS: save_tensors(stored), **(files or {})}
    description = {
        "model": kind,
        "format": _FORMAT,
        "config": dict(config),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    if base is not None:
        description["base"] = asdict(base)
    contents[CONFIG] = json.dumps(description, indent=2).encode()
    for name, content in contents.items():
        with write_atomic(target / name) as file:
            file.write(content)


def load_part(source: str | Path, kind: str, revision: str | None = None) -> SavedPart:
    """A part from a folder, or from the hub if there is no such folder and the source is "owner/name"."""
    folder = local_folder(source, _HUB_FILES, revision)
    description = _description(folder / CONFIG, kind)
    paths = {name: limits.inside(folder, name) for name in description["files"]}
    for name, digest in description["files"].items():
        if _digest(paths[name]) != digest:
            raise InvalidFile(paths[name], f"is not the file that {CONFIG} was written for", "was the save cut off?")
    files = {name: limits.read_whole(path) for name, path in paths.items() if name != WEIGHTS}
    stored = _out_of_bytes(folder, read_tensors(paths[WEIGHTS]))
    largest = max((side for tensor in stored.values() for side in tensor.shape), default=0)
    limits.check_config(description["config"], folder / CONFIG, largest)
    return SavedPart(folder, description["config"], stored, files, description["base"])


def built(make: Callable[[], _Module], part: SavedPart) -> _Module:
    """The module that `make` makes, with a part's tensors; it must have exactly these, and with a base at least these.

    It is first made without memory: numbers in a config that the file does not bear out allocate nothing.
    """
    if part.base is None:
        with _Undrawn(without_memory=True):
            _check_fit(make(), part)
        with _Undrawn():
            module = make()
    else:
        module = make()
    _check_fit(module, part)
    module.load_state_dict(part.stored, strict=part.base is None)
    return module


class _Undrawn(TorchFunctionMode):
    """Leaves out first values, which those of the file replace. without_memory: parameters get none.

    Not all of it happens on torch's "meta" device: arithmetic there makes torch import its compiler, for seconds.
    """

    def __init__(self, *, without_memory: bool = False) -> None:
        super().__init__()
        self._without_memory = without_memory

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in _DRAWING:
            return args[0] if args else given["tensor"]
        if func is torch.empty and self._without_memory:
            given = given | {"device": "meta"}
        return func(*args, **given)


def _check_fit(module: nn.Module, part: SavedPart) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    shapes = {name: tuple(tensor.shape) for name, tensor in part.stored.items()}
    if not (shapes == expected if part.base is None else shapes.items() <= expected.items()):
        raise InvalidFile(part.folder / WEIGHTS, f"does not hold the parameters that {CONFIG} describes")


def push_part(folder: str | Path, repo_id: str, *, private: bool = True, api: Any = None) -> None:
    """Upload a saved part to the hub as `repo_id`. api: an `HfApi`, by default a new one."""
    hub = api or require("huggingface_hub", needed_for="uploading a model", extra="models").HfApi()
    names = sorted(read_json(Path(folder) / CONFIG)["files"])
    names += [SOURCE] if (Path(folder) / SOURCE).exists() else []
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


def _in_bytes(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """A matrix as int8, and the step of each of its rows."""
    kept = tensor.detach().cpu().float()
    step = kept.flatten(1).abs().amax(dim=1).clamp(min=_SMALLEST_STEP) / _LARGEST_BYTE
    rounded = (kept / step.view(-1, *[1] * (kept.ndim - 1))).round().to(torch.int8)
    return {name: rounded.contiguous(), name + _STEP: step}


def _out_of_bytes(folder: Path, stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices that were stored as int8 as float32 again."""
    steps = {name.removesuffix(_STEP): step for name, step in stored.items() if name.endswith(_STEP)}
    if absent := steps.keys() - stored.keys():
        raise InvalidFile(folder / WEIGHTS, f"holds the steps of {min(absent)!r}, but not the numbers")
    whole = {name: tensor for name, tensor in stored.items() if not name.endswith(_STEP)}
    for name, step in steps.items():
        if not stored[name].ndim or step.shape != stored[name].shape[:1]:
            raise InvalidFile(folder / WEIGHTS, f"has not one step for each row of {name!r}")
        whole[name] = stored[name].float() * step.view(-1, *[1] * (stored[name].ndim - 1))
    return whole


def _description(path: Path, kind: str) -> dict[str, Any]:
    found = read_json(path)
    if not _KEYS <= set(found) <= {*_KEYS, "base"} or not isinstance(found["config"], dict):
        raise InvalidFile(path, f"is not an object with the keys {', '.join(sorted(_KEYS))}")
    if (found["model"], found["format"]) != (kind, _FORMAT):
        reason = f"describes {found['model']!r} format {found['format']!r}; this reads {kind!r} format {_FORMAT}"
        raise InvalidFile(path, reason)
    files = found["files"]
    if not isinstance(files, dict) or WEIGHTS not in files or any(Path(name).name != name for name in files):
        raise InvalidFile(path, f"does not list {WEIGHTS} and the files beside it")
    try:
        return found | {"base": BaseModel(**found["base"]) if "base" in found else None}
    except TypeError as error:
        raise InvalidFile(path, f"does not name its base by source and sha256: {error}") from error


def _digest(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
