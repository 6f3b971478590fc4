"""What the decoder is trained for: to say a text from its vector, made to look like what it will get from photos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID
from saywhere.models.patchioner.data import TextItem
from saywhere.models.patchioner.decoder import PrefixDecoder, text_places
from saywhere.models.patchioner.gap_model import GapModel
from saywhere.models.patchioner.layers import unit


@dataclass(frozen=True, slots=True)
class TextObjective:
    """How vectors are changed before the decoder sees them.

    noise: lowest and highest σ, the standard deviation of the noise on each number of a vector of length 1; each text
        draws its own in between. smoothing: of the labels.
    project_rate: how often a noisy vector is replaced by its projection onto the memory bank, as photos' vectors are
        when captioning. temperature: of that projection.
    gap: instead of noise: moves texts to where their photos may lie. gap_strength: of its noise, lowest and highest.
    name_pieces: texts of at most so many pieces are names of things, which are told by their own vectors, across no
        gap; they get the noise instead.
    """

    noise: tuple[float, float] = (0.0, 0.06)
    smoothing: float = 0.1
    project_rate: float = 0.0
    temperature: float = 0.02
    gap: GapModel | None = None
    gap_strength: tuple[float, float] = (0.6, 1.2)
    name_pieces: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.gap_strength[0] <= self.gap_strength[1] < float("inf"):
            raise InvalidValue("gap_strength", f"is {list(self.gap_strength)}, not a lowest and a highest")
        if not 0 <= self.noise[0] <= self.noise[1] < float("inf"):
            raise InvalidValue("noise", f"is {list(self.noise)}, not a lowest and a highest σ")
        if not (0 <= self.smoothing < 1 and 0 <= self.project_rate <= 1 and self.temperature > 0):
            reason = f"are {self.smoothing}, {self.project_rate}, {self.temperature}"
            raise InvalidValue("smoothing, project_rate, temperature", reason)


@dataclass(frozen=True, slots=True)
class TextBatch:
    """vectors: (m, d). words: (m, t) prompt, begin, text, end, padding. groups: (m,). extra: (m, e) or None."""

    vectors: Tensor
    words: Tensor
    groups: Tensor
    extra: Tensor | None

    def to(self, device: torch.device) -> TextBatch:
        extra = None if self.extra is None else self.extra.to(device)
        return TextBatch(self.vectors.to(device), self.words.to(device), self.groups.to(device), extra)

    @property
    def target_count(self) -> int:
        """Pieces and ends that are learnt to say."""
        return int(text_places(self.words).sum())


@dataclass(frozen=True, slots=True)
class Bank:
    """Texts to project onto. vectors: (b, d) of length 1. groups: (b,)."""

    vectors: Tensor
    groups: Tensor

    def to(self, device: torch.device) -> Bank:
        return Bank(self.vectors.to(device), self.groups.to(device))


def collate(items: Sequence[TextItem], max_words: int, prompted: Sequence[bool] | None = None) -> TextBatch:
    """Texts as a batch. A text longer than `max_words` is cut and does not end. prompted: who keeps its prompt."""
    rows = []
    for i, item in enumerate(items):
        ids = item.ids[:max_words].tolist()
        end = [END_ID] if len(item.ids) <= max_words else []
        prompt = item.prompt.tolist() if prompted is not None and prompted[i] else []
        rows.append([*prompt, BEGIN_ID, *ids, *end])
    words = torch.full((len(rows), max(map(len, rows))), PAD_ID)
    for i, row in enumerate(rows):
        words[i, : len(row)] = torch.tensor(row)
    extras = [torch.from_numpy(item.extra) for item in items if item.extra is not None]
    return TextBatch(
        torch.stack([torch.from_numpy(item.vector) for item in items]),
        words,
        torch.tensor([item.group for item in items]),
        torch.stack(extras) if extras else None,
    )


def noisy(vectors: Tensor, noise: tuple[float, float], generator: torch.Generator) -> Tensor:
    """(m, d) vectors of length 1 with Gaussian noise, of length 1 again."""
    low, high = noise
    if high == 0:
        return unit(vectors)
    sigma = low + (high - low) * torch.rand(len(vectors), 1, generator=generator, device=vectors.device)
    drawn = torch.randn(vectors.shape, generator=generator, device=vectors.device)
    return unit(unit(vectors) + sigma * drawn)


def projected(vectors: Tensor, groups: Tensor, bank: Bank, temperature: float) -> Tensor:
    """(m, d) each vector as a mean of the bank's texts, weighted by softmax(cosine / temperature), of length 1.

    Texts of a vector's own group are left out: a photo's true captions are not in the bank when it is captioned.
    """
    scores = unit(vectors) @ bank.vectors.T / temperature
    scores = scores.masked_fill(groups[:, None] == bank.groups, -torch.inf)
    if bool((scores.amax(dim=1) == -torch.inf).any()):
        raise InvalidValue("bank", "holds only texts of one group, so there is nothing to project onto")
    return unit(scores.softmax(dim=1) @ bank.vectors)


def seen_as(batch: TextBatch, objective: TextObjective, bank: Bank | None, generator: torch.Generator) -> Tensor:
    """(m, d) the batch's vectors as the decoder gets them in training."""
    if objective.gap is None:
        vectors = noisy(batch.vectors, objective.noise, generator)
    else:
        vectors = objective.gap.imagine(batch.vectors, objective.gap_strength, generator)
        if objective.name_pieces:
            # An end is counted, too.
            named = text_places(batch.words).sum(dim=1, keepdim=True) <= objective.name_pieces + 1
            vectors = torch.where(named, noisy(batch.vectors, objective.noise, generator), vectors)
    if not objective.project_rate:
        return vectors
    if bank is None:
        raise InvalidValue("bank", "is needed to project onto")
    chance = torch.rand(len(vectors), generator=generator, device=vectors.device)
    chosen = (chance < objective.project_rate).nonzero()[:, 0]
    if not len(chosen):
        return vectors
    return vectors.index_copy(0, chosen, projected(vectors[chosen], batch.groups[chosen], bank, objective.temperature))


def losses(
    model: PrefixDecoder, batch: TextBatch, objective: TextObjective, bank: Bank | None, generator: torch.Generator
) -> Mapping[str, Tensor]:
    """The mean cross entropy of a piece."""
    vectors = seen_as(batch, objective, bank, generator)
    return {"loss": model.loss(vectors, batch.words, batch.extra, objective.smoothing)}
