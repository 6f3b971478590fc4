"""How MITR and its baselines are trained by the trainer: the recipe's tables, the losses, the measures of success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import ClassVar

import msgspec
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.models.common.sums import Sums
from saywhere.models.mitr import baseline, objective
from saywhere.models.mitr.batch import Batch, NarrativeExample, collate
from saywhere.models.mitr.config import MitrConfig
from saywhere.models.mitr.network import MITR
from saywhere.models.mitr.objective import ObjectiveSettings
from saywhere.models.mitr.prepared import NarrativeItems, Prepared

_VALIDATION_BATCH = 50
_VALIDATION_SEED = 0


class MitrModelSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: shape and objective. baseline: "trace", "caption" or "describe" for the paper's encoder–decoders."""

    width: int = 512
    heads: int = 8
    feed_forward: int = 2048
    layers: int = 1
    dropout: float = 0.1
    attention_dropout: float = 0.1
    input_dropout: float = 0.5
    baseline: str = ""
    trace: float = 1.0
    caption: float = 0.3
    cycle: float = 0.1
    joint: float = 1.0
    lbm: float = 0.0
    cycle_kind: str = "batch"
    cycle_segments: int = 5
    temperature: float = 1.0
    mask_rate: float = 0.5
    trace_mask_rate: float = 0.0
    guided: int = 0

    def settings(self) -> ObjectiveSettings:
        known = {field.name for field in fields(ObjectiveSettings)}
        return ObjectiveSettings(**{name: getattr(self, name) for name in self.__struct_fields__ if name in known})

    def config(self, words: int, region_size: int) -> MitrConfig:
        known = {field.name for field in fields(MitrConfig)}
        shape = {name: getattr(self, name) for name in self.__struct_fields__ if name in known}
        return MitrConfig(words=words, region_size=region_size, **shape)


class MitrDataSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder of prepared narratives. train, validation: at most so many narratives of each split."""

    folder: Path
    train: int | None = None
    validation: int | None = None


class MitrTask:
    """MITR, or one of its baselines, on prepared narratives."""

    model_section: ClassVar[type[msgspec.Struct]] = MitrModelSection
    data_section: ClassVar[type[msgspec.Struct]] = MitrDataSection

    def __init__(self, model: MitrModelSection, data: MitrDataSection) -> None:
        self.prepared = Prepared(data.folder)
        self._train = self.prepared.split("train", data.train)
        self._validation = self.prepared.split("validation", data.validation)
        self.config = model.config(len(self.prepared.vocabulary), self.prepared.region_size)
        self.settings = model.settings()
        self.baseline = model.baseline
        if self.settings.guided and self.baseline not in ("", "caption"):
            raise InvalidValue("model.guided", f"a {self.baseline!r} baseline writes nothing along boxes")

    def build(self, generator: torch.Generator) -> nn.Module:
        seed = int(torch.randint(2**31, (), generator=generator))
        if self.baseline:
            return baseline.Baseline.fresh(self.config, self.baseline, seed)
        model = MITR.fresh(self.config, seed).attach(self.prepared.vocabulary)
        model.regions_from = self.prepared.regions_from
        return model

    def train_items(self) -> NarrativeItems:
        return self._train

    def collate(self, items: Sequence[NarrativeExample], generator: torch.Generator) -> Batch:  # noqa: ARG002 - the protocol's
        return collate(items)

    def losses(self, model: nn.Module, batch: Batch, generator: torch.Generator) -> Mapping[str, Tensor]:
        """The loss and its terms, times their weights."""
        found = self._terms(model, batch, generator)
        weights = {} if self.baseline else self.settings.weights()
        return {name: weights.get(name, 1.0) * value for name, value in found.items()}

    def counts(self, batch: Batch) -> Mapping[str, float]:
        if self.baseline:
            return baseline.counts(batch, self.baseline)
        return objective.counts(batch, self.settings)

    def _terms(self, model: nn.Module, batch: Batch, generator: torch.Generator) -> Mapping[str, Tensor]:
        if isinstance(model, baseline.Baseline):
            return baseline.losses(model, batch, generator, self.settings.trace_mask_rate, self.settings.guided)
        if not isinstance(model, MITR):
            raise InvalidValue("model", f"is a {type(model).__name__}, not a MITR")
        return objective.losses(model, batch, self.settings, generator)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Mean losses, without weights, over the validation narratives, each batch with the same noise every time."""
        return self.validation_sums(model).means()

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """Every `parts`-th batch from `part` on: some terms compare the narratives of a batch with each other."""
        sums = Sums()
        for first in range(part * _VALIDATION_BATCH, len(self._validation), parts * _VALIDATION_BATCH):
            batch = collate(list(self._validation[first : first + _VALIDATION_BATCH]))
            generator = torch.Generator().manual_seed(_VALIDATION_SEED + first)
            for name, value in self._terms(model, batch, generator).items():
                sums.add(name, float(value) * len(batch), len(batch))
        return sums

    def fingerprint(self) -> str:
        return f"{self.prepared.fingerprint}-{len(self._train)}-{len(self._validation)}"
