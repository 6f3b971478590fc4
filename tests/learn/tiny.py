"""Tasks small enough to train many times in a test."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import torch
from torch import Tensor, nn

from saywhere.learn import register


class TinyModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hidden: int = 8
    dropout: float = 0.0
    batch_norm: bool = False
    frozen: bool = False


class Extra(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    scale: float = 1.0


class TinyData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """bad_input: the item whose numbers are NaN. jitter: noise that collate adds. slow_s: what collate takes.

    metric: a script of validation results instead of the real error. claimed: items that a stream says it has more.
    """

    items: int = 20
    seed: int = 0
    bad_input: int | None = None
    jitter: float = 0.0
    slow_s: float = 0.0
    metric: tuple[float, ...] = ()
    claimed: int = 0
    notes: Path | None = None
    extra: Extra = Extra()


class TinyRegression:
    """A smooth function of three numbers."""

    model_section: ClassVar[type[msgspec.Struct]] = TinyModel
    data_section: ClassVar[type[msgspec.Struct]] = TinyData

    def __init__(self, model: TinyModel, data: TinyData) -> None:
        self.model, self.data = model, data
        generator = torch.Generator().manual_seed(data.seed)
        self.inputs = torch.randn(data.items, 3, generator=generator)
        self.targets = torch.sin(self.inputs.sum(1, keepdim=True))
        if data.bad_input is not None:
            self.inputs[data.bad_input] = torch.nan
        self._script = list(data.metric)

    def build(self, generator: torch.Generator) -> nn.Module:
        norm = nn.BatchNorm1d(self.model.hidden) if self.model.batch_norm else nn.Identity()
        first = nn.Linear(3, self.model.hidden).requires_grad_(not self.model.frozen)
        return nn.Sequential(
            first,
            norm,
            nn.Tanh(),
            nn.Dropout(self.model.dropout),
            nn.Linear(self.model.hidden, 1),
        )

    def train_items(self) -> list[tuple[Tensor, Tensor]]:
        return list(zip(self.inputs, self.targets, strict=True))

    def collate(self, items: Sequence[tuple[Tensor, Tensor]], generator: torch.Generator) -> dict[str, Tensor]:
        time.sleep(self.data.slow_s)
        x = torch.stack([x for x, _ in items])
        return {
            "x": x + self.data.jitter * torch.randn(x.shape, generator=generator),
            "y": torch.stack([y for _, y in items]),
        }

    def losses(self, model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Mapping[str, Tensor]:
        error = model(batch["x"]) - batch["y"]
        return {"loss": error.square().mean(), "abs": error.abs().mean().detach()}

    def counts(self, batch: dict[str, Tensor]) -> Mapping[str, float]:
        return {"loss": len(batch["x"])}

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        if self._script:
            return {"error": self._script.pop(0)}
        clean = torch.nan_to_num(self.inputs)
        return {"error": float((model(clean) - torch.nan_to_num(self.targets)).square().mean()), "half": 0.5}

    def fingerprint(self) -> str:
        return hashlib.sha256(self.inputs.numpy().tobytes()).hexdigest()


class TinyWords(TinyRegression):
    """Items of different lengths: the loss is a mean over words plus a mean over the located ones of them."""

    def train_items(self) -> Any:
        lengths = [1 + 7 * i % 5 for i in range(self.data.items)]
        return [(torch.full((n, 3), 0.1 * i) + torch.arange(n)[:, None], i) for i, n in enumerate(lengths)]

    def collate(self, items: Any, generator: torch.Generator) -> dict[str, Tensor]:
        x = torch.cat([x for x, _ in items])
        located = torch.cat([torch.arange(len(x)) % (2 + i % 3) == 0 for x, i in items])
        return {"x": x, "located": located}

    def counts(self, batch: dict[str, Tensor]) -> Mapping[str, float]:
        return {"words": len(batch["x"]), "boxes": float(batch["located"].sum())}

    def losses(self, model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Mapping[str, Tensor]:
        out = model(batch["x"]).squeeze(1)
        words, boxes = out.square().mean(), 0.3 * (out[batch["located"]] - 1).abs().mean()
        return {"loss": words + boxes, "words": words, "boxes": boxes}


class _OneAfterAnother:
    """A stream of what is in a list; `claimed` more than there is, if not 0."""

    def __init__(self, items: Sequence[Any], claimed: int) -> None:
        self._items, self._claimed = items, claimed

    def __len__(self) -> int:
        return len(self._items) + self._claimed

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


class TinyStream(TinyRegression):
    """The same items, to be read one after another."""

    def train_items(self) -> Any:
        return _OneAfterAnother(super().train_items(), self.data.claimed)


class TinyShared(TinyRegression):
    """A task whose processes validate every other item each, and tell who did."""

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> dict[str, tuple[float, float]]:
        error = (model(self.inputs) - self.targets).square()[part::parts]
        total = (float(error.sum()), float(len(error)))
        return {"error": total, f"error_of_part_{part}": total}


class TinyForgetful(TinyRegression):
    """A task that does not say over how many things its loss averages."""

    counts = None  # type: ignore[assignment]


def register_all() -> None:
    for name, kind in {
        "tiny-regression": "TinyRegression",
        "tiny-words": "TinyWords",
        "tiny-stream": "TinyStream",
        "tiny-shared": "TinyShared",
        "tiny-forgetful": "TinyForgetful",
    }.items():
        register(name, f"tests.learn.tiny:{kind}")
