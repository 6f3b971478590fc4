"""The paper's baselines: a standard encoder–decoder transformer for each task.

"trace": regions and caption into the encoder, boxes out of the decoder. "caption": regions and trace in, words out.
"describe", the baseline of Task 3: regions in, words out. Parts, sizes and embeddings are those of MITR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.models.common.batches import padding_mask
from saywhere.models.common.modes import eval_mode, seeded, seeded_dropout
from saywhere.models.mitr.batch import Batch, Images, trace_of
from saywhere.models.mitr.config import MitrConfig
from saywhere.models.mitr.decode import BEAM, MOST_WORDS, boxes_one_by_one, written
from saywhere.models.mitr.image import PatchEncoder
from saywhere.models.mitr.layers import (
    BOX_SIZE,
    ROW_OFFSET,
    FeedForward,
    KeysValues,
    Norm,
    RegionEmbedding,
    TraceEmbedding,
    WordEmbedding,
    as_keys,
    causal_mask,
    initialise,
    masked_boxes,
    nowhere,
    shifted_boxes,
    shifted_words,
)
from saywhere.models.mitr.losses import caption_loss, trace_loss
from saywhere.models.mitr.network import EncoderLayer, StreamLayer, region_tensors
from saywhere.models.mitr.steps import RowSteps, StreamSteps, embedded, with_area
from saywhere.models.search import GenerationConfig, Hypothesis

TASKS = ("trace", "caption", "describe")


class DecoderLayer(StreamLayer):
    """A standard layer: the text or trace looks at itself, then at the encoder's output; then it is fed forward."""

    def __init__(self, config: MitrConfig) -> None:
        super().__init__(config)
        self.feed_norm = Norm(config.width)
        self.feed = FeedForward(config.width, config.feed_forward, config.dropout)

    def see(self, x: Tensor, image: KeysValues, image_mask: Tensor | None) -> Tensor:
        x = super().see(x, image, image_mask)
        out: Tensor = x + self.drop(self.feed(self.feed_norm(x)))
        return out


@dataclass(frozen=True, slots=True)
class DecoderSource:
    """What the decoder looks at: keys and values for each layer, and their mask (B, 1, 1, n)."""

    keys_values: tuple[KeysValues, ...]
    mask: Tensor


class Baseline(nn.Module):
    """An encoder–decoder for one of `TASKS`."""

    def __init__(self, config: MitrConfig, task: str) -> None:
        super().__init__()
        if task not in TASKS:
            raise UnknownName("task of a baseline", str(task), TASKS)
        self.config, self.task = config, task
        width = config.width
        self.eye = PatchEncoder(config.region_size, config.photo_px) if config.photo_px else None
        self.regions = RegionEmbedding(config.region_size, width, config.input_dropout)
        self.words = WordEmbedding(config.words, width, config.dropout)
        self.trace = TraceEmbedding(width, config.input_dropout) if task != "describe" else None
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.encoder_norm = Norm(width)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.decoder_norm = Norm(width)
        self.out = nn.Linear(width, BOX_SIZE if task == "trace" else config.words + 1)
        for name, part in self.named_children():
            if name not in ("eye", "regions"):
                initialise(part)

    @classmethod
    def fresh(cls, config: MitrConfig, task: str, seed: int) -> Baseline:
        """A network with random weights that depend on the seed alone."""
        with seeded(seed):
            return cls(config, task)

    def layers(self) -> Iterator[DecoderLayer]:
        return (cast(DecoderLayer, layer) for layer in self.decoder)

    def encode(self, images: Images, words: Tensor, boxes: Tensor, lengths: Tensor) -> DecoderSource:
        """Regions, and what the task is given: words (B, T) or boxes (B, T, 5)."""
        features, region_boxes, mask = region_tensors(images, self.eye, self.config.region_size)
        x = self.regions(features, region_boxes)
        if self.trace is not None:
            given = self.words(words) if self.task == "trace" else self.trace(boxes)
            x = torch.cat([x, given], dim=1)
            mask = torch.cat([mask, padding_mask(lengths, given.shape[1])], dim=1)
        for layer in self.encoder:
            x = layer(x, as_keys(mask))
        seen = self.encoder_norm(x)
        return DecoderSource(tuple(layer.image_attention.keys_values(seen) for layer in self.layers()), as_keys(mask))

    def embed(self) -> nn.Module:
        """What embeds the decoder's input."""
        return self.trace if self.task == "trace" and self.trace is not None else self.words

    def decode(self, source: DecoderSource, read: Tensor) -> Tensor:
        """(B, T, …) boxes or logits, place by place, from boxes or words shifted right."""
        x: Tensor = self.embed()(read)
        causal = causal_mask(x.shape[1], x.shape[1], x.device)
        for layer, keys_values in zip(self.layers(), source.keys_values, strict=True):
            x = layer(x, causal, keys_values, source.mask)
        return self.head(x)

    def head(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.decoder_norm(x))
        return out.sigmoid() if self.task == "trace" else out

    def forward(self, batch: Batch, generator: torch.Generator) -> dict[str, Tensor]:
        return losses(self, batch, generator)


def losses(
    model: Baseline, batch: Batch, generator: torch.Generator, trace_mask_rate: float = 0.0, guided: int = 0
) -> dict[str, Tensor]:
    """The loss of the model's task, as "loss" and under its name.

    trace_mask_rate: how many boxes that a "trace" baseline reads are hidden; guided: along how many key boxes a
    "caption" baseline writes; both as in `ObjectiveSettings`.
    """
    with seeded_dropout(generator, model):
        source = model.encode(batch.images, batch.words, *trace_of(batch, guided))
        if model.task == "trace":
            seen = masked_boxes(batch.boxes, trace_mask_rate, generator)
            predicted = model.decode(source, shifted_boxes(seen))
            loss = trace_loss(predicted, batch.boxes, batch.located)
            return {"loss": loss, "trace": loss}
        read, rows = shifted_words(batch.words, batch.lengths)
        loss = caption_loss(model.decode(source, read), rows, padding_mask(batch.lengths + 1, read.shape[1]))
        return {"loss": loss, "caption": loss}


def counts(batch: Batch, task: str) -> dict[str, int]:
    """Over how many located words, or words and ends, the loss of a baseline for this task averages."""
    return {"loss": int(batch.located.sum() if task == "trace" else (batch.lengths + 1).sum())}


class BaselineSteps(RowSteps):
    """A baseline's decoder, one place at a time, with its keys and values kept."""

    def __init__(self, model: Baseline, source: DecoderSource, capacity: int) -> None:
        self.model = model
        self.stream = StreamSteps(model.layers(), source.keys_values, source.mask, capacity)
        super().__init__(len(source.mask), source.mask.device, self.stream.caches, (self.stream.seen,))

    def advance(self, tokens: Tensor) -> Tensor:
        return self.read(tokens + ROW_OFFSET)

    def read(self, values: Tensor) -> Tensor:
        """The next place: (rows,) ids or (rows, 5) boxes to logits or boxes."""
        x = self.stream.advance(embedded(self.model.embed(), values, self.place))
        self.place += 1
        return self.model.head(x)


def caption(model: Baseline, source: DecoderSource, how: GenerationConfig = BEAM) -> list[Hypothesis]:
    """Words for each image, by a "caption" or "describe" baseline."""
    if model.task == "trace":
        raise InvalidValue("baseline", "this one points, it does not speak", "make it for the task 'caption'")
    with eval_mode(model):
        return written(BaselineSteps(model, source, how.max_words or MOST_WORDS), how, len(source.mask))


def trace(model: Baseline, source: DecoderSource, lengths: Tensor, *, hidden: bool = False) -> Tensor:
    """(B, T, 5) a box for each word, by a "trace" baseline; zeros after the last. hidden: as in `decode.trace`."""
    if model.task != "trace":
        raise InvalidValue("baseline", "this one speaks, it does not point", "make it for the task 'trace'")
    mask = padding_mask(lengths, int(lengths.max()))
    with eval_mode(model):
        if hidden:
            return model.decode(source, shifted_boxes(nowhere(mask))) * mask[:, :, None]
        steps = BaselineSteps(model, source, mask.shape[1])
        return boxes_one_by_one(lambda boxes: with_area(steps.read(boxes)), mask)
