"""How the answering network is trained by the trainer: the recipe's tables, its loss and its measures of success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats, Progress
from saywhere.models.answerer.batch import AnswerBatch, collate
from saywhere.models.answerer.config import AnswererConfig
from saywhere.models.answerer.data import HUMAN, TRAIN, TUNE, AnswerData, StoredQuestion
from saywhere.models.answerer.network import AnswerNet
from saywhere.models.answerer.start import begin_as
from saywhere.models.common.modes import eval_mode, seeded_dropout

_TOGETHER = 32
"""Photos that are answered about at once."""
Asked = tuple[str, tuple[StoredQuestion, ...]]
"""A photo and questions about it."""


class AnswererSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: the shape, as `AnswererConfig` describes it; what the data fixes is not in it."""

    width: int = 256
    heads: int = 4
    layers: int = 3
    inner: int = 512
    counters: int = 8
    dropout: float = 0.1
    answer_dropout: float = 0.3
    blind: bool = False

    def config(self, data: AnswerData) -> AnswererConfig:
        shape = {name: getattr(self, name) for name in AnswererSection.__struct_fields__}
        if data.second is not None:
            second_size, size = data.second.axes.shape
            shape |= {"kinds": data.region_size - size - 1, "second_size": second_size}
        return AnswererConfig(len(data.answers), data.region_size, text_size=data.text_size, **shape)


class AnswererData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder that `saywhere build answers` wrote. start: of a network to begin with, if any. together:
    questions of a photo in a step: people's first, the others drawn at random. again: how often a photo that people
    asked about comes in an epoch, beside the others. validation: human questions that are measured, at most."""

    folder: Path
    start: Path | None = None
    together: Annotated[int, Meta(ge=1)] = 4
    again: Annotated[int, Meta(ge=1)] = 3
    validation: Annotated[int, Meta(ge=1)] = 2000


class AnswererTask:
    """Questions about photos → answers."""

    model_section: ClassVar[type[msgspec.Struct]] = AnswererSection
    data_section: ClassVar[type[msgspec.Struct]] = AnswererData

    def __init__(self, model: AnswererSection, data: AnswererData) -> None:
        self.data, self._section = AnswerData(data.folder), data
        self.config = model.config(self.data)
        self._train = learnable(self.data.photos(TRAIN))
        if not self._train:
            raise InvalidFile(data.folder, "has no question to learn from")
        asked = [photo for photo, some in self._train.items() if any(one.source == HUMAN for one in some)]
        self._order = [*self._train, *(asked * (data.again - 1))]
        self._validation = human(self.data.photos(TUNE))[: data.validation]

    def build(self, generator: torch.Generator) -> nn.Module:
        network = AnswerNet.fresh(self.config, int(torch.randint(2**31, (), generator=generator)))
        if network.second is not None and self.data.second is not None:
            network.second.load_state_dict(self.data.second.state_dict())
        network.attach(self.data.answers)
        if self._section.start is not None:
            begin_as(network, AnswerNet.from_pretrained(self._section.start))
        return network

    def train_items(self) -> Sequence[str]:
        """Photos by name."""
        return self._order

    def collate(self, items: Sequence[str], generator: torch.Generator) -> AnswerBatch:
        drawn = [(photo, self._drawn(self._train[photo], generator)) for photo in items]
        return self._batch(drawn)

    def losses(self, model: nn.Module, batch: AnswerBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        """The loss, and how right answers are in the batch."""
        network = answer_net(model)
        with seeded_dropout(generator, network):
            logits = network(batch.regions, batch.boxes, batch.present, batch.tokens, batch.read, batch.pointed).logits
        logits, targets = logits[batch.asked].float(), batch.targets[batch.asked]
        right = targets.gather(1, logits.detach().argmax(dim=1, keepdim=True)).mean()
        return {"loss": answer_loss(logits, targets), "accuracy": right}

    def counts(self, batch: AnswerBatch) -> dict[str, float]:
        return {"loss": float(batch.asked.sum())}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Soft accuracy on people's questions about photos that are not learnt from, in all and by type of answer."""
        network = answer_net(model)
        if not self._validation:
            return {"accuracy": 0.0}
        _, right = answered(network, self.data, self._validation)
        types = np.array([one.answer_type for _, some in self._validation for one in some])
        by_type = {f"accuracy_{kind}": float(right[types == kind].mean()) for kind in sorted(set(types.tolist()))}
        return {"accuracy": float(right.mean()), **by_type}

    def fingerprint(self) -> str:
        return f"{self.data.fingerprint}-{len(self._order)}-{len(self._validation)}"

    def _drawn(self, some: Sequence[StoredQuestion], generator: torch.Generator) -> tuple[StoredQuestion, ...]:
        """People's questions and some of the others."""
        order = torch.randperm(len(some), generator=generator).tolist()
        ranked = sorted(order, key=lambda place: some[place].source != HUMAN)
        return tuple(some[place] for place in ranked[: self._section.together])

    def _batch(self, drawn: Sequence[Asked]) -> AnswerBatch:
        blind = self.config.blind
        return collate([self.data.item(photo, some, blind=blind) for photo, some in drawn], self.config.answers)


def learnable(photos: Mapping[str, tuple[StoredQuestion, ...]]) -> dict[str, tuple[StoredQuestion, ...]]:
    """Photos with those of their questions that have an answer which can be given."""
    kept = {photo: tuple(one for one in some if one.targets) for photo, some in photos.items()}
    return {photo: some for photo, some in kept.items() if some}


def human(photos: Mapping[str, tuple[StoredQuestion, ...]], source: str = HUMAN) -> list[Asked]:
    """Photos with the questions of one source, people's by default."""
    kept = ((photo, tuple(one for one in some if one.source == source)) for photo, some in photos.items())
    return [(photo, some) for photo, some in kept if some]


def answer_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy, mean over (n, answers): every answer that people gave counts by how right it is."""
    weights = targets / targets.sum(dim=1, keepdim=True).clamp(min=1e-6)
    return -(weights * logits.log_softmax(dim=1)).sum(dim=1).mean()


def answered(
    network: AnswerNet, data: AnswerData, asked: Sequence[Asked], progress: Progress | None = None
) -> tuple[Floats, Floats]:
    """(n,) what the network says of its best answer to each question, photo by photo, and (n,) how right that is."""
    said: list[Tensor] = []
    right: list[Tensor] = []
    with eval_mode(network):
        for first in range(0, len(asked), _TOGETHER):
            some = asked[first : first + _TOGETHER]
            items = [data.item(photo, questions, blind=network.config.blind) for photo, questions in some]
            batch = collate(items, network.config.answers).to(network.device)
            logits = network(batch.regions, batch.boxes, batch.present, batch.tokens, batch.read, batch.pointed).logits[
                batch.asked
            ]
            best, place = logits.float().softmax(dim=1).max(dim=1)
            said.append(best)
            right.append(batch.targets[batch.asked].gather(1, place[:, None])[:, 0])
            if progress is not None:
                progress("answering", first + len(some), len(asked))
    return tuple(torch.cat(some).double().cpu().numpy() for some in (said, right))  # type: ignore[return-value]


def answer_net(model: nn.Module) -> AnswerNet:
    """The model, which must be an `AnswerNet`."""
    if not isinstance(model, AnswerNet):
        raise InvalidValue("model", f"is a {type(model).__name__}, not an AnswerNet")
    return model
