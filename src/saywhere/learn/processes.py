"""Several processes that learn one model: torchrun (or accelerate launch) starts them and says who is who."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from saywhere.core.errors import InvalidValue

# Others wait while the first validates, which may take long; a process that dies is noticed at once all the same.
_PATIENCE = timedelta(hours=6)
# A message of 4 MB in single precision: large enough that its latency does not matter.
_BUCKET_ELEMENTS = 1 << 20
# A thread of gloo's lets go of a tensor a little after it was exchanged. If it were the last to do so, it would need
# Python's lock, and abort the process if Python were just ending: some of its threads outlive the group.
_held: deque[Tensor] = deque(maxlen=4)


@dataclass(frozen=True, slots=True)
class Processes:
    """Which of how many this one is. With one process every exchange does nothing."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_main(self) -> bool:
        """Whether this is the one that writes files, and validates what cannot be shared."""
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> None:
        """Replace the tensor by the sum over all processes."""
        if self.size > 1:
            _held.append(tensor)
            dist.all_reduce(tensor)

    def all_reduce_many(self, tensors: Iterable[Tensor]) -> None:
        """`all_reduce` of many tensors: small ones of a type share a message, of bounded size; large ones go alone and
        in place, so that there is never a copy of them all."""
        buckets: dict[torch.dtype, list[Tensor]] = {}
        for tensor in tensors:
            if tensor.numel() >= _BUCKET_ELEMENTS and tensor.is_contiguous():
                self.all_reduce(tensor)
                continue
            bucket = buckets.setdefault(tensor.dtype, [])
            if sum(one.numel() for one in bucket) + tensor.numel() > _BUCKET_ELEMENTS:
                self._all_reduce_bucket(bucket)
                bucket.clear()
            bucket.append(tensor)
        for bucket in buckets.values():
            self._all_reduce_bucket(bucket)

    def _all_reduce_bucket(self, tensors: Sequence[Tensor]) -> None:
        if self.size > 1 and tensors:
            flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
            self.all_reduce(flat)
            for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor by the first process's."""
        if self.size > 1:
            for tensor in tensors:
                _held.append(tensor)
                dist.broadcast(tensor, src=0)

    def broadcast_text(self, text: str) -> str:
        """The first process's text (not empty), on all of them."""
        if self.size == 1:
            return text
        content = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8).to(self.device)
        length = torch.tensor([content.numel()], device=self.device)
        self.broadcast([length])
        if not self.is_main:
            content = torch.empty(int(length), dtype=torch.uint8, device=self.device)
        self.broadcast([content])
        return bytes(content.tolist()).decode()

    def all_gather_text(self, text: str) -> list[str]:
        """Every process's text, in the order of their ranks, on all of them."""
        if self.size == 1:
            return [text]
        content = torch.tensor(list(text.encode()), dtype=torch.uint8, device=self.device)
        lengths = torch.zeros(self.size, dtype=torch.int64, device=self.device)
        lengths[self.rank] = content.numel()
        self.all_reduce(lengths)
        # The sum of rows of which each process has one; short ones are filled up, and cut again.
        gathered = content.new_zeros(self.size, int(lengths.max()))
        gathered[self.rank, : content.numel()] = content
        self.all_reduce(gathered)
        return [bytes(one[:length].tolist()).decode() for one, length in zip(gathered, lengths.tolist(), strict=True)]

    def check_equal(self, what: str, text: str) -> None:
        """Raise unless all processes have the same text."""
        if self.size == 1:
            return
        digest = zlib.crc32(text.encode())
        spread = torch.tensor([digest, -digest], dtype=torch.int64, device=self.device)
        _held.append(spread)
        dist.all_reduce(spread, op=dist.ReduceOp.MAX)
        if int(spread[0]) != -int(spread[1]):
            raise InvalidValue(what, f"differs between the processes; process {self.rank} has {text[:200]!r}")


def leave_together() -> None:
    """End this process with success if torchrun started several; alone, do nothing. For the end of a command.

    Some of gloo's threads outlive the group, and a process that ends the usual way while one of them does, aborts now
    and then. What was written is flushed, and the rest of Python's ending is left out.
    """
    if not dist.is_available() or not dist.is_initialized():
        return
    dist.destroy_process_group()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def pick_device(name: str, local_rank: int) -> torch.device:
    """The device of this name ("auto" prefers an accelerator), checked to be there."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if not available[name]:
        there = ", ".join(kind for kind, is_there in available.items() if is_there)
        raise InvalidValue("train.device", f"this machine or this build of torch has no {name}", f"it has {there}")
    return torch.device("cuda", local_rank) if name == "cuda" else torch.device(name)


def join_processes(device_name: str) -> Processes:
    """The processes that torchrun started, connected until this one ends; or this one alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    device = pick_device(device_name, int(os.environ.get("LOCAL_RANK", "0")))
    if size == 1:
        return Processes(device=device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
        # Not after each run: processes that part and meet again under one torchrun wait for each other forever.
        atexit.register(dist.destroy_process_group)
    return Processes(dist.get_rank(), dist.get_world_size(), device)
