"""How Oscar is trained by the trainer: the recipe's tables, the losses, the measures of success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.models.common.modes import zero_unknown_word
from saywhere.models.common.sums import Sums
from saywhere.models.oscar import objective
from saywhere.models.oscar.batch import Reader, TaggedCaptionBatch
from saywhere.models.oscar.bert import oscar_from_bert
from saywhere.models.oscar.config import OscarConfig
from saywhere.models.oscar.network import Oscar
from saywhere.models.oscar.objective import MaskedObjective
from saywhere.models.oscar.prepared import LevelCaptions, LevelItem, LevelItems
from saywhere.models.oscar.pretrained import load_oscar, with_levels
from saywhere.models.oscar.released import has_released_layout, oscar_from_released
from saywhere.models.oscar.words import MARKERS, OwnWords, Words

_VALIDATION_BATCH = 128
_SIZES = ("width", "layers", "heads", "feed_forward")
_SHOWN = 5


class OscarModelSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: shape and objective.

    width, layers, heads, feed_forward: BERT-base's if not given; they are not given with bert or start, which have
        their own. bert: a checkpoint to start from, by folder or name. start: a folder of a saved Oscar, or of a
        published one (Oscar, VinVL), to go on from.
    levels: what the network can be asked for; by default what start can, or else the levels of the data.
    """

    width: int | None = None
    layers: int | None = None
    heads: int | None = None
    feed_forward: int | None = None
    dropout: float | None = None
    attention_dropout: float | None = None
    levels: tuple[str, ...] = ()
    bert: str = ""
    start: str = ""
    mask_rate: float = 0.15
    most_masked: int = 3
    smoothing: float = 0.1
    every_word: bool = False

    def objective(self) -> MaskedObjective:
        return MaskedObjective(**{field.name: getattr(self, field.name) for field in fields(MaskedObjective)})

    def shape(self) -> dict[str, Any]:
        """What is given of the network's shape."""
        given = {name: getattr(self, name) for name in (*_SIZES, "dropout", "attention_dropout")}
        return {name: value for name, value in given.items() if value is not None}


class OscarDataSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder of prepared captions. levels: which to learn; all if none is named.

    train, validation: at most so many captions of each split, the first ones.
    """

    folder: Path
    levels: tuple[str, ...] = ()
    train: int | None = None
    validation: int | None = None


class OscarTask:
    """Oscar on prepared captions: from nothing, from a BERT, or from an Oscar that was trained before."""

    model_section: ClassVar[type[msgspec.Struct]] = OscarModelSection
    data_section: ClassVar[type[msgspec.Struct]] = OscarDataSection

    def __init__(self, model: OscarModelSection, data: OscarDataSection) -> None:
        self.prepared = LevelCaptions(data.folder)
        learnt = data.levels or tuple(self.prepared.levels)
        self._train = self.prepared.split("train", learnt, data.train)
        self._validation = self.prepared.split("validation", learnt, data.validation)
        self.section, self.objective = model, model.objective()
        self._base = self._opened(learnt)
        self.config, words = self._described(learnt)
        for level in learnt:
            self.config.level_number(level)
        self._reader = Reader(self.config, words)

    def build(self, generator: torch.Generator) -> nn.Module:
        seed = int(torch.randint(2**31, (), generator=generator))
        if self._base is None:
            model = Oscar.fresh(self.config, self.prepared.vocabulary, seed)
            zero_unknown_word(model.words, self.prepared.vocabulary)
            model.regions_from = self.prepared.regions_from
            return model
        # What a BERT lacks is drawn anew for each seed.
        base = (
            oscar_from_bert(self.section.bert, self.prepared.region_size, seed=seed)
            if self.section.bert
            else self._base
        )
        model = with_levels(base, self.config.levels, self.section.dropout, self.section.attention_dropout)
        model.regions_from = self.prepared.regions_from
        return model.train()

    def train_items(self) -> LevelItems:
        return self._train

    def collate(self, items: Sequence[LevelItem], generator: torch.Generator) -> TaggedCaptionBatch:  # noqa: ARG002 - the protocol's
        return read_items(self._reader, items)

    def losses(self, model: nn.Module, batch: TaggedCaptionBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        """The loss of a hidden word, and the share of them that is said right."""
        return objective.losses(as_oscar(model), batch, self.objective, generator)

    def counts(self, batch: TaggedCaptionBatch) -> dict[str, float]:
        return {"loss": float(self.objective.target_count(batch))}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Loss per word and share of words said right, in all and, where there are several, by level ("loss_scene")."""
        return self.validation_sums(model).means()

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """Every `parts`-th caption from `part` on."""
        if not self._validation:
            raise InvalidValue("captions", "there are none to measure on")
        several = len({caption.level for caption in self._validation.captions}) > 1
        return word_sums(as_oscar(model), self._validation[part::parts], by_level=several)

    def fingerprint(self) -> str:
        return f"{self.prepared.fingerprint}-{len(self._train)}-{len(self._validation)}"

    def _opened(self, learnt: Sequence[str]) -> Oscar | None:
        """The network to start from, if there is one."""
        section, size = self.section, self.prepared.region_size
        if not (section.bert or section.start):
            return None
        if section.bert and section.start:
            raise InvalidValue("model.bert, model.start", "are both given; a network starts from one of them")
        given = [name for name in _SIZES if getattr(section, name) is not None]
        if given:
            raise InvalidValue(f"model.{given[0]}", "is given, but the network that it starts from has its own")
        if section.bert:
            return oscar_from_bert(section.bert, size, section.levels or learnt)
        base = oscar_from_released(section.start) if has_released_layout(section.start) else load_oscar(section.start)
        if base.config.region_size != size:
            reason = f"reads features of size {base.config.region_size}; those of the data have {size}"
            raise InvalidValue("model.start", reason)
        check_words(base, self.prepared)
        return base

    def _described(self, learnt: Sequence[str]) -> tuple[OscarConfig, Words]:
        section, base = self.section, self._base
        if base is None:
            vocabulary = self.prepared.vocabulary
            shape = section.shape() | {"levels": section.levels or tuple(learnt)}
            return OscarConfig(len(vocabulary) + MARKERS, self.prepared.region_size, **shape), OwnWords(vocabulary)
        made = with_levels(base, section.levels or base.config.levels, section.dropout, section.attention_dropout)
        return made.config, made.coding


def read_items(reader: Reader, items: Sequence[LevelItem]) -> TaggedCaptionBatch:
    """Items as a batch."""
    captions = [item.caption for item in items]
    images = [item.image for item in items]
    return reader.batch(images, [one.text for one in captions], [one.level for one in captions])


def word_sums(model: Oscar, items: LevelItems, *, by_level: bool, batch_size: int = _VALIDATION_BATCH) -> Sums:
    """Negative log-likelihood of a word, over all words and ends, and the share that is said right.

    See `objective.word_losses`. The model must be in eval mode. by_level: also for each level ("loss_scene").
    """
    sums = Sums()
    for first in range(0, len(items), batch_size):
        part = list(items[first : first + batch_size])
        batch = read_items(model.reader, part).to(model.device)
        with torch.no_grad():
            losses, hits = objective.word_losses(model, batch)
        table = torch.stack([losses, hits, batch.lengths - 1], dim=1).double().cpu()
        for item, (loss, right, words) in zip(part, table.tolist(), strict=True):
            for suffix in ("", f"_{item.caption.level}") if by_level else ("",):
                sums.add(f"loss{suffix}", loss, words)
                sums.add(f"accuracy{suffix}", right, words)
    return sums


def check_words(model: Oscar, data: LevelCaptions) -> None:
    """A network with words of its own must know all those of the data; pieces of words can spell anything."""
    words = model.coding
    if not isinstance(words, OwnWords):
        return
    known = set(words.vocabulary.pieces)
    unknown = [piece for piece in data.vocabulary.pieces if piece not in known]
    if unknown:
        named = ", ".join(repr(piece) for piece in unknown[:_SHOWN])
        reason = f"does not know {len(unknown):,} words of the data: {named}{' …' * (len(unknown) > _SHOWN)}"
        raise InvalidValue("model.start", reason, "prepare the captions of all levels in one folder")


def as_oscar(model: nn.Module) -> Oscar:
    if not isinstance(model, Oscar):
        raise InvalidValue("model", f"is a {type(model).__name__}, not an Oscar")
    return model
