"""How the UpDn networks are trained by the trainer: the recipe's tables, the losses, the measures of success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import PAD_ID
from saywhere.models.common.modes import seeded_dropout, zero_unknown_word
from saywhere.models.common.sums import Sums
from saywhere.models.updown.batch import (
    CaptionBatch,
    CaptionItem,
    QuestionBatch,
    QuestionItem,
    collate_captions,
    collate_questions,
)
from saywhere.models.updown.captioner import UpDnCaptioner
from saywhere.models.updown.config import UpDnCaptionConfig, UpDnConfig
from saywhere.models.updown.objective import answer_accuracy, answer_loss, caption_loss
from saywhere.models.updown.prepared import CaptionItems, Captions, QuestionItems, Questions
from saywhere.models.updown.vqa import UpDnVqa

_VALIDATION_BATCH = 128
VALIDATION = "validation"


class VqaSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: the shape, as `UpDnConfig` describes it; what the data fixes is not in it."""

    embedding: int = 300
    width: int = 1024
    dropout: float = 0.2
    answer_dropout: float = 0.5
    use_boxes: bool = False
    activation: str = "gated tanh"

    def config(self, data: Questions) -> UpDnConfig:
        shape = {name: getattr(self, name) for name in VqaSection.__struct_fields__}
        words, answers = len(data.vocabulary), len(data.answers)
        return UpDnConfig(words, answers, region_size=data.region_size, max_words=data.max_words, **shape)


class CaptionSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: the shape, as `UpDnCaptionConfig` describes it; what the data fixes is not in it."""

    embedding: int = 1000
    width: int = 1000
    attention: int = 512
    dropout: float = 0.5
    use_boxes: bool = False

    def config(self, data: Captions) -> UpDnCaptionConfig:
        shape = {name: getattr(self, name) for name in CaptionSection.__struct_fields__}
        words = len(data.vocabulary)
        return UpDnCaptionConfig(words, region_size=data.region_size, max_words=data.max_words, **shape)


class UpDownDataSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a prepared folder. train, validation: at most so many items. train_split, validation_split: which splits
    these are."""

    folder: Path
    train: int | None = None
    validation: int | None = None
    train_split: str = "train"
    validation_split: str = VALIDATION


class UpDnVqaTask:
    """UpDn on prepared questions."""

    model_section: ClassVar[type[msgspec.Struct]] = VqaSection
    data_section: ClassVar[type[msgspec.Struct]] = UpDownDataSection

    def __init__(self, model: VqaSection, data: UpDownDataSection) -> None:
        self.prepared = Questions(data.folder)
        self._train = self.prepared.split(data.train_split, data.train)
        self._validation = self.prepared.split(data.validation_split, data.validation)
        self.config = model.config(self.prepared)

    def build(self, generator: torch.Generator) -> nn.Module:
        model = UpDnVqa.fresh(self.config, int(torch.randint(2**31, (), generator=generator)))
        zero_unknown_word(model.words, self.prepared.vocabulary)
        model.regions_from = self.prepared.regions_from
        return model.attach(self.prepared.vocabulary, self.prepared.answers)

    def train_items(self) -> QuestionItems:
        return self._train

    def collate(self, items: Sequence[QuestionItem], generator: torch.Generator) -> QuestionBatch:  # noqa: ARG002 - the protocol's
        return collate_questions(items)

    def losses(self, model: nn.Module, batch: QuestionBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        """The loss, and the accuracy on the batch."""
        network = as_vqa(model)
        with seeded_dropout(generator, network):
            logits = network(
                batch.regions, batch.present, batch.questions, boxes=batch.boxes, pointed=batch.pointed
            ).logits
        accuracy = answer_accuracy(logits.detach(), batch.targets).mean()
        return {"loss": answer_loss(logits, batch.targets), "accuracy": accuracy}

    def counts(self, batch: QuestionBatch) -> dict[str, float]:
        return {"loss": float(len(batch))}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Loss, accuracy, and accuracy by answer type ("accuracy_yes/no" …) on the validation questions."""
        return self.validation_sums(model).means()

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """Every `parts`-th question from `part` on."""
        return answer_sums(as_vqa(model), self._validation[part::parts])

    def fingerprint(self) -> str:
        return f"{self.prepared.fingerprint}-{len(self._train)}-{len(self._validation)}"


class UpDnCaptionTask:
    """The UpDn captioner on prepared captions."""

    model_section: ClassVar[type[msgspec.Struct]] = CaptionSection
    data_section: ClassVar[type[msgspec.Struct]] = UpDownDataSection

    def __init__(self, model: CaptionSection, data: UpDownDataSection) -> None:
        self.prepared = Captions(data.folder)
        self._train = self.prepared.split(data.train_split, data.train)
        self._validation = self.prepared.split(data.validation_split, data.validation)
        self.config = model.config(self.prepared)

    def build(self, generator: torch.Generator) -> nn.Module:
        model = UpDnCaptioner.fresh(self.config, int(torch.randint(2**31, (), generator=generator)))
        zero_unknown_word(model.words, self.prepared.vocabulary)
        model.regions_from = self.prepared.regions_from
        return model.attach(self.prepared.vocabulary)

    def train_items(self) -> CaptionItems:
        return self._train

    def collate(self, items: Sequence[CaptionItem], generator: torch.Generator) -> CaptionBatch:  # noqa: ARG002 - the protocol's
        return collate_captions(items)

    def losses(self, model: nn.Module, batch: CaptionBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        """The loss per word."""
        network = as_captioner(model)
        with seeded_dropout(generator, network):
            logits = network(batch.regions, batch.present, batch.words, boxes=batch.boxes).logits
        return {"loss": caption_loss(logits, batch.targets)}

    def counts(self, batch: CaptionBatch) -> dict[str, float]:
        return {"loss": float((batch.targets != PAD_ID).sum())}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """The loss per word of the validation captions."""
        return self.validation_sums(model).means()

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """Every `parts`-th caption from `part` on."""
        return caption_sums(as_captioner(model), self._validation[part::parts])

    def fingerprint(self) -> str:
        return f"{self.prepared.fingerprint}-{len(self._train)}-{len(self._validation)}"


def answer_sums(model: UpDnVqa, items: QuestionItems, batch_size: int = _VALIDATION_BATCH) -> Sums:
    """Loss and accuracy over some questions, in all and by answer type. The model must be in eval mode."""
    sums = Sums()
    for first in range(0, len(items), batch_size):
        some = items[first : first + batch_size]
        batch = collate_questions(list(some)).to(model.device)
        with torch.no_grad():
            logits = model(
                batch.regions, batch.present, batch.questions, boxes=batch.boxes, pointed=batch.pointed
            ).logits
        sums.add("loss", float(answer_loss(logits, batch.targets)) * len(batch), len(batch))
        for index, accuracy in zip(some.indices, answer_accuracy(logits, batch.targets).tolist(), strict=True):
            sums.add("accuracy", accuracy, 1)
            sums.add(f"accuracy_{some.folder.answer_type(index)}", accuracy, 1)
    return sums


def caption_sums(model: UpDnCaptioner, items: CaptionItems, batch_size: int = _VALIDATION_BATCH) -> Sums:
    """Negative log-likelihood of a word, over all words and ends of some captions. In eval mode only."""
    sums = Sums()
    for first in range(0, len(items), batch_size):
        batch = collate_captions(list(items[first : first + batch_size])).to(model.device)
        with torch.no_grad():
            logits = model(batch.regions, batch.present, batch.words, boxes=batch.boxes).logits
        count = int((batch.targets != PAD_ID).sum())
        sums.add("loss", float(caption_loss(logits, batch.targets)) * count, count)
    return sums


def as_vqa(model: nn.Module) -> UpDnVqa:
    if not isinstance(model, UpDnVqa):
        raise InvalidValue("model", f"is a {type(model).__name__}, not an UpDnVqa")
    return model


def as_captioner(model: nn.Module) -> UpDnCaptioner:
    if not isinstance(model, UpDnCaptioner):
        raise InvalidValue("model", f"is a {type(model).__name__}, not an UpDnCaptioner")
    return model
