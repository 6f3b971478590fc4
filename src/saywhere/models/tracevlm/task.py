"""How TraceVLM is trained by the trainer: the recipe's tables, the losses, the measures of success."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.models.common.sums import Sums
from saywhere.models.tracevlm import objective
from saywhere.models.tracevlm.batch import InstructionBatch, collate
from saywhere.models.tracevlm.config import TraceVlmConfig
from saywhere.models.tracevlm.examples import Instruction, InstructionFile
from saywhere.models.tracevlm.network import TraceVLM, described
from saywhere.models.tracevlm.objective import MaskObjective
from saywhere.models.tracevlm.prompts import PromptReader
from saywhere.models.tracevlm.qwen import input_of_base, open_input, open_qwen
from saywhere.models.tracevlm.stages import stage
from saywhere.provenance import sha256_of
from saywhere.vision import read_photo

TRAIN, VALIDATION = "train.jsonl", "validation.jsonl"


class ModelSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: where to start, what to train, shape and objective.

    base: a Qwen-VL, by folder or name on the hub. start: a folder of a saved TraceVLM to go on from, instead of base
        and shape. stage: "1", "1.5" or "2", see `stages`. train_perception: in stage 2 too.
    dtype: of the base's parameters. checkpointing: compute anew what the backward pass needs, to need less memory.
    blocks … lora_alpha: see `TraceVlmConfig`; they are not given with start, which has its own. whole_base: train the
        base's own parameters instead of adapters. context: tokens at most. bce, refinement, dice, overlap_weight: see
        `MaskObjective`.
    """

    base: str = ""
    start: str = ""
    stage: str = "1"
    train_perception: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"
    checkpointing: bool = False
    blocks: int | None = None
    heads: int | None = None
    expansion: int | None = None
    code: int | None = None
    mask_width: int | None = None
    mask_heads: int | None = None
    mask_layers: int | None = None
    lora_rank: int | None = None
    lora_alpha: int | None = None
    whole_base: bool = False
    context: int = 0
    bce: float = 1.0
    refinement: float = 1.0
    dice: float = 1.0
    overlap_weight: float = 2.0

    def shape(self) -> dict[str, int]:
        """What is given of the parts' shape."""
        names = [field.name for field in fields(TraceVlmConfig) if field.name not in ("whole_base", "context")]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def config(self) -> TraceVlmConfig:
        return TraceVlmConfig(**self.shape(), whole_base=self.whole_base, context=self.context)

    def objective(self) -> MaskObjective:
        return MaskObjective(**{field.name: getattr(self, field.name) for field in fields(MaskObjective)})


class DataSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder with train.jsonl and validation.jsonl, as `examples.save_instructions` writes them. photos: the
    folder that names of images start from; by default the same. train, validation: at most so many of each."""

    folder: Path
    photos: Path | None = None
    train: int | None = None
    validation: int | None = None


class TraceVlmTask:
    """One stage of TraceVLM on instructions."""

    model_section: ClassVar[type[msgspec.Struct]] = ModelSection
    data_section: ClassVar[type[msgspec.Struct]] = DataSection

    def __init__(self, model: ModelSection, data: DataSection) -> None:
        self.section, self.objective = model, model.objective()
        if bool(model.base) == bool(model.start):
            raise InvalidValue("model.base, model.start", "exactly one of them says where to start")
        if model.start and (given := model.shape()):
            reason = "is given, but the network that it starts from has its own"
            raise InvalidValue(f"model.{next(iter(given))}", reason)
        self.stage = stage(model.stage, train_perception=model.train_perception)
        self._photos = data.photos or data.folder
        self._files = [data.folder / TRAIN, data.folder / VALIDATION]
        self._train = InstructionFile(self._files[0], data.train)
        self._validation = InstructionFile(self._files[1], data.validation)

    def build(self, generator: torch.Generator) -> nn.Module:
        seed = int(torch.randint(2**31, (), generator=generator))
        section = self.section
        if section.start:
            model = TraceVLM.from_pretrained(section.start, dtype=section.dtype)
            whole_base = model.config.whole_base or section.whole_base
            model.config = replace(model.config, whole_base=whole_base, context=section.context or model.config.context)
            model.reader = PromptReader(model.body.inputs, model.config.context)
        else:
            model = TraceVLM(section.config(), open_qwen(section.base, section.dtype), seed)
        model.train_only(self.stage.trained)
        if section.checkpointing:
            model.body.checkpoint_gradients()
        return model.train()

    def train_items(self) -> InstructionFile:
        return self._train

    def collate(self, items: Sequence[Instruction], generator: torch.Generator) -> InstructionBatch:  # noqa: ARG002 - the protocol's
        photos = [[read_photo(self._photos / name) for name in item.images] for item in items]
        return collate(self._reader, [item.turns for item in items], photos)

    def losses(self, model: nn.Module, batch: InstructionBatch, generator: torch.Generator) -> Mapping[str, Tensor]:  # noqa: ARG002 - the protocol's
        """The loss, and its terms times their weights."""
        return losses(as_tracevlm(model), batch, self.objective)

    def counts(self, batch: InstructionBatch) -> Mapping[str, float]:
        return {"text": float(batch.learnt[:, 1:].sum()), "masks": float(len(batch.targets))}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Mean losses of words and of masks; nothing is written for it."""
        return self.validation_sums(model).means()

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """Every `parts`-th instruction from `part` on, one at a time."""
        network, sums = as_tracevlm(model), Sums()
        for place in range(part, len(self._validation), parts):
            batch = self.collate([self._validation[place]], torch.Generator()).to(network.device)
            counts = self.counts(batch)
            for name, value in losses(network, batch, self.objective).items():
                if name != "loss":
                    count = counts["text" if name == "text" else "masks"]
                    sums.add(name, float(value) * count, count)
        return sums

    def fingerprint(self) -> str:
        digest = hashlib.sha256("".join(sha256_of(path) for path in self._files).encode()).hexdigest()
        return f"{digest}-{len(self._train)}-{len(self._validation)}"

    @cached_property
    def _reader(self) -> PromptReader:
        """What reads instructions; it needs no weights."""
        if not self.section.start:
            return PromptReader(open_input(self.section.base), self.section.context)
        config, base, folder = described(self.section.start)
        return PromptReader(input_of_base(base, folder), self.section.context or config.context)


def losses(model: TraceVLM, batch: InstructionBatch, settings: MaskObjective) -> dict[str, Tensor]:
    """The loss of a batch with its terms. Only what the assistant says is scored, to need less memory."""
    states, seen, points = model.states(batch)
    learnt = batch.learnt[:, 1:]
    words = objective.word_loss(model.body.say(states[:, :-1][learnt]), batch.ids[:, 1:][learnt])
    if not len(batch.targets):
        return objective.total(words, dict.fromkeys(("masks", "bce", "refinement", "dice"), words.new_zeros(())))
    return objective.total(words, objective.mask_losses(model.masks(states, batch, seen, points), settings))


def as_tracevlm(model: nn.Module) -> TraceVLM:
    if not isinstance(model, TraceVLM):
        raise InvalidValue("model", f"is a {type(model).__name__}, not a TraceVLM")
    return model
