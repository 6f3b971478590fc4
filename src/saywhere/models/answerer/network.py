"""The network that answers: a question's words look at places of a photo and at each other, block by block.

x_0      = the place where the answer forms; x_1 … x_t = the question's tokens, as a text encoder reads them
block:     x += attend(x, x);  x += attend(x, places);  x += two layers
counts   = Σ_places σ(gate(x_0, place))                    what a softmax, which always sums to 1, cannot say
logits   = two layers of x_0 and the counts; their softmax shares one whole among all answers
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets.checkpoint import CONFIG
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.models.answerer.config import AnswererConfig
from saywhere.models.answerer.judgement import Judgement
from saywhere.models.answerer.second import SecondReader
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.common.modes import seeded
from saywhere.models.common.network import check_size, listed_file
from saywhere.models.folder import built, load_part, save_part

KIND = "answerer"
ANSWERS, JUDGEMENT = "answers.json", "judgement.json"
BOX_NUMBERS = 8
_LARGEST_COUNT = 10
_FIRST_GATE = -3.0
_FAINTEST = 1e-4
"""What is pointed at so little still counts this much, so that a softmax over nothing else stays finite."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerOutput:
    """For P photos with q questions each. logits: (P, q, answers). attention: (P, q, r), how much the answer looks at
    each place, summing to 1; 0 everywhere for a blind network."""

    logits: Tensor
    attention: Tensor


class AnswerNet(nn.Module):
    """answers: what the ids of answers mean; judgement: how its answers are to be taken; `attach` sets both. second:
    makes places of what a second look gives, if that is read; it does not learn here."""

    def __init__(self, config: AnswererConfig) -> None:
        super().__init__()
        self.config = config
        self.answers: AnswerVocabulary | None = None
        self.judgement: Judgement | None = None
        width = config.width
        self.token = nn.Linear(config.text_size, width)
        self.start = nn.Parameter(0.02 * torch.randn(width))
        self.token_norm = nn.LayerNorm(width)
        self.places = None if config.blind else PlaceReader(config)
        self.second = SecondReader(config.second_size, _second_numbers(config)) if config.second_size else None
        self.blocks = nn.ModuleList(AnswerBlock(config) for _ in range(config.layers))
        self.counts = None if config.blind else Counter(config)
        self.norm = nn.LayerNorm(width)
        self.decide = nn.Linear(width, 2 * width)
        self.drop = nn.Dropout(config.answer_dropout)
        self.answer = nn.Linear(2 * width, config.answers)

    @classmethod
    def fresh(cls, config: AnswererConfig, seed: int) -> Self:
        """A network with random weights that depend on the seed alone."""
        with seeded(seed):
            return cls(config)

    def attach(self, answers: AnswerVocabulary, judgement: Judgement | None = None) -> Self:
        """Say what the ids mean, and how answers are to be taken. Another number of answers is refused."""
        check_size("answer vocabulary", len(answers), self.config.answers)
        self.answers, self.judgement = answers, judgement
        return self

    @property
    def device(self) -> torch.device:
        return self.start.device

    def forward(
        self,
        regions: Tensor,
        boxes: Tensor,
        present: Tensor,
        tokens: Tensor,
        read: Tensor,
        pointed: Tensor | None = None,
    ) -> AnswerOutput:
        """regions: (P, r, region_size). boxes: (P, r, 4) xyxy. present: (P, r) bool. tokens: (P, q, t, text_size).

        read: (P, q, t) bool, which tokens are there. pointed: (P, q, r) ≥ 0, how much each question points at each
        place; it multiplies attention before that is made to sum to 1.
        """
        photos, asked = tokens.shape[:2]
        first = self.start.expand(photos * asked, 1, -1)
        x = self.token_norm(torch.cat([first, self.token(tokens).flatten(0, 1)], dim=1))
        there = torch.cat([read.new_ones(photos * asked, 1), read.flatten(0, 1)], dim=1)
        attention = regions.new_zeros(photos, asked, present.shape[1])
        seen: Tensor | None = None
        bias: Tensor | None = None
        if self.places is not None:
            seen = self.places(regions, boxes)
            bias = _pointing(present, pointed, asked)
        for block in self.blocks:
            x, looked = block(x, there, seen, bias)
            attention = attention if looked is None else looked
        answer = x[:, 0].unflatten(0, (photos, asked))
        if self.counts is not None and seen is not None and bias is not None:
            answer = answer + self.counts(answer, seen, bias)
        decided = functional.gelu(self.decide(self.norm(answer)))
        return AnswerOutput(self.answer(self.drop(decided)), attention)

    def save_pretrained(self, folder: str | Path, *, half: bool = True, int8: bool = False) -> None:
        """Weights, config, answers and judgement into a folder. half, int8: see `save_part`; it loads as float32."""
        if self.answers is None:
            raise InvalidValue("model", "does not know its answers", "attach them before saving")
        files = {ANSWERS: self.answers.to_json().encode()}
        if self.judgement is not None:
            files[JUDGEMENT] = self.judgement.to_json().encode()
        save_part(folder, KIND, self.config.to_dict(), self.state_dict(), files, half=half and not int8, int8=int8)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> Self:
        """From a folder, or from the hub ("owner/name"), at rest."""
        part = load_part(source, KIND, revision)
        try:
            config = AnswererConfig.from_dict(part.config)
            network = built(lambda: cls(config), part)
            network.attach(*_attached({name: content.decode() for name, content in part.files.items()}))
        except (InvalidValue, UnknownName, UnicodeDecodeError) as error:
            raise InvalidFile(part.folder / CONFIG, str(error)) from error
        return network.eval()


def _second_numbers(config: AnswererConfig) -> int:
    """Of each place, without the score and the kinds."""
    return config.region_size - config.kinds - 1


def _attached(files: Mapping[str, str]) -> tuple[AnswerVocabulary, Judgement | None]:
    answers = AnswerVocabulary.from_json(listed_file(files, ANSWERS))
    return answers, Judgement.from_json(files[JUDGEMENT]) if JUDGEMENT in files else None


class PlaceReader(nn.Module):
    """Features of places and their boxes → (P, r, width). Each kind of place has a layer of its own."""

    def __init__(self, config: AnswererConfig) -> None:
        super().__init__()
        self.kinds, width = config.kinds, config.width
        self.size = config.region_size - config.kinds
        if self.size < 1:
            raise InvalidValue("region_size", f"is {config.region_size}, not more than the {config.kinds} kinds")
        self.by_kind = nn.Linear(self.size * config.kinds, width, bias=False)
        self.where = nn.Linear(BOX_NUMBERS + config.kinds, width)
        self.norm = nn.LayerNorm(width)
        self.bend = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(config.dropout))
        self.last = nn.LayerNorm(width)

    def forward(self, regions: Tensor, boxes: Tensor) -> Tensor:
        values, kinds = regions[..., : self.size], regions[..., self.size :]
        parted = (kinds[..., :, None] * values[..., None, :]).flatten(-2)
        wide, high = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
        middle = (boxes[..., :2] + boxes[..., 2:]) / 2
        shape = torch.stack([wide, high], dim=-1)
        where = self.where(torch.cat([boxes, 2 * middle - 1, shape, kinds], dim=-1))
        x = self.norm(self.by_kind(parted) + where)
        seen: Tensor = self.last(x + self.bend(x))
        return seen


class AnswerBlock(nn.Module):
    """Tokens look at each other, then at places, then think."""

    def __init__(self, config: AnswererConfig) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.self_norm, self.think_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_in, self.self_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        if not config.blind:
            self.look_norm = nn.LayerNorm(width)
            self.look_query, self.look_out = nn.Linear(width, width), nn.Linear(width, width)
            self.look_in = nn.Linear(width, 2 * width)
        self.think = nn.Sequential(nn.Linear(width, config.inner), nn.GELU(), nn.Linear(config.inner, width))
        self.drop = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, there: Tensor, seen: Tensor | None, bias: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """x: (P q, 1 + t, width). there: (P q, 1 + t). seen: (P, r, width). bias: (P, q, r), added to scores.

        Also gives (P, q, r), how much the first token looks at each place.
        """
        query, key, value = (self._heads(part) for part in self.self_in(self.self_norm(x)).chunk(3, dim=-1))
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=there[:, None, None])
        x = x + self.drop(self.self_out(mixed.transpose(1, 2).flatten(2)))
        looked = None
        if seen is not None and bias is not None:
            found, looked = self._look(self.look_norm(x), seen, bias)
            x = x + self.drop(self.look_out(found))
        return x + self.drop(self.think(self.think_norm(x))), looked

    def _look(self, x: Tensor, seen: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        photos, asked, places = bias.shape
        tokens = x.shape[1]
        # All tokens of a photo's questions look at its places at once: places are never copied.
        query = self._heads(self.look_query(x).reshape(photos, asked * tokens, -1))
        key, value = (self._heads(part) for part in self.look_in(seen).chunk(2, dim=-1))
        scores = (query @ key.transpose(-1, -2)) / math.sqrt(query.shape[-1])
        scores = scores.float() + bias[:, None].repeat_interleave(tokens, dim=2)
        shares = scores.softmax(dim=-1)
        found = (shares.to(value.dtype) @ value).transpose(1, 2).reshape(photos * asked, tokens, -1)
        looked = shares.view(photos, self.heads, asked, tokens, places)[:, :, :, 0].mean(dim=1)
        return found, looked

    def _heads(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class Counter(nn.Module):
    """How many places are what a question asks for, several times over, as numbers that a layer can read."""

    centres: Tensor

    def __init__(self, config: AnswererConfig) -> None:
        super().__init__()
        width, self.counters = config.width, config.counters
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.gate = nn.Linear(width, config.counters)
        nn.init.zeros_(self.gate.weight)
        nn.init.constant_(self.gate.bias, _FIRST_GATE)
        self.out = nn.Linear(config.counters * (_LARGEST_COUNT + 2), width)
        self.register_buffer("centres", torch.arange(_LARGEST_COUNT + 1.0), persistent=False)

    def forward(self, answer: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        """(P, q, width) from (P, q, width) and (P, r, width). bias: (P, q, r), 0 for a place that counts whole."""
        query = self.query(answer).unflatten(-1, (self.counters, -1)).transpose(1, 2)
        key = self.key(seen).unflatten(-1, (self.counters, -1)).transpose(1, 2)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        scores = scores.float() + self.gate(seen).float().transpose(1, 2)[:, :, None]
        counts = (scores.sigmoid() * bias.clamp(max=0).exp()[:, None]).sum(dim=-1).permute(0, 2, 1)
        near = torch.exp(-2 * (counts[..., None] - self.centres) ** 2)
        told = torch.cat([near, counts[..., None].log1p()], dim=-1).flatten(-2)
        added: Tensor = self.out(told)
        return added


def _pointing(present: Tensor, pointed: Tensor | None, asked: int) -> Tensor:
    """(P, q, r) to add to scores: 0 for places that are meant, far below it for places that are not there."""
    absent = torch.zeros(present.shape, device=present.device).masked_fill(~present, -1e4)[:, None]
    if pointed is None:
        return absent.expand(-1, asked, -1)
    return absent + pointed.clamp(min=_FAINTEST).log()
