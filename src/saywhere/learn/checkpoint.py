"""Checkpoints: a folder each, that appears whole or not at all, and is believed only if every byte is as written.

step-00000040/
    model.safetensors       the weights
    ema.safetensors         their moving average, if the recipe asks for one
    optimizer.safetensors   its state, tensors named "parameter:key"
    optimizer.json          its kind, parameters and settings
    trainer.json            step, best metric, recipe, versions, data fingerprint
    manifest.json           size and SHA-256 of each of these, written last

Processes that hold a piece of the weights each may write them so: model-0-of-2.safetensors, model-1-of-2.safetensors
(and the optimizer's) are pieces along the first axis of every tensor. Whoever reads them puts them together.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from saywhere.core.errors import InvalidFile
from saywhere.provenance import sha256_of

MANIFEST = "manifest.json"
_NEEDED = ("model.safetensors", "optimizer.safetensors", "optimizer.json", "trainer.json")
_NAME = re.compile(r"step-(\d{8,})")
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a run needs to go on. trainer, optimizer_about: plain JSON values."""

    model: Mapping[str, Tensor]
    ema: Mapping[str, Tensor] | None
    optimizer: Mapping[str, Tensor]
    optimizer_about: Mapping[str, Any]
    trainer: Mapping[str, Any]

    @property
    def frozen_sha256(self) -> str | None:
        """Of the frozen parameters, if they were left out."""
        return self.trainer.get("frozen_sha256")

    @property
    def eval_weights(self) -> Mapping[str, Tensor]:
        """Those to validate and to ship: the moving average if there is one."""
        return self.ema if self.ema is not None else self.model


def save_checkpoint(folder: Path, step: int, snapshot: Snapshot) -> Path:
    """Write a checkpoint whole; if that fails nothing has changed, and InvalidFile says why."""
    target = folder / f"step-{step:08d}"
    part, replaced = (folder / f".{target.name}.{os.getpid()}.{kind}.part" for kind in ("new", "old"))
    try:
        part.mkdir(parents=True)
        _write_files(part, snapshot)
        if target.exists():
            target.rename(replaced)
        part.rename(target)
        _sync(folder)
    except (OSError, SafetensorError) as error:
        raise InvalidFile(target, f"the checkpoint cannot be written: {error}", "older ones are kept") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)
    return target


def _write_files(part: Path, snapshot: Snapshot) -> None:
    tensors = {"model": snapshot.model, "optimizer": snapshot.optimizer}
    if snapshot.ema is not None:
        tensors["ema"] = snapshot.ema
    for name, named in tensors.items():
        write_tensors(part / f"{name}.safetensors", named)
    write_about(part, snapshot)


def write_tensors(path: Path, named: Mapping[str, Tensor]) -> None:
    """One file of a checkpoint."""
    save_file(_without_shared_memory(named), path)


def write_about(part: Path, snapshot: Snapshot) -> None:
    """What is not tensors, and last of all the manifest of all files that are there."""
    for name, value in {"optimizer": snapshot.optimizer_about, "trainer": snapshot.trainer}.items():
        (part / f"{name}.json").write_text(json.dumps(value, indent=1), encoding="utf-8")
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in sorted(part.iterdir())}
    for name in files:
        _sync(part / name)
    (part / MANIFEST).write_text(json.dumps({"format": 1, "files": files}, indent=1), encoding="utf-8")
    _sync(part / MANIFEST)
    _sync(part)


def _without_shared_memory(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU tensors that share no memory, as safetensors wants them; a tied weight is written twice."""
    seen: set[int] = set()
    separate = {}
    for name, tensor in named.items():
        on_cpu = tensor.detach().cpu().contiguous()
        address = on_cpu.untyped_storage().data_ptr()
        separate[name] = on_cpu.clone() if address in seen else on_cpu
        seen.add(address)
    return separate


def _sync(path: Path) -> None:
    """Have a file's content or a folder's names on the disk before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_in_place(part: Path, target: Path) -> None:
    """Let a finished checkpoint appear under its name, instead of another that may be there."""
    replaced = part.with_name(f"{part.name}.old.part")
    if target.exists():
        target.rename(replaced)
    part.rename(target)
    _sync(target.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def pieces_of(names: Sequence[str], present: Collection[str]) -> list[str]:
    """Names of files, each replaced by those of its pieces if processes wrote one each.

    >>> pieces_of(["model.safetensors", "trainer.json"], ["model-1-of-2.safetensors", "trainer.json"])
    ['model-0-of-2.safetensors', 'model-1-of-2.safetensors', 'trainer.json']
    """
    found = []
    for name in names:
        stem, _, ending = name.partition(".")
        counts = {
            int(one[1]) for one in (re.fullmatch(rf"{stem}-\d+-of-(\d+)\.{ending}", two) for two in present) if one
        }
        size = max(counts, default=0)
        found += [f"{stem}-{rank}-of-{size}.{ending}" for rank in range(size)] or [name]
    return found


def read_pieces(path: Path, stem: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint, put together if processes wrote a piece each."""
    files = pieces_of([f"{stem}.safetensors"], [one.name for one in path.iterdir()])
    parts = [load_file(path / name) for name in files]
    # What only the first wrote is not spread over the processes.
    return {
        name: torch.cat([part[name] for part in parts]) if len(parts) > 1 and name in parts[1] else tensor
        for name, tensor in parts[0].items()
    }


def step_of(path: Path) -> int:
    """The step after which a checkpoint was made, told by its folder's name."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise InvalidFile(path, "is not the folder of a checkpoint (step-00000040)")
    return int(match[1])


def list_checkpoints(folder: Path) -> list[Path]:
    """All that claim to be checkpoints, oldest first, whether intact or not."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if path.is_dir() and _NAME.fullmatch(path.name)), key=step_of)


def verify_checkpoint(path: Path) -> None:
    """Raise InvalidFile unless every file is there with the size and SHA-256 of the manifest."""
    try:
        files = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["files"]
        expected = {str(name): (int(entry["bytes"]), str(entry["sha256"])) for name, entry in files.items()}
    except FileNotFoundError as error:
        raise InvalidFile(path, f"the checkpoint has no {MANIFEST}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidFile(path, f"the checkpoint's {MANIFEST} is damaged: {error}") from error
    for name in sorted({*expected, *pieces_of(_NEEDED, expected)}):
        if name not in expected or not (path / name).is_file():
            raise InvalidFile(path, f"the checkpoint has no {name}")
        size, digest = expected[name]
        if (path / name).stat().st_size != size:
            found = (path / name).stat().st_size
            raise InvalidFile(path, f"the checkpoint is torn: {name} has {found} bytes, not {size}")
        if sha256_of(path / name) != digest:
            raise InvalidFile(path, f"the checkpoint was altered: {name} is not what was written")


def newest_intact(folder: Path) -> tuple[Path | None, list[InvalidFile]]:
    """The newest checkpoint that is as it was written, and what is wrong with each newer one."""
    damaged: list[InvalidFile] = []
    for path in reversed(list_checkpoints(folder)):
        try:
            verify_checkpoint(path)
        except InvalidFile as error:
            damaged.append(error)
        else:
            return path, damaged
    return None, damaged


def load_checkpoint(path: Path) -> Snapshot:
    """An intact checkpoint; InvalidFile if it is not."""
    verify_checkpoint(path)
    ema = path / "ema.safetensors"
    return Snapshot(
        model=read_pieces(path, "model"),
        ema=load_file(ema) if ema.exists() else None,
        optimizer=read_pieces(path, "optimizer"),
        optimizer_about=json.loads((path / "optimizer.json").read_text(encoding="utf-8")),
        trainer=read_trainer(path),
    )


def read_trainer(path: Path) -> dict[str, Any]:
    """What a checkpoint says of its run, without the tensors. The checkpoint was verified before."""
    trainer: dict[str, Any] = json.loads((path / "trainer.json").read_text(encoding="utf-8"))
    return trainer


def remove_old(folder: Path, keep: int, best_step: int | None) -> None:
    """Remove all but the newest `keep` and the best."""
    for path in list_checkpoints(folder)[:-keep]:
        if step_of(path) != best_step:
            shutil.rmtree(path)


def remove_partial(folder: Path) -> None:
    """Remove what a killed run was in the middle of writing."""
    for path in folder.glob(".step-*.part"):
        shutil.rmtree(path)


def quarantine(path: Path) -> Path:
    """Rename a damaged checkpoint so that it is never taken for one; it stays for whoever wants to look."""
    aside = path.with_name(f"damaged-{path.name}")
    shutil.rmtree(aside, ignore_errors=True)
    return path.rename(aside)


def frozen_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Parameters that are not learnt, by every name that they have."""
    named = model.named_parameters(remove_duplicate=False)
    return {name: parameter for name, parameter in named if not parameter.requires_grad}


def digest_tensors(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, shapes, types and values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_weights(
    model: nn.Module, weights: Mapping[str, Tensor], source: object, frozen_sha256: str | None = None
) -> None:
    """Load weights that must fit the model exactly; InvalidFile names what does not.

    frozen_sha256: if given, frozen parameters are not among the weights, and the model's own must have this digest.
    """
    own = model.state_dict()
    if frozen_sha256 is not None:
        frozen = frozen_parameters(model)
        if digest_tensors(frozen) != frozen_sha256:
            raise InvalidFile(source, "was trained on other frozen parameters than this model has", "use the same base")
        weights = {**frozen, **weights}
    wrong = [f"{name} is missing" for name in own if name not in weights]
    wrong += [f"{name} is unknown to the model" for name in weights if name not in own]
    wrong += [
        f"{name} is {tuple(weights[name].shape)}, the model needs {tuple(tensor.shape)}"
        for name, tensor in own.items()
        if name in weights and weights[name].shape != tensor.shape
    ]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise InvalidFile(
            source,
            f"the weights do not fit the model: {'; '.join(wrong[:_SHOWN])}{more}",
            "were they made with another [model] section or another vocabulary?",
        )
    model.load_state_dict(weights)
