"""What a box is called: one of the kinds that a detector knows, or none of them, each with its chance.

    naming = BoxNaming.from_pretrained("folder")
    naming.chances(boxes_xyxy, view, namer)         # (m, kinds + 1), the last: none of these

Beside the best place that fits a box, what a detector and an eye know of a kind says more than the place alone: how the
places around agree, how sure the kind is anywhere in the photo, how near the box's patches are to its name. One small
network reads this of each kind, the same for all of them but for a few numbers, so that little is needed to learn it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets.checkpoint import CONFIG
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.folder import built, load_part, save_part
from saywhere.vision.things import Namer, box_means
from saywhere.vision.view import Proposals, View

EVIDENCE: Final = 12
"""Numbers of a kind, see `_of_kinds`."""
ABOUT: Final = 12
"""Numbers of a box, whatever it shows, see `_of_boxes`."""
_KIND = "patchioner-naming"
_FAINT: Final = 1e-3
_COSINES: Final = 10.0
_CENTRE: Final = 0.5
"""The inner part of a box, along each side."""
_LEAST_IOU: Final = 0.05
_DOUBT: Final = 4e-4
_LEAST_PRESENT: Final = 1e-3
_EDGE: Final = 0.01
_SMALLEST: Final = 1e-3
"""Boxes are at least so wide and high, in fractions of the photo."""


@dataclass(frozen=True, slots=True)
class NamingConfig:
    """names: of the kinds, as the detector calls them. width: of the network. sharpness: the chances of what a box may
    show, to this power, are what names it: a mean of several names would be no name."""

    names: tuple[str, ...]
    width: int = 32
    sharpness: float = 4.0

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or len(self.names) < 2 or not all(self.names):
            raise InvalidValue("naming names", "are not at least two different names")
        if self.width < 1 or not 0 < self.sharpness < float("inf"):
            raise InvalidValue("naming width, sharpness", f"are {self.width}, {self.sharpness}, not above 0")

    def to_dict(self) -> dict[str, Any]:
        return {"names": list(self.names), "width": self.width, "sharpness": self.sharpness}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> NamingConfig:
        names = values.get("names")
        if set(values) != {"names", "width", "sharpness"} or not isinstance(names, list):
            raise InvalidValue("naming config", "does not say names, width and sharpness, and nothing else")
        if not all(isinstance(name, str) for name in names):
            raise InvalidValue("naming names", "are not texts")
        width, sharpness = values["width"], values["sharpness"]
        if isinstance(width, bool) or not isinstance(width, int):
            raise InvalidValue("naming width", f"is {width!r}, not a whole number")
        if isinstance(sharpness, bool) or not isinstance(sharpness, int | float):
            raise InvalidValue("naming sharpness", f"is {sharpness!r}, not a number")
        return cls(tuple(names), width, sharpness)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is known of m boxes. of_kinds: (m, kinds, EVIDENCE). of_boxes: (m, ABOUT)."""

    of_kinds: Floats32
    of_boxes: Floats32


class NamingNet(nn.Module):
    """What is known of boxes → logits of kinds, and of none of them."""

    kind_mean: Tensor
    kind_spread: Tensor
    box_mean: Tensor
    box_spread: Tensor

    def __init__(self, config: NamingConfig) -> None:
        super().__init__()
        self.config = config
        kinds, width = len(config.names), config.width
        for name, size in (("kind", EVIDENCE), ("box", ABOUT)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_spread", torch.ones(size))
        self.straight = nn.Linear(EVIDENCE, 1)
        self.read_kind, self.read_box = nn.Linear(EVIDENCE, width), nn.Linear(ABOUT, width)
        self.between, self.told = nn.Linear(width, width), nn.Linear(width, 1)
        # What is special about a kind, beside what all share: how frequent it is, where its boxes lie, what counts.
        self.bias = nn.Parameter(torch.zeros(kinds))
        self.lying = nn.Parameter(torch.zeros(kinds, ABOUT))
        self.counting = nn.Parameter(torch.zeros(kinds, EVIDENCE))
        self.none = nn.Sequential(nn.Linear(ABOUT, width), nn.GELU(), nn.Linear(width, 1))

    def spread_as(self, of_kinds: Tensor, of_boxes: Tensor) -> None:
        """Read numbers that are spread like these as if they had mean 0 and spread 1."""
        for name, values in (("kind", of_kinds.flatten(0, 1)), ("box", of_boxes)):
            self.register_buffer(f"{name}_mean", values.mean(dim=0))
            self.register_buffer(f"{name}_spread", values.std(dim=0).clamp(min=_FAINT))

    def special(self) -> Tensor:
        """How much kinds differ, to be kept small."""
        return sum(((one**2).sum() for one in (self.bias, self.lying, self.counting)), torch.zeros(())) / len(self.bias)

    def forward(self, of_kinds: Tensor, of_boxes: Tensor) -> Tensor:
        """(m, kinds, EVIDENCE), (m, ABOUT) → (m, kinds + 1)."""
        known = (of_kinds - self.kind_mean) / self.kind_spread
        box = (of_boxes - self.box_mean) / self.box_spread
        hidden = functional.gelu(self.read_kind(known) + self.read_box(box)[:, None])
        hidden = functional.gelu(self.between(hidden))
        shared = self.straight(known)[..., 0] + self.told(hidden)[..., 0]
        own = self.bias + box @ self.lying.T + (known * self.counting).sum(dim=-1)
        return torch.cat([shared + own, self.none(box)], dim=1)


class BoxNaming:
    """A network at rest."""

    def __init__(self, network: NamingNet) -> None:
        self.network = network.eval()

    @property
    def config(self) -> NamingConfig:
        return self.network.config

    def chances(self, boxes_xyxy: Floats32, view: View, namer: Namer) -> Floats32:
        """(m, kinds + 1) what (m, 4) boxes show, the last: none of the kinds. view: with what a detector weighed.
        namer: of the eye that saw it."""
        if view.proposals is None or view.proposals.names != self.config.names:
            raise InvalidValue("view", "has no places that a detector weighed for the kinds that this part names")
        known = evidence(boxes_xyxy, view, namer)
        with torch.inference_mode():
            logits = self.network(torch.from_numpy(known.of_kinds), torch.from_numpy(known.of_boxes))
        chances: Floats32 = logits.softmax(dim=1).numpy()
        return chances

    def save_pretrained(self, folder: str | Path) -> None:
        """Weights, as float16, and shape into a folder."""
        save_part(folder, _KIND, self.config.to_dict(), self.network.state_dict(), half=True)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> BoxNaming:
        """From a folder, or from the hub ("owner/name")."""
        part = load_part(source, _KIND, revision)
        try:
            config = NamingConfig.from_dict(part.config)
            return cls(built(lambda: NamingNet(config), part))
        except InvalidValue as error:
            raise InvalidFile(part.folder / CONFIG, str(error)) from error


def evidence(boxes_xyxy: Floats32, view: View, namer: Namer) -> Evidence:
    """What is known of (m, 4) boxes, fractions of the photo."""
    proposals = view.proposals
    if proposals is None:
        raise InvalidValue("view", "has no places that a detector weighed")
    boxes = grown(boxes_xyxy)
    order = [namer.names.index(name) for name in proposals.names if name in namer.names]
    if len(order) != len(proposals.names):
        raise InvalidValue("namer", "does not know all kinds that the detector weighed")
    names = namer.vectors[order].T
    cosines = _COSINES * (box_means(view.patches, boxes) @ names)
    central = _COSINES * (box_means(view.patches, _inner(boxes)) @ names)
    present = np.array([view.present.get(name, 0.0) for name in proposals.names])
    odds = np.clip(present, _LEAST_PRESENT, 1 - _LEAST_PRESENT)
    anywhere = np.stack([_log(proposals.scores.max(axis=0, initial=0.0)), np.log(odds / (1 - odds))], axis=1)
    of_kinds = np.zeros((len(boxes), len(proposals.names), EVIDENCE), np.float32)
    of_boxes = np.zeros((len(boxes), ABOUT), np.float32)
    for number, box in enumerate(boxes):
        places = _Places.beside(box, proposals)
        of_kinds[number] = _of_kinds(places, cosines[number], central[number], anywhere)
        of_boxes[number] = _of_box(box, places, of_kinds[number])
    return Evidence(of_kinds, of_boxes)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Those places near a box that a detector weighed. scores: (n, kinds). iou: (n, 1) with the box. mutual: (n, 1) the
    root of the shares that place and box have of each other."""

    scores: Floats32
    iou: Floats32
    mutual: Floats32

    @classmethod
    def beside(cls, box_xyxy: Floats32, proposals: Proposals) -> _Places:
        first, last = proposals.boxes_xyxy[:, :2], proposals.boxes_xyxy[:, 2:]
        sides = np.minimum(last, box_xyxy[2:]) - np.maximum(first, box_xyxy[:2])
        common = sides.clip(min=0).prod(axis=1)
        areas, own = np.maximum((last - first).prod(axis=1), 1e-12), (box_xyxy[2:] - box_xyxy[:2]).prod()
        iou = common / np.maximum(areas + own - common, 1e-12)
        near = iou > _LEAST_IOU
        mutual = common[near] / np.sqrt(areas[near] * own)
        return cls(proposals.scores[near], iou[near, None], mutual[:, None])

    def best(self, fits: Floats32) -> Floats32:
        """(kinds,) the largest score of a place times (n, 1) how it fits."""
        largest: Floats32 = (self.scores * fits).max(axis=0, initial=0.0)
        return largest


def _of_kinds(places: _Places, cosines: Floats32, central: Floats32, anywhere: Floats32) -> Floats32:
    """(kinds, EVIDENCE) logarithms of the best score × IoU, IoU², IoU⁴, of all places' squares together, of the best by
    how place and box lie in each other, and anywhere in the photo; cosines of the box's patches, and of its middle's,
    with the name; log-odds of presence; how far the kind leads before the next, by places and by cosine; its share."""
    claims = places.best(places.iou**2)
    together = (places.scores**2 * places.iou**4).sum(axis=0)
    logs = [_log(one) for one in (places.best(places.iou), claims, places.best(places.iou**4), together)]
    share = claims**2 / ((claims**2).sum() + _DOUBT)
    numbers = (
        *logs,
        _log(places.best(places.mutual)),
        anywhere[:, 0],
        cosines,
        central,
        anywhere[:, 1],
        _lead(logs[1]),
        _lead(cosines),
        4 * share,
    )
    return np.stack(numbers, axis=1).astype(np.float32)


def _of_box(box_xyxy: Floats32, places: _Places, of_kinds: Floats32) -> Floats32:
    """(ABOUT,) size, form and middle of a box; which edges of the photo it touches; its best claim and cosine, its best
    fit with a place, and the surest place near it."""
    left, top, right, bottom = box_xyxy.tolist()
    wide, high = right - left, bottom - top
    shape = (np.log(wide * high + 1e-5), np.log((wide + 1e-4) / (high + 1e-4)), (left + right) / 2, (top + bottom) / 2)
    touches = (left < _EDGE, top < _EDGE, right > 1 - _EDGE, bottom > 1 - _EDGE)
    nearest, surest = places.iou.max(initial=0.0), places.scores.max(initial=_FAINT)
    best = (of_kinds[:, 1].max(), of_kinds[:, 6].max(), _log(nearest), _log(surest))
    return np.array([*shape, *touches, *best], np.float32)


def _log(values: Any) -> Any:
    return np.log(values + _FAINT)


def _lead(values: Floats32) -> Floats32:
    """(kinds,) how much larger each is than the largest of the others."""
    second, first = np.partition(values, -2)[-2:]
    lead: Floats32 = values - np.where(values == first, second, first)
    return lead


def grown(boxes_xyxy: Floats32) -> Floats32:
    """(m, 4) boxes within the photo, none without an area."""
    corners = np.clip(np.asarray(boxes_xyxy, np.float32).reshape(-1, 4), 0, 1)
    middles, halves = (corners[:, :2] + corners[:, 2:]) / 2, (corners[:, 2:] - corners[:, :2]) / 2
    halves = np.maximum(halves, _SMALLEST / 2)
    middles = np.clip(middles, halves, 1 - halves)
    return np.concatenate([middles - halves, middles + halves], axis=1)


def _inner(boxes_xyxy: Floats32) -> Floats32:
    middles, sides = (boxes_xyxy[:, :2] + boxes_xyxy[:, 2:]) / 2, boxes_xyxy[:, 2:] - boxes_xyxy[:, :2]
    return np.concatenate([middles - _CENTRE * sides / 2, middles + _CENTRE * sides / 2], axis=1)
