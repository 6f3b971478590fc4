"""How the decoder and the alignment are trained by the trainer: the recipe's tables, losses, measures of success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.models.common.sums import Sums
from saywhere.models.patchioner import objective
from saywhere.models.patchioner.alignment import LinearAlignment, Talk2DinoAlignment, contrast
from saywhere.models.patchioner.config import DecoderConfig
from saywhere.models.patchioner.data import Pairs, TextItem, Texts
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.gap_model import GapModel
from saywhere.models.patchioner.objective import Bank, TextBatch, TextObjective, collate, projected

_VALIDATION_BATCH = 100
_BANK_SEED = 0
FORMS = ("linear", "talk2dino")


class DecoderSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: shape and objective; see `DecoderConfig` and `TextObjective`.

    gap: folder of a `GapModel` to use instead of noise. name_pieces: see `TextObjective`.
    bank: texts to project onto, drawn from the training texts. prompt_rate: how often a text keeps its prompt.
    """

    width: int = 256
    layers: int = 4
    heads: int = 4
    feed_forward: int = 1024
    prefix: int = 1
    max_words: int = 40
    prompt_words: int = 0
    dropout: float = 0.1
    noise: tuple[float, float] = (0.0, 0.06)
    smoothing: float = 0.1
    project_rate: float = 0.0
    temperature: float = 0.02
    gap: Path | None = None
    gap_strength: tuple[float, float] = (0.6, 1.2)
    name_pieces: int = 0
    bank: int = 32_768
    prompt_rate: float = 0.0

    def objective(self) -> TextObjective:
        gap = None if self.gap is None else GapModel.load(self.gap)
        across = (gap, self.gap_strength, self.name_pieces)
        return TextObjective(self.noise, self.smoothing, self.project_rate, self.temperature, *across)

    def config(self, texts: Texts) -> DecoderConfig:
        return DecoderConfig(
            words=len(texts.vocabulary),
            vector_size=texts.size,
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            feed_forward=self.feed_forward,
            prefix=self.prefix,
            max_words=self.max_words,
            prompt_words=self.prompt_words,
            extra_size=texts.extra_size,
            dropout=self.dropout,
        )


class TextData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder of prepared texts. validation: another; without one the last `held_out` texts are kept apart."""

    folder: Path
    validation: Path | None = None
    held_out: int = 500


class DecoderTask:
    """Text → vector → text: the decoder learns from text alone."""

    model_section: ClassVar[type[msgspec.Struct]] = DecoderSection
    data_section: ClassVar[type[msgspec.Struct]] = TextData

    def __init__(self, model: DecoderSection, data: TextData) -> None:
        texts = Texts(data.folder)
        self._train, self._validation = _held_out(texts, data)
        if model.prompt_rate and texts.longest_prompt > model.prompt_words:
            reason = f"the longest has {texts.longest_prompt} pieces, but [model] prompt_words is {model.prompt_words}"
            raise InvalidValue("prompts", reason)
        self.vocabulary, self.config, self.objective = texts.vocabulary, model.config(texts), model.objective()
        self._prompt_rate = model.prompt_rate
        self._bank = _bank(self._train, model.bank) if self.objective.project_rate else None

    def build(self, generator: torch.Generator) -> nn.Module:
        seed = int(torch.randint(2**31, (), generator=generator))
        return PrefixDecoder.fresh(self.config, self.vocabulary, seed)

    def train_items(self) -> Texts:
        return self._train

    def collate(self, items: Sequence[TextItem], generator: torch.Generator) -> TextBatch:
        prompted = (torch.rand(len(items), generator=generator) < self._prompt_rate).tolist()
        return collate(items, self.config.max_words, prompted)

    def losses(self, model: nn.Module, batch: TextBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        bank = None if self._bank is None else self._bank.to(batch.vectors.device)
        return objective.losses(_decoder(model), batch, self.objective, bank, generator)

    def counts(self, batch: TextBatch) -> Mapping[str, float]:
        return {"loss": float(batch.target_count)}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Mean cross entropy of a piece, from true vectors, and from their projections if it learns with these."""
        return self.validation_sums(model).means()

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """Every `parts`-th batch from `part` on."""
        decoder, sums = _decoder(model), Sums()
        for first in range(part * _VALIDATION_BATCH, len(self._validation), parts * _VALIDATION_BATCH):
            items = self._validation[first : first + _VALIDATION_BATCH]
            batch = collate(items, self.config.max_words).to(decoder.device)
            ways = {"loss": batch.vectors}
            if self._bank is not None:
                bank = self._bank.to(decoder.device)
                ways["projected"] = projected(batch.vectors, batch.groups, bank, self.objective.temperature)
            for name, vectors in ways.items():
                loss = float(decoder.loss(vectors, batch.words, batch.extra))
                sums.add(name, loss * batch.target_count, batch.target_count)
        return sums

    def fingerprint(self) -> str:
        return f"{self._train.fingerprint}-{len(self._train)}-{self._validation.fingerprint}-{len(self._validation)}"


class AlignmentSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: form: "linear" (features into the text space) or "talk2dino" (texts into the features' space).

    captions: texts of each photo in a step, drawn at random. dropout: on standardised features, for "linear".
    pool: "max" or "mean", for "talk2dino" with several features a photo.
    """

    form: str = "linear"
    captions: int = 5
    dropout: float = 0.0
    pool: str = "max"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form is {self.form!r}, not one of {', '.join(FORMS)}")
        if self.captions < 1:
            raise ValueError("captions must be at least 1")


class PairData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder of prepared pairs, of which the last `held_out` photos are for validation."""

    folder: Path
    held_out: int = 500


class PairBatch(NamedTuple):
    """features: (photos, d) or (photos, k, d). vectors: (texts, D). owners: (texts,) the photo of each."""

    features: Tensor
    vectors: Tensor
    owners: Tensor


class AlignmentTask:
    """Photos and their captions close together, others apart."""

    model_section: ClassVar[type[msgspec.Struct]] = AlignmentSection
    data_section: ClassVar[type[msgspec.Struct]] = PairData

    def __init__(self, model: AlignmentSection, data: PairData) -> None:
        self.pairs, self._settings = Pairs(data.folder), model
        cut = len(self.pairs) - data.held_out
        if not 1 < cut < len(self.pairs):
            raise InvalidValue("[data] held_out", f"is {data.held_out}, of {len(self.pairs)} photos")
        self._train, self._validation = range(cut), range(cut, len(self.pairs))

    def build(self, generator: torch.Generator) -> nn.Module:
        image_size, text_size = self.pairs.feature_size, self.pairs.text_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
            if self._settings.form == "talk2dino":
                return Talk2DinoAlignment(text_size, image_size, self._settings.pool)
            return LinearAlignment(*self.pairs.statistics(self._train), text_size, self._settings.dropout)

    def train_items(self) -> range:
        return self._train

    def collate(self, items: Sequence[int], generator: torch.Generator) -> PairBatch:
        chosen = []
        for photo in items:
            texts = torch.from_numpy(self.pairs.texts_of(photo))
            chosen.append(texts[torch.randperm(len(texts), generator=generator)[: self._settings.captions]])
        return self._batch(items, chosen)

    def losses(self, model: nn.Module, batch: PairBatch, generator: torch.Generator) -> Mapping[str, Tensor]:  # noqa: ARG002 - the protocol's
        network = _alignment(model)
        return {
            "loss": contrast(network.similarities(batch.features, batch.vectors), batch.owners, network.sharpness())
        }

    def counts(self, batch: PairBatch) -> Mapping[str, float]:  # noqa: ARG002 - the protocol's
        """Nothing: every text is told apart from all other photos of the batch."""
        return {}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """The loss over all held-out photos, and how often a text finds its photo among the first 1, 5 and 10 (%)."""
        network = _alignment(model)
        device = network.sharpness.log.device
        texts = [torch.from_numpy(self.pairs.texts_of(photo)) for photo in self._validation]
        batch = PairBatch(*(part.to(device) for part in self._batch(self._validation, texts)))
        cosines = network.similarities(batch.features, batch.vectors)
        right = cosines.gather(0, batch.owners[None])
        ahead = (cosines > right).sum(dim=0)
        recalls = {f"recall_{k}": 100 * float((ahead < k).float().mean()) for k in (1, 5, 10)}
        return {"loss": float(contrast(cosines, batch.owners, network.sharpness())), **recalls}

    def fingerprint(self) -> str:
        return f"{self.pairs.fingerprint}-{len(self._train)}"

    def _batch(self, photos: Sequence[int], texts: Sequence[Tensor]) -> PairBatch:
        features = torch.from_numpy(np.stack([self.pairs.feature(photo) for photo in photos]))
        owners = torch.arange(len(texts)).repeat_interleave(torch.tensor([len(one) for one in texts]))
        return PairBatch(features, torch.cat(list(texts)), owners)


def _held_out(texts: Texts, data: TextData) -> tuple[Texts, Texts]:
    if data.validation is None:
        cut = len(texts) - data.held_out
        if not 0 < cut < len(texts):
            raise InvalidValue("[data] held_out", f"is {data.held_out}, of {len(texts)} texts")
        return texts.part(range(cut)), texts.part(range(cut, len(texts)))
    validation = Texts(data.validation)
    if validation.vocabulary.fingerprint != texts.vocabulary.fingerprint:
        raise InvalidValue("[data] validation", "was prepared with another vocabulary")
    if (validation.size, validation.extra_size) != (texts.size, texts.extra_size):
        raise InvalidValue("[data] validation", "has vectors of another size")
    return texts, validation


def _bank(texts: Texts, most: int) -> Bank:
    vectors, groups = texts.bank(most, np.random.default_rng(_BANK_SEED))
    return Bank(torch.from_numpy(vectors), torch.from_numpy(groups))


def _decoder(model: nn.Module) -> PrefixDecoder:
    if not isinstance(model, PrefixDecoder):
        raise InvalidValue("model", f"is a {type(model).__name__}, not a PrefixDecoder")
    return model


def _alignment(model: nn.Module) -> LinearAlignment | Talk2DinoAlignment:
    if not isinstance(model, LinearAlignment | Talk2DinoAlignment):
        raise InvalidValue("model", f"is a {type(model).__name__}, not an alignment")
    return model
