"""The diffusion bridge (Lee et al., 2025): a denoiser of text vectors takes what sets images apart for noise.

Texts are seen as 5·norm(norm(t) − μ_text), images as 5·norm(norm(v) − μ_image). The denoiser learns on texts alone to
say from a noisy one which text it was. An image then enters the way back from noise in the middle and comes out as a
text. Before each look of the denoiser, in learning too, what it looks at is brought to length 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.core.types import Progress
from saywhere.models.common.config import ShapeConfig
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.patchioner.memory import Projected, checked_rows

Vectors = NDArray[np.float32]
"""Called with how many steps are done, and how many there are."""

SCHEDULES = ("cosine", "linear")
_KIND = "bridge"
_SCALE = 5.0
# Near the end there is hardly any noise left; its steps would count a thousandfold (Hang et al., 2023).
_HEAVIEST = 5.0
_SLOWEST_TURN = 1e-4


@dataclass(frozen=True, slots=True)
class BridgeConfig(ShapeConfig):
    """size: d, numbers per vector. width, blocks: of the denoiser. noise_steps: of the way into noise.

    schedule: how noise grows, "cosine" (Nichol & Dhariwal) or "linear" (Ho et al.).
    """

    size: int
    width: int = 512
    blocks: int = 4
    noise_steps: int = 1000
    schedule: str = "cosine"
    family: ClassVar[str] = "bridge"

    def __post_init__(self) -> None:
        ShapeConfig.__post_init__(self)
        if self.width % 2:
            raise InvalidValue("bridge config width", f"{self.width} is odd", "times need pairs of sine and cosine")
        if not isinstance(self.schedule, str):
            raise InvalidValue("bridge config schedule", f"is {self.schedule!r}, not a name")
        if self.schedule not in SCHEDULES:
            raise UnknownName("noise schedule", self.schedule, SCHEDULES)


class _Block(nn.Module):
    """A residual MLP whose middle is scaled and shifted by the time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.time = nn.Linear(width, 2 * width)
        nn.init.zeros_(self.time.weight)
        nn.init.zeros_(self.time.bias)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        scale, shift = self.time(time).chunk(2, dim=-1)
        seen: Tensor = self.norm(x) * (1 + scale) + shift
        out: Tensor = x + self.narrow(nn.functional.silu(self.widen(seen)))
        return out


class Bridge(nn.Module):
    """A denoiser of text vectors, and where texts and images have their means.

    text_mean, image_mean: (d,) means of texts' and images' vectors, each of length 1.
    """

    text_mean: Tensor
    image_mean: Tensor
    kept: Tensor

    def __init__(self, config: BridgeConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("text_mean", torch.zeros(config.size))
        self.register_buffer("image_mean", torch.zeros(config.size))
        self.register_buffer("kept", kept_signal(config), persistent=False)
        self.enter, self.leave = nn.Linear(config.size, config.width), nn.Linear(config.width, config.size)
        self.time = nn.Sequential(nn.Linear(config.width, config.width), nn.SiLU())
        self.blocks = nn.ModuleList(_Block(config.width) for _ in range(config.blocks))

    def forward(self, noisy: Tensor, step: Tensor) -> Tensor:
        """The text that a noisy one was. noisy: (n, d), of any length. step: (n,) how far into noise, from 0."""
        x = self.enter(_scaled(noisy))
        time = self.time(_turns(step, self.config.width))
        for block in self.blocks:
            x = block(x, time)
        out: Tensor = self.leave(x)
        return out

    def loss(self, texts: Tensor, generator: torch.Generator) -> Tensor:
        """How far off its guesses are. texts: (n, d) vectors of texts, of any length."""
        clean = _scaled(normalize(texts, dim=-1) - self.text_mean)
        place = {"generator": generator, "device": texts.device}
        step = torch.randint(self.config.noise_steps, (len(texts),), **place)  # type: ignore[call-overload]
        kept = self.kept[step][:, None]
        noise = torch.randn(clean.shape, **place)  # type: ignore[call-overload]
        guessed = self(kept.sqrt() * clean + (1 - kept).sqrt() * noise, step)
        weight = (kept / (1 - kept)).clamp(max=_HEAVIEST)
        off: Tensor = (weight * (guessed - clean) ** 2).mean()
        return off

    @torch.no_grad()
    def cross(self, vectors: ArrayLike, start: int = 600, steps: int = 5) -> Vectors:
        """Images' vectors as texts' vectors.

        vectors: (m, d), of any length but 0. start: the step of noise at which images enter. steps: DDIM's, which add
        no noise of their own, so that the same vector always gives the same.
        """
        if not 0 < start <= self.config.noise_steps:
            raise InvalidValue("start", f"is {start}, not in 1 … {self.config.noise_steps}")
        if not 0 < steps <= start:
            raise InvalidValue("steps", f"is {steps}, not in 1 … {start}")
        images = torch.from_numpy(checked_rows(vectors, self.config.size, "vectors")).to(self.text_mean)
        x = _scaled(images - self.image_mean)
        times = [round(start * (steps - i) / steps) - 1 for i in range(steps + 1)]
        clean = x
        for now, then in pairwise(times):
            x = _scaled(x)
            clean = self(x, torch.full((len(x),), now, device=x.device))
            if then >= 0:
                noise = (x - self.kept[now].sqrt() * clean) / (1 - self.kept[now]).sqrt()
                x = self.kept[then].sqrt() * clean + (1 - self.kept[then]).sqrt() * noise
        return self._as_text(clean).cpu().numpy()

    def _as_text(self, clean: Tensor) -> Tensor:
        """The vector t of length 1 whose norm(t − μ_text) this is: μ + r·u with the one r > 0 that makes it so."""
        u, mean = normalize(clean.double(), dim=-1), self.text_mean.double()
        along = u @ mean
        r = -along + (along**2 + 1 - mean @ mean).sqrt()
        return normalize(mean + r[:, None] * u, dim=-1).float()

    def save(self, folder: str | Path) -> None:
        """Write it into a folder: model.safetensors and config.json."""
        save_part(folder, _KIND, self.config.to_dict(), self.state_dict())

    @classmethod
    def load(cls, folder: str | Path) -> Bridge:
        part = load_part(folder, _KIND)
        try:
            config = BridgeConfig.from_dict(part.config)
        except (InvalidValue, UnknownName) as error:
            raise InvalidFile(part.folder, str(error)) from error
        return built(lambda: cls(config), part).eval()


def train_bridge(
    text_vectors: ArrayLike,
    image_mean: ArrayLike,
    steps: int,
    generator: torch.Generator,
    progress: Progress | None = None,
    *,
    config: BridgeConfig | None = None,
    batch: int = 256,
    rate: float = 1e-3,
) -> Bridge:
    """A bridge for these texts. The generator decides the weights it starts from, too.

    text_vectors: (n, d). image_mean: (d,) the mean of images' vectors, each of length 1. rate: of learning, which
    falls to 0 as a half cosine.
    """
    width = np.asarray(image_mean).size
    texts = torch.from_numpy(checked_rows(text_vectors, width, "text_vectors"))
    if len(texts) < 2 or steps < 1 or batch < 1:
        raise InvalidValue("training", f"has {len(texts)} texts, {steps} steps and batches of {batch}", "too few")
    bridge = _fresh(config or BridgeConfig(width), generator)
    bridge.text_mean.copy_(texts.mean(dim=0))
    bridge.image_mean.copy_(_mean(image_mean, bridge.config.size))
    optimizer = torch.optim.AdamW(bridge.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 + math.cos(math.pi * step / steps)) / 2)
    for step in range(steps):
        chosen = torch.randint(len(texts), (batch,), generator=generator)
        optimizer.zero_grad()
        bridge.loss(texts[chosen], generator).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(bridge.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if progress is not None:
            progress("learning the bridge, steps", step + 1, steps)
    return bridge.eval()


def kept_signal(config: BridgeConfig) -> Tensor:
    """(noise_steps,) float32: ᾱ, the share of variance that is still the text's after each step."""
    n = config.noise_steps
    if config.schedule == "linear":
        # Ho et al.'s 0.0001 … 0.02, which are meant for a thousand steps.
        betas = torch.linspace(1e-4 * 1000 / n, min(0.02 * 1000 / n, 0.999), n, dtype=torch.float64)
    else:
        angle = (torch.arange(n + 1, dtype=torch.float64) / n + 0.008) / 1.008 * math.pi / 2
        betas = (1 - (angle[1:].cos() / angle[:-1].cos()) ** 2).clamp(max=0.999)
    return (1 - betas).cumprod(dim=0).float()


def _fresh(config: BridgeConfig, generator: torch.Generator) -> Bridge:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
        return Bridge(config)


def _mean(values: ArrayLike, size: int) -> Tensor:
    mean = np.asarray(values, dtype=np.float32)
    if mean.shape != (size,) or not np.isfinite(mean).all():
        raise InvalidValue("image_mean", f"of shape {mean.shape} is not the mean of vectors of {size} numbers")
    return torch.from_numpy(mean)


def _scaled(x: Tensor) -> Tensor:
    return _SCALE * normalize(x, dim=-1)


def _turns(step: Tensor, width: int) -> Tensor:
    """(n, width) sines and cosines of the step, from fast ones to slow ones."""
    speeds = torch.logspace(0, math.log10(_SLOWEST_TURN), width // 2, device=step.device)
    angles = step[:, None] * speeds
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


@dataclass(frozen=True, slots=True)
class BridgeGap:
    """Vectors led to texts by a denoiser (Diffusion Bridge); see `Bridge.cross`."""

    bridge: Bridge
    start: int = 600
    steps: int = 5

    def close(self, vectors: ArrayLike) -> Projected:
        crossed = self.bridge.cross(vectors, self.start, self.steps)
        return Projected(crossed, [[] for _ in crossed])
