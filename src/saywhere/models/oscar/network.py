"""Oscar: a single stream of caption, object tags and regions through BERT (Li et al. 2020; VinVL, Zhang et al. 2021).

[CLS] caption [SEP] (40 slots) | tags [SEP] (to 70) | at most 50 regions, each a feature and 6 numbers of its box.
`mask` says who sees whom. Places of text have learnt positions and types; regions have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.attended import Attended, TokenKind
from saywhere.models.common.batches import Packed
from saywhere.models.common.modes import eval_mode, seeded
from saywhere.models.oscar.batch import BOX_SIZE, Context, Reader, TaggedCaptionBatch
from saywhere.models.oscar.config import OBJECT, OscarConfig
from saywhere.models.oscar.layers import Layer, initialise
from saywhere.models.oscar.mask import additive, attention_mask, twinned_mask
from saywhere.models.oscar.words import OwnWords, Words
from saywhere.models.region_source import RegionSource
from saywhere.models.search import BEAM, GenerationConfig, Written
from saywhere.models.tagged_regions import TaggedRegions

CAPTION_TYPE, TAG_TYPE = 0, 1


class Oscar(nn.Module):
    """The captioner. config: its shape. words: what its ids mean."""

    def __init__(self, config: OscarConfig, words: Words) -> None:
        super().__init__()
        if words.size > config.words:
            raise InvalidValue("words", f"are {words.size:,}, but the config has room for {config.words:,}")
        self.config, self.reader = config, Reader(config, words)
        self.regions_from: RegionSource | None = None
        width = config.width
        self.words = nn.Embedding(config.words, width)
        self.positions = nn.Embedding(config.text_slots, width)
        self.types = nn.Embedding(2, width)
        self.levels = nn.Embedding(len(config.levels), width) if len(config.levels) > 1 else None
        self.text_norm = nn.LayerNorm(width, config.norm_epsilon)
        self.regions = nn.Linear(config.region_size + BOX_SIZE, width)
        self.region_norm = nn.LayerNorm(width, config.norm_epsilon) if config.norm_regions else nn.Identity()
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.head = nn.Linear(width, width)
        self.head_norm = nn.LayerNorm(width, config.norm_epsilon)
        self.word_bias = nn.Parameter(torch.zeros(config.words))
        self.drop = nn.Dropout(config.dropout)
        initialise(self, width)
        if self.levels is not None:
            # All levels start alike; what is learnt is how they differ.
            nn.init.zeros_(self.levels.weight)

    @classmethod
    def fresh(cls, config: OscarConfig, vocabulary: Vocabulary, seed: int) -> Oscar:
        """A network with random weights that depend on the seed alone. config.words: len(vocabulary) + MARKERS."""
        words = OwnWords(vocabulary)
        if words.size != config.words:
            reason = f"gives {words.size:,} ids with its markers, but the config says {config.words:,}"
            raise InvalidValue("vocabulary", reason)
        with seeded(seed):
            return cls(config, words)

    @classmethod
    def from_bert(cls, source: str | Path, region_size: int, levels: Sequence[str] = (OBJECT,), seed: int = 0) -> Oscar:
        """See `saywhere.models.oscar.bert`."""
        from saywhere.models.oscar.bert import oscar_from_bert

        return oscar_from_bert(source, region_size, levels, seed)

    @classmethod
    def from_released(cls, folder: str | Path, levels: Sequence[str] = (OBJECT,)) -> Oscar:
        """A published Oscar or VinVL; see `saywhere.models.oscar.released`."""
        from saywhere.models.oscar.released import oscar_from_released

        return oscar_from_released(folder, levels)

    @property
    def coding(self) -> Words:
        """What the ids mean."""
        return self.reader.words

    @property
    def stack(self) -> list[Layer]:
        """The layers, first to last."""
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    @property
    def device(self) -> torch.device:
        return self.words.weight.device

    def forward(self, batch: TaggedCaptionBatch, places: Tensor) -> Tensor:
        """(b, k, words) scores of what stands at some places of the captions. places: (b, k), any that are there."""
        x = torch.cat([self.embed_captions(batch.captions, batch.levels), self.embed_context(batch.context)], dim=1)
        mask = attention_mask(batch.there, batch.context.there)
        return self.say(self._at(x, torch.cat([batch.there, batch.context.there], dim=1), mask, places))

    def every_word(self, batch: TaggedCaptionBatch) -> Tensor:
        """(b, c − 1, words) scores of every place but [CLS], each read from a [MASK] as when a caption is written.

        Scores of places that are padding mean nothing.
        """
        captions, there = batch.captions, batch.there
        twins = torch.full_like(captions[:, 1:], self.coding.mask_id)
        x = torch.cat(
            [
                self.embed_captions(captions, batch.levels),
                self.embed_captions(twins, batch.levels, start=1),
                self.embed_context(batch.context),
            ],
            dim=1,
        )
        real = torch.cat([there, there[:, 1:], batch.context.there], dim=1)
        places = torch.arange(twins.shape[1], device=x.device) + captions.shape[1]
        return self.say(self._at(x, real, twinned_mask(there, batch.context.there), places.expand_as(twins)))

    def say(self, states: Tensor) -> Tensor:
        """(…, words) scores from (…, width) states."""
        hidden = self.head_norm(functional.gelu(self.head(states)))
        return functional.linear(hidden, self.words.weight, self.word_bias)

    def embed_captions(self, ids: Tensor, levels: Tensor, start: int = 0) -> Tensor:
        """(b, n, width) of (b, n) ids that stand from slot `start` on, at (b,) levels."""
        kind = self.types.weight[CAPTION_TYPE] + self.positions.weight[start : start + ids.shape[1]]
        x = self.words(ids) + kind
        if self.levels is not None:
            x = x + self.levels(levels)[:, None]
        out: Tensor = self.drop(self.text_norm(x))
        return out

    def embed_context(self, context: Context) -> Tensor:
        """(b, t + r, width)."""
        first = self.config.caption_slots
        kind = self.types.weight[TAG_TYPE] + self.positions.weight[first : first + context.tags.shape[1]]
        tags = self.drop(self.text_norm(self.words(context.tags) + kind))
        return torch.cat([tags, self.drop(self.region_norm(self.regions(context.regions)))], dim=1)

    def attend(
        self, images: Sequence[TaggedRegions], captions: Sequence[str] | None = None, level: str | None = None
    ) -> Attended:
        """What every layer attends to, and the last states. Without captions: [CLS], tags, [SEP], regions."""
        number = self.config.level_number(level)
        if captions is not None and len(captions) != len(images):
            raise InvalidValue("captions", f"there are {len(captions)} for {len(images)} images")
        batch = self.reader.batch(images, captions or [""] * len(images), [self.config.levels[number]] * len(images))
        if captions is None:
            batch = TaggedCaptionBatch(
                batch.context, batch.captions[:, :1], torch.ones_like(batch.lengths), batch.levels
            )
        parts, index = _parts(batch)
        with eval_mode(self):
            moved = batch.to(self.device)
            x = torch.cat([self.embed_captions(moved.captions, moved.levels), self.embed_context(moved.context)], 1)
            mask, layers = additive(attention_mask(moved.there, moved.context.there)), []
            for layer in self.stack:
                x, shares = layer.explained(x, mask)
                layers.append(shares.cpu())
        there = parts != TokenKind.PAD
        # Nobody sees padding; what padding sees is nothing either.
        shown = tuple(shares * there[:, None, :, None] for shares in layers)
        return Attended(shown, x.cpu() * there[:, :, None], parts, index)

    def write(
        self, images: Sequence[TaggedRegions], level: str | None = None, how: GenerationConfig = BEAM
    ) -> list[Written]:
        """A caption for each image. level: one of the config's, by default the first."""
        from saywhere.models.oscar.decode import write

        return write(self, images, level, how)

    def save_pretrained(self, folder: str | Path, *, half: bool = False) -> None:
        """Weights, config and vocabulary or tokenizer into a folder. half: store float16, which loads as float32."""
        from saywhere.models.oscar.pretrained import save_oscar

        save_oscar(self, folder, half=half)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> Oscar:
        """A network in eval mode, from a folder or the hub."""
        from saywhere.models.oscar.pretrained import load_oscar

        return load_oscar(source, revision)

    def _at(self, x: Tensor, there: Tensor, mask: Tensor, places: Tensor) -> Tensor:
        """(b, k, width) last states at (b, k) places of x, (b, n, width), where (b, n) tells what is there."""
        packed, added = Packed.of(there), additive(mask)
        # Row of each place among those that are there.
        rows = (there.flatten().cumsum(0) - 1).view_as(there).gather(1, places)
        x = packed.pack(x)
        *first, last = self.stack
        for layer in first:
            x = layer(x, added, packed)
        return last.at(x, added, packed, rows, places)


def _parts(batch: TaggedCaptionBatch) -> tuple[Tensor, Tensor]:
    """(b, n) `TokenKind` of every place, and which tag or region it is."""
    context, there = batch.context, batch.there
    caption = torch.where(there, TokenKind.CAPTION, TokenKind.PAD)
    places = torch.arange(caption.shape[1])
    caption[(there & (places == 0)) | ((places == batch.lengths[:, None] - 1) & (places > 0))] = TokenKind.SPECIAL
    tags = torch.where(context.tag_index >= 0, TokenKind.TAG, TokenKind.SPECIAL).masked_fill(
        ~context.tags_there, TokenKind.PAD
    )
    regions = torch.where(context.regions_there, TokenKind.REGION, TokenKind.PAD)
    numbers = torch.arange(regions.shape[1]).expand_as(regions).masked_fill(~context.regions_there, -1)
    index = torch.cat([torch.full_like(caption, -1), context.tag_index, numbers], dim=1)
    return torch.cat([caption, tags, regions], dim=1), index
