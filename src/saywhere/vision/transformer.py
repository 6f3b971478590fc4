"""What all transformer encoders share: photos in, a View of each out; and the class token's attention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from saywhere.assets.checkpoint import Checkpoint
from saywhere.core import Frame, InvalidValue, UnknownName
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.pixels import FITS, Pixels, frame_of
from saywhere.vision.view import Encoder, View, checked_side


@dataclass(frozen=True, slots=True)
class BackboneOutput:
    """What a network made of B photos.

    patches: (B, rows, cols, d). whole: (B, d). attention: (B, rows, cols), each photo's sums to 1; or None.
    """

    patches: Tensor
    whole: Tensor
    attention: Tensor | None = None


class Backbone(nn.Module, ABC):
    """A network that sees square photos, their colours scaled as `pixels` says.

    patch_px: the side of a patch; inputs are a multiple of it. native_px: the side that it was trained for.
    """

    def __init__(self, pixels: Pixels, patch_px: int, native_px: int) -> None:
        super().__init__()
        self.pixels, self.patch_px, self.native_px = pixels, patch_px, native_px

    @property
    @abstractmethod
    def size(self) -> int:
        """d, the numbers per patch."""

    @abstractmethod
    def see(self, photos: Tensor) -> BackboneOutput:
        """(B, 3, input_px, input_px) → what is seen."""

    def grid(self, input_px: int) -> tuple[int, int]:
        """Rows and columns for an input of this side."""
        return input_px // self.patch_px, input_px // self.patch_px


class HubEncoder(Encoder):
    """A network from the hub that looks at photos; an `Encoder`.

    kind: the family's prefix. checkpoints: what the network was read from. options: what else the features depend on.
    fit: "squash" (the default: the whole photo, stretched to a square), "centre_crop" (the shorter side fills the
    input, the ends of the longer are not seen) or "letterbox" (the whole photo in its shape, mean colour around it).
    """

    def __init__(
        self,
        backbone: Backbone,
        kind: str,
        checkpoints: Sequence[Checkpoint],
        input_px: int | None = None,
        fit: str = "squash",
        options: Mapping[str, str | int] | None = None,
    ) -> None:
        if fit not in FITS:
            raise UnknownName("fit", fit, FITS)
        self.backbone, self.kind, self.fit = backbone, kind, fit
        self.input_px = checked_side(backbone.native_px if input_px is None else input_px, backbone.patch_px)
        self._checkpoints, self._options = tuple(checkpoints), dict(options or {})

    @property
    def name(self) -> str:
        return f"{self.kind}:{'+'.join(checkpoint.source for checkpoint in self._checkpoints)}"

    @property
    def size(self) -> int:
        return self.backbone.size

    @cached_property
    def fingerprint(self) -> dict[str, str | int]:
        return {
            "encoder": self.kind,
            "checkpoint_sha256": "+".join(checkpoint.sha256() for checkpoint in self._checkpoints),
            "input_px": self.input_px,
            "fit": self.fit,
            "pixels": str(self.backbone.pixels),
            **self._options,
        }

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """How a photo of this width and height, in pixels, becomes the input."""
        return frame_of(photo_size, self.input_px, self.backbone.grid(self.input_px), self.fit)

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        """Several photos at once. All are held in memory: give a folder in parts."""
        if not photos:
            return []
        images = [read_photo(photo) for photo in photos]
        frames = [self.frame(image.size) for image in images]
        with torch.inference_mode():
            seen = self.backbone.see(self.backbone.pixels.tensor(images, frames, next(self.backbone.parameters())))
        patches, whole = seen.patches.float().cpu().numpy(), seen.whole.float().cpu().numpy()
        if seen.attention is None:
            return [View(frame, patches[n], whole[n]) for n, frame in enumerate(frames)]
        attention = seen.attention.double().cpu().numpy()
        # What lies beside the photo gets none.
        on_photo = [frame.coverage((0, 0, 1, 1)) for frame in frames]
        return [View(frame, patches[n], whole[n], attention[n] * on_photo[n]) for n, frame in enumerate(frames)]


@contextmanager
def outputs_of(**modules: nn.Module) -> Iterator[dict[str, Tensor]]:
    """What each of these modules gives when it is next called, under the name given here."""
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            kept[name] = output

        return hook

    handles = [module.register_forward_hook(keep(name)) for name, module in modules.items()]
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def class_attention(query: Tensor, keys: Tensor, heads: int) -> Tensor:
    """How much the class token attends to each patch: for each head softmax over the patches, then the heads' mean.

    query: (B, D) of the class token. keys: (B, n, D) of the patches alone. → (B, n), each row sums to 1.
    """
    size = query.shape[-1] // heads
    scores = torch.einsum("bhd,bnhd->bhn", query.reshape(-1, heads, size), keys.reshape(*keys.shape[:2], heads, size))
    attention: Tensor = (scores / size**0.5).softmax(dim=-1).mean(dim=1)
    return attention


def on_grid(tokens: Tensor, grid: tuple[int, int]) -> Tensor:
    """(B, rows * cols, ...) → (B, rows, cols, ...)."""
    return tokens.reshape(len(tokens), *grid, *tokens.shape[2:])


def square_side(size: object, what: str) -> int:
    """A config's size in pixels, which may be written as a number or as two equal ones."""
    sides = {size} if isinstance(size, int) else set(size) if isinstance(size, list | tuple) else set()
    if len(sides) != 1 or not all(isinstance(side, int) and side > 0 for side in sides):
        raise InvalidValue(what, f"is {size!r}, not one side in pixels")
    return int(sides.pop())


def sides_of(network: Any) -> tuple[int, int]:
    """The side of a patch and of the input that a network was trained for, in pixels, as its config says."""
    config = network.config
    return square_side(config.patch_size, "patch_size"), square_side(config.image_size, "image_size")
