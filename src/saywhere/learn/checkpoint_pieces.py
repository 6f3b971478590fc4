"""Checkpoints that several processes write together, each its own piece."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError

from saywhere.core.errors import InvalidFile
from saywhere.learn.checkpoint import Snapshot, put_in_place, write_about, write_tensors
from saywhere.learn.processes import Processes


def save_pieces(folder: Path, step: int, snapshot: Snapshot, processes: Processes) -> Path:
    """Write a checkpoint whole: every process its piece, then the first what tells that all are there. If one of them
    cannot, nothing has changed, and InvalidFile says so on all."""
    target = folder / f"step-{step:08d}"
    part = folder / f".{target.name}.pieces.part"
    mark = f"{processes.rank}-of-{processes.size}.safetensors"

    def begin() -> None:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)

    def write() -> None:
        write_tensors(part / f"model-{mark}", snapshot.model)
        write_tensors(part / f"optimizer-{mark}", snapshot.optimizer)

    def finish() -> None:
        write_about(part, snapshot)
        put_in_place(part, target)

    try:
        _together(processes, target, begin if processes.is_main else None)
        _together(processes, target, write)
        _together(processes, target, finish if processes.is_main else None)
    finally:
        if processes.is_main:
            shutil.rmtree(part, ignore_errors=True)
    return target


def _together(processes: Processes, target: Path, work: Callable[[], None] | None) -> None:
    """Do something, and wait for the others; InvalidFile on all if one of them could not."""
    reason = ""
    try:
        if work is not None:
            work()
    except (OSError, SafetensorError) as error:
        reason = str(error)
    failed = torch.tensor([float(bool(reason))], device=processes.device)
    processes.all_reduce(failed)
    if bool(failed.item()):
        told = reason or "another process could not write its piece"
        raise InvalidFile(target, f"the checkpoint cannot be written: {told}", "older ones are kept")
