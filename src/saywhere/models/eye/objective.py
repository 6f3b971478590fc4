"""What the eye is taught: that a box's cells mean its class, a cell what lies on it, a photo what people say of it.

box        the mean of a box's cells is nearest to the name of its class among all classes (cross entropy)
dense      each cell tells every class that lies on it from those that do not (focal, Lin et al. 2017)
things     each cell tells whether a thing lies on its centre, and how central it is in it (Li et al. 2020)
reach      and how far that thing reaches (GIoU, Rezatofighi et al. 2019)
words      some patch of a photo means each word that people say of it, and none means any other
contrast   a photo's vector is nearest to its own caption among those of other photos, and the other way round
whole      another vector of it is near the mean of all its captions
kinds      which kinds of things are in the photo
saliency   where people looked (Kullback-Leibler)

In training only a random share of a photo's patches is read, which costs as much less and keeps the eye from leaning on
any one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from saywhere.core import Frame
from saywhere.core.types import Floats32
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import EyeItem
from saywhere.vision.eye import EyeConfig, Seen, kept_patches

_LEAST_COVER = 0.5
"""A cell shows what covers half of it; of a small thing, the cells that it covers nearly as much as any."""
_NEARLY = 0.9
_TINY = 1e-6
_CENTRAL = 0.3
"""How far something reaches is learnt where a cell is so central in it."""
_MIDDLE = 0.7
_LARGEST_REACH = 4.0


@dataclass(frozen=True, slots=True)
class EyeBatch:
    """Photos and what is known of them: B photos of n patches with c cells each, M boxes, W words.

    inputs: (B, 1 + n, size), or pixels; see `EyeItem`. cover: (M, n, c), how much of each box lies on each cell,
    summing to 1. classes: (M,). photos: (M,), whose box it is. shown: (B, n, c, names), 1 where a class lies on a cell.
    central: (B, n, c), how central the cell is in the smallest box around its centre, 0 … 1. reach: (B, n, c, 4), in
    cells, how far that box reaches. captions: (T, d), one of each photo of which anything is said; told: (T,), which
    photo that is. means: (K, d), of all captions of a photo; words: (K, W), how many of its captions say each word;
    captioned: (K,), which photo that is. present: (P, names), 1 where a photo with boxes has such a thing; boxed: (P,),
    whose. saliency: (S, n); looked_at: (S,), whose.
    """

    inputs: Tensor
    cover: Tensor
    classes: Tensor
    photos: Tensor
    shown: Tensor
    central: Tensor
    reach: Tensor
    captions: Tensor
    told: Tensor
    means: Tensor
    words: Tensor
    captioned: Tensor
    present: Tensor
    boxed: Tensor
    saliency: Tensor
    looked_at: Tensor

    def to(self, device: torch.device | str) -> EyeBatch:
        return EyeBatch(*(getattr(self, field.name).to(device) for field in fields(self)))


def collate(
    items: Sequence[EyeItem],
    names: int,
    words: int,
    config: EyeConfig,
    most_boxes: int,
    generator: torch.Generator,
) -> EyeBatch:
    """most_boxes: of a photo, drawn at random where it has more; all of them count for `shown`."""
    side, patches = config.cell_grid, config.grid**2
    cells = config.cuts**2
    cover, classes, photos = [], [], []
    shown = torch.zeros(len(items), patches, cells, names)
    central = np.zeros((len(items), side * side), np.float32)
    reach = np.ones((len(items), side * side, 4), np.float32)
    for number, item in enumerate(items):
        central[number], reach[number] = _reaches(item.boxes_xyxy, side)
        shares = by_patch(_coverage(item, side), config)
        for one, kind in zip(_lying(shares), item.classes.tolist(), strict=True):
            shown[number, torch.from_numpy(one), kind] = 1
        order = torch.randperm(len(shares), generator=generator)[:most_boxes].tolist()
        cover += [shares[i] / max(shares[i].sum(), _TINY) for i in order]
        classes += [int(item.classes[i]) for i in order]
        photos += [number] * len(order)
    captioned = [number for number, item in enumerate(items) if len(item.caption_vectors)]
    sayings = [item.caption_vectors if len(item.caption_vectors) else item.statement_vectors for item in items]
    told = [number for number, said in enumerate(sayings) if len(said)]
    chosen = [int(torch.randint(len(sayings[i]), (), generator=generator)) for i in told]
    looked_at = [number for number, item in enumerate(items) if item.saliency is not None]
    boxed = [number for number, item in enumerate(items) if len(item.classes)]
    present = np.zeros((len(boxed), names), np.float32)
    for row, number in enumerate(boxed):
        present[row, items[number].classes] = 1
    size = items[0].caption_vectors.shape[1]
    word_counts = np.zeros((len(captioned), words), np.float32)
    for row, number in enumerate(captioned):
        for word in items[number].words.tolist():
            word_counts[row, word] += 1
    return EyeBatch(
        torch.from_numpy(np.stack([item.inputs for item in items])),
        _rows(cover, patches, cells),
        torch.tensor(classes, dtype=torch.long),
        torch.tensor(photos, dtype=torch.long),
        shown,
        torch.from_numpy(by_patch(central, config)),
        torch.from_numpy(by_patch(reach, config)),
        _rows([sayings[i][one] for i, one in zip(told, chosen, strict=True)], size),
        torch.tensor(told, dtype=torch.long),
        _rows([items[i].caption_vectors.mean(axis=0) for i in captioned], size),
        torch.from_numpy(word_counts),
        torch.tensor(captioned, dtype=torch.long),
        torch.from_numpy(present),
        torch.tensor(boxed, dtype=torch.long),
        _rows([s for i in looked_at if (s := items[i].saliency) is not None], patches),
        torch.tensor(looked_at, dtype=torch.long),
    )


def free_patches(item: EyeItem, config: EyeConfig) -> NDArray[np.bool_]:
    """(n,) the patches on which none of a photo's things lies."""
    lying = _lying(by_patch(_coverage(item, config.cell_grid), config))
    free: NDArray[np.bool_] = np.logical_not(np.any(lying, axis=(0, 2)))
    return free


def _lying(shares: Floats32) -> NDArray[np.bool_]:
    """Of how much of each box is on each cell, (m, n, c), whether it lies there."""
    largest = shares.max(axis=(1, 2), keepdims=True, initial=0)
    lying: NDArray[np.bool_] = (shares >= _LEAST_COVER) | (shares >= _NEARLY * largest)
    return lying


@dataclass(frozen=True, slots=True)
class EyeWeights:
    """How much each part of the loss counts."""

    box: float = 1.0
    dense: float = 0.5
    things: float = 0.5
    reach: float = 0.5
    words: float = 0.5
    contrast: float = 1.0
    whole: float = 2.0
    kinds: float = 0.5
    saliency: float = 0.3


def drawn_patches(photos: int, patches: int, kept: int, generator: torch.Generator) -> Tensor:
    """(photos, kept) numbers of patches, drawn at random, for `thinned`."""
    return torch.rand(photos, patches, generator=generator).argsort(dim=1)[:, :kept]


def thinned(batch: EyeBatch, rows: Tensor) -> EyeBatch:
    """The same photos with these of their patches, (B, kept); boxes none of whose patches are left are gone. Pixels
    stay: it is the trunk that reads some of the patches alone."""
    photo = torch.arange(len(rows), device=rows.device)[:, None]
    cover = batch.cover[torch.arange(len(batch.cover), device=rows.device)[:, None], rows[batch.photos]]
    left = cover.sum(dim=(1, 2))
    seen = left > _TINY
    saliency = batch.saliency.gather(1, rows[batch.looked_at])
    return replace(
        batch,
        inputs=kept_patches(batch.inputs, rows) if batch.inputs.is_floating_point() else batch.inputs,
        cover=(cover / left.clamp(min=_TINY)[:, None, None])[seen],
        classes=batch.classes[seen],
        photos=batch.photos[seen],
        shown=batch.shown[photo, rows],
        central=batch.central[photo, rows],
        reach=batch.reach[photo, rows],
        saliency=saliency / saliency.sum(dim=1, keepdim=True).clamp(min=_TINY),
    )


def losses(
    learner: EyeLearner, seen: Seen, batch: EyeBatch, class_weights: Tensor, others: Tensor, weights: EyeWeights
) -> dict[str, Tensor]:
    """seen: what the learner makes of the batch. class_weights: (classes,). others: (m, d), captions of other
    photos."""
    parts: dict[str, Tensor] = {}
    if len(batch.classes):
        parts["box"] = _box_loss(learner, seen, batch, class_weights)
        parts["dense"] = _dense_loss(learner, seen, batch)
        parts["things"], parts["reach"] = _thing_losses(seen, batch)
    if len(batch.boxed):
        there = functional.binary_cross_entropy_with_logits(
            seen.kinds[batch.boxed].float(), batch.present, reduction="sum"
        )
        parts["kinds"] = there / (batch.present.sum() + 1)
    if len(batch.told) > 1:
        told = functional.normalize(seen.contrast[batch.told].float(), dim=-1)
        parts["contrast"] = _contrast_loss(learner, told, batch.captions, others)
    if len(batch.captioned):
        parts["whole"] = 1 - functional.cosine_similarity(seen.whole[batch.captioned].float(), batch.means).mean()
        if learner.words:
            parts["words"] = _word_loss(learner, seen, batch)
    if len(batch.looked_at):
        looks = functional.log_softmax(seen.saliency[batch.looked_at].float(), dim=-1)
        parts["saliency"] = functional.kl_div(looks, batch.saliency, reduction="batchmean")
    total = sum((getattr(weights, name) * value for name, value in parts.items()), start=seen.whole.sum() * 0)
    return {"loss": total, **{name: value.detach() for name, value in parts.items()}}


def box_vectors(cells: Tensor, cover: Tensor, photos: Tensor) -> Tensor:
    """(M, d) of length 1: the mean of each box's cells, by how much of it lies on them. photos: (M,), ascending."""
    each = torch.split(cover.flatten(1), torch.bincount(photos, minlength=len(cells)).tolist())
    means = torch.cat([some @ one.flatten(0, 1).to(some.dtype) for some, one in zip(each, cells, strict=True)])
    return functional.normalize(means.float(), dim=-1)


def by_patch(values: Floats32, config: EyeConfig) -> Floats32:
    """(m, rows * cols, …) by place → (m, n, c, …), the cells of each patch together."""
    grid, cuts = config.grid, config.cuts
    rest = values.shape[2:]
    cut = values.reshape(len(values), grid, cuts, grid, cuts, *rest)
    together: Floats32 = np.ascontiguousarray(np.moveaxis(cut, 3, 2)).reshape(len(values), grid**2, cuts**2, *rest)
    return together


def _box_loss(learner: EyeLearner, seen: Seen, batch: EyeBatch, class_weights: Tensor) -> Tensor:
    cosines = box_vectors(seen.cells, batch.cover, batch.photos) @ learner.name_vectors.T
    scores = learner.box_scale.exp() * cosines
    return functional.cross_entropy(scores, batch.classes, class_weights, label_smoothing=0.05)


def _word_loss(learner: EyeLearner, seen: Seen, batch: EyeBatch) -> Tensor:
    scores = learner.word_scores(seen.patches[batch.captioned])
    # A word that one of five people says is half true.
    truth = (batch.words / 2).clamp(max=1)
    return functional.binary_cross_entropy_with_logits(scores.float(), truth, reduction="sum") / (truth.sum() + 1)


def _dense_loss(learner: EyeLearner, seen: Seen, batch: EyeBatch) -> Tensor:
    cosines = functional.normalize(seen.cells, dim=-1) @ learner.name_vectors.T
    scores = learner.dense_scale.exp() * cosines + learner.dense_bias
    each = functional.binary_cross_entropy_with_logits(scores.float(), batch.shown, reduction="none")
    focal = each * (1 - torch.exp(-each)) ** 2 * (1 + 2 * batch.shown)
    return focal.sum() / (batch.shown.sum() + 1)


def _thing_losses(seen: Seen, batch: EyeBatch) -> tuple[Tensor, Tensor]:
    """Whether there is a thing, and how far it reaches."""
    logits = seen.things.float()
    each = functional.binary_cross_entropy_with_logits(logits, batch.central, reduction="none")
    off = (torch.sigmoid(logits) - batch.central).abs() ** 2
    things = 4 * (each * off).sum() / (batch.central.sum() + 1)
    learnt = batch.central > _CENTRAL
    if not learnt.any():
        return things, seen.boxes.sum() * 0
    ours, true = seen.boxes[learnt].float().clamp(max=_LARGEST_REACH).exp(), batch.reach[learnt]
    return things, (batch.central[learnt] * (1 - _giou(ours, true))).sum() / batch.central[learnt].sum()


def reached(seen: Seen, batch: EyeBatch) -> list[float]:
    """IoU of the boxes that cells in the middle of things tell with those things."""
    central = batch.central > _MIDDLE
    ours, true = seen.boxes[central].clamp(max=_LARGEST_REACH).exp(), batch.reach[central]
    inner = torch.minimum(ours, true)
    common = (inner[:, 0] + inner[:, 2]) * (inner[:, 1] + inner[:, 3])
    both = sum((one[:, 0] + one[:, 2]) * (one[:, 1] + one[:, 3]) for one in (ours, true))
    fits: list[float] = (common / (both - common)).tolist()
    return fits


def _giou(a: Tensor, b: Tensor) -> Tensor:
    """(m,) of boxes (m, 4) around the same points, by how far they reach."""
    areas = [(one[:, 0] + one[:, 2]) * (one[:, 1] + one[:, 3]) for one in (a, b)]
    inner, outer = torch.minimum(a, b), torch.maximum(a, b)
    common = (inner[:, 0] + inner[:, 2]) * (inner[:, 1] + inner[:, 3])
    hull = (outer[:, 0] + outer[:, 2]) * (outer[:, 1] + outer[:, 3])
    union = areas[0] + areas[1] - common
    return common / union.clamp(min=_TINY) - (hull - union) / hull.clamp(min=_TINY)


def _contrast_loss(learner: EyeLearner, photos: Tensor, captions: Tensor, others: Tensor) -> Tensor:
    scores = learner.contrast_scale.exp() * photos @ torch.cat([captions, others]).T
    own = torch.arange(len(photos), device=photos.device)
    back = scores[:, : len(photos)].T
    return functional.cross_entropy(scores, own) + functional.cross_entropy(back, own)


def _reaches(boxes_xyxy: Floats32, side: int) -> tuple[Floats32, Floats32]:
    """(side²,) how central each cell is in the smallest box around its centre, and (side², 4) how far that reaches."""
    central, reach = np.zeros(side * side, np.float32), np.ones((side * side, 4), np.float32)
    if not len(boxes_xyxy):
        return central, reach
    y, x = (axis.ravel() + 0.5 for axis in np.divmod(np.arange(side * side), side))
    left, top, right, bottom = (side * boxes_xyxy.T[:, :, None]).astype(np.float32)
    reaches = np.stack([x - left, y - top, right - x, bottom - y], axis=-1)
    inside = reaches.min(axis=-1) > 0
    # A thing between the centres of cells belongs to the cell that its own centre is in.
    within = (np.abs((left + right) / 2 - x) <= 0.5) & (np.abs((top + bottom) / 2 - y) <= 0.5)
    inside |= within & ~inside.any(axis=1, keepdims=True)
    reaches = np.maximum(reaches, 0.1)
    smallest = np.where(inside, ((right - left) * (bottom - top)), np.inf).argmin(axis=0)
    cells = np.arange(side * side)
    chosen = reaches[smallest, cells]
    across = np.minimum(chosen[:, 0], chosen[:, 2]) / np.maximum(chosen[:, 0], chosen[:, 2])
    along = np.minimum(chosen[:, 1], chosen[:, 3]) / np.maximum(chosen[:, 1], chosen[:, 3])
    there = inside[smallest, cells]
    central[there], reach[there] = np.sqrt(across * along)[there], chosen[there]
    return central, reach


def _coverage(item: EyeItem, side: int) -> Floats32:
    """(m, side²) the share of each cell that each box covers."""
    along_y, along_x = Frame.of_grid(side, side).coverages(item.boxes_xyxy)
    shares: Floats32 = np.einsum("mr,mc->mrc", along_y, along_x).reshape(len(along_y), side * side).astype(np.float32)
    return shares


def _rows(rows: Sequence[Floats32], *shape: int) -> Tensor:
    return torch.from_numpy(np.stack(rows).astype(np.float32)) if rows else torch.zeros(0, *shape)
