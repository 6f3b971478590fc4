"""How the part of a model that names boxes is made: from photos with boxes that its eye never learnt from.

    every box, and places around that hold nothing → what eye and detector know of them → a small network → naming/

What was seen stays in the folder; a later run goes on with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from saywhere.build.parts import install_part
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import InvalidFile, InvalidValue, SaywhereError
from saywhere.core.types import Floats32, Progress
from saywhere.models.folder import WEIGHTS
from saywhere.models.patchioner.eyes import EncoderEyes
from saywhere.models.patchioner.naming import BoxNaming, NamingConfig, NamingNet, evidence, grown
from saywhere.models.patchioner.seer_config import EYE
from saywhere.store import Store, StoreWriter
from saywhere.vision import View, read_photo

SEEN, PART = "seen", "naming"
"""What a build's folder holds: `PART` is for the model, the rest may be thrown away."""
KIND: Final = "named-boxes"
FIELDS: Final = {"of_kinds": "float16", "of_boxes": "float32", "kinds": "int16"}
_SHARD_BYTES: Final = 2 << 20
_EMPTY_EACH, _TRIES = 2, 60
"""Places that hold nothing, of each photo, and how often one is looked for."""
_EMPTY: Final = 0.1
"""A place holds nothing if boxes cover no more of it."""
_EMPTY_SIDES: Final = (0.06, 0.9)
_FORMS: Final = ((1.0, 0.75), (0.75, 1.0))
"""Photos that are kept as squares may have been wider or higher once."""
_SURE_SCORE, _USUAL = 0.25, 0.1
_FOLDS: Final = 5


@dataclass(frozen=True, slots=True)
class NamingScale:
    """epochs, batch, rate: of the training. alike: how much kinds are kept from differing. photos: at most."""

    epochs: int = 12
    batch: int = 256
    rate: float = 6e-3
    alike: float = 0.1
    width: int = 32
    photos: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class BuiltNaming:
    """part: its folder. measures: of a fifth of the photos, by a network that learnt from the others."""

    part: Path
    photos: int
    boxes: int
    measures: dict[str, float]
    unreadable: tuple[str, ...]


def build_naming(
    coco: Store, eyes: EncoderEyes, model: Path, out: Path, scale: NamingScale, progress: Progress
) -> BuiltNaming:
    """Write out/naming, a part of a model. eyes, model: of the model, and its folder."""
    unreadable = see_boxes(coco, eyes, model, out / SEEN, scale, progress)
    data = _Data.read(out / SEEN)
    config = NamingConfig(COCO_CLASSES, scale.width)
    held = torch.from_numpy(data.photos % _FOLDS == 0)
    progress("learning to name boxes", 0, 2)
    measures = naming_measures(data.only(held), fit(data.only(~held), config, scale)) if held.any() else {}
    progress("learning to name boxes", 1, 2)
    BoxNaming(fit(data, config, scale)).save_pretrained(out / PART)
    progress("learning to name boxes", 2, 2)
    return BuiltNaming(out / PART, len(set(data.photos.tolist())), len(data.kinds), measures, unreadable)


def install_naming(part: Path, model: Path) -> None:
    """Put a trained part into a model's folder, in place of one that was there, and name it in seer.json."""
    BoxNaming.from_pretrained(part)
    install_part(part, model, naming=part.name)


def see_boxes(
    coco: Store, eyes: EncoderEyes, model: Path, out: Path, scale: NamingScale, progress: Progress
) -> tuple[str, ...]:
    """Write what is known of the boxes of photos that the eye did not learn from, or go on with it; the photos that
    cannot be read."""
    if eyes.detector is None or not hasattr(eyes.encoder, "namer"):
        raise InvalidFile(model, "has no eye with a detector", "see docs/data.md for how to make one")
    chosen = [row.key for row in coco if row["split"] == "validation" and len(row["boxes_xyxy"])][: scale.photos]
    if not chosen:
        raise InvalidFile(coco.folder, 'has no photo of the split "validation" with boxes')
    sees = hashlib.sha256((model / EYE / WEIGHTS).read_bytes()).hexdigest()
    about = {"eye": sees, **eyes.detector.fingerprint}
    unreadable = []
    with StoreWriter(out, KIND, FIELDS, about, shard_bytes=_SHARD_BYTES) as writer:
        for done, key in enumerate(chosen, start=1):
            if key not in writer:
                row = coco.by_key(key)
                try:
                    view = _look(read_photo(Image.open(BytesIO(row["jpeg"]))), eyes)
                except (OSError, SaywhereError):
                    unreadable.append(key)
                    continue
                writer.add(key, **naming_row(key, view, row["boxes_xyxy"], row["classes"], eyes))
            progress("looking at boxes", done, len(chosen))
    return tuple(unreadable)


def naming_row(key: str, view: View, boxes_xyxy: Any, kinds: Any, eyes: EncoderEyes) -> dict[str, Any]:
    """What is known of a photo's boxes, and of places that hold nothing, whose kind is the one after the last."""
    boxes = grown(np.asarray(boxes_xyxy, np.float32))
    # Which places are tried depends on the photo alone, so that a run that went on is like one that never stopped.
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))
    empty = empty_places(boxes, rng)
    known = evidence(np.concatenate([boxes, empty]), view, eyes.encoder.namer)  # type: ignore[attr-defined]  # an eye's
    named = [*np.asarray(kinds).tolist(), *[len(COCO_CLASSES)] * len(empty)]
    return {"of_kinds": known.of_kinds.astype(np.float16), "of_boxes": known.of_boxes, "kinds": named}


def empty_places(boxes_xyxy: Floats32, rng: np.random.Generator) -> Floats32:
    """(n, 4) some places that (m, 4) boxes hardly cover; none where nothing is free."""
    places = []
    for _ in range(_TRIES):
        sides = np.exp(rng.uniform(np.log(_EMPTY_SIDES[0]), np.log(_EMPTY_SIDES[1]), 2))
        first = rng.uniform(0, 1 - sides)
        last = first + sides
        common = np.minimum(boxes_xyxy[:, 2:], last) - np.maximum(boxes_xyxy[:, :2], first)
        if common.clip(min=0).prod(axis=1).sum() <= _EMPTY * sides.prod():
            places.append([*first, *last])
        if len(places) == _EMPTY_EACH:
            break
    return np.array(places, np.float32).reshape(-1, 4)


def _look(photo: Image.Image, eyes: EncoderEyes) -> View:
    """A photo as the eye sees it, with what the detector weighed. One that was made a square is shown to the detector,
    which was taught photos as they are, in the form in which it is surest of things; wide, if in doubt."""
    best = eyes.detector.find(photo)
    if photo.width == photo.height:
        sure = _certainty(best)
        for wide, high in _FORMS:
            size = max(1, round(wide * photo.width)), max(1, round(high * photo.height))
            seen = eyes.detector.find(photo.resize(size, Image.Resampling.BICUBIC))
            gained = _certainty(seen) + (_USUAL if wide > high else 0)
            if gained > sure:
                best, sure = seen, gained
    return eyes.encoder.look(photo).with_found(best.found, best.proposals)


def _certainty(seen: Any) -> float:
    return float(sum(one.score for one in seen.found if one.score > _SURE_SCORE))


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """All boxes. kinds: (n,). photos: (n,) the number of each one's photo."""

    of_kinds: Tensor
    of_boxes: Tensor
    kinds: Tensor
    photos: np.ndarray[Any, np.dtype[np.intp]]

    @classmethod
    def read(cls, folder: Path) -> _Data:
        rows = list(_rows(folder))
        if not rows:
            raise InvalidFile(folder, "holds no box to learn from")
        counts = [len(row[2]) for row in rows]
        known = (np.concatenate([row[place] for row in rows]) for place in range(3))
        of_kinds, of_boxes, kinds = (torch.from_numpy(one) for one in known)
        return cls(of_kinds.float(), of_boxes, kinds.long(), np.repeat(np.arange(len(rows)), counts))

    def only(self, chosen: Tensor) -> _Data:
        return _Data(self.of_kinds[chosen], self.of_boxes[chosen], self.kinds[chosen], self.photos[chosen.numpy()])


def _rows(folder: Path) -> Iterator[Sequence[Any]]:
    for row in sorted(Store(folder, KIND), key=lambda one: str(one.key)):
        if len(row["kinds"]):
            yield np.array(row["of_kinds"]), np.array(row["of_boxes"]), np.array(row["kinds"])


def fit(data: _Data, config: NamingConfig, scale: NamingScale) -> NamingNet:
    """A network that learnt from boxes."""
    if int(data.kinds.max()) > len(config.names):
        raise InvalidValue("boxes", f"are of kinds up to {int(data.kinds.max())}, but there are {len(config.names)}")
    generator = torch.Generator().manual_seed(scale.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(scale.seed)
        network = NamingNet(config)
    network.spread_as(data.of_kinds, data.of_boxes)
    own = [network.bias, network.lying, network.counting]
    other = [one for one in network.parameters() if not any(one is some for some in own)]
    groups = [{"params": other, "weight_decay": 0.01}, {"params": own, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=scale.rate)
    steps = max(10, scale.epochs * len(data.kinds) // scale.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, scale.rate, total_steps=steps, pct_start=0.1)
    for _ in range(steps):
        drawn = torch.randint(len(data.kinds), (scale.batch,), generator=generator)
        logits = network(data.of_kinds[drawn], data.of_boxes[drawn])
        loss = functional.cross_entropy(logits, data.kinds[drawn]) + scale.alike * network.special()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return network.eval()


def naming_measures(data: _Data, network: NamingNet) -> dict[str, float]:
    """Shares: of boxes, and of those without persons, whose kind has the largest chance of all kinds; the same by the
    best claim; of places that hold nothing and of boxes, those that are taken for none."""
    with torch.inference_mode():
        logits = network(data.of_kinds, data.of_boxes)
    none, person = len(network.config.names), network.config.names.index("person")
    there = data.kinds != none
    others = there & (data.kinds != person)
    right, claimed = (one.argmax(dim=1) == data.kinds for one in (logits[:, :none], data.of_kinds[..., 1]))
    taken_for_none = logits.argmax(dim=1) == none
    return {
        "named right": _mean(right[there]),
        "named right (non-person)": _mean(right[others]),
        "by the best claim": _mean(claimed[there]),
        "by the best claim (non-person)": _mean(claimed[others]),
        "empty places taken for none": _mean(taken_for_none[~there]),
        "boxes taken for none": _mean(taken_for_none[there]),
    }


def _mean(values: Tensor) -> float:
    return float(values.float().mean()) if len(values) else float("nan")
