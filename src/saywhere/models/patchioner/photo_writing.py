"""How a decoder learns to read photos: captions of the whole and names of boxes, from the hidden states of an eye.

The eye stands still, or learns beside the decoder all that it learns by itself. Each photo gives several texts a step,
which share the work of looking at it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from saywhere.core import Frame
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.language.surroundings import surroundings_in
from saywhere.language.vocabulary import BEGIN_ID, END_ID, Vocabulary, plain_words
from saywhere.models.common.batches import Movable, padded
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import CAPTIONS, CAPTIONS_KIND, EyeFeatures, EyeItem, RegionNames
from saywhere.models.eye.objective import EyeBatch, thinned
from saywhere.models.eye.surroundings import surroundings_loss
from saywhere.models.eye.task import EyeData, EyeSection, EyeTask, learner_of
from saywhere.models.patchioner.decoder import DecoderConfig, PhotoStates, PrefixDecoder
from saywhere.models.patchioner.layers import unit
from saywhere.store import Store
from saywhere.vision.eye import Seen

EYE_FOLDER = "eye"
_VALIDATION_BATCH = 25
_CAPTIONS_MEASURED = 2
_BOXES_MEASURED = 2
_WHOLE = -2
_ARTICLE = re.compile(r"an? ")
_WINDOW = (2, 14)
"""Patches along a side of the part of surroundings that is put into words."""


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
    of a decoder to begin with, which may have learnt from texts alone. validation: photos, at most."""

    folder: Path
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


class RegionNameIds(NamedTuple):
    """A box, the ids of each of its names, and the number of the class that its first name is; −1 for none."""

    box_xyxy: tuple[float, float, float, float]
    names: list[list[int]]
    kind: int


class SurroundingIds(NamedTuple):
    """What a caption says of surroundings: their kind and the ids of its phrase."""

    kind: int
    phrase: list[int]


_NOTHING = RegionNameIds((0.0, 0.0, 1.0, 1.0), [[]], -1)


@dataclass(frozen=True, slots=True, eq=False)
class PhotoTexts:
    """One photo and its texts. captions: ids of each. region_names: boxes with their names. surroundings: what the
    captions say of them."""

    photo: EyeItem
    captions: list[list[int]]
    region_names: list[RegionNameIds]
    surroundings: list[SurroundingIds]


@dataclass(frozen=True, slots=True, eq=False)
class PhotoTextBatch(Movable):
    """B photos with k texts each, side by side.

    trunk_states: (B, 1 + n, size). cells: (B * k, rows, cols), how much of a text's box lies on each cell; even for the
    whole photo. is_whole: (B * k,). classes: (B * k,), which a detector would have named; −1 for none.
    words: (B * k, t) ids with begin and end; padding alone where there is no text. known: what an eye that learns
    beside is taught. surroundings: (B,) the kind that the last text of each photo is about, whose cells are not known
    before the photo is seen; −1 for none.
    """

    trunk_states: Tensor
    cells: Tensor
    is_whole: Tensor
    classes: Tensor
    words: Tensor
    known: EyeBatch | None = None
    surroundings: Tensor | None = None


class PhotoTextItems:
    """Photos of a features folder that people told of, as items."""

    def __init__(self, folder: Path, split: str, vocabulary: Vocabulary, most_words: int) -> None:
        self._features, self._captions = EyeFeatures(folder, split), Store(folder / CAPTIONS, CAPTIONS_KIND)
        self._vocabulary, self._most_words = vocabulary, most_words
        self._kinds = {name: number for number, name in enumerate(self._features.names)}
        self._rows = [i for i in range(len(self._features)) if self._features.key(i) in self._captions]
        if not self._rows:
            raise InvalidFile(folder, f"has no photo of the split {split!r} that people told of")
        self.fingerprint = f"{self._features.fingerprint}-{self._captions.fingerprint}"

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> PhotoTexts:
        row = self._rows[index]
        kept = self._captions.by_key(self._features.key(row))
        region_names = msgspec.convert(kept["called"], list[RegionNames])
        return PhotoTexts(
            self._features[row],
            [self._ids(text) for text in kept["captions"]],
            [
                RegionNameIds(one.box_xyxy, [self._ids(text) for text in one.texts], self._kind(one))
                for one in region_names
            ],
            [
                SurroundingIds(one.kind, self._ids(one.phrase))
                for text in kept["captions"]
                for one in surroundings_in(plain_words(text))
            ],
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of classes."""
        return self._features.names

    def caption_ids(self) -> Iterator[list[list[int]]]:
        """Of each photo, without reading what the trunk gave."""
        for row in self._rows:
            yield [self._ids(text) for text in self._captions.by_key(self._features.key(row))["captions"]]

    def _kind(self, region_names: RegionNames) -> int:
        return self._kinds.get(_ARTICLE.sub("", region_names.texts[0], count=1), -1)

    def _ids(self, text: str) -> list[int]:
        ids = self._vocabulary.encode(plain_words(text)).ids
        return list(ids)[: self._most_words]


class PhotoWriterTask:
    """Photos → captions of the whole and of boxes."""

    model_section: ClassVar[type[msgspec.Struct]] = PhotoWriterSection
    data_section: ClassVar[type[msgspec.Struct]] = PhotoWriterData

    def __init__(self, model: PhotoWriterSection, data: PhotoWriterData) -> None:
        self._section, self._data = model, data
        start = PrefixDecoder.from_pretrained(data.decoder)
        self.vocabulary, self._start = start.vocabulary, start
        self._train, self._validation = (
            PhotoTextItems(data.folder, split, start.vocabulary, start.config.max_words)
            for split in ("train", "validation")
        )
        self._eye_task = None if model.eye is None else EyeTask(model.eye, EyeData(folder=data.folder))

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
        if self._data.eye is not None:
            return EyeLearner.from_pretrained(self._data.eye).requires_grad_(self._eye_task is not None)
        if self._eye_task is None:
            raise InvalidValue(
                "[data] eye", "is missing", "name one that stands still, or say in [model.eye] how it learns"
            )
        return learner_of(self._eye_task.build(generator))

    def train_items(self) -> PhotoTextItems:
        return self._train

    def collate(self, items: Sequence[PhotoTexts], generator: torch.Generator) -> PhotoTextBatch:
        around = [_one_of(item.surroundings, generator) for item in items] if self._section.surroundings else None
        batch = self.text_batch(items, self._section.captions, self._section.boxes, generator, around)
        if self._eye_task is None:
            return batch
        return replace(batch, known=self._eye_task.collate([item.photo for item in items], generator))

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
            for i in _drawn(len(item.captions), captions, generator):
                cells.append(even)
                kinds.append(_WHOLE)
                texts.append([] if i is None else item.captions[i])
            for i in _drawn_evenly([one.kind for one in item.region_names], boxes, generator):
                box, names, kind = _NOTHING if i is None else item.region_names[i]
                cells.append(_box_cells(box, side))
                named = float(torch.rand((), generator=generator)) < self._section.named
                kinds.append(kind if named else -1)
                texts.append(names[_drawn(len(names), 1, generator)[0] or 0])
            if around is not None:
                cells.append(np.zeros_like(even))
                kinds.append(-1)
                texts.append(around[number].phrase)
        batch = _batch(items, cells, kinds, texts)
        if around is None:
            return batch
        return replace(batch, surroundings=torch.tensor([one.kind for one in around]))

    def losses(self, model: nn.Module, batch: PhotoTextBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        writer = writer_of(model)
        parts: dict[str, Tensor] = {}
        rows = None
        if batch.known is None or self._eye_task is None:
            with torch.no_grad():
                seen = writer.eye(batch.trunk_states)
        else:
            rows = self._eye_task.drawn_patches(len(batch.trunk_states), generator).to(batch.trunk_states.device)
            thin = thinned(batch.known, rows)
            seen = writer.eye(thin.trunk_states)
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
                vectors, photo_states = seen_texts(
                    writer.eye, writer.eye(moved.trunk_states), moved, self._section.loudness
                )
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
        return _batch(items, [even] * len(texts), [_WHOLE] * len(texts), texts)

    def _box_batch(self, items: Sequence[PhotoTexts]) -> PhotoTextBatch:
        side = self._cell_grid(items[0])
        each = range(_BOXES_MEASURED)
        chosen = [item.region_names[i] if i < len(item.region_names) else _NOTHING for item in items for i in each]
        cells = [_box_cells(one.box_xyxy, side) for one in chosen]
        return _batch(items, cells, [-1] * len(chosen), [one.names[0] for one in chosen])

    @staticmethod
    def _cell_grid(item: PhotoTexts) -> int:
        # Patches are cut in two each way; see `EyeConfig.cuts`.
        return 2 * math.isqrt(len(item.photo.trunk_states) - 1)


def with_surroundings(
    batch: PhotoTextBatch, shown: Tensor, rows: Tensor, kinds: Tensor, generator: torch.Generator
) -> PhotoTextBatch:
    """The batch with a place for the last text of each photo: patches that show its kind of surroundings, within a
    window around one of them. shown: (B, kept) kinds; rows: (B, kept) numbers of patches. Texts without such patches
    are left out."""
    photos, kept = rows.shape
    side = batch.cells.shape[-1]
    grid = side // 2
    theirs = (shown == kinds[:, None]) & (kinds >= 0)[:, None]
    chance = torch.rand(photos, kept, generator=generator).to(rows.device)
    centre = rows.gather(1, (chance * theirs).argmax(dim=1, keepdim=True))
    windows = torch.randint(*_WINDOW, (2, photos, 1), generator=generator).to(rows.device)
    inside = ((rows // grid - centre // grid).abs() * 2 <= windows[0]) & (
        (rows % grid - centre % grid).abs() * 2 <= windows[1]
    )
    weights = torch.zeros(photos, grid * grid, device=rows.device).scatter(1, rows, (theirs & inside).float())
    by_cell = weights.view(photos, grid, grid).repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)
    total = by_cell.sum(dim=(1, 2), keepdim=True)
    cells, words = batch.cells.view(photos, -1, side, side).clone(), batch.words.view(photos, -1, batch.words.shape[1])
    cells[:, -1] = by_cell / total.clamp(min=1)
    words = torch.cat([words[:, :-1], words[:, -1:] * (total > 0).long()], dim=1)
    return replace(batch, cells=cells.flatten(0, 1), words=words.flatten(0, 1))


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


def _batch(
    items: Sequence[PhotoTexts], cells: Sequence[Floats32], kinds: Sequence[int], texts: Sequence[Sequence[int]]
) -> PhotoTextBatch:
    """kinds: of each text's box; −1 for none, _WHOLE for the whole photo."""
    words = [np.array([BEGIN_ID, *ids, END_ID] if ids else [], np.int64) for ids in texts]
    longest = max(2, *(len(ids) for ids in words))
    return PhotoTextBatch(
        torch.from_numpy(np.stack([item.photo.trunk_states for item in items])),
        torch.from_numpy(np.stack(cells)),
        torch.tensor([kind == _WHOLE for kind in kinds]),
        torch.tensor([max(kind, -1) for kind in kinds]),
        padded(words, longest),
    )


def _box_cells(box_xyxy: Sequence[float], side: int) -> Floats32:
    along_y, along_x = Frame.of_grid(side, side).coverages(np.array([box_xyxy], np.float64))
    shares = np.outer(along_y[0], along_x[0]).astype(np.float32)
    weights: Floats32 = shares / max(float(shares.sum()), 1e-9)
    return weights


def _one_of(surroundings: Sequence[SurroundingIds], generator: torch.Generator) -> SurroundingIds:
    if not surroundings:
        return SurroundingIds(-1, [])
    return surroundings[int(torch.randint(len(surroundings), (), generator=generator))]


def _drawn(count: int, wanted: int, generator: torch.Generator) -> list[int | None]:
    """`wanted` of `count` numbers at random; None where there are too few."""
    order: list[int | None] = list(torch.randperm(count, generator=generator)[:wanted].tolist())
    return order + [None] * (wanted - len(order))


def _drawn_evenly(kinds: Sequence[int], wanted: int, generator: torch.Generator) -> list[int | None]:
    """The same, as many of each kind as there are: one dog among nine people is drawn before the second person."""
    drawn: dict[int, int] = {}
    rounds: list[tuple[int, int, int]] = []
    for i in torch.randperm(len(kinds), generator=generator).tolist():
        drawn[kinds[i]] = drawn.get(kinds[i], 0) + 1
        rounds.append((drawn[kinds[i]], len(rounds), i))
    order: list[int | None] = [i for _, _, i in sorted(rounds)[:wanted]]
    return order + [None] * (wanted - len(order))


def writer_of(model: nn.Module) -> PhotoWriter:
    """The model, which must be a `PhotoWriter`."""
    if not isinstance(model, PhotoWriter):
        raise InvalidValue("model", f"is a {type(model).__name__}, not a PhotoWriter")
    return model
