"""Tuning a photo writer on the measure itself (self-critical training; Rennie et al. 2017, leave-one-out baseline).

For each photo several captions are drawn; each is rewarded by its CIDEr against all captions of the photo, less what it
costs to name a thing that is not there, and made likelier if it beat the others. What boxes are called goes on being
learnt as before, so that it is not forgotten; so does what surroundings are called, if asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.language.coco_aliases import classes_named
from saywhere.language.surroundings import SURROUNDINGS
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID
from saywhere.learn import reward
from saywhere.metrics.captions import DocumentFrequency, cider
from saywhere.models.common.batches import Movable
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.objective import free_patches
from saywhere.models.patchioner.decoder import PhotoStates, PrefixDecoder
from saywhere.models.patchioner.layers import unit
from saywhere.models.patchioner.photo_texts import PhotoTextBatch, PhotoTexts, one_of
from saywhere.models.patchioner.photo_writing import (
    PhotoWriterData,
    PhotoWriterSection,
    PhotoWriterTask,
    seen_texts,
    with_places,
    writer_of,
)


class PhotoRewardSection(PhotoWriterSection, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: as for "patchioner-photo-writer", but captions are drawn. samples: for each photo. sample_words: pieces
    of each, at most. sample_temperature: see `RewardSection`. invented: what each kind of thing that is named and not
    there costs. naming: how much what boxes are called counts. surroundings: whether a part of what lies around things
    goes on being put into words, too, counted as boxes are, where the eye takes it to be. likely_captions: people's
    captions of each photo that go on being learnt by likelihood beside, counted as boxes are, so that the writer stays
    near what people say. Start from a writer that can speak: [data] decoder and eye."""

    samples: int = 5
    sample_words: int = 20
    sample_temperature: float = 1.0
    invented: float = 0.2
    naming: float = 0.3
    likely_captions: int = 0

    def __post_init__(self) -> None:
        reward.check_samples(self.samples, self.sample_words, self.sample_temperature)
        if self.eye is not None:
            raise ValueError("the eye stands still while its writer is rewarded: leave [model.eye] out")


@dataclass(frozen=True, slots=True, eq=False)
class RewardBatch(Movable):
    """B photos. likely: texts that are learnt by likelihood: what their boxes are called, and captions if asked for.
    captions: of each photo. things: that are in it, by name. around: of surroundings, if they are learnt."""

    likely: PhotoTextBatch
    captions: tuple[tuple[str, ...], ...]
    things: tuple[frozenset[str], ...]
    around: Around | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Around(Movable):
    """spoken_of: (B, kinds), of which kinds of surroundings a photo's captions speak. is_free: (B, n), the patches on
    which no thing lies."""

    spoken_of: Tensor
    is_free: Tensor


class PhotoRewardTask(PhotoWriterTask):
    """The photos of "patchioner-photo-writer", put into words by reward instead of likelihood."""

    model_section: ClassVar[type[msgspec.Struct]] = PhotoRewardSection

    def __init__(self, model: PhotoRewardSection, data: PhotoWriterData) -> None:
        super().__init__(model, data)
        self._reward = model
        captions = (self._captions(ids) for ids in self._train.caption_ids())
        self._rarity = DocumentFrequency.of(captions, tokenized=True)
        self._shape = EyeLearner.from_pretrained(data.eye).eye.config if model.surroundings and data.eye else None

    def collate(self, items: Sequence[PhotoTexts], generator: torch.Generator) -> RewardBatch:  # type: ignore[override]
        spoken = None if self._shape is None else [one_of(item.surroundings, generator) for item in items]
        likely = self.text_batch(items, self._reward.likely_captions, self._reward.boxes, generator, spoken)
        captions = tuple(self._captions(item.captions) for item in items)
        marked = (frozenset(self._train.names[kind] for kind in item.photo.classes.tolist()) for item in items)
        things = tuple(
            some.union(*(classes_named(text) for text in said)) for some, said in zip(marked, captions, strict=True)
        )
        return RewardBatch(likely, captions, things, self._around(items))

    def losses(  # type: ignore[override]
        self, model: nn.Module, batch: RewardBatch, generator: torch.Generator
    ) -> Mapping[str, Tensor]:
        """The policy gradient's loss and that of what boxes are called; the mean reward."""
        writer, samples = writer_of(model), self._reward.samples
        with torch.no_grad():
            seen = writer.eye(batch.likely.inputs)
        vectors = unit(seen.whole.float()).repeat_interleave(samples, dim=0)
        photo_states = PhotoStates(seen.states, seen.states.new_ones(len(vectors), seen.states.shape[1] - 1))
        temperature = self._reward.sample_temperature
        drawn = reward.sample(writer.decoder, vectors, self._reward.sample_words, generator, photo_states, temperature)
        rewards = self._rewards(drawn, batch).to(vectors)
        each = rewards.view(-1, samples)
        advantage = (each - (each.sum(dim=1, keepdim=True) - each) / (samples - 1)).flatten()
        said = log_likelihoods(writer.decoder, vectors, drawn, photo_states, temperature)
        loss = -(advantage * said).sum() / (drawn != PAD_ID).sum()
        likely = batch.likely
        if batch.around is not None:
            around = batch.around
            likely = with_places(writer.eye, seen, likely, around.spoken_of, around.is_free, generator)
        named = self._naming_loss(
            writer.decoder, seen_texts(writer.eye, seen, likely, self._reward.loudness), likely.words
        )
        return {"loss": loss + self._reward.naming * named, "reward": rewards.mean(), "naming": named.detach()}

    def counts(self, batch: RewardBatch) -> Mapping[str, float]:  # type: ignore[override]  # noqa: ARG002 - the protocol's
        """None: how long the captions of a batch become is not known before."""
        return {}

    def _naming_loss(self, decoder: PrefixDecoder, seen: tuple[Tensor, PhotoStates], words: Tensor) -> Tensor:
        if not (words != PAD_ID).any():
            return seen[0].sum() * 0
        return decoder.loss(seen[0], words, None, self._reward.smoothing, seen[1])

    def _around(self, items: Sequence[PhotoTexts]) -> Around | None:
        if self._shape is None:
            return None
        spoken_of = torch.zeros(len(items), len(SURROUNDINGS), dtype=torch.bool)
        for number, item in enumerate(items):
            spoken_of[number, [one.kind for one in item.surroundings]] = True
        free = [free_patches(item.photo, self._shape) for item in items]
        return Around(spoken_of, torch.from_numpy(np.stack(free)))

    def _captions(self, ids: Sequence[Sequence[int]]) -> tuple[str, ...]:
        return tuple(self.vocabulary.text(one) for one in ids)

    def _rewards(self, drawn: Tensor, batch: RewardBatch) -> Tensor:
        """(n,) of (n, t) ids."""
        texts = [self.vocabulary.text([token for token in row if token > END_ID]) for row in drawn.tolist()]
        owners = [number // self._reward.samples for number in range(len(texts))]
        truths = {number: list(batch.captions[owner]) for number, owner in enumerate(owners)}
        rated = cider(dict(enumerate(texts)), truths, tokenized=True, df=self._rarity)["per_item"]
        invented = [len(classes_named(text) - batch.things[owner]) for text, owner in zip(texts, owners, strict=True)]
        return torch.tensor(
            [rated[number]["CIDEr"] - self._reward.invented * invented[number] for number in range(len(texts))]
        )


def log_likelihoods(
    decoder: PrefixDecoder, vectors: Tensor, drawn: Tensor, photo_states: PhotoStates, temperature: float = 1.0
) -> Tensor:
    """(n,) of the texts (n, t), ends included, if words are drawn at this temperature."""
    if drawn.ndim != 2:
        raise InvalidValue("texts", f"have shape {tuple(drawn.shape)}, not (n, t)")
    begin = drawn.new_full((len(drawn), 1), BEGIN_ID)
    scores = decoder(vectors, torch.cat([begin, drawn[:, :-1]], dim=1), None, photo_states).float()
    scores = (scores / temperature).log_softmax(dim=-1)
    chosen = scores.gather(2, (drawn - END_ID).clamp(min=0)[..., None])[..., 0]
    likely: Tensor = (chosen * (drawn != PAD_ID)).sum(dim=1)
    return likely
