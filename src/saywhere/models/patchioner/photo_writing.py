"""How a decoder learns to read photos: captions of the whole and names of boxes, from the hidden states of an eye.

The eye stands still, or learns beside the decoder all that it learns by itself. Each photo gives several texts a step,
which share the work of looking at it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import PhotoPixels
from saywhere.models.eye.objective import thinned
from saywhere.models.eye.surroundings import surroundings_loss, surroundings_seen
from saywhere.models.eye.task import EyeData, EyeSection, EyeTask, learner_of
from saywhere.models.patchioner.decoder import DecoderConfig, PhotoStates, PrefixDecoder
from saywhere.models.patchioner.layers import unit
from saywhere.models.patchioner.photo_texts import (
    NOTHING,
    WHOLE,
    PhotoTextBatch,
    PhotoTextItems,
    PhotoTexts,
    SurroundingIds,
    box_cells,
    drawn,
    drawn_evenly,
    one_of,
    text_batch_of,
    varied,
    with_surroundings,
)
from saywhere.vision.eye import Seen

EYE_FOLDER = "eye"
_VALIDATION_BATCH = 25
_CAPTIONS_MEASURED = 2
_BOXES_MEASURED = 2
_EYE_MEASURED = 5
_SIDES = ("left", "right")
"""Words that are wrong in the mirror."""


class PhotoWriterSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: the decoder and what it learns in a step.

    captions, boxes: texts of a photo in a step. smoothing: of the labels. dropout: of the
    decoder. shift: how far vectors are moved at random, so that the decoder leans on the photo too. named: how often a
    box's class is told by its vector, as a detector's name would, `loudness` times as loud as what the eye sees.
    eye: how the eye learns beside; without this table it stands still. words: how much the words count beside what the
    eye learns by itself. surroundings: whether a part of what lies around things is put into words too, where the eye
    that learns takes it to be.
    """

    eye: EyeSection | None = None
    words: float = 1.0

    captions: int = 4
    boxes: int = 3
    smoothing: float = 0.1
    dropout: float = 0.1
    shift: float = 0.02
    named: float = 0.5
    loudness: float = 3.0
    surroundings: bool = False

    def __post_init__(self) -> None:
        if self.surroundings and self.eye is None:
            raise ValueError("surroundings need an eye that learns beside: add a table [model.eye]")


class PhotoWriterData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder that `saywhere build eye` wrote. eye: the folder of an eye; needed if it stands still. decoder:
    of a decoder to begin with, which may have learnt from texts alone. validation: photos, at most; an eye that learns
    beside is measured on five times as many. photos: a store that `saywhere build coco` wrote, for an eye whose trunk
    learns from pixels."""

    folder: Path
    photos: Path | None = None
    decoder: Path
    eye: Path | None = None
    validation: int = 200


class PhotoWriter(nn.Module):
    """An eye, and a decoder that learns to put into words what it sees."""

    def __init__(self, eye: EyeLearner, decoder: PrefixDecoder) -> None:
        super().__init__()
        self.eye, self.decoder = eye, decoder

    def save_pretrained(self, folder: str | Path, *, half: bool = False) -> None:
        """The decoder, as `PrefixDecoder.from_pretrained` reads it, and the eye in the folder's folder "eye"."""
        self.decoder.save_pretrained(folder, half=half)
        self.eye.save_pretrained(Path(folder) / EYE_FOLDER, half=half)


class PhotoWriterTask:
    """Photos → captions of the whole and of boxes."""

    model_section: ClassVar[type[msgspec.Struct]] = PhotoWriterSection
    data_section: ClassVar[type[msgspec.Struct]] = PhotoWriterData

    def __init__(self, model: PhotoWriterSection, data: PhotoWriterData) -> None:
        self._section, self._data = model, data
        start = PrefixDecoder.from_pretrained(data.decoder)
        self.vocabulary, self._start = start.vocabulary, start
        measured = _EYE_MEASURED * data.validation
        eye_data = EyeData(folder=data.folder, eye=data.eye, photos=data.photos, validation=measured)
        self._eye_task = None if model.eye is None else EyeTask(model.eye, eye_data)
        if self._eye_task is None and data.photos is not None:
            raise InvalidValue("[data] photos", "are for an eye that learns", "add a table [model.eye]")
        pixels = None
        if self._eye_task is not None and data.photos is not None:
            pixels = PhotoPixels(data.photos, self._eye_task.config.input_px)
        self._train, self._validation = (
            PhotoTextItems(
                data.folder, split, start.vocabulary, start.config.max_words, pixels, captioned=not learnt_from
            )
            for split, learnt_from in (("train", model.eye is not None), ("validation", False))
        )

    def build(self, generator: torch.Generator) -> nn.Module:
        eye = self._eye(generator)
        shape = self._start.config.to_dict() | {"states_size": eye.eye.config.size, "dropout": self._section.dropout}
        seed = int(torch.randint(2**31, (), generator=generator))
        decoder = PrefixDecoder.fresh(DecoderConfig.from_dict(shape), self.vocabulary, seed)
        if self._start.config.states_size not in (0, eye.eye.config.size):
            raise InvalidValue("[data] decoder", "reads the hidden states of another eye")
        decoder.load_state_dict(self._start.state_dict(), strict=False)
        return PhotoWriter(eye, decoder)

    def _eye(self, generator: torch.Generator) -> EyeLearner:
        if self._eye_task is not None:
            return learner_of(self._eye_task.build(generator))
        if self._data.eye is None:
            raise InvalidValue(
                "[data] eye", "is missing", "name one that stands still, or say in [model.eye] how it learns"
            )
        return EyeLearner.from_pretrained(self._data.eye).requires_grad_(requires_grad=False)

    def train_items(self) -> PhotoTextItems:
        return self._train

    def collate(self, items: Sequence[PhotoTexts], generator: torch.Generator) -> PhotoTextBatch:
        if self._data.photos is not None and self._section.eye is not None and self._section.eye.augment:
            items = [self._varied(item, generator) for item in items]
        around = [one_of(item.surroundings, generator) for item in items] if self._section.surroundings else None
        batch = self.text_batch(items, self._section.captions, self._section.boxes, generator, around)
        if self._eye_task is None:
            return batch
        return replace(batch, known=self._eye_task.as_they_are([item.photo for item in items], generator))

    def _varied(self, item: PhotoTexts, generator: torch.Generator) -> PhotoTexts:
        return varied(item, {i for word in _SIDES for i in self.vocabulary.encode([word]).ids}, generator)

    def text_batch(
        self,
        items: Sequence[PhotoTexts],
        captions: int,
        boxes: int,
        generator: torch.Generator,
        around: Sequence[SurroundingIds] | None = None,
    ) -> PhotoTextBatch:
        """Photos with so many captions and so many boxes each, drawn at random; and with what is around, if given."""
        side = self._cell_grid(items[0])
        even = np.full((side, side), 1 / side**2, np.float32)
        cells, kinds, texts = [], [], []
        for number, item in enumerate(items):
            for i in drawn(len(item.captions), captions, generator):
                cells.append(even)
                kinds.append(WHOLE)
                texts.append([] if i is None else item.captions[i])
            for i in drawn_evenly([one.kind for one in item.region_names], boxes, generator):
                box, names, kind = NOTHING if i is None else item.region_names[i]
                cells.append(box_cells(box, side))
                named = float(torch.rand((), generator=generator)) < self._section.named
                kinds.append(kind if named else -1)
                texts.append(names[drawn(len(names), 1, generator)[0] or 0])
            if around is not None:
                cells.append(np.zeros_like(even))
                kinds.append(-1)
                texts.append(around[number].phrase)
        batch = text_batch_of(items, cells, kinds, texts)
        if around is None:
            return batch
        return replace(batch, surroundings=torch.tensor([one.kind for one in around]))

    def losses(self, model: nn.Module, batch: PhotoTextBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        writer = writer_of(model)
        parts: dict[str, Tensor] = {}
        rows = None
        if batch.known is None or self._eye_task is None:
            with torch.no_grad():
                seen = writer.eye(batch.inputs)
        else:
            rows = self._eye_task.drawn_patches(len(batch.inputs), generator).to(batch.inputs.device)
            thin = thinned(batch.known, rows)
            seen = self._eye_task.seen(writer.eye, thin.inputs, rows)
            parts = self._eye_task.eye_losses(writer.eye, seen, thin, generator)
            if batch.surroundings is not None:
                with torch.no_grad():
                    _, shown = surroundings_loss(writer.eye, seen, thin)
                batch = with_surroundings(batch, shown, rows, batch.surroundings, generator)
        vectors, photo_states = seen_texts(writer.eye, seen, batch, self._section.loudness, rows)
        noise = torch.randn(vectors.shape, generator=generator).to(vectors)
        shifted = unit(vectors) + self._section.shift * noise
        kept = (batch.words != 0).any(dim=1)
        if not kept.any():
            return {"loss": writer.decoder.words.weight.sum() * 0, **parts}
        said = writer.decoder.loss(shifted, batch.words, None, self._section.smoothing, photo_states)
        if not parts:
            return {"loss": said}
        return {**parts, "loss": parts["loss"] + self._section.words * said, "said": said.detach()}

    def counts(self, batch: PhotoTextBatch) -> Mapping[str, float]:
        if self._eye_task is not None and batch.known is not None:
            return self._eye_task.counts(batch.known)
        return {"loss": float((batch.words[:, 1:] != 0).sum())}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """loss: mean cross entropy of a piece of captions, box_loss: of what boxes are called first."""
        writer = writer_of(model)
        totals, said = {"loss": 0.0, "box_loss": 0.0}, {"loss": 0, "box_loss": 0}
        count = min(self._data.validation, len(self._validation))
        for first in range(0, count, _VALIDATION_BATCH):
            items = [self._validation[i] for i in range(first, min(first + _VALIDATION_BATCH, count))]
            for name, batch in (("loss", self._whole_batch(items)), ("box_loss", self._box_batch(items))):
                moved = batch.to(next(writer.parameters()).device)
                looks = writer.eye if self._eye_task is None else partial(self._eye_task.seen, writer.eye)
                seen = looks(moved.inputs)
                vectors, photo_states = seen_texts(writer.eye, seen, moved, self._section.loudness)
                pieces = int((moved.words[:, 1:] != 0).sum())
                if pieces:
                    totals[name] += pieces * float(writer.decoder.loss(vectors, moved.words, None, 0, photo_states))
                    said[name] += pieces
        measures = {name: total / said[name] for name, total in totals.items() if said[name]}
        return measures if self._eye_task is None else measures | self._eye_task.validate(writer.eye)

    def fingerprint(self) -> str:
        return f"{self._train.fingerprint}-{len(self._train)}-{len(self._validation)}"

    def _whole_batch(self, items: Sequence[PhotoTexts]) -> PhotoTextBatch:
        side = self._cell_grid(items[0])
        texts = [
            item.captions[i] if i < len(item.captions) else [] for item in items for i in range(_CAPTIONS_MEASURED)
        ]
        even = np.full((side, side), 1 / side**2, np.float32)
        return text_batch_of(items, [even] * len(texts), [WHOLE] * len(texts), texts)

    def _box_batch(self, items: Sequence[PhotoTexts]) -> PhotoTextBatch:
        side = self._cell_grid(items[0])
        each = range(_BOXES_MEASURED)
        chosen = [item.region_names[i] if i < len(item.region_names) else NOTHING for item in items for i in each]
        cells = [box_cells(one.box_xyxy, side) for one in chosen]
        return text_batch_of(items, cells, [-1] * len(chosen), [one.names[0] for one in chosen])

    def _cell_grid(self, item: PhotoTexts) -> int:
        if self._eye_task is not None:
            return self._eye_task.config.cell_grid
        # Patches are cut in two each way; see `EyeConfig.cuts`.
        return 2 * math.isqrt(len(item.photo.inputs) - 1)


def seen_texts(
    eye: EyeLearner, seen: Seen, batch: PhotoTextBatch, loudness: float, rows: Tensor | None = None
) -> tuple[Tensor, PhotoStates]:
    """(texts, d) the vector of each text's region, and the photos to attend to. rows: (B, kept), the patches that were
    seen, if not all."""
    photos, each = len(seen.whole), len(batch.is_whole) // len(seen.whole)
    config = eye.eye.config
    grid, cuts = config.grid, config.cuts
    cells = batch.cells.view(photos, each, grid, cuts, grid, cuts)
    by_patch = cells.transpose(3, 4).reshape(photos, each, grid * grid, cuts * cuts)
    if rows is not None:
        by_patch = by_patch.gather(2, rows[:, None, :, None].expand(-1, each, -1, cuts * cuts))
    means = by_patch.flatten(2) @ seen.cells.flatten(1, 2).to(by_patch.dtype)
    wholes = seen.whole[:, None].expand(-1, each, -1)
    vectors = torch.where(batch.is_whole.view(photos, each, 1), unit(wholes.float()), unit(means.float())).flatten(0, 1)
    names = eye.name_vectors[batch.classes.clamp(min=0)] * (batch.classes >= 0)[:, None]
    vectors = unit(vectors + loudness * names)
    return vectors, PhotoStates(seen.states, by_patch.sum(dim=3).flatten(0, 1))


def with_places(
    eye: EyeLearner,
    seen: Seen,
    batch: PhotoTextBatch,
    spoken_of: Tensor,
    is_free: Tensor,
    generator: torch.Generator,
) -> PhotoTextBatch:
    """The batch with places for what is said of surroundings, by an eye that stands still. spoken_of, is_free: see
    `surroundings_seen`."""
    if batch.surroundings is None:
        return batch
    shown = surroundings_seen(eye, seen.patches, spoken_of, is_free)
    every = torch.arange(shown.shape[1], device=shown.device).expand(shown.shape)
    return with_surroundings(batch, shown, every, batch.surroundings, generator)


def writer_of(model: nn.Module) -> PhotoWriter:
    """The model, which must be a `PhotoWriter`."""
    if not isinstance(model, PhotoWriter):
        raise InvalidValue("model", f"is a {type(model).__name__}, not a PhotoWriter")
    return model
