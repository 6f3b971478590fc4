"""What the eye is taught: that a box's patches mean its class, a patch what lies on it, a photo what people say of it.

box        the mean of a box's patches is nearest to the name of its class among all classes (cross entropy)
dense      each patch tells every class that lies on it from those that do not (focal, Lin et al. 2017)
contrast   a photo's vector is nearest to its own caption among those of other photos, and the other way round
mean       and near the mean of all its captions
saliency   where people looked (Kullback-Leibler)

In training only a random share of a photo's patches is read, which costs as much less and keeps the eye from leaning on
any one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core import Frame
from saywhere.core.types import Floats32
from saywhere.models.eye.features import EyeItem
from saywhere.vision.eye import EyeNet, Seen

_LEAST_COVER = 0.5
"""A patch shows what covers half of it; of a small thing, the patches that it covers nearly as much as any."""
_NEARLY = 0.9
_TINY = 1e-6


@dataclass(frozen=True, slots=True)
class EyeBatch:
    """Photos and what is known of them, B photos and M boxes.

    taps: (B, 2, 1 + n, size). cover: (M, n), how much of each box lies on each patch, summing to 1. classes: (M,).
    photos: (M,), whose box it is. shown: (B, n, names), 1 where a class lies on a patch. captions: (K, d), one of each
    photo that has any; means: (K, d), of all its captions; told: (K,), whose. saliency: (S, n); looked_at: (S,), whose.
    """

    taps: Tensor
    cover: Tensor
    classes: Tensor
    photos: Tensor
    shown: Tensor
    captions: Tensor
    means: Tensor
    told: Tensor
    saliency: Tensor
    looked_at: Tensor

    def to(self, device: torch.device | str) -> EyeBatch:
        return EyeBatch(*(getattr(self, field.name).to(device) for field in fields(self)))


def collate(items: Sequence[EyeItem], names: int, grid: int, most_boxes: int, generator: torch.Generator) -> EyeBatch:
    """most_boxes: of a photo, drawn at random where it has more; all of them count for `shown`."""
    frame = Frame.of_grid(grid, grid)
    cover, classes, photos = [], [], []
    shown = torch.zeros(len(items), grid * grid, names)
    for number, item in enumerate(items):
        shares = _coverage(item, frame)
        lying = (shares >= _LEAST_COVER) | (shares >= _NEARLY * shares.max(axis=1, keepdims=True, initial=0))
        for one, kind in zip(lying, item.classes.tolist(), strict=True):
            shown[number, torch.from_numpy(one), kind] = 1
        order = torch.randperm(len(shares), generator=generator)[:most_boxes].tolist()
        cover += [shares[i] / max(shares[i].sum(), _TINY) for i in order]
        classes += [int(item.classes[i]) for i in order]
        photos += [number] * len(order)
    told = [number for number, item in enumerate(items) if len(item.caption_vectors)]
    chosen = [int(torch.randint(len(items[i].caption_vectors), (), generator=generator)) for i in told]
    looked_at = [number for number, item in enumerate(items) if item.saliency is not None]
    size = items[0].caption_vectors.shape[1]
    return EyeBatch(
        torch.from_numpy(np.stack([item.taps for item in items])),
        _rows(cover, grid * grid),
        torch.tensor(classes, dtype=torch.long),
        torch.tensor(photos, dtype=torch.long),
        shown,
        _rows([items[i].caption_vectors[one] for i, one in zip(told, chosen, strict=True)], size),
        _rows([items[i].caption_vectors.mean(axis=0) for i in told], size),
        torch.tensor(told, dtype=torch.long),
        _rows([s for i in looked_at if (s := items[i].saliency) is not None], grid * grid),
        torch.tensor(looked_at, dtype=torch.long),
    )


@dataclass(frozen=True, slots=True)
class EyeWeights:
    """How much each part of the loss counts."""

    box: float = 1.0
    dense: float = 0.5
    contrast: float = 1.0
    mean: float = 2.0
    saliency: float = 0.3


class EyeLearner(nn.Module):
    """An eye with what only learning needs: how sharply cosines are read, for boxes, patches and captions."""

    def __init__(self, eye: EyeNet) -> None:
        super().__init__()
        self.eye = eye
        self.box_scale, self.dense_scale, self.contrast_scale = (
            nn.Parameter(torch.tensor(float(np.log(start)))) for start in (20, 15, 20)
        )
        self.dense_bias = nn.Parameter(torch.tensor(-6.0))

    def forward(self, taps: Tensor) -> Seen:
        seen: Seen = self.eye(taps)
        return seen


def thinned(batch: EyeBatch, kept: int, generator: torch.Generator) -> EyeBatch:
    """The same photos with `kept` of their patches, drawn at random; boxes none of whose patches are left are gone."""
    count, patches = batch.shown.shape[:2]
    rows = torch.rand(count, patches, generator=generator).argsort(dim=1)[:, :kept].to(batch.taps.device)
    first, rest = batch.taps[:, :, :1], batch.taps[:, :, 1:]
    rest = rest.gather(2, rows[:, None, :, None].expand(-1, rest.shape[1], -1, rest.shape[3]))
    cover = batch.cover.gather(1, rows[batch.photos])
    seen = cover.sum(dim=1) > _TINY
    saliency = batch.saliency.gather(1, rows[batch.looked_at])
    return EyeBatch(
        torch.cat([first, rest], dim=2),
        (cover / cover.sum(dim=1, keepdim=True).clamp(min=_TINY))[seen],
        batch.classes[seen],
        batch.photos[seen],
        batch.shown.gather(1, rows[..., None].expand(-1, -1, batch.shown.shape[2])),
        batch.captions,
        batch.means,
        batch.told,
        saliency / saliency.sum(dim=1, keepdim=True).clamp(min=_TINY),
        batch.looked_at,
    )


def losses(
    learner: EyeLearner, batch: EyeBatch, names: Tensor, class_weights: Tensor, others: Tensor, weights: EyeWeights
) -> dict[str, Tensor]:
    """names: (classes, d) of length 1. class_weights: (classes,). others: (m, d), captions of other photos."""
    seen = learner(batch.taps)
    parts: dict[str, Tensor] = {}
    if len(batch.classes):
        parts["box"] = _box_loss(learner, seen, batch, names, class_weights)
        parts["dense"] = _dense_loss(learner, seen, batch, names)
    if len(batch.told) > 1:
        told = functional.normalize(seen.whole[batch.told], dim=-1)
        parts["contrast"] = _contrast_loss(learner, told, batch.captions, others)
        parts["mean"] = 1 - functional.cosine_similarity(told, batch.means).mean()
    if len(batch.looked_at):
        looks = functional.log_softmax(seen.saliency[batch.looked_at], dim=-1)
        parts["saliency"] = functional.kl_div(looks, batch.saliency, reduction="batchmean")
    total = sum((getattr(weights, name) * value for name, value in parts.items()), start=seen.whole.sum() * 0)
    return {"loss": total, **{name: value.detach() for name, value in parts.items()}}


def box_vectors(patches: Tensor, cover: Tensor, photos: Tensor) -> Tensor:
    """(M, d) of length 1: the mean of each box's patches, by how much of it lies on them."""
    return functional.normalize((cover[:, None] @ patches[photos])[:, 0], dim=-1)


def _box_loss(learner: EyeLearner, seen: Seen, batch: EyeBatch, names: Tensor, weights: Tensor) -> Tensor:
    cosines = box_vectors(seen.patches, batch.cover, batch.photos) @ names.T
    return functional.cross_entropy(learner.box_scale.exp() * cosines, batch.classes, weights, label_smoothing=0.05)


def _dense_loss(learner: EyeLearner, seen: Seen, batch: EyeBatch, names: Tensor) -> Tensor:
    cosines = functional.normalize(seen.patches, dim=-1) @ names.T
    scores = learner.dense_scale.exp() * cosines + learner.dense_bias
    each = functional.binary_cross_entropy_with_logits(scores, batch.shown, reduction="none")
    focal = each * (1 - torch.exp(-each)) ** 2 * (1 + 2 * batch.shown)
    return focal.sum() / (batch.shown.sum() + 1)


def _contrast_loss(learner: EyeLearner, photos: Tensor, captions: Tensor, others: Tensor) -> Tensor:
    scores = learner.contrast_scale.exp() * photos @ torch.cat([captions, others]).T
    own = torch.arange(len(photos), device=photos.device)
    back = scores[:, : len(photos)].T
    return functional.cross_entropy(scores, own) + functional.cross_entropy(back, own)


def _coverage(item: EyeItem, frame: Frame) -> Floats32:
    """(m, n) the share of each patch that each box covers."""
    along_y, along_x = frame.coverages(item.boxes_xyxy)
    shares: Floats32 = np.einsum("mr,mc->mrc", along_y, along_x).reshape(len(along_y), frame.rows * frame.cols)
    return shares


def _rows(rows: Sequence[Floats32], size: int) -> Tensor:
    return torch.from_numpy(np.stack(rows).astype(np.float32)) if rows else torch.zeros(0, size)
