"""Trajectory-aware visual perception (TVP): what the eye saw and where somebody pointed look at each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from saywhere.models.tracevlm.config import TraceVlmConfig


class PerceptionBlock(nn.Module):
    """f_img' = f_img + γ ⊙ CrossAttn(f_img, f_traj); f_traj' = f_traj + CrossAttn(f_traj, f_img') + FFN(f_traj).

    γ starts at 0, so that at first the image stays as it was. Whatever enters an attention or the FFN is normed first.
    """

    def __init__(self, width: int, heads: int, expansion: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(width))
        self.image_norm, self.seen_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.points_norm, self.asking_norm, self.forward_norm = (nn.LayerNorm(width) for _ in range(3))
        self.enhance = nn.MultiheadAttention(width, heads, batch_first=True)
        self.refine = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, expansion * width), nn.GELU(), nn.Linear(expansion * width, width)
        )

    def forward(self, image: Tensor, points: Tensor, no_image: Tensor, no_point: Tensor) -> tuple[Tensor, Tensor]:
        """(b, n, width) and (b, p, width). no_image, no_point: (b, n) and (b, p), True for padding."""
        keys = self.points_norm(points)
        guided, _ = self.enhance(self.image_norm(image), keys, keys, no_point, need_weights=False)
        image = image + self.gamma * guided
        seen = self.seen_norm(image)
        refined, _ = self.refine(self.asking_norm(points), seen, seen, no_image, need_weights=False)
        return image, points + refined + self.feed_forward(self.forward_norm(points))


class Perception(nn.Module):
    """Some blocks, on images of different sizes with different numbers of points."""

    def __init__(self, config: TraceVlmConfig, width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            PerceptionBlock(width, config.heads, config.expansion) for _ in range(config.blocks)
        )

    def forward(self, images: Sequence[Tensor], points: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Each image, (n, width), with the points on it, (p, width). One without points stays as it is."""
        images, points = list(images), list(points)
        pointed = [i for i, one in enumerate(points) if len(one)]
        if not pointed or not len(self.blocks):
            return images, points
        kind = next(self.parameters()).dtype
        image, no_image = _padded([images[i].to(kind) for i in pointed])
        point, no_point = _padded([points[i].to(kind) for i in pointed])
        for block in self.blocks:
            image, point = block(image, point, no_image, no_point)
        for row, i in enumerate(pointed):
            images[i] = image[row, : len(images[i])].to(images[i].dtype)
            points[i] = point[row, : len(points[i])]
        return images, points


def _padded(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """(b, longest, width), and (b, longest) True for padding."""
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    padded = pad_sequence(list(rows), batch_first=True)
    return padded, torch.arange(padded.shape[1], device=padded.device) >= lengths[:, None]


def perception_flops(width: int, blocks: int, expansion: int, image_tokens: int, points: int) -> int:
    """Floating-point operations of one image through the module: two for each multiplication of a matrix."""
    per_token = 2 * width * width
    projections = 4 * per_token * (image_tokens + points)  # of two attentions, each with two on either side
    attention = 2 * 4 * image_tokens * points * width
    return blocks * (projections + attention + 2 * expansion * per_token * points)
