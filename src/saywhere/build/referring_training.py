"""How finding is learnt: expressions with the boxes of their photos in batches, and the loop over them.

Every pass sees people's expressions, those made from boxes, those of things that are not there, and expressions of
other photos that name what this one does not show. Half of the photos are seen in the mirror, where left is right.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saywhere.build.referring import LookedPhoto
from saywhere.build.referring_texts import MADE, TRUE, Said
from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import classes_named
from saywhere.language.vocabulary import PAD_ID, Vocabulary, vocabulary_of
from saywhere.models.common.modes import seeded
from saywhere.models.patchioner.candidates import COLOURS, STANDING, ious, mirrored_colours, standing
from saywhere.models.patchioner.referring import (
    CandidateBatch,
    ExpressionBatch,
    Referrer,
    ReferringConfig,
    ReferringNet,
    referring_loss,
)

OTHER = "other photo"
"""The kind of an expression that was said of another photo."""
_FITS = 0.5
_BATCH_MEASURED = 256
_BLIND = 0.1
"""Share of photos whose colours are not told, as of a view without its photo."""


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """others: expressions of other photos, as a share of people's own, in each pass. least_count: of a word in the
    vocabulary."""

    epochs: int = 8
    batch: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.05
    others: float = 0.3
    least_count: int = 2
    most_words: int = 2500
    seed: int = 0
    width: int = 128
    layers: int = 2
    dropout: float = 0.2

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch, self.least_count, self.most_words) < 1 or self.lr <= 0 or self.others < 0:
            raise InvalidValue("TrainingConfig", f"needs at least one epoch, a batch and a rate above 0, not {self}")


class ReferringItem(NamedTuple):
    """An expression asked of a photo. text, photo: their numbers. kind: see `Said`, or OTHER."""

    text: int
    photo: int
    kind: str


class ReferringData:
    """All photos and texts as tensors. photos: of all splits. names, name_vectors: what candidates may be called."""

    def __init__(self, photos: Sequence[LookedPhoto], names: Sequence[str], name_vectors: Floats32) -> None:
        if not photos:
            raise InvalidValue("photos", "there are none")
        self.photos = tuple(photos)
        self.name_ids = {name: 1 + number for number, name in enumerate(names)}
        self.name_vectors = torch.from_numpy(np.concatenate([np.zeros_like(name_vectors[:1]), name_vectors]))
        self.texts: list[Said] = [one for photo in photos for one in photo.said]
        self.own = [ReferringItem(0, number, one.kind) for number, photo in enumerate(photos) for one in photo.said]
        self.own = [one._replace(text=number) for number, one in enumerate(self.own)]
        self.vectors = _joined([photo.said_vectors for photo in photos])
        self.mirror_vectors = _joined([photo.mirror_vectors for photo in photos])
        self._fill()
        self._name()

    def split(self, split: str, *kinds: str) -> list[ReferringItem]:
        """Expressions of a split's photos."""
        return [one for one in self.own if self.photos[one.photo].split == split and one.kind in kinds]

    @property
    def states_size(self) -> int:
        return self.states.shape[-1]

    def others(self, split: str, count: int, rng: np.random.Generator) -> list[ReferringItem]:
        """People's expressions with other photos of the split, in which nothing is of a kind that they name."""
        own = [one for one in self.split(split, TRUE) if self.says[one.text].any()]
        photos = [number for number, photo in enumerate(self.photos) if photo.split == split]
        if not own or not photos:
            return []
        drawn = rng.integers(len(own), size=3 * count), rng.integers(len(photos), size=3 * count)
        pairs = ((own[text].text, photos[photo]) for text, photo in zip(*map(np.ndarray.tolist, drawn), strict=True))
        clear = (
            ReferringItem(text, photo, OTHER)
            for text, photo in pairs
            if not (self.says[text] & self.shows[photo]).any()
        )
        return [one for one, _ in zip(clear, range(count), strict=False)]

    def overlaps(self, asked: Sequence[ReferringItem]) -> Tensor:
        """(B, n) IoU of each candidate with what is meant; 0 of what is not there."""
        rows = torch.zeros(len(asked), self.there.shape[1])
        for row, one in zip(rows, asked, strict=True):
            box = self.texts[one.text].box_xyxy
            if one.kind in (TRUE, MADE) and box is not None:
                boxes = self.photos[one.photo].offered.boxes_xyxy
                row[: len(boxes)] = torch.from_numpy(ious(np.array([box], np.float32), boxes)[0])
        return rows

    def batch(
        self, asked: Sequence[ReferringItem], ids: Sequence[Sequence[int]], mirror: NDArray[np.bool_] | None = None
    ) -> tuple[CandidateBatch, ExpressionBatch]:
        """ids: of the words of each expression. mirror: (B,) whose photos are seen in the mirror."""
        turned = torch.zeros(len(asked), dtype=torch.bool) if mirror is None else torch.from_numpy(mirror)
        photos, texts = (torch.tensor([getattr(one, name) for one in asked]) for name in ("photo", "text"))
        kinds = self.kinds[photos]
        boxes = CandidateBatch(
            self.there[photos],
            self.seen[photos].float(),
            self.name_vectors[kinds],
            self.states[photos].float(),
            self.standing[turned.long(), photos],
            self.colours[turned.long(), photos].float(),
            self.coloured[photos][:, None],
        )
        vectors = torch.where(turned[:, None], self.mirror_vectors[texts], self.vectors[texts])
        named = self.named[texts[:, None], kinds]
        none = (~self.says_any[texts])[:, None].expand_as(named)
        told = torch.stack([named, ~named & ~none, none], dim=-1).float()
        longest = max(map(len, ids))
        padded = torch.full((len(asked), longest), PAD_ID)
        for row, one in zip(padded, ids, strict=True):
            row[: len(one)] = torch.tensor(one)
        return boxes, ExpressionBatch(padded, vectors, told)

    def _fill(self) -> None:
        """Photos' candidates, filled up to the most that one has."""
        offered = [photo.offered for photo in self.photos]
        count, most = len(offered), max(map(len, offered))
        sizes = {0 if one.states is None else one.states.shape[1] for one in offered}
        if len(sizes) > 1:
            raise InvalidValue("photos", "some have hidden states, others none or of another size")
        self.there = torch.zeros(count, most, dtype=torch.bool)
        self.kinds = torch.zeros(count, most, dtype=torch.long)
        self.seen = torch.zeros(count, most, offered[0].vectors.shape[1], dtype=torch.float16)
        self.states = torch.zeros(count, most, sizes.pop(), dtype=torch.float16)
        self.standing = torch.zeros(2, count, most, STANDING)
        self.colours = torch.zeros(2, count, most, COLOURS, dtype=torch.float16)
        self.coloured = torch.tensor([float(one.colours is not None) for one in offered])
        for number, one in enumerate(offered):
            here = slice(len(one))
            self.there[number, here] = True
            self.kinds[number, here] = torch.tensor([self.name_ids.get(name, 0) for name in one.names])
            self.seen[number, here] = torch.from_numpy(one.vectors)
            turned = one.boxes_xyxy.copy()
            turned[:, [0, 2]] = 1 - one.boxes_xyxy[:, [2, 0]]
            for side, boxes in enumerate((one.boxes_xyxy, turned)):
                self.standing[side, number, here] = torch.from_numpy(standing(boxes, one.names, one.scores))
            if one.states is not None:
                self.states[number, here] = torch.from_numpy(one.states)
            if one.colours is not None:
                self.colours[0, number, here] = torch.from_numpy(one.colours)
                self.colours[1, number, here] = torch.from_numpy(mirrored_colours(one.colours))

    def _name(self) -> None:
        """Which names, and which of all kinds, each text says; which kinds each photo shows."""
        said = [classes_named(one.text) for one in self.texts]
        kinds = sorted({kind for some in (*said, *(photo.there for photo in self.photos)) for kind in some})
        place = {kind: number for number, kind in enumerate(kinds)}
        self.says = np.zeros((len(said), len(kinds)), bool)
        self.shows = np.zeros((len(self.photos), len(kinds)), bool)
        self.named = torch.zeros(len(said), len(self.name_vectors), dtype=torch.bool)
        for number, some in enumerate(said):
            self.says[number, [place[kind] for kind in some]] = True
            self.named[number, [self.name_ids[kind] for kind in some if kind in self.name_ids]] = True
        for number, photo in enumerate(self.photos):
            self.shows[number, [place[kind] for kind in photo.there]] = True
        self.says_any = torch.from_numpy(self.says.any(axis=1))


def train_referring(data: ReferringData, config: TrainingConfig, progress: Progress) -> Referrer:
    """The network of the pass that finds most validation expressions."""
    words = _vocabulary(data, config)
    shape = ReferringConfig(
        len(words),
        data.name_vectors.shape[1],
        data.states_size,
        config.width,
        layers=config.layers,
        dropout=config.dropout,
    )
    with seeded(config.seed):
        referrer = Referrer(ReferringNet(shape), words)
        rng = np.random.default_rng(config.seed)
        validation = data.split("validation", TRUE)
        best, weights = -math.inf, referrer.net.state_dict()
        for epoch, reached in enumerate(_epochs(data, referrer, config, rng, progress), 1):
            # Without validation photos the last pass is kept.
            found = precision(data, referrer, validation) if validation else 0.0
            progress(f"pass {epoch}: loss {reached:.3f}, validation P@0.5 {100 * found:.1f} %", epoch, config.epochs)
            if found >= best:
                best, weights = found, copy.deepcopy(referrer.net.state_dict())
    referrer.net.load_state_dict(weights)
    return referrer


def _vocabulary(data: ReferringData, config: TrainingConfig) -> Vocabulary:
    learnt = [data.texts[one.text] for one in data.split("train", TRUE, MADE)]
    if not learnt:
        raise InvalidValue("photos", "none is for training", "look at more of them")
    return vocabulary_of(
        [text for one in learnt for text in (one.text, one.mirror)], config.least_count, config.most_words
    )


def _epochs(
    data: ReferringData, referrer: Referrer, config: TrainingConfig, rng: np.random.Generator, progress: Progress
) -> Iterator[float]:
    """Train, and give the mean loss after each pass."""
    own = [one for one in data.own if data.photos[one.photo].split == "train"]
    fits = data.overlaps(own).amax(dim=1) >= _FITS
    # Nothing can be learnt from a thing that no box is around.
    own = [one for one, fit in zip(own, fits.tolist(), strict=True) if fit or one.kind not in (TRUE, MADE)]
    others = round(config.others * len(data.split("train", TRUE)))
    steps = config.epochs * math.ceil((len(own) + others) / config.batch)
    net = referrer.net
    optimizer = torch.optim.AdamW(net.parameters(), config.lr, weight_decay=config.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total_steps=steps + 1, pct_start=0.1)
    step = 0
    for _ in range(config.epochs):
        every = own + data.others("train", others, rng)
        losses = []
        for some in _batches(rng.permutation(len(every)), config.batch):
            net.train()
            loss = _step(data, referrer, [every[number] for number in some], rng)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(float(loss.detach()))
            step += 1
            progress("learning to find", step, steps)
        net.eval()
        yield float(np.mean(losses))


def _step(data: ReferringData, referrer: Referrer, asked: Sequence[ReferringItem], rng: np.random.Generator) -> Tensor:
    mirror = rng.random(len(asked)) < 0.5
    texts = (data.texts[one.text] for one in asked)
    ids = [referrer.ids(text.mirror if turned else text.text) for text, turned in zip(texts, mirror, strict=True)]
    boxes, said = data.batch(asked, ids, mirror)
    known = torch.from_numpy(rng.random((len(asked), 1)) >= _BLIND).float()
    boxes = boxes._replace(coloured=boxes.coloured * known)
    return referring_loss(referrer.net(boxes, said), data.overlaps(asked))


def _batches(order: NDArray[np.intp], size: int) -> Iterator[list[int]]:
    return (order[first : first + size].tolist() for first in range(0, len(order), size))


def answers(
    data: ReferringData, referrer: Referrer, asked: Sequence[ReferringItem]
) -> tuple[NDArray[np.intp], Floats32]:
    """(m,) which candidate each expression means, and (m,) how likely it is there."""
    chosen, there = [np.zeros(0, np.intp)], [np.zeros(0, np.float32)]
    for some in _batches(np.arange(len(asked)), _BATCH_MEASURED):
        part = [asked[number] for number in some]
        with torch.inference_mode():
            logits = referrer.net(*data.batch(part, [referrer.ids(data.texts[one.text].text) for one in part]))
        chances = logits.softmax(dim=1)
        chosen.append(chances[:, 1:].argmax(dim=1).numpy())
        there.append((1 - chances[:, 0]).numpy())
    return np.concatenate(chosen), np.concatenate(there)


def precision(data: ReferringData, referrer: Referrer, asked: Sequence[ReferringItem]) -> float:
    """P@0.5: the share of expressions whose box is found, whether or not the network says that they are there."""
    chosen, _ = answers(data, referrer, asked)
    overlaps = data.overlaps(asked).numpy()
    return float((overlaps[np.arange(len(asked)), chosen] >= _FITS).mean())


def with_threshold(data: ReferringData, referrer: Referrer, rng: np.random.Generator, *wrong_kinds: str) -> Referrer:
    """The same network with the threshold at which, on validation photos, the share of people's expressions that are
    said not to be there and the share of absent ones that are said to be there are together least."""
    true = data.split("validation", TRUE)
    wrong = [*data.split("validation", *wrong_kinds), *data.others("validation", len(true), rng)]
    if not true or not wrong:
        raise InvalidValue("photos", "none with expressions is for validation", "look at more of them")
    right, absent = (np.sort(answers(data, referrer, some)[1]) for some in (true, wrong))
    levels = np.linspace(0.02, 0.98, 97)
    errors = np.searchsorted(right, levels) / len(right) + 1 - np.searchsorted(absent, levels) / len(absent)
    least = float(levels[int(errors.argmin())])
    net = ReferringNet(replace(referrer.config, least_there=least))
    net.load_state_dict(referrer.net.state_dict())
    return Referrer(net, referrer.vocabulary)


def _joined(parts: Sequence[Floats32]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts))
