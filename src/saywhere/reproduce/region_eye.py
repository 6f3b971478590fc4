"""An eye for the regions of the world: it has learnt to name things and their colours, then stays as it is.

It stands where the HINT paper has a detector trained on Visual Genome: all rows of a table read the same features, so
they differ only in what they learnt about questions. (`eye` names patches; small things are lost among them.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.types import Progress
from saywhere.models.region_features import RegionFeatures
from saywhere.world import KINDS, STUFF, Scene, make_scene
from saywhere.world.colours import PALETTE

_FIRST_EYE_SCENE = 10_000_000
_SIDE_PX = 32
_MARGIN = 0.1
"""How much of its size is added to a box on each side: what a thing stands on helps to name it."""
_LENGTH = 3.0
"""Of every feature. UpDn learns slowly from features of other lengths: at 11, not even the commonest answers."""


class RegionEye(nn.Module):
    """Crops (n, 3, 32, 32) to features (n, size) of length 3."""

    mean: Tensor
    spread: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        widths = (3, 24, 48, 64, 96, size)
        layers: list[nn.Module] = []
        for before, after, stride in zip(widths, widths[1:], (2, 1, 2, 2, 1), strict=False):
            layers += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("spread", torch.ones(size))

    def forward(self, crops: Tensor) -> Tensor:
        return functional.normalize((self.seen(crops) - self.mean) / self.spread, dim=1) * _LENGTH

    def seen(self, crops: Tensor) -> Tensor:
        """(n, size) what the layers say, as they learnt it."""
        found: Tensor = self.layers(crops.float() / 255 - 0.5).amax(dim=(2, 3))
        return found


def crops_of(scene: Scene, boxes_xyxy: NDArray[np.float32]) -> Tensor:
    """(n, 3, 32, 32) uint8, what is in (n, 4) boxes and a little around them."""
    return torch.from_numpy(np.stack([_crop(scene.photo, *box.tolist()) for box in boxes_xyxy])).permute(0, 3, 1, 2)


def _crop(photo: NDArray[np.uint8], x1: float, y1: float, x2: float, y2: float) -> NDArray[np.uint8]:
    places = []
    for low, high, pixels in ((y1, y2, photo.shape[0]), (x1, x2, photo.shape[1])):
        room = _MARGIN * (high - low)
        middles = low - room + (high - low + 2 * room) * (np.arange(_SIDE_PX) + 0.5) / _SIDE_PX
        places.append(np.clip((middles * pixels).astype(np.intp), 0, pixels - 1))
    crop: NDArray[np.uint8] = photo[places[0][:, None], places[1]]
    return crop


def region_boxes(scene: Scene) -> NDArray[np.float32]:
    """(1 + things, 4) what a detector that misses nothing would give: the whole image, then every thing's box."""
    return np.array([(0.0, 0.0, 1.0, 1.0), *(thing.box_xyxy for thing in scene.things)], dtype=np.float32)


def train_region_eye(
    scenes: Sequence[Scene],
    steps: int,
    seed: int,
    size: int = 128,
    batch: int = 128,
    on_step: Callable[[int], None] | None = None,
) -> RegionEye:
    """Learn to name kinds and colours of things."""
    kinds = {name: i for i, name in enumerate([*KINDS, *STUFF])}
    colours = {name: i for i, name in enumerate(PALETTE)}
    crops = torch.cat([crops_of(scene, region_boxes(scene)[1:]) for scene in scenes])
    things = [thing for scene in scenes for thing in scene.things]
    kind = torch.tensor([kinds[thing.kind] for thing in things])
    colour = torch.tensor([colours.get(thing.colour, -1) for thing in things])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        eye, naming, colouring = RegionEye(size), nn.Linear(size, len(kinds)), nn.Linear(size, len(colours))
    learnt = [*eye.parameters(), *naming.parameters(), *colouring.parameters()]
    optimizer = torch.optim.AdamW(learnt, lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        chosen = torch.randint(len(crops), (batch,), generator=generator)
        seen = eye.seen(crops[chosen])
        loss = functional.cross_entropy(naming(seen), kind[chosen])
        loss = loss + functional.cross_entropy(colouring(seen), colour[chosen], ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
        optimizer.step()
        schedule.step()
        if on_step:
            on_step(step)
    _settle(eye.eval(), crops[: 16 * batch])
    return eye


def taught_eye(seed: int, scenes: int, steps: int, size: int, photo_px: int, progress: Progress) -> RegionEye:
    """An eye that learnt from so many scenes of a world's far end, which no data set reaches."""
    drawn = []
    for i in range(scenes):
        drawn.append(make_scene(seed, _FIRST_EYE_SCENE + i, photo_px))
        progress("drawing scenes for the eye", i + 1, scenes)
    doing = "teaching the eye to name things"
    return train_region_eye(drawn, steps, seed, size, on_step=lambda step: progress(doing, step + 1, steps))


@torch.no_grad()
def _settle(eye: RegionEye, crops: Tensor) -> None:
    seen = eye.seen(crops)
    eye.mean.copy_(seen.mean(dim=0))
    # Numbers that never change would be noise, enlarged.
    eye.spread.copy_(seen.std(dim=0).clamp_min(0.01))


@torch.no_grad()
def see_boxes(eye: RegionEye, scene: Scene, boxes_xyxy: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, size) what the eye sees in each of (n, 4) boxes."""
    features: NDArray[np.float32] = eye(crops_of(scene, boxes_xyxy)).numpy()
    return features


def see_regions(eye: RegionEye, scene: Scene) -> RegionFeatures:
    """What the eye sees in each of `region_boxes`."""
    boxes = region_boxes(scene)
    return RegionFeatures(see_boxes(eye, scene, boxes), boxes)
