"""Tuning a decoder on the measure itself (self-critical training; Rennie et al. 2017, leave-one-out baseline).

For each text several captions are drawn; each is rewarded by its CIDEr against all texts of the same group, that is, of
the same photo, and made likelier if it beat the others. Vectors are moved across the gap first, as in `objective`: the
decoder learns to say what a blurred vector still warrants, from text alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID
from saywhere.metrics.captions import DocumentFrequency, cider
from saywhere.models.common.modes import eval_mode
from saywhere.models.patchioner.decoder import PhotoStates, PrefixDecoder
from saywhere.models.patchioner.objective import TextBatch, seen_as
from saywhere.models.patchioner.tasks import DecoderSection, DecoderTask, TextData


class RewardSection(DecoderSection, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: as for "patchioner-decoder". samples: captions drawn for each text. sample_words: pieces of each, at
    most. sample_temperature: of the drawing, and so of the policy that is rewarded: below 1 draws are as good as those
    that a caption is chosen from, so that good captions are told from better ones instead of from nonsense. Start from
    a decoder that can speak: train.init_from."""

    samples: int = 5
    sample_words: int = 20
    sample_temperature: float = 1.0

    def __post_init__(self) -> None:
        check_samples(self.samples, self.sample_words, self.sample_temperature)
        if self.sample_words > self.max_words:
            raise ValueError("sample_words must be from 1 to max_words")


class RewardTask(DecoderTask):
    """The texts of "patchioner-decoder", learnt by reward instead of likelihood."""

    model_section: ClassVar[type[msgspec.Struct]] = RewardSection

    def __init__(self, model: RewardSection, data: TextData) -> None:
        super().__init__(model, data)
        self._samples, self._sample_words = model.samples, model.sample_words
        self._sample_temperature = model.sample_temperature
        self._references: dict[int, list[str]] = {}
        for item in self._train:
            self._references.setdefault(item.group, []).append(self.vocabulary.text(item.ids.tolist()))
        if len(self._references) < 2:
            raise InvalidValue("texts", "are all of one group: CIDEr needs several to tell what is rare")
        self._rarity = DocumentFrequency.of(self._references.values(), tokenized=True)

    def losses(self, model: nn.Module, batch: TextBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        """The policy gradient's loss, and the mean reward."""
        decoder = model if isinstance(model, PrefixDecoder) else None
        if decoder is None:
            raise TypeError(f"a decoder is rewarded, not a {type(model).__name__}")
        bank = None if self._bank is None else self._bank.to(batch.vectors.device)
        vectors = seen_as(batch, self.objective, bank, generator).repeat_interleave(self._samples, dim=0)
        drawn = sample(decoder, vectors, self._sample_words, generator, temperature=self._sample_temperature)
        rewards = self._rewards(drawn, batch.groups.repeat_interleave(self._samples)).to(vectors)
        each = rewards.view(-1, self._samples)
        others = (each.sum(dim=1, keepdim=True) - each) / (self._samples - 1)
        advantage = (each - others).flatten()
        begin = drawn.new_full((len(drawn), 1), BEGIN_ID)
        said = drawn != PAD_ID
        scores = decoder(vectors, torch.cat([begin, drawn[:, :-1]], dim=1)) / self._sample_temperature
        scores = scores.log_softmax(dim=-1)
        chosen = scores.gather(2, (drawn - END_ID).clamp(min=0)[..., None])[..., 0]
        # Over the words of the true texts, not of the drawn ones: how long others' captions are must not matter.
        loss = -(advantage[:, None] * chosen * said).sum() / (batch.target_count * self._samples)
        return {"loss": loss, "reward": rewards.mean()}

    def _rewards(self, drawn: Tensor, groups: Tensor) -> Tensor:
        """(n,) CIDEr of (n, t) ids against the texts of their groups."""
        texts = [self.vocabulary.text([token for token in row if token > END_ID]) for row in drawn.tolist()]
        truths = {number: self._references[group] for number, group in enumerate(groups.tolist())}
        rated = cider(dict(enumerate(texts)), truths, tokenized=True, df=self._rarity)["per_item"]
        return torch.tensor([rated[number]["CIDEr"] for number in range(len(texts))])


def check_samples(samples: int, words: int, temperature: float) -> None:
    """Raise if so many captions of so many words, drawn at this temperature, cannot be judged against each other."""
    if samples < 2:
        raise ValueError("samples must be at least 2: each is judged against the others")
    if words < 1:
        raise ValueError("sample_words must be at least 1")
    if not 0 < temperature < float("inf"):
        raise ValueError("sample_temperature must be above 0")


def sample(
    model: PrefixDecoder,
    vectors: Tensor,
    most: int,
    generator: torch.Generator,
    photo_states: PhotoStates | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """(n, t ≤ most) ids drawn word by word from the decoder: pieces, END_ID where it ended, then PAD_ID. photo_states:
    of photos, for a decoder that attends to them."""
    unknown = model.vocabulary.unknown_id
    begin = torch.full((len(vectors), 1), BEGIN_ID, device=vectors.device)
    drawn: list[Tensor] = []
    with eval_mode(model):
        steps = model.steps(vectors, begin, most, photo_states=photo_states)
        scores, ended = steps.start(), torch.zeros(len(vectors), dtype=torch.bool, device=vectors.device)
        for place in range(most):
            if unknown is not None:
                scores[:, unknown - END_ID] = -torch.inf
            tokens = torch.multinomial((scores.float() / temperature).softmax(dim=-1), 1, generator=generator)[:, 0]
            drawn.append(torch.where(ended, PAD_ID, tokens + END_ID))
            ended = ended | (tokens == 0)
            if bool(ended.all()) or place + 1 == most:
                break
            scores = steps.advance(tokens)
    return torch.stack(drawn, dim=1)
