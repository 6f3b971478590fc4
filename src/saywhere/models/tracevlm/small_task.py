"""How TraceVLM on the small body is trained by the trainer: all of it at once, on talks about stored photos."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidFile
from saywhere.models.common.modes import eval_mode, seeded_dropout
from saywhere.models.common.sums import Sums
from saywhere.models.tracevlm.batch import InstructionBatch, collate_prepared
from saywhere.models.tracevlm.config import TraceVlmConfig
from saywhere.models.tracevlm.examples import Instruction, InstructionFile
from saywhere.models.tracevlm.objective import near_loss
from saywhere.models.tracevlm.small_config import SmallConfig
from saywhere.models.tracevlm.small_input import SmallInput, SmallReader
from saywhere.models.tracevlm.small_model import TOKENIZER, SmallTraceVLM
from saywhere.models.tracevlm.small_photos import PHOTOS, PHOTOS_KIND, PhotoFeatures, as_found
from saywhere.models.tracevlm.small_tokens import SmallTokenizer
from saywhere.models.tracevlm.task import TRAIN, VALIDATION, as_tracevlm
from saywhere.store import Store

_TOGETHER = 16


class SmallSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: the shape, as `SmallConfig` describes it. blocks, tvp_heads: of perception; without blocks trajectories
    are read as text alone. spread: how far, in bins, a coordinate may lie beside the true one and still be half right;
    0 for the true one alone. start: a folder of a saved small TraceVLM to go on from, whatever the shape says."""

    width: int = 320
    heads: int = 5
    layers: int = 6
    expansion: int = 4
    windows: int = 5
    context: int = 512
    dropout: float = 0.1
    blocks: Annotated[int, Meta(ge=0)] = 2
    tvp_heads: int = 5
    spread: Annotated[float, Meta(ge=0)] = 6.0
    start: str = ""

    def blocks_config(self) -> TraceVlmConfig:
        return TraceVlmConfig(blocks=self.blocks, heads=self.tvp_heads, code=64, mask_layers=0)

    def config(self, vocabulary: int, state_size: int) -> SmallConfig:
        names = ("width", "heads", "layers", "expansion", "windows", "context", "dropout")
        return SmallConfig(vocabulary, state_size=state_size, **{name: getattr(self, name) for name in names})


class SmallData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder that `saywhere build trace` wrote. photos: the folder with the store of photos, by default the
    same. train, validation: at most so many talks of each. worse: whether true things are made worse at random, as a
    detector would find them. ordered: talks come as they stand in the file; shuffle_buffer is then to be 1."""

    folder: Path
    photos: Path | None = None
    train: int | None = None
    validation: int | None = 400
    worse: bool = True
    ordered: bool = False


class _InOrder:
    """Talks one after another: a stream, which is not drawn from at random."""

    def __init__(self, talks: InstructionFile) -> None:
        self._talks = talks

    def __len__(self) -> int:
        return len(self._talks)

    def __iter__(self) -> Iterator[Instruction]:
        return (self._talks[number] for number in range(len(self._talks)))


class SmallTask:
    """Talks about photos → what the assistant says in them."""

    model_section: ClassVar[type[msgspec.Struct]] = SmallSection
    data_section: ClassVar[type[msgspec.Struct]] = SmallData

    def __init__(self, model: SmallSection, data: SmallData) -> None:
        self.section, self.data = model, data
        self.photos = Store((data.photos or data.folder) / PHOTOS, PHOTOS_KIND)
        if not len(self.photos):
            raise InvalidFile(self.photos.folder, "has no photo")
        self._train = InstructionFile(data.folder / TRAIN, data.train)
        self._validation = InstructionFile(data.folder / VALIDATION, data.validation)
        self.config = model.config(len(self.tokenizer), int(self.photos[0]["windows"].shape[1]))

    @cached_property
    def tokenizer(self) -> SmallTokenizer:
        path = self.data.folder / TOKENIZER
        try:
            return SmallTokenizer.from_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error

    @cached_property
    def reader(self) -> SmallReader:
        return SmallReader(SmallInput(self.config, self.tokenizer))

    def build(self, generator: torch.Generator) -> nn.Module:
        seed = int(torch.randint(2**31, (), generator=generator))
        if self.section.start:
            return SmallTraceVLM.from_pretrained(self.section.start).train()
        return SmallTraceVLM(self.section.blocks_config(), self.config, self.tokenizer, seed).train()

    def train_items(self) -> InstructionFile | _InOrder:
        return _InOrder(self._train) if self.data.ordered else self._train

    def collate(self, items: Sequence[Instruction], generator: torch.Generator) -> InstructionBatch:
        return self._batch(items, np.random.default_rng(int(torch.randint(2**31, (), generator=generator))))

    def _batch(self, items: Sequence[Instruction], rng: np.random.Generator) -> InstructionBatch:
        photos = [PhotoFeatures.of_row(self.photos.by_key(name)) for item in items for name in item.images]
        if self.data.worse:
            photos = [as_found(photo, rng) if photo.is_marked else photo for photo in photos]
        places, grids = self.reader.inputs.places(photos)
        talks, images = [item.turns for item in items], [len(item.images) for item in items]
        return collate_prepared(self.reader, talks, images, places, grids)

    def losses(self, model: nn.Module, batch: InstructionBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        with seeded_dropout(generator, model):
            scores, tokens = self._scored(model, batch)
            return {"loss": near_loss(scores, tokens, self.tokenizer.first_coordinate, self.section.spread)}

    def counts(self, batch: InstructionBatch) -> Mapping[str, float]:
        return {"loss": float(batch.learnt[:, 1:].sum())}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Mean losses of a token, of a word and of a coordinate."""
        return self.validation_sums(model).means()

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Sums:
        """Every `parts`-th talk from `part` on."""
        sums, places = Sums(), range(part, len(self._validation), parts)
        with eval_mode(model):
            for first in range(0, len(places), _TOGETHER):
                talks = [self._validation[place] for place in places[first : first + _TOGETHER]]
                batch = self._batch(talks, np.random.default_rng(0))
                scores, tokens = self._scored(model, batch)
                losses = functional.cross_entropy(scores.float(), tokens, reduction="none")
                drawn = tokens >= self.tokenizer.first_coordinate
                for name, where in (("token", drawn | ~drawn), ("words", ~drawn), ("coordinates", drawn)):
                    sums.add(name, float(losses[where].sum()), int(where.sum()))
        return sums

    def fingerprint(self) -> str:
        told = hashlib.sha256((self.data.folder / TRAIN).read_bytes()).hexdigest()[:16]
        return f"{self.photos.fingerprint}-{told}-{len(self._train)}-{len(self._validation)}-{len(self.tokenizer)}"

    def _scored(self, model: nn.Module, batch: InstructionBatch) -> tuple[Tensor, Tensor]:
        """(n, tokens) scores of what the assistant says, and (n,) what that is."""
        network, learnt = as_tracevlm(model), batch.learnt[:, 1:]
        states = network.states(batch)[0]
        return network.body.say(states[:, :-1][learnt]), batch.ids[:, 1:][learnt]
