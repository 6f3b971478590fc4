"""EfficientNet-Lite 0, 1 and 2 (Tan & Le 2019, without squeeze-and-excitation and with ReLU6) in plain torch.

Read from weights under the names of the `efficientnet_lite_pytorch` package, which took them from TensorFlow: hence
the padding and the epsilon. All keys must be there and all must be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import fuse_conv_bn_eval

from saywhere.assets.checkpoint import read_tensors
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName

STRIDE = 32
"""Input pixels to one cell of the feature map, each way."""
# The networks saw 8-bit values v as (v - 127) / 128.
MEAN_8BIT, SCALE_8BIT = 127.0, 128.0

_EPSILON = 1e-3
_EXPANSION = 6
# Kernel and stride of the seven stages.
_STAGES = ((3, 1), (3, 2), (5, 2), (3, 2), (5, 1), (5, 2), (3, 1))
_NARROW, _WIDER = (16, 24, 40, 80, 112, 192, 320), (16, 24, 48, 88, 120, 208, 352)


@dataclass(frozen=True, slots=True)
class LiteConfig:
    """The size of a network. widths, repeats: channels and blocks of each of the seven stages."""

    repeats: tuple[int, ...]
    widths: tuple[int, ...]
    stem: int = 32
    head: int = 1280
    classes: int = 1000

    def __post_init__(self) -> None:
        numbers = (*self.repeats, *self.widths, self.stem, self.head, self.classes)
        if len(self.repeats) != len(_STAGES) or len(self.widths) != len(_STAGES) or min(numbers) < 1:
            raise InvalidValue("LiteConfig", f"needs {len(_STAGES)} repeats and widths, each at least 1, not {self}")


CONFIGS = {
    "efficientnet-lite0": LiteConfig((1, 2, 2, 3, 3, 4, 1), _NARROW),
    "efficientnet-lite1": LiteConfig((1, 3, 3, 4, 4, 5, 1), _NARROW),
    "efficientnet-lite2": LiteConfig((1, 3, 3, 4, 4, 5, 1), _WIDER),
}


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after one axis so that ceil(size / stride) outputs result. The odd one goes after, as in TF."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class ConvNorm(nn.Module):
    """Convolution and batch norm, then ReLU6 where asked."""

    def __init__(self, into: int, out: int, kernel: int = 1, stride: int = 1, *, groups: int = 1, active: bool = True):
        super().__init__()
        self.kernel, self.stride, self.active = kernel, stride, active
        # Odd kernels at stride 1 pad evenly, which the convolution does itself.
        inside = kernel // 2 if stride == 1 else 0
        self.conv = nn.Conv2d(into, out, kernel, stride, inside, groups=groups, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(out, eps=_EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """(B, into, h, w) → (B, out, ceil(h / stride), ceil(w / stride))."""
        if self.stride > 1:
            top, bottom = same_padding(x.shape[-2], self.kernel, self.stride)
            left, right = same_padding(x.shape[-1], self.kernel, self.stride)
            x = functional.pad(x, (left, right, top, bottom))
        x = self.norm(self.conv(x))
        return functional.relu6(x) if self.active else x

    def fold(self) -> None:
        """Put the norm's fixed numbers into the convolution."""
        if isinstance(self.norm, nn.BatchNorm2d):
            self.conv = fuse_conv_bn_eval(self.conv, self.norm)
            self.norm = nn.Identity()


class InvertedResidual(nn.Module):
    """Widen, look around channel by channel, narrow; with a way past it where the shape stays."""

    def __init__(self, into: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        middle = into * expansion
        self.expand = ConvNorm(into, middle) if expansion > 1 else None
        self.around = ConvNorm(middle, middle, kernel, stride, groups=middle)
        self.project = ConvNorm(middle, out, active=False)
        self.skips = stride == 1 and into == out

    def forward(self, x: Tensor) -> Tensor:
        """(B, into, h, w) → (B, out, h / stride, w / stride)."""
        y = x if self.expand is None else self.expand(x)
        narrow: Tensor = self.project(self.around(y))
        return x + narrow if self.skips else narrow


class EfficientNetLite(nn.Module):
    """A photo to a map of features, and to ImageNet's classes if the classifier is there."""

    def __init__(self, config: LiteConfig, *, classifier: bool = True) -> None:
        super().__init__()
        self.config = config
        self.stem = ConvNorm(3, config.stem, 3, 2)
        self.blocks = nn.Sequential(*_blocks(config))
        self.head = ConvNorm(config.widths[-1], config.head)
        self.classifier = nn.Linear(config.head, config.classes) if classifier else None

    def features(self, photos: Tensor) -> Tensor:
        """(B, 3, H, W) RGB as (v - 127) / 128 → (B, 1280, H / 32, W / 32), each number within [0, 6]."""
        if photos.ndim != 4 or photos.shape[1] != 3 or photos.shape[2] % STRIDE or photos.shape[3] % STRIDE:
            raise InvalidValue("photos", f"have shape {tuple(photos.shape)}, not (B, 3, H, W) in multiples of {STRIDE}")
        seen: Tensor = self.head(self.blocks(self.stem(photos)))
        return seen

    def logits(self, features: Tensor) -> Tensor:
        """(B, 1280, h, w) features → (B, 1000) scores of ImageNet's classes in their usual order."""
        if self.classifier is None:
            raise InvalidValue("the network", "has no classifier: its weights were not in the file")
        scores: Tensor = self.classifier(features.mean(dim=(2, 3)))
        return scores

    def forward(self, photos: Tensor) -> Tensor:
        """(B, 3, H, W) → (B, 1000)."""
        return self.logits(self.features(photos))

    def fold(self) -> None:
        """Make the network faster and fixed: batch norms become part of the convolutions. It must be in eval mode."""
        if self.training:
            raise InvalidValue("the network", "is in training mode: its batch norms still change", "call eval() first")
        for module in list(self.modules()):
            if isinstance(module, ConvNorm):
                module.fold()


def _blocks(config: LiteConfig) -> Iterable[InvertedResidual]:
    into = config.stem
    for stage, ((kernel, stride), width) in enumerate(zip(_STAGES, config.widths, strict=True)):
        for repeat in range(config.repeats[stage]):
            yield InvertedResidual(into, width, kernel, stride if repeat == 0 else 1, _EXPANSION if stage else 1)
            into = width


def config_of(name: str) -> LiteConfig:
    """The size of the network of this name."""
    if name not in CONFIGS:
        raise UnknownName("encoder", name, CONFIGS)
    return CONFIGS[name]


def load_lite(path: str | Path, config: LiteConfig) -> EfficientNetLite:
    """A network from a safetensors file under the released names: in eval mode, folded, without gradients."""
    released = read_tensors(path)
    network = EfficientNetLite(config, classifier=any(name.startswith("_fc.") for name in released))
    try:
        network.load_state_dict(_matched(released, network))
    except InvalidValue as error:
        raise InvalidFile(path, error.reason, error.hint) from error
    network.eval().requires_grad_(False)
    network.fold()
    for parameter in network.parameters():
        if parameter.ndim == 4:
            # The order of memory in which the CPU's convolutions are fastest.
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return network


def released_names(network: EfficientNetLite) -> dict[str, str]:
    """Our parameter and buffer names, each with its name in the released files."""
    return {name: _released_name(name) for name in network.state_dict()}


def _released_name(name: str) -> str:
    layers = {"stem": ("_conv_stem", "_bn0"), "head": ("_conv_head", "_bn1")}
    parts = {
        "expand": ("_expand_conv", "_bn0"),
        "around": ("_depthwise_conv", "_bn1"),
        "project": ("_project_conv", "_bn2"),
    }
    place, _, last = name.rpartition(".")
    if place == "classifier":
        return f"_fc.{last}"
    outer, _, kind = place.rpartition(".")
    if outer in layers:
        return f"{layers[outer][kind == 'norm']}.{last}"
    _, number, part = outer.split(".")
    return f"_blocks.{number}.{parts[part][kind == 'norm']}.{last}"


def _matched(released: Mapping[str, Tensor], network: EfficientNetLite) -> dict[str, Tensor]:
    """The released tensors under our names; every one must have its place and its shape."""
    names, ours = released_names(network), network.state_dict()
    if absent := sorted(set(names.values()) - set(released)):
        raise InvalidValue("weights", f"lack {len(absent)} tensors, first {absent[0]!r}", "is it another variant?")
    if extra := sorted(set(released) - set(names.values())):
        raise InvalidValue("weights", f"hold {len(extra)} tensors too many, first {extra[0]!r}", "another variant?")
    for name, theirs in names.items():
        if released[theirs].shape != ours[name].shape:
            raise InvalidValue(
                "weights", f"{theirs!r} has shape {tuple(released[theirs].shape)}, not {tuple(ours[name].shape)}"
            )
    return {name: released[theirs] for name, theirs in names.items()}
