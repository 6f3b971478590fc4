"""Eyes for the world: small networks that learn to name what they see in its scenes, then stay as they are.

They stand where the papers have a detector trained on Visual Genome: every row of a table reads the same frozen
features, so rows differ only in what they learnt from them. One eye names what each patch shows; the other names
regions, because small things are lost among patches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from saywhere.atomic import write_atomic
from saywhere.core.types import Progress
from saywhere.models.mitr.image import GRID, PatchEncoder
from saywhere.models.region_features import RegionFeatures
from saywhere.world import KINDS, STUFF, Scene, make_scene
from saywhere.world.colours import PALETTE

_FIRST_EYE_SCENE = 10_000_000
"""Eyes learn from scenes that no data set reaches."""
_LEAST_SHARE = 0.04
"""A thing is named in a patch of which it covers this much."""
_SIDE_PX = 32
_MARGIN = 0.1
"""How much of its size is added to a box on each side: what a thing stands on helps to name it."""
_LENGTH = 3.0
"""Of every feature. UpDn learns slowly from features of other lengths: at 11, not even the commonest answers."""


def eye_scenes(seed: int, count: int, photo_px: int, progress: Progress) -> list[Scene]:
    """Scenes of a world's far end for an eye to learn from."""
    drawn = []
    for i in range(count):
        drawn.append(make_scene(seed, _FIRST_EYE_SCENE + i, photo_px))
        progress("drawing scenes for the eye", i + 1, count)
    return drawn


def save_photo(path: Path, scene: Scene) -> None:
    """As PNG, whole or not at all."""
    with write_atomic(path) as file:
        Image.fromarray(scene.photo).save(file, format="PNG")


def _learn(
    parameters: Iterable[nn.Parameter], loss_of: Callable[[], Tensor], steps: int, lr: float, warmup: float
) -> None:
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=steps, pct_start=warmup)
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
        optimizer.step()
        schedule.step()


def all_names() -> dict[str, int]:
    """Every kind, stuff and colour, numbered."""
    return {name: i for i, name in enumerate([*KINDS, *STUFF, *(f"{colour} thing" for colour in PALETTE)])}


def patch_names(scene: Scene, names: dict[str, int]) -> NDArray[np.float32]:
    """(64, names) 1 where a thing of that kind or colour covers enough of the patch."""
    side = scene.size // GRID
    blocks = scene.labels.reshape(GRID, side, GRID, side).swapaxes(1, 2).reshape(GRID * GRID, -1)
    found = np.zeros((GRID * GRID, len(names)), dtype=np.float32)
    for i, thing in enumerate(scene.things):
        there = (blocks == i + 1).mean(axis=1) >= _LEAST_SHARE
        for name in (thing.kind, f"{thing.colour} thing"):
            if name in names:
                found[there, names[name]] = 1
    return found


def train_patch_eye(
    scenes: Sequence[Scene], steps: int, seed: int, progress: Progress, size: int = 128, batch: int = 16
) -> PatchEncoder:
    """Learn to name what patches show."""
    names = all_names()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        eye = PatchEncoder(size, scenes[0].size)
        head = nn.Linear(size, len(names))
    rng = np.random.default_rng(seed)
    done = 0

    def loss() -> Tensor:
        nonlocal done
        done += 1
        progress("teaching the eye to name patches", done, steps)
        chosen = [scenes[i] for i in rng.integers(len(scenes), size=batch)]
        wanted = torch.from_numpy(np.stack([patch_names(scene, names) for scene in chosen]))
        seen = functional.relu(eye(_photos(chosen)))
        return functional.binary_cross_entropy_with_logits(head(seen), wanted) * len(names)

    _learn([*eye.parameters(), *head.parameters()], loss, steps, lr=2e-3, warmup=0.1)
    return eye.eval()


@torch.no_grad()
def patch_features(eye: PatchEncoder, scenes: Sequence[Scene], batch: int = 64) -> NDArray[np.float16]:
    """(n, 64, size) features of every patch."""
    parts = (scenes[first : first + batch] for first in range(0, len(scenes), batch))
    return np.concatenate([functional.relu(eye(_photos(some))).numpy().astype(np.float16) for some in parts])


def _photos(scenes: Sequence[Scene]) -> Tensor:
    return torch.from_numpy(np.stack([scene.photo for scene in scenes])).permute(0, 3, 1, 2) / 255


class WorldRegionEye(nn.Module):
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
        return functional.normalize((self.activations(crops) - self.mean) / self.spread, dim=1) * _LENGTH

    def activations(self, crops: Tensor) -> Tensor:
        """(n, size) what the layers say, as they learnt it."""
        found: Tensor = self.layers(crops.float() / 255 - 0.5).amax(dim=(2, 3))
        return found

    @torch.no_grad()
    def standardize(self, crops: Tensor) -> None:
        """From now on features have mean 0 and spread 1 over such crops, before they get their length."""
        seen = self.activations(crops)
        self.mean.copy_(seen.mean(dim=0))
        # Numbers that never change would be noise, enlarged.
        self.spread.copy_(seen.std(dim=0).clamp_min(0.01))


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
    scenes: Sequence[Scene], steps: int, seed: int, progress: Progress, size: int = 128, batch: int = 128
) -> WorldRegionEye:
    """Learn to name kinds and colours of things."""
    kinds = {name: i for i, name in enumerate([*KINDS, *STUFF])}
    colours = {name: i for i, name in enumerate(PALETTE)}
    crops = torch.cat([crops_of(scene, region_boxes(scene)[1:]) for scene in scenes])
    things = [thing for scene in scenes for thing in scene.things]
    kind = torch.tensor([kinds[thing.kind] for thing in things])
    colour = torch.tensor([colours.get(thing.colour, -1) for thing in things])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        eye, naming, colouring = WorldRegionEye(size), nn.Linear(size, len(kinds)), nn.Linear(size, len(colours))
    generator = torch.Generator().manual_seed(seed)
    done = 0

    def loss() -> Tensor:
        nonlocal done
        done += 1
        progress("teaching the eye to name things", done, steps)
        chosen = torch.randint(len(crops), (batch,), generator=generator)
        seen = eye.activations(crops[chosen])
        named = functional.cross_entropy(naming(seen), kind[chosen])
        return named + functional.cross_entropy(colouring(seen), colour[chosen], ignore_index=-1)

    learnt = [*eye.parameters(), *naming.parameters(), *colouring.parameters()]
    _learn(learnt, loss, steps, lr=3e-3, warmup=0.3)
    eye.eval().standardize(crops[: 16 * batch])
    return eye


@torch.no_grad()
def box_features(eye: WorldRegionEye, scene: Scene, boxes_xyxy: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, size) what the eye sees in each of (n, 4) boxes."""
    features: NDArray[np.float32] = eye(crops_of(scene, boxes_xyxy)).numpy()
    return features


def region_features(eye: WorldRegionEye, scene: Scene) -> RegionFeatures:
    """What the eye sees in each of `region_boxes`."""
    boxes = region_boxes(scene)
    return RegionFeatures(box_features(eye, scene, boxes), boxes)
